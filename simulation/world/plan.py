"""Lays the faults of a scenario out over the time of one run.

Owns when a fault begins and ends, and which node it hits. It must not know what a fault does (nodes and network do).
"""

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .nodes import ReplicaNode

if TYPE_CHECKING:
    from .world import World

FAULT_START_US_MAX: Final = 300_000
SLOW_REPLICA_US: Final = 200_000


def plan_faults(world: "World", rng: random.Random) -> None:
    """Let everything happen that the scenario's faults name."""
    Plan(world, rng).lay_out()


class Plan:
    """One run's faults."""

    def __init__(self, world: "World", rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._faults = world.scenario.faults
        self._replicas = list(world.replicas)
        self._span_us = max(FAULT_START_US_MAX, world.scenario.fault_span_us)

    def lay_out(self) -> None:
        """Every fault, each drawn from the seed."""
        self._on_links()
        self._apart()
        self._on_nodes()
        self._on_speed()
        self._on_links_throughout()

    def _on_links(self) -> None:
        network, rng = self._world.network, self._rng
        for _ in range(self._faults.slow_links):
            self._for_a_while("slow links", network.slow, network.speed, *self._pair())
        for _ in range(self._faults.cuts):
            one, other = self._pair()
            way = (one, other) if rng.random() < 0.5 else (other, one)
            self._for_a_while("cuts", network.cut, network.mend, [way])
        nodes = [*self._replicas, *(front.name for front in self._world.fronts if front.home is None)]
        for _ in range(self._faults.partitions if len(nodes) > 1 else 0):
            side = set(rng.sample(nodes, rng.randint(1, len(nodes) - 1)))
            apart = [(one, other) for one in nodes for other in nodes if (one in side) != (other in side)]
            self._for_a_while("partitions", network.cut, network.mend, apart)

    def _apart(self) -> None:
        network, rng = self._world.network, self._rng
        stretch_us = self._span_us // max(1, self._faults.apart)
        for number in range(self._faults.apart):
            for front in rng.sample(self._world.fronts, rng.randint(0, len(self._world.fronts) - 1)):
                replica = rng.choice(self._replicas)
                ways = [(front.address, replica), (replica, front.address)]
                at_us = number * stretch_us
                self._world.later(at_us, self._world.unless_healed, "apart", network.cut, ways)
                self._world.later(at_us + stretch_us, network.mend, ways)

    def _on_nodes(self) -> None:
        world, faults, rng = self._world, self._faults, self._rng
        for _ in range(faults.crashes):
            self._for_a_while("crashes", _crash, world.restart_replica, self._replica())
        for _ in range(faults.client_crashes):
            start_us = self._start_us()
            world.later(
                start_us, world.unless_healed, "client crashes", world.crash_front, rng.choice(world.fronts)
            )
        for _ in range(faults.clock_steps):
            by_us = world.skew_us(2 * faults.client_skew_us)
            start_us = self._start_us()
            world.later(start_us, rng.choice(world.fronts).step_clock, by_us)
            world.injected["clock steps"] += 1
        for _ in range(faults.replica_clock_steps):
            replica, skew_us = self._replica(), world.skew_us(faults.replica_skew_us)
            self._world.later(self._start_us(), replica.reset_clock, skew_us)
            world.injected["replica clock steps"] += 1
        for _ in range(faults.leaps):
            self._leap()

    def _leap(self) -> None:
        """To one side or the other, by something between a second and the most, or home; all clocks, or one."""
        leap_us = int(1_000_000 * (self._faults.leap_us_max / 1e6) ** self._rng.random())
        leap_us *= self._rng.choice([-1, 0, 1])
        chosen = self._replicas if self._rng.random() < 0.6 else [self._rng.choice(self._replicas)]
        name = leap_name(leap_us, is_together=len(chosen) > 1)
        start_us = self._start_us()
        for replica in chosen:
            leap = self._world.replicas[replica].leap
            self._world.later(start_us, self._world.unless_healed, name, leap, leap_us)
        if self._rng.random() < 0.5:
            front = self._rng.choice(self._world.fronts)
            self._world.later(start_us, front.step_clock, leap_us)

    def _on_speed(self) -> None:
        for _ in range(self._faults.freezes):
            replica = self._replica()
            self._for_a_while("freezes", replica.stop, replica.go_on)
        for _ in range(self._faults.client_freezes):
            front = self._rng.choice(self._world.fronts)
            self._for_a_while("client freezes", front.stop, front.go_on)
        for _ in range(self._faults.slow_replicas):
            replica, most_us = self._replica(), int(SLOW_REPLICA_US * self._rng.random())
            self._for_a_while(
                "slow replicas", replica.slow_down, lambda _, it=replica: it.slow_down(0), most_us
            )

    def _on_links_throughout(self) -> None:
        for _ in range(self._faults.slow_throughout):
            self._world.network.slow(*self._pair())
            self._world.injected["slow throughout"] += 1
        for _ in range(self._faults.newest_first):
            self._world.network.turn_round(*self._pair())
            self._world.injected["newest first"] += 1

    def _replica(self) -> ReplicaNode:
        return self._world.replicas[self._rng.choice(self._replicas)]

    def _pair(self) -> tuple[str, str]:
        return self._rng.choice(self._replicas), self._rng.choice(self._world.fronts).address

    def _start_us(self) -> int:
        return int(self._rng.uniform(0, self._span_us))

    def _for_a_while(
        self, name: str, begin: Callable[..., None], end: Callable[..., None], *args: Any
    ) -> None:
        """From some moment on, for 3 ms to 2 s (short stretches as often as long ones)."""
        start_us = self._start_us()
        self._world.later(start_us, self._world.unless_healed, name, begin, *args)
        self._world.later(start_us + int(3_000 * 600 ** self._rng.random()), end, *args)


def leap_name(leap_us: int, *, is_together: bool) -> str:
    """What a leap is counted as: how many clocks went which way."""
    way = "home" if leap_us == 0 else "ahead" if leap_us > 0 else "back"
    return f"leaps {way} {'together' if is_together else 'alone'}"


def _crash(replica: ReplicaNode) -> None:
    replica.crash()
