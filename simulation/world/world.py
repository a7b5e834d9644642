"""A world in virtual time: replicas, front ends, callers, a network and faults, all moved by one seed.

Owns the schedule of what happens when. It must not know what is right: it fills a history for the checkers.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, Final

from msgspec.structs import replace

from ...api_specs.cluster import ClusterDocument, alone
from ...api_specs.configuration import keeping_states
from ...api_specs.limits import Capacity
from ...client_sdk.protocol.core.answer_times import HEDGE_S, AnswerTimes
from ...client_sdk.protocol.core.preference import Preference
from ...client_sdk.protocol.core.values import Done, Enqueue, Failed, Operation, Outcome
from ...client_sdk.protocol.reconfiguration import Steps, change, move, take_back
from ..history import Call, History
from ..memory.replica import UNBOUNDED
from ..scenarios.callers import caller_of
from ..scenarios.changing import without_dead
from ..scenarios.scenario import Scenario, is_owed, is_repeatable
from ..violation import Violation
from .catching import catch_up_steadily
from .ending import TELL_EVERY_US, agree, drain, empty_outboxes, level, make_room, settle_down
from .exchange import Begun
from .network import Link, Network, Stack
from .nodes import FrontNode, ReplicaNode
from .operators import LOOK_EVERY_US, Operator, Switcher
from .plan import plan_faults
from .showing import shown, shown_outcome
from .watch import Watch

EVENTS_MAX: Final = 400_000
PRUNE_EVERY_US: Final = 500_000
RELAY_EVERY_US: Final = 20_000
CHANGED_AGAIN_US: Final = 100_000
"""Until somebody goes on with what an operator began who vanished."""
CHANGES_US_MAX: Final = 120_000_000
"""More than keys are remembered, for each of several changes."""
TAKEN_BACK: Final = 0.15
"""Share of operators who take back what others have begun, if somebody has."""
SHARE_REPEATED: Final = 0.7
"""Of operations under keys that got no answer, or did nothing."""
TURNED_ROUND: Final = 8
"""How many times as long packets take where the newest arrives first, so that some meet."""
HEDGES_S: Final = [(0.0, 0.0), HEDGE_S, (0.001, 0.001), (0.3, 0.3), (inf, inf)]
"""Front ends ask all replicas at once, or a quorum first: the others after the usual time, nearly always, late, or only where one of the quorum
refuses, or its connection fails."""


class AnyOrder(Preference):
    """Asks now these replicas first and now those: rounds meet in as few as they may."""

    def __init__(
        self, rng: random.Random, own: str | None, replicas: Iterable[str], times: AnswerTimes
    ) -> None:
        super().__init__(own, replicas, times)
        self._rng: Final = rng

    def order(self, name: str, now_s: float) -> list[str]:
        """See Preference."""
        found = super().order(name, now_s)
        self._rng.shuffle(found)
        return found


class Stuck(AssertionError):
    """The world did not come to its end: an operation never finished, or a healthy cluster gave no answer."""


class World:
    """One run of a scenario. `run` fills `history`; what replicas may never do is checked on the way."""

    def __init__(self, scenario: Scenario, trace: Callable[[str], None] | None = None) -> None:
        self.scenario = scenario
        self.document = scenario.document
        self.has_codec = scenario.has_codec
        self.is_routed = scenario.is_routed
        self.is_gathered = scenario.is_gathered
        self.is_busy = scenario.is_busy
        self.capacity = Capacity(objects_max=scenario.objects_max) if scenario.objects_max else UNBOUNDED
        self.exchange_timeout_us = int(scenario.exchange_timeout_s * 1e6)
        self.now_us = 0
        self.history = History(lambda: self.now_us)
        self.watch = Watch(scenario.document)
        self.counters: dict[str, int] = {}
        self.injected: Counter[str] = Counter()
        """What was done to the nodes and the packets, by kind."""
        self.prune_every_us = PRUNE_EVERY_US // 10 if scenario.is_forgetful else PRUNE_EVERY_US
        self._rng = random.Random(f"world {scenario.seed}")
        self.chance = self._rng.random
        self.network = Network(scenario.faults, self._rng, self.injected)
        self._trace = trace
        self.is_traced = trace is not None
        self.is_healed = False
        self._events: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._sequence = count(1)
        self._running = 0
        """Processes that are not done yet."""
        self._operators = 0
        """Those who change the configuration, or are about to."""
        self._switchers: list[Switcher] = []
        self.replicas: dict[str, ReplicaNode] = {}
        for document in (self.document, *scenario.changes):
            for name in document.votes:
                self._add_replica(name)
        if scenario.instead:
            self._add_replica(scenario.instead)
        self.fronts: list[FrontNode] = []
        self._processes: list[Process] = []

    @property
    def latest(self) -> ClusterDocument:
        """The configuration that the cluster has come to, as far as a replica knows."""
        return max((node.replica.document for node in self.replicas.values()), key=lambda each: each.number)

    @property
    def members(self) -> list[ReplicaNode]:
        """The replicas of that configuration."""
        return [self.replicas[name] for name in self.latest.votes]

    def note(self, what: str, times: int) -> None:
        """Count something so many times more."""
        self.counters[what] = self.counters.get(what, 0) + times

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

    def carry(self, link: Link, delay_us: int, action: Callable[..., None], *args: Any) -> None:
        """Do it when the packet arrives that starts now."""
        stack = self.network.stacks.get(link) if self.network.stacks else None
        if stack is None:
            self.later(delay_us, action, *args)
        else:
            stack.append((action, args))
            self.later(delay_us * TURNED_ROUND, self._newest_arrives, stack)

    def _newest_arrives(self, stack: Stack) -> None:
        if len(stack) > 1:
            self.injected["packets overtaken"] += len(stack) - 1
        action, args = stack.pop()
        action(*args)

    def run(self) -> None:
        """The callers' operations under faults; then everything heals and a fresh front end looks at what is left."""
        scenario = self.scenario
        self._begin()
        self._run_until_done(self._processes)
        self._heal()
        if scenario.is_changing:
            self._end_changes()
        if scenario.catches_up:
            level(self)
        if self.document.has_outboxes:
            empty_outboxes(self)
        drain(self)
        if scenario.is_forgetful and not scenario.faults.leaps:  # Clocks that leap may delay it for as long.
            if scenario.objects_max:
                make_room(self)
            settle_down(self)
        if scenario.catches_up and any(each.consistency == "eventual" for each in self.document.choices):
            agree(self)
        for front in self.fronts:
            for source in (front.machine.counts.events, front.janitor_outcomes):
                for name, times in source.items():
                    self.counters[name] = self.counters.get(name, 0) + times

    def _begin(self) -> None:
        """Front ends, faults, and what replicas do in the background."""
        scenario, homes = self.scenario, list(self.document.votes)
        for number in range(scenario.fronts):
            replica = self.replicas[homes[number % len(homes)]] if number < scenario.embedded else None
            self._add_front(scenario.processes, scenario.operations, replica)
        if scenario.is_routed or self.document.has_outboxes:
            for node in self.replicas.values():
                if node.front is None:
                    self._add_front(0, 0, node)
        plan_faults(self, self._rng)
        self._plan_changes()
        if self.document.standing_rules:
            self._switchers = [Switcher(self, name) for name in self.replicas]
            for switcher in self._switchers:
                switcher.look()
        self.later(TELL_EVERY_US, self._tell)
        if scenario.prunes:
            self.later(self.prune_every_us, self._prune)
        if scenario.catches_up:
            catch_up_steadily(self)
        if self.document.has_outboxes:
            self.later(RELAY_EVERY_US, self._relay)

    def _plan_changes(self) -> None:
        """One operator after another, or several at once, each with a configuration of his own; who vanishes is followed by another one."""
        rng = random.Random(f"operators {self.scenario.seed}")
        for number, wanted in enumerate(self.scenario.changes):
            self._operators += 1
            begin_us = int(self.scenario.change_every_us * (number + rng.random()))
            steps_max = rng.choice([float("inf"), float("inf"), rng.randint(1, 25)])
            self.later(begin_us, self._change, wanted, steps_max)
        if self.scenario.dying_in_between:
            self._end_another()

        for number, at_us in enumerate(self.scenario.moving):
            self._operators += 1
            self.later(at_us, self._move, rng.random(), number)

    def _move(self, which: float, number: int) -> None:
        """A member is at another URL from now on; in this world replicas are found by their names."""
        names = list(self.latest.votes)
        name, front = names[int(which * len(names))], self.new_front()
        steps = move(front.machine.document, {name: f"http://{name}:{number + 2}"})

        def done() -> None:
            self._operators -= 1

        self.note("moves", 1)
        Operator(self, front, steps, float("inf"), done).go_on()

    def _add_replica(self, name: str) -> None:
        if name not in self.replicas:
            skew_us = self.skew_us(self.scenario.faults.replica_skew_us)
            self.replicas[name] = ReplicaNode(self, name, skew_us, self.watch)

    def _end_another(self) -> None:
        """Once a change is under way that is to keep a member which can be missed, that is off for good, and operators who learn of it have the change go
        elsewhere."""
        second, latest = self.scenario.dying_in_between, self.latest
        if self.is_healed:
            return
        dead = {second, self.scenario.dying}
        if (
            latest.former is None
            or not {second} <= latest.own_votes.keys() & latest.former.own_votes.keys()
            or not all(_has_majority(each, dead) for each in (latest.former, alone(latest)))
            or not self._is_off(second)
        ):
            self.later(LOOK_EVERY_US, self._end_another)
            return
        self.note("deaths in the middle of a change", 1)
        self._operators += 1
        self._change(alone(latest), float("inf"))

    def _change(self, wanted: ClusterDocument, steps_max: float) -> None:
        if not self._has_died():
            self.later(CHANGED_AGAIN_US, self._change, wanted, steps_max)
            return
        front = self.new_front()
        dead = {name for name, node in self.replicas.items() if node.is_dead}

        def done() -> None:
            if front.is_alive and not dead & self.latest.votes.keys():
                self._operators -= 1
            else:
                self.later(CHANGED_AGAIN_US, self._change, wanted, float("inf"))

        def want(now: ClusterDocument) -> ClusterDocument:
            if now.former is not None and dead & now.own_votes.keys():
                return without_dead(alone(now), dead, self.scenario.instead)
            return keeping_states(without_dead(wanted, dead), now)

        at, is_told = front.machine.document, self.chance() < TAKEN_BACK
        steps: Steps
        if dead:
            # Some do not know at first who is dead, and wait for it until they vanish.
            steps = change(at, want, dead if steps_max == float("inf") or is_told else set())
        else:
            steps = take_back(at) if is_told else change(at, want)
        Operator(self, front, steps, steps_max, done).go_on()

    def _has_died(self) -> bool:
        """Whether whoever is to die before the first change is dead now. It lives on where others lack until the end what it holds."""
        if not self.scenario.dying or self.is_healed:
            return True
        return self._is_off(self.scenario.dying)

    def _is_off(self, name: str) -> bool:
        """Whether it is off for good, now or before: it is as soon as another member that lives holds all that it holds."""
        node = self.replicas[name]
        others = [each for each in self.members if each is not node and each.is_up and not each.is_stopped]
        for each in others:
            each.commit()
        if not node.is_dead and any(each.replica.store.holds_what(node.replica.store) for each in others):
            node.crash()
            node.is_dead = True
            self.injected["deaths"] += 1
        return node.is_dead

    def new_front(self) -> FrontNode:
        """A front end of somebody who comes, and calls no operations as callers do."""
        self._add_front(0, 0)
        return self.fronts[-1]

    def _is_changing(self) -> bool:
        """Whether somebody changes the configuration, or has to."""
        latest = self.latest
        has_fallen_back = any(rule.has_fallen_back for rule in latest.choices)
        is_switching = any(switcher.is_busy for switcher in self._switchers)
        return self._operators > 0 or is_switching or latest.former is not None or has_fallen_back

    def _end_changes(self) -> None:
        """On a healthy cluster each change comes to its end, and each rule comes back to its first choice."""
        until_us = self.now_us + CHANGES_US_MAX
        while self._is_changing():
            if self.now_us > until_us:
                raise Stuck("on a healthy cluster a change of configuration does not come to its end")
            self.pass_time(TELL_EVERY_US)

    def skew_us(self, most_us: int) -> int:
        """A clock error."""
        return int(self._rng.uniform(-most_us, most_us))

    def drift(self, node: str) -> float:
        """How far the node's clock runs fast or slow, as a share: mostly as far as it may."""
        share = random.Random(f"drift {self.scenario.seed} {node}").choice([-1.0, 1.0, 1.0, -1.0, 0.3])
        if self.scenario.faults.drift_ppm:
            self.injected["drifting clocks"] += 1
        return share * self.scenario.faults.drift_ppm / 1e6

    def preference(self, node: str, own: str | None) -> Preference:
        """Whom the front end asks first, and for how long."""
        rng = random.Random(f"preference {self.scenario.seed} {node}")
        times = AnswerTimes(rng.choice(HEDGES_S))
        if rng.random() < 0.5:
            return AnyOrder(rng, own, self.document.votes, times)
        return Preference(own, self.document.votes, times)

    def _add_front(self, processes: int, operations: int, home: ReplicaNode | None = None) -> None:
        number = len(self.fronts) + 1
        skew_us = self.skew_us(self.scenario.faults.client_skew_us) if home is None else 0
        front = FrontNode(self, f"f{number}", skew_us, number, self.replicas, home)
        if home is not None:
            home.front = front
        if number == 1:
            front.crash_at = self.scenario.faults.client_crash_at
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

    def pass_time(self, us: int) -> None:
        """Whatever happens in so much time."""
        until_us = self.now_us + us
        for _ in range(EVENTS_MAX):
            if not self._events or self._events[0][0] > until_us:
                break
            self.now_us, _, action, args = heappop(self._events)
            action(*args)
        self.now_us = until_us

    def unless_healed(self, name: str, fault: Callable[..., None], *args: Any) -> None:
        """A fault that would begin only after everything healed does not."""
        if not self.is_healed:
            self.injected[name] += 1
            fault(*args)

    def crash_front(self, front: FrontNode) -> None:
        """The front end vanishes; its callers go to another one: a new one, but where one was embedded to any."""
        if not front.is_alive:
            return
        front.crash()
        if front.home is not None and front.home.front is front:
            front.home.front = None
        others = [other for other in self.fronts if other.is_alive]
        if front.home is None or not others:
            self._add_front(1, 5)
            others = [self.fronts[-1]]
        for process in self._processes:
            if process.front is front and not process.is_done:
                process.move(others[-1])

    def restart_replica(self, replica: ReplicaNode) -> None:
        """It comes back, with a new front end where it had one."""
        was_down = not replica.is_up
        replica.restart()
        if was_down and any(front.home is replica for front in self.fronts):
            self._add_front(0, 0, replica)

    def _prune(self) -> None:
        for replica in self.replicas.values():
            replica.prune()
        self.later(self.prune_every_us, self._prune)

    def _relay(self) -> None:
        for replica in self.replicas.values():
            replica.relay()
        self.later(RELAY_EVERY_US, self._relay)

    def _tell(self) -> None:
        """Replicas tell each other how far their stores have come."""
        for replica in self.replicas.values():
            for other in self.replicas.values():
                replica.hear_of(other)
        self.later(TELL_EVERY_US, self._tell)

    def _heal(self) -> None:
        self.trace("", lambda: "everything heals")
        self.is_healed = True
        self.network.heal()
        for replica in self.replicas.values():
            replica.slow_us = 0
            if replica.clock.leap_us:
                replica.leap(0)
            replica.go_on()
            self.restart_replica(replica)
        for front in self.fronts:
            front.crash_at = 0
            front.go_on()

    def ask(self, operation: Operation, deadline_s: float | None = None) -> Any:
        """The answer that the latest front end gets; on a healthy cluster it must come."""
        outcome = self.outcome_of(operation, deadline_s or self.document.limits.deadline_s_max)
        if isinstance(outcome, Done):
            return outcome.result
        raise Stuck(f"on a healthy cluster {operation} ends with {outcome}")

    def outcome_of(
        self, operation: Operation, deadline_s: float, front: FrontNode | None = None
    ) -> Outcome | None:
        """How it ends at that front end, or at the latest."""
        front = front or self.fronts[-1]
        process = Process(self, front, front.name, 1)
        process.start(operation, deadline_s)
        self._run_until_done([process])
        return process.outcome

    def embed(self, node: ReplicaNode) -> None:
        """See to it that a front end is embedded in the replica, as one is in each that is served."""
        if node.front is None:
            self._add_front(0, 0, node)

    def add_observer(self) -> None:
        """A fresh front end without callers: `ask` is answered by it."""
        self._add_front(0, 0)


