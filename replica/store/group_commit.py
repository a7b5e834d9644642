"""Group commit: one writer thread, and work of concurrent requests that shares one transaction.

Owns the thread, the queue before it and the order "commit, then answer". Must not know HTTP, nor what the work means.
No event loop waits for a commit; no answer leaves before what it promises is on disk. Small reads need no commit: while the
writer is idle, the event loop does them itself.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from ...client_sdk.protocol.core.counters import SECONDS, Histogram
from ...client_sdk.protocol.core.turns import Shares, Turns
from ..logs.throttle import Troubles
from .store import StorageFailed, Store

JOBS_MAX: Final = 2000
"""Jobs that wait, in shares of their callers; more are refused."""
GROUP_WEIGHT_MAX: Final = 2000
"""Protocol requests in one transaction, unless a single job has more: what comes later waits no longer than that."""
GROUP_S_MAX: Final = 0.1
"""Seconds of work in one transaction, unless a single job takes more; the rest of its group goes into the next one."""
GROUP_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of results of one transaction, unless a single job has more; the rest of its group goes into the next one."""
HEAVY_S: Final = 0.02
"""A long read that takes more seconds is heavy. Its caller's next ones have transactions of their own, for nobody is to wait for theirs."""
HEAVY_KEPT_S: Final = 10.0
"""So many seconds after its last heavy read a caller's long reads are like others again."""
REST_S_MAX: Final = 0.5
"""After a heavy read its caller's next one waits for as long as it took, so many seconds at most: they have half of the writer's time."""
LATELY_S: Final = 1.0
"""It does not wait where nobody else has used the store for so many seconds."""
TELL_WEIGHT_MAX: Final = 100
"""Protocol requests answered in one turn of an event loop, unless a single job has more."""
TELL_BYTES_MAX: Final = 1024 * 1024
"""Bytes of results told in one turn, unless a single job has more."""
UNTOLD_BYTES_MAX: Final = 32 * 1024 * 1024
"""Bytes of results that wait to be told. While there are more, nothing new is begun."""
UNTOLD_S_MAX: Final = 1.0
"""So long an event loop that is held up keeps the writer, on which others may wait."""
STOP_TIMEOUT_S: Final = 10.0
SIZES: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
"""Upper bounds of the classes into which transactions are counted."""

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class Overloaded(Exception):
    """Too many jobs wait; nothing of this one was or will be done."""


class Transaction(NamedTuple):
    """One transaction that came to its end, in nanoseconds since 1970: when its work began, when it was to be made durable,
    and when it was on disk; and how many requests shared it."""

    begun_ns: int
    committing_ns: int
    ended_ns: int
    requests: int


class Sized(NamedTuple, Generic[_Result]):
    """What work returns in place of its result to say how many bytes that has. Only so much of it is held at a time."""

    result: _Result
    size: int


class Unwanted(Exception):
    """Whoever wanted it went away before it began; nothing of it was or will be done."""


Note = Callable[[Transaction], None]
"""Hears of the transaction that a job was part of, in the thread that did it, once all is on disk. Raises nothing."""

Done = Callable[[Any, Exception | None], None]
"""Hears, on the event loop that a job came from, what it returned, or else None and what went wrong. Raises nothing."""


class _Job:
    __slots__ = (
        "caller",
        "done",
        "error",
        "is_long",
        "is_wanted",
        "loop",
        "note",
        "result",
        "size",
        "weight",
        "work",
    )

    def __init__(
        self,
        work: Callable[[Store], Any],
        weight: int,
        done: Done,
        note: Note | None,
        is_wanted: Callable[[], bool],
        caller: Hashable,
        *,
        is_long: bool,
    ) -> None:
        self.caller = caller
        self.is_long = is_long
        self.work = work
        self.weight = weight
        self.done = done
        self.note = note
        self.is_wanted = is_wanted
        self.loop = asyncio.get_running_loop()
        self.result: Any = None
        self.size = 0
        """Bytes of the result, as far as the work told them."""
        self.error: Exception | None = None

    @property
    def turn(self) -> Hashable:
        """Whose turn it waits for: a caller's short ones do not wait for its long ones."""
        return self.caller, self.is_long

    def do(self, store: Store) -> int:
        """Do the work and keep what it returned: how many bytes."""
        result = self.work(store)
        self.result, self.size = result if isinstance(result, Sized) else (result, 0)
        return self.size


class _Untold:
    """What was done and waits to be told on one event loop, and how much was told in this turn, or in turns before in which little was."""

    def __init__(self) -> None:
        self.jobs: Final[deque[_Job]] = deque()
        self.weight = self.size = 0
        self.is_waiting = False
        """Whether the next turn goes on."""

    def has_room(self, job: _Job) -> bool:
        """Whether the job may be told in this turn: one may, whatever it weighs."""
        is_light = self.weight + job.weight <= TELL_WEIGHT_MAX and self.size + job.size <= TELL_BYTES_MAX
        return is_light or not self.weight


