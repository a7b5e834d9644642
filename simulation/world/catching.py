"""The catch-up of a replica in a world.

Owns when it asks, on its way over the same network. It must not know what may be installed (`quorate.replica.protocol.catch_up` does).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ...adts.specification import Kind
from ...adts.types.catalogue import adt_of, is_overwritten
from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import Batch, Changed, Changes, Collected, Reply, Request
from ...replica.protocol import catch_up
from ...replica.protocol.capacity import DECIDED_PERCENT, REPAIRED_PERCENT
from ...replica.protocol.catch_up import Lack, Progress
from ...replica.protocol.log import Effect, Log, PutRows, PutState
from ...timestamps.ballot import NO_BALLOT, Ballot, term_of
from ...timestamps.timestamp import ZERO, Timestamp
from ..violation import Violation

if TYPE_CHECKING:
    from .nodes import ReplicaNode
    from .world import World

EVERY_US: Final = 50_000
PAGE: Final = 5
_NO_PASSES: Final = {"_passes": 0}
"""Left out where progress is compared: the number of passes."""
SILENT_US: Final = 1_000_000
"""A pass that has not ended by then has lost a message; another one begins. Once all is healed, this is also how often one
begins that would do what the one before has done."""


class Pass(NamedTuple):
    """A look at another replica's changes: when it began, and how far both stores and the progress had come then."""

    began_us: int
    versions: tuple[int, int]
    progress: Progress


