"""The best standing rule of small traces, worked out by hand, and which rules a cluster could put in force."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quorate.adts.specification import Specification
from quorate.adts.types.catalogue import SPECIFICATIONS
from quorate.adts.types.queue import Queue
from quorate.api_specs.cluster import (
    ChoiceRule,
    ClusterDocument,
    Fallback,
    ReplicaInfo,
    checked,
    switch_problem,
    with_states,
)
from quorate.quorums.choices.choice import QuorumChoice
from quorate.quorums.choices.choices import constraints_of, minimal_choices
from quorate.quorums.planning import adaptive_search
from quorate.quorums.planning.adaptive import Condition, StandingRule, Stretch, course
from quorate.quorums.planning.adaptive_search import Candidate, Search, Trace, View, majority_of
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


def sizes_of(choice: QuorumChoice) -> dict[str, tuple[int, int]]:
    return {name: (own.initial, own.final) for name, own in choice.classes.items()}


def as_document(candidate: Candidate) -> ClusterDocument:
    """A cluster whose one rule is this candidate."""
    rule = candidate.rule
    down = tuple(sorted(rule.condition.down))
    if candidate.fallback.startswith("majority of"):
        system = str(majority_of({name: own for name, own in rule.votes.items() if name not in down}))
        fallback = Fallback(reads=system, writes=system)
    else:
        fallback = Fallback(sizes_of(rule.fallback))
    fallback = replace(fallback, down=down, live_below=rule.condition.live_below, after_s=rule.after)
    members = tuple(
        ReplicaInfo(name, f"http://127.0.0.1:{port}", own)
        for port, (name, own) in enumerate(rule.votes.items(), 1)
    )
    objects = f"{rule.normal.specification.name}/jobs"
    return ClusterDocument("local", members, (ChoiceRule(objects, sizes_of(rule.normal), fallback=fallback),))


def fixed_of(specification: Specification, votes: dict[str, int]) -> dict[str, QuorumChoice]:
    """Some minimal choices, and one whose first operation reads one vote for nothing."""
    rows = minimal_choices(constraints_of(specification), votes, "by-operation")[:4]
    found = [QuorumChoice(specification, votes, row.classes) for row in rows]
    sizes = sizes_of(QuorumChoice(specification, votes))
    first = next(iter(sizes))
    assert sizes[first][0] == 0
    found.append(QuorumChoice(specification, votes, sizes | {first: (1, sizes[first][1])}))
    return {str(number): choice for number, choice in enumerate(found)}


@pytest.mark.parametrize("adt", ["queue", "register"])
@given(data=st.data())
def test_a_cluster_could_put_each_rule_in_force_where_the_search_thinks_so(
    adt: str, data: st.DataObject
) -> None:
    """Each candidate is a rule that a cluster takes; and whichever members are up, it can be switched to what is wanted then where the search thinks so."""
    names = "abcde"[: data.draw(st.integers(3, 5))]
    votes = {name: data.draw(st.sampled_from((1, 1, 1, 2, 0))) for name in names}
    if not any(votes.values()):
        votes["a"] = 1
    sets = st.frozensets(st.sampled_from(names))
    steps = trace(
        *(
            (100 * place, "".join(up))
            for place, up in enumerate(data.draw(st.lists(sets, min_size=2, max_size=6)))
        ),
        end=1000,
    )
    specification = SPECIFICATIONS[adt]
    mix = dict.fromkeys(specification.depends, 1 / len(specification.depends))
    search = Search(specification, fixed_of(specification, votes), mix, list(mix), after=10, lasts=1)
    for candidate in search._ranked(Trace(votes, steps, [View(1, steps)])):
        normal = checked(as_document(candidate))
        back = with_states(normal, {rule.objects: True for rule in normal.standing_rules})
        for size in range(len(names) + 1):
            for up in map(frozenset, combinations(names, size)):
                facts = candidate.rule.facts(up)
                old, new = (normal, back) if facts.holds else (back, normal)
                assert not facts.can_switch or not switch_problem(old, new, up)