def _has_majority(document: ClusterDocument, dead: Collection[str]) -> bool:
    """Whether the others have a majority of its votes."""
    left = sum(votes for name, votes in document.own_votes.items() if name not in dead)
    return 2 * left > sum(document.own_votes.values())


def is_gone(outcome: Outcome) -> bool:
    """Whether all replicas have answered, and none holds what the operation was to give; not where its deadline came first."""
    if not isinstance(outcome, Failed) or outcome.reason != "unknown":
        return False
    return outcome.detail.startswith("gave ") and outcome.detail.endswith("did not: none")


class Process:
    """A caller on a front end: one operation after another, each noted in the history.

    Where an operation with a key got no answer, the caller may repeat it, at any front end; in the history that is
    still one call.
    """

    def __init__(self, world: World, front: FrontNode, who: str, operations: int) -> None:
        self.world = world
        self.front = front
        self.who = who
        self._home = front.home
        """A caller of an embedded front end goes back to that replica when it is there again."""
        self.is_done = False
        self.outcome: Outcome | None = None
        self._left = operations
        self._rng = random.Random(f"caller {world.scenario.seed} {who}")
        self._caller = caller_of(world.scenario, who, self._rng)
        self._current: tuple[Operation, list[Call]] | None = None
        self._is_repeat = False
        self._undone: Operation | None = None
        """An operation that certainly did nothing, to be called again under its key."""
        self._began = (0, 0)
        self._is_busy = False
        self._is_held = False
        self._since_us = 0
        self._deadline_s = world.scenario.deadline_s
        self._key_us_max = int(1e6 * world.document.limits.retry_window_s)
        world.began()

    def next(self) -> None:
        """Invoke the next operation, or repeat the one that got no answer."""
        if not self.front.is_alive or self._is_busy or self.is_done:
            return  # Moved on already, as when the front end crashes in what it does first when it goes on again.
        if self.front.is_stopped:
            self._is_held = True
            self.front.hold(self.next)
            return
        self._is_held = False
        if self._current is not None and not self._is_remembered:
            self._go_on(None)
            return
        if self._current is not None:
            self._is_repeat = True
            self._began = self.world.history.moment()
            self.world.counters["keyed repeats"] = self.world.counters.get("keyed repeats", 0) + 1
            self._start(*self._current)
            return
        undone, self._undone = self._undone, None
        if undone is not None and self._is_remembered:
            self._is_repeat = False
            self.world.note("undone calls under their keys again", 1)
            self._start(undone, self.world.history.invoke(undone, self.who))
            return
        self.start(self._caller.next(), self.world.scenario.deadline_s)

    def start(self, operation: Operation, deadline_s: float) -> None:
        """Invoke `operation`."""
        self._left -= 1
        self._is_repeat = False
        self._since_us = self.world.now_us
        self._deadline_s = deadline_s
        self._start(operation, self.world.history.invoke(operation, self.who))

    def move(self, front: FrontNode) -> None:
        """The front end crashed: go on at another one."""
        self.front = front
        if self._is_busy:
            self._go_on(self._current)
        elif self._is_held:
            self.next()

    def _start(self, operation: Operation, calls: list[Call]) -> None:
        again = " again" if self._is_repeat else ""
        self.world.trace(self.who, lambda: f"invokes{again} {shown(operation)}")
        self._current = operation, calls
        self._is_busy = True
        front = self.front
        if front.machine.epoch and front.machine.document.former is None:
            self.world.note("calls after a change", 1)
        elif front.machine.epoch:
            self.world.note("calls during a change", 1)
        begun = front.start(
            operation, self._deadline_s, lambda outcome: self._finish(operation, calls, outcome)
        )
        self._double(operation)
        if self._rng.random() < self.world.network.faults.cancels:
            self.world.later(int(20_000 * self._rng.random()), self._cancel, front, begun)

    def _double(self, operation: Operation) -> None:
        """Have another front end run it as well, now or soon. What that one hears is nobody's; it may do what this one
        does not."""
        share = self.world.scenario.doubled
        if not share or not isinstance(operation, Enqueue) or not operation.key:
            return
        if self._rng.random() >= share:
            return
        self._is_repeat = True
        self.world.counters["keyed twins"] = self.world.counters.get("keyed twins", 0) + 1
        other = self._rng.choice(self.world.fronts)

        def begin() -> None:
            if other.is_alive and not other.is_stopped:
                other.start(operation, self._deadline_s, lambda _: None)

        self.world.later(int(self._rng.choice([0, 500, 5_000]) * self._rng.random()), begin)

    def _finish(self, operation: Operation, calls: list[Call], outcome: Outcome) -> None:
        self.world.trace(self.who, lambda: f"{shown(operation)} ends with {shown_outcome(outcome)}")
        if self._is_repeat and isinstance(outcome, Failed):
            # That the repeat did nothing says nothing of the first attempt.
            outcome = replace(outcome, definite=False)
        has_key = bool(getattr(operation, "key", ""))
        if (
            self._is_repeat
            and isinstance(outcome, Done)
            and has_key
            and not is_owed(operation, outcome.result)
        ):
            # "Nothing to do" is final only when no attempt is under way: the first may still take effect.
            self.world.history.add(operation, self.who, self._began, outcome)
        else:
            self.world.history.finish(operation, calls, outcome)
        self.outcome = outcome
        if isinstance(outcome, Done):
            self._caller.heard(operation, outcome.result)
            self._ask_again(operation, outcome.result)
        is_open = isinstance(outcome, Failed) and not outcome.definite
        self._undone = operation if self._calls_again(operation, outcome) else None
        self._go_on((operation, calls) if is_open else None)

    def _calls_again(self, operation: Operation, outcome: Outcome) -> bool:
        """Whether it did nothing, and is called again under its key."""
        if not self.world.scenario.repeats_undone or not self._is_remembered:
            return False
        is_undone = isinstance(outcome, Failed) and outcome.definite and bool(getattr(operation, "key", ""))
        return is_undone and self._rng.random() < SHARE_REPEATED

    def _ask_again(self, operation: Operation, result: Any) -> None:
        """Have some front end run within the window what was answered: it must do nothing, and be told the same."""
        share = self.world.scenario.asks_again
        if not share or not is_owed(operation, result) or self._rng.random() >= share:
            return
        until_us = self._since_us + self._key_us_max
        after_us = int(self._rng.choice([0, 20_000, until_us - self.world.now_us]) * self._rng.random())
        front = self._rng.choice(self.world.fronts)

        def hear(outcome: Outcome) -> None:
            if isinstance(outcome, Done):
                self.world.watch.repeated(shown(operation), result, outcome.result)
            elif is_gone(outcome):
                raise Violation(f"the repeat of {shown(operation)} finds nothing of its items: {outcome}")

        def begin() -> None:
            if front.is_alive and not front.is_stopped and self.world.now_us < until_us:
                self.world.trace(self.who, lambda: f"repeats {shown(operation)}")
                front.start(operation, self._deadline_s, hear)

        self.world.later(max(0, after_us), begin)

    def _cancel(self, front: FrontNode, begun: Begun) -> None:
        """Given up: the history keeps the call as unknown."""
        if front.is_stopped:
            front.hold(self._cancel, front, begun)
        elif front.cancel(begun):
            self.world.injected["cancels"] += 1
            self._go_on(self._current)

    @property
    def _is_remembered(self) -> bool:
        """Whether a repeat of the latest operation would begin within the window of its key. Who was stopped may be too late for it."""
        return self.world.now_us - self._since_us < self._key_us_max

    def _go_on(self, unanswered: tuple[Operation, list[Call]] | None) -> None:
        """To the next operation, or once more to the one without an answer."""
        self._is_busy = False
        has_key = unanswered is not None and is_repeatable(unanswered[0])
        if has_key and self._is_remembered and self._rng.random() < SHARE_REPEATED:
            self._current = unanswered
            self.front = self._rng.choice([front for front in self.world.fronts if front.is_alive])
        else:
            self._current = None
            if self._home is not None and self._home.front is not None:
                self.front = self._home.front
            if self._left <= 0:
                assert not self.is_done
                self.is_done = True
                self.world.ended()
                return
        think_us = self.world.scenario.think_us
        self.world.later(int(self._rng.expovariate(1 / think_us)) if think_us else 0, self.next)
