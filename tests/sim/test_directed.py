"""Schedules by hand: the narrow races that DESIGN section 6 tells of, each told first and then played."""

from quorate.adts.log import Value
from quorate.client_sdk.effects import Dequeue, Enqueue, Peek
from tests.sim.hand import Hand

MAJORITIES = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
X, Y = Value('"x"'), Value('"y"')
QUEUE = "queue/q"


def enqueue(value: Value) -> Enqueue:
    return Enqueue(QUEUE, (value,))


def test_peek_is_not_contradicted_by_the_recovery_of_an_older_entry() -> None:
    """Enq(x) reaches r1 only. Enq(y), later, reaches r2 and r3. A Peek at r2 and r3 answers y. Now Enq(x) reaches r2 and
    r3, is fenced there, and recovers. Whatever becomes of x: it must not come out before y, which was the front.
    """
    hand = Hand(MAJORITIES)
    hand.start("f1", enqueue(X), "x")
    hand.carry("f1", "r1")
    hand.start("f2", enqueue(Y), "y")
    hand.carry("f2", "r2", "r3")
    assert hand.result("y") is None
    hand.start("f3", Peek(QUEUE), "peek")
    hand.carry_until("peek", "f3", "r2", "r3")
    assert hand.result("peek") == (Y,)
    hand.packets = [packet for packet in hand.packets if packet.front == "f1"]
    hand.settle()
    assert hand.result("x") is None
    assert hand.ask("f4", Peek(QUEUE)) == (Y,)
    assert hand.ask("f4", Dequeue(QUEUE, 9)) + hand.ask("f4", Dequeue(QUEUE, 9)) == (Y, X)
    assert hand.ask("f4", Dequeue(QUEUE, 9)) == ()


def test_empty_is_not_answered_when_the_queue_never_was() -> None:
    """x is at r1 and r2. A Deq by f3 has promises of r1 and r2. A Deq by f1, with a higher ballot, reads the empty log of
    r3. Then y is stored at r1 and r3, and f3's Deq takes x, decided at r1 and r2. Now f1 reads r2: its summary says x
    is gone, its log has no y, and neither had r3's. But there was an item at every moment.
    """
    hand = Hand(MAJORITIES)
    hand.start("f0", enqueue(X), "x")
    hand.carry("f0", "r1", "r2")
    hand.packets.clear()
    hand.start("f3", Dequeue(QUEUE), "takes x")
    hand.carry("f3", "r1", "r2")
    hand.start("f1", Dequeue(QUEUE), "empty?")
    hand.carry("f1", "r3")
    hand.start("f2", enqueue(Y), "y")
    hand.carry("f2", "r1", "r3")
    hand.carry("f3", "r1", "r2")
    assert hand.result("takes x") == (X,)
    hand.carry("f1", "r2")
    hand.packets = [packet for packet in hand.packets if packet.front == "f1"]
    hand.settle()
    assert hand.result("empty?") == (Y,)
