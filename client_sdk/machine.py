"""The front end: runs operations against replicas by quorum consensus. Pure: calls in, effects out.

Owns the clock, what is known of each object, and the running operations; knows neither sockets nor time. A driver
delivers answers and the time, and carries out the effects; the simulation is one driver, asyncio another.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache, partial
from heapq import heappop, heappush
from typing import Final
from weakref import WeakValueDictionary

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Accepted, BatchReply, Commit, Reply, Request, Served
from quorate.client_sdk import operations
from quorate.client_sdk.asked import Asked, Verdict
from quorate.client_sdk.decider import Decider
from quorate.client_sdk.decisions import Wish
from quorate.client_sdk.effects import (
    Answer,
    Effects,
    Failed,
    Finish,
    Now,
    Operation,
    Outcome,
    Send,
    Unanswered,
)
from quorate.client_sdk.handing import WishOver
from quorate.client_sdk.host_asks import HostAsks
from quorate.client_sdk.mirror import Mirror
from quorate.client_sdk.tasks import Answered, Event, Resolved, Task
from quorate.client_sdk.timekeeping import Timekeeping
from quorate.quorums.choice import QuorumChoice
from quorate.timestamps.timestamp import Timestamp

OBJECTS_MAX: Final = 10_000
"""Objects that a front end remembers; the one idle longest is forgotten first, which costs only speed."""


class FrontEnd:
    """One front end. `site` is new for each incarnation; `own` is the replica it runs in, if any.

    `may_ask`: its driver carries asks, so that wishes may be handed over to other front ends.
    """

    def __init__(
        self,
        document: ClusterDocument,
        *,
        site: str,
        seed: int,
        own: str | None = None,
        may_ask: bool = False,
    ) -> None:
        self.document: Final = document
        self.counters: dict[str, int] = {}
        self._choice_of = lru_cache(maxsize=OBJECTS_MAX)(document.choice_of)
        self._time: Final = Timekeeping(document, site)
        self._seed = seed
        self._own = own
        self._source = own or next(iter(document.votes))
        self._asks: Final = HostAsks(
            document, own, may_ask=may_ask, new_token=self._new_token, stamp=self.stamp
        )
        self._ill: set[str] = set()
        self._now = Now(0.0, 0)
        self._mirrors: OrderedDict[str, Mirror] = OrderedDict()
        self._held: WeakValueDictionary[str, Mirror] = WeakValueDictionary()
        """All mirrors that somebody holds: an operation under way needs its own, idle or not, and what it learns."""
        self._deciders: dict[str, Decider] = {}
        self._tasks: dict[int, Task] = {}
        self._tokens: dict[int, tuple[Task, Request]] = {}
        self._wakes: list[tuple[float, int]] = []
        self._ready: list[Task] = []
        self._last_number = 0
        self._last_token = 0
        self._sends: list[Send] = []
        self._marks: dict[tuple[str, str], list[Timestamp]] = {}  # by replica and object
        self._finished: list[Finish] = []

    def start(self, operation: Operation, now: Now, deadline_s: float) -> tuple[int, Effects]:
        """Begin an operation that must end within `deadline_s` seconds; its number names it in Finish."""
        self._now = now
        task = self._spawn(now.mono_s + deadline_s)
        task.steps = operations.run(operation, task, self)
        self._ready.append(task)
        return task.number, self._effects()

    def deliver(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now, now: Now) -> Effects:
        """Take in what came of one batch: `tokens` are those of its requests, in order (0 for lazy ones)."""
        self._now = now
        if isinstance(answer, BatchReply):
            self._time.measure(replica, answer.now_us, sent, now)
            self._time.witness(answer.clock, now)
            self._asks.hosts.heard(replica, answer.incarnation, now.mono_s)
            self._asks.hosts.note_clock(replica, is_near=self._time.is_near(answer.now_us, now))
            self._prefer(replica, is_well=True)
        else:
            self._asks.hosts.failed(replica, now.mono_s)
            self._prefer(replica, is_well=False)
        for place, token in enumerate(tokens):
            task, request = self._tokens.pop(token, (None, None))
            if task is None or request is None:
                continue
            if isinstance(answer, Unanswered):
                self._post(task, Answered(replica, token, answer))
                continue
            reply = answer.replies[place]
            self._absorb(replica, answer.incarnation, request, reply)
            self._post(task, Answered(replica, token, reply))
        return self._effects()

    def take_served(self, token: int, answer: Served | Unanswered, now: Now) -> Effects:
        """Take in what came of one ask."""
        self._now = now
        if (came := self._asks.take(token, answer, now.mono_s)) is not None:
            self._post(*came)
        return self._effects()

    def tick(self, now: Now) -> Effects:
        """Let those go on whose time has come."""
        self._now = now
        while self._wakes and self._wakes[0][0] <= now.mono_s:
            _, number = heappop(self._wakes)
            task = self._tasks.get(number)
            if task is not None and task.wake_s <= now.mono_s:
                self._post(task, None)
        return self._effects()

    def cancel(self, number: int, now: Now) -> Effects:
        """The caller has gone away: the operation is no longer driven, and its outcome is nobody's to know."""
        self._now = now
        task = self._tasks.pop(number, None)
        if task is not None and task.steps is not None:
            task.steps.close()
            for decider in self._deciders.values():
                decider.asked[:] = [asked for asked in decider.asked if asked.task is not task]
        return self._effects()

    def start_over(self) -> None:
        """Forget all operations under way and all that was learnt, as a crash would; timestamps and numbers go on.

        For when a call has raised: what was then half changed must not be trusted, and a decider that was stopped must
        never use its turn again (two accepts of one ballot).
        """
        learnt = (self._deciders, self._mirrors, self._held, self._marks)
        for forgotten in (self._tasks, self._tokens, *learnt):
            forgotten.clear()
        for dropped in (self._ready, self._wakes, self._sends, self._finished):
            dropped.clear()
        self._asks.forget()

    # What operations and deciders ask for (their Machine protocols).

    def send_for(self, task: Task, replica: str, request: Request) -> int:
        """Send, and deliver the answer to the task under the returned token."""
        token = self._new_token()
        self._tokens[token] = (task, request)
        self._sends.append(Send(replica, request, token))
        return token

    def send_lazily(self, replica: str, request: Commit) -> None:
        """Send along with the next message to that replica; marks of completeness that one answer gives rise to go as one."""
        if request == Commit(request.object, complete=request.complete):
            self._marks.setdefault((replica, request.object), []).extend(request.complete)
        else:
            self._sends.append(Send(replica, request, 0, lazy=True))

    def host_of(self, name: str) -> str | None:
        """The replica whose front end should decide on the object, where several want to; None: this one."""
        return self._asks.choose(name, self._now.mono_s)

    def pause_host(self, host: str) -> None:
        """Do not ask this one for a while."""
        self._asks.hosts.failed(host, self._now.mono_s)

    def send_ask(
        self,
        task: Task,
        host: str,
        name: str,
        wishes: tuple[WishOver, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """Ask the host; its answer comes to the task as an Answered with the returned token."""
        return self._asks.ask(task, host, name, wishes, deadline_s, timeout_s)

    def mirror_of(self, name: str) -> Mirror:
        """What is known of the object."""
        mirror = self._held.get(name)
        if mirror is None:
            mirror = self._held[name] = Mirror(name, self.document.votes)
        self._mirrors[name] = mirror
        self._mirrors.move_to_end(name)
        self._forget_idle()
        return mirror

    def choice_of(self, name: str) -> QuorumChoice:
        """The object's quorum choice."""
        return self._choice_of(name)

    def ask(self, name: str, wish: Wish, task: Task, *, is_here: bool = False) -> Asked:
        """Ask the object's decider; the verdict comes to the task as a Resolved. `is_here`: it must not hand it over."""
        decider = self._deciders.get(name)
        if decider is None:
            decider = self._deciders[name] = Decider(self.mirror_of(name), self.choice_of(name), self)
        asked = Asked(wish, task, is_here=is_here)
        decider.asked.append(asked)
        if not decider.is_running:
            decider.is_running = True
            runner = self._spawn(task.deadline_s)
            runner.steps = decider.run(runner)
            runner.on_end = partial(setattr, decider, "is_running", False)
            self._ready.append(runner)
        return asked

    def give_up(self, name: str, asked: Asked) -> str:
        """Withdraw the wish; how far the decider has come, in words."""
        decider = self._deciders[name]
        if asked in decider.asked:
            decider.asked.remove(asked)
        return decider.explain()

    def resolve(self, asked: Asked, verdict: Verdict) -> None:
        """Tell a task what its decider says."""
        self._post(asked.task, Resolved(verdict))

    def stamp(self) -> Timestamp:
        """A new timestamp, at or above the upper bound of the present true time."""
        return self._time.stamp(self._now)

    def is_time_known(self) -> bool:
        """Whether this front end's clock has a bound that one wrong replica cannot have made."""
        return self._time.is_settled(self._now)

    def passed_s(self, stamp: Timestamp) -> float:
        """The monotonic time from which true time is certainly after the stamp (commit wait)."""
        return self._time.passed_s(stamp, self._now)

    def oldest_remembered(self) -> Timestamp:
        """What has a lower timestamp is beyond all retries, and may be forgotten."""
        return self._time.before(self.document.memory_s, self._now)

    def oldest_turn(self) -> Timestamp:
        """A turn with a lower timestamp is ended. Long before summaries forget it: its owner must be able to tell from a
        later one what became of its last accept."""
        return self._time.before(self.document.memory_s / 2, self._now)

    @property
    def limits(self) -> Limits:
        """The cluster document's limits."""
        return self.document.limits

    def payload_source(self) -> str:
        """The replica to ask for payloads."""
        return self._source

    def random(self) -> float:
        """A number in [0, 1): SplitMix64 (Steele et al. 2014), so that a seed replays a run."""
        mask = (1 << 64) - 1
        self._seed = (self._seed + 0x9E3779B97F4A7C15) & mask
        mixed = ((self._seed ^ (self._seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        return float((mixed ^ (mixed >> 31)) >> 11) / (1 << 53)

    def count(self, what: str) -> None:
        """Add one to a counter."""
        self.counters[what] = self.counters.get(what, 0) + 1

    # The scheduler.

    def _new_token(self) -> int:
        self._last_token += 1
        return self._last_token

    def _spawn(self, deadline_s: float) -> Task:
        self._last_number += 1
        task = self._tasks[self._last_number] = Task(self._last_number, self, self._now, deadline_s)
        return task

    def _post(self, task: Task, event: Event) -> None:
        if task.number in self._tasks:
            task.inbox.append(event)
            self._ready.append(task)

    def _effects(self) -> Effects:
        """Run all that can go on, and hand out what came of it."""
        while self._ready:
            task = self._ready.pop(0)
            if task.number in self._tasks:
                self._resume(task)
        for (replica, name), complete in self._marks.items():
            self._sends.append(Send(replica, Commit(name, complete=tuple(complete)), 0, lazy=True))
        self._marks.clear()
        effects = Effects(
            tuple(self._sends), tuple(self._finished), self._next_wake(), tuple(self._asks.sends)
        )
        self._sends.clear()
        self._asks.sends.clear()
        self._finished.clear()
        return effects

    def _resume(self, task: Task) -> None:
        steps = task.steps
        assert steps is not None
        task.now = self._now
        awaited_s = task.wake_s if task.is_begun else None
        try:
            if not task.is_begun:
                task.is_begun = True
                task.wake_s = next(steps)
            while task.inbox:
                task.wake_s = steps.send(task.inbox.pop(0))
            while task.wake_s <= self._now.mono_s:
                task.wake_s = steps.send(None)
        except StopIteration as stop:
            self._end(task, stop.value)
            return
        if task.wake_s != awaited_s:
            heappush(self._wakes, (task.wake_s, task.number))

    def _end(self, task: Task, result: Outcome | None) -> None:
        del self._tasks[task.number]
        if task.on_end is not None:
            task.on_end()
        elif result is not None:
            if isinstance(result, Failed):
                self.count(f"outcomes {result.reason}")
            self._finished.append(Finish(task.number, result))

    def _next_wake(self) -> float | None:
        while self._wakes:
            wake_s, number = self._wakes[0]
            task = self._tasks.get(number)
            if task is not None and task.wake_s == wake_s:
                return wake_s
            heappop(self._wakes)
        return None

    # What replies teach.

    def _absorb(self, replica: str, incarnation: str, request: Request, reply: Reply) -> None:
        status = getattr(reply, "status", None)
        if status is None:
            return
        self._time.witness(max(status.fence, status.promised), self._now)
        if isinstance(reply, Accepted) and reply.then is not None:
            self._time.witness(reply.then.status.fence, self._now)
        mirror = self._held.get(getattr(request, "object", ""))
        if mirror is not None:
            mirror.absorb(replica, incarnation, request, reply)

    def _prefer(self, replica: str, *, is_well: bool) -> None:
        """Ask for payloads at the own replica while it is well, else stay with one that answers."""
        if not is_well:
            self._ill.add(replica)
            return
        self._ill.discard(replica)
        if replica == self._own or self._source in self._ill:
            self._source = replica

    def _forget_idle(self) -> None:
        if len(self._mirrors) <= OBJECTS_MAX:
            return
        for name in self._mirrors:
            decider = self._deciders.get(name)
            if decider is None or not decider.is_running:
                del self._mirrors[name]
                self._deciders.pop(name, None)
                return
