"""Watches every replica: what it promised only rises, and nothing counts as decided or complete that is not.

Owns the invariants that hold at each step, where the histories' checkers look at the end only.
"""

from collections import Counter, defaultdict
from typing import Final

from msgspec.structs import replace

from ...adts.log import Summary
from ...adts.specification import Kind
from ...adts.types.catalogue import adt_of, is_overwritten
from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import (
    Accept,
    Accepted,
    Append,
    Appended,
    Batch,
    BatchReply,
    Changes,
    Collect,
    Commit,
    Refused,
    Reply,
    Request,
    Scan,
    Status,
)
from ...api_specs.problems import LIMITS
from ...client_sdk.protocol.core.time_now import holder_of
from ...client_sdk.protocol.decisions.lease_table import is_too_heavy
from ...client_sdk.protocol.decisions.summary_builder import TERMS_MAX, is_included
from ...replica.protocol.capacity import FORGOTTEN_PERCENT, beyond
from ...replica.protocol.log import ObjectState
from ...timestamps.ballot import NO_BALLOT, Ballot, step_of, term_of
from ...timestamps.timestamp import Timestamp, site
from ..memory.replica import UNBOUNDED, InMemoryReplica
from ..violation import Violation

NOTHING_PROMISED: Final = Status()
Holders = dict[str, int]
"""Replicas that hold something, and in which configuration each came to."""


