"""Catching up: what another replica holds and this one missed, it gets (docs/explanation/shared-objects.md, "Catch-up"). Pure.

Owns how far this replica has looked at each other one, what it still lacks, and what it may install:

* above its own fence, an entry is appended as a repeat by its front end would be;
* at or below the fence, only one that is marked complete. A final quorum stored it, so each decision whose view lies above it
  has met it at a replica that stored it before its fence; no decided view lacks it;
* at or below the committed horizon, here or there, nothing;
* a committed summary with a higher ballot, as a commit would bring it, but for this store's floor (`_let_in`).

It must not know how messages travel, nor when.
"""

from collections.abc import Callable, Collection, Iterable
from copy import copy
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from typing import Final, Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from ...adts.log import Entry
from ...adts.types.catalogue import adt_of, is_overwritten
from ...api_specs.limits import Limits
from ...api_specs.messages import (
    Append,
    Change,
    Changed,
    Changes,
    Collect,
    Collected,
    Commit,
    Refused,
    Reply,
    Request,
    Row,
)
from ...gc.collection import ended_at
from ...timestamps.ballot import NO_BALLOT, Ballot, term_of
from ...timestamps.clock import Now
from ...timestamps.timestamp import ZERO, Timestamp, make
from .log import Effect, Log, ObjectState, PutRows, PutState

OVERDUE_PASSES: Final = 4
"""An entry that has waited for so many passes is not about to be marked by its client; it may never be complete, and is overdue again after as
many passes as it has waited, but"""
AGAIN_PASSES_MAX: Final = 32
"""at most so many."""
AGAIN_OBJECTS_MAX: Final = 256
"""What waits of so many objects is looked at again in one pass, in turn: what is new waits no longer for it."""
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
NEWEST_MAX: Final = 100
NEWEST_BYTES: Final = 65_536
"""Of a cell's newest entries so many are looked at, and of their values so much, to find a complete one."""
WAITING_MAX: Final = 10_000
"""Entries that may not be installed yet, and as many objects whose decisions are behind, that are remembered for each other replica. Of more, those that
were asked for in vain make room for others, in turn: else so many that never become complete, or decided, would keep all others from it."""


class Lack(NamedTuple):
    """What is missing of one object: entries, and perhaps the latest decision."""

    object: str
    entries: tuple[Timestamp, ...]
    is_behind: bool = False

    def request(self, log: Log, most: int) -> Collect:
        """Ask for it, for at most so many entries. The summary is sent only where it is another one than here."""
        state = log.state(self.object)
        return Collect(
            self.object, known=None if state is None else state.accepted, wanted=self.entries[:most]
        )


class _Behind(NamedTuple):
    """A ballot that was committed at the other replica and not here, and what the pass that found it began after; `is_due` from
    the next pass on (a decision under way reaches all by itself), and whether it was before."""

    ballot: Ballot
    began: int
    is_due: bool = False
    was_due: bool = False


class _Waiting(NamedTuple):
    """Since which pass an entry has waited, what the pass that found it began after, in which one it is overdue, and whether it was once."""

    since: int
    began: int
    due: int
    was_due: bool = False


_NOT_BEHIND: Final = _Behind(NO_BALLOT, 0)


@dataclass
class _Places(Generic[_Key, _Value]):
    """Places for what a pass finds and cannot have yet. Where there are too few, a pass begins with what the one before had no place for."""

    held: dict[_Key, _Value] = field(default_factory=dict)
    _met: int = 0
    """How many finds of this pass came;"""
    _turn: int = 0
    """from which on further ones are remembered;"""
    _full_at: int = 0
    """and the first for which there was no place."""

    def copy(self) -> "_Places[_Key, _Value]":
        """The same places, which are filled by themselves."""
        return replace_fields(self, held=dict(self.held))

    def begin(self) -> None:
        """A pass begins."""
        self._met, self._turn, self._full_at = 0, self._full_at, 0

    def find(self) -> None:
        """The pass comes to another find, of one thing or of several."""
        self._met += 1

    def put(self, key: _Key, value: _Value) -> bool:
        """Remember it, or what is new about it; False: there is no place for it in this pass."""
        if key not in self.held:
            if self._met < self._turn:
                return False
            if len(self.held) >= WAITING_MAX:
                self._full_at = self._full_at or self._met
                return False
        self.held[key] = value
        return True


