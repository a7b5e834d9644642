"""Makes a schedule of faults happen to a cluster, and notes what truly happened and when.

Owns the step from planned faults to killed, stopped and cut-off replicas, and the true times: a replica is down from the
moment when the fault was complete to the last at which it certainly did not answer yet (POLL_S before it did, at most). Must not know how processes are started.
"""

import asyncio
import os
import signal
from typing import Final

from ..clock import RunClock
from ..faults.proxies import Way, Ways
from ..plan.plan import Kind
from ..plan.schedule import Outage, Parting, Schedule
from ..up_times import UpTimes
from .prober import is_ready
from .replicas import POLL_S, READY_DEADLINE_S, READY_TIMEOUT_S, NotStarted, Replicas

WATCH_S: Final = 0.5
_INTO_FAULT: Final[tuple[Kind, ...]] = ("cut", "stop", "kill")
"""The order in which faults are applied; they are lifted in the other."""


def _reason(kind: Kind, replica: str) -> str:
    """Why ways are closed around a replica that is down."""
    return f"{kind} {replica}"


class Conductor:
    """Runs `schedule` on `replicas` (None: a running cluster, of which only ways can be closed) and notes the truth.

    `link_times` are those of the ways that the plan parts.
    """

    def __init__(
        self, schedule: Schedule, replicas: Replicas | None, ways: Ways, names: list[str], clock: RunClock
    ) -> None:
        self._schedule: Final = schedule
        self._replicas: Final = replicas
        self._ways: Final = ways
        self._clock: Final = clock
        now_s = clock.now_s()
        self.up_times: Final = UpTimes(names, now_s)
        self.link_times: Final = UpTimes(
            sorted({(each.asker, each.replica) for each in schedule.partings}), now_s
        )
        self.missed: Final[list[Outage]] = []
        """Outages that were over before their replica had come back from an earlier one."""
        self.deaths: Final[list[str]] = []
        """Replicas that ended by themselves or did not come back, each in a sentence."""
        self._down_by: Final[dict[str, set[Kind]]] = {name: set() for name in names}
        self._busy: Final[set[str]] = set()

    async def run(self, start_s: float) -> None:
        """Run the whole schedule, of which the clock time `start_s` is the beginning. Returns after the last repair."""
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._watch())
            tasks = [group.create_task(self._follow(name, start_s)) for name in self._down_by]
            tasks += [group.create_task(self._part(parting, start_s)) for parting in self._schedule.partings]
            await asyncio.wait(tasks)
            watch.cancel()

    def release(self) -> None:
        """Let stopped replicas run again, so that they can be ended; for every exit."""
        for replica, kinds in self._down_by.items():
            if "stop" in kinds:
                self._signal(replica, signal.SIGCONT)

    async def _follow(self, replica: str, start_s: float) -> None:
        """All outages of one replica: at each time when one begins or ends, make it what it must be by then."""
        outages = [each for each in self._schedule.outages if each.replica == replica]
        happened: set[Outage] = set()
        for time_s in sorted({each.start_s for each in outages} | {each.end_s for each in outages}):
            await asyncio.sleep(start_s + time_s - self._clock.now_s())
            now_s = max(time_s, self._clock.now_s() - start_s)
            active = [each for each in outages if each.start_s <= now_s < each.end_s]
            happened.update(active)
            self.missed.extend(each for each in outages if each.end_s == time_s and each not in happened)
            self._busy.add(replica)
            await self._become(replica, {each.kind for each in active})
            self._busy.discard(replica)

    async def _become(self, replica: str, wanted: set[Kind]) -> None:
        """Apply and lift faults until `replica` is down in exactly the ways `wanted`.

        A dead one stays dead while it should stand still: else it would be up for the time between.
        """
        now = self._down_by[replica]
        if "kill" in now and "stop" in wanted:
            wanted = {"kill", *wanted} - {"stop"}
        for kind in _INTO_FAULT:
            if kind in wanted - now:
                await self._apply(replica, kind)
                now.add(kind)
        if now:
            self.up_times.mark(replica, self._clock.now_s(), up=False)
        back_s: float | None = None
        for kind in reversed(_INTO_FAULT):
            if kind in now - wanted and (back_s := await self._lift(replica, kind)) is not None:
                now.discard(kind)
        if not now and back_s is not None:
            self.up_times.mark(replica, back_s, up=True)

    async def _apply(self, replica: str, kind: Kind) -> None:
        match kind:
            case "cut":
                await self._close(self._ways.around(replica), _reason(kind, replica))
            case "stop":
                self._signal(replica, signal.SIGSTOP)
            case "kill":
                await asyncio.to_thread(self._own.kill, replica)
                # A proxy would take a connection before it finds nobody behind it: a dead machine's port refuses.
                await self._close(self._ways.to(replica), _reason(kind, replica))

    async def _lift(self, replica: str, kind: Kind) -> float | None:
        """End one way of being down. The last moment at which the replica was certainly still down in this way; None when
        it did not come back."""
        began_s = self._clock.now_s()
        match kind:
            case "cut":
                await self._open(self._ways.around(replica), _reason(kind, replica))
                return began_s
            case "stop":
                self._signal(replica, signal.SIGCONT)
                return began_s if "kill" in self._down_by[replica] else await self._back(replica, began_s)
            case "kill":
                try:
                    self._own.launch(replica)
                except (NotStarted, OSError) as error:
                    self.deaths.append(f"{replica} could not be started again, and stayed down: {error}")
                    return None
                back_s = await self._back(replica, began_s)
                if back_s is not None:
                    await self._open(self._ways.to(replica), _reason(kind, replica))
                return back_s

    async def _close(self, ways: list[Way], reason: str) -> None:
        for way in ways:
            await self._ways.close(way, reason)

    async def _open(self, ways: list[Way], reason: str) -> None:
        for way in ways:
            await self._ways.open(way, reason)

    async def _back(self, replica: str, began_s: float) -> float | None:
        """Wait until the replica is ready; one that ends, or takes too long, is told of and stays down for now.

        When the last question that it did not answer was asked (`began_s` before the first): it was back soon after.
        """
        try:
            async with asyncio.timeout(READY_DEADLINE_S):
                while True:
                    asked_s = self._clock.now_s()
                    if await is_ready(self._own.urls[replica], READY_TIMEOUT_S):
                        return began_s
                    began_s = asked_s
                    if replica not in self._own.pids:
                        self.deaths.append(
                            f"{replica} ended while it started again, and stayed down: {self._own.last_words(replica)}"
                        )
                        return None
                    await asyncio.sleep(POLL_S)
        except TimeoutError:
            self.deaths.append(
                f"{replica} was not ready after {READY_DEADLINE_S:g} s, and stayed down: {self._own.last_words(replica)}"
            )
            await asyncio.to_thread(self._own.kill, replica)
            return None

    async def _part(self, parting: Parting, start_s: float) -> None:
        way = (parting.asker, parting.replica)
        reason = f"{parting.cause} at {parting.start_s}"
        await asyncio.sleep(start_s + parting.start_s - self._clock.now_s())
        await self._ways.close(way, reason)
        self.link_times.mark(way, self._clock.now_s(), up=False)
        await asyncio.sleep(start_s + parting.end_s - self._clock.now_s())
        opened_s = self._clock.now_s()
        await self._ways.open(way, reason)
        # A replica that is down is so for all, and its own times say so: the link's truth is of partings alone.
        if not self._ways.reasons(way) - {_reason(kind, name) for kind in _INTO_FAULT for name in way}:
            self.link_times.mark(way, opened_s, up=True)

    async def _watch(self) -> None:
        """Notice replicas that ended though nobody killed them; they are told of, and stay down until their next fault."""
        while self._replicas is not None:
            await asyncio.sleep(WATCH_S)
            running = self._replicas.pids
            for replica, kinds in self._down_by.items():
                if replica not in running and "kill" not in kinds and replica not in self._busy:
                    kinds.add("kill")
                    self.up_times.mark(replica, self._clock.now_s(), up=False)
                    await self._close(self._ways.to(replica), _reason("kill", replica))
                    self.deaths.append(f"{replica} ended by itself: {self._replicas.last_words(replica)}")

    @property
    def _own(self) -> Replicas:
        assert self._replicas is not None, "the plan's check lets no kill or stop happen to others' replicas"
        return self._replicas

    def _signal(self, replica: str, number: signal.Signals) -> None:
        pid = self._own.pids.get(replica)
        if pid is not None:
            os.kill(pid, number)