class CatchingUp:
    """One replica's looks at the others."""

    def __init__(self, node: "ReplicaNode", others: "list[ReplicaNode]") -> None:
        self._node = node
        self._world = node.world
        self._others = others
        self._kept: dict[str, int] = {}
        """What is durable of the progress."""
        self._progress: dict[str, Progress] = {}
        self._under_way: dict[str, Pass] = {}
        """Passes by other replica."""
        self._idle: dict[str, Pass] = {}
        """The latest ones that left the progress as it was: in the same stores the next one would do the same."""
        self._unanswered: dict[str, list[Lack]] = {}
        """What that pass, or the one that ended last, has asked for and was not answered: its progress is not kept before."""
        self._process = 0
        self.restarted()

    def restarted(self) -> None:
        """Only what is durable is left, and answers of before mean nothing."""
        self._process += 1
        self._under_way, self._idle = {}, {}
        self._progress = {other.id: catch_up.resumed(self._kept.get(other.id, 0)) for other in self._others}

    def begin(self) -> None:
        """A pass over each other replica's changes, where it is due."""
        if not self._node.is_up or self._node.is_stopped:
            return
        for other in self._others:
            if not (self._node.is_member and other.is_member):
                continue
            versions = (other.replica.store.version, self._node.replica.store.version)
            if self._is_due(other.id, versions):
                self._begin(other, Pass(self._world.now_us, versions, self._progress[other.id].copy()))

    def _is_due(self, other: str, versions: tuple[int, int]) -> bool:
        latest = self._under_way.get(other)
        if latest is None and self._world.is_healed:
            idle = self._idle.get(other)
            latest = idle if idle is not None and idle.versions == versions else None
        return latest is None or self._world.now_us >= latest.began_us + SILENT_US

    def _begin(self, other: "ReplicaNode", begun: Pass) -> None:
        self._under_way[other.id] = begun
        self._unanswered[other.id] = []
        self._progress[other.id].begin()
        self._ask_changes(other)

    def _ask_changes(self, other: "ReplicaNode") -> None:
        asked, begun = self._progress[other.id].request(PAGE), self._under_way[other.id]
        self._ask(other, asked, lambda told: self._hear(other, asked, told, begun))

    def _hear(self, other: "ReplicaNode", asked: Changes, told: Reply, begun: Pass) -> None:
        progress = self._progress[other.id]
        assert isinstance(told, Changed)
        lacking = progress.hear(asked, told, self._node.replica.store)
        for lack in lacking:
            progress.wait_for(lack)  # Until it is here: the question or its answer may be lost.
            self._fetch(other, progress, lack)
        if begun is not self._under_way.get(other.id):
            return  # An answer that comes after its pass was given up.
        if told.more:
            self._ask_changes(other)
        else:
            self._end(other, progress)

    def _end(self, other: "ReplicaNode", progress: Progress) -> None:
        ended = self._under_way.pop(other.id)
        self._idle.pop(other.id, None)
        if vars(progress) | _NO_PASSES == vars(ended.progress) | _NO_PASSES:
            self._idle[other.id] = ended
        self._keep(other, progress)

    def _keep(self, other: "ReplicaNode", progress: Progress) -> None:
        if other.id not in self._under_way and not self._unanswered[other.id]:
            self._kept[other.id] = progress.safe_since

    def _fetch(self, other: "ReplicaNode", progress: Progress, lack: Lack) -> None:
        asked, limits = self._node.clock.now(), self._world.document.limits

        def hear(told: Reply) -> None:
            assert isinstance(told, Collected)
            if not catch_up.is_timely(asked, self._node.clock.now(), limits):
                return  # Still unanswered: the next pass asks again.
            self._install(lack, told)
            if (rest := progress.settle(lack, told, self._node.replica.store)) is not None:
                self._fetch(other, progress, rest)
            left = catch_up.left_before(self._node.clock.now().wall_us, limits)
            for name, entries in progress.overdue([(lack, told)], left).items():
                self._node.repairing.entries(name, tuple(entries))
            unanswered.remove(lack)
            if unanswered is self._unanswered[other.id]:
                self._keep(other, progress)

        unanswered = self._unanswered[other.id]
        unanswered.append(lack)
        self._ask(other, lack.request(self._node.replica.store, limits.page_entries_max), hear)

    def _install(self, lack: Lack, told: Collected) -> None:
        node, store = self._node, self._node.replica.store
        cluster = node.replica.document.hash
        node.commit()

        def handle(request: Request) -> Reply:
            batch = Batch(cluster, (request,))
            reply = node.replica.handle(batch, node.wall_us, node.clock.mono_s)
            store.commit()
            node.watch.committed(node.replica, batch, reply)
            return reply.replies[0]

        here = _known(store, lack.object)
        catch_up.install(lack, told, store, handle, node.replica.with_room, self._apply)
        came = _known(store, lack.object) - here
        self._world.note("entries caught up", len(came))
        state = store.state(lack.object)
        if state is not None and any(t <= state.fence for t in came):
            self._world.note("entries caught up below a fence", 1)

    def _apply(self, name: str, effects: list[Effect]) -> None:
        node, store = self._node, self._node.replica.store
        for effect in effects:
            if isinstance(effect, PutState):
                node.watch.let_in(node.id, name, effect.state.floor)
            elif isinstance(effect, PutRows):
                state = store.state(name)
                for t in [entry.t for entry in effect.entries]:
                    if state is not None and t <= state.horizon:
                        raise Violation(f"{node.id} {name}: {t} was installed below the horizon")
                    node.watch.installed(node.replica, name, t)
        store.apply(*effects)
        store.commit()

    def _ask(self, other: "ReplicaNode", request: Request, hear: Callable[[Reply], None]) -> None:
        """There and back; where either way is cut, or a process is down or stopped, nothing comes of it."""
        node, world, process = self._node, self._world, self._process

        def answered(reply: Reply) -> None:
            if (
                node.is_up
                and not node.is_stopped
                and process == self._process
                and node.replica.document.number == epoch
            ):
                hear(reply)

        epoch = node.replica.document.number

        def arrived() -> None:
            delay_us = world.network.delay_us(other.id, node.id)
            if other.replica.document.number != epoch:
                return
            if other.is_up and not other.is_stopped and delay_us is not None:
                other.commit()  # The question joins the transaction at hand, whose other replies leave with it.
                world.later(delay_us, answered, other.replica.tell(request, other.wall_us))

        delay_us = world.network.delay_us(node.id, other.id)
        if delay_us is not None:
            world.later(delay_us, arrived)


def catch_up_steadily(world: "World") -> None:
    """From now on each replica looks at the others again and again."""
    nodes = list(world.replicas.values())
    for node in nodes:
        if node.catching_up is None:
            node.catching_up = CatchingUp(node, [other for other in nodes if other is not node])
        node.catching_up.begin()
    world.later(EVERY_US, catch_up_steadily, world)


def _known(store: Log, name: str) -> set[Timestamp]:
    return {t for _, t in store.arrived(name, 0, store.arrival(), 10**6)}


def lacking(nodes: "list[ReplicaNode]") -> set[str]:
    """What one replica holds and may be installed and another one does not hold, and decisions known at one and not at another."""
    return {
        f"{target.id} {name}: not caught up with {source.id}: {what}"
        for source in nodes
        for name in source.replica.store.objects()
        for target in nodes
        if source is not target
        for what in _lacking(name, source, target)
    }


