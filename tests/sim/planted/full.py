"""Mistakes of a replica that has as much as it may."""

from copy import copy
from typing import Any, Final

from quorate.adts.log import NOTHING, Value
from quorate.api_specs.limits import Capacity
from quorate.api_specs.messages import Append, Batch, Collect, Commit, Request
from quorate.client_sdk.protocol.core.values import CompareAndSet, Failed, Items, PutIfAbsent, Read, Write
from quorate.replica.protocol import acceptor, capacity, room
from quorate.replica.protocol.acceptor import Handled, handle
from quorate.replica.protocol.log import Log
from quorate.replica.protocol.refusals import Bounds
from quorate.replica.protocol.room import Store
from quorate.simulation.violation import Violation
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make
from tests.sim.planted.plant import Plant, Planting, patched
from tests.sim.planted.played import Played
from tests.sim.planted.worlds import HISTORY
from tests.sim.schedules import full

KEY: Final = "dictionary/d/x"
X: Final = Value('"x"')
MOVES_MAX: Final = 30
"""A reader that nothing disturbs needs four."""


def take_in_nothing() -> Planting:
    """A full replica refuses what came to nothing long ago, too: it takes it in neither by itself nor by its floor."""
    return patched(room, without_room=lambda *_: None)


def write_back_only_where_there_is_room() -> Planting:
    """What a reader writes back, or a catch-up installs, is refused at the bound as what is new."""
    return patched(capacity, REPAIRED_PERCENT=0)


def delete_only_where_there_is_room() -> Planting:
    """What makes room is refused at the bound as what is new."""
    return patched(capacity, FORGOTTEN_PERCENT=0)


def settle_only_where_there_is_room() -> Planting:
    """What others hold is decided where there is room for any decision, and nowhere else."""
    right = capacity._percent_beyond

    def percent(request: Any) -> int:
        return (
            min(right(request), capacity.DECIDED_PERCENT) if isinstance(request, Collect) else right(request)
        )

    return patched(capacity, _percent_beyond=percent)


def take_in_what_is_young() -> Planting:
    """A full replica raises its floor above what has just come to nothing."""
    right = acceptor.without_room

    def without_room(request: Request, log: Log, now_us: int, bounds: Bounds) -> Handled | None:
        hasty: Any = copy(bounds)
        hasty.repeats_us = 0
        return right(request, log, now_us, hasty)

    return patched(room, without_room=without_room)


def say_that_it_is_stored() -> Planting:
    """A full replica says of an entry that it has it, and keeps nothing."""
    right = acceptor.without_room

    def without_room(request: Request, log: Log, now_us: int, bounds: Bounds) -> Handled | None:
        if isinstance(request, Append):
            reply, _ = handle(request, log, now_us, bounds)
            return reply, []
        return right(request, log, now_us, bounds)

    return patched(room, without_room=without_room)


def say_that_what_is_written_back_is_stored() -> Planting:
    """A replica says of an entry that a reader writes back, for which its log has no room, that it stores it."""

    def written_back(
        capacity: Capacity, request: Append, store: Store, now_us: int, bounds: Bounds, *, keeps_events: bool
    ) -> Handled:
        reply, _ = handle(request, store, now_us, bounds, keeps_events)
        return reply, []

    return patched(room, _written_back=written_back)


def read_of_what_full_logs_take_in_no_more() -> None:
    """r1 alone has the newest value of a key, and the logs of the others are full. f3 reads it, and then f4 does, which r1 does not answer."""
    hand = Played()
    full.fill_logs_beside(hand, KEY, lambda number: Write(KEY, Value(f"{number}")))
    hand.forward_known("f3", Read(KEY))
    hand.at("f4", Read(KEY), "r2", "r3")
    hand.judge()


def replicas_full_of_what_others_lack() -> None:
    """Each of the replicas is full of tombstones that one of the others lacks. They are told of these, have no room, and must have some again."""
    _have_room_again(full.filled(), full.ROUNDS)


def replicas_full_of_what_is_undecided() -> None:
    """Each of the replicas is full of deletions that no other has heard of. They are to be decided by replicas without room."""
    _have_room_again(full.filled_with_undecided(), full.UNDECIDED_ROUNDS)


