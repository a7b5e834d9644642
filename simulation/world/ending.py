"""How a run ends, once everything has healed: what is left is looked at, and in some runs all that may be forgotten goes.

Owns the last questions. It must not know the faults before, nor judge the history.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...adts.log import Value
from ...adts.plain_class import frozen
from ...adts.specification import Invocation, Kind
from ...adts.types.catalogue import adt_of
from ...client_sdk.protocol.core.values import (
    Acquire,
    ClearDeadLetters,
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Invoke,
    Items,
    Operation,
    Peek,
    QueueSize,
    Read,
    ReadLeases,
    Settle,
    Write,
)
from ...gc.pruning import AGAIN, ended_here, promised_upto
from ...replica.protocol.capacity import REPAIRED_PERCENT
from ..scenarios.scenario import KEYS
from ..violation import Violation
from .catching import EVERY_US, are_level, lacking, unfinished

if TYPE_CHECKING:
    from .world import World

DRAIN_DEADLINE_S: Final = 4.0
TELL_EVERY_US: Final = 200_000
"""Between what replicas tell each other of their stores; in the service it is two seconds."""
STRAYS_US: Final = 12_000_000
"""By then all that was under way when everything healed has arrived: the heaviest tail on a slow link, and again."""
LEVEL_PASSES: Final = 6
REPAIR_ROUND_US: Final = 1_000_000
REPAIR_ROUNDS: Final = 40
"""More than it takes until what waits is asked for, found to be done, and brought."""
RELAY_ROUND_US: Final = 1_000_000
RELAY_ROUNDS: Final = 60
"""More than the leases last under which items are relayed, and than it takes until what failed is tried again."""
LEASE_S: Final = 1.0
LEASE_ROUND_US: Final = 1_000_000
LEASE_ROUNDS: Final = 40
"""More than any lease lasts, by any of the clocks."""
COLLECTIONS: Final = 3
"""The first decides the deletions, the second may find a replica that has not heard of it, the last forgets them."""
ROOM_ROUNDS: Final = 12
"""More than it takes, one key after another, until replicas that are full of what others lack know nothing any more."""
ABSENT: Final = "absent"
"""Of an object that nobody has set: a dictionary's key, or the end of a queue's name."""
LAST: Final = Value('"the last"')


def level(world: "World") -> None:
    """With all replicas up, each gets all that another one holds, within a few passes.

    What is lacking is looked for again a few passes later: a janitor's decision may just be on its way (seed 2200002778).
    """
    _let_replicas_hear(world)
    world.pass_time(STRAYS_US)
    nodes = world.members
    world.pass_time(LEVEL_PASSES * EVERY_US)
    if lacked := lacking(nodes):
        world.pass_time(LEVEL_PASSES * EVERY_US)
        if lacked := lacked & lacking(nodes):
            raise Violation(min(lacked))


def agree(world: "World") -> None:
    """With eventual consistency, too, whoever looks once all is quiet is answered the same: a fresh front end, and those that remember. What was
    done all replicas hold by then, also where nobody has told that it is complete; not what was never done whole, which the next decision ends."""
    level(world)
    _repair(world)
    world.add_observer()
    *before, fresh = (front for front in world.fronts if front.is_alive)
    for operation in _looks(world):
        told = [world.outcome_of(operation, DRAIN_DEADLINE_S, front) for front in (fresh, *before)]
        results = [outcome.result if isinstance(outcome, Done) else outcome for outcome in told]
        for front, result in zip(before, results[1:], strict=True):
            if result != results[0]:
                raise Violation(
                    f"once all is quiet {operation} is answered with {results[0]} at a fresh front end, and with {result} at {front.name}"
                )


def _repair(world: "World") -> None:
    """Each replica's front end finishes what clients left that vanished, and catch-up brings it."""
    nodes = world.members
    for node in nodes:
        world.embed(node)
    for _ in range(REPAIR_ROUNDS):
        for node in nodes:
            node.repairing.round()
        world.pass_time(REPAIR_ROUND_US)
    if left := unfinished(nodes, world.latest) | lacking(nodes):
        raise Violation(min(left))


def _looks(world: "World") -> Iterator[Operation]:
    """What only observes, of every object of which all replicas hold the same."""
    for name in world.scenario.objects:
        if not are_level(name, world.members):
            continue
        match adt_of(name):
            case "queue":
                yield Peek(name)
                yield QueueSize(name)
            case "register":
                yield Read(name)
            case "dictionary":
                yield from (Read(f"{name}/{key}") for key in KEYS)
                yield Items(name)
            case _:
                found = world.scenario.drawn
                assert found is not None, "no other types are simulated"
                for operation in sorted(found.observing):
                    arguments = tuple(frozen(each[0]) for each in found.arguments[operation].values())
                    yield Invoke(name, found, Invocation(operation, arguments))


