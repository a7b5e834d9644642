"""Replicas that are full of tombstones, moved by hand: each pair of them holds some that the third one lacks, and has no room for.

Owns how they are filled, and a janitor's round. It must not know what is to come of it.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Final

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from quorate.adts.log import Value
from quorate.api_specs.cluster import ReplicaInfo, checked
from quorate.api_specs.limits import Capacity
from quorate.api_specs.messages import Append
from quorate.client_sdk.protocol.core.values import (
    CollectTombstone,
    CompareAndSet,
    Done,
    Operation,
    PutIfAbsent,
    Write,
)
from quorate.gc.pruning import AGAIN
from quorate.simulation.memory.replica import InMemoryReplica
from tests.sim.planted.played import Played

OBJECTS_MAX: Final = 4
OF_EACH_PAIR: Final = 3
"""Two pairs are so many as a replica takes in at most: what tells that an object came to nothing goes beyond its bound by half."""
ROUNDS: Final = 2
"""The first tells the replicas of what they lack, the second forgets it."""
UNDECIDED_ROUNDS: Final = 3 * 10
"""There is room to decide on four at a time, and each waits for a window until it is forgotten."""
OLD: Final = Value('"old"')
LIVE: Final = "dictionary/d/live"
LONELY: Final = "dictionary/d/lonely"
LONELY_PUT: Final = Write(LONELY, OLD)
ROOM: Final = 10
"""A tenth more is one object, a quarter more three."""
BEYOND: Final = 13
"""Entries of a log that is a quarter beyond."""


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


def filled_with_undecided() -> Played:
    """Each replica has a tenth more than its bound: one key that all have, and deletions of keys that have reached it alone, whose front ends
    vanished; long ago."""
    hand = Played(capacity=Capacity(objects_max=ROOM))
    _delete_alone(hand)
    hand.ask("f1", CompareAndSet(LIVE, None, OLD))
    hand.grow_old()
    return hand


def filled_by_catching_up() -> Played:
    """Each of five replicas has a quarter more than its bound: deletions that have reached it alone, and some of those that have reached the next
    one, which it caught up on; long ago."""
    capacity, ids = Capacity(objects_max=ROOM), [f"r{number}" for number in range(1, 6)]
    hand = Played(capacity=capacity)
    replicas = tuple(ReplicaInfo(each, f"http://{each}:1") for each in ids)
    hand.document = checked(replace(hand.document, replicas=replicas, choices=()))
    hand.replicas = {each: InMemoryReplica(hand.document, each, capacity) for each in ids}
    _delete_alone(hand)
    hand.grow_old()
    for each, following in zip(ids, [*ids[1:], ids[0]], strict=True):
        hand.catch_up(each, following)
    return hand


def _delete_alone(hand: Played) -> None:
    for replica in hand.replicas:
        for number in range(ROOM):
            front = f"{replica}n{number}"
            hand.start(front, Write(f"dictionary/d/{front}", None), front)
            hand.reach(front, replica)
            hand.vanish(front)


def filled_beside_an_old_entry(
    lonely: Operation = LONELY_PUT, types: dict[str, str] | UnsetType = UNSET
) -> Played:
    """r1 alone has an entry, by this operation. The others have forgotten a key since, so that they take that entry in no more; and are full of what
    decisions made, a tenth beyond their bound."""
    hand = Played(capacity=Capacity(objects_max=ROOM), types=types)
    hand.start("gone", lonely, "gone", is_noted=types is UNSET)
    hand.go_until(Append, "gone", "r1")
    hand.reach("gone", "r1")
    hand.vanish("gone")
    hand.ask("f1", Write(LIVE, OLD))
    hand.ask("f1", Write(LIVE, None))
    hand.grow_old()
    floors = [replica.store.floor() for replica in hand.replicas.values()]
    for _ in range(ROUNDS + 1):
        hand.start("janitor", CollectTombstone(LIVE), f"forget at {hand.now_us}", is_noted=False)
        hand.settle()
        hand.sleep(int(hand.document.memory_s * AGAIN * 1e6))
    assert all(
        replica.store.floor() > floor for replica, floor in zip(hand.replicas.values(), floors, strict=True)
    )
    for number in range(ROOM + ROOM // 10):
        hand.start("f2", PutIfAbsent(f"dictionary/d/{number}", OLD), f"put {number}")
        hand.settle()
        assert isinstance(hand.outcomes[f"put {number}"], Done)
    return hand


def fill_logs_beside(hand: Played, name: str, operation: Callable[[int], Operation], alone: int = 1) -> None:
    """r2 and r3 have a log that is full beyond a quarter of its bound, and r1 alone has so many newer entries."""
    for number in range(BEYOND):
        hand.at("f1", operation(number), "r2", "r3")
    for replica in hand.replicas.values():
        replica.capacity = Capacity(log_entries_max=ROOM)
    assert [hand.replicas[each].store.length(name) for each in ("r2", "r3")] == [BEYOND] * 2
    for number in range(alone):
        front = f"alone{number}"
        hand.start(front, operation(BEYOND + number), front)
        hand.reach(front, *hand.replicas)
        hand.vanish(front)
    assert hand.replicas["r1"].store.length(name) == alone


def collect_all(hand: Played) -> None:
    """A janitor tries all that a replica knows, and a window passes."""
    known = {name for replica in hand.replicas.values() for name in replica.store.objects()}
    for number, name in enumerate(sorted(known)):
        hand.start(f"janitor{number}", CollectTombstone(name), f"{name} at {hand.now_us}", is_noted=False)
        hand.settle()
    hand.lazies.clear()
    hand.sleep(int(hand.document.memory_s * AGAIN * 1e6))
