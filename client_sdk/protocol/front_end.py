"""The front end: runs operations against replicas by quorum consensus. Pure: calls in, effects out.

Owns the clock, what is known of each object, and the running operations; knows neither sockets nor time. A driver
delivers answers and the time, and carries out the effects; the simulation is one driver, asyncio another.
"""

from collections import deque
from collections.abc import Collection, Hashable, Sequence
from functools import cached_property, lru_cache, partial
from heapq import heappop, heappush
from typing import Final

from ...api_specs.cluster import ClusterDocument
from ...api_specs.commands import ForwardableCommand
from ...api_specs.limits import Limits
from ...api_specs.messages import BatchReply, ForwardedReply, Reply, Request
from ...api_specs.outboxes import Outbox
from ...quorums.choices.choice import QuorumChoice
from ...timestamps.clock import Now
from ...timestamps.timestamp import Timestamp
from .completion_notices import CompletionNotices
from .core.counters import Counts
from .core.log_cache import LogCache
from .core.log_caches import OBJECTS_MAX, LogCaches
from .core.pacing import Pacing
from .core.places import Places
from .core.preference import IsEnough, Preference
from .core.rng import Rng
from .core.rounds import Answered, Event, FirstAsked, Requests, Resolved, Task
from .core.time_now import TimeNow
from .core.values import Answer, Effects, Enqueue, Failed, Finish, Operation, Outcome, Send, Unanswered
from .core.work import Work
from .decisions.pending import CommandResult, PendingCommand
from .decisions.proposer import Proposer
from .decisions.transitions import Command
from .forwarded_requests import ForwardedRequests
from .operations import runs
from .operations.cell_parts import sorted_out
from .operations.enqueue_round import EnqueueRound, grouped
from .operations.shared_round import Alone, SideBySide

NOT_BEGUN: Final = Failed(
    "unavailable", "the deadline passed before it was begun, and nothing was done", definite=True
)