class Progress:
    """How far this replica has looked at the changes of another one, pass by pass.

    A pass looks at the changes up to a number that was the latest one a while ago: what all replicas are just being sent is
    no loss. `since` is what the next pass begins after, and may be kept over a restart.
    """

    def __init__(self, since: int = 0) -> None:
        self.since = since
        self.latest = since
        """The number of the other's newest change, as far as is known."""
        self._is_told = False
        """Whether the other one has told of its newest change."""
        self._is_informed = False
        """Whether it had when the pass began: one that begins without looks at nothing."""
        self._upto = since
        self._place = 0
        self._below = 0
        self._began = since
        """What the pass began after."""
        self._is_cut = False
        """Whether the pass found more than is remembered: then the next one looks at all of it again."""
        self._passes = 0
        self._waiting: _Places[tuple[str, Timestamp], _Waiting] = _Places()
        """Entries that could not be installed: below the fence and not marked complete, say."""
        self._behind: _Places[str, _Behind] = _Places()
        """By object: what was committed there and not here."""

    def copy(self) -> "Progress":
        """The same progress, which goes on by itself."""
        found = copy(self)
        found._waiting, found._behind = self._waiting.copy(), self._behind.copy()
        return found

    @property
    def lag(self) -> int:
        """How many changes of the other one were not looked at; each is an entry or a decision."""
        return self.latest - self.since + len(self._waiting.held)

    @property
    def is_level(self) -> bool:
        """Whether this replica has all that the other one had when the pass before ended."""
        return (self._is_informed or (self._is_told and self.since == self.latest)) and not self._waiting.held

    @property
    def has_more_to_ask(self) -> bool:
        """Whether more is asked for than what the other one tells of: what passes before have found, and is not here."""
        return bool(self._waiting.held or self._behind.held)

    def begin(self) -> None:
        """Begin a pass, up to what was the latest change when the pass before ended."""
        if self._is_cut:
            self._make_places()
        self._upto, self._place, self._below = self.latest, 0, 0
        self._is_informed = self._is_told
        self._began, self._is_cut = self.since, False
        self._waiting.begin()
        self._behind.begin()
        self._passes += 1
        behind = self._behind.held
        self._behind.held = {name: each._replace(is_due=True) for name, each in behind.items()}

    def _make_places(self) -> None:
        """What was asked for in vain is forgotten, for what found no place. It is found again: the pass begins no later than the one that found it."""
        waiting, behind = self._waiting.held, self._behind.held
        self._waiting.held = {key: each for key, each in waiting.items() if not each.was_due}
        self._behind.held = {name: each for name, each in behind.items() if not (each.is_due or each.was_due)}
        began = [each.began for each in waiting.values() if each.was_due]
        began += [each.began for each in behind.values() if each.is_due or each.was_due]
        self.since = min([self.since, *began])

    def request(self, limit: int) -> Changes:
        """The next question of the pass."""
        return Changes(self.since, self._upto, self._place, self._below, limit)

    def hear(self, asked: Changes, told: Changed, log: Log) -> list[Lack]:
        """What is missing of what was told. The pass is over where there is no more. An answer to an earlier question than the
        latest one says nothing: `since` must not pass what was not looked at."""
        if asked != self.request(asked.limit):
            return []
        if told.latest < self.latest:  # The store there is another one: all begins anew.
            self.since = self.latest = 0
            self._is_told = False
            self.begin()
            return []
        self.latest, self._is_told = told.latest, True
        lacking = [lack for change in told.objects if (lack := self._lack(change, log)) is not None]
        self._place, self._below = told.place, told.below
        if not told.more:
            lacking += self._again(log)
            if not self._is_cut:
                self.since = self._upto
        return lacking

    @property
    def safe_since(self) -> int:
        """What to begin after when this is forgotten: only what waits for nothing is behind it."""
        if self._waiting.held:
            return 0
        return min((each.began for each in self._behind.held.values()), default=self.since)

    def _lack(self, change: Change, log: Log) -> Lack | None:
        here = _state(change.object, log)
        entries = missing(change.object, change.arrived, log) if change.arrived else ()
        behind = self._behind.held.get(change.object, _NOT_BEHIND)
        if change.committed > here.committed:
            self._behind.find()
            was_due = behind.is_due or behind.was_due
            self._is_cut |= not self._behind.put(
                change.object, _Behind(change.committed, self._began, was_due=was_due)
            )
        else:
            self._behind.held.pop(change.object, None)
        is_behind = behind.is_due and here.committed < behind.ballot
        return Lack(change.object, entries, is_behind) if entries or is_behind else None

    def _again(self, log: Log) -> list[Lack]:
        """What waits still, and the decisions of objects that this pass has not told of."""
        if not self.has_more_to_ask:
            return []
        left = self._look_again(log)
        behind = self._behind.held
        self._behind.held = {
            name: each for name, each in behind.items() if _state(name, log).committed < each.ballot
        }
        due = {name for name, each in self._behind.held.items() if each.is_due}
        return [
            Lack(name, left.get(name, ()), name in due)
            for name in sorted(left.keys() | due)
            if left.get(name) or name in due
        ]

    def _look_again(self, log: Log) -> dict[str, tuple[Timestamp, ...]]:
        """By object, what waits still and is to be asked for again: of those objects whose turn it is, which come last in the next passes."""
        waiting, by_object = self._waiting.held, dict[str, list[Timestamp]]()
        for name, t in waiting:
            if name in by_object or len(by_object) < AGAIN_OBJECTS_MAX:
                by_object.setdefault(name, []).append(t)
        asked: dict[str, tuple[Timestamp, ...]] = {}
        for name, entries in by_object.items():
            known = {t: waiting.pop((name, t)) for t in entries}
            left = missing(name, entries, log)
            waiting.update(((name, t), known[t]) for t in left)
            asked[name] = left
        return asked

    def wait_for(self, lack: Lack) -> None:
        """It is not here yet; the next pass asks again."""
        self._waiting.find()
        begun = _Waiting(self._passes, self._began, self._passes + OVERDUE_PASSES)
        for t in lack.entries:
            key = lack.object, t
            if not self._waiting.put(key, self._waiting.held.get(key, begun)):
                self._is_cut = True
        if self._is_cut:  # Perhaps after its last question, when `since` has passed all that it looked at.
            self.since = self._began

    def settle(self, lack: Lack, told: Collected, log: Log) -> Lack | None:
        """What was told has been installed as far as may be; what of the lack to ask for once more, where the answer had no room
        for all. What the other one has no more is waited for no longer."""
        behind = self._behind.held.get(lack.object)
        if behind is not None and _is_over(lack, told, behind.ballot, log):
            del self._behind.held[lack.object]
        told_of = {row.entry.t for row in told.rows}
        left = set(missing(lack.object, (t for t in told_of if t > told.status.horizon), log))
        left -= overtaken(lack.object, left, log)
        # An answer without rows is the last one: what is asked for newest first is deleted oldest first.
        rest = tuple(t for t in lack.entries if t not in told_of) if told_of else ()
        for t in lack.entries:
            if t not in left and t not in rest:
                self._waiting.held.pop((lack.object, t), None)
        return Lack(lack.object, rest) if rest else None

    def overdue(self, told: Iterable[tuple[Lack, Reply]], left_before: Timestamp) -> dict[str, list[Entry]]:
        """By object, what was told, could not be installed, and has waited for so long that nobody will mark it complete any more, or was stamped
        `left_before`: it is to be found out whether it is, now."""
        found: dict[str, list[Entry]] = {}
        for lack, reply in told:
            for row in reply.rows if isinstance(reply, Collected) else ():
                key = lack.object, row.entry.t
                waiting = self._waiting.held.get(key)
                if waiting is None or row.complete:
                    continue
                is_left = not waiting.was_due and row.entry.t < left_before
                if self._passes < waiting.due and not is_left:
                    continue
                found.setdefault(lack.object, []).append(row.entry)
                again = min(max(self._passes - waiting.since, OVERDUE_PASSES), AGAIN_PASSES_MAX)
                self._waiting.held[key] = waiting._replace(due=self._passes + again, was_due=True)
        return found


