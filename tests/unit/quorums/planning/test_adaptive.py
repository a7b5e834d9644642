"""Standing rules over small traces worked out by hand, and beside a machine that goes second by second."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.types.queue import Queue
from quorate.quorums.choices.choice import QuorumChoice
from quorate.quorums.choices.system_choice import choice_of_pair
from quorate.quorums.planning.adaptive import (
    Condition,
    Course,
    Phase,
    Piece,
    StandingRule,
    Stretch,
    could_change,
    course,
    has_majority,
    overlaid,
    serves,
)

FIVE = dict.fromkeys("abcde", 1)
MAJORITY = QuorumChoice(Queue(), FIVE)
OF_THREE = choice_of_pair(Queue(), FIVE, "choose(2; a, b, c)", "choose(2; a, b, c)")
FEW = QuorumChoice(Queue(), FIVE, {"Enq/Ok": (0, 2), "Deq/Ok": (4, 2)})
EAGER = QuorumChoice(Queue(), FIVE, {"Enq/Ok": (0, 1), "Deq/Ok": (5, 1)})
TWO_DOWN = StandingRule(MAJORITY, OF_THREE, Condition(frozenset("de")), FIVE, after=10, lasts=1)


def trace(*steps: tuple[int, str], end: int, start: int = 0) -> list[Stretch]:
    """Stretches from the moments at which other members are up."""
    moments = [*(at for at, _ in steps), end]
    return [Stretch(at, after, frozenset(up)) for (at, up), after in zip(steps, moments[1:], strict=True)]


def in_words(found: Course) -> list[tuple[int, int, str]]:
    return [tuple(each) for each in found.phases]  # type: ignore[misc]


def test_quorums_deflate_when_members_fail_and_inflate_when_they_are_back() -> None:
    steps = trace(
        (0, "abcde"), (100, "abce"), (200, "abc"), (300, "ab"), (400, "abd"), (500, "abcde"), end=600
    )
    found = course(steps, TWO_DOWN)
    assert in_words(found) == [
        (0, 210, "normal"),
        (210, 211, "joint"),
        (211, 410, "fallback"),
        (410, 411, "joint"),
        (411, 600, "normal"),
    ]
    assert found.switches == 2
    pieces = list(overlaid(found.phases, steps))
    assert Piece(300, 400, frozenset("ab"), "fallback") in pieces
    assert [
        TWO_DOWN.serves("Deq/Ok", piece.up, piece.in_force) for piece in pieces if piece.start == 300
    ] == [True]
    assert not serves(MAJORITY, "Deq/Ok", "ab")


def test_a_condition_that_passes_at_once_switches_nothing() -> None:
    found = course(trace((0, "abcde"), (100, "abc"), (110, "abcde"), end=200), TWO_DOWN)
    assert (in_words(found), found.switches) == ([(0, 200, "normal")], 0)
    assert course(trace((0, "abcde"), (100, "abc"), (111, "abcde"), end=200), TWO_DOWN).switches == 2


def test_a_change_begins_only_while_it_could_end() -> None:
    """c fails with the other two: neither a majority nor any two of three are left, and then two of three, but no majority."""
    found = course(trace((0, "abcde"), (100, "a"), (150, "ab"), (160, "abc"), end=200), TWO_DOWN)
    assert in_words(found) == [(0, 160, "normal"), (160, 161, "joint"), (161, 200, "fallback")]


def test_a_change_goes_on_once_it_could_end_again() -> None:
    """c fails within the five seconds of the change: a and b cannot copy what three of five stored. When it is back the five begin anew."""
    slow = StandingRule(MAJORITY, OF_THREE, Condition(frozenset("de")), FIVE, after=10, lasts=5)
    found = course(trace((0, "abcde"), (100, "abc"), (112, "ab"), (119, "abc"), end=200), slow)
    assert in_words(found) == [(0, 110, "normal"), (110, 124, "joint"), (124, 200, "fallback")]
    assert not slow.serves("Deq/Ok", frozenset("ab"), "joint"), "both need their quorum"


def test_a_change_that_cannot_end_is_taken_back() -> None:
    """Four are read by the new choice: with d down, too, nothing could be copied to it, though the old majorities are held and blocked. The next begins
    10 s later, and its condition is over before its end."""
    rule = StandingRule(MAJORITY, FEW, Condition(frozenset("e")), FIVE, after=10, lasts=5)
    found = course(trace((0, "abcde"), (100, "abcd"), (112, "abc"), (125, "abcd"), end=200), rule)
    assert in_words(found) == [
        (0, 110, "normal"),
        (110, 122, "joint"),
        (122, 132, "normal"),
        (132, 137, "joint"),
        (137, 200, "fallback"),
    ]
    assert found.switches == 2
    slow = StandingRule(MAJORITY, FEW, Condition(frozenset("e")), FIVE, after=10, lasts=60)
    found = course(trace((0, "abcde"), (100, "abcd"), (112, "abcde"), end=200), slow)
    assert in_words(found) == [(0, 110, "normal"), (110, 122, "joint"), (122, 200, "normal")]


def test_who_could_change_holds_all_quorums_and_leaves_none_to_the_others() -> None:
    both = (*MAJORITY.asked(), *OF_THREE.asked())
    assert could_change(both, FIVE, frozenset("abc"))
    assert not could_change(both, FIVE, frozenset("ade")), "one of a, b and c"
    assert not could_change(OF_THREE.asked(), FIVE, frozenset("ab")), "no majority of the votes"
    idle = QuorumChoice(Queue(), FIVE, {"Enq/Ok": (1, 3), "Deq/Ok": (3, 3)})
    assert not could_change(idle.asked(), FIVE, frozenset("abcd")), "e could still read alone before an Enq"
    votes = {"a": 2, "b": 1, "c": 1}
    assert [has_majority(votes, up) for up in ("ab", "bc", "a", "")] == [True, False, False, False]


def test_without_a_majority_nothing_is_taken_back() -> None:
    slow = StandingRule(MAJORITY, OF_THREE, Condition(frozenset("de")), FIVE, after=10, lasts=5)
    found = course(trace((0, "abcde"), (100, "abc"), (112, "ab"), (150, "abc"), end=200), slow)
    assert in_words(found) == [(0, 110, "normal"), (110, 155, "joint"), (155, 200, "fallback")]


def test_a_change_that_is_done_as_members_fail_is_done() -> None:
    found = course(trace((0, "abcde"), (100, "abc"), (111, "ab"), end=200), TWO_DOWN)
    assert in_words(found) == [(0, 110, "normal"), (110, 111, "joint"), (111, 200, "fallback")]


def test_switches_are_apart() -> None:
    """d is back at 110, as the change to the fallback begins: it is not taken back within ten seconds of its end."""
    found = course(trace((0, "abcde"), (99, "abc"), (109, "abc"), (110, "abcd"), end=200), TWO_DOWN)
    assert in_words(found) == [
        (0, 109, "normal"),
        (109, 110, "joint"),
        (110, 120, "fallback"),
        (120, 121, "joint"),
        (121, 200, "normal"),
    ]


def test_where_one_may_store_alone_nothing_is_switched_before_all_are_back() -> None:
    """Under the eager choice one member is a quorum of Enq: while one is down, nobody knows that it stores nothing."""
    rule = StandingRule(EAGER, MAJORITY, Condition(live_below=5), FIVE, after=10, lasts=1)
    found = course(trace((0, "abcde"), (100, "abcd"), (200, "abcde"), end=300), rule)
    assert (in_words(found), found.switches) == ([(0, 300, "normal")], 0)


def test_in_time_that_is_unknown_nothing_happens_and_waiting_begins_anew() -> None:
    abc = frozenset("abc")
    steps = [Stretch(0, 5, abc), Stretch(8, 18, abc), Stretch(18, 30, abc), Stretch(40, 45, abc)]
    assert in_words(course(steps, TWO_DOWN)) == [
        (0, 5, "normal"),
        (8, 18, "normal"),
        (18, 19, "joint"),
        (19, 30, "fallback"),
        (40, 45, "fallback"),
    ]
    with_gap = [Stretch(0, 12, abc), Stretch(20, 24, abc)]
    slow = StandingRule(MAJORITY, OF_THREE, Condition(frozenset("de")), FIVE, after=10, lasts=3)
    assert in_words(course(with_gap, slow)) == [
        (0, 10, "normal"),
        (10, 12, "joint"),
        (20, 23, "joint"),
        (23, 24, "fallback"),
    ]


def test_a_caller_may_see_other_members_than_those_who_switch() -> None:
    phases = [Phase(0, 10, "normal"), Phase(10, 12, "joint"), Phase(20, 30, "fallback")]
    seen = [
        Stretch(0, 11, frozenset("ab")),
        Stretch(11, 22, frozenset("a")),
        Stretch(22, 40, frozenset("ab")),
    ]
    assert list(overlaid(phases, seen)) == [
        Piece(0, 10, frozenset("ab"), "normal"),
        Piece(10, 11, frozenset("ab"), "joint"),
        Piece(11, 12, frozenset("a"), "joint"),
        Piece(20, 22, frozenset("a"), "fallback"),
        Piece(22, 30, frozenset("ab"), "fallback"),
    ]


def naive(ups: Sequence[frozenset[str]], rule: StandingRule) -> Iterator[tuple[str, bool]]:
    """What is in force in each second, and whether a change began with it; one thing is asked at a time, in words of its own."""
    majority = len(rule.votes) // 2 + 1
    quorums = [
        [
            quorum
            for name in choice.classes
            for quorum in (choice.initial_of(name.partition("/")[0]), choice.final_of(name))
            if not quorum.is_met_by(())
        ]
        for choice in (rule.normal, rule.fallback)
    ]
    state, target, was = 0, 0, None
    held_for = here_for = ready = stuck = 0
    for up in ups:
        down = rule.votes.keys() - up
        holds = not (rule.condition.down & up) if rule.condition.down else len(up) < rule.condition.live_below
        held_for, was = (held_for, was) if holds == was else (0, holds)
        can = (
            len(up) >= majority
            and all(q.is_met_by(up) for side in quorums for q in side)
            and not any(q.is_met_by(down) for q in quorums[state])
        )
        began = False
        if state != target:
            stuck = 0 if can else stuck
            is_over = int(holds) != target and min(held_for, here_for) >= rule.after
            if ready >= rule.lasts:
                state, here_for = target, 0
            elif len(up) >= majority and (is_over or (not can and stuck >= rule.after)):
                target, here_for = state, 0
        if state == target and int(holds) != state and min(held_for, here_for) >= rule.after:
            can = (
                len(up) >= majority
                and all(q.is_met_by(up) for side in quorums for q in side)
                and not any(q.is_met_by(down) for q in quorums[state])
            )
            if can:
                began, target, here_for, ready, stuck = True, int(holds), 0, 0, 0
        yield ("joint" if state != target else ("normal", "fallback")[state]), began
        ready, stuck = (ready + 1, 0) if can else (0, stuck + 1)
        held_for, here_for = held_for + 1, here_for + 1


CHOICES = st.sampled_from([MAJORITY, OF_THREE, EAGER, FEW])
CONDITIONS = st.sampled_from(
    [Condition(frozenset("e")), Condition(frozenset("de")), Condition(live_below=5), Condition(live_below=4)]
)
UPS = st.frozensets(st.sampled_from("abcde"), min_size=2)


@given(
    choices=st.tuples(CHOICES, CHOICES),
    condition=CONDITIONS,
    after=st.integers(0, 4),
    lasts=st.integers(1, 6),
    steps=st.lists(st.tuples(st.integers(1, 9), UPS), min_size=1, max_size=30),
)
def test_it_is_what_a_machine_does_that_goes_second_by_second(
    choices: tuple[QuorumChoice, QuorumChoice],
    condition: Condition,
    after: int,
    lasts: int,
    steps: list[tuple[int, frozenset[str]]],
) -> None:
    rule = StandingRule(*choices, condition, FIVE, after, lasts)
    at, stretches = 0, []
    for length, up in steps:
        stretches.append(Stretch(at, at + length, up))
        at += length
    expected = list(naive([up for length, up in steps for _ in range(length)], rule))
    found = course(stretches, rule)
    seconds = [phase.in_force for phase in found.phases for _ in range(phase.start, phase.end)]
    assert seconds == [state for state, _ in expected]
    assert found.switches == sum(began for _, began in expected)


@pytest.mark.parametrize(("up", "holds"), [("abc", True), ("abcd", False), ("", True)])
def test_conditions(up: str, holds: bool) -> None:
    assert Condition(frozenset("de")).holds(up) is holds
    assert Condition(live_below=4).holds(up) is holds