class _Portion:
    """How much of a group one transaction may do: for so long, and with results of so many bytes."""

    def __init__(self) -> None:
        self._late_s: Final = time.perf_counter() + GROUP_S_MAX
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether the rest of the group is left to another transaction."""
        return self.bytes > GROUP_BYTES_MAX or time.perf_counter() >= self._late_s


class TransactionCounts:
    """What the transactions that wrote were like."""

    def __init__(self) -> None:
        self.requests: Final = Histogram(SIZES)
        self.rows: Final = Histogram(SIZES)
        """Log entries put."""
        self.commit_s: Final = Histogram(SECONDS)
        """How long it took until all was on disk."""


class Committer:
    """The only user of a store.

    `problem` is None, or why the store cannot be written; `in_doubt` that only a restart may end it.
    """

    def __init__(self, store: Store, *, jobs_max: int = JOBS_MAX) -> None:
        self._store: Final = store
        self._jobs: Final[Turns[_Job]] = Turns()
        self._room: Final = Shares(jobs_max)
        """For jobs that wait."""
        self._rests: dict[Hashable, float] = {}
        """Until when those rest whose heavy reads were done lately."""
        self._now_s = 0.0
        """When the writer looked at the clock last, for those who rest."""
        self._others_s = -LATELY_S
        """When work that is no long read was done last."""
        self._changed: Final = threading.Condition()
        self._is_stopping = False
        self._untold: Final[dict[asyncio.AbstractEventLoop, _Untold]] = {}
        """By the event loop that it came from."""
        self._untold_bytes = 0
        self._told: Final[deque[int]] = deque()
        """Of these, bytes that were told since the writer counted last. The event loop takes no lock for it: while the writer has the
        lock and waits for the interpreter, it would have both wait."""
        self._is_full = False
        """Whether the writer waits until results were told."""
        self._in_use: Final = threading.Lock()
        """Held by whoever uses the store."""
        self._is_busy = False
        """Whether the writer uses the store, or is about to: small reads must not keep it from its turn."""
        self._thread: Final = threading.Thread(target=self._run, name="quorate-writer", daemon=True)
        self._troubles: Final = Troubles(_log, logging.ERROR)
        """Of whoever uses the store."""
        self.problem: str | None = None
        self.in_doubt = False
        self.counts: Final = TransactionCounts()

    def start(self) -> None:
        """Start the writer thread."""
        self._thread.start()

    def stop(self) -> None:
        """Finish what waits, then close the store. Blocks for at most STOP_TIMEOUT_S."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify()
        self._thread.join(STOP_TIMEOUT_S)

    async def submit(
        self,
        work: Callable[[Store], _Result | Sized[_Result]],
        weight: int = 1,
        *,
        is_quick: bool = False,
        note: Note | None = None,
        caller: Hashable = None,
        is_long: bool = False,
    ) -> _Result:
        """What `work` returns, once all that it wrote is on disk.

        It runs in the writer thread, and again alone when it or other work in its transaction raised. Raises what `work`
        raised (then nothing is written), Overloaded, or StorageFailed (then what is written is not known).
        `is_quick`: it only reads, and little. While nobody uses the store it runs in the caller's thread: to wake the writer,
        and to be woken by it, would take several times as long. `note` hears of its transaction. Callers take turns. `is_long`: it reads much
        (`REST_S_MAX`).
        """
        future: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self.post(
            work,
            partial(_settle, future),
            weight,
            is_quick=is_quick,
            note=note,
            is_wanted=partial(_is_awaited, future),
            caller=caller,
            is_long=is_long,
        )
        try:
            return await future
        finally:
            # What it raises knows this frame, and is known to it: with both, the work would wait for the garbage collector.
            del future

    def post(
        self,
        work: Callable[[Store], Any],
        done: Done,
        weight: int = 1,
        *,
        is_quick: bool = False,
        note: Note | None = None,
        is_wanted: Callable[[], bool] = lambda: True,
        caller: Hashable = None,
        is_long: bool = False,
    ) -> None:
        """As `submit`, for who would rather be told than wait: `done` hears what came of it, maybe before this returns; or
        Unwanted, where `is_wanted`, asked in any thread, denied it before it began.

        Raises Overloaded or StorageFailed where nothing was or will be done, and `done` hears nothing.
        """
        if self.in_doubt:
            raise StorageFailed(str(self.problem))
        job = _Job(work, weight, done, note, is_wanted, caller, is_long=is_long)
        if is_quick and self._do_at_once(job):
            _tell(job)
        else:
            self._queue(job)

    def _do_at_once(self, job: _Job) -> bool:
        """Do the job here, unless others wait or the store is in use; whether it was done."""
        if self._is_busy or self._jobs or not self._in_use.acquire(blocking=False):
            return False
        try:
            if self._is_stopping:
                return False
            self._do([job])
            self._others_s = time.perf_counter()
        finally:
            self._in_use.release()
        return True

    def _queue(self, job: _Job) -> None:
        with self._changed:
            if self._is_stopping:
                raise Overloaded("the replica is stopping")
            if not self._room.may_take(job.caller):
                raise Overloaded("too many requests wait for the disk already")
            self._room.take(job.caller)
            self._jobs.add(job.turn, job)
            self._changed.notify()

    def _run(self) -> None:
        while group := self._next_group():
            with self._in_use:
                left = self._do(group)
            done = group
            if left:
                waiting = set(left)
                done = [job for job in group if job not in waiting]
                with self._changed:
                    self._put_back(left)
            self._untold_bytes += sum(job.size for job in done)
            self._is_busy = False
            self._release(done)
        try:
            with self._in_use:
                self._store.close()
        except StorageFailed as error:
            _log.error("closing the store: %s", error)

    def _do(self, group: list[_Job]) -> list[_Job]:
        """Give each job its result or error, but for those, given back, that no time was left for. Raises nothing."""
        try:
            wanted = [job for job in group if job.is_wanted()]
            if len(wanted) < len(group):
                for job in set(group).difference(wanted):
                    job.error = Unwanted("nobody waits for it any more")
            return self._commit(wanted)
        except Exception as error:  # noqa: BLE001
            # `_commit` hands on all that work and store raise, so this is a mistake in undoing or in here: of any
            # class. Without the thread nobody would ever be answered; with it, all hear that the store is in doubt.
            _log.exception("the writer met an error of its own")
            self.problem, self.in_doubt = f"the writer failed: {error}", True
            for job in group:
                job.error = StorageFailed(self.problem)
            return []

    def _next_group(self) -> list[_Job]:
        """The jobs that wait, up to a weight; waits for one, and until results were told. Empty when the committer stops."""
        with self._changed:
            if self._has_much_untold():
                self._is_full = True
                self._changed.wait_for(lambda: self._is_stopping or not self._has_much_untold(), UNTOLD_S_MAX)
                self._is_full = False
            group: list[_Job] = []
            weight, job = 0, self._awaited()
            while job is not None:
                self._room.give(job.caller)
                group.append(job)
                weight += job.weight
                if len(group) > 1 and (job.turn in self._rests or weight > GROUP_WEIGHT_MAX):
                    self._put_back([group.pop()])
                    break
                job = None if job.turn in self._rests else self._jobs.pop(self._may_go)
            return group

    def _awaited(self) -> _Job | None:
        """The next job; waits for one, or until one has rested. None when the committer stops."""
        while True:
            now_s = self._now_s = time.perf_counter()
            self._rests = {
                turn: until_s for turn, until_s in self._rests.items() if until_s + HEAVY_KEPT_S > now_s
            }
            if (job := self._jobs.pop(self._may_go)) is None and (
                self._is_stopping or now_s >= self._others_s + LATELY_S
            ):
                job = self._jobs.pop()
            if job is not None or self._is_stopping:
                self._is_busy = True
                if job is not None and not job.is_long:
                    self._others_s = now_s
                return job
            ends_s = (until_s for until_s in self._rests.values() if until_s > now_s)
            self._changed.wait(min(ends_s) - now_s if self._jobs else None)

    def _may_go(self, turn: Hashable) -> bool:
        return self._rests.get(turn, self._now_s) <= self._now_s

    def _has_much_untold(self) -> bool:
        while self._told:
            self._untold_bytes -= self._told.popleft()
        return self._untold_bytes > UNTOLD_BYTES_MAX

    def _put_back(self, jobs: list[_Job]) -> None:
        """They are the next ones."""
        for job in reversed(jobs):
            self._room.take(job.caller)
            self._jobs.put_back(job.turn, job)

    def _commit(self, group: list[_Job]) -> list[_Job]:
        """Do the group in one transaction; when one job raises, each in a transaction of its own. What no time is left for."""
        portion = _Portion()
        left, error = self._attempt(group, portion)
        if error is not None and not isinstance(error, StorageFailed) and len(group) > 1:
            for place, job in enumerate(group):
                if place and portion.is_full:
                    return group[place:]
                _, job.error = self._attempt([job], portion)
            return []
        for job in group[: len(group) - len(left)]:
            job.error = error
        return left

    def _attempt(self, group: list[_Job], portion: _Portion) -> tuple[list[_Job], Exception | None]:
        """Those of the group that were not begun, for the portion was full; and what was raised."""
        if self.in_doubt:
            return [], StorageFailed(str(self.problem))
        rows, begun_s = self._store.rows_put, time.perf_counter()
        try:
            done = self._work(group, portion)
            commits, committing_s = self._store.commits, time.perf_counter()
            self._store.commit()
            ended_s = time.perf_counter()
            if self._store.commits > commits:
                self.problem = None
                self._troubles.end()
                self.counts.requests.add(sum(job.weight for job in done))
                self.counts.rows.add(self._store.rows_put - rows)
                self.counts.commit_s.add(ended_s - committing_s)
        except Exception as error:  # noqa: BLE001
            # Work may raise what it likes, which is its submitter's business; here it must only be undone.
            self._undo(error)
            if isinstance(error, StorageFailed):
                # It is told in a sentence. With its frames it would know the jobs, which know it: all of them would stay until the
                # garbage collector comes.
                error.__traceback__ = None
            return [], error
        _note(done, begun_s, committing_s, ended_s)
        return group[len(done) :], None

    def _work(self, group: list[_Job], portion: _Portion) -> list[_Job]:
        """Do at least one of the jobs, and others until the portion is full: those that were done."""
        for place, job in enumerate(group):
            if place and portion.is_full:
                return group[:place]
            began_s = time.perf_counter() if job.is_long else 0.0
            portion.bytes += job.do(self._store)
            if job.is_long and (took_s := (now_s := time.perf_counter()) - began_s) > HEAVY_S:
                self._rests[job.turn] = now_s + min(took_s, REST_S_MAX)
        return group

    def _release(self, group: list[_Job]) -> None:
        """Answer all jobs of one event loop in one wake-up."""
        by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        for job in group:
            by_loop.setdefault(job.loop, []).append(job)
        for loop, jobs in by_loop.items():
            try:
                loop.call_soon_threadsafe(self._hand_over, loop, jobs)
            except RuntimeError:  # The loop was closed: nobody waits any more.
                _log.debug("an event loop went away before its answers")
                self._forget(sum(job.size for job in jobs))

    def _hand_over(self, loop: asyncio.AbstractEventLoop, jobs: list[_Job]) -> None:
        """Tell these jobs, behind those of earlier transactions whose turn has not come."""
        if (untold := self._untold.get(loop)) is None:
            for gone in [known for known in self._untold if known.is_closed()]:
                self._untold.pop(gone, None)
            untold = self._untold[loop] = _Untold()
        untold.jobs.extend(jobs)
        if not untold.is_waiting:
            self._tell_some(loop, untold)

    def _tell_some(self, loop: asyncio.AbstractEventLoop, untold: _Untold) -> None:
        """Tell the first jobs, up to a weight and a size; the others in later turns of the event loop, for an answer is put into
        bytes here."""
        told = 0
        while untold.jobs and untold.has_room(untold.jobs[0]):
            job = untold.jobs.popleft()
            untold.weight += job.weight
            untold.size += job.size
            told += job.size
            _tell(job)
        # A turn is waited for only where this one has had much of its portion: it would cost as much as to tell a job.
        if untold.jobs or untold.weight > TELL_WEIGHT_MAX // 4 or untold.size > TELL_BYTES_MAX // 4:
            untold.is_waiting = True
            loop.call_soon(self._tell_next, loop, untold)
        self._forget(told)

    def _tell_next(self, loop: asyncio.AbstractEventLoop, untold: _Untold) -> None:
        """The next turn."""
        untold.is_waiting, untold.weight, untold.size = False, 0, 0
        self._tell_some(loop, untold)

    def _forget(self, size: int) -> None:
        """Results of so many bytes are no longer held."""
        self._told.append(size)
        if self._is_full:
            with self._changed:
                self._changed.notify()

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
        self._troubles.meet(str(self.problem))


def _note(group: list[_Job], begun_s: float, committing_s: float, ended_s: float) -> None:
    """Tell those who want to know of the transaction; the times are of `time.perf_counter`."""
    notes = [job.note for job in group if job.note is not None]
    if not notes:
        return
    offset_ns = time.time_ns() - time.perf_counter_ns()
    begun_ns, committing_ns, ended_ns = (offset_ns + int(at * 1e9) for at in (begun_s, committing_s, ended_s))
    transaction = Transaction(begun_ns, committing_ns, ended_ns, sum(job.weight for job in group))
    for note in notes:
        try:
            note(transaction)
        except Exception:  # noqa: BLE001
            # It was to raise nothing. All is on disk, so the writer goes on, whatever an onlooker got wrong.
            _log.exception("who was to hear of a transaction met an error of its own")


def _tell(job: _Job) -> None:
    """Tell who posted it. What failed to be made durable has a result, too, and nobody may take it for an answer."""
    job.done(job.result if job.error is None else None, job.error)


def _is_awaited(future: asyncio.Future[Any]) -> bool:
    return not future.cancelled()


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
