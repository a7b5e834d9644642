"""The nodes of a world: replicas that crash and commit in groups, front ends with the driver that moves their batches.

Owns what a real driver and a real server do around the two machines: batching, time-outs, group commit. It must not
know what the messages mean.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec import msgpack

from ...api_specs.checking import check_batch
from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import Batch, BatchReply
from ...api_specs.tokens import TAG_CHARS
from ...client_sdk.protocol.core.values import (
    Effects,
    Operation,
    Outcome,
    Read,
    Send,
    Unanswered,
    Write,
)
from ...client_sdk.protocol.core.work import Work
from ...client_sdk.protocol.front_end import FrontEnd
from ...client_sdk.protocol.reconfiguration import Holding, is_like
from ...replica.protocol.at_most_once import AtMostOnce
from ...timestamps.clock import Now
from ..memory.replica import InMemoryReplica
from .asking import send_forwarded
from .catching import CatchingUp
from .clocks import WALL_US_START, SteadyClock, WallClock
from .exchange import Begun, Exchange
from .janitor import Janitor, Relaying, Repairing
from .showing import shown, shown_answer
from .surroundings import Stoppable, Surroundings
from .watch import Watch

BUSY_S: Final = 0.01
"""How often who waits for a turn looks again in busy worlds: packets of several rounds come meanwhile."""

LAZY_US_MAX = 20_000
JOIN_US_MAX = 500
GATHER_US_MAX = 3_000

_decode_batch = msgpack.Decoder(Batch).decode
_decode_reply = msgpack.Decoder(BatchReply).decode


class ReplicaNode(Stoppable):
    """A replica and the server around it. `front` is the front end embedded in it, if any."""

    def __init__(self, world: Surroundings, replica_id: str, skew_us: int, watch: Watch) -> None:
        super().__init__()
        self.world = world
        self.id = replica_id
        self.replica = InMemoryReplica(world.document, replica_id, world.capacity)
        self.is_up = True
        self.is_dead = False
        """Off for good."""
        self.front: FrontNode | None = None
        self.slow_us = 0
        """How long it takes for a batch at most, besides gathering."""
        self.clock = WallClock(world, replica_id, skew_us)
        self.watch = watch
        self.catching_up: CatchingUp | None = None
        self._open: list[tuple[Exchange, BatchReply | None]] = []
        self._janitor, self.repairing, self.relaying = Janitor(self), Repairing(self), Relaying(self)
        self._keys_before: frozenset[tuple[str, str]] = frozenset()
        self.asks = self._no_asks()

    @property
    def is_member(self) -> bool:
        """Whether it is one in the configuration that it is in."""
        return self.id in self.replica.document.votes

    def follow(self, document: ClusterDocument) -> int:
        """The cluster has this configuration, or a later one; in which it is now. What was handled in the one before is committed."""
        if document.number <= self.replica.document.number:
            return self.replica.document.number
        self.commit()
        before = self.replica.document.former
        if before is not None and is_like(before, document):
            self.world.note("changes taken back", 1)
        if document.urls != self.replica.document.urls and document.votes == self.replica.document.votes:
            self.world.note("moves followed", 1)
        if document.stand_ins:
            self.world.note("changes that went elsewhere", 1)
        self.replica.follow(document)
        self.watch.follow(document)
        self._keys_before = frozenset(self.replica.store.reserved())
        self.world.trace(
            self.id, lambda: f"is in configuration {document.number}: {', '.join(document.votes)}"
        )
        if self.front is not None:
            self.front.follow(document)
        return document.number

    def holding(self) -> Holding:
        """What it holds, as is on disk."""
        self.commit()
        store, document = self.replica.store, self.replica.document
        keys = len(self._keys_before & set(store.reserved()))
        return Holding(document.number, tuple(store.objects()), keys, cluster=document.hash)

    def _no_asks(self) -> AtMostOnce:
        return AtMostOnce(self.world.document.clock.offset_max_s)

    @property
    def wall_us(self) -> int:
        """The replica's own clock."""
        return self.clock.wall_us

    def crash(self) -> None:
        """Stop at once; requests without a committed reply get none. The embedded front end vanishes, too."""
        self.is_up = False
        self._held = None
        if self.front is not None:
            self.world.crash_front(self.front)
        self.world.trace(self.id, lambda: f"crash, losing {len(self._open)} uncommitted batches")
        self.replica.store.crash()
        for exchange, _ in self._open:
            exchange.front.fail_soon(exchange, "connection reset")
        self._open.clear()

    def restart(self) -> None:
        """Come back with what was committed; not where it is off for good."""
        if not self.is_up and not self.is_dead:
            self.replica.start()
            self.watch.restarted(self.replica)
            if self.catching_up is not None:
                self.catching_up.restarted()
            self._janitor, self.repairing, self.relaying = Janitor(self), Repairing(self), Relaying(self)
            self.asks = self._no_asks()
            self.is_up = True
            self.world.trace(self.id, lambda: "restart")

    def stop(self) -> None:
        """Stopped with all that it was doing, and with the front end embedded in it."""
        super().stop()
        self.world.trace(self.id, lambda: "is stopped")
        for exchange, _ in self._open:
            exchange.front.time_out(exchange)
        if self.front is not None:
            self.front.stop()

    def go_on(self) -> None:
        """See Stoppable."""
        if self.is_stopped:
            self.world.trace(self.id, lambda: "goes on")
        super().go_on()
        if self.front is not None:
            self.front.go_on()

    def slow_down(self, most_us: int) -> None:
        """From now on a batch takes so long at most, besides gathering; 0 undoes it."""
        self.slow_us = most_us

    def reset_clock(self, skew_us: int) -> None:
        """The wall clock jumps to another error."""
        self.clock.reset(skew_us)
        self.world.trace(self.id, lambda: f"clock steps to an error of {skew_us} us")

    def leap(self, leap_us: int) -> None:
        """The wall clock jumps far away, or (0) back to where it should be."""
        self.clock.leap_us = leap_us
        self.world.trace(self.id, lambda: f"clock leaps to {leap_us / 1e6} s from where it should be")

    def hear_of(self, other: "ReplicaNode") -> None:
        """The other's watch tells this one how far its store has come (`quorate.replica.upkeep.announcer`)."""
        if self.is_up and other.is_up and not self.is_stopped and not other.is_stopped and not other._open:
            self.follow(other.replica.document)
            store = self.replica.store
            store.witnessed = max(store.witnessed, other.replica.store.clock)
            self.replica.look_ahead(self.wall_us, self.clock.mono_s)

    def prune(self) -> None:
        """A round of the janitor, as the server has one now and then."""
        if self.is_up and not self._open and not self.is_stopped:
            self._janitor.round()
            self.repairing.round()

    def relay(self) -> None:
        """Look at the outboxes, as the server does all the time."""
        if self.is_up and not self.is_stopped:
            self.relaying.round()

    def receive(self, exchange: Exchange) -> None:
        """A batch arrives."""
        if exchange.is_refused:
            return
        if not self.is_up:
            is_sure = not exchange.is_doubled and self.world.chance() < 0.5
            exchange.front.fail_soon(exchange, "connection refused", is_definite=is_sure)
            return
        if self._held is not None:
            self.hold(self.receive, exchange)
            exchange.front.time_out(exchange)
            return
        batch = exchange.batch
        if batch.cluster != self.replica.document.hash:
            exchange.front.answer_other(exchange, self.replica.document)
            return
        if self.world.has_codec:
            batch = _decode_batch(msgpack.encode(batch))
            assert not check_batch(batch, self.world.document.limits).refused
        for request in batch.requests:
            self.relaying.note(request)
        reply = self.replica.handle(batch, self.wall_us, self.clock.mono_s)
        # What was done is committed, though nobody hears of it.
        self._open.append((exchange, None if exchange.is_contradicted(reply) else reply))
        commit_us_max = self.world.network.faults.commit_us_max + self.slow_us
        if commit_us_max == 0:
            self.commit()
        elif len(self._open) == 1:
            self.world.later(int(commit_us_max * self.world.chance()), self.commit)

    def commit(self) -> None:
        """Make what was done durable, and let the replies go."""
        if self._held is not None:
            self.hold(self.commit)
            return
        self.replica.store.commit()
        committed, self._open = self._open, []
        for exchange, reply in committed:
            if reply is None:
                continue
            self.watch.committed(self.replica, exchange.batch, reply)
            exchange.front.travel_back(exchange, reply)


