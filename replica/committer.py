"""Group commit: one writer thread, and work of concurrent requests that shares one transaction.

Owns the thread, the queue before it and the order "commit, then answer". Must not know HTTP, nor what the work means.
No event loop ever waits for the disk; no answer leaves before what it promises is there.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from quorate.replica.store import StorageFailed, Store

JOBS_MAX: Final = 2000
"""Jobs that wait; more are refused."""
GROUP_WEIGHT_MAX: Final = 2000
"""Protocol requests in one transaction, unless a single job has more: what comes later waits no longer than that."""
STOP_TIMEOUT_S: Final = 10.0

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Overloaded(Exception):
    """Too many jobs wait; nothing of this one was or will be done."""


class _Job:
    __slots__ = ("error", "future", "loop", "result", "weight", "work")

    def __init__(self, work: Callable[[Store], Any], weight: int) -> None:
        self.work = work
        self.weight = weight
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: Exception | None = None


class Committer:
    """The only user of a store.

    `problem` is None, or why the store cannot be written; `in_doubt` that only a restart may end it.
    """

    def __init__(self, store: Store, *, jobs_max: int = JOBS_MAX) -> None:
        self._store: Final = store
        self._jobs_max: Final = jobs_max
        self._jobs: deque[_Job] = deque()
        self._changed: Final = threading.Condition()
        self._is_stopping = False
        self._thread: Final = threading.Thread(target=self._run, name="quorate-writer", daemon=True)
        self.problem: str | None = None
        self.in_doubt = False

    def start(self) -> None:
        """Start the writer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what waits, then close the store. Blocks for at most STOP_TIMEOUT_S."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join(STOP_TIMEOUT_S)

    async def submit(self, work: Callable[[Store], _Result], weight: int = 1) -> _Result:
        """What `work` returns, once all that it wrote is on disk.

        It runs in the writer thread, and again alone when it or other work in its transaction raised. Raises what `work`
        raised (then nothing is written), Overloaded, or StorageFailed (then what is written is not known).
        """
        if self.in_doubt:
            raise StorageFailed(str(self.problem))
        job = _Job(work, weight)
        with self._changed:
            if self._is_stopping:
                raise Overloaded("the replica is stopping")
            if len(self._jobs) >= self._jobs_max:
                raise Overloaded(f"{self._jobs_max} requests wait for the disk already")
            self._jobs.append(job)
            self._changed.notify()
        result: _Result = await job.future
        return result

    def _run(self) -> None:
        while group := self._next_group():
            try:
                self._commit(group)
            except Exception as error:  # noqa: BLE001
                # `_commit` hands on all that work and store raise, so this is a mistake in undoing or in here: of any
                # class. Without the thread nobody would ever be answered; with it, all hear that the store is in doubt.
                _log.exception("the writer met an error of its own")
                self.problem, self.in_doubt = f"the writer failed: {error}", True
                for job in group:
                    job.error = StorageFailed(self.problem)
            _release(group)
        try:
            self._store.close()
        except StorageFailed as error:
            _log.error("closing the store: %s", error)

    def _next_group(self) -> list[_Job]:
        """The jobs that wait, up to a weight; waits for one. Empty when the committer stops."""
        with self._changed:
            while not self._jobs and not self._is_stopping:
                self._changed.wait()
            group: list[_Job] = []
            weight = 0
            while self._jobs and (not group or weight + self._jobs[0].weight <= GROUP_WEIGHT_MAX):
                weight += self._jobs[0].weight
                group.append(self._jobs.popleft())
            return group

    def _commit(self, group: list[_Job]) -> None:
        """Do the group in one transaction; when one job raises, each in a transaction of its own."""
        error = self._attempt(group)
        if error is not None and not isinstance(error, StorageFailed) and len(group) > 1:
            for job in group:
                job.error = self._attempt([job])
        else:
            for job in group:
                job.error = error

    def _attempt(self, group: list[_Job]) -> Exception | None:
        if self.in_doubt:
            return StorageFailed(str(self.problem))
        try:
            for job in group:
                job.result = job.work(self._store)
            commits = self._store.commits
            self._store.commit()
            if self._store.commits > commits:
                self.problem = None
        except Exception as error:  # noqa: BLE001
            # Work may raise what it likes, which is its submitter's business; here it must only be undone.
            self._undo(error)
            return error
        return None

    def _undo(self, error: Exception) -> None:
        if isinstance(error, StorageFailed):
            self._note(error)
        try:
            self._store.rollback()
        except StorageFailed as again:
            self._note(again)

    def _note(self, error: StorageFailed) -> None:
        if not self.in_doubt:  # The first of the errors that do not pass says why; the rest follow from it.
            self.problem = str(error)
            if not error.passing:
                self.in_doubt = True
                self.problem += ": what is on disk is in doubt; check the disk, then restart the replica"
        _log.error("%s", self.problem)


def _release(group: list[_Job]) -> None:
    """Answer all jobs of one event loop in one wake-up."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in group:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, jobs)
        except RuntimeError:  # The loop was closed: nobody waits any more.
            _log.debug("an event loop went away before its answers")


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
