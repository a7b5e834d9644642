"""The best standing rule of small traces, worked out by hand."""

import pytest

from quorate.adts.types.queue import Queue
from quorate.quorums.choices.choice import QuorumChoice
from quorate.quorums.planning import adaptive_search
from quorate.quorums.planning.adaptive import Condition, StandingRule, Stretch, course
from quorate.quorums.planning.adaptive_search import Search, Trace, View
from tests.unit.quorums.planning.test_adaptive import EAGER, FIVE, MAJORITY, OF_THREE, TWO_DOWN, trace

FIXED = {"majority": MAJORITY, "eager": EAGER}
BOTH = {"Enq/Ok": 0.5, "Deq/Ok": 0.5}
SEARCH = Search(Queue(), FIXED, BOTH, ("Enq/Ok", "Deq/Ok", "Deq/Empty"), after=10, lasts=1)
STEPS = trace((0, "abcde"), (100, "abce"), (200, "abc"), (300, "ab"), (400, "abcd"), (500, "abcde"), end=1000)


def alone(stretches: list[Stretch]) -> Trace:
    return Trace(FIVE, stretches, [View(1, stretches)])


def test_the_rule_wins_what_the_fixed_choice_lost() -> None:
    """Majorities are out from 300 to 400, where the fallback answers; while both are asked for, three are up."""
    found = SEARCH.best(alone(STEPS))
    assert found is not None
    best, tried = found
    assert (best.candidate.normal, best.candidate.fallback) == ("majority", "majority of a, b, c")
    assert best.candidate.rule.condition == Condition(frozenset("de"))
    assert best.available == {"Enq/Ok": 1.0, "Deq/Ok": 1.0, "Deq/Empty": 1.0}
    assert (best.served, best.course.switches) == (1.0, 2)
    assert 0 < tried <= adaptive_search.RULES_MAX


def test_a_mix_weighs_the_operations() -> None:
    """Two of five can store an Enq, and four are read by a Deq. While a and b alone are up nothing can be switched, and only the Enq is
    answered; later, with e down, three of the other four answer both."""
    few = QuorumChoice(Queue(), FIVE, {"Enq/Ok": (0, 2), "Deq/Ok": (4, 2)})
    search = Search(
        Queue(), {"few": few}, {"Enq/Ok": 0.75, "Deq/Ok": 0.25}, ("Enq/Ok", "Deq/Ok"), after=10, lasts=1
    )
    steps = trace((0, "ab"), (50, "abcde"), (150, "abcd"), (250, "abc"), (300, "abcde"), end=400)
    found = search.best(alone(steps))
    assert found is not None
    assert found[0].candidate.rule.condition == Condition(frozenset("e"))
    assert found[0].available == {"Enq/Ok": 1.0, "Deq/Ok": 0.875}
    assert found[0].served == 0.75 + 0.25 * 0.875


def test_time_is_that_of_callers_and_switches_those_of_members() -> None:
    """Of two callers one is cut off from a and b all the time that the others are down; of four it counts for three."""
    cut = [
        Stretch(0, 200, frozenset("abcde")),
        Stretch(200, 400, frozenset("c")),
        Stretch(400, 1000, frozenset("abcde")),
    ]
    found = course(STEPS, TWO_DOWN)
    both = Trace(FIVE, STEPS, [View(1, STEPS), View(3, cut)])
    assert both.available(TWO_DOWN, found, ["Deq/Ok"]) == {"Deq/Ok": pytest.approx((1000 + 3 * 800) / 4000)}


def test_in_time_of_both_choices_an_operation_needs_both() -> None:
    """The change to the fallback cannot end while c is down, and two of five are no majority."""
    steps = trace((0, "abcde"), (100, "abc"), (110, "abc"), (111, "ab"), (211, "abcde"), end=311)
    slow = StandingRule(MAJORITY, OF_THREE, Condition(frozenset("de")), FIVE, after=10, lasts=5)
    found = course(steps, slow)
    assert [phase.in_force for phase in found.phases] == ["normal", "joint", "fallback", "joint", "normal"]
    assert alone(steps).available(slow, found, ["Deq/Ok"]) == {"Deq/Ok": 211 / 311}


def test_where_nobody_was_down_nothing_is_tried() -> None:
    assert SEARCH.best(alone(trace((0, "abcde"), end=100))) is None


def test_rules_that_could_never_switch_are_left_out() -> None:
    """Whoever may store an Enq alone must be asked: with one down, the eager choice is never over."""
    one_down = alone(trace((0, "abcde"), (100, "abcd"), (200, "abcde"), end=300))
    ranked = SEARCH._ranked(one_down)
    assert {each.normal for each in ranked} == {"majority"}
    assert [each.fallback for each in ranked] == ["majority of a, b, c, d"]


def test_of_rules_that_serve_alike_one_is_told_that_switches_less() -> None:
    """A majority is always up. e fails three times, and d once, for less time in all."""
    steps = trace(
        (0, "abcde"),
        (100, "abcd"),
        (150, "abcde"),
        (200, "abcd"),
        (250, "abcde"),
        (300, "abcd"),
        (350, "abcde"),
        (400, "abce"),
        (450, "abcde"),
        end=500,
    )
    search = Search(Queue(), {"majority": MAJORITY}, {"Enq/Ok": 1.0}, ("Enq/Ok",), after=10, lasts=1)
    found = search.best(alone(steps))
    assert found is not None
    assert (found[0].served, found[1]) == (1.0, 2)
    assert (found[0].candidate.rule.condition.down, found[0].course.switches) == (frozenset("d"), 2)


def test_a_long_trace_sees_fewer_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SEARCH.best(alone(STEPS))
    monkeypatch.setattr(adaptive_search, "STEPS_MAX", 2 * len(STEPS))
    monkeypatch.setattr(adaptive_search, "RULES_MIN", 1)
    bounded = SEARCH.best(alone(STEPS))
    assert found is not None
    assert bounded is not None
    assert bounded[1] == 2 < found[1]
    monkeypatch.setattr(adaptive_search, "STEPS_MAX", 0)
    least = SEARCH.best(alone(STEPS))
    assert least is not None
    assert least[1] == 1


def test_votes_count_in_majorities_of_the_others() -> None:
    """Without a, whose two votes count, b and c have one each: both are needed."""
    votes = {"a": 2, "b": 1, "c": 1, "d": 0}
    search = Search(Queue(), {"majority": QuorumChoice(Queue(), votes)}, BOTH, ("Enq/Ok",), after=1, lasts=1)
    (choice,) = search._majority_without(frozenset("a"), votes).values()
    assert choice.final_of("Enq/Ok").is_met_by("bc")
    assert not choice.final_of("Enq/Ok").is_met_by("bd")
    assert search._majority_without(frozenset("abc"), votes) == {}, "d has no vote"
