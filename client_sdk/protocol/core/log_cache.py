"""What a front end knows of one object: the highest summary, and each replica's part of the log. Pure.

Everything here is a fact that some reply showed, so adding more never harms; what a reply does *not* show counts only
inside the window that the log cache knows of that replica's log. Knowledge of decided horizons only rises, and with it the
lower end of all windows.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from heapq import nsmallest
from typing import Final

from msgspec import UNSET, Struct

from ....adts.log import NOTHING, Entry, Seen, Summary
from ....api_specs.messages import (
    Accepted,
    Aged,
    Appended,
    Changed,
    Collect,
    Collected,
    Committed,
    Refused,
    Reply,
    Request,
    Reserved,
    Row,
    Scanned,
    Status,
    Window,
)
from ....api_specs.weights import weighed
from ....quorums.systems.tally import Quorum
from ....timestamps.ballot import NO_BALLOT, Ballot, term_of
from ....timestamps.timestamp import INFINITY, ZERO, Timestamp
from .line import Line, Passage

NOBODY: Final[frozenset[str]] = frozenset()
HOLDERS_CACHED: Final = 10_000


class Known(Struct):
    """How much of a replica's log is cached: (LogCache.after, upto] as of arrival number `since`, unless cut off."""

    since: int = 0
    upto: Timestamp = ZERO
    is_cut_off: bool = False


NOTHING_KNOWN: Final = Known()


class Ran(Struct):
    """The state after calls of a log that no decision has run: over which summary, and which they were. Looks go on from it, unless something
    was thrown away since."""

    ballot: Ballot
    lives: int
    timestamps: list[Timestamp]
    state: str | None
    line: Line
    """Of looks: one of them runs what the others need, too."""


ENTRY_BYTES: Final = 430
"""What an entry takes here besides its value: 428 bytes were measured, of a queue's."""
RAN_BYTES: Final = 8
"""What is kept for each call that was run: its timestamp is the entry's, which is there anyway."""
OWN_MAX: Final = 32
"""With so many entries known, one's own new ones are left to be found."""


