"""Schedules by hand of catching up: what must come to the other replicas, and what must not.

Each is told first and then played, as in `tests.sim.planted.schedules`.
"""

from quorate.adts.log import Value
from quorate.api_specs.messages import Accept
from quorate.client_sdk.protocol.core.values import Dequeue, Enqueue
from tests.sim.planted.played import QUEUE, Played

X, Y = (Value(f'"{item}"') for item in "xy")


def acknowledged_at_one() -> None:
    """Enq (0, 1). Enq(x) is acknowledged by r1 alone, and marked complete there; Enq(y), later, is stored at r2 and r3. A Deq that
    nobody ends fences both of them at y, above x. They catch up with r1. Then r1's disk is lost, and a store takes its
    place that is made from theirs. All is dequeued: x must be there."""
    hand = Played({"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.finish("x", "f1", "r1")
    hand.carry_commits("f1", "r1")
    hand.drop("f1")
    hand.start("f2", Enqueue(QUEUE, (Y,)), "y")
    hand.carry("f2", "r2", "r3")
    hand.finish("y", "f2", "r2", "r3")
    hand.drop("f2")
    hand.fence("r2", "r3")
    for replica in ("r2", "r3"):
        hand.catch_up(replica, "r1")
    hand.replace("r1")
    hand.judge()


def unmarked_below_a_fence() -> None:
    """Enq(x) has reached r1 only; Enq(y), later, is stored at r2 and r3. A Deq at r2 and r3 fences them at y, finds y first, and is
    about to take it. Now r2 and r3 catch up with r1, and the rest of Enq(x) arrives at r2. Had r2 installed x, it would
    answer that it stores it: x acknowledged, and at once below the horizon of the Deq."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.carry("f1", "r1")
    hand.start("f2", Enqueue(QUEUE, (Y,)), "y")
    hand.carry("f2", "r2", "r3")
    hand.finish("y", "f2", "r2", "r3")
    hand.drop("f2")
    hand.start("f3", Dequeue(QUEUE), "takes y")
    hand.go_until(Accept, "f3", "r2", "r3")
    for replica in ("r2", "r3"):
        hand.catch_up(replica, "r1")
    hand.carry("f1", "r2")
    hand.finish("takes y", "f3", "r2", "r3")
    hand.settle()
    hand.judge()
