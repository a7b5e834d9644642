"""A world moved by hand whose history the checkers judge: what the schedules of planted mistakes are played in.

Owns more ways to move packets than `tests.sim.schedules.hand`, and the judging. It must not know any schedule.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Final

from msgspec import UNSET, UnsetType

from quorate.adts.log import Value
from quorate.adts.types.catalogue import adt_of
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.limits import DEFAULTS, Capacity, Limits
from quorate.api_specs.messages import Accept, Batch, Changed, Collected, Reply, Request
from quorate.client_sdk.protocol.core.values import CompareAndSet, Dequeue, Done, Operation, Outcome, Write
from quorate.quorums.choices.choice import Ordering
from quorate.replica.data_folder.replacement import agreed, union
from quorate.replica.protocol import catch_up
from quorate.replica.protocol.catch_up import Lack
from quorate.replica.protocol.log import Effect, PutReservation
from quorate.simulation.history import Call, History
from quorate.simulation.judging.checkers import check_drained, check_object
from quorate.simulation.memory.replica import UNBOUNDED, InMemoryReplica
from quorate.simulation.memory.store import MemoryStore
from quorate.simulation.violation import Violation
from quorate.simulation.world.catching import lacking
from quorate.timestamps.clock import Now
from tests.sim.schedules.hand import EXACT, Hand, Packet

MAJORITIES: Final = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
QUEUE: Final = "queue/q"
STEPS_MAX: Final = 2_000
PAGE: Final = 100


class Played(Hand):
    """A world moved by hand whose history is judged."""

    def __init__(
        self,
        choice: dict[str, tuple[int, int]] = MAJORITIES,
        *,
        clock: ClockSettings = EXACT,
        ordering: Ordering = "clock",
        limits: Limits = DEFAULTS,
        types: dict[str, str] | UnsetType = UNSET,
        capacity: Capacity = UNBOUNDED,
        hedge_s: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        super().__init__(
            choice,
            clock=clock,
            ordering=ordering,
            limits=limits,
            types=types,
            capacity=capacity,
            hedge_s=hedge_s,
        )
        self.history = History()
        self.slept_us = 0
        self.stood_still_us: Final = Counter[str]()
        """By how much front ends' monotonic clocks are late."""
        self.down: Final = set[str]()
        """Replicas that get nothing of what `beside` moves."""
        self._open: dict[str, tuple[Operation, list[Call]]] = {}

    def start(self, front: str, operation: Operation, name: str, *, is_noted: bool = True) -> None:
        """Start an operation, or (with the name of one that has no outcome) another attempt of it; `is_noted` False: it
        does not belong to the history, for it changes nothing."""
        if is_noted and name not in self._open:
            self._open[name] = operation, self.history.invoke(operation, name)
        super().start(front, operation, name)

    def start_together(self, front: str, operations: dict[str, Operation]) -> None:
        """Start operations at one moment."""
        for name, operation in operations.items():
            self._open[name] = operation, self.history.invoke(operation, name)
        self.start_all(front, operations)

    def ended(self, name: str, outcome: Outcome) -> None:
        """Note it in the history."""
        if name in self._open:
            self.history.finish(*self._open.pop(name), outcome)

    def reach(self, front: str, *replicas: str) -> None:
        """What the front end has sent to these replicas arrives; the answers are lost."""
        ready = [each for each in self.packets if each.front == front and each.send.replica in replicas]
        self.packets = [packet for packet in self.packets if packet not in ready]
        for packet in ready:
            batch = Batch(self.document.hash, packet.send.requests)
            self.replicas[packet.send.replica].exchange(batch, self._now(packet.send.replica).wall_us)

    def go_until(self, kind: type, front: str, *replicas: str) -> None:
        """Packets between these travel, and time passes, until the front end has a request of this kind on its way."""
        for _ in range(STEPS_MAX):
            if any(isinstance(each.send.request, kind) for each in self.of(front)):
                return
            self.move(front, *replicas)
        raise AssertionError(f"{front} sends no {kind.__name__}")

    def move(self, front: str, *replicas: str) -> None:
        """What is on its way to the next of these replicas arrives; when nothing is, time passes for this front end."""
        ready = [each.send.replica for each in self.of(front) if each.send.replica in replicas]
        if ready:
            self.carry(front, ready[0])
            return
        wake_s = self._wakes[front]
        assert wake_s is not None, f"{front} waits for nothing"
        self._pass_until(front, wake_s)
        self._obey(front, self._fronts[front].tick(self._now(front)))

    def everywhere(self, front: str, operation: Operation) -> None:
        """An operation whose first messages reach all replicas, and end it."""
        self.start(front, operation, f"{front} {len(self._names)}")
        self.carry(front, *self.replicas)

    def fence(self, *replicas: str) -> None:
        """A Deq begins, fences these replicas at their first entries, and its front end vanishes."""
        front = f"gone{len(self._fronts)}"
        self.start(front, Dequeue(QUEUE), front, is_noted=False)
        self.reach(front, *replicas)
        self.vanish(front)

    def vanish(self, front: str) -> None:
        """The front end crashes, and what it sent is lost; its operations have no outcome."""
        self.drop(front)
        self.lazies = [packet for packet in self.lazies if packet.front != front]
        self._wakes[front] = None
        for (owner, number), name in list(self._names.items()):
            if owner == front and name not in self.outcomes:
                del self._names[owner, number]

    def carry_only(self, kind: type[Request], front: str, *replicas: str) -> None:
        """Of what the front end has sent to these replicas, only requests of this kind arrive, and are answered."""
        for replica in replicas:
            chosen = [
                each
                for each in self.of(front)
                if each.send.replica == replica and isinstance(each.send.request, kind)
            ]
            assert chosen, f"no {kind.__name__} is on its way from {front} to {replica}"
            self.packets = [packet for packet in self.packets if packet not in chosen]
            for packet in chosen:
                self._exchange(packet)

    def lose(self, kind: type[Request]) -> None:
        """All requests of this kind that are on their way are lost."""
        self.packets = [each for each in self.packets if not isinstance(each.send.request, kind)]

    @contextmanager
    def stopped(self, front: str) -> Iterator[None]:
        """The front end's process is stopped meanwhile: it hears nothing, and not of the time."""
        wake_s, self._wakes[front] = self._wakes[front], None
        ended = {key: name for key, name in self._names.items() if key[0] == front}
        self._names = {key: name for key, name in self._names.items() if key not in ended}
        yield
        self._names |= ended
        self._wakes[front] = wake_s

    def grow_old(self) -> None:
        """All that was done so far is older than a retry window."""
        self.sleep(int((self.document.memory_s + 1) * 1e6))

    def finish(self, name: str, front: str, *replicas: str) -> None:
        """The operation goes on to its end, with these replicas; what is on its way to others stays there."""
        for _ in range(STEPS_MAX):
            if name in self.outcomes:
                return
            self.move(front, *replicas)
        raise AssertionError(f"{name} has no outcome")

    def must_be_known(self, name: str) -> None:
        """Violation unless the operation took effect: nothing was lost of late, so its outcome could be learned."""
        if not isinstance(self.outcomes[name], Done):
            raise Violation(f"on a healthy cluster {name} ends with {self.outcomes[name]}")

    def forward_known(self, front: str, operation: Operation) -> None:
        """An operation for which everything arrives; Violation unless it takes effect."""
        name = f"{front} {len(self._names)}"
        self.start(front, operation, name)
        try:
            self.settle()
        except AssertionError as error:
            raise Violation(f"on a healthy cluster {name} has no end") from error
        self.must_be_known(name)

    def forget(self, front: str, name: str) -> None:
        """The front end forgets the object, as one that is idle longest."""
        caches = self._fronts[front]._caches
        del caches._recent[name]
        assert caches.held(name) is None, "nothing is under way on it"

    def beside(self, front: str, operation: Operation, name: str, *, others: Operation) -> Outcome:
        """The outcome of an operation while two other callers of the front end try theirs again and again; a message takes half a millisecond."""
        trying, number = list[str](), 0
        self.start(front, operation, name, is_noted=False)
        for _ in range(10 * STEPS_MAX):
            if name in self.outcomes:
                return self.outcomes[name]
            trying = [each for each in trying if each not in self.outcomes]
            while len(trying) < 2:
                number += 1
                trying.append(f"{name} beside {number}")
                self.start(front, others, trying[-1], is_noted=False)
            if not self.packets:
                self.sleep()
                continue
            self.sleep(500)
            if (packet := self.packets.pop(0)).send.replica not in self.down:
                self._exchange(packet)
        raise AssertionError(f"{name} has no outcome")

    def must_have_taken(self, begun_us: int, most_us: int) -> None:
        """Violation unless no more time than this has passed."""
        if self._now_us - begun_us > most_us:
            raise Violation(f"on a healthy cluster it took {(self._now_us - begun_us) / 1e6:.3f} s")

    def catch_up(self, replica: str, other: str) -> None:
        """The replica, which has just started, looks at all changes of the other one, and gets what it may."""
        self.ask_what_is_missing(replica, other)()

    def ask_what_is_missing(self, replica: str, other: str) -> Callable[[], None]:
        """The replica, which has just started, asks for what it may get of the other one; the answers arrive when this is called."""
        here, progress, answers = self.replicas[replica], catch_up.resumed(0), list[tuple[Lack, Collected]]()
        asked_at = self._now(replica)
        # The first pass learns of the latest change, the second looks at all up to there, the third gets decisions.
        for _ in range(3):
            progress.begin()
            asked = progress.request(PAGE)
            changed = self._told(other, asked)
            assert isinstance(changed, Changed)
            assert not changed.more
            for lack in progress.hear(asked, changed, here.store):
                told = self._told(other, lack.request(here.store, PAGE))
                assert isinstance(told, Collected)
                answers.append((lack, told))

        def arrive() -> None:
            for lack, told in answers:
                if catch_up.is_timely(asked_at, self._now(replica), self.document.limits):
                    handle = partial(self._told, replica)
                    apply = partial(_apply, here.store)
                    catch_up.install(lack, told, here.store, handle, here.with_room, apply)

        return arrive

    def answer_late(self, front: str, replica: str) -> Callable[[], None]:
        """The replica answers now what the front end has asked it; the answer arrives when this is called. All else that the front end has sent
        is lost."""
        (asked,) = [packet for packet in self.of(front) if packet.send.replica == replica]
        arrive = self.answered(asked)
        self.drop(front)
        return arrive

    def answered(self, asked: Packet) -> Callable[[], None]:
        """The replica answers this now; the answer arrives when this is called."""
        self.packets.remove(asked)
        front, replica = asked.front, asked.send.replica
        batch = Batch(self.document.hash, asked.send.requests)
        answer = self.replicas[replica].exchange(batch, self._now(replica).wall_us)

        def arrive() -> None:
            tokens = [asked.send.token for _ in asked.send.requests]
            now = self._now(front)
            self._obey(front, self._fronts[front].deliver(replica, tokens, answer, asked.sent, now))

        return arrive

    def stand_still(self, front: str, us: int) -> None:
        """The front end's machine is suspended for so long: of that its wall clock tells alone."""
        self.sleep(us)
        self.stood_still_us[front] += us

    def compare_in_vain_again(self, key: str, old: Value, new: Value) -> None:
        """Put(old) has reached r1 only. A compare-and-set under an idempotency key finds it there, and r1 alone accepts `new` in its place. It is
        repeated at r2 and r3, by "repeat", and fails: by that decision `new` never took effect."""
        self.start("puts", Write(key, old), "put")
        self.reach("puts", "r1")
        self.vanish("puts")
        keyed = CompareAndSet(key, old, new, key="k")
        self.start("first", keyed, "first", is_noted=False)  # As the repeat is told.
        self.go_until(Accept, "first", "r1", "r2")
        self.reach("first", "r1")
        self.vanish("first")
        self.at("repeat", keyed, "r2", "r3")

    def be_level(self) -> None:
        """Violation where one replica lacks what it may get from another."""
        nodes = [SimpleNamespace(id=id, replica=replica) for id, replica in self.replicas.items()]
        if lacked := lacking(nodes):  # type: ignore[arg-type]
            raise Violation(min(lacked))

    def _told(self, replica: str, request: Request) -> Reply:
        batch = Batch(self.document.hash, (request,))
        return self.replicas[replica].exchange(batch, self._now(replica).wall_us).replies[0]

    def replace(self, replica: str) -> None:
        """The replica's disk is lost, and its new store is made from those of all the others."""
        lost = self.replicas.pop(replica)
        stores = [other.store for other in self.replicas.values()]
        made = InMemoryReplica(self.document, replica)
        for name in lost.store.objects():
            _apply(made.store, name, union(name, stores))
        for name, key in sorted({held for store in stores for held in store.reserved()}):
            some = [store.reservation(name, key) for store in stores]
            made.store.apply(PutReservation(name, key, agreed(some, some)))
        made.store.commit()
        self.replicas = {id: self.replicas.get(id, made) for id in self.document.votes}

    def of(self, front: str) -> list[Packet]:
        """What the front end has on its way."""
        return [packet for packet in self.packets if packet.front == front]

    def at(self, front: str, operation: Operation, *replicas: str) -> None:
        """An operation to its end, which reaches only these replicas; what others have on their way stays there."""
        name = f"{front} {len(self._names)}"
        self.start(front, operation, name)
        self.finish(name, front, *replicas)
        self.drop(front)

    def judge(self) -> None:
        """Empty the queue if there is one, and check every history; Violation when a promise was broken."""
        while any(adt_of(name) == "queue" for name in self.history.calls) and self.ask("end", Dequeue(QUEUE)):
            pass
        for name, calls in self.history.calls.items():
            check_object(name, calls, is_exact=True)
            if adt_of(name) == "queue":
                check_drained(name, calls)

    def _now(self, front: str = "") -> Now:
        now = super()._now(front)
        mono_s = now.mono_s - self.stood_still_us[front] / 1e6
        return Now(mono_s, now.wall_us + self.slept_us)

    def _pass_until(self, front: str, mono_s: float) -> None:
        super()._pass_until(front, mono_s + self.stood_still_us[front] / 1e6)


def _apply(store: MemoryStore, name: str, effects: Iterable[Effect]) -> None:
    """Write and commit what no request brought."""
    del name
    for effect in effects:
        store.apply(effect)
    store.commit()
