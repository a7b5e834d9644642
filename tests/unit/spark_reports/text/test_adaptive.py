"""What is said of standing rules is true for those that win, that may win by chance, and that win nothing."""

from dataclasses import replace
from typing import Any

from quorate.spark_reports.model.figures import QuorumFigures
from quorate.spark_reports.model.phrases import NO_BREAK
from quorate.spark_reports.text.adaptive import sentences
from tests.unit.spark_reports.text.test_answer import CALM, MEASURED, TRACE, said

ABOUT = "Switching as replicas fail"


def told(**changes: Any) -> str:
    figures = replace(TRACE, adaptive=(replace(TRACE.adaptive[0], **changes),))
    sentence = " ".join(sentences(figures))
    assert said(figures, ABOUT) == sentence.replace(NO_BREAK, " ")
    return sentence.replace(NO_BREAK, " ")


def test_a_rule_that_wins_is_told_with_what_it_costs() -> None:
    assert told() == (
        "For the queue, a standing rule would have served 87.0 % of the mix, 4.0 points more than enq-2 alone (+4.00 points, 95 % interval "
        '+1.00 to +7.00). It is enq-2, and "majority of r3, r4, r5" while r1 and r2 are down, once that has lasted 10 s. It would have switched 6 '
        "times, with both choices in force for 6 s together. It was picked with hindsight, as the best of 48 on this trace."
    )
    assert "while fewer than 4 replicas are up, once" in told(down=(), live_below=4)
    assert "while r1 is down, once" in told(down=("r1",))
    assert "It would have switched 1 time, with" in told(switches=1)


def test_a_difference_that_may_be_chance_is_told_as_one() -> None:
    assert "(+4.00 points, 95 % interval −1.00 to +9.00, so that it may be chance). It is enq-2" in told(  # noqa: RUF001
        low=-0.01, high=0.09, certain=False
    )
    assert "(+4.00 points, the trace is too short to say how sure that is). It is enq-2" in told(
        low=None, high=None, certain=False
    )


def test_a_rule_that_wins_nothing_is_told_plainly() -> None:
    assert told(wins=False, served=0.5, difference=-0.33) == (
        "For the queue, switching quorums as replicas fail wins nothing here: no standing rule of the 48 that were tried would have served "
        "more of the mix than enq-2 alone, 83.0 %."
    )


def test_seconds_are_those_of_the_plan_where_time_was_scaled() -> None:
    assert "both choices in force for 6 s of the plan together" in sentences(MEASURED)[1].replace(
        NO_BREAK, " "
    )


def test_where_no_rule_could_switch_that_is_told() -> None:
    (sentence,) = sentences(replace(TRACE, adaptive=()))
    assert sentence == (
        "For the queue, no standing rule was found that could have switched quorums as replicas failed here: while its condition holds, that "
        "takes replicas that hold every quorum of both choices."
    )
    (recommended,) = TRACE.recommendations
    quorums = (QuorumFigures("Deq/Ok", "3", "3", 3), QuorumFigures("Deq/Empty", "5", "0", 5))
    by_outcome = replace(recommended, adt="semiqueue", quorums=quorums)
    (sentence,) = sentences(replace(TRACE, adaptive=(), recommendations=(by_outcome,)))
    assert sentence == (
        "For the semiqueue, no standing rule was tried: with enq-2 the outcomes of an operation read different quorums, and in a standing "
        "rule they read the same."
    )
    unknown = replace(TRACE, adaptive=(), recommendations=())
    assert sentences(unknown) == []


def test_without_failures_nothing_is_said() -> None:
    assert sentences(CALM) == []
