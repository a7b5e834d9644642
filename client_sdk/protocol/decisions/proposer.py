"""Decisions on one object: ballots, fences, the accept, and the steady owner (DESIGN section 2, "Decide"). Pure.

One proposer per object and front end takes the commands of all its callers in batches. Its term stands until a replica
refuses it: while it does, entries at or below what a quorum has fenced may be taken with a single accept, on
which the next collect rides.
"""

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, Final, Literal, Protocol, get_args

from msgspec import UNSET

from ....adts.log import Decision, Entry
from ....adts.specification import Kind
from ....adts.types.catalogue import adt_of, is_log, is_overwritten
from ....adts.types.queue import view
from ....api_specs.commands import AcquireCommand, DequeueCommand, PeekCommand
from ....api_specs.messages import Accept, Accepted, Collect, Collected, Commit, Purpose
from ....quorums.choices.choice import QuorumChoice
from ....quorums.systems.tally import Quorum
from ....timestamps.ballot import NO_BALLOT, Ballot, term_of
from ....timestamps.clock import Now
from ....timestamps.timestamp import INFINITY, ZERO, Timestamp, site
from ..core.log_cache import LogCache
from ..core.preference import IsEnough
from ..core.rounds import Event, Expired, Gathering, Reconfigured, Steps, Task
from ..core.time_now import holder_of
from ..core.values import Failed
from .forwarding import ForwardingPolicy
from .forwarding import Machine as ForwardingMachine
from .own_transitions import plan_own
from .payloads import Gone, TooHeavy, Withheld, fetch_payloads, filled, is_overweight, missing_in
from .pending import COMMANDS_MAX, Batches, CommandResult, PendingCommand
from .pending import Machine as DecidingMachine
from .read_window import ReadWindows
from .summary_builder import Context, is_included, is_surely_remembered
from .term import Term, TermLost
from .transitions import (
    Command,
    ConfirmCommand,
    FoldCommand,
    Plan,
    is_short,
    plan_cell,
    plan_queue,
    purpose_of,
)

BACKOFF_S_FIRST: Final = 0.002
BACKOFF_S_MAX: Final = 1.0
BACKOFF_SHARE_MAX: Final = 0.1  # of the time left
LOSSES_MAX: Final = 6

DecideSteps = Generator[float, Event, None]


_PURPOSES: Final = get_args(Purpose)
"""The later one goes further beyond a replica's bounds."""


class _GivesWay(Exception):
    """These are to be decided first."""

    def __init__(self, to: list[PendingCommand]) -> None:
        super().__init__()
        self.to: Final = to


class Machine(DecidingMachine, ForwardingMachine, Protocol):
    """What a proposer and its forwarding need of the front end around them."""


