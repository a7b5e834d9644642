"""The simulated store keeps what the machine wrote, and loses in a crash exactly what was not committed."""

from collections.abc import Callable

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import (
    Append,
    Appended,
    Batch,
    BatchReply,
    Changes,
    Collect,
    Collected,
    Request,
    Window,
)
from quorate.gc.pruning import ANY_ARRIVAL
from quorate.replica.protocol.acceptor import handle
from quorate.replica.protocol.log import (
    Forget,
    MarkComplete,
    ObjectState,
    PutEvent,
    PutRows,
    PutState,
)
from quorate.replica.protocol.refusals import Bounds
from quorate.simulation.memory.replica import InMemoryReplica
from quorate.simulation.memory.store import MemoryStore
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp, make

DOCUMENT = ClusterDocument("sim", tuple(ReplicaInfo(f"r{i}", f"http://r{i}:1") for i in (1, 2, 3)))
NAME = "queue/q"


def at(us: int) -> Timestamp:
    return make(us, 0, "c1")


def entry(us: int) -> Entry:
    return Entry(at(us), at(us), Value(str(us)))


def batch(*requests: Request) -> Batch:
    return Batch(DOCUMENT.hash, requests)


def collect_all(replica: InMemoryReplica, now_us: int) -> Collected:
    reply: BatchReply = replica.exchange(batch(Collect(NAME, window=Window(limit=100))), now_us)
    (collected,) = reply.replies
    assert isinstance(collected, Collected)
    return collected


def test_crash_loses_exactly_what_was_not_committed() -> None:
    store = MemoryStore()
    store.apply(PutRows(NAME, (entry(1),)))
    store.apply(PutState(ObjectState(NAME, fence=at(1))))
    store.commit()
    store.apply(PutRows(NAME, (entry(2),)))
    store.apply(MarkComplete(NAME, (at(1),)))
    store.apply(PutState(ObjectState(NAME, fence=at(5))))
    store.apply(Forget(NAME, at(9)))
    store.crash()
    assert store.state(NAME) == ObjectState(NAME, fence=at(1))
    assert [(row.entry.t, row.complete) for row in store.rows(NAME, ZERO, 10)] == [(at(1), False)]
    assert store.floor() == ZERO
    assert store.names("queue/", "", 10) == [NAME]


def test_a_row_that_a_crash_took_away_arrives_anew() -> None:
    """Seed 71800795: it was listed as arriving twice, and so deleted twice."""
    store = MemoryStore()
    store.apply(PutRows(NAME, (entry(1),)))
    store.crash()
    store.apply(PutRows(NAME, (entry(1),)))
    store.commit()
    assert store.delete_upto(NAME, at(1), 10, ANY_ARRIVAL) == (1, False)


def test_arrivals_come_in_the_order_of_arrival_and_rows_in_that_of_time() -> None:
    store = MemoryStore()
    for us in (5, 3, 4):
        store.apply(PutRows(NAME, (entry(us),)))
    assert [row.entry.t for row in store.rows(NAME, ZERO, 2)] == [at(3), at(4)]
    assert [row.entry.t for _, row in store.arrivals(NAME, ZERO, INFINITY, 1, 10)] == [at(3), at(4)]
    assert store.nth(NAME, at(3), 5) == at(5)
    assert store.below(NAME, at(5)) == at(4)


def test_pruning_deletes_the_oldest_rows() -> None:
    store = MemoryStore()
    for us in (1, 2, 3):
        store.apply(PutRows(NAME, (entry(us),)))
    store.apply(PutState(ObjectState(NAME, collected=at(2))))
    store.commit()
    assert store.collected == {NAME: at(2)}
    assert store.delete_upto(NAME, at(2), 1, ANY_ARRIVAL) == (1, True)
    assert store.stored(NAME, [at(1), at(2), at(3)]) == {at(2), at(3)}
    assert store.delete_upto(NAME, at(2), 5, ANY_ARRIVAL) == (1, False)
    assert [(number, state.name) for number, state in store.states(0, 9)] == [(1, NAME)]
    assert store.states(1, 9) == []


def test_replica_answers_with_the_clock_of_its_store_as_a_shipped_one_does() -> None:
    replica = InMemoryReplica(DOCUMENT, "r1")
    reply = replica.exchange(batch(Append(NAME, (entry(1_000_000),), "first")), 500_000)
    (appended,) = reply.replies
    assert isinstance(appended, Appended)
    assert appended.stored == (True,)
    assert reply.clock == at(1_000_000)
    replica.start()
    assert replica.exchange(batch(), 2_000_000).clock == at(1_000_000)
    assert [row.entry for row in collect_all(replica, 500_000).rows] == [entry(1_000_000)]


def test_event_written_twice_in_a_transaction_is_undone_to_what_was_before() -> None:
    store = MemoryStore()
    store.apply(PutState(ObjectState(NAME)))
    store.apply(PutEvent(NAME, at(1), "Enq"))
    store.commit()
    for event in ("Deq", "Peek"):
        store.apply(PutEvent(NAME, at(1), event))
        store.apply(PutEvent(NAME, at(2), event))
    store.crash()
    assert store.events(NAME) == [(at(1), "Enq")]


def test_what_is_said_of_changes_is_what_the_store_holds_after_every_step() -> None:
    """The answer is kept for as long as nothing changes; after each kind of change it must be a new one."""
    replica = InMemoryReplica(DOCUMENT, "r1")
    store, question = replica.store, Changes(0, 100)
    committed = ObjectState(NAME, committed=make_ballot(at(3), 1))
    steps: list[Callable[[], object]] = [
        lambda: store.apply(PutState(ObjectState(NAME))),
        lambda: store.apply(PutRows(NAME, (entry(1),))),
        store.commit,
        lambda: store.apply(PutRows(NAME, (entry(2),))),
        lambda: store.apply(PutState(committed)),
        store.crash,
        lambda: store.delete_upto(NAME, at(1), 5, ANY_ARRIVAL),
        lambda: store.apply(Forget(NAME, at(9))),
    ]
    told = []
    for step in steps:
        step()
        (right, _) = handle(question, store, 0, Bounds.of(DOCUMENT))
        for _ in range(2):
            (reply,) = replica.handle(batch(question), 0, 0.0).replies
            assert reply == right
        told.append(str(right))
    assert len(set(told)) == 7, "each step but the commit changes the answer"
