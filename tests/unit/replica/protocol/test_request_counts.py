"""What a replica counts of the requests it handles: by kind and outcome, and what they made it store, keep out or promise."""

from quorate.adts.log import Summary
from quorate.api_specs.messages import Accept, Append, Collect, Commit, Refused, Request
from quorate.replica.protocol.acceptor import handle
from quorate.replica.protocol.log import Forget
from quorate.replica.protocol.refusals import Bounds
from quorate.replica.protocol.request_counts import BALLOT_REFUSED, DONE, RequestCounts
from quorate.simulation.memory.store import MemoryStore
from tests.unit.replica.protocol.test_acceptor import NAME, NOW_US, at, ballot, entry

BOUNDS = Bounds(offset_max_s=2.0, repeats_s=30.0, page_entries_max=100, page_bytes_max=10_000)


class Counting:
    """A replica's machine over a store; each request is counted before its effects are applied."""

    def __init__(self) -> None:
        self.counts = RequestCounts()
        self.store = MemoryStore()

    def ask(self, *requests: Request) -> RequestCounts:
        for request in requests:
            reply, effects = handle(request, self.store, NOW_US, BOUNDS)
            self.counts.note(request, reply, effects, self.store)
            for effect in effects:
                self.store.apply(effect)
        return self.counts


def test_requests_are_counted_by_kind_and_outcome() -> None:
    counts = Counting().ask(
        Append(NAME, (entry(1),)),
        Append(NAME, (entry(2),)),
        Append("queue/", (entry(2),)),
        Append(NAME, (entry(60_000_000),)),
        Collect(NAME, ballot=ballot(9, 0)),
        Collect(NAME, ballot=ballot(5, 0)),
        Accept(NAME, ballot(5), Summary(at(1))),
        Commit(NAME, complete=(at(1),)),
    )
    assert counts.requests == {
        ("Append", DONE): 2,
        ("Append", "bad-request"): 1,
        ("Append", "clock-ahead"): 1,
        ("Collect", DONE): 1,
        ("Collect", BALLOT_REFUSED): 1,
        ("Accept", BALLOT_REFUSED): 1,
        ("Commit", DONE): 1,
    }


def test_only_entries_that_are_new_are_stored_and_the_objects_state_is_none() -> None:
    counts = Counting().ask(Append(NAME, (entry(1), entry(2))), Append(NAME, (entry(2), entry(3))))
    assert (counts.entries_stored, counts.entries_fenced) == (3, 0)


def test_entries_that_a_fence_kept_out_are_counted_each_time() -> None:
    kept_out = Append(NAME, (entry(1), entry(2), entry(9)))
    counts = Counting().ask(Collect(NAME, fence=at(5)), kept_out, kept_out)
    assert (counts.entries_stored, counts.entries_fenced) == (1, 4)


def test_a_fence_is_raised_only_where_it_was_lower() -> None:
    counting = Counting()
    counting.ask(Collect(NAME, fence=at(5)), Collect(NAME, fence=at(5)), Collect(NAME, fence=at(3)))
    assert counting.counts.fences_raised == 1
    counting.ask(Collect(NAME, ballot=ballot(7, 0)))
    assert counting.counts.fences_raised == 1, "a promise is no fence"
    counting.ask(Accept(NAME, ballot(7), Summary(at(1)), then=Collect(NAME, fence=at(8))))
    assert counting.counts.fences_raised == 2


def test_the_fence_of_an_object_that_is_new_was_the_floor_of_the_store() -> None:
    counting = Counting()
    counting.store.apply(Forget("dictionary/d/k", at(5)))
    counting.ask(Collect(NAME, ballot=ballot(7, 0)))
    assert counting.counts.fences_raised == 0
    counting.ask(Collect("queue/other", fence=at(6)))
    assert counting.counts.fences_raised == 1


def test_what_was_counted_stays_as_it_is_while_more_is_counted() -> None:
    counting = Counting()
    before = counting.ask(Collect(NAME)).requests
    counting.ask(Collect(NAME))
    assert before == {("Collect", DONE): 1}
    assert counting.counts.requests == {("Collect", DONE): 2}


def test_a_refusal_stores_and_promises_nothing() -> None:
    counts = RequestCounts()
    late = Append(NAME, (entry(1),))
    counts.note(late, Refused("too-old", "it is"), [], MemoryStore())
    assert (counts.entries_stored, counts.entries_fenced, counts.fences_raised) == (0, 0, 0)
    assert counts.requests == {("Append", "too-old"): 1}
