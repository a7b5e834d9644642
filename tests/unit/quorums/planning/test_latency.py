"""Answer times against listing every combination of every replica's times."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.types.file import File
from quorate.quorums.choices.assignment import Assignment
from quorate.quorums.choices.choices import constraints_of
from quorate.quorums.planning.latency import (
    AnswerTime,
    answer_time,
    chance_of_sum,
    mean_ms,
    of_event,
    of_quorum,
    quantile_ms,
)
from quorate.quorums.systems.failures import Independent
from quorate.quorums.systems.systems import BadQuorums, System, choose, votes
from tests.unit.quorums.listing import NAMES, SYSTEMS, UNTIMED, minimal, quorums_of

POINTS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(1, 3)), min_size=1, max_size=3, unique_by=lambda p: p[0]
)
TIMES = st.fixed_dictionaries(dict.fromkeys(NAMES[:3], POINTS))


def outcomes(system: System, points: dict[str, list[tuple[int, int]]]) -> list[tuple[float, Fraction]]:
    """Every combination of answer times: when the first quorum is complete, and how likely it is."""
    quorums = minimal(quorums_of(system))
    found = []
    for drawn in product(*points.values()):
        at = dict(zip(points, (time for time, _ in drawn), strict=True))
        chance = Fraction(1)
        for (_, weight), every in zip(drawn, points.values(), strict=True):
            chance *= Fraction(weight, sum(each for _, each in every))
        when = min((max((at.get(name, 0) for name in q), default=0) for q in quorums), default=float("inf"))
        found.append((float(when), chance))
    return found


@UNTIMED
@given(SYSTEMS, TIMES)
def test_a_quorum_answers_as_listing_every_combination_says(
    system: System, points: dict[str, list[tuple[int, int]]]
) -> None:
    times = {name: answer_time(each) for name, each in points.items()}
    answered = of_quorum(system, times)
    listed = outcomes(system, points)
    for moment in range(10):
        exact = sum((chance for when, chance in listed if when <= moment), Fraction(0))
        assert answered.chance(moment) == pytest.approx(float(exact), abs=1e-12)
    if all(when < float("inf") for when, _ in listed):
        mean = sum(Fraction(when) * chance for when, chance in listed)
        assert mean_ms([answered]) == pytest.approx(float(mean), abs=1e-9)


@UNTIMED
@given(POINTS, POINTS, st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_the_quantile_of_two_rounds_is_that_of_all_sums(
    one: list[tuple[int, int]], other: list[tuple[int, int]], q: float
) -> None:
    rounds = [answer_time(one), answer_time(other)]
    total = Fraction(sum(w for _, w in one) * sum(w for _, w in other))
    sums = sorted((a + b, Fraction(v * w) / total) for (a, v), (b, w) in product(one, other))
    reached = Fraction(0)
    expected = None
    for time, chance in sums:
        reached += chance
        if expected is None and float(reached) >= q - 1e-12:
            expected = time
    assert quantile_ms(rounds, q) == expected
    for moment in range(19):
        exact = sum((chance for time, chance in sums if time <= moment), Fraction(0))
        assert chance_of_sum(rounds, moment) == pytest.approx(float(exact), abs=1e-12)


def test_the_examples_of_the_docstrings_hold() -> None:
    half = answer_time([(1, 1), (10, 1)])
    assert of_quorum(choose(2, "abc"), dict.fromkeys("abc", half)) == AnswerTime((1, 10), (0.5, 1.0))
    mostly = answer_time([(5, 9), (50, 1)])
    assert (mostly.quantile_ms(0.9), mostly.quantile_ms(0.91)) == (5, 50)


def test_replicas_that_are_down_never_answer() -> None:
    constant = answer_time([(5, 1)])
    found = of_quorum(choose(2, "ab"), dict.fromkeys("ab", constant), Independent({"a": 0.9, "b": 0.9}))
    assert found.chance(5) == pytest.approx(0.81)
    assert found.quantile_ms(0.8) == 5
    assert found.quantile_ms(0.9) is None
    assert quantile_ms([found, found], 0.9) is None
    assert mean_ms([found]) is None


def test_an_event_takes_the_time_of_its_two_rounds() -> None:
    """Gifford's second example: votes 2, 1, 1, read 2 and write 3, answers in 75, 100 and 750 ms; here a write reads first."""
    votes_of = dict(zip("abc", (2, 1, 1), strict=True))
    constraints = constraints_of(File(), replication="versions")
    read = votes(votes_of, 2)
    assignment = Assignment(constraints, {"Read": read, "Write": read}, {"Write/Ok": votes(votes_of, 3)})
    times = {name: answer_time([(ms, 1)]) for name, ms in zip("abc", (75, 100, 750), strict=True)}
    assert quantile_ms(of_event(assignment, "Read/Ok", times), 0.5) == 75
    assert quantile_ms(of_event(assignment, "Write/Ok", times), 0.5) == 175
    assert quantile_ms([], 0.5) == 0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: answer_time([(-1, 1)], "r1"), "r1: -1 ms with weight 1; give numbers of 0 or more"),
        (lambda: answer_time([(1, float("nan"))]), "nan"),
        (lambda: answer_time([(1, 0)]), "no answer time has a weight"),
        (lambda: answer_time([(i, 1) for i in range(1001)]), "1001 answer times; give at most 1000"),
    ],
)
def test_bad_answer_times_are_named(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(BadQuorums, match=sentence):
        make()
