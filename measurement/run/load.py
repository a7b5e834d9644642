"""The workloads of a plan, at their rates, whatever happens to the replicas.

Owns who begins which operation when. The load is open: each operation begins at its appointed time, so that one that waits
in vain does not keep the next from being counted ("coordinated omission"). All objects of a workload get the same operation
from the same front end at the same moment, and so meet the same faults.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from ...api_specs.cluster import ClusterDocument
from ...client_sdk import AsyncClient, QuorateError, RefusedByReplicas
from ...client_sdk.protocol.core.values import Operation, Outcome
from ..clock import RunClock
from ..plan.plan import Workload, object_of
from ..rows import OperationRow, operation_row
from ..rows import object_of as object_of_operation
from .steps import Step, fill, step_of

CONSUMER_TURN_S: Final = 5.0
"""For so long one front end runs all deciding operations (Deq, Cas …), then the next: two at once would depose each other."""
IN_FLIGHT_MAX: Final = 1000
"""Operations under way. One whose time comes when so many are is recorded as unavailable, for nobody gets an answer to it."""


def observer(
    front_end: str,
    document: ClusterDocument,
    choice_of: Mapping[str, str],
    record: Callable[[OperationRow], None],
    clock: RunClock,
) -> Callable[[Operation, float, float, Outcome], None]:
    """What a client calls after each operation; `choice_of` names the choice of each object, those of others are left out.

    Its time of start is ignored for the run's clock, which does not jump.
    """

    def observe(operation: Operation, _: float, latency_s: float, outcome: Outcome) -> None:
        name = object_of_operation(operation)
        choice = choice_of.get(name)
        if choice is not None:
            start_s = clock.now_s() - latency_s
            record(
                operation_row(
                    operation,
                    outcome,
                    adt=document.judged_as(name),
                    choice=choice,
                    front_end=front_end,
                    start_s=start_s,
                    latency_s=latency_s,
                )
            )

    return observe


class Load:
    """`workloads` by `clients` (by the names of front ends), whose observers record; `record` hears of what never began.
    `classes` has those of one's own types, by type."""

    def __init__(
        self,
        workloads: Sequence[Workload],
        clients: Mapping[str, AsyncClient],
        record: Callable[[OperationRow], None],
        clock: RunClock,
        classes: Mapping[str, type],
    ) -> None:
        self._classes: Final = classes
        self._workloads: Final = workloads
        self._clients: Final = clients
        self._record: Final = record
        self._clock: Final = clock
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self.begun = 0
        self.not_begun = 0
        """Operations for which there was no room (IN_FLIGHT_MAX)."""
        self.latest_s = 0.0
        """How late the latest operation began: what this machine's load costs the measurement."""
        self.refusals: Final[dict[str, str]] = {}
        """By object, what an operation on it was refused for, the first time."""

    async def fill(self, prefills: Sequence[int]) -> None:
        """Give each object what its operations expect to find; one number of items for each workload."""
        client = next(iter(self._clients.values()))
        for workload, items in zip(self._workloads, prefills, strict=True):
            for choice in workload.choices:
                await fill(client, workload, object_of(workload, choice).partition("/")[2], items)

    async def run(self, length_s: float, stop: asyncio.Event) -> None:
        """Begin operations for `length_s` seconds or until `stop` is set, and wait until each has its outcome."""
        start_s = time.monotonic()
        sources = [
            (workload, step_of(workload, operation, self._classes), rate)
            for workload in self._workloads
            for operation, rate in workload.rates.items()
        ]
        # Sources begin at different moments, or all would ask for the machine at once.
        begun = asyncio.gather(
            *(
                self._begin_all(
                    workload, step, rate, start_s + place / len(sources) / rate, start_s + length_s
                )
                for place, (workload, step, rate) in enumerate(sources)
            )
        )
        await done_before(stop, begun)
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _begin_all(
        self, workload: Workload, step: Step, rate: float, first_s: float, end_s: float
    ) -> None:
        names = list(self._clients)
        number = 0
        while (due_s := first_s + number / rate) < end_s:
            await asyncio.sleep(due_s - time.monotonic())
            self.latest_s = max(self.latest_s, time.monotonic() - due_s)
            turn = int((due_s - first_s) / CONSUMER_TURN_S) if step.decides else number
            front_end = names[turn % len(names)]
            for choice in workload.choices:
                self._begin(step, workload, object_of(workload, choice), front_end, number)
            number += 1

    def _begin(self, step: Step, workload: Workload, object: str, front_end: str, number: int) -> None:
        if len(self._tasks) >= IN_FLIGHT_MAX:
            self.not_begun += 1
            self._record(self._refused(workload, object, step.operation, front_end))
            return
        self.begun += 1
        name = object.partition("/")[2]
        running = self._answered(object, step.run(self._clients[front_end], name, number, workload.deadline))
        task = asyncio.get_running_loop().create_task(running)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, object: str, operation: Awaitable[object]) -> None:
        """Run an operation; whoever records it has heard of its outcome, whatever that was."""
        try:
            await operation
        except RefusedByReplicas as error:
            self.refusals.setdefault(object, str(error))
        except QuorateError:
            pass

    def _refused(self, workload: Workload, object: str, operation: str, front_end: str) -> OperationRow:
        choice = next(each.name for each in workload.choices if object_of(workload, each) == object)
        now_s = self._clock.now_s()
        adt = self._clients[front_end].document.judged_as(object)
        return OperationRow(object, adt, operation, None, choice, front_end, now_s, 0.0, "unavailable", ())


async def done_before(stop: asyncio.Event, work: Awaitable[object]) -> bool:
    """Whether `work` came to its end before `stop` was set; it is cancelled then. Raises what it raised."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_done = task.done()
        for each in (task, stopped):
            each.cancel()
        # Waited for where it was cancelled, too: what nobody takes is printed as a traceback in the middle of the table.
        (ended, _) = await asyncio.gather(task, stopped, return_exceptions=True)
    if isinstance(ended, Exception):
        raise ended
    return is_done
