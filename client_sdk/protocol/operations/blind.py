"""Blind operations: their response does not depend on the state, so they read nothing first (DESIGN, "Blind"). Pure."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ....adts.log import Entry, Value
from ....adts.specification import Kind
from ....adts.times import Times, digest_in, entry_id
from ....adts.types.catalogue import adt_of, is_log, write_word
from ....api_specs.limits import Limits
from ....api_specs.messages import Append, Appended, Reply
from ....api_specs.values import comparable, payload_bytes
from ....quorums.choices.choice import QuorumChoice
from ....quorums.systems.tally import Quorum, VoteCount
from ....timestamps.timestamp import ZERO, Timestamp
from ..core.log_cache import also_held_by
from ..core.rounds import Event, Expired, Gathering, Reconfigured, Task
from ..core.values import AT_ONCE, Done, Failed, Spans, Write
from ..decisions.idempotency import KEY_REUSED, KEY_TOO_OLD, NO_ROOM_YET, decision_id, digest
from ..decisions.transitions import Fate, RecoverCommand
from .context import (
    Machine,
    OperationFailed,
    OutcomeSteps,
    decide,
    is_better_known,
    look_for_what_is_ahead,
    pause,
    read_clocks,
    tell_complete,
    wait_until_passed,
)
from .reservation import agree, may_be_agreed

NOBODY: Final[frozenset[str]] = frozenset()
HEDGE_S: Final = 0.05
"""How long to wait for silent replicas before an entry that some replica fenced is recovered."""

AttemptKind = Literal["first", "again", "repair"]


class Room(Protocol):
    """Makes room where replicas have none."""

    def make(self, task: Task) -> Generator[float, Event, bool]:
        """Whether to try again."""


class _NoRoom(Expired):
    """Too few store it, and one that does not has no room."""


class Attempt(Struct):
    """One entry on its way to a final quorum."""

    entry: Entry
    key: str = ""
    """The id of the key that it was agreed under, if under any."""
    is_recovered: bool = False
    """Whether a recovery was ever asked for: from then on a summary may hold the entry."""
    is_done: bool = False
    given_s: float | None = None
    """When this front end gave it its timestamp, by the monotonic clock; None where others may have."""


def done_as(operation: Write) -> str:
    """The event class of a write that took effect."""
    return f"{write_word(adt_of(operation.object), deletes=operation.value is None)}/Ok"


def again_at(replica: str, attempts: Iterable[Attempt], machine: Machine) -> AttemptKind:
    """As what to send them to this replica again. What is old for good reason it must not take for that of a wrong clock; but while it has not shown that
    the clock was right, it judges for itself."""
    own = ((each.entry.t, each.given_s) for each in attempts if each.given_s is not None)
    return "again" if all(machine.was_right(t, given_s, replica) for t, given_s in own) else "first"


def is_stuck(
    final: Quorum,
    everyone: AbstractSet[str],
    stored: AbstractSet[str],
    fenced: AbstractSet[str],
    *,
    is_hedged: bool,
) -> bool:
    """Whether fences keep an entry from its final quorum, or may, and (`is_hedged`) the silent replicas have had their time."""
    if final.is_met_by(everyone - fenced):
        return bool(fenced) and is_hedged
    return stored | fenced == everyone or is_hedged


def _together(attempts: Iterable[Attempt], limits: Limits) -> Iterator[list[Attempt]]:
    """As many at a time as one message may hold, at least one."""
    some: list[Attempt] = []
    size = 0
    for attempt in attempts:
        size += payload_bytes((attempt.entry,))
        if some and (len(some) == limits.batch_items_max or size > limits.page_bytes_max):
            yield some
            some, size = [], payload_bytes((attempt.entry,))
        some.append(attempt)
    if some:
        yield some


class Blind:
    """A blind operation: append, done when a final quorum stores it; see DESIGN section 2, "Blind"."""

    def __init__(
        self,
        name: str,
        task: Task,
        machine: Machine,
        key: str = "",
        spans: Spans = AT_ONCE,
        *,
        may_be_old: bool = False,
        room: Room | None = None,
    ) -> None:
        """`may_be_old`: what was agreed on under the key may be older than any repeat may be. `room`: what makes room where a replica has none."""
        self._name = name
        self._task = task
        self._machine = machine
        self._cache: Final = machine.cache_of(name)
        """Held: what replies show of the object must not be forgotten between two stamps."""
        self._key = decision_id("Enq", key)
        self._spans: Final = spans
        self._may_be_old: Final = may_be_old
        self._room: Final = room
        self._choice: QuorumChoice
        self._final: Quorum
        self._everyone: frozenset[str]
        self._is_met: Callable[[frozenset[str]], bool]
        """Most entries of a batch are at the same replicas."""
        self._go_by(machine.choice_of(name))
        self._stored: dict[Timestamp, frozenset[str]] = {}
        self._fenced: dict[Timestamp, frozenset[str]] = {}
        self._looked_up: set[Timestamp] = set()
        self.is_sent = False
        """Whether an entry, or which one the key stands for, may be stored somewhere."""
        self.refusals = ""
        """What replicas said that had no room for what was written back."""

    def _go_by(self, choice: QuorumChoice) -> None:
        self._choice = choice
        self._final = choice.final_of_kind(Kind.BLIND)
        self._everyone = frozenset(choice.votes)
        self._is_met = cache(self._final.is_met_by)

    def _choose(self) -> None:
        """Go by the quorums of the configuration at hand: before each round, for what came before it may have gone on to another one. Which replicas store
        an entry counts on."""
        if (choice := self._machine.choice_of(self._name)) is not self._choice:
            self._go_by(choice)

    def _go_on(self) -> None:
        """Go by the configuration of now; from the beginning, where nobody was sent anything."""
        if self.is_sent:
            self._task.renew()
        else:
            self._task.begin_anew()

    def run(self, values: Sequence[Value | None], done_as: str) -> OutcomeSteps:
        """Store one entry per value, in order."""
        return self._ended(self._begin(values), done_as)

    def go_on(
        self, attempt: Attempt, stored: AbstractSet[str], fenced: AbstractSet[str], done_as: str
    ) -> OutcomeSteps:
        """Store an entry that some replicas store already, and others refused for their fences."""
        self.is_sent = True
        t = attempt.entry.t
        self._stored[t], self._fenced[t] = frozenset(stored), frozenset(fenced)
        return self._ended(self._settle([attempt]), done_as)

    def again(self, attempt: Attempt, done_as: str) -> OutcomeSteps:
        """Store an entry that some replicas store already."""
        self.is_sent = True
        return self._ended(self._all_stored([attempt], "again"), done_as)

    def _ended(
        self, steps: Generator[float, Event, list[Attempt]], done_as: str, *, is_ordered: bool = True
    ) -> OutcomeSteps:
        """The outcome, once the entries that `steps` store are stored, and their time is over."""
        try:
            attempts = yield from steps
            answered = NOBODY.union(*(self._stored.get(attempt.entry.t, NOBODY) for attempt in attempts))
            if is_ordered:
                latest = max(attempt.entry.t for attempt in attempts)
                yield from wait_until_passed(latest, self._task, self._machine, answered)
        except Expired as expired:
            return expired.outcome(is_unknown=self.is_sent)
        except OperationFailed as failure:
            # Where the key was used for something else, others' entries are agreed on, and these never.
            if not self.is_sent or failure.outcome in (KEY_REUSED, KEY_TOO_OLD):
                return failure.outcome
            return Failed(
                "unknown", failure.outcome.detail, definite=False, answered=failure.outcome.answered
            )
        return Done(None, done_as, answered)

    def append_agreed(self, attempts: list[Attempt]) -> Generator[float, Event, None]:
        """Append entries that were agreed on under keys, until each is stored, or fenced so that it needs another way. Raises
        Expired."""
        return self._appended(attempts, "again")

    def stored(self, attempts: list[Attempt], done_as: str) -> OutcomeSteps:
        """The outcome of attempts that are all done."""
        return self._ended(self._all_stored(attempts, "again"), done_as)

    def go_on_agreed(self, before: "Blind", attempts: list[Attempt], done_as: str) -> OutcomeSteps:
        """Store entries that were agreed on, from what replicas answered before."""
        self.is_sent = True
        for attempt in attempts:
            t = attempt.entry.t
            self._stored[t], self._fenced[t] = before._stored.get(t, NOBODY), before._fenced.get(t, NOBODY)
        return self._ended(self._settle(attempts), done_as)

    def _begin(self, values: Sequence[Value | None]) -> Generator[float, Event, list[Attempt]]:
        """Begin anew where all replicas refused a stamp that was given while clocks were wrong: nothing was stored."""
        while True:
            yield from self.learn_order()
            entries = self.entries(values, is_keyed=bool(self._key))
            try:
                return (yield from self._begin_with(entries))
            except Expired as expired:
                latest = max([entry.t for entry in entries], default=ZERO)
                if self.is_sent or not is_better_known(expired, latest, self._cache, self._machine):
                    raise
                self._machine.count("begun again since clocks were wrong")

    def _begin_with(self, entries: list[Entry]) -> Generator[float, Event, list[Attempt]]:
        given_s = None if self._key else self._task.now.mono_s
        reserved = yield from self._reserve(entries)
        attempts = [
            Attempt(entry, self._key, is_recovered=bool(self._key), given_s=given_s) for entry in reserved
        ]
        if self._may_be_old:
            yield from self._settle_old(attempts)
        return (yield from self._all_stored(attempts, "again" if self._key else "first"))

    def _settle_old(self, attempts: list[Attempt]) -> Generator[float, Event, None]:
        """Replicas refuse what is older than any repeat may be. Where nothing has passed it in the queue, it was never taken: a decision puts it in force."""
        (attempt,) = attempts  # Of several a part would be there twice.
        if attempt.entry.t >= self._machine.oldest_remembered():
            return
        self._machine.count("recoveries")
        command = RecoverCommand(attempt.entry, may_be_complete=True)
        verdict = yield from decide(self._name, command, self._task, self._machine)
        if verdict.result is not Fate.IN_FORCE:
            is_passed = attempt.entry.t <= self._cache.summary.horizon
            raise OperationFailed(KEY_TOO_OLD if is_passed else NO_ROOM_YET)
        self._machine.count("recovered entries in force")
        attempt.is_done = True

    def kept(self, values: Sequence[Value | None], done_as: str) -> OutcomeSteps:
        """As `run`, where nobody waits for what is stored to be in its place."""
        return self._ended(self._begin(values), done_as, is_ordered=False)

    def _all_stored(
        self, attempts: list[Attempt], kind: AttemptKind
    ) -> Generator[float, Event, list[Attempt]]:
        yield from self._store(attempts, kind)
        return attempts

    def entries(self, values: Iterable[Value | None], *, is_keyed: bool) -> list[Entry]:
        """A new entry for each value, in order."""
        times = self._spans.times(self._machine.latest_us())
        return [
            self._entry(self._machine.stamp_for(self._cache), value, times, is_keyed=is_keyed)
            for value in values
        ]

    def _settle(self, attempts: list[Attempt]) -> Generator[float, Event, list[Attempt]]:
        yield from self._free(attempts)
        return (yield from self._all_stored(attempts, "again"))

    def write_back(self, *entries: Entry) -> Generator[float, Event, tuple[Timestamp, ...]]:
        """Store a reader's entries at a final quorum, as they are, and let it be known; which of them, for fences may stand in the way, and replicas
        may have no room: a decision needs none in their logs."""
        for _ in entries:
            self._machine.count("entries written back")
        attempts = list(map(Attempt, entries))
        stored: tuple[Timestamp, ...] = ()
        try:
            for some in _together(attempts, self._machine.limits):
                try:
                    yield from self._append(some, "repair")
                except _NoRoom as full:
                    self.refusals = full.detail
        finally:  # Of what was stored before a part of them expired, too.
            stored = tuple(attempt.entry.t for attempt in attempts if attempt.is_done)
            tell_complete(self._name, stored, self._machine)
        return stored

    def learn_order(self) -> Generator[float, Event, None]:
        """Look for what the object holds where the order must come from a quorum, or read the replicas' clocks where ours has
        no bound yet.

        A look shows at or above all that a replica holds of the object, so any entry complete before it began is below the
        next stamp. It is needed, too, where timestamps are stored that are far ahead of time: nobody waited for those.
        """
        while True:
            try:
                return (yield from self._learn_order())
            except Reconfigured:
                self._go_on()

    def _learn_order(self) -> Generator[float, Event, None]:
        self._choose()
        if self._choice.ordering == "quorum":
            yield from read_clocks(
                self._name, self._task, self._machine, self._choice.initial_of_kind(Kind.BLIND)
            )
            return
        if not self._machine.is_time_known():
            yield from read_clocks(self._name, self._task, self._machine, VoteCount(self._choice.votes, 1))
        if self._machine.is_any_ahead():
            yield from look_for_what_is_ahead(
                self._name, self._task, self._machine, self._choice.meeting_final_of_kind(Kind.BLIND)
            )

    def _entry(self, stamp: Timestamp, value: Value | None, times: Times, *, is_keyed: bool) -> Entry:
        """Under a key the id also says what is added, so that a repeat with something else is told from a true one."""
        shown = self._digest(value) if is_keyed else ""
        return Entry(entry_id(stamp, shown, times), stamp, value)

    def _digest(self, value: Value | None) -> str:
        spans, shown = self._spans, comparable(value)
        return digest(shown) if spans == AT_ONCE else digest(shown, str(spans.delay_s), str(spans.expires_s))

    def _reserve(self, entries: list[Entry]) -> Generator[float, Event, list[Entry]]:
        """With a key, the ids and timestamps are agreed on first: a repeat elsewhere gets the same."""
        if not self._key:
            return entries
        unfilled = tuple(Entry(entry.id, entry.t) for entry in entries)
        try:
            reserved = yield from self._agree(self._key, unfilled)
        except Expired as expired:
            self.is_sent = self.is_sent or self._task.is_renewed or may_be_agreed(expired, self._choice)
            raise
        if [digest_in(entry.id) for entry in reserved] != [digest_in(entry.id) for entry in entries]:
            raise OperationFailed(KEY_REUSED)
        self.is_sent = True
        return [
            Entry(agreed.id, agreed.t, mine.value) for agreed, mine in zip(reserved, entries, strict=True)
        ]

    def _agree(self, key: str, proposed: tuple[Entry, ...]) -> Generator[float, Event, tuple[Entry, ...]]:
        return agree(self._name, key, proposed, self._task, self._machine)

    def _store(self, attempts: list[Attempt], kind: AttemptKind) -> Generator[float, Event, None]:
        while pending := [attempt for attempt in attempts if not attempt.is_done]:
            yield from self._appended(pending, kind)
            yield from self._free(pending)
            kind = "again"
        stored = [each.entry for each in attempts if self._is_met(self._stored.get(each.entry.t, NOBODY))]
        if is_log(adt_of(self._name)):
            self._cache.learn_own((entry, self._stored[entry.t]) for entry in stored)
        tell_complete(self._name, tuple(entry.t for entry in stored), self._machine)

    def _free(self, attempts: list[Attempt]) -> Generator[float, Event, None]:
        """What is stuck gets a new timestamp, or is recovered."""
        for attempt in attempts:
            if attempt.is_done:
                continue
            if self._is_nowhere(attempt):
                self._stamp_anew(attempt)
            else:
                yield from self._recover(attempt)

    def _appended(self, attempts: list[Attempt], kind: AttemptKind) -> Generator[float, Event, None]:
        """See `_append`; in whichever configuration, and once there is room, if some can be made. Where there is none, and something may be stored, it
        is tried until the deadline: that cannot be taken back."""
        while True:
            before = self._cache.after
            try:
                return (yield from self._append(attempts, kind))
            except Reconfigured:
                self._go_on()
            except _NoRoom:
                is_news = self._cache.after > before
                if not is_news and not (yield from self._make_room()) and not self.is_sent:
                    raise
                if self._task.is_late:
                    raise
            kind = "again"

    def _check_room(self, round_: Gathering, hedge_s: float, kind: AttemptKind) -> None:
        """Raises _NoRoom where a replica has none, the others have had their time, and there is another way: some can be made, or is not needed."""
        if round_.limit is None or (self._room is None and kind != "repair"):
            return
        is_heard = round_.replies.keys() | round_.troubles.keys() >= self._everyone
        if is_heard or self._task.now.mono_s >= hedge_s:
            raise _NoRoom(round_.explain(), round_.replies, is_refused=True, limit=round_.limit)

    def _make_room(self) -> Generator[float, Event, bool]:
        return False if self._room is None else (yield from self._room.make(self._task))

    def _append(self, attempts: list[Attempt], kind: AttemptKind) -> Generator[float, Event, None]:
        """Append until each entry is stored by a final quorum, or is fenced so that it needs another way. Raises Expired and Reconfigured.

        What was sent two configurations ago always needs another way. A decision may have passed it, with fences at replicas that are no members any
        more: those of now would store it, and nobody would see it.
        """
        self._choose()
        if self._task.is_outlasted and kind != "repair":
            return
        request = Append(self._name, tuple(attempt.entry for attempt in attempts), kind)
        asked: set[str] = set()

        def request_to(replica: str) -> Append:
            is_repeat = kind == "again" or (kind == "first" and replica in asked)
            asked.add(replica)
            return (
                replace(request, attempt=again_at(replica, attempts, self._machine)) if is_repeat else request
            )

        since_s = min([each.given_s for each in attempts if each.given_s is not None], default=math.inf)
        round_ = Gathering(self._task, request_to, self._choice.votes, self._name, self._is_met, since_s)
        hedge_s = self._task.now.mono_s + HEDGE_S
        noted: dict[str, Reply] = {}

        def is_settled() -> bool:
            for replica, reply in round_.replies.items():
                if noted.get(replica) is not reply:
                    noted[replica] = reply
                    self._note(replica, request.entries, reply)
            for attempt in attempts:
                attempt.is_done = self._is_met(self._stored.get(attempt.entry.t, NOBODY))
            open_ones = [attempt for attempt in attempts if not attempt.is_done]
            is_over = all(self._is_stuck(attempt, hedge_s) for attempt in open_ones)
            if not is_over:
                self._check_room(round_, hedge_s, kind)
            return is_over

        try:
            yield from round_.wait(is_settled, hedge_s)
            yield from round_.wait(is_settled)
            self._tell_others(round_.unasked, attempts)
        except Expired as expired:
            # A store that was made from others says nothing of the entry; what is decided may, which is asked once.
            left = {attempt.entry.t for attempt in attempts if not attempt.is_done}
            may_tell = all(map(self._fenced.get, left)) and not left <= self._looked_up
            if not expired.is_refused or expired.limit is not None or not may_tell:
                raise
            self._looked_up |= left
        finally:
            self.is_sent = self.is_sent or round_.at_large > 0

    def _tell_others(self, replicas: Iterable[str], attempts: Iterable[Attempt]) -> None:
        """Let these store what is stored, with later messages."""
        stored = tuple(attempt.entry for attempt in attempts if attempt.is_done)
        for replica in replicas if stored else ():
            self._task.send_lazily(replica, Append(self._name, stored))

    def _note(self, replica: str, entries: Iterable[Entry], reply: Reply) -> None:
        """Which of the entries the replica stores, and which its fence refused."""
        assert isinstance(reply, Appended)
        for entry, is_stored in zip(entries, reply.stored, strict=True):
            to = self._stored if is_stored else self._fenced
            to[entry.t] = also_held_by(to.get(entry.t, NOBODY), replica)

    def _is_stuck(self, attempt: Attempt, hedge_s: float) -> bool:
        """See `is_stuck`. One that was recovered need not wait: it has no other way."""
        if attempt.is_recovered and not self._may_be_complete(attempt):
            return True
        t = attempt.entry.t
        stored, fenced = self._stored.get(t, NOBODY), self._fenced.get(t, NOBODY)
        is_hedged = self._task.now.mono_s >= hedge_s
        return is_stuck(self._final, self._everyone, stored, fenced, is_hedged=is_hedged)

    @property
    def _is_of_before(self) -> bool:
        """Whether something may have been sent in another configuration than the machine's, which may have changed while a decision was waited for."""
        return self._task.is_renewed or self._task.is_outdated

    def _is_nowhere(self, attempt: Attempt) -> bool:
        """Whether nobody holds it: all whom it was sent to refused it, and no decision was asked for it."""
        is_refused_by_all = self._fenced.get(attempt.entry.t) == self._everyone
        return is_refused_by_all and not attempt.is_recovered and not self._is_of_before

    def _may_be_complete(self, attempt: Attempt) -> bool:
        """Whether a final quorum may store the entry: no fence keeps any of its replicas from it; or one of a configuration before may have."""
        others = self._everyone - self._fenced.get(attempt.entry.t, NOBODY)
        finals = (each.final_of_kind(Kind.BLIND) for each in self._choice.sides)
        return self._is_of_before or any(final.is_met_by(others) for final in finals)

    def _stamp_anew(self, attempt: Attempt) -> None:
        """Every replica refused it and no recovery was ever sent: nobody holds it, so it may have a new timestamp."""
        self._machine.count("stamped anew")
        attempt.entry = Entry(attempt.entry.id, self._machine.stamp_for(self._cache), attempt.entry.value)
        attempt.given_s = self._task.now.mono_s

    def _recover(self, attempt: Attempt) -> Generator[float, Event, None]:
        """Have a decision settle the fate of an entry that some replicas may hold and others refuse."""
        self._machine.count("recoveries")
        attempt.is_recovered = True
        is_to_run = self._room is not None
        command = RecoverCommand(attempt.entry, self._may_be_complete(attempt), is_to_run)
        verdict = yield from decide(self._name, command, self._task, self._machine)
        self.is_sent = True  # To nobody, where it was outlasted before; the decision may have put it in force all the same.
        fate: Fate = verdict.result
        if fate is Fate.IN_FORCE:
            self._machine.count("recovered entries in force")
            attempt.is_done = True
        elif self._is_of_before and (fate is Fate.VOID or attempt.entry.t <= self._cache.summary.horizon):
            # What was asked for rests on fences of replicas that may be no members any more.
            detail = "the cluster's configuration changed meanwhile, and a decision has passed what was stored: it may have taken effect"
            raise OperationFailed(Failed("unknown", detail, definite=False))
        elif fate is Fate.VOID:
            self._machine.count("void entries stamped anew")
            attempt.given_s = None if attempt.key else self._task.now.mono_s
            again = yield from self._stamp_void(attempt)
            attempt.entry = Entry(attempt.entry.id, again, attempt.entry.value)
            attempt.is_recovered = bool(attempt.key)
        else:
            self._machine.count("fates unknown")
            if self._room is None or attempt.entry.t <= self._cache.summary.horizon:
                yield from pause(self._task, min(self._task.now.mono_s + HEDGE_S, self._task.deadline_s))
            else:
                yield from self._room.make(self._task)

    def _stamp_void(self, attempt: Attempt) -> Generator[float, Event, Timestamp]:
        """A new timestamp for an entry that never was complete and never will be.

        Under a key it is agreed on as well: others who run the operation find the same entry void, sooner or later.
        """
        if not attempt.key:
            return self._machine.stamp_for(self._cache)
        anew = (Entry(attempt.entry.id, self._machine.stamp_for(self._cache)),)
        (agreed,) = yield from self._agree(f"{attempt.key} instead of {attempt.entry.t}", anew)
        return agreed.t
