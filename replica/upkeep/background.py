"""What the background tasks of a replica share: they outlive every failure of the store and every mistake of ours, and end at once.

Nobody waits for such a task, so nobody else would hear of what went wrong; its next round may go well.
"""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from ...client_sdk.protocol.core.values import Outcome
from ..logs.throttle import Troubles
from ..service.member import StoreLost
from ..store.group_commit import Overloaded
from ..store.store import StorageFailed

_Result = TypeVar("_Result")
_Asked_contra = TypeVar("_Asked_contra", contravariant=True)


class Silent(Exception):
    """Another replica did not answer; the next round asks again."""


class FrontEnd(Protocol[_Asked_contra]):
    """What a task uses of the replica's own front end, for the operations that it asks for."""

    async def run(self, operation: _Asked_contra, deadline_s: float) -> Outcome:
        """The outcome of `operation`."""


class Background:
    """Tasks that work until `stop`, or until the replica must not vote. `log` hears of what goes wrong."""

    def __init__(self, log: logging.Logger) -> None:
        self._log: Final = log
        self._troubles: Final = Troubles(log, logging.WARNING)
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._is_over = False

    def start(self) -> None:
        """Begin, on the running event loop."""
        raise NotImplementedError

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None] | None:
        """The task that does it; None once it is over."""
        if self._is_over:
            work.close()
            return None
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """End at once; what is due stays due."""
        self._is_over = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _outlived(self, work: Awaitable[_Result], waits: str, whose: str) -> _Result | None:
        """What comes of `work`, a part of what `whose` names; None where it failed. Raises StoreLost and Silent alone."""
        try:
            result = await work
        except (StoreLost, Silent):
            raise
        except (Overloaded, StorageFailed) as error:
            self._troubles.meet(f"{waits}: {error}")
        except Exception:  # noqa: BLE001 - any mistake of ours: see above
            self._log.exception("%s met an error of its own", whose)
        else:
            self._troubles.end()
            return result
        return None