def resumed(since: int) -> Progress:
    """After a restart, with what was kept of the progress."""
    return Progress(since)


def missing(name: str, timestamps: Iterable[Timestamp], log: Log) -> tuple[Timestamp, ...]:
    """Those of the entries that a view may need, and this replica does not have: neither in its log nor in what is decided."""
    state = _state(name, log)
    wanted = {t for t in timestamps if t > least(state)}
    if wanted and state.accepted == state.committed:
        wanted.difference_update(entry.t for entry in state.summary.adopted)
    return tuple(sorted(wanted - log.stored(name, list(wanted)), reverse=True)) if wanted else ()


def overtaken(name: str, left: Collection[Timestamp], log: Log) -> set[Timestamp]:
    """Those that no view needs, for a complete entry here overtakes them (`gc.collection.collected_by_completion`). With `collect = false` they never become history; one that is not
    complete, and lies below the fence, would be waited for as long as the object is there."""
    if not left or not is_overwritten(adt_of(name)):
        return set()
    newest = log.newest(name, min(left), NEWEST_MAX, NEWEST_BYTES)
    overtaking = max((row.entry.t for row in newest if row.complete), default=ZERO)
    return {t for t in left if t < overtaking}


def least(state: ObjectState) -> Timestamp:
    """Nothing at or below this is installed: it is history here."""
    return max(state.collected, state.horizon)


