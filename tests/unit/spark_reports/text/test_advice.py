"""The commands that a report ends with."""

from dataclasses import replace

from quorate.spark_reports.text.advice import COMMANDS_MAX, commands, hints
from tests.unit.spark_reports.text.test_answer import MEASURED as WITH_RULE
from tests.unit.spark_reports.text.test_answer import recommending

MEASURED = replace(WITH_RULE, adaptive=())


def test_each_object_has_a_command_that_a_shell_takes() -> None:
    figures = recommending(MEASURED, objects=("queue/jobs", "queue/~mail"))
    assert commands(figures, "my out/figures.json") == [
        "quorate choice set queue/jobs --advice 'my out/figures.json'",
        "quorate choice set 'queue/~mail' --advice 'my out/figures.json'",
    ]
    assert hints(figures) == []


def test_a_reader_is_told_which_word_stands_for_a_name() -> None:
    figures = recommending(MEASURED, objects=("queue/NAME",))
    assert commands(figures, "f.json") == ["quorate choice set queue/NAME --advice f.json"]
    assert hints(figures) == [
        "Put the name of your object in the place of NAME, as in queue/jobs, or write 'queue/*' for all."
    ]


def test_many_objects_are_cut_short_with_a_word() -> None:
    names = tuple(f"queue/{number}" for number in range(COMMANDS_MAX + 2))
    figures = recommending(MEASURED, objects=names)
    assert len(commands(figures, "f.json")) == COMMANDS_MAX
    assert hints(figures) == ["2 more objects of type queue have no command here: figures.json names them."]


def test_a_standing_rule_has_its_command_beside_the_first() -> None:
    assert commands(WITH_RULE, "f.json") == [
        "quorate choice set queue/NAME --advice f.json",
        "quorate choice set queue/NAME --advice f.json --standing",
    ]
    name, rule = hints(WITH_RULE)
    assert name.startswith("Put the name of your object in the place of NAME")
    assert rule == (
        "With --standing the command sets the standing rule for the queue, by which the cluster switches by itself: it would have served 4.0 points "
        "more of the mix."
    )
    (row,) = WITH_RULE.adaptive
    maybe = replace(WITH_RULE, adaptive=(replace(row, certain=False),))
    assert hints(maybe)[1].endswith("it would have served 4.0 points more of the mix, which may be chance.")


def test_where_only_the_rule_is_advised_its_command_stands_alone() -> None:
    """The recommended choice is in force, or as good as all others."""
    figures = recommending(WITH_RULE, objects=())
    assert commands(figures, "f.json") == ["quorate choice set queue/NAME --advice f.json --standing"]
    assert len(hints(figures)) == 2
    (row,) = WITH_RULE.adaptive
    assert commands(replace(figures, adaptive=(replace(row, objects=()),)), "f.json") == []


def test_without_advice_there_is_no_command() -> None:
    assert commands(recommending(MEASURED, objects=()), "f.json") == []
    assert commands(replace(MEASURED, recommendations=()), "f.json") == []
