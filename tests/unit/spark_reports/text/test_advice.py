"""The commands that a report ends with."""

from dataclasses import replace

from quorate.spark_reports.text.advice import COMMANDS_MAX, commands, hints
from tests.unit.spark_reports.text.test_answer import MEASURED, recommending


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
    assert hints(figures) == ["2 more objects of type queue have another choice: figures.json names them."]


def test_without_advice_there_is_no_command() -> None:
    assert commands(recommending(MEASURED, objects=()), "f.json") == []
    assert commands(replace(MEASURED, recommendations=()), "f.json") == []
