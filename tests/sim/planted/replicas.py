"""Mistakes of a replica: what it stores, promises, refuses, forgets; and of the disk, the fence and the clock under it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from quorate.adts.log import NOTHING
from quorate.api_specs.messages import Accept, Accepted, Append, Appended, Collect, Commit, Row
from quorate.client_sdk.protocol.decisions import transitions
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.replica.protocol import acceptor, refusals
from quorate.replica.protocol.acceptor import Handled
from quorate.replica.protocol.log import Effect, Forget, Log, ObjectState, PutRows, PutState
from quorate.replica.protocol.refusals import Bounds, Claims
from quorate.simulation.memory.replica import InMemoryReplica
from quorate.simulation.memory.store import MemoryStore
from quorate.simulation.world.exchange import Exchange
from quorate.simulation.world.nodes import ReplicaNode
from quorate.timestamps.ballot import NO_BALLOT, term_of
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp
from tests.sim.planted.plant import Planting, patched


def _state_of(handled: Handled, before: ObjectState) -> ObjectState:
    """The state that the effects leave behind."""
    return next((effect.state for effect in handled[1] if isinstance(effect, PutState)), before)


def discard_at_accept() -> Planting:
    """Entries at or below a horizon are discarded as soon as it is accepted, decided or not."""
    right = acceptor._accept

    def accept(request: Accept, state: ObjectState, log: Log, bounds: Bounds, keeps_events: bool) -> Handled:
        reply, effects = right(request, state, log, bounds, keeps_events)
        after = _state_of((reply, effects), state)
        if isinstance(reply, Accepted) and not reply.refused and not keeps_events:
            after = replace(after, collected=max(after.collected, request.summary.horizon))
        return reply, [each for each in effects if not isinstance(each, PutState)] + [PutState(after)]

    return patched(acceptor, _accept=accept)


def drop_late_entries() -> Planting:
    """An entry at or below the fence is dropped and acknowledged, as in the lecture's sketch."""
    right = acceptor._append

    def append(request: Append, state: ObjectState, log: Log) -> Handled:
        reply, effects = right(request, state, log)
        assert isinstance(reply, Appended)
        return replace(reply, stored=(True,) * len(reply.stored)), effects

    return patched(acceptor, _append=append)


def merge_without_ballots() -> Planting:
    """No promise is asked for and no accept refused: a replica merges what two Deqs write by the higher horizon."""
    right_collect = acceptor._collect

    def collect(request: Collect, state: ObjectState, log: Log, bounds: Bounds) -> Handled:
        return right_collect(replace(request, ballot=None), state, log, bounds)

    def accept(request: Accept, state: ObjectState, log: Log, bounds: Bounds, keeps_events: bool) -> Handled:
        del log, bounds, keeps_events
        after = replace(
            state,
            accepted=max(state.accepted, request.ballot),
            summary=max(state.summary, request.summary, key=lambda each: each.horizon),
        )
        return Accepted(acceptor._status(after)), acceptor._changed(state, after)

    return patched(acceptor, _collect=collect, _accept=accept)


def scan_the_oldest() -> Planting:
    """A scan shows the oldest page of a key's log, not the newest."""

    def newest(
        self: MemoryStore, name: str, after: Timestamp, limit: int, room: int | None = None
    ) -> list[Row]:
        return self.rows(name, after, limit, room)

    return patched(MemoryStore, newest=newest)


def adopted_into_the_log() -> Planting:
    """An adopted entry goes into the replica's log at the accept."""
    right = acceptor._accept

    def accept(request: Accept, state: ObjectState, log: Log, bounds: Bounds, keeps_events: bool) -> Handled:
        reply, effects = right(request, state, log, bounds, keeps_events)
        adopted = request.summary.adopted if isinstance(reply, Accepted) and not reply.refused else ()
        here = log.stored(request.object, [entry.t for entry in adopted])
        return reply, effects + [
            PutRows(request.object, (entry,)) for entry in adopted if entry.t not in here
        ]

    return patched(acceptor, _accept=accept)


