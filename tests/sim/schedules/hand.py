"""A world moved by hand, for schedules that chance meets too seldom: each packet travels when the test says so.

Owns the packets. Time stands still but for a microsecond per action, and for `settle`, which lets everything run.
"""

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from quorate.api_specs.checking import check_batch
from quorate.api_specs.cluster import ChoiceRule, ClockSettings, ClusterDocument, ReplicaInfo, checked
from quorate.api_specs.limits import DEFAULTS, Capacity, Limits
from quorate.api_specs.messages import Batch
from quorate.client_sdk.protocol.core.answer_times import AnswerTimes
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.preference import Preference
from quorate.client_sdk.protocol.core.rounds import SOON_S
from quorate.client_sdk.protocol.core.values import (
    CollectTombstone,
    Done,
    Effects,
    Operation,
    Outcome,
    Send,
    Unanswered,
)
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.gc.pruning import AGAIN
from quorate.quorums.choices.choice import Ordering
from quorate.simulation.memory.replica import UNBOUNDED, InMemoryReplica
from quorate.simulation.world.clocks import WALL_US_START
from quorate.timestamps.clock import Now

STEPS_MAX = 2_000
EXACT = ClockSettings(front_end_error_s=0.0)


class Packet(Struct):
    """A request on its way."""

    front: str
    send: Send
    sent: Now