class Proposer:
    """The decisions of one front end on one object."""

    def __init__(self, cache: LogCache, machine: Machine) -> None:
        self.asked: Final[list[PendingCommand]] = []
        self.batches: Final = Batches(self.asked, cache)
        self.is_running = False
        self._cache = cache
        self._machine = machine
        adt = adt_of(cache.name)
        self._is_queue = is_log(adt)
        self._is_overwritten: Final = is_overwritten(adt)
        self._choice: QuorumChoice
        self._initial: Quorum
        self._final: Quorum
        self._blind_final: Quorum
        self._epoch = -1
        self._keeps_events: Final = not machine.document.rule_of(cache.name).collect
        self._windows: Final = ReadWindows(cache, is_queue=self._is_queue)
        self._forwarding: Final = ForwardingPolicy(cache.name, machine, machine.limits.forwarded_commands_max)
        self._term: Term | None = None
        self._stamp = ZERO
        """Of a cell: the fence of the latest collect, and the timestamp of the value that a plan on it sets."""
        self._shown: set[Timestamp] | None = None
        """Of what has a state: entries that were known after the look before the latest, if that showed a quorum's logs whole."""
        self._proposed: tuple[Ballot, list[tuple[PendingCommand, Any]]] | None = None
        """An accept whose fate is not known yet, and what it grants."""
        self._batch: list[PendingCommand] = []
        """Those whom the decision at hand is for."""
        self._callers: dict[str, Hashable] = {}
        """Who asked this front end, which others call as well, for decisions that are remembered under keys."""
        self._losses = 0
        self._round_s = 0.0
        """How long the latest round took until its quorum had answered,"""
        self._round_ended_s = 0.0
        """and when that was."""
        self._round: Gathering | None = None
        self._choose()

    def _choose(self) -> None:
        """Go by the quorums of the configuration at hand. A term of another one is over: its promises are of other quorums."""
        if self._epoch == self._machine.epoch:
            return
        self._epoch, self._term = self._machine.epoch, None
        self._choice = self._machine.choice_of(self._cache.name)
        self._initial = self._choice.initial_of_kind(Kind.DECIDE)
        self._final = self._choice.final_of_kind(Kind.DECIDE)
        self._blind_final = self._choice.final_of_kind(Kind.BLIND)

    def explain(self) -> str:
        """How far the latest round has come, in words."""
        told = "nothing was asked yet" if self._round is None else self._round.explain()
        if self._is_queue or self._is_overwritten or not (stored := len(self._cache.seen)):
            return told
        return f"{told}; calls that were stored run first, {stored} at least"

    def run(self, task: Task) -> Steps:
        """Decide, or forward to the object's coordinator, until nobody asks any more."""
        while batch := (yield from self.batches.next(task)):
            if late := self._late(batch, task.now):
                self._end_late(late)
                continue
            if (chosen := self._forwarding.choose(batch, task.now.mono_s)) is not None:
                yield from self._forwarding.forward(task, *chosen, self._finish)
                continue
            task.deadline_s = max(asked.task.deadline_s for asked in batch)
            task.urgent_s = min(asked.task.deadline_s for asked in batch)
            task.late_us = max(asked.task.late_us for asked in batch)
            task.renew()
            self._choose()
            if self._term is not None and self._term.stamp < self._machine.oldest_term():
                self._term = None
            try:
                yield from self._decide(task, batch)
                self._losses = 0
            except _GivesWay as given:
                self._term = None
                self._machine.count("decisions put off for want of room")
                self.batches.first = given.to
            except Reconfigured:
                self._machine.count("decisions begun again in a new configuration")
            except TermLost:
                self._term = None
                self._machine.count("terms lost")
                self._forwarding.meet(task.now.mono_s)
                yield from self._back_off(task)
            except Expired as expired:
                yield from self._end_or_begin_anew(task, batch, expired)
        # They hold the values that were decided, and this proposer: neither would be freed for long.
        self._round, self._batch = None, []

    def _end_or_begin_anew(self, task: Task, batch: list[PendingCommand], expired: Expired) -> DecideSteps:
        """The round came to nothing. Where replicas refused a term that was stamped while clocks were wrong, and time is known better by now, another
        term takes its place, as after one that was lost."""
        refused, self._term = ZERO if self._term is None else self._term.stamp, None
        if expired.is_refused and expired.is_by_clock and self._machine.stamp_for(self._cache) < refused:
            self._machine.count("begun again since clocks were wrong")
            yield from self._back_off(task)
            return
        for asked in batch:
            self._finish(asked, CommandResult(failed=expired.outcome(is_unknown=asked.is_in_doubt)))

    @property
    def _purpose(self) -> Purpose:
        return purpose_of([asked.command for asked in self._batch])

    def _goes_on(self, round_: Gathering) -> Literal[False]:
        """Raises _GivesWay where replicas have no room for these, to those who may go further beyond their bounds: callers who try again and again, or
        wait for a replica that is down, would keep readers from an answer, and deletions from being forgotten."""
        if round_.lacks_room:
            own = _PURPOSES.index(self._purpose)
            further = [asked for asked in self.asked if _PURPOSES.index(purpose_of([asked.command])) > own]
            if further:
                raise _GivesWay(further)
        return False

    def _late(self, batch: list[PendingCommand], now: Now) -> list[PendingCommand]:
        """Those that come too late, as where this process was stopped and their operations have not heard yet. They must not go along with
        newer ones: what is decided of an entry rests on what is remembered until the deadline of its operation, and not much longer."""
        return [asked for asked in batch if asked.task.is_late_at(now)]

    def _end_late(self, late: list[PendingCommand]) -> None:
        for asked in late:
            expired = Expired("its deadline had passed when it came to its turn")
            self._finish(asked, CommandResult(failed=expired.outcome(is_unknown=asked.is_in_doubt)))

    def _finish(self, asked: PendingCommand, verdict: CommandResult) -> None:
        """Tell the caller, unless it has given up."""
        if asked in self.asked:
            self.asked.remove(asked)
            self._machine.resolve(asked, verdict.doubted() if asked.may_be_done else verdict)

    def _decide(self, task: Task, batch: list[PendingCommand]) -> DecideSteps:
        """One decision, for as many of the batch as the view can answer."""
        self._batch = batch
        plan = yield from self._find_plan(task, batch)
        if plan is None and self._proposed is not None:
            if not self._cache.is_decided:
                yield from self._write_back(task)
            self._finish_proposed(task.now.mono_s)
            return
        # What an older view is changed by must be accepted, which proves that the term stands: though another front end may have changed it
        # in the same way meanwhile, as who fetches values may find.
        is_changed = plan is not None and plan.summary != self._cache.summary
        if plan is not None:
            try:
                plan = yield from self._with_payloads(task, batch, plan)
            except (Withheld, TooHeavy):
                return
            except Gone as gone:
                self._fail_for_lack(batch, plan, gone)
                return
        if plan is None or not self._are_asked(batch):
            return
        granted = [(batch[place], result) for place, result in plan.results.items()]
        if is_changed or plan.summary != self._cache.summary:
            yield from self._propose(task, plan, granted)
        elif not self._cache.is_decided or _is_forgotten(plan, granted) or _is_carried(granted):
            yield from self._write_back(task)
        self._tell(granted, task.now.mono_s)

    def _tell(self, granted: list[tuple[PendingCommand, Any]], now_s: float) -> None:
        """Tell callers what is decided."""
        self.batches.hold_for(granted, now_s)
        answered = self._current.granted_by
        for asked, result in granted:
            failed = result if isinstance(result, Failed) else None
            self._finish(asked, CommandResult(result, answered, failed))

    def _are_asked(self, batch: list[PendingCommand]) -> bool:
        """Whether all callers still wait: nothing may be done for one that was told an outcome already."""
        waiting = set(map(id, self.asked))
        return all(id(asked) in waiting for asked in batch)

    def _find_plan(self, task: Task, batch: list[PendingCommand]) -> Generator[float, Event, Plan | None]:
        """Collect until the view grants at least one command; None when an earlier accept turns out to be in force, or
        when a caller waits no longer.

        "Empty" needs care: logs read before a summary was decided may lack what came in meanwhile, so it is said only
        when the summary was known to be decided before the collect began (DESIGN, Decide 6).
        """
        commands = [asked.command for asked in batch]
        self._shown = None
        is_fresh, looks, decided_before = False, 0, NO_BALLOT
        while True:
            if self._term is None:
                self._term = Term(self._machine.stamp_for(self._cache), self._cache, self._initial)
                is_fresh = False
            elif is_fresh or self._is_fit(task.now):
                if is_fresh and self._is_proposed_in_doubt:
                    yield from self._write_back(task)
                if not (yield from self._come_to_turn(task, batch)):
                    continue
                commands = [asked.command for asked in batch]
                if (is_fresh and self._check_proposed()) or not batch or not self._are_asked(batch):
                    return None
                plan = self._plan(commands, is_fresh, decided_before)
                if plan and not (
                    looks == 1 and self._windows.is_cut_off(plan, commands, self._current.bound)
                ):
                    return plan
                if plan is None and is_fresh and not self._cache.is_decided:
                    yield from self._write_back(task)
            if is_fresh:
                self._machine.count("collected again")
            decided_before = self._cache.decided
            self._shown = set(self._cache.seen) if looks and self._current.is_whole else None
            yield from self._collect(task, commands)
            is_fresh, looks = True, looks + 1

    def _come_to_turn(self, task: Task, batch: list[PendingCommand]) -> Generator[float, Event, bool]:
        """Wait until there is time in the event loop for states of this size. Who waits no longer then is left out of the batch: others are not
        sent back to the end of the queue for that. False: what the term was to go on from was thrown away meanwhile, and another begins."""
        if not self._is_queue:
            if not (yield from self._machine.work.wait(task, self.batches.work())):
                raise Expired(f"states of so many bytes had no turn before the deadline; {self.explain()}")
            waiting = set(map(id, self.asked))
            batch[:] = [asked for asked in batch if id(asked) in waiting]
        if self._current.lives != self._cache.lives:
            self._machine.count("terms whose ground was forgotten")
            self._term = None
        return self._term is not None

    def _plan(self, commands: list[Command], is_fresh: bool, decided_before: Ballot) -> Plan | None:
        """The plan, if the view is good enough for at least one result; None asks for another collect."""
        if not self._current.has_promises:
            return None
        cache, bound = self._cache, self._current.bound
        if not self._is_queue:
            return self._plan_on_stamp(commands, bound)
        # Quorums of the next configuration alone must not take what the summary has passed, whoever sends it: one that repeats it under a key, say.
        if any(map(_carries, commands)) and not self._current.keeps_out(cache.summary.horizon):
            return None
        front, upto = self._windows.front(self._windows.wanted(commands))
        # What the summary has adopted beyond the front is not to be taken before what the front leaves out.
        plan = plan_queue(cache.summary, front, min(bound, upto), commands, self._context())
        is_changed = plan.summary != cache.summary
        if (is_fresh and plan.results) or (is_changed and (is_fresh or not is_short(plan, commands))):
            return plan  # An older view will do where the accept proves that the term still stands.
        is_empty = self._current.is_whole and not view(cache.summary, cache.by_id())
        if not (is_fresh and cache.ballot == decided_before and is_empty):
            return None
        plan.results = {
            place: ()
            for place, command in enumerate(commands)
            if isinstance(command, DequeueCommand | PeekCommand | AcquireCommand)
        }
        return plan

    def _plan_on_stamp(self, commands: list[Command], bound: Timestamp) -> Plan | None:
        """The plan for what has a state: on all that lies below the stamp. Of one's own type a log is run as far as it is seen, page by
        page, before anybody is answered."""
        cache, stamp = self._cache, self._stamp
        if stamp <= cache.summary.horizon:
            return None
        view = {name: found for name, found in cache.by_id().items() if found.entry.t < stamp}
        is_covered = bound >= stamp and self._come_later(
            [timestamp for timestamp in cache.seen if timestamp >= stamp]
        )
        if self._is_overwritten:
            return plan_cell(cache.summary, view, stamp, commands, self._context()) if is_covered else None
        upto = stamp if is_covered else INFINITY
        # Not beyond the stamp, though more is fenced: what the summary has adopted there comes after what the view leaves out.
        plan = plan_own(cache.summary, view, min(bound, stamp), upto, commands, self._context())
        return plan if plan.results or plan.summary != cache.summary else None

    def _come_later(self, above: Sequence[Timestamp]) -> bool:
        """Whether entries above the stamp may come after the decision: none of these was complete when the commands were given, for the look
        before the latest showed whole logs of a quorum without them. Else who decides would never catch up with those who store.
        What is overwritten may be forgotten below a complete entry, so that nothing may lie above the stamp there."""
        if self._is_overwritten:
            return not above
        return all(self._shown is not None and timestamp not in self._shown for timestamp in above)

    @property
    def _current(self) -> Term:
        assert self._term is not None, "a term is taken before anything is asked under it"
        return self._term

    def _context(self) -> Context:
        return Context(
            ballot=self._current.ballot(self._current.step + 1),
            is_complete=lambda found: self._cache.is_complete(found, self._blind_final),
            take_bytes_max=self._machine.limits.page_bytes_max,
            recent_max=self._machine.limits.recent_decisions_max,
            aged=tuple(self._cache.aged.values()),
            terms_before=self._machine.oldest_remembered(),
            callers=[self._caller(asked) for asked in self._batch],
            asker_of=self._asker_of,
            earliest_us=self._machine.earliest_us(),
            latest_us=self._machine.latest_us(),
            leases_bytes_max=self._machine.limits.leases_bytes_max,
            limits=self._machine.limits,
        )

    def _caller(self, asked: PendingCommand) -> Hashable:
        """Who asks: of those who call this front end, one of them; else whose front end it is."""
        return self._machine.holder if asked.task.turn is None else asked.task.turn

    def _asker_of(self, decision: Decision) -> Hashable:
        """Who asked for it, as far as that is known here: else whose front end decided it."""
        known = self._callers.get(decision.id)
        return holder_of(site(term_of(decision.ballot))) if known is None else known

    def _note_callers(self, granted: list[tuple[PendingCommand, Any]]) -> None:
        """A decision is about to be proposed: remember who asks, as long as the summary does what was decided."""
        asking = {getattr(each.command, "key", ""): each.task.turn for each, _ in granted}
        if any(key and caller is not None for key, caller in asking.items()):
            kept = {known.id: self._callers.get(known.id) for known in self._cache.summary.recent}
            self._callers = asking | kept

    def _is_fit(self, now: Now) -> bool:
        """Whether an accept may be sent under the term without another look. After a long rest others may have decided under so many terms that no
        summary tells any more whether an accept that is refused took effect, and its callers had an unknown outcome."""
        rested_s, term_s = now.mono_s - self._round_ended_s, max(self._round_s, BACKOFF_S_FIRST)
        return self._is_queue and self._proposed is None and is_surely_remembered(rested_s, term_s)

    def _collect(self, task: Task, commands: list[Command]) -> DecideSteps:
        """Promises, fences and logs of an initial quorum, read after this call began; and after what was thrown away meanwhile."""
        lives = -1
        while lives != self._cache.lives:
            lives = self._cache.lives
            yield from self._look(task, commands)
        self._current.lives = lives
        self._cache.check_decided(self._final)

    def _look(self, task: Task, commands: list[Command]) -> DecideSteps:
        wanted = self._windows.wanted(commands)
        if not self._is_overwritten:
            self._windows.trim(wanted)
        fence = self._stamp = self._fence_wanted(wanted)
        purpose = self._purpose

        def request(replica: str) -> Collect:
            source, horizon = self._machine.payload_source(self._cache.name), self._cache.summary.horizon
            window = self._windows.at(replica, wanted, horizon, source)
            ballot, fence_next = self._current.ballot(0), wanted if self._is_queue else 0
            known = self._cache.ballot
            return Collect(self._cache.name, ballot, fence, fence_next, window, known, purpose=purpose)

        needed = self._initial.is_met_by
        round_ = self._round = Gathering(task, request, self._choice.votes, self._cache.name, needed)
        fresh: set[str] = set()
        self._current.begin_look()

        def has_quorum() -> bool:
            for replica in round_.replies.keys() - fresh:
                reply = round_.replies[replica]
                assert isinstance(reply, Collected)
                if reply.more:
                    round_.again(replica)
                else:
                    self._current.grant(replica, reply)
                    fresh.add(replica)
            return self._initial.is_met_by(fresh) or self._goes_on(round_)

        yield from self._timed(task, round_, has_quorum)

    def _timed(self, task: Task, round_: Gathering, is_enough: Callable[[], bool]) -> DecideSteps:
        begun_s = task.now.mono_s
        try:
            yield from round_.wait(is_enough)
        finally:
            self._round_ended_s = task.now.mono_s
            self._round_s = task.now.mono_s - begun_s

    def _fence_wanted(self, wanted: int) -> Timestamp:
        """The fence to ask for by name: a cell's new stamp; of a queue the last entry that we know we mean to take."""
        if not self._is_queue:
            return self._machine.stamp_for(self._cache)
        return max(self._cache.summary.horizon, self._windows.last_of(self._cache.summary, wanted))

    def _propose(self, task: Task, plan: Plan, granted: list[tuple[PendingCommand, Any]]) -> DecideSteps:
        """Get the plan's summary accepted by a final quorum."""
        for asked, result in granted:
            asked.is_proposed, asked.would_be = True, result
        if sum(isinstance(each, Entry) for each in plan.events) > 1:
            self._machine.count("several taken in one decision")
        self._note_callers(granted)
        self._proposed = (self._current.ballot(self._current.step + 1), granted)
        # For all who ask, not only those granted now: else an owner whose first batch was one stays at one each.
        self._windows.note_aside(is_all=not granted)
        next_wanted = self._windows.wanted([asked.command for asked in self.asked[:COMMANDS_MAX]])
        if self._is_queue:
            self._windows.trim(next_wanted)
        yield from self._accept(task, plan, next_wanted)
        self._proposed = None

    def _write_back(self, task: Task) -> DecideSteps:
        """Finish the decision at hand: the same summary under our ballot."""
        self._machine.count("summaries written back")
        yield from self._accept(task, Plan(self._cache.summary, {}, []), 0)

    def _accept(self, task: Task, plan: Plan, wanted: int) -> DecideSteps:
        """Have a final quorum accept the plan's summary under the term's next step; tell all that it is decided."""
        self._current.step += 1
        ballot, name = self._current.ballot(), self._cache.name
        # Only for logs that keep it: it holds all values taken, and those of many callers may be more than one message.
        event = "; ".join(map(_told, plan.events)) if self._keeps_events else ""
        purpose = self._purpose

        def request(replica: str) -> Accept:
            then = self._next_collect(replica, ballot, plan, wanted)
            return Accept(name, ballot, plan.summary, event, then, purpose)

        round_ = self._round = Gathering(task, request, self._choice.votes, name, self._is_enough_for(wanted))
        accepted: set[str] = set()

        def is_decided() -> bool:
            for replica in round_.replies.keys() - accepted:
                reply = round_.replies[replica]
                assert isinstance(reply, Accepted)
                if reply.refused:
                    raise TermLost
                accepted.add(replica)
                if reply.then is not None and not reply.then.more:
                    self._current.grant(replica, reply.then)
            return self._final.is_met_by(accepted) or self._goes_on(round_)

        yield from self._timed(task, round_, is_decided)
        self._cache.learn_decided(ballot)
        for replica in self._choice.votes:
            summary = None if replica in accepted else plan.summary
            self._machine.send_lazily(replica, Commit(name, ballot, plan.summary.horizon, summary))

    def _is_enough_for(self, wanted: int) -> IsEnough:
        """Who is to accept; and, where the next view rides on that, to show it."""
        initial, final = self._initial, self._final
        if not self._is_queue or not wanted:
            return final.is_met_by
        return lambda replicas: final.is_met_by(replicas) and initial.is_met_by(replicas)

    def _next_collect(self, replica: str, ballot: Ballot, plan: Plan, wanted: int) -> Collect | None:
        """The steady owner's next view rides on the accept; a cell must be looked at afresh each time anyway."""
        if not self._is_queue or not wanted:
            return None
        fence = self._windows.last_of(plan.summary, wanted)
        window = self._windows.at(
            replica, wanted, plan.summary.horizon, self._machine.payload_source(self._cache.name)
        )
        return Collect(self._cache.name, fence=fence, window=window, known=ballot)

    @property
    def _is_proposed_in_doubt(self) -> bool:
        """Whether the accept of a lost term is not in the summary at hand, but may yet come to be in force.

        Some replica may have accepted it; who sees that one but not the summary at hand goes on from it. Only when a
        summary without it is decided under a higher ballot is it out for good.
        """
        if self._proposed is None:
            return False
        ballot, _ = self._proposed
        is_settled = self._cache.is_decided and self._cache.ballot > ballot
        return is_included(self._cache.summary, ballot) is False and not is_settled

    def _check_proposed(self) -> bool:
        """Whether the accept of a lost term is part of what is decided; when that cannot be told, its callers fail."""
        if self._proposed is None:
            return False
        ballot, granted = self._proposed
        included = is_included(self._cache.summary, ballot)
        if included:
            return True
        self._proposed = None
        for asked, _ in granted:
            asked.is_proposed = included is None
            if included is None:
                detail = (
                    "it was proposed, and too many decisions were made since to tell whether it took effect"
                )
                self._finish(asked, CommandResult(failed=Failed("unknown", detail, definite=False)))
        return False

    def _finish_proposed(self, now_s: float) -> None:
        assert self._proposed is not None
        _, granted = self._proposed
        self._proposed = None
        self._machine.count("lost accepts found decided")
        self._tell(granted, now_s)

    def _with_payloads(
        self, task: Task, batch: list[PendingCommand], plan: Plan
    ) -> Generator[float, Event, Plan]:
        """The plan, with the payloads of all entries that it delivers, adopts or keeps."""
        handed = {
            place: some
            for place, some in plan.results.items()
            if isinstance(batch[place].command, DequeueCommand | PeekCommand | AcquireCommand)
            and isinstance(some, tuple)
        }
        if not (missing := missing_in(plan.summary, handed)):
            return plan
        for place in handed:
            # A repeat of a decision whose payload is gone must not be told that nothing happened.
            batch[place].is_proposed = batch[place].is_proposed or bool(
                getattr(batch[place].command, "key", "")
            )
        self._machine.count("payloads fetched")
        seen = self._cache.seen
        # Of what a repeat gets again the summary keeps the names only, though a log may show it still: that is missing each time.
        is_news = any(t in seen and seen[t].entry.value is UNSET for t in missing)
        payloads = yield from fetch_payloads(task, self._cache, missing, self._machine.limits)
        full = filled(plan, handed, payloads, self._cache.summary, self._machine.limits.page_bytes_max)
        if is_news and is_overweight(full, self._machine.limits):
            raise TooHeavy
        return full

    def _fail_for_lack(self, batch: list[PendingCommand], plan: Plan, gone: Gone) -> None:
        """Whoever was to get what nobody holds any more (a repeat that comes late) fails; the others go on without it."""
        lacking = [batch[place] for place, result in plan.results.items() if gone.lacks(result)]
        if not lacking:
            raise gone.expired
        for asked in lacking:
            self._finish(asked, CommandResult(failed=gone.expired.outcome(is_unknown=asked.is_in_doubt)))

    def _back_off(self, task: Task) -> DecideSteps:
        """Leave the new owner time to finish, then wait a random, growing time, lest two owners depose each other.

        The unit is what a round takes here and now: on a busy machine that is many times what it takes on an idle one.
        At most a share of what the most urgent caller has left: else who lost often loses on to ever new ones.
        """
        self._losses = min(self._losses + 1, LOSSES_MAX)
        delay_s = max(self._round_s, BACKOFF_S_FIRST) * (1 + self._machine.random() * 2**self._losses)
        left_s = min((asked.task.deadline_s for asked in self.asked), default=0.0) - task.now.mono_s
        until_s = task.now.mono_s + min(delay_s, BACKOFF_S_MAX, max(0.0, left_s) * BACKOFF_SHARE_MAX)
        while task.now.mono_s < until_s:
            yield until_s


def _is_forgotten(plan: Plan, granted: list[tuple[PendingCommand, Any]]) -> bool:
    """Whether a command under a key is told that there was nothing to do, which no summary remembers. An accept of an earlier attempt may lie at
    replicas that the look did not meet, and would be gone on from later: a newer ballot ends it."""
    keys = {key for asked, _ in granted if (key := getattr(asked.command, "key", ""))}
    return not keys <= {known.id for known in plan.summary.recent}


def _is_carried(granted: list[tuple[PendingCommand, Any]]) -> bool:
    """Whether somebody wants it accepted by quorums of this configuration."""
    return any(_carries(asked.command) for asked, _ in granted)


def _carries(command: Command) -> bool:
    return isinstance(command, ConfirmCommand | FoldCommand) and command.carries


def _told(event: str | Entry) -> str:
    return event if isinstance(event, str) else f"Deq();Ok({event.value})"
