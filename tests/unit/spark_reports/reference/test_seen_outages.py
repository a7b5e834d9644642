"""Outages as operations saw them: however time is cut into stretches, they are those of the whole."""

import random
from functools import reduce
from itertools import groupby

import pytest

from quorate.spark_reports.input.rows import Operation
from quorate.spark_reports.reference import reference
from quorate.spark_reports.reference.seen_outages import NOTHING, Stretch, joined, outages

KEYS = "enq-1", "Enq"


def attempt(start_us: int, latency_us: int, ok: bool) -> Operation:
    outcome = "ok" if ok else "unavailable"
    return Operation(
        "queue/q", *KEYS, "Enq/Ok" if ok else None, "c1", outcome, start_us, latency_us, latency_us / 1e6
    )


def alone(op: Operation) -> Stretch:
    """What a single attempt comes to."""
    if op.outcome == "ok":
        return Stretch(answered_us=op.start_us)
    return Stretch(leading_us=op.start_us, open_us=op.start_us, ended_us=op.end_us)


def trace(rng: random.Random, attempts: int) -> list[Operation]:
    """Attempts that often begin in the same microsecond, in the order of time, the failed ones of a moment first."""
    share = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    found = [attempt(rng.randint(0, 40), rng.randint(0, 12), rng.random() < share) for _ in range(attempts)]
    return sorted(found, key=lambda op: (op.start_us, op.outcome == "ok"))


@pytest.mark.parametrize("seed", range(4))
def test_stretches_joined_in_any_grouping_are_the_whole(seed: int) -> None:
    """Cut at every width, so also between a failed attempt and the answer that ends its outage."""
    rng = random.Random(seed)
    for _ in range(60):
        own = trace(rng, rng.randint(0, 14))
        expected = list(reference._seen(own))
        for width_us in (1, 3, 7, 50):
            chunks = [
                reduce(joined, map(alone, chunk), NOTHING)
                for _, chunk in groupby(own, key=lambda op: op.start_us // width_us)
            ]
            whole = reduce(joined, chunks, NOTHING)
            assert list(outages(*KEYS, whole)) == expected, (own, width_us)
            cut = rng.randint(0, len(chunks))
            halves = [reduce(joined, part, NOTHING) for part in (chunks[:cut], chunks[cut:])]
            assert joined(*halves) == whole, (own, width_us, cut)


def test_an_outage_over_several_stretches_is_one() -> None:
    own = [attempt(1, 1, True), attempt(5, 2, False), attempt(15, 2, False), attempt(32, 2, True)]
    [found] = outages(*KEYS, reduce(joined, map(alone, own)))
    assert found[2:] == (1, 27, 27)


def test_where_somebody_was_answered_at_the_moment_of_a_failed_attempt_there_was_no_outage() -> None:
    own = [attempt(1, 1, True), attempt(5, 2, False), attempt(5, 2, True)]
    assert list(outages(*KEYS, reduce(joined, map(alone, own)))) == []