def empty_outboxes(world: "World") -> None:
    """With all replicas up, what waits in outboxes is relayed: at last also what was under the lease of one that died."""
    _let_replicas_hear(world)
    for node in world.members:
        world.embed(node)
    for _ in range(RELAY_ROUNDS):
        world.pass_time(RELAY_ROUND_US)
        if all(node.relaying.is_idle for node in world.members):
            return
    raise Violation("on a healthy cluster outboxes are not emptied")


def drain(world: "World") -> None:
    """A fresh front end asks for all that is left; on a healthy cluster every answer must come."""
    _let_replicas_hear(world)
    world.add_observer()
    for name in world.scenario.objects:
        if name.startswith("queue/"):
            if world.scenario.leasing is not None:
                drain_leases(world, name)
            world.ask(QueueSize(name), DRAIN_DEADLINE_S)
            while world.ask(Dequeue(name, 7), DRAIN_DEADLINE_S):
                pass
        elif name.startswith("register/"):
            world.ask(Read(name), DRAIN_DEADLINE_S)
        elif (found := world.scenario.drawn) is not None and adt_of(name) in world.document.own_types:
            for operation, arguments in found.arguments.items():
                last = Invoke(
                    name, found, Invocation(operation, tuple(frozen(each[0]) for each in arguments.values()))
                )
                outcome = world.outcome_of(last, DRAIN_DEADLINE_S)
                if isinstance(outcome, Failed) and outcome.reason != "refused":
                    raise Violation(f"on a healthy cluster {last} ends with {outcome}")
        else:
            for key in KEYS:
                _ask_where_there_is_room(world, Read(f"{name}/{key}"), DRAIN_DEADLINE_S)
            _ask_where_there_is_room(world, Items(name), DRAIN_DEADLINE_S)


def _ask_where_there_is_room(world: "World", operation: Operation, deadline_s: float) -> None:
    """Its answer must come if quorums know the object, or have room for it, before and after."""
    has_room = _has_room(world, operation)
    outcome = world.outcome_of(operation, deadline_s)
    if not isinstance(outcome, Done) and has_room and _has_room(world, operation):
        raise Violation(f"on a healthy cluster {operation} ends with {outcome}")


def _has_room(world: "World", operation: Operation) -> bool:
    """Whether quorums take in what the operation writes back, or has decided; of a deletion, whether they take it in as a new entry."""
    name = operation.object
    is_deletion = isinstance(operation, Write)
    taking = {
        node.id
        for node in world.members
        if not node.replica.is_full(0 if is_deletion else REPAIRED_PERCENT)
        or name in node.replica.store.objects()
    }
    choice = world.latest.choice_of(f"{name}/{ABSENT}" if isinstance(operation, Items) else name)
    needed = [choice.final_of_kind(Kind.BLIND)]
    if not is_deletion:
        needed += [choice.initial_of_kind(Kind.DECIDE), choice.final_of_kind(Kind.DECIDE)]
    return all(quorum.is_met_by(taking) for quorum in needed)


def drain_leases(world: "World", name: str) -> None:
    """Acknowledge all that can be had, until nothing is held or waits; what the dead held comes back with time: where clocks were
    ahead, once they have come as far again."""
    if world.scenario.faults.leaps:
        for replica in world.members:
            replica.leap(world.scenario.faults.leap_us_max + LEASE_ROUND_US)
    for number in range(LEASE_ROUNDS):
        if number > LEASE_ROUNDS // 2:  # Expired items may find no room among the dead letters.
            requeued = world.outcome_of(ClearDeadLetters(name, (), is_requeued=True), DRAIN_DEADLINE_S)
            if isinstance(requeued, Failed):
                _purge_one(world, name)
        while isinstance(outcome := world.outcome_of(Acquire(name, 7, LEASE_S), DRAIN_DEADLINE_S), Done):
            if not outcome.result:
                break
            tokens = tuple(record.token for record in outcome.result)
            world.ask(Settle(name, "ack", tokens), DRAIN_DEADLINE_S)
        if isinstance(outcome, Failed) and outcome.reason != "too-many-leases":
            raise Violation(f"on a healthy cluster an acquire ends with {outcome}")
        if not world.ask(ReadLeases(name), DRAIN_DEADLINE_S).leases:
            return
        world.pass_time(LEASE_ROUND_US)
    raise Violation("on a healthy cluster leases do not come back")


def _purge_one(world: "World", name: str) -> None:
    """Purge the oldest dead letter, as a refused requeue says: where both rooms are full, and no letter is as large as some expired
    items, none can change places with them (leased seed 570033830)."""
    dead = world.ask(ReadLeases(name), DRAIN_DEADLINE_S).dead
    ids = tuple(letter.entry.id for letter in dead[:1])
    world.ask(ClearDeadLetters(name, ids, is_requeued=False), DRAIN_DEADLINE_S)


def _let_replicas_hear(world: "World") -> None:
    """Until each has heard from the others how far their stores have come, so that none refuses what another one has stored
    as too far ahead of its clock."""
    world.pass_time(2 * TELL_EVERY_US)