class Hand:
    """Three replicas r1, r2, r3 with a given choice for queues; front ends come to be when they are first named.

    `clock`: as the document declares; with ClockSettings() front ends measure theirs, which is off by `wall_errors_us`.
    `lazies` are the lazy messages, which travel only by `carry_commits`: nothing may depend on them.
    """

    def __init__(
        self,
        queue_choice: dict[str, tuple[int, int]],
        *,
        collect: bool = True,
        ordering: Ordering = "clock",
        clock: ClockSettings = EXACT,
        limits: Limits = DEFAULTS,
        types: dict[str, str] | UnsetType = UNSET,
        capacity: Capacity = UNBOUNDED,
        rules: tuple[ChoiceRule, ...] = (),
        hedge_s: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.document = checked(
            ClusterDocument(
                "hand",
                tuple(ReplicaInfo(name, f"http://{name}:1") for name in ("r1", "r2", "r3")),
                (*rules, *_rules(queue_choice, ordering, collect=collect)),
                clock,
                limits,
                types,
            )
        )
        self.replicas = {name: InMemoryReplica(self.document, name, capacity) for name in self.document.votes}
        self.packets: list[Packet] = []
        self.lazies: list[Packet] = []
        self.outcomes: dict[str, Outcome] = {}
        self._hedge_s: Final = hedge_s
        """As a rule all replicas are asked at once, and the test says whom messages reach."""
        self._fronts: dict[str, FrontEnd] = {}
        self._wakes: dict[str, float | None] = {}
        self._names: dict[tuple[str, int], str] = {}
        self.wall_errors_us: dict[str, int] = {}
        """Of front ends and replicas, by name."""
        self.drifts: dict[str, float] = {}
        """How far true time runs ahead of a front end's monotonic clock, as a share of what that has counted."""
        self._now_us = 0
        self.step_us = 1
        """How long an action takes."""

    @property
    def now_us(self) -> int:
        """The present moment."""
        return self._now_us

    def start(self, front: str, operation: Operation, name: str) -> None:
        """Start an operation; its outcome will be in `outcomes[name]`."""
        self.start_all(front, {name: operation})

    def start_all(self, front: str, operations: dict[str, Operation], within_s: float = 20.0) -> None:
        """Start operations at one moment."""
        if front not in self._fronts:
            seed = len(self._fronts)
            machine = self._fronts[front] = FrontEnd(self.document, site=front, seed=seed)
            machine.preference = Preference(None, self.document.votes, AnswerTimes(self._hedge_s))
        machine = self._fronts[front]
        numbers, effects = machine.start_all(list(operations.values()), self._now(front), within_s)
        self._names.update(zip(((front, number) for number in numbers), operations, strict=True))
        self._obey(front, effects)

    def cancel(self, front: str, name: str) -> None:
        """The caller gives the operation up: it has no outcome."""
        place = next(each for each, known in self._names.items() if known == name)
        del self._names[place]
        self._obey(front, self._fronts[front].cancel(place[1], self._now(front)))

    def fail(self, front: str, *replicas: str, definite: bool, epoch: int | None = None) -> None:
        """What the front end has sent so far, to these replicas or to all, gets no answer; `definite`: no connection could be made, or (`epoch`) the
        replica is in that configuration, another one."""
        chosen = replicas or self.replicas
        gone = [each for each in self.packets if each.front == front and each.send.replica in chosen]
        self.packets = [each for each in self.packets if each not in gone]
        for packet in gone:
            answer = Unanswered(f"{packet.send.replica}: no connection", definite=definite, epoch=epoch)
            tokens = [packet.send.token for _ in packet.send.requests]
            now = self._now(front)
            effects = self._fronts[front].deliver(packet.send.replica, tokens, answer, packet.sent, now)
            self._obey(front, effects)

    def carry(self, front: str, *replicas: str) -> None:
        """What the front end has sent to these replicas so far arrives, one replica after another, and is answered."""
        for replica in replicas:
            ready = [each for each in self.packets if each.front == front and each.send.replica == replica]
            assert ready, f"nothing is on its way from {front} to {replica}"
            self.packets = [packet for packet in self.packets if packet not in ready]
            for packet in ready:
                self._exchange(packet)

    def arrive(self, front: str, *, is_heard: bool = True) -> None:
        """All that the front end has sent so far arrives, and what it sends then is under way; unless the answers are lost."""
        sent = [packet for packet in self.packets if packet.front == front]
        self.drop(front)
        for packet in sent:
            self._exchange(packet, is_heard=is_heard)

    def carry_commits(self, front: str, *replicas: str) -> None:
        """What the front end sent lazily to these replicas arrives, and what it would still say; all else of it is lost."""
        mine = [each for each in self.lazies if each.front == front]
        unsaid = self._fronts[front].last_sends() if front in self._fronts else ()
        mine += [Packet(front, send, self._now(front)) for send in unsaid]
        self.lazies = [each for each in self.lazies if each.front != front]
        for packet in mine:
            if packet.send.replica in replicas:
                self._exchange(packet)

    def carry_until(self, name: str, front: str, *replicas: str) -> None:
        """Only packets between the front end and these replicas travel, until the operation has its outcome. Where it waits for
        others, time passes until it waits no longer."""
        for _ in range(STEPS_MAX):
            if name in self.outcomes:
                return
            ready = (each.send.replica for each in self.packets if each.front == front)
            if (target := next((replica for replica in ready if replica in replicas), None)) is not None:
                self.carry(front, target)
                continue
            wake_s = self._wakes[front]
            assert wake_s is not None, f"{front} waits for nothing"
            self._pass_until(front, wake_s)
            self._obey(front, self._fronts[front].tick(self._now(front)))
        raise AssertionError(f"{name} has no outcome: {self.packets}")

    def drop(self, front: str) -> None:
        """What the front end has sent so far is lost."""
        self.packets = [packet for packet in self.packets if packet.front != front]

    def wake(self, front: str) -> None:
        """Time passes until the front end sends something again."""
        for _ in range(STEPS_MAX):
            if any(packet.front == front for packet in self.packets):
                return
            wake_s = self._wakes[front]
            assert wake_s is not None, f"{front} waits for nothing"
            self._pass_until(front, wake_s)
            self._obey(front, self._fronts[front].tick(self._now(front)))
        raise AssertionError(f"{front} sends nothing")

    def settle(self) -> None:
        """All packets arrive, and time passes, until every operation has its outcome."""
        for _ in range(STEPS_MAX):
            if self.packets:
                self._exchange(self.packets.pop(0))
            elif self.outcomes.keys() >= set(self._names.values()) and not any(
                map(self._has_turn, self._wakes)
            ):
                return
            else:
                self.sleep()
        raise AssertionError(f"not settled: {self.outcomes}")

    def _has_turn(self, front: str) -> bool:
        """Whether the front end goes on in the next turn of its event loop: nobody settles in between."""
        wake_s = self._wakes[front]
        return wake_s is not None and wake_s <= self._now(front).mono_s + SOON_S

    def ask(self, front: str, operation: Operation) -> Any:
        """The result of an operation for which everything arrives."""
        name = f"{front}: {operation} at {self._now_us}"
        self.start(front, operation, name)
        self.settle()
        return self.result(name)

    def ripen(self, name: str) -> None:
        """The key's deletion, which is old, is decided, and held by all replicas for a window."""
        assert self.ask("janitor", CollectTombstone(name)) is False
        self.carry_commits("janitor", *self.replicas)
        self.sleep(int(self.document.memory_s * AGAIN * 1e6))

    def bury(self, name: str) -> None:
        """The deletion, which is ripe, is forgotten by all replicas."""
        assert self.ask("janitor", CollectTombstone(name)) is True
        assert all(replica.store.state(name) is None for replica in self.replicas.values())

    def result(self, name: str) -> Any:
        """The result of an operation that took effect."""
        outcome = self.outcomes[name]
        assert isinstance(outcome, Done), outcome
        return outcome.result

    def cache(self, front: str, name: str) -> LogCache:
        """What the front end knows of an object."""
        return self._fronts[front].cache_of(name)

    def counters(self, front: str) -> dict[str, int]:
        """What the front end has counted."""
        return self._fronts[front].counts.events

    def ended(self, name: str, outcome: Outcome) -> None:
        """Told of every operation that ends."""

    def _now(self, front: str = "") -> Now:
        """The clocks of a front end, or of a replica, at a moment of its own."""
        self._now_us += self.step_us
        wall_us = WALL_US_START + self._now_us + self.wall_errors_us.get(front, 0)
        return Now(self._now_us / (1e6 * (1 + self.drifts.get(front, 0.0))), wall_us)

    def _pass_until(self, front: str, mono_s: float) -> None:
        """Time passes until the front end's monotonic clock shows this."""
        self._now_us = max(self._now_us, int(mono_s * 1e6 * (1 + self.drifts.get(front, 0.0))))

    def sleep(self, us: int = 0) -> None:
        """Time passes: so long, or until a front end wants to be woken."""
        if us:
            self._now_us += us
            return
        front, wake_s = min(
            ((front, wake) for front, wake in self._wakes.items() if wake is not None),
            key=lambda each: each[1],
        )
        self._pass_until(front, wake_s)
        self._obey(front, self._fronts[front].tick(self._now(front)))

    def _exchange(self, packet: Packet, *, is_heard: bool = True) -> None:
        batch = Batch(self.document.hash, packet.send.requests)
        assert not check_batch(batch, self.document.limits).refused
        name = packet.send.replica
        stepped_us = self.wall_errors_us.get(name, 0)
        reply = self.replicas[name].exchange(batch, self._now(name).wall_us, stepped_us)
        if not is_heard:
            return
        machine = self._fronts[packet.front]
        tokens = [packet.send.token for _ in packet.send.requests]
        self._obey(
            packet.front,
            machine.deliver(packet.send.replica, tokens, reply, packet.sent, self._now(packet.front)),
        )

    def _obey(self, front: str, effects: Effects) -> None:
        self._wakes[front] = effects.wake_at_s
        sent = self._now(front)
        self.packets += [Packet(front, send, sent) for send in effects.sends if not send.lazy]
        self.lazies += [Packet(front, send, sent) for send in effects.sends if send.lazy]
        for finish in effects.finished:
            name = self._names[front, finish.number]
            self.outcomes[name] = finish.outcome
            self.ended(name, finish.outcome)


def _rules(
    queue_choice: dict[str, tuple[int, int]], ordering: Ordering, *, collect: bool
) -> tuple[ChoiceRule, ...]:
    """The queue's; cells keep majorities, which meet where blind operations read first."""
    queues = ChoiceRule("queue/*", queue_choice, ordering, collect=collect)
    if ordering == "clock":
        return (queues,)
    written, set_ = {"Write/Ok": (2, 2)}, {"Put/Ok": (2, 2), "Delete/Ok": (2, 2)}
    return (queues, ChoiceRule("register/*", written, ordering), ChoiceRule("dictionary/*", set_, ordering))