class FrontNode(Stoppable):
    """A front end and the driver around it; `home` is the replica that it is embedded in, if any.

    An embedded one shares the replica's clock and address, and reaches it without the network.
    """

    def __init__(
        self,
        world: Surroundings,
        name: str,
        skew_us: int,
        seed: int,
        replicas: dict[str, ReplicaNode],
        home: ReplicaNode | None = None,
    ) -> None:
        super().__init__()
        self.world = world
        self.name = name
        self.home = home
        self.address = name if home is None else home.id
        self.is_alive = True
        self.crash_at = 0
        """It vanishes when it is about to send this batch; 0: it does not."""
        document = world.document if home is None else home.replica.document
        self.cluster = document.hash
        own = None if home is None else home.id
        # As long as a token's tag: whose a timestamp is shows in what all site ids of a front end begin with.
        site = name.ljust(TAG_CHARS, "z")
        self.machine = FrontEnd(document, site=site, seed=seed, own=own, may_forward=world.is_routed)
        self.machine.preference = world.preference(name, own)
        if world.is_busy:
            self.machine.work = Work(turn_bytes=1, light_bytes=1, pause_s=BUSY_S)
        self.janitor_outcomes: dict[str, int] = {}
        self._skew_us = skew_us
        self._steady = SteadyClock(world, name, 1_000_000 * seed)
        self._replicas = replicas
        self._sent = 0
        self._on_finish: dict[int, Callable[[Outcome], None]] = {}
        self._begun: list[Begun] = []
        """Operations that begin together, in a moment."""
        self._outbox: dict[str, list[Send]] = {}
        self._wake_us: int | None = None
        self._alarm_us: int | None = None

    @property
    def now(self) -> Now:
        """One reading of the front end's clocks."""
        now_us = self.world.now_us
        wall_us = WALL_US_START + now_us + self._skew_us if self.home is None else self.home.wall_us
        return Now(self._steady.shown_s(now_us), wall_us)

    def step_clock(self, by_us: int) -> None:
        """The wall clock jumps."""
        self._skew_us += by_us
        self.world.trace(self.name, lambda: f"clock steps by {by_us} us")

    def crash(self) -> None:
        """Vanish for ever."""
        self.is_alive = False
        self._held = None
        self.world.trace(self.name, lambda: "crash, for ever")

    def start(self, operation: Operation, deadline_s: float, on_finish: Callable[[Outcome], None]) -> Begun:
        """Start an operation, perhaps with others; `on_finish` is told its outcome, perhaps before this returns."""
        begun = Begun(operation, deadline_s, on_finish, self.now)
        self._begun.append(begun)
        if not self.world.is_gathered:
            self._begin_all()
        elif len(self._begun) == 1:
            self.world.later(int(GATHER_US_MAX * self.world.chance()), self._begin_all)
        return begun

    def _begin_all(self) -> None:
        if self._held is not None:
            self.hold(self._begin_all)
            return
        waiting, self._begun = self._begun, []
        while waiting and self.is_alive:
            group = [begun for begun in waiting if begun.deadline_s == waiting[0].deadline_s]
            waiting = [begun for begun in waiting if begun not in group]
            self._begin(group)

    def _begin(self, group: list[Begun]) -> None:
        operations = [begun.operation for begun in group]
        cells = {each.object for each in operations if isinstance(each, Read | Write)}
        self.world.note("cells begun together", max(0, len(cells) - 1))
        numbers, effects = self.machine.start_all(
            operations, self.now, group[0].deadline_s, asked=group[0].asked
        )
        for begun, number in zip(group, numbers, strict=True):
            begun.number = number
            self._on_finish[number] = begun.on_finish
        self.obey(effects)

    def cancel(self, begun: Begun) -> bool:
        """The caller gives the operation up, unless it has ended; whether it was given up."""
        if not self.is_alive:
            return False
        if begun in self._begun:
            self._begun.remove(begun)
            return True
        number = begun.number
        if number not in self._on_finish:
            return False
        self.world.trace(self.name, lambda: f"operation {number} is cancelled")
        effects = self.machine.cancel(number, self.now)
        self._on_finish.pop(number)
        self.obey(effects)
        return True

    def follow(self, document: ClusterDocument) -> None:
        """The cluster has this configuration, or a later one."""
        if self._held is not None:
            self.hold(self.follow, document)
            return
        if not self.is_alive or document.number <= self.machine.epoch:
            return
        self.cluster = document.hash
        self._outbox.clear()
        self.world.trace(self.name, lambda: f"goes by configuration {document.number}")
        self.obey(self.machine.reconfigure(document, self.now))

    def answer_other(self, exchange: Exchange, document: ClusterDocument) -> None:
        """The replica is in another configuration, and says in which: nothing was done."""
        delay_us = self.world.network.delay_us(exchange.replica, self.address)
        if delay_us is None:
            self.time_out(exchange)
            return
        if document.number > self.machine.epoch:
            self.world.later(delay_us, self.follow, document)
        # It counts as silent, not as refusing: it may come into ours.
        answer = Unanswered(
            f"it is in configuration {document.number}",
            definite=not exchange.is_doubled,
            epoch=document.number,
        )
        self.world.later(delay_us, self._answer, exchange, answer)

    def fail_soon(self, exchange: Exchange, detail: str, *, is_definite: bool = False) -> None:
        """The driver learns after a moment that there is no reply."""
        answer = Unanswered(detail, definite=is_definite)
        self.world.later(1_000, self._answer, exchange, answer)

    def travel_back(self, exchange: Exchange, reply: BatchReply) -> None:
        """The replica's reply starts on its way."""
        world = self.world
        link = exchange.replica, self.address
        delay_us = world.network.delay_us(*link)
        if exchange.is_done:
            return
        deadline_us = exchange.sent_us + world.exchange_timeout_us
        if delay_us is None or world.now_us + delay_us >= deadline_us:
            self.time_out(exchange)
            return
        if world.has_codec:
            reply = _decode_reply(msgpack.encode(reply))
        world.carry(link, delay_us, self._answer, exchange, reply)

    def time_out(self, exchange: Exchange) -> None:
        """When its time is over, the exchange counts as unanswered, unless it was answered."""
        deadline_us = exchange.sent_us + self.world.exchange_timeout_us
        answer = Unanswered("no reply in time")
        self.world.later(max(0, deadline_us - self.world.now_us), self._answer, exchange, answer)

    def _answer(self, exchange: Exchange, answer: BatchReply | Unanswered) -> None:
        if exchange.is_done or not self.is_alive:
            return
        if self._held is not None:
            self.hold(self._answer, exchange, answer)
            return
        exchange.is_done = True
        if self.world.is_traced:
            self.world.trace(self.name, lambda: shown_answer(exchange.replica, answer))
        self.obey(self.machine.deliver(exchange.replica, exchange.tokens, answer, exchange.sent, self.now))

    def obey(self, effects: Effects) -> None:
        """Do what the machine wants done."""
        if not self.is_alive:
            return
        if effects.sends:
            self._put(effects.sends)
        if not self.is_alive:
            return
        for ask in effects.forwards:
            send_forwarded(self, ask, self._replicas[ask.replica])
        self._schedule(effects.wake_at_s)
        for finish in effects.finished:
            on_finish = self._on_finish.pop(finish.number, None)
            if on_finish is not None:
                on_finish(finish.outcome)

    def _put(self, sends: Iterable[Send]) -> None:
        faults, chance = self.world.network.faults, self.world.chance
        urgent = []
        for send in sends:
            if not send.lazy:
                self._outbox.setdefault(send.replica, []).append(send)
                urgent.append(send.replica)
                continue
            drawn = chance()
            if drawn >= faults.lazy_loss:
                waiting = self._outbox.setdefault(send.replica, [])
                waiting.append(send)
                if len(waiting) == 1:
                    self.world.later(int(LAZY_US_MAX * drawn), self._flush, send.replica)
            else:
                self.world.network.injected["lazy messages lost"] += 1
        for replica in urgent:
            if faults.joining and chance() < faults.joining:
                self.world.later(int(JOIN_US_MAX * chance()), self._flush, replica)
            else:
                self._flush(replica)

    def _flush(self, replica: str) -> None:
        """Send what waits for the replica, as one batch or split at random."""
        if self._held is not None:
            self.hold(self._flush, replica)
            return
        waiting = self._outbox.pop(replica, None)
        while waiting and self.is_alive:
            size = len(waiting) if self.world.chance() < 0.7 else 1
            self._dispatch(replica, waiting[:size])
            waiting = waiting[size:]

    def _dispatch(self, replica: str, sends: list[Send]) -> None:
        world = self.world
        self._sent += 1
        if self._sent == self.crash_at:
            world.network.injected["client crashes"] += 1
            world.crash_front(self)
            return
        exchange = Exchange(self, replica, sends, self.now, world.now_us)
        if world.is_traced:
            world.trace(self.name, lambda: f"-> {replica}: " + "; ".join(map(shown, exchange.batch.requests)))
        link = self.address, replica
        exchange.is_doubled = replica != self.address and world.network.is_doubled()
        is_lost = True
        for _ in range(1 + exchange.is_doubled):
            delay_us = world.network.delay_us(*link)
            if delay_us is not None:
                world.carry(link, delay_us, self._replicas[replica].receive, exchange)
                is_lost = is_lost and delay_us >= world.exchange_timeout_us
        if is_lost or link in world.network.stacks:
            self.time_out(exchange)

    def _schedule(self, wake_at_s: float | None) -> None:
        if wake_at_s is None:
            self._wake_us = None
            return
        self._wake_us = max(self.world.now_us, self._steady.moment_us(wake_at_s))
        if self._alarm_us is None or self._wake_us < self._alarm_us:
            self._set_alarm()

    def _set_alarm(self) -> None:
        assert self._wake_us is not None
        self._alarm_us = self._wake_us
        self.world.later(self._wake_us - self.world.now_us, self._ring, self._alarm_us)

    def _ring(self, alarm_us: int) -> None:
        """An alarm may be stale: only the latest time that the machine asked for counts."""
        if alarm_us != self._alarm_us:
            return
        if self._held is not None:
            self.hold(self._ring, alarm_us)
            return
        self._alarm_us = None
        if not self.is_alive or self._wake_us is None:
            return
        if self._wake_us > self.world.now_us:
            self._set_alarm()
            return
        self._wake_us = None
        self.obey(self.machine.tick(self.now))
