"""Error budgets worked out by hand, and what objectives may be named for."""

from fractions import Fraction

import pytest

from quorate.adts.types.catalogue import known_types
from quorate.spark_reports.model import questions
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.model.objectives import (
    Budget,
    Tally,
    added,
    check,
    choices_of,
    names_of,
    present_choices,
    quorum_of,
)
from quorate.spark_reports.model.questions import Questions
from quorate.spark_reports.model.quorum_choices import RUN, Choice, of_votes

VOTES = {"r1": 1, "r2": 1, "r3": 1}
SIZES = {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)}


def asked(*run: str) -> Questions:
    """What is asked of a queue of three replicas; `run` are names of choices that were run, with all Deq at three."""
    classes = tuple(of_votes(name, sizes, VOTES) for name, sizes in SIZES.items())
    choices = [Choice(name, "queue", "clock", RUN, name, classes) for name in run]
    adts = {} if run else {"queue": ("Enq", "Deq")}
    return questions.ask(choices, adts, VOTES, set(), {}, known_types())


def test_a_thousand_attempts_may_fail_once_at_three_nines() -> None:
    """Without rounding: as floating-point numbers, one failure would be more than 1000 * (1 - 0.999)."""
    exact = Budget(Fraction("0.999"), Tally(1000, 1))
    assert [exact.budget, exact.left, exact.burn_rate] == [1, 0, 1]
    assert exact.availability == Fraction(999, 1000)
    assert exact.is_met
    assert not Budget(Fraction("0.999"), Tally(1000, 2)).is_met
    assert not Budget(Fraction("0.999"), Tally(999, 1)).is_met


def test_the_burn_rate_is_how_often_over_the_budget_was_spent() -> None:
    """The workbook's example: at 99.9 % an error rate of 1 % burns ten times as fast as may be."""
    assert Budget(Fraction("0.999"), Tally(100, 1)).burn_rate == 10
    assert Budget(Fraction("0.99"), Tally(86_400_000_000, 432_000_000)).burn_rate == Fraction(1, 2)


def test_tallies_add_up() -> None:
    assert added([Tally(3, 1), Tally(4, 0)]) == Tally(7, 1)
    assert added([]) == Tally(0, 0)


def test_objectives_are_for_operations_and_event_classes() -> None:
    assert names_of(asked(), "queue") == ("Enq", "Deq", "Enq/Ok", "Deq/Ok", "Deq/Empty")


def test_a_name_that_nobody_measured_is_refused_and_says_which_there_are() -> None:
    check(asked(), ["Enq", "Deq/Empty"], None, VOTES)
    with pytest.raises(
        ReportError, match=r"names Peek, which nobody measured; there are queue: Enq, Deq, Enq/Ok, Deq/Ok"
    ):
        check(asked(), ["Enq", "Peek"], None, VOTES)
    with pytest.raises(
        ReportError, match=r"--present names 'mine', which was not looked at; there are Enq \(0, 1\), Deq"
    ):
        check(asked(), ["Enq"], "mine", VOTES)


def test_the_present_choice_is_named_or_was_run_or_is_majorities() -> None:
    majorities = "Enq (0, 2), Deq (2, 2)"
    assert present_choices(asked(), "queue", VOTES, None) == {majorities}
    assert present_choices(asked("a", "b"), "queue", VOTES, None) == {"a", "b"}
    assert present_choices(asked("a", "b"), "queue", VOTES, "b") == {"b"}
    assert present_choices(asked("a"), "queue", VOTES, majorities) == {majorities}
    assert present_choices(asked(), "queue", VOTES, SIZES) == {"Enq (0, 1), Deq (3, 1)"}, "as a rule has it"
    assert present_choices(asked(), "queue", VOTES, {"Deq/Ok": (3, 3)}) == set(), "none that was looked at"


def test_where_nothing_says_which_choice_is_in_force_it_must_be_named() -> None:
    """An eventual queue has no majorities that are a choice worth having."""
    found = questions.ask([], {"eventual-queue": ("Enq", "Deq")}, VOTES, set(), {}, known_types())
    with pytest.raises(
        ReportError, match=r"choice of the eventual-queue is in force; name it with --present"
    ):
        check(found, ["Enq"], None, VOTES)
    check(found, ["Enq"], choices_of(found, "eventual-queue")[0].name, VOTES)


def test_an_operation_stands_for_its_normal_class() -> None:
    (choice,) = choices_of(asked("a"), "queue")[:1]
    classes = {name: quorum_of(choice, name) for name in ("Deq", "Deq/Empty", "Peek")}
    assert {name: each and each.event_class for name, each in classes.items()} == {
        "Deq": "Deq/Ok",
        "Deq/Empty": "Deq/Empty",
        "Peek": None,
    }
