"""Watches every replica: what it promised only rises, and nothing counts as decided or complete that is not.

Owns the invariants that hold at each step, where the histories' checkers look at the end only.
"""

from collections import defaultdict

from quorate.adts.catalogue import adt_of
from quorate.adts.log import Summary
from quorate.adts.specification import Kind
from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import (
    Accept,
    Accepted,
    Append,
    Appended,
    Batch,
    BatchReply,
    Commit,
    Reply,
    Request,
    Scan,
    Status,
)
from quorate.timestamps.ballot import NO_BALLOT, Ballot
from quorate.timestamps.timestamp import Timestamp
from tests.sim.checkers import Violation
from tests.sim.store import InMemoryReplica


class Watch:
    """Told of every committed batch, in the order of commits."""

    def __init__(self, document: ClusterDocument) -> None:
        self._document = document
        self._last: dict[tuple[str, str], Status] = {}
        self._accepted: defaultdict[tuple[str, Ballot], set[str]] = defaultdict(set)
        self._stored: defaultdict[tuple[str, Timestamp], set[str]] = defaultdict(set)
        self._summaries: dict[tuple[str, Ballot], Summary] = {}
        self._ids: dict[tuple[str, Timestamp], str] = {}
        self.seen: dict[str, int] = defaultdict(int)

    def committed(self, replica: InMemoryReplica, batch: Batch, reply: BatchReply) -> None:
        """Check what the batch did."""
        for request, answer in zip(batch.requests, reply.replies, strict=True):
            if isinstance(request, Scan):
                continue
            self._note(replica.id, request, answer)
            status: Status | None = getattr(answer, "status", None)
            if status is not None:
                self._check_rises(replica.id, request.object, status)
            if isinstance(request, Commit):
                self._check_decided(replica, request)

    def _note(self, replica: str, request: Request, answer: Reply) -> None:
        match request, answer:
            case Append(), Appended():
                self.seen["fenced replies"] += not all(answer.stored)
                self._ids.update(((request.object, entry.t), entry.id) for entry in request.entries)
                for entry, is_stored in zip(request.entries, answer.stored, strict=True):
                    if is_stored:
                        self._stored[request.object, entry.t].add(replica)
            case Accept(), Accepted():
                self.seen["refused accepts"] += answer.refused
                if not answer.refused:
                    self._accepted[request.object, request.ballot].add(replica)
                    self._check_same(request.object, request.ballot, request.summary)
        if getattr(answer, "refused", False):
            self.seen["refused ballots"] += 1

    def _check_same(self, name: str, ballot: Ballot, summary: Summary) -> None:
        if self._summaries.setdefault((name, ballot), summary) != summary:
            raise Violation(f"{name}: two summaries under the ballot {ballot}")

    def _check_rises(self, replica: str, name: str, status: Status) -> None:
        before = self._last.get((replica, name), Status())
        for field in ("fence", "promised", "accepted", "committed", "horizon"):
            if getattr(status, field) < getattr(before, field):
                raise Violation(f"{replica} {name}: {field} fell from {before} to {status}")
        self._last[replica, name] = status

    def _check_decided(self, replica: InMemoryReplica, request: Commit) -> None:
        """Decided is only what a final quorum accepted; complete only what one stored, or a decision took over."""
        state = replica.store.state(request.object)
        is_marked = state is not None and state.committed == request.ballot != NO_BALLOT
        if is_marked and not self._is_decided(request.object, request.ballot):
            holders = sorted(self._accepted[request.object, request.ballot])
            raise Violation(f"{request.object}: {request.ballot} counts as decided at {holders}")
        for t in request.complete:
            if not self._is_in_force(request.object, t):
                holders = sorted(self._stored[request.object, t])
                raise Violation(f"{request.object}: {t} counts as complete at {holders}")
        self.seen[f"commits {adt_of(request.object)}"] += 1

    def _is_decided(self, name: str, ballot: Ballot) -> bool:
        choice = self._document.choice_of(name)
        return choice.final_of_kind(Kind.DECIDE).is_met_by(self._accepted[name, ballot])

    def _is_complete(self, name: str, t: Timestamp) -> bool:
        choice = self._document.choice_of(name)
        return choice.final_of_kind(Kind.BLIND).is_met_by(self._stored[name, t])

    def _is_in_force(self, name: str, t: Timestamp) -> bool:
        """Whether the entry is complete, or a decision took it over; of a cell, also whether a newer value covers it."""
        if self._is_complete(name, t):
            return True
        is_cell = adt_of(name) != "queue"
        entry_id = self._ids.get((name, t))
        for (other, ballot), summary in self._summaries.items():
            known = {entry.id for entry in summary.adopted} | {taken for taken, _ in summary.ambiguous}
            is_in = entry_id in known or (is_cell and summary.horizon >= t)
            if other == name and is_in and self._is_decided(name, ballot):
                return True
        newer = [newest for other, newest in list(self._stored) if other == name and newest > t]
        return is_cell and any(self._is_complete(name, newest) for newest in newer)