def deletion_of_what_has_a_full_log() -> None:
    """A key was overwritten so often as its log has room for. It is deleted."""
    hand = Played(capacity=Capacity(log_entries_max=full.OBJECTS_MAX))
    for _ in range(full.OBJECTS_MAX):
        hand.ask("f1", Write(KEY, X))
    hand.start("f2", Write(KEY, X), "refused")
    hand.settle()
    assert isinstance(hand.outcomes["refused"], Failed)
    hand.forward_known("f3", Write(KEY, None))
    hand.judge()


def _have_room_again(hand: Played, rounds: int) -> None:
    for _ in range(rounds):
        full.collect_all(hand)
    left = {name: replica.store.objects() for name, replica in hand.replicas.items()}
    if any(set(names) - {full.LIVE} for names in left.values()):
        raise Violation(f"on a healthy cluster {left} are known still")


def read_of_what_is_too_old_to_be_written_back() -> None:
    """r1 has an entry that the others, which are full, take in no more. Who lists the keys has it decided."""
    hand = full.filled_beside_an_old_entry()
    hand.forward_known("f3", Items("dictionary/d"))
    hand.judge()


def read_of_what_too_few_took() -> None:
    """Each replica took another one of three keys, and is full. Who lists the keys writes each back to another replica."""
    hand = Played(capacity=Capacity(objects_max=full.ROOM))
    for number in range(full.ROOM - 1):
        hand.ask("f1", Write(f"dictionary/d/{number}", X))
    for replica in hand.replicas:
        hand.start(replica, Write(f"dictionary/d/{replica}", X), replica)
        hand.reach(replica, replica)
        hand.vanish(replica)
    hand.forward_known("f2", Items("dictionary/d"))
    hand.judge()


def read_while_others_come_to_nothing() -> None:
    """r3 is full, and lacks x, which is new. One key after another comes to nothing, of which r3 is told, while a reader looks at r1 and r3."""
    hand = Played(capacity=Capacity(objects_max=1))
    hand.at("f1", CompareAndSet("dictionary/d/a", X, None, key="k"), "r1", "r3")
    hand.at("f2", CompareAndSet("dictionary/d/b", X, None, key="k"), "r2", "r3")
    hand.at("f3", PutIfAbsent(KEY, X), "r1", "r2")
    hand.carry_commits("f3", "r1", "r2")
    hand.start("f4", Read(KEY), "read")
    for number in range(MOVES_MAX):
        if "read" in hand.outcomes:
            break
        told_us = hand._now("r3").wall_us
        ballot = make_ballot(make(told_us, 0, "raw"), 1)
        nothing = Commit(f"dictionary/d/n{number}", ballot, summary=NOTHING)
        hand.replicas["r3"].exchange(Batch(hand.document.hash, (nothing,)), told_us)
        hand.move("f4", "r1", "r3")
    else:
        raise Violation("on a healthy cluster a reader looks again and again")
    hand.judge()


PLANTED: Final = (
    Plant("full-for-ever", take_in_nothing, ("answers",), schedule=replicas_full_of_what_others_lack),
    Plant(
        "undecided-for-ever",
        settle_only_where_there_is_room,
        ("answers",),
        schedule=replicas_full_of_what_is_undecided,
    ),
    Plant(
        "old-for-ever",
        settle_only_where_there_is_room,
        ("answers",),
        schedule=read_of_what_is_too_old_to_be_written_back,
    ),
    Plant(
        "deletions-without-room",
        delete_only_where_there_is_room,
        ("answers",),
        schedule=deletion_of_what_has_a_full_log,
    ),
    Plant(
        "readers-without-room",
        write_back_only_where_there_is_room,
        ("answers",),
        schedule=read_of_what_too_few_took,
    ),
    Plant(
        "told-of-what-is-young",
        take_in_what_is_young,
        ("answers",),
        schedule=read_while_others_come_to_nothing,
    ),
    Plant(
        "written-back-without-room",
        say_that_what_is_written_back_is_stored,
        HISTORY,
        schedule=read_of_what_full_logs_take_in_no_more,
    ),
    Plant(
        "stored-without-room",
        say_that_it_is_stored,
        ("kept in a crash", "bounded", *HISTORY),
        10,
        worlds="full",
    ),
)
