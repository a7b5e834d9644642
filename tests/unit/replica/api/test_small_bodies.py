"""Clusters whose document allows small bodies alone: what decisions remember still goes from replica to replica."""

from pathlib import Path

import msgspec
import pytest

from quorate.adts.log import Dead, Decision, Entry, Leased, Settled, Summary, Value
from quorate.adts.times import Times, entry_id
from quorate.api_specs.checking import ID_CHARS_MAX, TERMS_MAX, check_summary
from quorate.api_specs.limits import (
    ADOPTED_MAX,
    AMBIGUOUS_BYTES_MAX,
    DEAD_MAX,
    DELIVERIES_MAX,
    ENTRY_BYTES,
    KEYED_ENTRIES_MAX,
    LEASES_MAX,
    NAME_CHARS_MAX,
    SETTLED_MAX,
    SUMMARY_BYTES_MAX,
    Limits,
)
from quorate.api_specs.messages import Accept
from quorate.client_sdk.protocol.core.values import Acquire, Dequeue, Done, Enqueue, Peek, QueueSize
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import WALL_US_MAX, make
from tests.support.in_process import in_process

SMALL = Limits(body_bytes_max=65_536, page_bytes_max=16_384, value_bytes_max=8192)
QUEUE = "queue/jobs"


def test_what_keys_are_remembered_for_stops_no_queue(tmp_path: Path) -> None:
    """A hundred keys of the longest kind outgrew a body: the front end's own replica stored what no other one took."""
    with in_process(tmp_path, SMALL) as cluster:
        one, other = cluster.front_end(), cluster.front_end()
        assert isinstance(cluster.outcome(one, Enqueue(QUEUE, (Value("1"),) * 400)), Done)
        for number in range(250):
            key = f"{number}".ljust(NAME_CHARS_MAX, "k")
            assert isinstance(cluster.outcome(one, Dequeue(QUEUE, 1, key=key)), Done)
        for operation in (Dequeue(QUEUE), Acquire(QUEUE, 2, 60.0), Peek(QUEUE), QueueSize(QUEUE)):
            outcome = cluster.outcome(other, operation)
            assert isinstance(outcome, Done), outcome


def heaviest(id_chars: int) -> Summary:
    """A decided state that remembers, adopts and lends as much as it may, its payloads aside, and names as much as an earlier release did."""
    site, us = "s" * 12, WALL_US_MAX - 1
    stamps = iter(make(us - number, 65_535, site) for number in range(1_000_000))

    def entry() -> Entry:
        stamp = next(stamps)
        return Entry(entry_id(stamp, "d" * 16, Times(us, us)), stamp, Value("1"))

    keys = [
        Decision(f"Deq {number}".ljust(NAME_CHARS_MAX + 4, "k"), make_ballot(next(stamps), 1), (), "d" * 16)
        for number in range(Limits().recent_decisions_max - 2)
    ]
    taken = tuple(entry() for _ in range(KEYED_ENTRIES_MAX // 2))
    named = 4 * AMBIGUOUS_BYTES_MAX // (id_chars + ENTRY_BYTES)
    return Summary(
        next(stamps),
        None,
        tuple(entry() for _ in range(ADOPTED_MAX)),
        tuple((f"{n:0{id_chars}}", make_ballot(next(stamps), 1)) for n in range(named)),
        (*keys, *(Decision(f"Deq {n}", make_ballot(next(stamps), 1), taken, "d" * 16) for n in range(2))),
        tuple(make_ballot(next(stamps), 1) for _ in range(TERMS_MAX)),
        make_ballot(next(stamps), 1),
        tuple(Leased(entry(), us, DELIVERIES_MAX, True, us, 0, "h" * 16) for _ in range(LEASES_MAX)),
        tuple(Dead(entry(), "deliveries", DELIVERIES_MAX) for _ in range(DEAD_MAX)),
        tuple(Settled(make_ballot(next(stamps), 1), "accept", ("t" * 16,)) for _ in range(SETTLED_MAX)),
    )


@pytest.mark.parametrize("id_chars", [30, ID_CHARS_MAX])
@pytest.mark.parametrize("encode", [msgspec.json.encode, msgspec.msgpack.encode])
def test_the_heaviest_state_goes_in_a_message(encode: object, id_chars: int) -> None:
    summary = heaviest(id_chars)
    check_summary(summary, Limits())
    assert callable(encode)
    size = len(encode(Accept(QUEUE, make_ballot(summary.horizon, 1), summary)))
    assert size < SUMMARY_BYTES_MAX
    assert size > SUMMARY_BYTES_MAX / 2, "a bound so far off says nothing"
