"""The sentence on each type that the card begins with: what to choose, or that it is too early to say."""

from dataclasses import replace

from quorate.spark_reports.text.verdict import verdicts
from tests.unit.spark_reports.made_figures import Made

MEASURED = Made().figures()
ROW = MEASURED.recommendations[0]


def told(**changes: object) -> str:
    row = replace(ROW, **changes)  # type: ignore[arg-type]
    (sentence,) = verdicts(replace(MEASURED, recommendations=(row,)))
    return sentence


def test_a_choice_that_is_clearly_better_is_recommended() -> None:
    sure = tuple(replace(each, certain=True) for each in ROW.against)
    assert told(tied=(), against=sure) == "For the queue, choose enq-2."


def test_a_time_too_short_to_tell_is_said_to_be() -> None:
    first, *rest = (replace(each, certain=True) for each in ROW.against)
    near = replace(first, certain=False, difference=0.01)
    assert told(tied=(), against=(near, *rest)) == (
        f"For the queue, enq-2 comes first, but the time is too short to tell it from {near.choice}."
    )
    further = replace(near, choice="another", difference=0.02)
    assert told(tied=(), against=(further, near, *rest)).endswith(f"from {near.choice}, or from 1 other.")


def test_where_all_serve_alike_none_is_preferred() -> None:
    others = tuple(each.choice for each in MEASURED.candidates if each.choice != ROW.choice)
    assert told(tied=others) == (
        f"For the queue, this trace gives no reason to prefer a choice: all {len(others) + 1} would have served alike."
    )
    alone = tuple(each for each in MEASURED.candidates if each.choice == ROW.choice)
    assert verdicts(replace(MEASURED, candidates=alone)) == ["For the queue, enq-2 is the only choice."]


def test_several_types_are_named_and_what_is_unknown_has_no_verdict() -> None:
    other = replace(ROW, adt="stack")
    first, second = verdicts(replace(MEASURED, recommendations=(ROW, other)))
    assert first.startswith("For the queue, ")
    assert second.startswith("For the stack, ")
    unknown = replace(MEASURED, window=replace(MEASURED.window, known_s=0.0))
    assert verdicts(unknown) == []