def lower_step_replaces() -> Planting:
    """Within a term any accept replaces the one before: steps are not compared."""
    right = acceptor._accept

    def accept(request: Accept, state: ObjectState, log: Log, bounds: Bounds, keeps_events: bool) -> Handled:
        if term_of(request.ballot) == term_of(state.accepted):
            state = replace(state, accepted=NO_BALLOT)
        return right(request, state, log, bounds, keeps_events)

    return patched(acceptor, _accept=accept)


def accept_below_the_promise() -> Planting:
    """An accept is held against the ballots accepted, not against the one promised."""
    right = acceptor._accept

    def accept(request: Accept, state: ObjectState, log: Log, bounds: Bounds, keeps_events: bool) -> Handled:
        free = replace(state, promised=min(state.promised, term_of(request.ballot)))
        reply, effects = right(request, free, log, bounds, keeps_events)
        after = _state_of((reply, effects), free)
        kept = replace(after, promised=max(after.promised, state.promised))
        assert isinstance(reply, Accepted)
        status = replace(reply.status, promised=kept.promised)
        rest = [each for each in effects if not isinstance(each, PutState)]
        return replace(reply, status=status), rest + acceptor._changed(state, kept)

    return patched(acceptor, _accept=accept)


def promise_without_refusing() -> Planting:
    """A collect under a lower ballot than the one promised is answered all the same."""
    right = acceptor._collect

    def collect(request: Collect, state: ObjectState, log: Log, bounds: Bounds) -> Handled:
        if request.ballot is not None and term_of(request.ballot) < state.promised:
            request = replace(request, ballot=None)
        return right(request, state, log, bounds)

    return patched(acceptor, _collect=collect)


def fence_not_raised() -> Planting:
    """A collect reads without fencing the log first; its reply says that it did."""
    right = acceptor._collect

    def collect(request: Collect, state: ObjectState, log: Log, bounds: Bounds) -> Handled:
        reply, effects = right(request, state, log, bounds)
        after = replace(_state_of((reply, effects), state), fence=state.fence)
        return reply, acceptor._changed(state, after)

    return patched(acceptor, _collect=collect)


def commit_forgets_all() -> Planting:
    """A commit discards the whole log, entries above the horizon included."""
    right = acceptor._collected

    def collected(request: Commit, state: ObjectState, log: Log) -> Timestamp:
        return log.below(request.object, INFINITY) or right(request, state, log)

    return patched(acceptor, _collected=collected)


def marks_decide_anything() -> Planting:
    """A mark that some ballot is decided makes a replica take its own, other summary for decided."""
    right = acceptor._decided

    def decided(request: Commit, state: ObjectState, log: Log) -> ObjectState:
        if state.accepted > state.committed and request.ballot > state.committed:
            return replace(state, committed=state.accepted, horizon=max(state.horizon, state.summary.horizon))
        return right(request, state, log)

    return patched(acceptor, _decided=decided)


@contextmanager
def too_old_is_taken() -> Iterator[None]:
    """The retry window is ignored: entries older than what the summaries remember are answered, and recover."""
    right = refusals.refusal

    def refusal(request: Any, claims: Claims, highest: Timestamp, now_us: int, bounds: Bounds) -> Any:
        found = right(request, claims, highest, now_us, bounds)
        return None if found is not None and found.reason in ("too-old", "clock-behind") else found

    with (
        patched(acceptor, refusal=refusal),
        patched(transitions, _is_old=lambda *_: False),
        monotonic_alone(),
    ):
        yield


def monotonic_alone() -> Planting:
    """Deadlines go by the monotonic clock, which stands still while a machine is suspended."""

    return patched(FrontEnd, _late_us=lambda *_: float("inf"))


def bound_by_the_own_clock_only() -> Planting:
    """A replica takes nothing that is ahead of its clock, though its own store stands there."""
    right = refusals.refusal

    def refusal(request: Any, claims: Claims, highest: Timestamp, now_us: int, bounds: Bounds) -> Any:
        del highest
        return right(request, claims, ZERO, now_us, bounds)

    return patched(acceptor, refusal=refusal)


