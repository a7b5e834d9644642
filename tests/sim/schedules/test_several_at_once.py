"""Whoever asks for several items is given those that are there, by hand-made schedules, also where a replica has missed some."""

import pytest

from quorate.adts.log import Leased
from quorate.client_sdk.protocol.core.values import Acquire, Dequeue, Operation
from tests.sim.schedules.hand import Hand
from tests.sim.schedules.test_directed import MAJORITIES, QUEUE, X, Y, enqueue


@pytest.mark.parametrize("operation", [Dequeue(QUEUE, 10), Acquire(QUEUE, 10, 30.0)])
def test_a_replica_that_missed_an_item_does_not_hide_it_from_who_asks_for_several(
    operation: Operation,
) -> None:
    """x is at all replicas. r2 is down while y is stored at r1 and r3, and comes back. Who asks r1 and r2 for up to ten, knowing
    nothing yet, has each log frozen at its last entry: r2's at x. Above that, another y' could still come before y at r2; so
    another look freezes r2 at y, and both are given.
    """
    hand = Hand(MAJORITIES)
    hand.start("f1", enqueue(X), "x")
    hand.carry("f1", "r1", "r2", "r3")
    hand.start("f1", enqueue(Y), "y")
    hand.carry("f1", "r1", "r3")
    hand.start("f2", operation, "both")
    hand.carry_until("both", "f2", "r1", "r2")
    given = [each.entry if isinstance(each, Leased) else each for each in hand.result("both")]
    assert [getattr(each, "value", each) for each in given] == [X, Y]
    assert hand.counters("f2")["collected again"] == 1


def test_one_who_asks_for_a_single_item_does_not_look_twice_for_more() -> None:
    hand = Hand(MAJORITIES)
    hand.start("f1", enqueue(X), "x")
    hand.carry("f1", "r1", "r2", "r3")
    hand.start("f1", enqueue(Y), "y")
    hand.carry("f1", "r1", "r3")
    hand.start("f2", Dequeue(QUEUE, 1), "one")
    hand.carry_until("one", "f2", "r1", "r2")
    assert hand.result("one") == (X,)
    assert hand.counters("f2").get("collected again", 0) == 0
