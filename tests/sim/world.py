"""A world in virtual time: replicas, front ends, callers, a network and faults, all moved by one seed.

Owns the schedule of what happens when. It must not know what is right: it fills a history for the checkers.
"""

import random
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

from msgspec.structs import replace

from quorate.client_sdk.effects import (
    Dequeue,
    Done,
    Failed,
    Items,
    Operation,
    Outcome,
    QueueSize,
    Read,
)
from tests.sim.history import Call, History
from tests.sim.network import Network
from tests.sim.nodes import FrontNode, ReplicaNode, shown
from tests.sim.scenario import KEYS, Caller, Scenario
from tests.sim.watch import Watch

EVENTS_MAX: Final = 200_000
FAULT_START_US_MAX: Final = 300_000
DRAIN_DEADLINE_S: Final = 4.0
PRUNE_EVERY_US: Final = 500_000
KEY_US_MAX: Final = 3_500_000
"""How long after its first attempt a keyed operation may be repeated: below the scenarios' `consumed_lag_s`."""


class Stuck(AssertionError):
    """The world did not come to its end: an operation never finished, or a healthy cluster gave no answer."""


class World:
    """One run of a scenario. `run` fills `history`; what replicas may never do is checked on the way."""

    def __init__(self, scenario: Scenario, trace: Callable[[str], None] | None = None) -> None:
        self.scenario = scenario
        self.document = scenario.document
        self.has_codec = scenario.has_codec
        self.exchange_timeout_us = int(scenario.exchange_timeout_s * 1e6)
        self.now_us = 0
        self.history = History()
        self.watch = Watch(scenario.document)
        self.counters: dict[str, int] = {}
        self._rng = random.Random(f"world {scenario.seed}")
        self.chance = self._rng.random
        self.network = Network(scenario.faults, self._rng)
        self._trace = trace
        self.is_traced = trace is not None
        self._is_healed = False
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = count(1)
        self._running = 0
        """Processes that are not done yet."""
        self.replicas = {
            replica.id: ReplicaNode(
                self, replica.id, self._skew_us(scenario.faults.replica_skew_us), self.watch
            )
            for replica in self.document.replicas
        }
        self.fronts: list[FrontNode] = []
        self._processes: list[Process] = []

    def began(self) -> None:
        """A process is there that has something to do."""
        self._running += 1

    def ended(self) -> None:
        """A process is done."""
        self._running -= 1

    def later(self, delay_us: int, action: Callable[..., None], *args: Any) -> None:
        """Do it after a while."""
        heappush(self._events, (self.now_us + delay_us, next(self._sequence), action, args))

    def trace(self, who: str, what: Callable[[], str]) -> None:
        """Note what happens, for a reader."""
        if self._trace is not None:
            self._trace(f"{self.now_us / 1e3:10.3f} ms  {who:4} {what()}")

    def run(self) -> None:
        """The callers' operations under faults; then everything heals and a fresh front end looks at what is left."""
        scenario = self.scenario
        for _ in range(scenario.fronts):
            self._add_front(scenario.processes, scenario.operations)
        self._plan_faults()
        self._run_until_done(self._processes)
        self._heal()
        self._drain()
        for front in self.fronts:
            for name, times in front.machine.counters.items():
                self.counters[name] = self.counters.get(name, 0) + times

    def _skew_us(self, most_us: int) -> int:
        return int(self._rng.uniform(-most_us, most_us))

    def _add_front(self, processes: int, operations: int) -> None:
        number = len(self.fronts) + 1
        skew_us = self._skew_us(self.scenario.faults.client_skew_us)
        front = FrontNode(self, f"f{number}", skew_us, number, self.replicas)
        self.fronts.append(front)
        for letter in "abcdefgh"[:processes]:
            process = Process(self, front, f"f{number}{letter}", operations)
            self._processes.append(process)
            self.later(int(self.scenario.think_us * self.chance()), process.next)

    def _run_until_done(self, processes: "list[Process]") -> None:
        """Until every process has finished; bounded, for a machine that never answers is a failure."""
        events = self._events
        for _ in range(EVENTS_MAX):
            if not self._running:
                return
            if not events:
                break
            self.now_us, _, action, args = heappop(events)
            action(*args)
        waiting = [process.who for process in processes if not process.is_done]
        raise Stuck(
            f"{waiting} never got an answer ({self.now_us / 1e6:.1f} s, {len(self._events)} events left)"
        )

    def _plan_faults(self) -> None:
        faults, rng = self.scenario.faults, self._rng
        replicas = list(self.replicas)
        nodes = [*replicas, *(front.name for front in self.fronts)]
        for _ in range(faults.slow_links):
            pair = rng.choice(replicas), rng.choice(self.fronts).name
            self._for_a_while(self.network.slow, self.network.speed, *pair)
        for _ in range(faults.cuts):
            one, other = rng.choice(replicas), rng.choice(self.fronts).name
            way = (one, other) if rng.random() < 0.5 else (other, one)
            self._for_a_while(self.network.cut, self.network.mend, [way])
        for _ in range(faults.partitions):
            side = set(rng.sample(nodes, rng.randint(1, len(nodes) - 1)))
            apart = [(one, other) for one in nodes for other in nodes if (one in side) != (other in side)]
            self._for_a_while(self.network.cut, self.network.mend, apart)
        for _ in range(faults.crashes):
            replica = self.replicas[rng.choice(replicas)]
            self._for_a_while(replica.crash, replica.restart)
        for _ in range(faults.client_crashes):
            start_us = int(rng.uniform(0, FAULT_START_US_MAX))
            self.later(start_us, self._unless_healed, self._crash_front, rng.choice(self.fronts))
        for _ in range(faults.clock_steps):
            by_us = self._skew_us(2 * faults.client_skew_us)
            self.later(int(rng.uniform(0, FAULT_START_US_MAX)), rng.choice(self.fronts).step_clock, by_us)
        if self.scenario.prunes:
            self.later(PRUNE_EVERY_US, self._prune)

    def _for_a_while(self, begin: Callable[..., None], end: Callable[..., None], *args: Any) -> None:
        """From some moment on, for 3 ms to 2 s (short stretches as often as long ones)."""
        start_us = int(self._rng.uniform(0, FAULT_START_US_MAX))
        self.later(start_us, self._unless_healed, begin, *args)
        self.later(start_us + int(3_000 * 600 ** self._rng.random()), end, *args)

    def _unless_healed(self, fault: Callable[..., None], *args: Any) -> None:
        """A fault that would begin only after everything healed does not."""
        if not self._is_healed:
            fault(*args)

    def _crash_front(self, front: FrontNode) -> None:
        """The front end vanishes; a new one comes in its place, and its callers go there."""
        if not front.is_alive:
            return
        front.crash()
        self._add_front(1, 5)
        for process in self._processes:
            if process.front is front and not process.is_done:
                process.move(self.fronts[-1])

    def _prune(self) -> None:
        for replica in self.replicas.values():
            replica.prune()
        self.later(PRUNE_EVERY_US, self._prune)

    def _heal(self) -> None:
        self.trace("", lambda: "everything heals")
        self._is_healed = True
        self.network.heal()
        for replica in self.replicas.values():
            replica.restart()

    def _drain(self) -> None:
        """A fresh front end asks for all that is left; on a healthy cluster every answer must come."""
        self._add_front(0, 0)
        front = self.fronts[-1]
        for name in self.scenario.objects:
            if name.startswith("queue/"):
                self._ask(front, QueueSize(name))
                while self._ask(front, Dequeue(name, 7)):
                    pass
            elif name.startswith("register/"):
                self._ask(front, Read(name))
            else:
                for key in KEYS:
                    self._ask(front, Read(f"{name}/{key}"))
                self._ask(front, Items(name))

    def _ask(self, front: FrontNode, operation: Operation) -> Any:
        process = Process(self, front, front.name, 1)
        process.start(operation, DRAIN_DEADLINE_S)
        self._run_until_done([process])
        if isinstance(process.outcome, Done):
            return process.outcome.result
        raise Stuck(f"on a healthy cluster {operation} ends with {process.outcome}")