def bury_without_floor() -> Planting:
    """A forgotten object leaves no floor behind: late messages of its earlier life count."""
    right = acceptor._commit

    def commit(request: Commit, state: ObjectState, log: Log, *more: Any) -> Handled:
        reply, effects = right(request, state, log, *more)
        return reply, [Forget(each.name, ZERO) if isinstance(each, Forget) else each for each in effects]

    return patched(acceptor, _commit=commit)


# The disk, the log and the server under the machine: the simulated ones.


def acknowledge_before_the_commit() -> Planting:
    """Replies leave before the transaction that holds what they promise is on disk."""
    right = ReplicaNode.receive

    def receive(self: ReplicaNode, exchange: Exchange) -> None:
        before = len(self._open)
        right(self, exchange)
        if len(self._open) > before and (reply := self._open[-1][1]) is not None:
            exchange.front.travel_back(exchange, reply)

    return patched(ReplicaNode, receive=receive)


def _forgetting(**fields: Any) -> Planting:
    right = InMemoryReplica.start

    def start(self: InMemoryReplica) -> None:
        right(self)
        for name in self.store.objects():
            state = self.store.state(name)
            assert state is not None
            self.store.apply(PutState(replace(state, **fields)))
        self.store.commit()

    return patched(InMemoryReplica, start=start)


def ballot_not_persisted() -> Planting:
    """The promised term is kept in memory only: after a restart a lower ballot is accepted."""
    return _forgetting(promised=ZERO)


def fence_not_persisted() -> Planting:
    """The fence is kept in memory only: after a restart late entries are taken."""
    return _forgetting(fence=ZERO)


def accepted_not_persisted() -> Planting:
    """What was accepted is kept in memory only."""
    return _forgetting(accepted=NO_BALLOT, summary=NOTHING)


def _one_fence(chosen: Callable[[Timestamp, Timestamp], Timestamp]) -> Planting:
    """One fence for all objects of a store, which `chosen` makes of the one so far and the one that is written."""
    right_apply, right_state = MemoryStore._apply, MemoryStore.state

    def apply(self: MemoryStore, effect: Effect) -> None:
        if isinstance(effect, PutState):
            before = vars(self).get("one_fence", ZERO)
            vars(self)["one_fence"] = chosen(before, effect.state.fence)
        right_apply(self, effect)

    def state(self: MemoryStore, name: str) -> ObjectState | None:
        found = right_state(self, name)
        return None if found is None else replace(found, fence=vars(self).get("one_fence", found.fence))

    return patched(MemoryStore, _apply=apply, state=state)


def objects_share_a_fence() -> Planting:
    """All objects of a store share one fence: the latest that was written to any of them."""
    return _one_fence(lambda before, written: written)


def objects_share_the_highest_fence() -> Planting:
    """All objects of a store share one fence: the highest that was written to any of them."""
    return _one_fence(max)


def delta_skips_one() -> Planting:
    """The delta begins one arrival too late."""
    right = MemoryStore.arrivals

    def arrivals(
        self: MemoryStore, name: str, after: Timestamp, upto: Timestamp, since: int, *most: Any
    ) -> Any:
        return right(self, name, after, upto, since + 1, *most)

    return patched(MemoryStore, arrivals=arrivals)


def log_of_an_earlier_moment() -> Planting:
    """A snapshot of two moments: rows are read as of the last commit, fences, summary and cursor as of now."""
    right_rows, right_arrivals, right_commit = MemoryStore.rows, MemoryStore.arrivals, MemoryStore.commit

    def commit(self: MemoryStore) -> None:
        right_commit(self)
        vars(self)["committed_arrival"] = self._arrival

    def is_committed(self: MemoryStore, name: str, t: Timestamp) -> bool:
        committed: int = vars(self).get("committed_arrival", 0)
        return self._objects[name].rows[t][0] <= committed

    def rows(self: MemoryStore, name: str, after: Timestamp, *most: Any) -> Any:
        return [row for row in right_rows(self, name, after, *most) if is_committed(self, name, row.entry.t)]

    def arrivals(self: MemoryStore, name: str, *where: Any) -> Any:
        found = right_arrivals(self, name, *where)
        return [(number, row) for number, row in found if is_committed(self, name, row.entry.t)]

    return patched(MemoryStore, commit=commit, rows=rows, arrivals=arrivals)
