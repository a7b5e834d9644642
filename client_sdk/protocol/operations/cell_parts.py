"""What writes and reads of cells, and calls that are stored, make of one round of replies, beside others (`shared_round`). Pure.

Only what needs no second round ends here; all else goes on as an operation of its own (`blind`, `observe`), from what the
replies have shown.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from ....adts.log import Entry, Value
from ....adts.specification import Kind
from ....api_specs.messages import Append, Appended, Collect, Collected, Refused, Reply
from ..core.rounds import Expired, Task, limit_of
from ..core.values import Done, Invoke, Operation, Outcome, Read, Write
from . import observe, own_calls
from .blind import NOBODY, Attempt, Blind, again_at, done_as, is_stuck
from .context import Machine, OutcomeSteps, is_better_known, tell_complete, wait_until_passed
from .shared_round import Alone, Part


def part_of(operation: Operation, machine: Machine) -> Part | None:
    """The operation's part in a round with others; None when it must run alone."""
    if isinstance(operation, Read):
        return ReadPart(operation, machine)
    stored = _stored_by(operation, machine)
    if stored is not None:
        is_by_clock = machine.choice_of(operation.object).ordering == "clock"
        if is_by_clock and machine.is_time_known() and not machine.is_any_ahead():
            return StoredPart(operation, *stored, machine)
    return None


def _stored_by(operation: Operation, machine: Machine) -> tuple[Value | None, Done] | None:
    """What a blind operation stores, and how it ends; None for another one."""
    if isinstance(operation, Write):
        return operation.value, Done(None, done_as(operation), NOBODY)
    if isinstance(operation, Invoke):
        cache = machine.cache_of(operation.object)
        if not cache.is_met or cache.is_full:
            return None
        text = own_calls.stored_text(operation, machine)
        return None if text is None else (text, own_calls.stored_end(operation))
    return None


READS_TOGETHER_MAX: Final = 32
"""Reads in one round, which end together: what they bring back may be large, and waits for the last of them."""

Numbered = tuple[Part, list[int]]
"""A part, and the numbers of the operations that it stands for."""


def sorted_out(
    begun: Iterable[tuple[int, Operation]], machine: Machine
) -> tuple[list[tuple[int, Operation]], list[list[Numbered]]]:
    """Which of these, by number, run alone, and which side by side: all writes in one round, reads in rounds of some.

    Reads of one cell are one: all of them begin before its requests are sent.
    """
    alone: list[tuple[int, Operation]] = []
    writes: list[Numbered] = []
    reads: dict[str, Numbered] = {}
    for number, operation in begun:
        if isinstance(operation, Read) and operation.object in reads:
            reads[operation.object][1].append(number)
        elif (part := part_of(operation, machine)) is None:
            alone.append((number, operation))
        elif isinstance(operation, Read):
            reads[operation.object] = part, [number]
        else:
            writes.append((part, [number]))
    looks = list(reads.values())
    size = READS_TOGETHER_MAX
    rounds = [looks[at : at + size] for at in range(0, len(looks), size)]
    return alone, [*([writes] if writes else []), *rounds]


