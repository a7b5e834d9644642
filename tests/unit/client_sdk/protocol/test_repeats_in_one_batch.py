"""Two attempts with one idempotency key that come to one front end together are decided in one batch, and take effect once."""

from quorate.adts.log import NOTHING, Entry, Seen, Value
from quorate.api_specs.commands import CompareAndSetCommand, DequeueCommand
from quorate.client_sdk.protocol.decisions.summary_builder import Context
from quorate.client_sdk.protocol.decisions.transitions import plan_cell, plan_queue
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import ZERO, make

STAMPS = [make(1000 + number, 0, "a") for number in range(5)]
ENTRIES = [Entry(stamp, stamp, Value(str(number))) for number, stamp in enumerate(STAMPS)]
SEEN = {entry.id: Seen(entry, {"r1", "r2", "r3"}, complete=True) for entry in ENTRIES}
CONTEXT = Context(
    ballot=make_ballot(make(2000, 0, "a"), 1),
    take_bytes_max=1000,
    is_complete=lambda found: found.complete,
    recent_max=100,
    aged=(),
    terms_before=ZERO,
    callers=range(9),
    asker_of=lambda decision: decision.id,
    earliest_us=1000,
    latest_us=1000,
    leases_bytes_max=1000,
)


def test_two_takes_with_one_key_take_the_same_entries() -> None:
    commands = [DequeueCommand(2, "key"), DequeueCommand(2, "other"), DequeueCommand(2, "key")]
    plan = plan_queue(NOTHING, SEEN, STAMPS[-1], commands, CONTEXT)
    taken = [[entry.t for entry in plan.results[place]] for place in range(3)]
    assert taken == [STAMPS[:2], STAMPS[2:4], STAMPS[:2]]
    assert plan.summary.horizon == STAMPS[3]


def test_two_swaps_with_one_key_get_one_answer() -> None:
    swap = CompareAndSetCommand(None, Value("1"), key="key")
    plan = plan_cell(NOTHING, {}, STAMPS[0], [swap, swap], CONTEXT)
    assert plan.results == {0: True, 1: True}
    assert plan.summary.value == Value("1")
