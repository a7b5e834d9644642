"""Two things at the same time, in many orders that chance picks: what is promised holds in each."""

import random
from typing import Final

from quorate.adts.log import Value
from quorate.api_specs.messages import Accept, Append, Collect, Request
from quorate.client_sdk.effects import CompareAndSet, Dequeue, Items, Read, Write
from tests.sim.checkers import check_drained, check_items, shown
from tests.sim.test_directed import QUEUE, Recorded, X, Y, Z, dequeue_at, enqueue

KEY: Final = "dictionary/d/k"
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
    return hand, {front for front in ("f1", "f2", "f3") if hand.counters(front).get("turns lost")}


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


def carry_only(hand: Recorded, front: str, replica: str, kind: type[Request]) -> None:
    """Of what the front end has sent to the replica, only requests of this kind arrive."""
    chosen = [
        each
        for each in hand.packets
        if (each.front, each.send.replica) == (front, replica) and isinstance(each.send.request, kind)
    ]
    assert chosen, f"no {kind.__name__} is on its way from {front} to {replica}"
    for packet in chosen:
        hand.packets.remove(packet)
        hand._exchange(packet)


def finish(hand: Recorded, name: str, front: str, *replicas: str) -> None:
    """The operation goes on to its end, with these replicas alone; what is sent to others is lost."""
    for _ in range(200):
        if name in hand.outcomes:
            return
        hand.packets = [
            each for each in hand.packets if each.front == front and each.send.replica in replicas
        ]
        if hand.packets:
            hand.carry(front, hand.packets[0].send.replica)
        else:
            hand.sleep()
    raise AssertionError(f"{name} finds no end")


def test_a_whole_read_does_not_show_a_swap_that_only_one_replica_has() -> None:
    """Items settles the old value; meanwhile a swap of the same front end is accepted by r1 alone, so that what the front
    end knows of the key is newer than what was settled. It was taken for settled, too (seed 1002738): Items answered with
    the new value, and later reads at r2 and r3 with the old one."""
    old, new = Value('"old"'), Value('"new"')
    hand = Recorded()
    hand.start("f0", Write(KEY, old), "put")
    hand.carry("f0", "r1")
    hand.drop("f0")
    hand.start("f1", Items("dictionary/d"), "items")
    hand.carry("f1", "r1", "r2")  # The scan shows the old value at r1 only.
    hand.carry("f1", "r1", "r2")  # So does a closer look; it is written back.
    hand.start("f1", CompareAndSet(KEY, old, new), "swap")
    carry_only(hand, "f1", "r1", Collect)
    carry_only(hand, "f1", "r3", Collect)
    carry_only(hand, "f1", "r1", Accept)
    hand.packets = [each for each in hand.packets if not isinstance(each.send.request, Accept)]
    carry_only(hand, "f1", "r2", Append)  # The old value is settled now.
    hand.packets = [each for each in hand.packets if each.send.replica != "r3"]
    finish(hand, "items", "f1", "r1", "r2")
    hand.packets.clear()
    hand.start("f2", Read(KEY), "read")
    finish(hand, "read", "f2", "r2", "r3")
    assert hand.result("items") == {"k": hand.result("read")}