class StoredPart:
    """A blind operation whose timestamp is known to be right: done when a final quorum stores the value."""

    def __init__(self, operation: Operation, value: Value | None, done: Done, machine: Machine) -> None:
        self.operation: Final = operation
        self.refusals: Final[dict[str, Refused]] = {}
        self._value: Final = value
        self._done: Final = done
        self._runs_log: Final = (
            value is not None
            and isinstance(operation, Invoke)
            and own_calls.is_to_run_log(operation, value, machine)
        )
        self._machine: Final = machine
        choice = machine.choice_of(operation.object)
        self.needed: Final = choice.final_of_kind(Kind.BLIND)
        self._everyone: Final = choice.votes.keys()
        self._cache: Final = machine.cache_of(operation.object)
        self._after: Final = self._cache.after
        stamp = machine.stamp_for(self._cache)
        self._entry: Final = Entry(stamp, stamp, value)
        self._attempt: Final = Attempt(self._entry, given_s=machine.now_s)
        self._request: Final = Append(operation.object, (self._entry,), "first")
        self.placeholder: Final = Append(operation.object, ())
        self._is_stored = False
        self._stored: Final[set[str]] = set()
        self._fenced: Final[set[str]] = set()

    @property
    def to_tell(self) -> Append | None:
        """See Part."""
        return Append(self.operation.object, (self._entry,)) if self._is_stored else None

    def request_to(self, replica: str, *, is_repeat: bool) -> Append:
        """See Part."""
        if is_repeat:
            return replace(self._request, attempt=again_at(replica, (self._attempt,), self._machine))
        return self._request

    def take(self, replica: str, reply: Reply) -> None:
        """See Part."""
        if type(reply) is Refused:
            self.refusals[replica] = reply
            return
        assert isinstance(reply, Appended)
        (self._stored if reply.stored[0] else self._fenced).add(replica)

    def end(
        self, now_s: float, *, is_hedged: bool, is_at_large: bool, is_heard_out: bool
    ) -> Outcome | Alone | None:
        """See Part."""
        del is_heard_out
        if self.needed.is_met_by(self._stored):
            return self._stored_by_quorum(now_s)
        if (is_hedged or not is_at_large) and self._is_without_room:
            return self._make_room(is_at_large=is_at_large)
        if self._fenced and is_stuck(
            self.needed, self._everyone, self._stored, self._fenced, is_hedged=is_hedged
        ):
            return Alone(self._go_on)
        return None

    def renewed(self) -> Alone:
        """See Part. Replicas of before may store it."""
        return Alone(self._again)

    def failed(self, expired: Expired, *, is_at_large: bool) -> Outcome | Alone:
        """See Part. Where some store it, and others have no room or find it too far ahead, these are asked again, unless it is too late."""
        reasons = {each.reason for each in self.refusals.values()}
        if expired.is_refused and self._stored and (expired.limit is not None or reasons == {"clock-ahead"}):
            return Alone(self._again)
        if self._is_without_room:
            return self._make_room(is_at_large=is_at_large)
        if not is_at_large and is_better_known(expired, self._entry.t, self._cache, self._machine):
            self._machine.count("begun again since clocks were wrong")
            return Alone(self._anew)
        return expired.outcome(is_unknown=is_at_large)

    @property
    def _is_without_room(self) -> bool:
        """Whether a replica had no room for a call of an own type: those that wait are to run first."""
        return isinstance(self.operation, Invoke) and own_calls.FULL in map(limit_of, self.refusals.values())

    def _make_room(self, *, is_at_large: bool) -> Alone:
        operation = self.operation
        assert isinstance(operation, Invoke)
        if is_at_large:
            return Alone(self._again)
        self._cache.is_full = self._cache.is_full or self._cache.after == self._after
        # Nobody stores it, nor will: the round sends no more what has ended.
        return Alone(lambda task: own_calls.invoke(operation, task, self._machine))

    def _blind(self, task: Task) -> Blind:
        operation = self.operation
        room = own_calls.Room(operation, self._machine) if isinstance(operation, Invoke) else None
        return Blind(operation.object, task, self._machine, room=room)

    def _stored_by_quorum(self, now_s: float) -> Outcome | Alone:
        self._is_stored = True
        tell_complete(self.operation.object, (self._entry.t,), self._machine)
        done = replace(self._done, answered=frozenset(self._stored))
        if self._machine.passed_s(self._entry.t) <= now_s and not self._runs_log:
            return done
        return Alone(lambda task: self._later(task, done))

    def _later(self, task: Task, done: Done) -> OutcomeSteps:
        try:
            yield from wait_until_passed(self._entry.t, task, self._machine, done.answered)
        except Expired as expired:
            return expired.outcome(is_unknown=True)
        if self._runs_log and isinstance(self.operation, Invoke):
            yield from own_calls.run_log(self.operation, task, self._machine)
        return done

    def _again(self, task: Task) -> OutcomeSteps:
        return self._ended(self._blind(task).again(self._attempt, self._done.event_class))

    def _anew(self, task: Task) -> OutcomeSteps:
        return self._ended(self._blind(task).run((self._value,), self._done.event_class))

    def _go_on(self, task: Task) -> OutcomeSteps:
        steps = self._blind(task).go_on(self._attempt, self._stored, self._fenced, self._done.event_class)
        return self._ended(steps)

    def _ended(self, steps: OutcomeSteps) -> OutcomeSteps:
        outcome = yield from steps
        return replace(outcome, result=self._done.result) if isinstance(outcome, Done) else outcome


class ReadPart:
    """A read: done when an initial quorum shows a value that is known to be stored by a final quorum, and whose time is over."""

    def __init__(self, operation: Read, machine: Machine) -> None:
        self.operation: Final = operation
        self.refusals: Final[dict[str, Refused]] = {}
        self._machine: Final = machine
        self._choice: Final = machine.choice_of(operation.object)
        self.needed: Final = self._choice.initial_of(observe.word_of(operation))
        self._cache: Final = machine.cache_of(operation.object)
        self._lives: Final = self._cache.lives
        self.to_tell: Final = None
        self.placeholder: Final = Collect(operation.object, known=self._cache.ballot)
        self._whole: Final[set[str]] = set()
        """Replicas that have shown their whole log."""
        self._is_cut_off = False

    def request_to(self, replica: str, *, is_repeat: bool) -> Collect:
        """See Part."""
        del is_repeat
        return observe.look_at(self._cache, replica)

    def take(self, replica: str, reply: Reply) -> None:
        """See Part."""
        if type(reply) is Refused:
            self.refusals[replica] = reply
            return
        assert isinstance(reply, Collected)
        if observe.is_whole(reply):
            self._whole.add(replica)
        else:
            self._is_cut_off = True

    def end(
        self, now_s: float, *, is_hedged: bool, is_at_large: bool, is_heard_out: bool
    ) -> Outcome | Alone | None:
        """See Part. Another replica may show that a value is stored by a quorum: to ask it costs less than to write it back."""
        del is_at_large
        if self._is_cut_off or self._cache.lives != self._lives:
            return Alone(lambda task: observe.read(self.operation, task, self._machine))
        if not self.needed.is_met_by(self._whole):
            return None
        answered = frozenset(self._whole)
        if self._choice.is_weak:
            return observe.weakly_read(self._cache, observe.word_of(self.operation), answered)
        self._cache.check_decided(self._choice.final_of_kind(Kind.DECIDE))
        version = observe.settled_version(self._cache, self._choice)
        if version is None and not (is_hedged or is_heard_out):
            return None
        if version is None or self._machine.passed_s(version[0]) > now_s:
            return Alone(lambda task: observe.read(self.operation, task, self._machine, answered))
        return Done(version[1], f"{observe.word_of(self.operation)}/Ok", answered)

    def renewed(self) -> Alone:
        """See Part."""
        return Alone(lambda task: observe.read(self.operation, task, self._machine))

    def failed(self, expired: Expired, *, is_at_large: bool) -> Outcome:
        """See Part. A read changes nothing."""
        del is_at_large
        return expired.outcome(is_unknown=False)