class Process:
    """A caller on a front end: one operation after another, each noted in the history.

    Where an operation with a key got no answer, the caller may repeat it, at any front end; in the history that is
    still one call.
    """

    def __init__(self, world: World, front: FrontNode, who: str, operations: int) -> None:
        self.world = world
        self.front = front
        self.who = who
        self.is_done = False
        self.outcome: Outcome | None = None
        self._left = operations
        self._rng = random.Random(f"caller {world.scenario.seed} {who}")
        self._caller = Caller(world.scenario, who, self._rng)
        self._current: tuple[Operation, list[Call]] | None = None
        self._is_repeat = False
        self._is_busy = False
        self._since_us = 0
        self._deadline_s = world.scenario.deadline_s
        world.began()

    def next(self) -> None:
        """Invoke the next operation, or repeat the one that got no answer."""
        if not self.front.is_alive:
            return
        if self._current is not None:
            self._is_repeat = True
            self._start(*self._current)
            return
        self.start(self._caller.next(), self.world.scenario.deadline_s)

    def start(self, operation: Operation, deadline_s: float) -> None:
        """Invoke `operation`."""
        self._left -= 1
        self._is_repeat = False
        self._deadline_s = deadline_s
        self._start(operation, self.world.history.invoke(operation, self.who))

    def move(self, front: FrontNode) -> None:
        """The front end crashed: go on at another one."""
        self.front = front
        if self._is_busy:
            self._go_on(self._current)

    def _start(self, operation: Operation, calls: list[Call]) -> None:
        again = " again" if self._is_repeat else ""
        self.world.trace(self.who, lambda: f"invokes{again} {shown(operation)}")
        self._current = operation, calls
        self._is_busy = True
        front = self.front
        number = front.start(
            operation, self._deadline_s, lambda outcome: self._finish(operation, calls, outcome)
        )
        if self._rng.random() < self.world.network.faults.cancels:
            self.world.later(int(20_000 * self._rng.random()), self._cancel, front, number)

    def _finish(self, operation: Operation, calls: list[Call], outcome: Outcome) -> None:
        self.world.trace(self.who, lambda: f"{shown(operation)} ends with {outcome}")
        if self._is_repeat and isinstance(outcome, Failed):
            # That the repeat did nothing says nothing of the first attempt.
            outcome = replace(outcome, definite=False)
        self.world.history.finish(operation, calls, outcome)
        self.outcome = outcome
        if isinstance(operation, Read) and isinstance(outcome, Done):
            self._caller.saw(operation.object, outcome.result)
        is_open = isinstance(outcome, Failed) and not outcome.definite
        self._go_on((operation, calls) if is_open else None)

    def _cancel(self, front: FrontNode, number: int) -> None:
        """Given up: the history keeps the call as unknown."""
        if front.cancel(number):
            self._go_on(self._current)

    def _go_on(self, unanswered: tuple[Operation, list[Call]] | None) -> None:
        """To the next operation, or once more to the one without an answer."""
        self._is_busy = False
        is_remembered = self.world.now_us - self._since_us + self._deadline_s * 1e6 < KEY_US_MAX
        has_key = unanswered is not None and bool(getattr(unanswered[0], "key", ""))
        if has_key and is_remembered and self._rng.random() < 0.7:
            self._current = unanswered
            self.front = self._rng.choice([front for front in self.world.fronts if front.is_alive])
        else:
            self._current = None
            if self._left <= 0:
                self.is_done = True
                self.world.ended()
                return
        think_us = self.world.scenario.think_us
        self.world.later(int(self._rng.expovariate(1 / think_us)) if think_us else 0, self.next)