def are_level(name: str, nodes: "list[ReplicaNode]") -> bool:
    """Whether all hold the same of an object and of its keys, also of what nobody has marked complete, and fences keep out, and of decisions that
    nobody knows to be made."""
    return not any(
        _lacking(each, source, target)
        or _missing(each, source, target)
        or _accepted(each, source) != _accepted(each, target)
        for source in nodes
        for each in source.replica.store.objects()
        if each == name or each.startswith(f"{name}/")
        for target in nodes
        if source is not target
    )


def unfinished(nodes: "list[ReplicaNode]", document: ClusterDocument) -> set[str]:
    """What a final quorum of these holds, so that it is done, and nobody who holds it knows so: decisions, and entries that one of them lacks."""
    found = set()
    for name in sorted({name for node in nodes for name in node.replica.store.objects()}):
        choice = document.choice_of(name)
        for t in _missing_somewhere(name, nodes):
            holders = {node.id for node in nodes if node.replica.store.stored(name, [t])}
            if choice.final_of_kind(Kind.BLIND).is_met_by(holders):
                found.add(f"{name}: {t} is not known to be complete, though a final quorum holds it")
        for ballot in {_accepted(name, node) for node in nodes} - {NO_BALLOT}:
            holders = {node.id for node in nodes if _accepted(name, node) == ballot}
            is_known = all(_committed(name, node) == ballot for node in nodes if node.id in holders)
            if choice.final_of_kind(Kind.DECIDE).is_met_by(holders) and not is_known:
                found.add(f"{name}: {ballot} is not known to be decided, though a final quorum holds it")
    return found


def _missing_somewhere(name: str, nodes: "list[ReplicaNode]") -> set[Timestamp]:
    """Entries that one holds and another one lacks. Below a complete one of what is overwritten all is history, though a log may keep it."""
    holding = [node for node in nodes if node.replica.store.state(name) is not None]
    rows = [row for node in holding for row in node.replica.store.rows(name, ZERO, 10**6) if row.complete]
    history = max((row.entry.t for row in rows), default=ZERO) if is_overwritten(adt_of(name)) else ZERO
    return {
        t for source in holding for target in nodes for t in _missing(name, source, target) if t > history
    }


def _accepted(name: str, node: "ReplicaNode") -> Ballot:
    state = node.replica.store.state(name)
    return NO_BALLOT if state is None else state.accepted


def _committed(name: str, node: "ReplicaNode") -> Ballot:
    state = node.replica.store.state(name)
    return NO_BALLOT if state is None else state.committed


def _missing(name: str, source: "ReplicaNode", target: "ReplicaNode") -> "list[Timestamp]":
    log, here = source.replica.store, target.replica.store
    state = log.state(name)
    assert state is not None
    missing = catch_up.missing(name, [t for _, t in log.arrived(name, 0, log.arrival(), 10**6)], here)
    # History there is not missed, though a log may keep it.
    return [t for t in missing if t > max(state.collected, state.horizon)]


def _lacking(name: str, source: "ReplicaNode", target: "ReplicaNode") -> "list[Timestamp | Ballot]":
    log, here = source.replica.store, target.replica.store
    missing = _missing(name, source, target)
    told, state = log.state(name), here.state(name)
    fence = here.floor() if state is None else state.fence
    owed = {row.entry.t for row in log.wanted(name, missing) if row.complete or row.entry.t > fence}
    # With `collect = false` it stays in the log that has it: asked for before it was marked complete, nobody asks again (seed 5910000431).
    owed -= catch_up.overtaken(name, owed, here)
    assert told is not None
    if state is None and target.replica.is_full(REPAIRED_PERCENT):
        return []  # It takes in no other object: what it lacks is owed once there is room.
    committed = NO_BALLOT if state is None else state.committed
    floor = here.floor() if state is None else state.floor
    # What is accepted here is of a life that ends above the floor, by its horizon, though nobody may have told yet that it is decided (full seed
    # 3900001093).
    if told.ended() is not None and max(term_of(told.committed), told.horizon) <= floor:
        return [*owed]  # It has ended there, or ended and begun anew: what was decided before is over.
    has_room = state is not None or not target.replica.is_full(DECIDED_PERCENT)
    if told.committed == told.accepted and committed < told.committed and has_room:
        return [*owed, told.committed]
    return [*owed]
