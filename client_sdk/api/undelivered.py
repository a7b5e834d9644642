"""What dequeues took whose callers had gone away, kept for the next dequeue of the same queue at the same client.

Owns these items and the outcomes that are still to come. An item leaves the queue with the decision that takes it, and a caller
may be cancelled, or an observer or a history may raise, at any moment after that. Must not know how operations run.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeGuard

from ...adts.log import Value
from ..protocol.core.values import Dequeue, Done, Operation, Outcome

_log = logging.getLogger(__name__)

Conclude = Callable[[Outcome | BaseException], None]


def is_kept(operation: Operation) -> TypeGuard[Dequeue]:
    """Whether what it takes is kept here; a dequeue with an idempotency key is repeated with the key instead."""
    return isinstance(operation, Dequeue) and not operation.key


def conclude_with(outcome: asyncio.Future[Outcome], conclude: Conclude) -> None:
    """Tell how an operation ended that nobody waits for."""
    try:
        conclude(outcome_of(outcome))
    except OSError:  # The history cannot be written, and nobody waits who could be told.
        _log.exception("the end of a cancelled operation could not be told")


def outcome_of(ended: asyncio.Future[Outcome]) -> Outcome | BaseException:
    """The outcome of an operation that has ended, or what it raised."""
    error = asyncio.CancelledError() if ended.cancelled() else ended.exception()
    return error or ended.result()


class Undelivered:
    """Of one client. At most as many outcomes are to come as dequeues were under way at one time."""

    def __init__(self) -> None:
        self._values: Final[dict[str, deque[Value]]] = {}
        self._coming: Final[dict[str, deque[asyncio.Future[Outcome]]]] = {}

    def is_empty(self, name: str) -> bool:
        """Whether nothing of the queue is kept or to come."""
        return not self._values.get(name) and not self._coming.get(name)

    def keep(self, operation: Operation, values: Any) -> None:
        """Keep what the operation took, if it is a dequeue that took anything."""
        if is_kept(operation) and values:
            self._values.setdefault(operation.object, deque()).extend(values)

    def expect(self, operation: Operation, coming: asyncio.Future[Outcome], conclude: Conclude) -> None:
        """Keep what the operation will have taken. `conclude` hears of its outcome, or of what it raised."""

        def came(outcome: asyncio.Future[Outcome]) -> None:
            self._coming[operation.object].remove(outcome)
            if not self._coming[operation.object]:
                del self._coming[operation.object]
            end = outcome_of(outcome)
            if isinstance(end, Done):
                self.keep(operation, end.result)
            conclude_with(outcome, conclude)

        self._coming.setdefault(operation.object, deque()).append(coming)
        coming.add_done_callback(came)

    async def take(self, operation: Dequeue, limit_s: float) -> Sequence[Value]:
        """What is kept of the queue, as much as the operation may take. Waits for what is to come; TimeoutError after `limit_s`."""
        async with asyncio.timeout(limit_s):
            while not self._values.get(operation.object) and (coming := self._coming.get(operation.object)):
                await asyncio.wait((coming[0],))
        values = self._values.get(operation.object, deque())
        taken = tuple(values.popleft() for _ in range(min(operation.items_max, len(values))))
        if not values:
            self._values.pop(operation.object, None)
        return taken

    def close(self) -> None:
        """Say what is lost, at the end of the client."""
        for name, values in self._values.items():
            _log.warning(
                "%d items of %s that cancelled dequeues took were not asked for again: they are gone",
                len(values),
                name,
            )
        self._values.clear()