def make_room(world: "World") -> None:
    """Delete all keys and have them forgotten, as far as there is room for it, until no replica knows one: full of what comes to nothing, and of
    what others lack, they must not stay. Then every read has its answer."""
    world.pass_time(STRAYS_US)
    deadline_s = world.document.limits.deadline_s_max
    for _ in range(ROOM_ROUNDS):
        ended = _ended(world)
        for name in _known(world):
            if name in ended:
                world.outcome_of(CollectTombstone(name), deadline_s)
            else:
                _ask_where_there_is_room(world, Write(name, None), deadline_s)
        if not _known(world):
            drain(world)
            return
        world.pass_time(int(1e6 * world.document.memory_s * AGAIN) + 1_000_000)
    raise Violation(f"on a healthy cluster there is no room again: {_known(world)} are known still")


def _known(world: "World") -> list[str]:
    return sorted({name for replica in world.members for name in replica.replica.store.objects()})


def settle_down(world: "World") -> None:
    """One more change of every object, then time for all that is remembered; after that no history may be left.

    A queue's log is empty, a cell has its one value, and a deleted key is known nowhere (DESIGN section 5, 5); nor is what was asked for in vain.
    """
    world.pass_time(STRAYS_US)
    cells = [name for name in world.scenario.objects if name.startswith("register/")]
    keys = [
        f"{name}/{key}" for name in world.scenario.objects if adt_of(name) == "dictionary" for key in KEYS
    ]
    queues = [name for name in world.scenario.objects if name.startswith("queue/")]
    for name in queues:
        world.ask(Enqueue(name, (LAST,)))
        # What a client left that vanished may come before it: no quorum of the last drain had to meet it (weak seed 4155400106).
        while LAST not in (taken := world.ask(Dequeue(name, 1))):
            if not taken:
                raise Violation(f"on a healthy cluster {name} lost {LAST}")
    for name in cells:
        # A decision: the mark that a blind write is complete may come before the entry, and then says nothing there.
        world.ask(Write(name, LAST))
        assert world.ask(CompareAndSet(name, LAST, None))
    room = world.scenario.objects_max or None
    for name in keys[:room]:
        world.ask(Write(name, None))
    if room is not None:
        make_room(world)
    dictionaries = list(dict.fromkeys(name.rpartition("/")[0] for name in keys))
    absent = _ask_in_vain(world, dictionaries[:room], queues)
    limits = world.document.limits
    world.pass_time(int(1e6 * (world.document.memory_s + 2 * limits.consumed_lag_s)) + 1_000_000)
    for _ in range(COLLECTIONS):
        for name in _ended(world):
            world.ask(CollectTombstone(name))
        world.pass_time(int(1e6 * world.document.memory_s * AGAIN) + 1_000_000)
    _check_forgotten(
        world, dict.fromkeys(queues, 0) | dict.fromkeys(cells, 1) | dict.fromkeys(keys, 0), (*keys, *absent)
    )
    if left := _ended(world):
        raise Violation(f"{left}, which came to nothing, are known still")


def _ended(world: "World") -> list[str]:
    """Which objects came to nothing, by all replicas that know them: where there is no catch-up, one may not have heard what came since."""
    stores: list[Any] = [replica.replica.store for replica in world.members]
    return [
        name
        for name in sorted({name for store in stores for name in store.objects()})
        if all(ended_here(store, name) is not None for store in stores if store.state(name) is not None)
    ]


def _ask_in_vain(world: "World", dictionaries: Collection[str], queues: Collection[str]) -> list[str]:
    """Ask for what nobody has set, under an idempotency key: where nothing is found, and nothing done, that is decided. Returns what was asked for."""
    keys = [f"{name}/{ABSENT}" for name in dictionaries]
    empty = [f"{name}-{ABSENT}" for name in queues]
    for name in keys:
        world.ask(CompareAndSet(name, LAST, None, "in vain"))
    for name in empty:
        world.ask(Dequeue(name, 1, key="in vain"))
        if world.scenario.leasing is not None:
            world.ask(ReadLeases(name))  # The judge wants to know of each queue what became of its items.
    return keys + empty


def _check_forgotten(world: "World", rows_max: Mapping[str, int], keys: Collection[str]) -> None:
    """No replica holds more rows than that, one of these keys, or promises alone."""
    for replica in world.members:
        store = replica.replica.store
        for name, most in rows_max.items():
            rows = store.length(name)
            if rows > most:
                raise Violation(f"{replica.id} {name}: {rows} rows are left, where {most} may be")
        if known := [name for name in keys if store.state(name) is not None]:
            raise Violation(f"{replica.id}: {known} are still known")
        if empty := [name for name in store.objects() if promised_upto(store, name) is not None]:
            raise Violation(f"{replica.id}: of {empty} promises alone are still known")
