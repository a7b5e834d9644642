"""What a replica does where there is room, and instead where there is none: the order of the two rules."""

from typing import Literal

import pytest

from quorate.adts.log import NOTHING, Entry, Value
from quorate.api_specs.limits import Capacity
from quorate.api_specs.messages import Append, Appended, Commit, Committed, Refused, Reply, Request, Status
from quorate.replica.protocol.refusals import Bounds
from quorate.replica.protocol.room import handle_within
from quorate.simulation.memory.store import MemoryStore
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import ZERO, make

AttemptKind = Literal["first", "again", "repair"]
BOUNDS = Bounds(offset_max_s=60, repeats_s=30, page_entries_max=10, page_bytes_max=10_000)
T = make(1_000_000, 0, "c")
LATER_US = 2_000_000 + BOUNDS.repeats_us
HERE, OTHER = "dictionary/d/here", "dictionary/d/other"


def put(name: str) -> Append:
    return Append(name, (Entry(T, T, Value("1")),), "first")


def ended(name: str) -> Commit:
    return Commit(name, make_ballot(T, 1), summary=NOTHING)


class Small:
    """A replica with room for one object, and for another one by a decision."""

    def __init__(self) -> None:
        self.store = MemoryStore()

    def ask(self, request: Request, now_us: int = LATER_US, *, keeps_events: bool = False) -> Reply:
        reply, effects = handle_within(
            Capacity(objects_max=1), request, self.store, now_us, BOUNDS, keeps_events=keeps_events
        )
        self.store.apply(*effects)
        return reply


@pytest.fixture
def full() -> Small:
    replica = Small()
    assert isinstance(replica.ask(put(HERE), 1_000_000), Appended)
    assert isinstance(replica.ask(ended("dictionary/d/last")), Committed)
    return replica


def test_a_full_replica_refuses_what_is_new_and_does_all_else(full: Small) -> None:
    refused = full.ask(put(OTHER), 1_000_000)
    assert isinstance(refused, Refused)
    assert refused.reason == "too-many-objects"
    assert isinstance(full.ask(Commit(HERE, complete=(T,))), Committed)


def test_an_append_of_nothing_has_its_answer_and_leaves_no_trace(full: Small) -> None:
    """It stands in a round for what has ended there."""
    assert full.ask(Append(OTHER, ())) == Appended(Status(), ())
    assert full.store.state(OTHER) is None


def test_a_full_replica_takes_in_by_its_floor_what_came_to_nothing_long_ago(full: Small) -> None:
    assert isinstance(full.ask(ended(OTHER), 1_000_000), Refused)
    assert full.store.floor() == ZERO
    assert isinstance(full.ask(ended(OTHER)), Committed)
    assert (full.store.floor(), full.store.state(OTHER)) == (T, None)


def test_of_what_is_written_back_so_much_is_stored_as_there_is_room_for() -> None:
    """One entry without room hid the others of its message, also those that the replica has: no reader could show these."""
    times = [make(number, 0, "c") for number in range(1, 9)]
    entries = [Entry(t, t, Value("1")) for t in times]
    store = MemoryStore()

    def ask(attempt: AttemptKind, *some: Entry) -> Reply:
        request = Append("queue/q", some, attempt)
        reply, effects = handle_within(
            Capacity(log_entries_max=4), request, store, 9, BOUNDS, keeps_events=False
        )
        store.apply(*effects)
        return reply

    ask("first", *entries[:4])
    refused = ask("first", entries[3], entries[4])
    assert isinstance(refused, Refused)
    found = ask("repair", entries[7], entries[0], entries[6], entries[3])
    assert isinstance(found, Appended)
    assert found.stored == (True, True, False, True)
    assert store.length("queue/q") == 5, "a quarter beyond the bound"
    assert isinstance(ask("repair", entries[6]), Refused)
    assert isinstance(found := ask("repair", entries[6], entries[7]), Appended)
    assert found.stored == (False, True)


def test_one_that_is_to_keep_events_takes_in_nothing_by_its_floor(full: Small) -> None:
    assert isinstance(full.ask(ended(OTHER), keeps_events=True), Refused)
    assert full.store.floor() == ZERO
