"""The nodes of a world: replicas that crash and commit in groups, front ends with the driver that moves their batches.

Owns what a real driver and a real server do around the two machines: batching, time-outs, group commit. It must not
know what the messages mean.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from msgspec import msgpack

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import Batch, BatchReply
from quorate.client_sdk.effects import Effects, Now, Operation, Outcome, Send, Unanswered
from quorate.client_sdk.machine import FrontEnd
from tests.sim.network import Network
from tests.sim.store import InMemoryReplica
from tests.sim.watch import Watch

WALL_US_START = 1_700_000_000_000_000
LAZY_US_MAX = 20_000
JOIN_US_MAX = 500

_decode_batch = msgpack.Decoder(Batch).decode
_decode_reply = msgpack.Decoder(BatchReply).decode


class Surroundings(Protocol):
    """What nodes ask of the world they live in."""

    network: Network
    document: ClusterDocument
    has_codec: bool
    exchange_timeout_us: int
    is_traced: bool
    now_us: int

    def later(self, delay_us: int, action: Callable[..., None], *args: Any) -> None:
        """Do it after a while."""

    def chance(self) -> float:
        """A random number in 0..1."""

    def trace(self, who: str, what: Callable[[], str]) -> None:
        """Note what happens; `what` is called only when someone listens."""


class Exchange:
    """One batch on its way and back: answered once, with the reply or with its absence."""

    __slots__ = ("batch", "front", "is_done", "is_doubled", "replica", "sent", "sent_us", "tokens")

    def __init__(self, front: "FrontNode", replica: str, sends: list[Send], sent: Now, sent_us: int) -> None:
        self.front = front
        self.replica = replica
        self.tokens = [send.token for send in sends]
        self.batch = Batch(front.cluster, tuple([send.request for send in sends]))
        self.sent = sent
        self.sent_us = sent_us
        self.is_done = False
        self.is_doubled = False


class ReplicaNode:
    """A replica and the server around it."""

    def __init__(self, world: Surroundings, replica_id: str, skew_us: int, watch: Watch) -> None:
        self.world = world
        self.id = replica_id
        self.replica = InMemoryReplica(world.document, replica_id)
        self.is_up = True
        self._skew_us = skew_us
        self._watch = watch
        self._open: list[tuple[Exchange, BatchReply]] = []

    @property
    def wall_us(self) -> int:
        """The replica's own clock."""
        return WALL_US_START + self.world.now_us + self._skew_us

    def crash(self) -> None:
        """Stop at once; requests without a committed reply get none."""
        self.is_up = False
        self.world.trace(self.id, lambda: f"crash, losing {len(self._open)} uncommitted batches")
        self.replica.store.crash()
        for exchange, _ in self._open:
            exchange.front.fail_soon(exchange, "connection reset")
        self._open.clear()

    def restart(self) -> None:
        """Come back with what was committed."""
        if not self.is_up:
            self.replica.start()
            self.is_up = True
            self.world.trace(self.id, lambda: "restart")

    def prune(self) -> None:
        """Delete history older than the retry window, as the store does now and then."""
        if not self._open:
            window_us = int(self.world.document.limits.retry_window_s * 1e6)
            self.replica.store.prune(self.wall_us - window_us)

    def receive(self, exchange: Exchange) -> None:
        """A batch arrives."""
        if not self.is_up:
            is_definite = not exchange.is_doubled and self.world.chance() < 0.5
            exchange.front.fail_soon(exchange, "connection refused", is_definite=is_definite)
            return
        batch = exchange.batch
        if self.world.has_codec:
            batch = _decode_batch(msgpack.encode(batch))
        reply = self.replica.handle(batch, self.wall_us)
        self._open.append((exchange, reply))
        commit_us_max = self.world.network.faults.commit_us_max
        if commit_us_max == 0:
            self._commit()
        elif len(self._open) == 1:
            self.world.later(int(commit_us_max * self.world.chance()), self._commit)

    def _commit(self) -> None:
        self.replica.store.commit()
        committed, self._open = self._open, []
        for exchange, reply in committed:
            self._watch.committed(self.replica, exchange.batch, reply)
            exchange.front.travel_back(exchange, reply)