class FrontEnd(TimeNow):
    """One front end. `site` is new for each incarnation; `own` is the replica it runs in, if any.

    `may_forward`: its driver carries forwarded requests, so that commands may be forwarded to other front ends.
    """

    def __init__(
        self,
        document: ClusterDocument,
        *,
        site: str,
        seed: int,
        own: str | None = None,
        may_forward: bool = False,
        counts: Counts | None = None,
    ) -> None:
        super().__init__(document, site, is_in_replica=own is not None)
        self.counts: Final = counts or Counts()
        self._choose()
        self._rng: Final = Rng(seed)
        self._forwarded: Final = ForwardedRequests(
            document, own, may_forward=may_forward, new_token=self._new_token, stamp=self.stamp
        )
        self._caches: Final = LogCaches(document.votes, self._forget_proposer)
        self._proposers: dict[str, Proposer] = {}
        self._tasks: dict[int, Task] = {}
        self.pacing: Final = Pacing()
        self.places = Places(self.wake)
        self.work = Work()
        self.walks: Final[list[Task]] = []
        self.changing: Final[set[tuple[str, str]]] = set()
        self._rounds: dict[int, tuple[Task, SideBySide | EnqueueRound]] = {}
        """By the numbers of the operations that run side by side."""
        self._tokens: dict[int, tuple[Task, Requests, float]] = {}
        """What waits for an answer, and since when."""
        self.preference = Preference(own, document.votes)
        self._wakes: list[tuple[float, int]] = []
        self._ready: deque[Task] = deque()
        self._last_number = 0
        self._last_token = 0
        self._sends: list[Send] = []
        self._notices: Final = CompletionNotices(document.votes, document.limits)
        self._finished: list[Finish] = []

    def _choose(self) -> None:
        self._choice_of = lru_cache(maxsize=OBJECTS_MAX)(self.document.choice_of)
        self._rule_of = lru_cache(maxsize=OBJECTS_MAX)(self.document.rule_of)

    def reconfigure(self, document: ClusterDocument, now: Now) -> Effects:
        """The cluster has this configuration now, or a later one: its replicas take messages of no other. Operations go on under it. What waits to be
        sent must not be: a message belongs to the configuration under which it was made."""
        self._now = now
        if document.number <= self.epoch:
            return self._effects()
        self.follow(document)
        self._choose()
        self.preference.follow(document.votes)
        self._caches.follow(document.votes)
        self._notices.follow(document.votes)
        self._forwarded.follow(document)
        self.count("configurations followed")
        self._tokens.clear()  # Those rounds are over.
        for task in list(self._tasks.values()):
            self._post(task, None)
        return self._effects()

    def start(self, operation: Operation, now: Now, deadline_s: float) -> tuple[int, Effects]:
        """Begin an operation that must end within `deadline_s` seconds; its number names it in Finish."""
        numbers, effects = self.start_all((operation,), now, deadline_s)
        return numbers[0], effects

    def start_all(
        self,
        begun: Sequence[Operation],
        now: Now,
        deadline_s: float,
        turns: Sequence[Hashable] = (),
        asked: Now | None = None,
    ) -> tuple[list[int], Effects]:
        """The same for some that begin at one moment: reads and writes of cells, stored calls, and enqueues on a queue, share messages. `turns` says of
        each who takes turns with others at decisions; their time counts from when they were `asked` for. Where it is over, as after this
        process was stopped in between, they are not begun: what their callers have done since may be forgotten."""
        self._now, asked = now, asked or now
        first = self._last_number + 1
        self._last_number += len(begun)
        numbers = list(range(first, first + len(begun)))
        deadline_s += asked.mono_s
        late_us = self._late_us(asked, deadline_s)
        if now.mono_s >= deadline_s or now.wall_us > late_us:
            self._finished += [Finish(number, NOT_BEGUN) for number in numbers]
            return numbers, self._effects()
        others, rounds = sorted_out(zip(numbers, begun, strict=True), self)
        alone, enqueues = grouped(others, self.limits.batch_items_max, self._is_kept)
        for number, operation in alone:
            task = self._task(number, deadline_s, late_us)
            task.turn = turns[number - first] if turns else None
            task.steps = runs.run(operation, task, self)
            self._ready.append(task)
        for parts in rounds:
            task = self._spawn(deadline_s, late_us)
            self._begin_round(task, SideBySide(parts, self.document.votes, task, self))
        for group in enqueues:
            task = self._spawn(deadline_s, late_us)
            self._begin_round(task, EnqueueRound(group, task, self, self))
        return numbers, self._effects()

    def _begin_round(self, task: Task, shared: SideBySide | EnqueueRound) -> None:
        task.served, task.steps = shared.numbers, shared.run()
        self._rounds.update((number, (task, shared)) for number in shared.numbers())
        self._ready.append(task)

    def deliver(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now, now: Now) -> Effects:
        """Take in what came of one batch: `tokens` are those of its requests, in order (0 for lazy ones).

        An answer that comes when every operation that asked has ended is none, as to a process that was stopped meanwhile: what a replica
        shows may have been deleted, and forgotten, since."""
        self._now = now
        if isinstance(answer, BatchReply) and now.since_s(sent) > self.limits.deadline_s_max:
            answer = Unanswered("its answer came too late", definite=False)
        self._learn_of(replica, tokens, answer, sent)
        for place, token in enumerate(tokens):
            # A token stands for each request of its send: the first finds all.
            if (sent_for := self._tokens.pop(token, None)) is None:
                continue
            task, requests, _ = sent_for
            if isinstance(answer, Unanswered):
                self._post(task, Answered(replica, token, answer))
                continue
            if now.wall_us > task.late_us:
                self._post(task, Answered(replica, token, Unanswered("its answer came too late")))
                continue
            if not isinstance(requests, tuple):
                self._absorb(replica, answer.incarnation, requests, answer.replies[place])
                self._post(task, Answered(replica, token, answer.replies[place]))
                continue
            replies = answer.replies[place : place + len(requests)]
            for request, reply in zip(requests, replies, strict=True):
                self._absorb(replica, answer.incarnation, request, reply)
            self._post(task, Answered(replica, token, replies))
        return self._effects()

    def _learn_of(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now) -> None:
        """What the answer, or its lack, says of the replica itself."""
        if isinstance(answer, BatchReply):
            self._time.measure(replica, answer.now_us, sent, self._now)
            self.note_clock(replica, answer.now_us, sent.mono_s)
            self._time.witness(answer.clock, self._now)
            self._time.hear_of_ahead(answer.ahead)
            self._forwarded.coordinators.heard(replica, answer.incarnation, self._now.mono_s)
            self._forwarded.coordinators.note_clock(
                replica, is_near=self._time.is_near(answer.now_us, self._now)
            )
            self.preference.note(replica, self._now.mono_s, is_well=True)
            begun_s = [sent_for[2] for token in tokens if (sent_for := self._tokens.get(token)) is not None]
            if begun_s:
                self.preference.times.note(replica, self._now.mono_s - min(begun_s))
        elif not self.is_reconfigured(answer):
            self._time.miss(replica, self._now)
            self._forwarded.coordinators.failed(replica, self._now.mono_s)
            self.preference.note(replica, self._now.mono_s, is_well=False)

    def is_reconfigured(self, answer: Unanswered) -> bool:
        """Whether it refuses for a configuration that this front end goes on to, or has gone on to since: the replica itself is well."""
        return answer.epoch is not None and answer.epoch >= self.epoch

    def take_forwarded_reply(self, token: int, answer: ForwardedReply | Unanswered, now: Now) -> Effects:
        """Take in what came of one forwarded request."""
        self._now = now
        if (came := self._forwarded.take(token, answer, now.mono_s)) is not None:
            self._post(*came)
        return self._effects()

    def tick(self, now: Now) -> Effects:
        """Let those go on whose time has come."""
        self._now = now
        self.work.begin_turn()
        while self._wakes and self._wakes[0][0] <= now.mono_s:
            _, number = heappop(self._wakes)
            task = self._tasks.get(number)
            if task is not None and task.wake_s <= now.mono_s:
                self._post(task, None)
        return self._effects()

    def cancel(self, number: int, now: Now) -> Effects:
        """The caller has gone away: the operation is no longer driven, and its outcome is nobody's to know."""
        self._now = now
        if (beside := self._rounds.pop(number, None)) is not None and not beside[1].drop(number):
            number = beside[0].number
        task = self._tasks.pop(number, None)
        if task is not None and task.steps is not None:
            task.steps.close()
        return self._effects()

    def leave(self, number: int, now: Now) -> Effects:
        """The caller of a dequeue has gone away: it takes nothing more, and ends as soon as it is certain what it took."""
        self._now = now
        if (task := self._tasks.get(number)) is not None:
            task.is_left = True
            self._post(task, None)
        return self._effects()

    def last_sends(self) -> tuple[Send, ...]:
        """What should still be said when the front end ends."""
        return tuple(self._notices.take(float("inf")))

    def served_by(self, token: int) -> list[int]:
        """The numbers of the operations for which the request under `token` was sent."""
        task = self._tokens[token][0] if token in self._tokens else self._forwarded.task_of(token)
        return task.served()

    def start_over(self) -> None:
        """After a call that raised: forget all operations and all that was learnt, as a crash would; timestamps and numbers go on.
        What is half changed is not trusted, and no proposer that was stopped uses its term again (two accepts of one ballot)."""
        learnt = (self._proposers, self._caches, self._notices)
        for forgotten in (self._tasks, self._rounds, self._tokens, *learnt):
            forgotten.clear()
        for dropped in (self._ready, self._wakes, self._sends, self._finished, self.walks):
            dropped.clear()
        self._forwarded.forget()
        self.places = Places(self.wake)
        self.work = Work()

    # What operations and proposers ask for (their Machine protocols).

    def send_for(self, task: Task, replica: str, requests: Requests, repeats: int = 0) -> int:
        """Send, and deliver the answer to the task under the returned token. It `repeats` what was sent under that one, if any."""
        token = self._new_token()
        self._tokens[token] = task, requests, self._now.mono_s
        sent = requests if isinstance(requests, tuple) else (requests,)
        self._sends.append(Send(replica, sent, token, repeats=repeats))
        return token

    def send_lazily(self, replica: str, *requests: Request) -> None:
        """Send along with the next message to that replica."""
        self._sends.append(Send(replica, requests, 0, lazy=True))

    def say_complete(self, name: str, timestamps: tuple[Timestamp, ...]) -> None:
        """Tell all replicas, with the next messages or later, that a final quorum stores these entries."""
        self._notices.add(name, timestamps, self._now.mono_s)

    def finish(self, number: int, outcome: Outcome) -> None:
        """An operation that ran beside others has ended."""
        self._rounds.pop(number, None)
        self._report(number, outcome)

    def go_alone(self, number: int, operation: Operation, shared: Task, alone: Alone) -> None:
        """An operation that ran beside others, in `shared`, goes on by itself."""
        self.count("went on alone")
        self._rounds.pop(number, None)
        task = self._task(number, shared.deadline_s, shared.late_us)
        task.succeed(shared)
        task.steps = runs.goes_on(operation, alone.steps(task), task, self)
        self._ready.append(task)

    def coordinator_of(self, name: str) -> str | None:
        """The replica whose front end should decide on the object, where several want to; None: this one."""
        return self._forwarded.choose(name, self._now.mono_s)

    def pause_coordinator(self, coordinator: str) -> None:
        """Do not ask this one for a while."""
        self._forwarded.coordinators.failed(coordinator, self._now.mono_s)

    def send_forwarded(
        self,
        task: Task,
        coordinator: str,
        name: str,
        commands: tuple[ForwardableCommand, ...],
        deadline_s: float,
        timeout_s: float,
    ) -> int:
        """Ask the coordinator; its answer comes to the task as an Answered with the returned token."""
        return self._forwarded.forward(task, coordinator, name, commands, deadline_s, timeout_s)

    def cache_of(self, name: str) -> LogCache:
        """What is known of the object."""
        return self._caches.of(name)

    def stamp_for(self, cache: LogCache) -> Timestamp:
        """A new timestamp for the object, above all that is known of it."""
        cache.given = self._time.stamp(self._now, cache.latest, cache.given)
        return cache.given

    def choice_of(self, name: str) -> QuorumChoice:
        """The object's quorum choice."""
        return self._choice_of(name)

    def outboxes_of(self, name: str) -> Sequence[str]:
        """The outboxes of a queue, that one first whose replica is likely to answer; none where its rule gives it none."""
        if not self.document.has_outboxes or not self._rule_of(name).has_outboxes or self.is_outbox(name):
            return ()
        return [Outbox(name, replica).name for replica in self.preference.well_first(self._shuffled)]

    def is_outbox(self, name: str) -> bool:
        """Whether the object is an outbox."""
        return self.document.outbox(name) is not None

    def has_exact_empty(self, name: str) -> bool:
        """Whether the object is a queue with outboxes that is empty only if these are."""
        return self.document.has_outboxes and self._rule_of(name).has_exact_empty and not self.is_outbox(name)

    def _is_kept(self, operation: Enqueue) -> bool:
        return not operation.from_outbox and bool(self.outboxes_of(operation.object))

    @cached_property
    def _shuffled(self) -> Sequence[str]:
        """The replicas, in an order of this front end's own, so that not all front ends begin with the same one."""
        return sorted(self.document.votes, key=lambda _: self._rng.next())

    def ask(self, name: str, command: Command, task: Task, *, is_here: bool = False) -> PendingCommand:
        """Ask the object's proposer; the verdict comes to the task as a Resolved. `is_here`: it must not forward it."""
        proposer = self._proposers.get(name)
        if proposer is None:
            proposer = self._proposers[name] = Proposer(self.cache_of(name), self)
        asked = PendingCommand(command, task, is_here=is_here)
        proposer.asked.append(asked)
        if not proposer.is_running:
            proposer.is_running = True
            runner = self._spawn(task.deadline_s, self._late_us(self._now, task.deadline_s))
            runner.steps = proposer.run(runner)
            runner.on_end = partial(setattr, proposer, "is_running", False)
            runner.served = proposer.batches.numbers
            self._ready.append(runner)
        return asked

    def give_up(self, name: str, asked: PendingCommand) -> str:
        """Withdraw the command; how far the proposer has come, in words."""
        proposer = self._proposers.get(name)
        if proposer is None:  # The front end has started over meanwhile.
            return ""
        if asked in proposer.asked:
            proposer.asked.remove(asked)
        return proposer.explain()

    def resolve(self, asked: PendingCommand, verdict: CommandResult) -> None:
        """Tell a task what its proposer says."""
        self._post(asked.task, Resolved(verdict))

    def wake(self, task: Task) -> None:
        """Let the task look whether what it waits for has come."""
        self._post(task, None)

    @property
    def limits(self) -> Limits:
        """The cluster file's limits."""
        return self.document.limits

    def payload_source(self, name: str) -> str:
        """The replica to ask for payloads of the object."""
        return self.preference.order(name, self._now.mono_s)[0]

    def first_asked(self, name: str, replicas: Collection[str], is_enough: IsEnough) -> FirstAsked:
        """Which of the replicas to ask first for what is enough, of this object."""
        quorum, beside = self.preference.first(name, replicas, is_enough, self._now.mono_s)
        hedge_s = self.preference.times.hedge_s(quorum)
        return FirstAsked(quorum, beside if hedge_s else self.document.votes.keys(), hedge_s)

    def note_failing(self, replica: str, *, is_silent: bool) -> None:
        """It was asked first and was silent, or refused: others were asked in its place."""
        self.count("others asked")
        self.preference.note_failing(replica, self._now.mono_s, is_silent=is_silent)

    def random(self) -> float:
        """A number in [0, 1) from the seed."""
        return self._rng.next()

    def count(self, what: str) -> None:
        """Add one to a counter."""
        self.counts.count(what)

    def resend_s(self, replica: str) -> float:
        """How long to wait for the replica's answer before a request is sent again."""
        return self.preference.times.resend_s(replica)

    def count_round(self, kind: str, seconds: float) -> None:
        """Count one more round that met its quorum."""
        self.counts.round(kind, seconds)

    # The scheduler.

    def _new_token(self) -> int:
        self._last_token += 1
        return self._last_token

    def _spawn(self, deadline_s: float, late_us: float) -> Task:
        self._last_number += 1
        return self._task(self._last_number, deadline_s, late_us)

    def _late_us(self, asked: Now, deadline_s: float) -> float:
        """When what was asked for then is late by the wall clock. What is remembered for `memory_s` leaves room for one that is set right."""
        return asked.wall_us + 1e6 * (deadline_s - asked.mono_s + 2 * self.document.clock.offset_max_s)

    def _task(self, number: int, deadline_s: float, late_us: float) -> Task:
        task = self._tasks[number] = Task(number, self, self._now, deadline_s, late_us)
        return task

    def _post(self, task: Task, event: Event) -> None:
        if task.number in self._tasks:
            task.inbox.append(event)
            self._ready.append(task)

    def _effects(self) -> Effects:
        """Run all that can go on, and deliver what came of it."""
        while self._ready:
            task = self._ready.popleft()
            if task.number in self._tasks:
                self._resume(task)
        self._sends.extend(self._notices.take(self._now.mono_s))
        effects = Effects(
            tuple(self._sends), tuple(self._finished), self._next_wake(), tuple(self._forwarded.sends)
        )
        self._sends.clear()
        self._forwarded.sends.clear()
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
            self._report(task.number, result)

    def _report(self, number: int, outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            self.count(f"outcomes {outcome.reason}")
        self._finished.append(Finish(number, outcome))

    def _next_wake(self) -> float | None:
        while self._wakes:
            wake_s, number = self._wakes[0]
            task = self._tasks.get(number)
            if task is not None and task.wake_s == wake_s:
                return min(wake_s, self._notices.due_s)
            heappop(self._wakes)
        due_s = self._notices.due_s
        return due_s if due_s < float("inf") else None

    # What replies teach.

    def _absorb(self, replica: str, incarnation: str, request: Request, reply: Reply) -> None:
        status = getattr(reply, "status", None)
        if status is None:
            return
        cache = self._caches.held(getattr(request, "object", ""))
        if cache is not None:
            cache.absorb(replica, incarnation, request, reply)
            if cache.taken:
                self._caches.count(cache)

    def _forget_proposer(self, name: str) -> bool:
        """The object is idle longest: whether its proposer, if there is one, is idle too, and is forgotten."""
        proposer = self._proposers.get(name)
        if proposer is not None and proposer.is_running:
            return False
        self._proposers.pop(name, None)
        return True
