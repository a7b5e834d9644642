"""What a replica refuses before it looks at the object: malformed requests, and timestamps that are out of bounds. Pure.

Owns the bounds of time. Must not know promises, nor the log (`quorate.replica.protocol.acceptor`).
"""

from collections.abc import Collection
from typing import Final

from msgspec import UNSET

from ...adts.log import Entry, Summary
from ...adts.times import Times
from ...adts.types.catalogue import SPECIFICATIONS, adt_of, is_object_name, may_delete
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import DEFAULTS, DELAY_S_MAX, Limits
from ...api_specs.messages import Accept, Append, Collect, Commit, Refused, Reserve
from ...timestamps.ballot import Ballot, term_of
from ...timestamps.timestamp import ZERO, Timestamp, wall_us


class Bounds:
    """How far timestamps may be from the replica's clock, how large a page may get, the data types that are kept, and how many calls of one's own
    types may wait to be run."""

    def __init__(
        self,
        *,
        offset_max_s: float,
        repeats_s: float,
        page_entries_max: int,
        page_bytes_max: int,
        types: Collection[str] = SPECIFICATIONS.keys(),
        limits: Limits = DEFAULTS,
        replicas: int = 1,
    ) -> None:
        self.types: Final = frozenset(types)
        self.own_types: Final = self.types - SPECIFICATIONS.keys()
        self.state_bytes_max: Final = limits.state_bytes_max
        self.waiting_bytes_max: Final = limits.waiting_bytes_max(replicas)
        self.offset_max_us: Final = int(offset_max_s * 1e6)
        self.times_ahead_max_us: Final = int(DELAY_S_MAX * 1e6) + self.offset_max_us
        self.repeats_us: Final = int(repeats_s * 1e6)
        self.page_entries_max: Final = page_entries_max
        self.page_bytes_max: Final = page_bytes_max

    @classmethod
    def of(cls, document: ClusterDocument) -> "Bounds":
        """The bounds that a cluster file sets."""
        limits = document.limits
        return cls(
            offset_max_s=document.clock.offset_max_s,
            repeats_s=limits.repeats_s,
            page_entries_max=limits.page_entries_max,
            page_bytes_max=limits.page_bytes_max,
            types=document.specifications,
            limits=limits,
            replicas=len(document.votes),
        )


def refusal(
    request: Append | Collect | Accept | Commit | Reserve,
    latest: Timestamp,
    highest: Timestamp,
    now_us: int,
    bounds: Bounds,
) -> Refused | None:
    """Timestamps that would drag every clock along, or that outlived what the replica remembers, are refused.

    What is ahead of the replica's clock is taken up to `highest` and a microsecond: after clocks were ahead, objects go on
    where they stand. So a request moves the highest timestamp by a microsecond at most, once it is beyond the offset, and
    less than a million requests a second move it slower than time goes.
    """
    ahead_us = wall_us(latest) - now_us
    if ahead_us > bounds.offset_max_us and wall_us(latest) > wall_us(highest) + 1:
        detail = f"{latest} is {ahead_us / 1e6:.3f} s ahead of this replica's clock: one of the two is wrong"
        return Refused("clock-ahead", detail, ahead_us)
    furthest_us = _furthest_us(request)
    until_us = furthest_us - max(now_us, wall_us(highest)) if furthest_us else 0
    if until_us > bounds.times_ahead_max_us:
        detail = f"an item's deadline, delay or expiry lies {until_us / 1e6:.0f} s ahead: at most {DELAY_S_MAX:.0f} s"
        return Refused("bad-request", detail)
    if isinstance(request, Append) and request.attempt != "repair":
        return _too_late(request, now_us, bounds)
    return None


def _too_late(request: Append, now_us: int, bounds: Bounds) -> Refused | None:
    """An entry whose clock is behind this one's, or that comes after all that would be remembered of it."""
    oldest_us = wall_us(min(entry.t for entry in request.entries)) - now_us if request.entries else 0
    if request.attempt == "first" and -oldest_us > bounds.offset_max_us:
        detail = f"the entry is stamped {-oldest_us / 1e6:.3f} s behind this replica's clock: one of the two is wrong"
        return Refused("clock-behind", detail, oldest_us)
    if -oldest_us > bounds.repeats_us:
        detail = "the entry is older than any repeat may be: its outcome is unknown"
        return Refused("too-old", detail, oldest_us)
    return None


def malformed(request: Append | Collect | Accept | Commit | Reserve, types: Collection[str]) -> str | None:
    """What is wrong with a request to a replica that keeps objects of these types."""
    if not is_object_name(request.object):
        return "the object's name is not TYPE/NAME (dictionary/NAME/KEY) of the allowed characters"
    if (adt := adt_of(request.object)) not in types:
        return f"the cluster has no data type {adt!r}: its [types] name those of one's own"
    match request:
        case Append():
            values, taken = [entry.value for entry in request.entries], []
        case Accept() | Commit() if request.summary is not None:
            summary = request.summary
            values = [entry.value for entry in summary.adopted + summary.kept()]
            taken = [entry.value for decision in summary.recent for entry in decision.taken]
        case _:
            return None
    if UNSET in values:
        return "an entry without its value cannot be stored"
    if not may_delete(adt) and (None in values or None in taken):
        return "only a dictionary's entries can be deletions (null value)"
    return None


def latest_claimed(request: Append | Collect | Accept | Commit | Reserve) -> Timestamp:
    """The latest timestamp that the request would have the replica take for its own."""
    match request:
        case Append():
            return max([entry.t for entry in request.entries], default=ZERO)
        case Reserve():
            return max(request.ballot, *(entry.t for each in request.proposals for entry in each.entries))
        case Collect():
            return _latest_asked(request)
        case Accept():
            then = ZERO if request.then is None else _latest_asked(request.then)
            return max(term_of(request.ballot), _latest(request.summary), then)
        case Commit():
            latest = ZERO if request.summary is None else _latest(request.summary)
            return max(term_of(request.ballot), request.horizon, request.tombstone, latest)


def _furthest_us(request: Append | Collect | Accept | Commit | Reserve) -> int:
    """The latest time at which the request would have an item of a queue come back, be due or expire."""
    match request:
        case Append():
            return max(map(_times_of, request.entries), default=0)
        case Accept() | Commit() if request.summary is not None:
            summary = request.summary
            leases = (max(each.until_us, each.expires_us) for each in summary.leases)
            return max((*leases, *map(_times_of, summary.adopted)), default=0)
        case _:
            return 0


def _times_of(entry: Entry) -> int:
    if "/" not in entry.id:  # Most have none: no time is spent on them.
        return 0
    times = Times.of(entry.id)
    return max(times.due_us, times.expires_us)


def _latest_asked(request: Collect) -> Timestamp:
    """The later one of the fence and the term that a collect asks for."""
    return request.fence if request.ballot is None else max(request.fence, term_of(request.ballot))


def _latest(summary: Summary) -> Timestamp:
    """The latest timestamp that the summary tells of: of events, of decisions that it remembers, and of terms."""
    entries = [entry.t for entry in summary.adopted + summary.kept()]
    terms = map(term_of, (*summary.terms, summary.terms_floor, *_listed(summary)))
    taken = [entry.t for decision in summary.recent for entry in decision.taken]
    return max(summary.horizon, *entries, *terms, *taken)


def _listed(summary: Summary) -> list[Ballot]:
    """The ballots of what the summary remembers for the retry window."""
    decided = [each.ballot for each in summary.recent] + [each.ballot for each in summary.settled]
    return decided + [ballot for _, ballot in summary.ambiguous]
