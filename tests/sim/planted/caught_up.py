"""Schedules by hand of catching up: what must come to the other replicas, and what must not.

Each is told first and then played, as in `tests.sim.planted.schedules`.
"""

from typing import Final

from quorate.adts.log import Value
from quorate.api_specs.messages import Accept
from quorate.client_sdk.protocol.core.values import (
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Enqueue,
    PutIfAbsent,
    Read,
    Write,
)
from quorate.simulation.violation import Violation
from tests.sim.planted.played import QUEUE, Played

KEY: Final = "dictionary/d/k"
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


def missed_below_the_floor() -> None:
    """A key is set at r1 and r2, and r3 hears nothing of it. Since then r3 has forgotten something else, and its floor is above all that
    the key ever had. It catches up."""
    hand = Played()
    hand.at("f1", PutIfAbsent(KEY, X), "r1", "r2")
    hand.carry_commits("f1", "r1", "r2")
    hand.grow_old()
    hand.replicas["r3"].store.forget(QUEUE, hand.replicas["r1"].store.clock)
    hand.replicas["r3"].store.commit()
    hand.catch_up("r3", "r1")
    hand.be_level()
    hand.judge()


def answer_of_before_a_key_was_forgotten() -> None:
    """A key is set at r1 and r2. r3 asks r1 for it, and the answer is long on its way: the key is deleted, held so by all for a window, and
    forgotten. Then the answer arrives."""
    hand = Played()
    hand.at("f1", PutIfAbsent(KEY, X), "r1", "r2")
    hand.carry_commits("f1", "r1", "r2")
    arrive = hand.ask_what_is_missing("r3", "r1")
    hand.settle()
    hand.ask("f2", Write(KEY, None))
    hand.grow_old()
    hand.ripen(KEY)
    hand.bury(KEY)
    arrive()
    hand.at("f3", Read(KEY), "r1", "r3")
    hand.judge()


def rows_below_the_floor_of_a_key_that_was_deleted() -> None:
    """A put is complete at r1 and r2; a compare-and-set that deletes the key is accepted there, and nobody hears that it is decided. r3 has
    forgotten something else, and its floor is above all of it. It catches up with r2, and gets the put; then with r1, which is told of
    the decision. It must take it, or the key is forgotten nowhere."""
    hand = Played()
    hand.at("f1", Write(KEY, X), "r1", "r2")
    hand.carry_commits("f1", "r1", "r2")
    hand.at("f2", CompareAndSet(KEY, X, None), "r1", "r2")
    hand.carry_commits("f2", "r1")
    hand.vanish("f2")
    hand.replicas["r3"].store.forget(QUEUE, hand.replicas["r1"].store.clock)
    hand.replicas["r3"].store.commit()
    hand.grow_old()
    hand.catch_up("r3", "r2")
    hand.catch_up("r3", "r1")
    hand.catch_up("r2", "r1")
    hand.be_level()
    hand.grow_old()
    for _ in range(3):
        hand.ask("janitor", CollectTombstone(KEY))
        hand.carry_commits("janitor", *hand.replicas)
        hand.grow_old()
    if known := [id for id, replica in hand.replicas.items() if replica.store.state(KEY) is not None]:
        raise Violation(f"not caught up with the deletion of {KEY}: {known}")
    hand.judge()
