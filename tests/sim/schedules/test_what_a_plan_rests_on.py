"""Decisions whose ground moves: what replicas had shown is thrown away, or what is adopted lies above what is seen."""

import pytest

from quorate.adts.log import Value
from quorate.adts.plain_class import PlainClass
from quorate.api_specs.messages import Accept, Append
from quorate.client_sdk.protocol.core.values import (
    Acquire,
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Invoke,
    Operation,
    QueueSize,
    ReadLeases,
    Spans,
    Write,
)
from quorate.timestamps.timestamp import INFINITY
from tests.sim.schedules.hand import STEPS_MAX, Hand

QUEUE = "queue/q"
KEY = "dictionary/d/k"
OBJECT = "cart/c"
CLASSES = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}


class Notes:
    """What was noted, in order."""

    blind = ("add",)

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        self.lines.append(line)

    def mark(self, line: str) -> int:
        self.lines.append(line)
        return len(self.lines)

    def show(self) -> str:
        return " ".join(self.lines)


NOTES = PlainClass(Notes)


def call(operation: str, *args: str, key: str = "") -> Invoke:
    return Invoke(OBJECT, NOTES, NOTES.call(operation, *args), key)


def do(hand: Hand, front: str, operation: Operation, name: str, *replicas: str) -> Done:
    """What comes of an operation that reaches these replicas only."""
    hand.start(front, operation, name)
    hand.carry_until(name, front, *replicas)
    done = hand.outcomes[name]
    assert isinstance(done, Done), done
    return done


def carry_without(hand: Hand, name: str, front: str, replica: str) -> None:
    """Until the operation has its outcome, no append reaches this replica; all else between the front end and replicas does."""
    for _ in range(STEPS_MAX):
        if name in hand.outcomes:
            return
        hand.packets = [
            packet
            for packet in hand.packets
            if not (packet.send.replica == replica and isinstance(packet.send.request, Append))
        ]
        ready = [packet.send.replica for packet in hand.packets if packet.front == front]
        if ready:
            hand.carry(front, ready[0])
        else:
            hand.wake(front)
    raise AssertionError(f"{name} has no outcome")


def test_a_term_does_not_go_on_from_a_cache_that_was_emptied() -> None:
    """A replica that does not know the queue tells of its floor, which a burial has raised: the front end forgets what it knew of the queue. Its
    term still stood, and its next decision was made on nothing: an item was dequeued twice."""
    hand = Hand(CLASSES)
    hand.ask("f1", Write(KEY, None))
    hand.carry_commits("f1", "r1", "r2", "r3")
    hand.sleep(int((hand.document.memory_s + 1) * 1e6))
    hand.ripen(KEY)
    do(hand, "f2", Enqueue(QUEUE, (Value('"a"'),)), "a", "r1", "r2")
    assert do(hand, "f2", Dequeue(QUEUE), "dequeued", "r1", "r2").result == (Value('"a"'),)
    hand.start("f2", Enqueue(QUEUE, (Value('"b"'),)), "b")
    hand.carry("f2", "r1")
    do(hand, "f1", CompareAndSet(KEY, Value('"no"'), Value('"x"')), "compared", "r1", "r2", "r3")
    hand.carry("f1", *dict.fromkeys(packet.send.replica for packet in hand.packets if packet.front == "f1"))
    assert do(hand, "f3", CollectTombstone(KEY), "buried", "r1", "r2", "r3").result is True
    cache = hand.cache("f2", QUEUE)
    hand.carry("f2", "r3")
    assert cache.lives == 1
    hand.drop("f2")
    carry_without(hand, "b", "f2", "r2")
    assert hand.counters("f2")["recoveries"] == 1
    hand.packets.clear()
    assert do(hand, "f4", Dequeue(QUEUE, 5), "again", "r1", "r2", "r3").result == (Value('"b"'),)


def test_a_call_that_is_adopted_above_the_stamp_runs_after_those_below_it() -> None:
    """One that a recovery had put into the summary ran at once, and the horizon passed over a call that was stored meanwhile: its caller was told
    Ok, and it never ran."""
    hand = Hand(CLASSES, types={"cart": "shop:Notes"})
    hand.ask("f1", call("mark", "start", key="start"))
    hand.carry_commits("f1", "r1", "r2", "r3")
    hand.start("f2", call("mark", "A", key="A"), "A")  # It has its stamp; its packets are slow.
    do(hand, "f3", call("add", "x"), "x", "r1", "r2", "r3")
    hand.start("f1", call("add", "e"), "e")
    hand.start("f4", call("mark", "B", key="B"), "B")
    hand.carry("f1", "r1")
    hand.carry("f4", "r2")  # It is fenced above e, and f4 is heard of no more.
    hand.drop("f4")
    hand.carry("f1", "r2")
    hand.drop("f1")  # The append of e to r3 is lost.
    slow = [packet for packet in hand.packets if packet.front == "f2"]
    hand.packets = []
    for _ in range(STEPS_MAX):
        if "e" in hand.outcomes:
            break
        hand.packets = [
            packet
            for packet in hand.packets
            if packet.front == "f1"
            and packet.send.replica != "r2"
            and not isinstance(packet.send.request, Append)
        ]
        if hand.packets:
            hand.carry("f1", hand.packets[0].send.replica)
        else:
            hand.wake("f1")
    assert isinstance(hand.outcomes["e"], Done)
    hand.packets = slow
    hand.carry_until("A", "f2", "r1", "r3")
    told = do(hand, "f5", call("show"), "shown", "r1", "r2", "r3").result.results[0]
    assert sorted(told.split()) == ["A", "e", "start", "x"]