class Watch:
    """Told of every committed batch, in the order of commits."""

    def __init__(self, document: ClusterDocument) -> None:
        self._document = document
        self._documents = [document]
        """The configurations that some replica came into."""
        self._last: dict[tuple[str, str], Status] = {}
        self._accepted: defaultdict[tuple[str, Ballot], Holders] = defaultdict(dict)
        self._stored: defaultdict[tuple[str, Timestamp], Holders] = defaultdict(dict)
        self._summaries: dict[tuple[str, Ballot], Summary] = {}
        self._ids: dict[tuple[str, Timestamp], str] = {}
        self._newest: dict[tuple[str, str], Ballot] = {}
        """By replica and object: the highest ballot that it accepted."""
        self._uses: dict[Timestamp, tuple[str, str]] = {}
        self.seen: dict[str, int] = defaultdict(int)

    def follow(self, document: ClusterDocument) -> None:
        """A replica has come into this configuration."""
        if document not in self._documents:
            self._documents.append(document)

    def repeated(self, operation: str, first: object, again: object) -> None:
        """An operation that was answered was run once more under its key."""
        self.seen["answered repeats"] += 1
        if again != first:
            raise Violation(f"{operation} was answered with {first!r}, and its repeat with {again!r}")

    def committed(self, replica: InMemoryReplica, batch: Batch, reply: BatchReply) -> None:
        """Check what the batch did."""
        self._check_room(replica)
        self.seen["batches of several"] += len(batch.requests) > 1
        for request, answer in zip(batch.requests, reply.replies, strict=True):
            if isinstance(request, Scan | Changes):
                continue
            if isinstance(answer, Refused) and answer.reason == "bad-request":
                raise Violation(f"{replica.id} was sent what no replica takes: {answer.detail}")
            self.seen["refused for want of room"] += isinstance(answer, Refused) and answer.reason in LIMITS
            if isinstance(request, Append) and isinstance(answer, Appended):
                self._check_appended(replica.id, request, answer)
            self._note(replica, request, answer)
            status: Status | None = getattr(answer, "status", None)
            if status is not None:
                self._check_rises(replica.id, request.object, status)
            if isinstance(request, Commit):
                self._check_decided(replica, request)

    def _check_room(self, replica: InMemoryReplica) -> None:
        """It has no more objects than it may; what makes room goes beyond the bound."""
        if replica.capacity == UNBOUNDED:
            return
        objects, bound = replica.store.use().objects, replica.capacity.objects_max
        if objects > beyond(replica.capacity, FORGOTTEN_PERCENT).objects_max:
            raise Violation(f"{replica.id} has more objects than it may: {objects}, of {bound}")

    def installed(self, replica: InMemoryReplica, name: str, t: Timestamp) -> None:
        """A catch-up stores an entry below a fence."""
        self._stored[name, t].setdefault(replica.id, replica.document.number)

    def let_in(self, replica: str, name: str, floor: Timestamp) -> None:
        """A catch-up takes what another one holds, from below the floor here: that of the object falls. Nothing else may have it fall."""
        before = self._last.get((replica, name), NOTHING_PROMISED)
        self._last[replica, name] = replace(before, floor=min(before.floor, floor))

    def restarted(self, replica: InMemoryReplica) -> None:
        """What a replica had said before it crashed it must still know: promises, and rows that are not history."""
        for (holder, name), before in self._last.items():
            state = replica.store.state(name)
            if holder == replica.id and state is not None:
                self._check_rises(replica.id, name, status_of(state))
            elif holder == replica.id and replica.store.floor() < max(before.fence, before.promised):
                raise Violation(f"{holder} {name}: forgotten in a crash: {before}")
        for (name, t), holders in self._stored.items():
            if replica.id not in holders or replica.store.stored(name, [t]):
                continue
            state = replica.store.state(name)
            forgotten = replica.store.floor() if state is None else max(state.floor, state.collected)
            if t > forgotten:
                raise Violation(f"{replica.id} {name}: the entry {t} was forgotten in a crash")

    def _check_appended(self, replica: str, request: Append, answer: Appended) -> None:
        """What is said to be stored was stored above the fence, now or earlier; one timestamp means one entry."""
        name = request.object
        fence = self._last.get((replica, name), NOTHING_PROMISED).fence
        for entry, is_stored in zip(request.entries, answer.stored, strict=True):
            if self._ids.get((name, entry.t), entry.id) != entry.id:
                raise Violation(f"{name}: two entries under the timestamp {entry.t}")
            if is_stored and entry.t <= fence and replica not in self._stored[name, entry.t]:
                raise Violation(f"{replica} {name}: {entry.t} was acknowledged below the fence {fence}")
            self._ids[name, entry.t] = entry.id

    def _note(self, replica: InMemoryReplica, request: Request, answer: Reply) -> None:
        if isinstance(request, Append) and isinstance(answer, Appended):
            self.seen["fenced replies"] += not all(answer.stored)
            for entry, is_stored in zip(request.entries, answer.stored, strict=True):
                self._use_once(entry.t, request.object, entry.id)
                if is_stored:
                    self._stored[request.object, entry.t].setdefault(replica.id, replica.document.number)
        elif isinstance(request, Accept) and isinstance(answer, Accepted):
            self.seen["refused accepts"] += answer.refused
            if not answer.refused:
                self._note_accepted(replica, request)
        elif isinstance(request, Collect) and request.ballot is not None:
            self._use_once(term_of(request.ballot), request.object, "a term")
        if getattr(answer, "refused", False):
            self.seen["refused ballots"] += 1

    def _note_accepted(self, acceptor: InMemoryReplica, request: Accept) -> None:
        replica, name, ballot, summary = acceptor.id, request.object, request.ballot, request.summary
        term = term_of(ballot)
        if term < self._last.get((replica, name), NOTHING_PROMISED).promised:
            raise Violation(f"{replica} {name}: {ballot} was accepted below the promise")
        self._accepted[name, ballot].setdefault(replica, acceptor.document.number)
        if (name, ballot) not in self._summaries:
            self._check_bounded(name, summary)
            self._count_kind(replica, request)
        self._check_same(name, ballot, summary)
        before = self._newest.get((replica, name), NO_BALLOT)
        if ballot > before:
            self._newest[replica, name] = ballot
            if term_of(before) != term and before != NO_BALLOT:
                self.seen["takeovers by another owner"] += 1
                if is_included(summary, before) is False:
                    self.seen["accepts superseded"] += 1

    def _count_kind(self, replica: str, request: Accept) -> None:
        """Of a summary that is seen for the first time: what is special about it."""
        summary = request.summary
        self.seen["steady-owner steps"] += step_of(request.ballot) > 1
        self.seen["entries adopted"] += bool(summary.adopted)
        self.seen["ambiguous ids"] += bool(summary.ambiguous)
        self.seen["keys remembered"] += bool(summary.recent)
        self.seen["items set aside"] += any(
            not each.is_held and not each.deliveries for each in summary.leases
        )
        self.seen["items given back"] += any(not each.is_held and each.deliveries for each in summary.leases)
        self.seen["items delivered again"] += any(each.deliveries > 1 for each in summary.leases)
        for dead in summary.dead:
            self.seen[f"dead letters: {dead.reason}"] += 1

    def _check_bounded(self, name: str, summary: Summary) -> None:
        """A summary does not grow with history."""
        if len(summary.terms) > TERMS_MAX or len(summary.recent) > self._document.limits.recent_decisions_max:
            raise Violation(
                f"{name}: a summary with {len(summary.terms)} terms and {len(summary.recent)} keys"
            )

        askers = Counter(holder_of(site(term_of(known.ballot))) for known in summary.recent)
        if max(askers.values(), default=0) > (self._document.limits.recent_decisions_max + 1) // 2:
            raise Violation(f"{name}: a summary remembers more keys of a front end than are left: {askers}")

        kept = summary.kept()
        is_heavy = is_too_heavy(summary, self._document.limits.leases_bytes_max)
        if is_heavy or len({entry.id for entry in kept}) < len(kept):
            raise Violation(f"{name}: a summary keeps more leases than it may: {len(kept)}")

    def _use_once(self, t: Timestamp, name: str, use: str) -> None:
        """A timestamp names one entry or one term, of one object."""
        if self._uses.setdefault(t, (name, use)) != (name, use):
            raise Violation(f"{t} was used twice: for {self._uses[t]} and for {(name, use)}")

    def _check_same(self, name: str, ballot: Ballot, summary: Summary) -> None:
        if self._summaries.setdefault((name, ballot), summary) != summary:
            raise Violation(f"{name}: two summaries under the ballot {ballot}")

    def _check_rises(self, replica: str, name: str, status: Status) -> None:
        before = self._last.get((replica, name), NOTHING_PROMISED)
        if status == before:
            return
        # A new life of the object (its deletion was collected) begins without decisions, and with higher promises.
        is_new_life = status.floor > before.floor
        if (
            status.fence < before.fence
            or status.promised < before.promised
            or status.floor < before.floor
            or (status.accepted < before.accepted and not is_new_life)
            or (status.committed < before.committed and not is_new_life)
            or (status.horizon < before.horizon and not is_new_life)
        ):
            raise Violation(f"{replica} {name}: a promise fell from {before} to {status}")
        self._last[replica, name] = status

    def _check_decided(self, replica: InMemoryReplica, request: Commit) -> None:
        """Decided is only what a final quorum accepted; complete only what one stored, or a decision took over."""
        state = replica.store.state(request.object)
        committed = NO_BALLOT if state is None else state.committed
        if committed != NO_BALLOT and not self._is_decided(request.object, committed):
            holders = sorted(self._accepted[request.object, committed])
            raise Violation(f"{request.object}: {committed} counts as decided at {holders}")
        for t in request.complete:
            # What is collected every replica has, or it has forgotten the key and refuses anything as old.
            if t != request.tombstone and not self._is_in_force(request.object, t):
                holders = sorted(self._stored[request.object, t])
                raise Violation(f"{request.object}: {t} counts as complete at {holders}")
        self.seen[f"commits {adt_of(request.object)}"] += 1

    def _is_decided(self, name: str, ballot: Ballot) -> bool:
        return self._is_met(name, Kind.DECIDE, self._accepted[name, ballot])

    def _is_complete(self, name: str, t: Timestamp) -> bool:
        return self._is_met(name, Kind.BLIND, self._stored[name, t])

    def _is_met(self, name: str, kind: Kind, holders: Holders) -> bool:
        """Whether these are a final quorum of some configuration, with what each came to hold there or before."""
        for document in self._documents:
            held = {replica for replica, number in holders.items() if number <= document.number}
            if document.choice_of(name).final_of_kind(kind).is_met_by(held):
                return True
        return False

    def _is_in_force(self, name: str, t: Timestamp) -> bool:
        """Whether the entry is complete, or a decision took it over; of a cell, also whether a newer value covers it."""
        if self._is_complete(name, t):
            return True
        is_cell = is_overwritten(adt_of(name))
        entry_id = self._ids.get((name, t))
        for (other, ballot), summary in self._summaries.items():
            known = {entry.id for entry in summary.adopted} | {taken for taken, _ in summary.ambiguous}
            is_in = entry_id in known or (is_cell and summary.horizon >= t)
            if other == name and is_in and self._is_decided(name, ballot):
                return True
        newer = [newest for other, newest in list(self._stored) if other == name and newest > t]
        return is_cell and any(self._is_complete(name, newest) for newest in newer)


def status_of(state: ObjectState) -> Status:
    """What the replica would say of the object in a reply."""
    return Status(state.fence, state.promised, state.accepted, state.committed, state.horizon, state.floor)