class LogCache:
    """One object as one front end knows it."""

    def __init__(self, name: str, replicas: Iterable[str]) -> None:
        self.name: Final = name
        self.replicas = tuple(replicas)
        self.summary: Summary = NOTHING
        self.ballot: Ballot = NO_BALLOT
        self.decided: Ballot = NO_BALLOT
        """The highest ballot known to be decided; `summary` is known to be decided when it equals `ballot`."""
        self.after: Timestamp = ZERO
        self.seen: dict[Timestamp, Seen] = {}
        self.is_full = False
        """Whether replicas had no room for another call that waits to be run, and none are known to have run since."""
        self.pins = 0
        """Operations that need everything seen to stay: nothing is trimmed meanwhile."""
        self.asking = 0
        """Operations that wait for decisions."""
        self.first_call, self.first_look = Line(), Line()
        """Of calls that are stored and of looks, the first one brings the state, for those that begin meanwhile, too."""
        # Of calls for which replicas had no room: one has those run that wait, for all; and no more are under way than may find room then.
        self.room, self.passage = Line(), Passage()
        self.ran: Ran | None = None
        """What was run without a decision."""
        self.held_until_s = 0.0
        """Until then this front end begins no decision: somebody looks whether one is made."""
        self.accepted_by: dict[str, Ballot] = {}
        self.known: dict[str, Known] = {}
        self.aged: dict[str, Aged] = {}
        """What each replica has held for the retry window. What was old stays so, and ballots name it for ever."""
        self.taken = 0
        """Bytes of entries, values and summaries that came in, less those of summaries that were replaced, until somebody counts
        them."""
        self.lives = 0
        """How often something was thrown away: a look that was under way meanwhile must begin again."""
        self.latest: Timestamp = ZERO
        """The highest timestamp that was seen of the object: of entries, fences, terms and horizons."""
        self.given: Timestamp = ZERO
        """The latest timestamp that this front end gave to it."""
        self._complete: Timestamp = ZERO
        """The newest entry that this front end itself knows to be complete: the replicas may not have heard of it yet."""
        self.summary_work = 0
        """What each decision carries of the object: bytes, where arrays and objects count for more."""
        self._summary_bytes = 0
        self._floors: dict[str, Timestamp] = {}
        self._incarnations: dict[str, str] = {}

    @property
    def is_decided(self) -> bool:
        """Whether the summary at hand is known to be decided.

        Not so when a higher one is: then the entries that the higher one covers may be dropped here already, and the
        summary at hand must not stand in for them.
        """
        return self.decided == self.ballot

    def window(self, replica: str, limit: int, payload: bool) -> Window:
        """The request for what this replica's log holds beyond what is known of it."""
        known = self.known.get(replica)
        if known is None:
            return Window(after=self.after, upto=self.after, limit=limit, payload=payload)
        return Window(
            after=self.after,
            upto=max(known.upto, self.after),
            since=known.since,
            limit=limit,
            payload=payload,
        )

    def known_upto(self, replica: str) -> Timestamp:
        """Up to where this replica's log is cached without a gap."""
        known = self.known.get(replica)
        return ZERO if known is None or known.is_cut_off else known.upto

    @property
    def has_entries(self) -> bool:
        """Whether entries above the summary's horizon are known."""
        return any(timestamp > self.summary.horizon for timestamp in self.seen)

    def by_id(self) -> dict[str, Seen]:
        """The entries above the summary's horizon, by id."""
        return {each.entry.id: each for each in self.seen.values() if each.entry.t > self.summary.horizon}

    def lowest(self, entries_max: int) -> tuple[dict[str, Seen], Timestamp]:
        """The same; of many the lowest, as if the others had been forgotten (`trim`): up to the returned timestamp these are all."""
        if len(self.seen) <= 2 * entries_max:
            return self.by_id(), INFINITY
        horizon = self.summary.horizon
        lowest = nsmallest(entries_max, (timestamp for timestamp in self.seen if timestamp > horizon))
        return {self.seen[t].entry.id: self.seen[t] for t in lowest}, max(lowest, default=INFINITY)

    def is_complete(self, found: Seen, final: Quorum) -> bool:
        """Whether a quorum of `final` is known to store the entry."""
        return found.complete or final.is_met_by(found.holders)

    @property
    def is_met(self) -> bool:
        """Whether some replica has told of the object."""
        return bool(self._incarnations)

    def absorb(self, replica: str, incarnation: str, request: Request, reply: Reply) -> None:
        """Note what a reply shows. `request` is the one it answers."""
        if self._incarnations.setdefault(replica, incarnation) != incarnation:
            self._incarnations[replica] = incarnation
            self.known.pop(replica, None)
        if (
            type(reply) is Refused
            or type(reply) is Scanned
            or type(reply) is Changed
            or type(reply) is Reserved
        ):
            return
        self._absorb_floor(replica, reply.status.floor)
        if (latest := _latest_shown(reply)) > self.latest:
            self.latest = latest
        if type(reply) is Collected:
            if not reply.refused:
                self._absorb_collected(replica, getattr(request, "window", None), reply)
        elif type(reply) is Appended:
            self._absorb_appended(replica, request, reply)
        elif type(reply) is Accepted and not reply.refused:
            self._adopt(getattr(request, "summary", None), reply.status.accepted)
            if reply.then is not None:
                window = getattr(getattr(request, "then", None), "window", None)
                self._absorb_collected(replica, window, reply.then)
        self._absorb_status(replica, reply.status)

    def weight(self) -> int:
        """About how many bytes the entries take, with their values, and the summary."""
        values = (found.entry.value for found in self.seen.values())
        of_values = sum(len(value) for value in values if isinstance(value, str))
        of_run = 0 if self.ran is None else len(self.ran.state or "") + RAN_BYTES * len(self.ran.timestamps)
        return self._summary_bytes + ENTRY_BYTES * len(self.seen) + of_values + of_run

    def learn_decided(self, ballot: Ballot) -> None:
        """The summary of `ballot` is decided."""
        if ballot > self.decided:
            self.decided = ballot
            if ballot == self.ballot:
                self._raise_after(self.summary.horizon)

    def check_decided(self, final: Quorum) -> None:
        """Learn that the summary at hand is decided when a final quorum was seen to have accepted it."""
        holders = {replica for replica, ballot in self.accepted_by.items() if ballot == self.ballot}
        if final.is_met_by(holders):
            self.learn_decided(self.ballot)

    def trim(self, entries_max: int) -> None:
        """Forget all but the lowest entries when there are more than twice as many; and that logs ended with the last.

        Who went on from the end of a log would be sent all that came in since, however much: of a queue that was empty,
        and is long now, the whole.
        """
        if self.pins:
            return
        if len(self.seen) > 2 * entries_max:
            self.seen = {timestamp: self.seen[timestamp] for timestamp in sorted(self.seen)[:entries_max]}
        last = max(self.seen, default=self.after)
        for known in self.known.values():
            known.upto = min(known.upto, last)

    def drop_shown_by(self, silent: frozenset[str], wanted: Iterable[Timestamp]) -> bool:
        """Forget the logs of these replicas, if they alone showed one of the wanted entries; whether they did.

        Nothing is concluded: a view needs an initial quorum again, and if that shows the entry, it is back.
        """
        if not any(t in self.seen and self.seen[t].holders <= silent for t in wanted):
            return False
        for replica in silent:
            self.known.pop(replica, None)
        self.seen = {t: found for t, found in self.seen.items() if not found.holders <= silent}
        self.lives += 1
        return True

    def learn_own(self, stored: Iterable[tuple[Entry, Iterable[str]]]) -> None:
        """Replicas have said that they store entries of this front end; a look need not find them to fence at them.

        Only while some log is known to its end, few entries wait, and nobody is looking for how many there are: what is
        known beyond a gap says nothing of the next to be taken, and a size is that of one moment.
        """
        if self.pins or not any(known.upto == INFINITY for known in self.known.values()):
            return
        floor = max(self._floors.values(), default=ZERO)
        for entry, holders in stored:
            if entry.t > floor and len(self.seen) < OWN_MAX:
                for replica in holders:
                    self._absorb_row(replica, Row(entry))

    def mark_complete(self, timestamps: Iterable[Timestamp]) -> None:
        """These entries are complete."""
        for timestamp in timestamps:
            self._complete = max(self._complete, timestamp)
            if timestamp in self.seen:
                self.seen[timestamp].complete = True

    def drop_superseded(self, timestamp: Timestamp) -> None:
        """Of a cell: entries below a complete one never matter again."""
        for older in [t for t in self.seen if t < timestamp]:
            del self.seen[older]

    def _absorb_floor(self, replica: str, floor: Timestamp) -> None:
        """The replica may have forgotten the object since we met it, and what it forgot no reply will ever contradict."""
        if floor <= self._floors.get(replica, ZERO):
            return
        self._floors[replica] = floor
        term = term_of(max(self.ballot, self.decided))
        if ZERO < term <= floor or any(timestamp <= floor for timestamp in self.seen):
            self.start_over()

    def start_over(self) -> None:
        """Forget all that was shown."""
        self._replace_summary(NOTHING)
        self.ballot, self.decided, self.after = NO_BALLOT, NO_BALLOT, ZERO
        self.seen, self.accepted_by, self.known = {}, {}, {}
        self.is_full = False
        self.lives += 1

    def _absorb_status(self, replica: str, status: Status) -> None:
        if status.accepted > self.accepted_by.get(replica, NO_BALLOT):
            self.accepted_by[replica] = status.accepted
        self.learn_decided(status.committed)
        self._raise_after(status.horizon)

    def _absorb_appended(self, replica: str, request: Request, reply: Appended) -> None:
        for entry, stored in zip(getattr(request, "entries", ()), reply.stored, strict=True):
            if stored and entry.t in self.seen:
                _hold(self.seen[entry.t], replica)

    def _absorb_collected(self, replica: str, window: Window | None, reply: Collected) -> None:
        if reply.summary is not None:
            self._adopt(reply.summary, reply.status.accepted)
        self.aged[replica] = reply.aged
        for row in reply.rows:
            self._absorb_row(replica, row)
        if window is None:
            return
        known = self.known.get(replica, NOTHING_KNOWN)
        held = max(known.upto, self.after)
        if window.since > known.since:
            return  # The delta starts beyond what is known: an answer to an earlier life of this log cache.
        upto = reply.upto if max(window.upto, window.after) <= held else held
        if reply.since >= known.since and (upto >= held or known.is_cut_off):
            self.known[replica] = Known(reply.since, upto, reply.more)

    def _absorb_row(self, replica: str, row: Row) -> None:
        if row.entry.t <= self.after:
            return
        found = self.seen.get(row.entry.t)
        if isinstance(row.entry.value, str):
            self.taken += len(row.entry.value)
        if found is None:
            self.taken += ENTRY_BYTES
            self.seen[row.entry.t] = Seen(
                row.entry, also_held_by(NOBODY, replica), row.complete or row.entry.t == self._complete
            )
            return
        _hold(found, replica)
        found.complete = found.complete or row.complete
        if found.entry.value is UNSET:
            found.entry = row.entry

    def _adopt(self, summary: Summary | None, ballot: Ballot) -> None:
        if summary is not None and ballot > self.ballot:
            self.ballot = ballot
            self._replace_summary(summary)
            if self.decided == ballot:
                self._raise_after(summary.horizon)

    def _replace_summary(self, summary: Summary) -> None:
        size, self.summary_work = weighed(summary)
        self.taken += size - self._summary_bytes
        self.summary, self._summary_bytes = summary, size

    def _raise_after(self, horizon: Timestamp) -> None:
        if horizon > self.after:
            self.after, self.is_full = horizon, False
            for timestamp in [t for t in self.seen if t <= horizon]:
                del self.seen[timestamp]


