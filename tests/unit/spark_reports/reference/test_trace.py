"""Up-sets, periods and outages against a look at every microsecond: stretches that touch, and times of which nothing is known."""

from collections.abc import Sequence
from itertools import groupby, pairwise

from hypothesis import given
from hypothesis import strategies as st

from quorate.quorums.systems.systems import votes
from quorate.spark_reports.input.rows import Interval
from quorate.spark_reports.model.aggregates import Outage, Span
from quorate.spark_reports.model.questions import Questions
from quorate.spark_reports.model.run_document import Run
from quorate.spark_reports.reference.trace import (
    Input,
    aggregate_trace,
    deciding_periods,
    enough_of,
    up_sets_of,
)

LAST_US = 24
EQUAL = {"r1": 1, "r2": 1}
BOTH = Questions((), {}, (votes(EQUAL, 2),), {("c", "Op"): 0}, {})
Said = list[int | None]
"""What is known of a replica, or of a way to it, in each microsecond."""

PIECES = st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 0, 1, 1, None])), min_size=3, max_size=9)


def laid_out(
    front_end: str, replica: str, pieces: list[tuple[int, int | None]]
) -> tuple[list[Interval], Said]:
    """Intervals one after the other, and what they say in each microsecond."""
    intervals, said = [], Said()
    for length, up in pieces:
        start_us = len(said)
        said += [up] * length
        if up is not None:
            intervals.append(Interval(front_end, replica, start_us, len(said), up))
    return intervals, (said + [None] * LAST_US)[:LAST_US]


def runs(down: Sequence[bool]) -> list[int]:
    """The lengths of the stretches that are down."""
    return [len(list(own)) for is_down, own in groupby(down) if is_down]


@given(PIECES, PIECES, PIECES)
def test_every_microsecond_is_told_as_the_intervals_have_it(
    one: list[tuple[int, int | None]], other: list[tuple[int, int | None]], link: list[tuple[int, int | None]]
) -> None:
    (first, r1), (second, r2), (links, way) = (
        laid_out("", "r1", one),
        laid_out("", "r2", other),
        laid_out("c1", "r1", link),
    )
    run = Run(votes=EQUAL, front_ends=("c1", "c2"))
    found = Input(run, Span(0, LAST_US), (), [*first, *second][::-1], links[::-1], (), {}, ())
    up_sets = up_sets_of(found)
    enough = enough_of(up_sets, BOTH, run)
    counted = aggregate_trace(found, up_sets, BOTH, enough)

    expected: dict[tuple[str, int], int] = {}
    for view in run.members(found.linked):
        for time_us in range(LAST_US):
            up, linked = (r1[time_us], r2[time_us]), way[time_us] if view else 1
            if None not in (*up, linked):
                expected[view, time_us] = (up[0] or 0) * (linked or 0) + 2 * (up[1] or 0)
    told = {(each.view, t): each.up for each in up_sets for t in range(each.start_us, each.end_us)}
    assert told == expected

    short = [any(told.get((view, t), 3) != 3 for view in ("", "c1")) for t in range(LAST_US)]
    lengths = runs(short)
    assert counted.outages == ((Outage(0, len(lengths), sum(lengths), max(lengths)),) if lengths else ())
    for row, said in zip(counted.replicas, [said for said in (r1, r2) if set(said) != {None}], strict=True):
        down = runs([up == 0 for up in said])
        assert (row.outages, row.longest_outage_us) == (len(down), max(down, default=0))
        assert row.failures == sum(pair == (1, 0) for pair in pairwise(said))
        assert (row.observed_us, row.up_us) == (LAST_US - said.count(None), said.count(1))

    for view, periods in deciding_periods(up_sets, BOTH, enough)[0].items():
        for each in periods:
            holds = {told[view, t] == 3 for t in range(each.start_us, each.end_us)}
            assert holds == {each.enough}
            before, after = told.get((view, each.start_us - 1)), told.get((view, each.end_us))
            assert each.changed_before == (before is not None), (
                "a neighbour of the same kind would be one with it"
            )
            assert each.changed_after == (after is not None)
