"""Replicas that are full of tombstones, moved by hand: each pair of them holds some that the third one lacks, and has no room for.

Owns how they are filled, and a janitor's round. It must not know what is to come of it.
"""

from itertools import combinations
from typing import Final

from quorate.adts.log import Value
from quorate.api_specs.limits import Capacity
from quorate.client_sdk.protocol.core.values import CollectTombstone, CompareAndSet
from quorate.gc.pruning import AGAIN
from tests.sim.planted.played import Played

OBJECTS_MAX: Final = 4
OF_EACH_PAIR: Final = 3
"""Two pairs are so many as a replica takes in at most: what tells that an object came to nothing goes beyond its bound by half."""
ROUNDS: Final = 2
"""The first tells the replicas of what they lack, the second forgets it."""
OLD: Final = Value('"old"')


def filled() -> Played:
    """Compare-and-sets under keys that found nothing, and so were decided on nothing, by two replicas each; long ago. Then the bound was
    lowered."""
    hand = Played()
    for pair in combinations(hand.replicas, 2):
        for number in range(OF_EACH_PAIR):
            front = f"{''.join(pair)}n{number}"
            hand.at(front, CompareAndSet(f"dictionary/d/{front}", OLD, None, key="k"), *pair)
            hand.carry_commits(front, *pair)
    hand.grow_old()
    for replica in hand.replicas.values():
        replica.capacity = Capacity(objects_max=OBJECTS_MAX)
    return hand


def collect_all(hand: Played) -> None:
    """A janitor tries all that a replica knows, and a window passes."""
    known = {name for replica in hand.replicas.values() for name in replica.store.objects()}
    for number, name in enumerate(sorted(known)):
        hand.start(f"janitor{number}", CollectTombstone(name), f"{name} at {hand.now_us}", is_noted=False)
        hand.settle()
    hand.lazies.clear()
    hand.sleep(int(hand.document.memory_s * AGAIN * 1e6))