class FrontNode:
    """A front end and the driver around it."""

    def __init__(
        self, world: Surroundings, name: str, skew_us: int, seed: int, replicas: dict[str, ReplicaNode]
    ) -> None:
        self.world = world
        self.name = name
        self.is_alive = True
        self.cluster = world.document.hash
        self.machine = FrontEnd(world.document, site=name, seed=seed)
        self._skew_us = skew_us
        self._mono_us = 1_000_000 * seed
        self._replicas = replicas
        self._on_finish: dict[int, Callable[[Outcome], None]] = {}
        self._outbox: dict[str, list[Send]] = {}
        self._wake_us: int | None = None
        self._alarm_us: int | None = None

    @property
    def now(self) -> Now:
        """One reading of the front end's clocks."""
        now_us = self.world.now_us
        return Now((now_us + self._mono_us) / 1e6, WALL_US_START + now_us + self._skew_us)

    def step_clock(self, by_us: int) -> None:
        """The wall clock jumps."""
        self._skew_us += by_us
        self.world.trace(self.name, lambda: f"clock steps by {by_us} us")

    def crash(self) -> None:
        """Vanish for ever."""
        self.is_alive = False
        self.world.trace(self.name, lambda: "crash, for ever")

    def start(self, operation: Operation, deadline_s: float, on_finish: Callable[[Outcome], None]) -> int:
        """Start an operation; `on_finish` is told its outcome, perhaps before this returns the operation's number."""
        number, effects = self.machine.start(operation, self.now, deadline_s)
        self._on_finish[number] = on_finish
        self._obey(effects)
        return number

    def cancel(self, number: int) -> bool:
        """The caller gives the operation up, unless it has ended; whether it was given up."""
        if not self.is_alive or number not in self._on_finish:
            return False
        self.world.trace(self.name, lambda: f"operation {number} is cancelled")
        effects = self.machine.cancel(number, self.now)
        self._on_finish.pop(number)
        self._obey(effects)
        return True

    def fail_soon(self, exchange: Exchange, detail: str, *, is_definite: bool = False) -> None:
        """The driver learns after a moment that there is no reply."""
        answer = Unanswered(detail, definite=is_definite)
        self.world.later(1_000, self._answer, exchange, answer)

    def travel_back(self, exchange: Exchange, reply: BatchReply) -> None:
        """The replica's reply starts on its way."""
        world = self.world
        delay_us = world.network.delay_us(exchange.replica, self.name)
        if exchange.is_done:
            return
        deadline_us = exchange.sent_us + world.exchange_timeout_us
        if delay_us is None or world.now_us + delay_us >= deadline_us:
            self._time_out(exchange)
            return
        if world.has_codec:
            reply = _decode_reply(msgpack.encode(reply))
        world.later(delay_us, self._answer, exchange, reply)

    def _time_out(self, exchange: Exchange) -> None:
        deadline_us = exchange.sent_us + self.world.exchange_timeout_us
        answer = Unanswered("no reply in time")
        self.world.later(max(0, deadline_us - self.world.now_us), self._answer, exchange, answer)

    def _answer(self, exchange: Exchange, answer: BatchReply | Unanswered) -> None:
        if exchange.is_done or not self.is_alive:
            return
        exchange.is_done = True
        if self.world.is_traced:
            self.world.trace(self.name, lambda: _shown_answer(exchange, answer))
        self._obey(self.machine.deliver(exchange.replica, exchange.tokens, answer, exchange.sent, self.now))

    def _obey(self, effects: Effects) -> None:
        if not self.is_alive:
            return
        if effects.sends:
            self._put(effects.sends)
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
        for replica in urgent:
            if faults.joining and chance() < faults.joining:
                self.world.later(int(JOIN_US_MAX * chance()), self._flush, replica)
            else:
                self._flush(replica)

    def _flush(self, replica: str) -> None:
        """Send what waits for the replica, as one batch or split at random."""
        waiting = self._outbox.pop(replica, None)
        if waiting is None or not self.is_alive:
            return
        while waiting:
            size = len(waiting) if self.world.chance() < 0.7 else 1
            self._dispatch(replica, waiting[:size])
            waiting = waiting[size:]

    def _dispatch(self, replica: str, sends: list[Send]) -> None:
        world = self.world
        exchange = Exchange(self, replica, sends, self.now, world.now_us)
        if world.is_traced:
            world.trace(self.name, lambda: f"-> {replica}: " + "; ".join(map(shown, exchange.batch.requests)))
        exchange.is_doubled = world.network.is_doubled()
        is_lost = True
        for _ in range(1 + exchange.is_doubled):
            delay_us = world.network.delay_us(self.name, replica)
            if delay_us is not None:
                world.later(delay_us, self._replicas[replica].receive, exchange)
                is_lost = is_lost and delay_us >= world.exchange_timeout_us
        if is_lost:
            self._time_out(exchange)

    def _schedule(self, wake_at_s: float | None) -> None:
        if wake_at_s is None:
            self._wake_us = None
            return
        self._wake_us = max(self.world.now_us, int(wake_at_s * 1e6) - self._mono_us + 1)
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
        self._alarm_us = None
        if not self.is_alive or self._wake_us is None:
            return
        if self._wake_us > self.world.now_us:
            self._set_alarm()
            return
        self._wake_us = None
        self._obey(self.machine.tick(self.now))


def _shown_answer(exchange: Exchange, answer: BatchReply | Unanswered) -> str:
    if isinstance(answer, Unanswered):
        return f"<- {exchange.replica}: {answer.detail}"
    return f"<- {exchange.replica}: " + "; ".join(map(shown, answer.replies))


def shown(value: Any) -> str:
    """A message, short: without defaults and package names."""
    fields = []
    for name, default in zip(value.__struct_fields__, _defaults(type(value)), strict=True):
        got = getattr(value, name)
        if got != default:
            fields.append(f"{name}={shown(got) if hasattr(got, '__struct_fields__') else _short(got)}")
    return f"{type(value).__name__}({', '.join(fields)})"


def _defaults(kind: Any) -> list[Any]:
    given = list(kind.__struct_defaults__)
    return [...] * (len(kind.__struct_fields__) - len(given)) + given


def _short(value: Any) -> str:
    if isinstance(value, tuple | list):
        inner = (shown(each) if hasattr(each, "__struct_fields__") else _short(each) for each in value)
        return "(" + ", ".join(inner) + ")"
    # Of a timestamp the last digits tell it from others.
    if isinstance(value, str) and len(value) > 20 and value[14:15] == ".":
        return value[8:]
    return repr(value)
