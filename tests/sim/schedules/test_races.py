"""Two things at the same time, in many orders that chance picks: what is promised holds in each."""

import random
from typing import Final

from quorate.client_sdk.protocol.core.values import Dequeue
from quorate.simulation.judging.checkers import check_drained, check_items, shown
from tests.sim.schedules.test_directed import QUEUE, Recorded, X, Y, Z, dequeue_at, enqueue

RACES: Final = 150


def recovery_races_takeover(order: int) -> tuple[Recorded, set[str]]:
    """Enq(x), the oldest, has reached r1 only; y and z wait at r2 and r3, where f2, the owner, takes y and so fences both
    above x: Enq(x) is refused there and must recover. Meanwhile f3 takes over from f2, which has another dequeue under
    way. From here on chance says whose message travels next, and some are lost. Also returned: who was deposed.
    """
    rng = random.Random(f"race {order}")
    hand = Recorded()
    hand.start("f1", enqueue(X), "x")
    hand.carry("f1", "r1")
    for item in (Y, Z):
        hand.start("f0", enqueue(item), item)
        hand.carry("f0", "r2", "r3")
    hand.drop("f0")
    hand.lazies.clear()
    assert dequeue_at(hand, "f2", "r2", "r3") == (Y,)
    hand.carry("f1", "r2", "r3")
    hand.start("f3", Dequeue(QUEUE), "takes over")
    hand.start("f2", Dequeue(QUEUE), "goes on")
    for _ in range(60):
        if not hand.packets:
            break
        packet = rng.choice(hand.packets)
        if rng.random() < 0.1:
            hand.packets.remove(packet)
        else:
            hand.carry(packet.front, packet.send.replica)
    hand.settle()
    hand.carry_commits("f1", *hand.replicas)
    while hand.ask("f4", Dequeue(QUEUE, 9)):
        pass
    return hand, {front for front in ("f1", "f2", "f3") if hand.counters(front).get("terms lost")}


def test_a_recovery_races_a_takeover() -> None:
    """Whoever wins: x comes out once, in an order that a serial queue has; and each of the three loses now and then."""
    deposed: set[str] = set()
    places = set()
    for order in range(RACES):
        hand, losers = recovery_races_takeover(order)
        deposed |= losers
        calls = hand.history.calls[QUEUE]
        check_items(QUEUE, calls)
        check_drained(QUEUE, calls)
        assert hand.has_order(), f"order {order}:\n{shown(calls)}"
        taken = sorted((call for call in calls if call.results), key=lambda call: call.returned)
        places.add([item for call in taken for item in call.results].index(X))
    assert deposed == {"f1", "f2", "f3"}
    assert len(places) > 1, "x always came out at the same place"
