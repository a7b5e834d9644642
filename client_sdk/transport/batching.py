"""Enqueues of many callers at once on one queue, run as one: one set of messages and one wait instead of one for each.

Owns which enqueues go together, and that each caller hears the outcome of all. To the machine they are one enqueue of
several values, in the order in which their callers came. Must not know how an operation runs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from ...api_specs.limits import ENTRY_BYTES, Limits
from ...api_specs.values import text_bytes
from ..protocol.core.values import Enqueue, Outcome, Spans

BYTES_MAX: Final = 256 * 1024
"""Entries that go together: a small one should not wait for many large ones to be sent."""

Which = tuple[str, float, Spans]
"""What those have in common that go together: the queue, the deadline, and when their items are due and expire."""

Run = Callable[[Enqueue, float, Sequence[Any]], Awaitable[Outcome]]


class _Group:
    """Callers that wait for one operation."""

    def __init__(self) -> None:
        self.operations: list[Enqueue] = []
        self.callers: list[asyncio.Future[Outcome]] = []
        self.traced: list[Any] = []
        """The spans of those that are traced."""
        self.items = 0
        self.bytes = 0


class Together:
    """Runs enqueues without a key; those that begin in one turn of the event loop, on one queue and with the same deadline,
    as one operation by `run`."""

    def __init__(self, run: Run, limits: Limits) -> None:
        self._run: Final = run
        self._items_max: Final = limits.batch_items_max
        self._bytes_max: Final = min(BYTES_MAX, limits.body_bytes_max // 2)
        self._open: Final[dict[Which, _Group]] = {}
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    async def enqueue(self, operation: Enqueue, deadline_s: float, traced: Sequence[Any] = ()) -> Outcome:
        """The outcome of `operation`, and of all that went with it; `traced` is its span, if it has one. A caller that is cancelled leaves the others to it;
        when all are, the operation is cancelled."""
        group = self._group(operation, deadline_s)
        caller: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        group.operations.append(operation)
        group.callers.append(caller)
        group.traced += traced
        return await caller

    def _group(self, operation: Enqueue, deadline_s: float) -> _Group:
        """The group that the operation goes with; one that is full goes without it."""
        which = (operation.object, deadline_s, operation.spans)
        items = len(operation.values)
        size = items * ENTRY_BYTES + sum(map(text_bytes, operation.values))
        group = self._open.get(which)
        if group is None or group.items + items > self._items_max or group.bytes + size > self._bytes_max:
            group = self._open[which] = _Group()
            asyncio.get_running_loop().call_soon(self._begin, which, group)
        group.items += items
        group.bytes += size
        return group

    def _begin(self, which: Which, group: _Group) -> None:
        if self._open.get(which) is group:
            del self._open[which]
        task = asyncio.get_running_loop().create_task(self._run_all(group, which[1]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for caller in group.callers:
            caller.add_done_callback(lambda _: self._cancel_if_alone(group, task))

    async def _run_all(self, group: _Group, deadline_s: float) -> None:
        callers = zip(group.operations, group.callers, strict=True)
        wanted = [operation for operation, caller in callers if not caller.cancelled()]
        if not wanted:
            return
        values = tuple(value for operation in wanted for value in operation.values)
        try:
            whole = Enqueue(wanted[0].object, values, spans=wanted[0].spans)
            outcome = await self._run(whole, deadline_s, group.traced)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the callers'
            for caller in group.callers:
                if not caller.done():
                    caller.set_exception(error)
        else:
            for caller in group.callers:
                if not caller.done():
                    caller.set_result(outcome)

    @staticmethod
    def _cancel_if_alone(group: _Group, task: asyncio.Task[None]) -> None:
        """Nobody is left to hear of it."""
        if all(caller.cancelled() for caller in group.callers):
            task.cancel()