def install(
    lack: Lack,
    told: Collected,
    log: Log,
    handle: Callable[[Request], Reply],
    room: Callable[[Append], tuple[Entry, ...]],
    apply: Callable[[str, list[Effect]], object],
) -> None:
    """Install what was told, as far as may be. `handle` does a request as if it had come from a front end, `room` tells which of the entries that one
    writes back there is room for, `apply` writes.

    The decision comes first: it says what is history.
    """
    if (commit := _decision(lack, told)) is not None:
        is_refused = isinstance(handle(commit), Refused)  # There is no room for it, say.
        if not is_refused and (effects := _let_in(commit, told.status.floor, log)):
            apply(lack.object, effects)
            handle(commit)
    history = max(least(_state(lack.object, log)), told.status.horizon)
    rows = [row for row in told.rows if row.entry.t > history]
    below = _below_fence(lack.object, rows, log)
    if below and (taken := _taken(Append(lack.object, below, "repair"), handle, room)):
        apply(lack.object, _stored(lack.object, taken, log, told.status.floor))
    fence = _state(lack.object, log).fence
    if above := tuple(row.entry for row in rows if row.entry.t > fence):
        handle(Append(lack.object, above, "repair"))
    if complete := tuple(row.entry.t for row in rows if row.complete):
        handle(Commit(lack.object, complete=complete))


def _decision(lack: Lack, told: Collected) -> Commit | None:
    """The decision that is committed there, if the answer holds it: then it is the summary accepted last. A summary that was
    accepted here, too, is not sent."""
    status = told.status
    if not lack.is_behind or status.committed != status.accepted or status.committed == NO_BALLOT:
        return None
    return Commit(lack.object, status.committed, status.horizon, told.summary)


def _let_in(commit: Commit, floor: Timestamp, log: Log) -> list[Effect]:
    """What makes this store take a decision at or below its floor, `floor` being the other's for that object.

    The floor keeps out what is late: messages of a life of the object that has ended. This is none. Its sender holds it now, and a key is forgotten
    only once every replica has held its deletion for longer than an answer may be old (`is_timely`); so a value that one still
    holds was never deleted, or set again since. This store had missed it, and its floor rose for other objects. What came to nothing
    is left alone: it is about to be forgotten there, too.
    """
    if not _is_late(commit, log) or commit.summary is None or _ends(commit):
        return []
    state = _state(commit.object, log)
    return [PutState(replace(state, floor=min(floor, state.floor)))]


def _is_late(commit: Commit, log: Log) -> bool:
    """Whether the decision is at or below this store's floor for the object."""
    return max(term_of(commit.ballot), commit.horizon) <= _state(commit.object, log).floor


def _ends(commit: Commit) -> bool:
    """Whether the object came to nothing by the decision."""
    return commit.summary is not None and ended_at(commit.object, commit.summary, commit.ballot) is not None


def is_timely(asked: Now, now: Now, limits: Limits) -> bool:
    """Whether an answer to what was asked then counts still. One that is older than any other that somebody takes in, as where a process was
    stopped, may tell of what was deleted since, and forgotten."""
    return now.since_s(asked) <= limits.deadline_s_max


def left_before(now_us: int, limits: Limits) -> Timestamp:
    """An operation that stamped an entry before this has ended, unless clocks are far apart: it lasts for `deadline_s_max` at most."""
    return make(max(0, now_us - round(2e6 * limits.deadline_s_max)), 0, "0")


def _is_over(lack: Lack, told: Collected, wanted: Ballot, log: Log) -> bool:
    """Whether what was behind has been forgotten at the other one since; or is about to be, and is left alone here."""
    if lack.is_behind and told.status.committed < wanted:
        return True
    commit = _decision(lack, told)
    return commit is not None and _ends(commit) and _is_late(commit, log)


def _below_fence(name: str, rows: Iterable[Row], log: Log) -> tuple[Entry, ...]:
    """Those at or below the fence that are marked complete, and not here."""
    fence = _state(name, log).fence
    entries = {row.entry.t: row.entry for row in rows if row.complete and row.entry.t <= fence}
    here = log.stored(name, list(entries))
    return tuple(entry for t, entry in entries.items() if t not in here)


def _taken(
    below: Append, handle: Callable[[Request], Reply], room: Callable[[Append], tuple[Entry, ...]]
) -> tuple[Entry, ...]:
    """Those of entries below the fence that there is room for, unless the replica refuses them. An append of them asks that, which the fence keeps from
    storing any."""
    some = replace(below, entries=room(below))
    return some.entries if some.entries and not isinstance(handle(some), Refused) else ()


def _stored(name: str, entries: tuple[Entry, ...], log: Log, floor: Timestamp) -> list[Effect]:
    """What stores entries below the fence. They belong to the life that the other one knows, which began above its `floor`: what is decided of them must
    not be kept out here."""
    state = _state(name, log)
    effects: list[Effect] = [PutRows(name, entries)]
    if log.state(name) is None or floor < state.floor:
        effects.append(PutState(replace(state, floor=min(floor, state.floor))))
    return effects


def _state(name: str, log: Log) -> ObjectState:
    """The object's state; of one that is not known, what holds for all of those."""
    if (known := log.state(name)) is not None:
        return known
    floor = log.floor()
    return ObjectState(name, fence=floor, promised=floor, floor=floor)