def shown_together(name: str, votes: Mapping[str, int], replies: Mapping[str, Reply]) -> LogCache:
    """What these replies show together.

    They are taken in twice where one replica's floor made the log cache drop what others showed before. That is right for
    what was known before these replies, which the floor may have ended; not for the replies themselves.
    """
    cache, request = LogCache(name, votes), Collect(name)
    for replica, reply in replies.items():
        cache.absorb(replica, "", request, reply)
    if cache.lives:
        for replica, reply in replies.items():
            cache.absorb(replica, "", request, reply)
    return cache


def _hold(found: Seen, replica: str) -> None:
    if replica not in found.holders:
        found.holders = also_held_by(found.holders, replica)


@lru_cache(HOLDERS_CACHED)
def also_held_by(holders: AbstractSet[str], replica: str) -> frozenset[str]:
    """One and the same set for all entries that these replicas hold: a set for each would be a third of what a long queue takes, and
    the garbage collector would look at all of them again and again."""
    return frozenset((*holders, replica))


def _latest_shown(reply: Appended | Collected | Accepted | Committed) -> Timestamp:
    """The highest timestamp that a reply shows of its object."""
    status = reply.status
    latest = max(status.fence, status.promised, term_of(status.committed), status.horizon)
    if type(reply) is Collected:
        latest = max(latest, reply.latest)
        if reply.rows:
            latest = max(latest, *(row.entry.t for row in reply.rows))
        if reply.summary is not None:
            latest = max(latest, reply.summary.horizon, *(entry.t for entry in reply.summary.adopted))
    elif type(reply) is Accepted and reply.then is not None:
        latest = max(latest, _latest_shown(reply.then))
    return latest
