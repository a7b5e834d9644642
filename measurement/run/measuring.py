"""One measured run, from ready replicas to a folder of files.

Owns the order of things: connect, fill, then load, faults and prober side by side for the length of the plan, then the
files. However it ends, what was measured until then is there to read.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from ...api_specs.cluster import ClusterDocument
from ...client_sdk import AsyncClient, connect_async
from ...client_sdk.transport.tls import from_environment
from ..clock import RunClock
from ..faults.proxies import Way, Ways
from ..plan.plan import BadPlan, Plan
from ..plan.plan_check import PROBER, prefill_of
from ..plan.schedule import Schedule, Streams, draw
from ..rows import OperationRow
from .conductor import Conductor
from .course import UNENDED, Course
from .load import Load, done_before, observer
from .prober import Prober
from .recorder import Recorder
from .replicas import Replicas, find_any, start_all
from .run_folder import HISTORY, LINKS, REPLICA_LINKS, REPLICAS, Run, write_run, write_up_times

OPERATIONS: Final = "operations-1.jsonl.gz"
PROBES: Final = "probes-1.jsonl.gz"
WRITE_S: Final = 2.0
"""How often the small files are written anew while a run goes on."""
TELLS: Final = 8
"""How often, within that time, the onlooker hears of the time gone."""


class Setting(Struct, frozen=True):
    """Where and on what a plan is run. `replicas` do not run yet; None for a cluster that runs already."""

    folder: Path
    document: ClusterDocument
    replicas: Replicas | None
    plan_text: str
    token: str | None = None
    made: Mapping[str, Any] = {}
    classes: Mapping[str, type] = {}
    """Those of the plan's own types, by type."""
    rotate_s: float | None = None
    """Rows go to files of so many seconds; None for one file."""

    def __repr__(self) -> str:
        return f"Setting({str(self.folder)!r})"  # without the token


class Measured(Struct, frozen=True):
    """What a run came to, in numbers for people; times in seconds. `outcomes` counts by choice, operation and outcome."""

    outcomes: Mapping[tuple[str, str, str], int]
    probes: int
    length_s: float
    course: Course


_NOTHING: Final = Measured({}, 0, 0.0, Course(False, 0, 0.0, 0, ()))
"""A run that was ended before its measurement began."""


def streams(seed: int) -> Streams:
    """Streams of draws for `schedule.draw`: the same for the same seed, on every machine."""
    return lambda name: random.Random(f"{seed}/{name}").random


def schedule_of(plan: Plan, document: ClusterDocument | None = None) -> Schedule:
    """The faults of a plan. Raises BadPlan for names that do not fit the document of a running cluster."""
    names = tuple(document.votes) if document is not None else plan.replicas
    if twice := sorted(set(names) & set(plan.cluster.front_ends)):
        raise BadPlan(f"cluster, front_ends: {twice[0]!r} is a replica; give the front end another name")
    schedule = draw(plan, streams(plan.seed), names)
    faults = [(each.cause, each.replica) for each in schedule.outages]
    faults += [(each.cause, each.replica) for each in schedule.partings]
    for cause, replica in faults:
        if replica not in names:
            raise BadPlan(f"{cause}: there is no replica {replica!r}; known are {', '.join(names)}")
    return schedule


class Onlooker(Protocol):
    """Who hears how far a run has come."""

    def begins(self, what: str) -> None:
        """Something that takes a while begins, before the measurement."""

    def reached(self, elapsed_s: float) -> None:
        """So much of the measurement is over."""


async def measure(plan: Plan, setting: Setting, stop: asyncio.Event, onlooker: Onlooker) -> Measured:
    """Start the replicas, run the plan and write its files; ends early, and cleanly, once `stop` is set.

    The caller ends the replicas. The lines stay lines: `parquet.convert` comes afterwards. Raises NotStarted when there are
    no replicas to measure.
    """
    schedule = schedule_of(plan, setting.document)
    clock = RunClock()
    tally: Counter[tuple[str, str, str]] = Counter()
    async with AsyncExitStack() as stack:
        ways = await stack.enter_async_context(Ways(closable(plan, setting, schedule), setting.document.urls))
        if not await done_before(stop, _replicas_up(setting, ways, onlooker)):
            return _NOTHING
        operations, probes = (
            stack.enter_context(contextlib.closing(Recorder(setting.folder / name, setting.rotate_s)))
            for name in (OPERATIONS, PROBES)
        )

        def record(row: OperationRow) -> None:
            tally[row.choice, row.operation, row.outcome] += 1
            operations.add(row)

        clients = await _connected(plan, setting, ways, stack)
        load = Load(plan.workloads, clients, record, clock, setting.classes)
        onlooker.begins("Filling the objects")
        prefills = [prefill_of(workload, plan.length_s) for workload in plan.workloads]
        if not await done_before(stop, load.fill(prefills)):
            return _NOTHING
        for name, client in clients.items():
            client.on_finished(observer(name, client.document, plan.choice_by_object, record, clock))
        conductor = Conductor(schedule, setting.replicas, ways, list(setting.document.urls), clock)
        stack.callback(conductor.release)
        files = _Files(plan, setting, conductor, clock)
        prober = Prober(ways.urls_of(PROBER), plan.prober.step, probes, clock)
        others = [operations.run(), probes.run(), files.run(onlooker), conductor.run(files.start_s)]
        others += [prober.run()] if plan.prober.step else []
        is_whole = False
        try:
            await _until_done(load.run(plan.length_s, stop), others)
            is_whole = not stop.is_set()
        finally:
            course = Course(
                is_whole=is_whole,
                not_begun=load.not_begun,
                latest_s=load.latest_s,
                missed=len(conductor.missed),
                deaths=tuple(conductor.deaths),
                refusals=dict(load.refusals),
            )
            files.end(course)
    return Measured(tally, probes.count, files.end_s - files.start_s, course)


