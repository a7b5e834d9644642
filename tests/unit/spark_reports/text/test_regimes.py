"""What is said of a choice in force that changed: when, what came of it, and that later figures are not what it gave."""

from dataclasses import replace

from quorate.spark_reports.model.figures import AsItWasFigures, Figures, RegimeFigures
from quorate.spark_reports.model.phrases import NO_BREAK
from quorate.spark_reports.text.regimes import sentences
from tests.unit.spark_reports.made_figures import START_S, WINDOW_S, Made

TRACE = Made(measured=False).figures()


def changing(figures: Figures, *choices: str) -> Figures:
    """Give the figures with so many regimes of equal length, of these choices; a day has passed at each border."""
    length_s = WINDOW_S / len(choices)
    rows = [
        RegimeFigures(
            adt="queue",
            regime=number + 1,
            from_s=START_S + number * length_s,
            to_s=START_S + (number + 1) * length_s,
            choice=choice,
            operation=operation,
            known_s=length_s,
            available=0.9,
            downtime_s=length_s / 10,
            outages=1,
            longest_s=length_s / 10,
            mttr_s=length_s / 10,
            recommended="enq-2",
            recommended_available=0.95,
        )
        for number, choice in enumerate(choices)
        for operation in ("Enq", "Deq")
    ]
    wholes = [
        AsItWasFigures("queue", operation, 0.7, "enq-2", 0.83, 0.87) for operation in (None, "Enq", "Deq")
    ]
    return replace(figures, regimes=tuple(rows), as_it_was=tuple(wholes))


def told(figures: Figures) -> str:
    return " ".join(sentences(figures)).replace(NO_BREAK, " ")


def test_one_change_is_told_with_what_came_of_it() -> None:
    assert told(changing(TRACE, "enq-1", "enq-3")) == (
        "For the queue, the choice in force changed once in this time: enq-1 at first and enq-3 from 2025-10-09 08:55:20 UTC on. As it was, there were "
        "replicas enough for 70.0 % of the mix; enq-2 all along would have served 83.0 %, and the best standing rule 87.0 %. What stands here of enq-3 "
        "as the choice in force was not measured under it: it would have given that, had it been in force all along."
    )


def test_of_many_changes_the_first_are_named() -> None:
    sentence = told(changing(TRACE, *["enq-1", "enq-2"] * 3))
    assert "changed 5 times in this time: enq-1 at first, enq-2 from" in sentence
    assert "and 2 more regimes." in sentence
    assert "What stands here of enq-2 as the choice in force" in sentence


def test_without_a_standing_rule_none_is_named() -> None:
    found = changing(TRACE, "enq-1", "enq-3")
    wholes = tuple(replace(each, adaptive_available=None) for each in found.as_it_was)
    assert "enq-2 all along would have served 83.0 %. What" in told(replace(found, as_it_was=wholes))


def test_where_nothing_changed_nothing_is_said() -> None:
    assert sentences(TRACE) == sentences(changing(TRACE, "enq-1")) == []