@pytest.mark.parametrize("order", [("r3", "r1"), ("r1", "r3")])
def test_no_leases_are_told_of_from_a_cache_that_was_emptied(order: tuple[str, str]) -> None:
    """What the replica that knows the queue had shown was thrown away for the floor of the one that does not: there were no leases."""
    hand = Hand(CLASSES)
    hand.ask("f1", Write(KEY, None))
    hand.carry_commits("f1", "r1", "r2", "r3")
    hand.sleep(int((hand.document.memory_s + 1) * 1e6))
    hand.ripen(KEY)
    do(hand, "f2", Enqueue(QUEUE, (Value('"a"'),)), "a", "r1", "r2")
    (lease,) = do(hand, "f2", Acquire(QUEUE, 1, 60.0), "acquired", "r1", "r2").result
    hand.carry_commits("f2", "r1", "r2")
    hand.packets.clear()
    do(hand, "f1", CompareAndSet(KEY, Value('"no"'), Value('"x"')), "compared", "r1", "r2", "r3")
    hand.carry("f1", *dict.fromkeys(packet.send.replica for packet in hand.packets if packet.front == "f1"))
    assert do(hand, "f3", CollectTombstone(KEY), "buried", "r1", "r2", "r3").result is True
    hand.start("f4", ReadLeases(QUEUE), "leases")
    hand.carry("f4", *order)
    hand.carry_until("leases", "f4", "r1", "r3")
    assert hand.result("leases").leases == (lease,)


def test_what_is_adopted_is_not_taken_before_what_a_front_cut_short_leaves_out() -> None:
    """While the queue is counted, all of it is kept in mind, and a decision looks at its front alone; what a recovery had put into the
    summary lies far behind. It was delivered after the delayed items of the front, and the horizon passed over all between."""
    hand = Hand(CLASSES)
    late = tuple(Value(f'"late {number}"') for number in range(150))
    prompt = tuple(Value(f'"prompt {number}"') for number in range(120))
    hand.ask("f1", Enqueue(QUEUE, late, spans=Spans(delay_s=3600.0)))
    hand.ask("f1", Enqueue(QUEUE, prompt))
    hand.carry_commits("f1", "r1", "r2", "r3")
    hand.start("f2", Enqueue(QUEUE, (Value('"recovered"'),)), "recovered")
    hand.carry("f2", "r1")
    hand.start("f3", Dequeue(QUEUE, 300), "never")
    while not any(isinstance(packet.send.request, Accept) for packet in hand.packets):
        hand.arrive("f3")  # Replicas are fenced there, and f3 is heard of no more.
    hand.cancel("f3", "never")
    hand.drop("f3")
    hand.drop("f2")
    hand.carry_until("recovered", "f2", "r1", "r2", "r3")
    hand.carry_commits("f2", "r1", "r2", "r3")
    hand.packets.clear()
    assert [entry.value for entry in hand.cache("f2", QUEUE).summary.adopted] == ['"recovered"']
    hand.start("f4", QueueSize(QUEUE), "size")
    cache = hand.cache("f4", QUEUE)
    while not all(cache.known_upto(replica) == INFINITY for replica in ("r1", "r2", "r3")):
        hand.wake("f4")
        hand.carry("f4", hand.packets[0].send.replica)
    counting, hand.packets = hand.packets, []
    assert cache.pins == 1
    (lease,) = do(hand, "f4", Acquire(QUEUE, 1, 60.0), "acquired", "r1", "r2", "r3").result
    hand.packets += counting
    hand.settle()
    rest: list[str] = []
    while some := hand.ask("f5", Dequeue(QUEUE, 50)):
        rest += some
    delayed = [each.entry.value for each in hand.ask("f5", ReadLeases(QUEUE)).leases if each != lease]
    assert sorted([lease.entry.value, *rest, *delayed]) == sorted([*late, *prompt, '"recovered"'])