async def _replicas_up(setting: Setting, ways: Ways, onlooker: Onlooker) -> None:
    """Start the replicas, which find each other over the ways that may be closed between them; or see that some run."""
    urls = setting.document.urls
    if setting.replicas is None:
        onlooker.begins("Looking for the replicas")
        await find_any(urls)
        return
    onlooker.begins(f"Starting {len(urls)} replicas")
    for name in urls:
        setting.replicas.set_endpoints(name, ways.endpoints_of(name))
    await start_all(setting.replicas)


def closable(plan: Plan, setting: Setting, schedule: Schedule) -> Iterator[Way]:
    """The ways that the schedule closes at least once. Those between replicas that run already are out of its reach."""
    replicas = tuple(setting.document.urls) if setting.replicas is not None else ()
    for outage in schedule.outages:
        if outage.kind == "cut":
            others = [name for name in replicas if name != outage.replica]
            yield from ((asker, outage.replica) for asker in (*plan.cluster.front_ends, PROBER, *others))
            yield from ((outage.replica, other) for other in others)
    for parting in schedule.partings:
        yield parting.asker, parting.replica


async def _connected(
    plan: Plan, setting: Setting, ways: Ways, stack: AsyncExitStack
) -> dict[str, AsyncClient]:
    is_weak = any(setting.document.choice_of(name).is_weak for name in plan.choice_by_object)
    history = setting.folder / HISTORY if is_weak else None
    return {
        name: await stack.enter_async_context(
            connect_async(
                setting.document,
                endpoints=ways.urls_of(name),
                token=setting.token,
                tls=from_environment(),
                history=history,
            )
        )
        for name in plan.cluster.front_ends
    }


async def _until_done(load: Coroutine[Any, Any, None], others: list[Coroutine[Any, Any, None]]) -> None:
    """Run the load to its end and the others beside it; they are cancelled afterwards. Raises what any of them raised."""
    main = asyncio.ensure_future(load)
    beside = [asyncio.ensure_future(each) for each in others]
    failed = asyncio.ensure_future(_first_failure(beside))
    try:
        await asyncio.wait((main, failed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (main, failed, *beside):
            task.cancel()
        ended = await asyncio.gather(main, *beside, return_exceptions=True)
    for each in ended:
        if isinstance(each, Exception):
            raise _first(each)


def _first(error: Exception) -> Exception:
    """The error of a task in a group, which is what a person can do something about."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


async def _first_failure(tasks: Sequence[asyncio.Future[None]]) -> None:
    """Returns when one of the tasks has raised, or all have ended."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)


class _Files:
    """The small files of a run, written anew while it goes on."""

    def __init__(self, plan: Plan, setting: Setting, conductor: Conductor, clock: RunClock) -> None:
        self._plan: Final = plan
        self._setting: Final = setting
        self._conductor: Final = conductor
        self._clock: Final = clock
        self.start_s: Final = clock.now_s()
        self.end_s = self.start_s

    async def run(self, onlooker: Onlooker) -> None:
        """Write now and then, until cancelled."""
        while True:
            self._write("is going on, or was killed", [UNENDED])
            for _ in range(TELLS):
                onlooker.reached(self._clock.now_s() - self.start_s)
                await asyncio.sleep(WRITE_S / TELLS)

    def end(self, course: Course) -> None:
        """Write for the last time."""
        self._write("is whole" if course.is_whole else "was ended early", course.notes)

    def _write(self, state: str, notes: Sequence[str]) -> None:
        plan, setting, now_s = self._plan, self._setting, self._clock.now_s()
        self.end_s = min(now_s, self.start_s + plan.length_s)
        run = Run(
            document=setting.document,
            objects=plan.choice_by_object,
            front_ends=plan.cluster.front_ends,
            window=(self.start_s, self.end_s),
            racks=plan.cluster.racks,
            time_scale=plan.time.scale,
            probe_step_s=plan.prober.step or None,
            plan=setting.plan_text,
            made={**setting.made, "state": state},
            notes=tuple(notes),
        )
        write_run(setting.folder, run)
        # Of replicas that others start and stop, nothing is known for true; the prober alone tells.
        up_times = self._conductor.up_times.intervals(now_s) if setting.replicas else ()
        write_up_times(setting.folder / REPLICAS, "replica", up_times)
        links = self._conductor.link_times.intervals(now_s)
        if of_front_ends := [each for each in links if each.name[0] in plan.cluster.front_ends]:
            write_up_times(setting.folder / LINKS, "front_end,replica", of_front_ends)
        if between := [each for each in links if each.name[0] not in plan.cluster.front_ends]:
            write_up_times(setting.folder / REPLICA_LINKS, "asker,replica", between)
