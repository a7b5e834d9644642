"""What a replica refuses before it looks at the object: malformed requests, and timestamps that are out of bounds. Pure.

Owns the bounds of time. Must not know promises, nor the log (`quorate.replica.protocol.acceptor`).
"""

from collections.abc import Collection, Sequence
from typing import Any, Final

from msgspec import UNSET, Struct

from ...adts.log import Entry, Summary, t_of, value_of
from ...adts.times import Times
from ...adts.types.catalogue import SPECIFICATIONS, kept_as, may_delete
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import DEFAULTS, DELAY_S_MAX, Limits
from ...api_specs.messages import Accept, Append, Collect, Commit, Refused, Reserve
from ...timestamps.ballot import Ballot, term_of
from ...timestamps.timestamp import ZERO, Timestamp, wall_us

_WRONG_CLOCK: Final = "one of the two is wrong (`quorate doctor` compares those of the replicas)"


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


class Claims(Struct, frozen=True, gc=False):
    """What a request would have the replica take for its own."""

    latest: Timestamp
    """Of all its timestamps."""
    furthest_us: int = 0
    """The latest time at which an item of a queue would come back, be due or expire."""
    values: Sequence[Any] = ()
    """Of its entries."""
    taken: Sequence[Any] = ()
    """Of those that decisions took."""


def refusal(
    request: Append | Collect | Accept | Commit | Reserve,
    claims: Claims,
    highest: Timestamp,
    now_us: int,
    bounds: Bounds,
) -> Refused | None:
    """Timestamps that would drag every clock along, or that outlived what the replica remembers, are refused.

    What is ahead of the replica's clock is taken up to `highest` and a microsecond: after clocks were ahead, objects go on
    where they stand. So a request moves the highest timestamp by a microsecond at most, once it is beyond the offset, and
    less than a million requests a second move it slower than time goes.
    """
    if claims.latest > highest:
        ahead_us = wall_us(claims.latest) - now_us
        if ahead_us > bounds.offset_max_us and wall_us(claims.latest) > wall_us(highest) + 1:
            detail = (
                f"{claims.latest} is {ahead_us / 1e6:.3f} s ahead of this replica's clock: {_WRONG_CLOCK}"
            )
            return Refused("clock-ahead", detail, ahead_us)
    if claims.furthest_us:
        until_us = claims.furthest_us - max(now_us, wall_us(highest))
        if until_us > bounds.times_ahead_max_us:
            detail = f"an item's deadline, delay or expiry lies {until_us / 1e6:.0f} s ahead: at most {DELAY_S_MAX:.0f} s"
            return Refused("bad-request", detail)
    if type(request) is Append and request.attempt != "repair":
        return _too_late(request, now_us, bounds)
    return None


def _too_late(request: Append, now_us: int, bounds: Bounds) -> Refused | None:
    """An entry whose clock is behind this one's, or that comes after all that would be remembered of it."""
    oldest_us = wall_us(min(map(t_of, request.entries))) - now_us if request.entries else 0
    if request.attempt == "first" and -oldest_us > bounds.offset_max_us:
        detail = f"the entry is stamped {-oldest_us / 1e6:.3f} s behind this replica's clock: {_WRONG_CLOCK}"
        return Refused("clock-behind", detail, oldest_us)
    if -oldest_us > bounds.repeats_us:
        detail = "the entry is older than any repeat may be: its outcome is unknown"
        return Refused("too-old", detail, oldest_us)
    return None


def malformed(name: str, claims: Claims, types: Collection[str]) -> str | None:
    """What is wrong with a request of an object to a replica that keeps objects of these types."""
    if (adt := kept_as(name)) is None:
        return "the object's name is not TYPE/NAME (dictionary/NAME/KEY) of the allowed characters"
    if adt not in types:
        return f"the cluster has no data type {adt!r}: its [types] name those of one's own"
    if UNSET in claims.values:
        return "an entry without its value cannot be stored"
    if (None in claims.values or None in claims.taken) and not may_delete(adt):
        return "only a dictionary's entries can be deletions (null value)"
    return None


def claims_of(request: Append | Collect | Accept | Commit | Reserve) -> Claims:
    """What the request would have the replica take for its own."""
    if type(request) is Append:
        entries = request.entries
        latest, furthest_us = max(map(t_of, entries), default=ZERO), max(map(_times_of, entries), default=0)
        return Claims(latest, furthest_us, list(map(value_of, entries)))
    if type(request) is Collect:
        return Claims(_latest_asked(request))
    if type(request) is Commit:
        latest = max(term_of(request.ballot), request.horizon, request.tombstone)
        return Claims(latest) if request.summary is None else _with_summary(latest, request.summary)
    if type(request) is Accept:
        then = ZERO if request.then is None else _latest_asked(request.then)
        return _with_summary(max(term_of(request.ballot), then), request.summary)
    return Claims(max(request.ballot, *(entry.t for each in request.proposals for entry in each.entries)))


def _with_summary(latest: Timestamp, summary: Summary) -> Claims:
    """The latest timestamp that a summary tells of is one of events, of decisions that it remembers, or of terms."""
    entries = summary.adopted + summary.kept()
    taken = [entry for decision in summary.recent for entry in decision.taken]
    terms = map(term_of, (*summary.terms, summary.terms_floor, *_listed(summary)))
    latest = max(latest, summary.horizon, *map(t_of, entries), *terms, *map(t_of, taken))
    leases = (max(each.until_us, each.expires_us) for each in summary.leases)
    furthest_us = max((*leases, *map(_times_of, summary.adopted)), default=0)
    return Claims(latest, furthest_us, list(map(value_of, entries)), list(map(value_of, taken)))


def _times_of(entry: Entry) -> int:
    if "/" not in entry.id:  # Most have none: no time is spent on them.
        return 0
    times = Times.of(entry.id)
    return max(times.due_us, times.expires_us)


def _latest_asked(request: Collect) -> Timestamp:
    """The later one of the fence and the term that a collect asks for."""
    return request.fence if request.ballot is None else max(request.fence, term_of(request.ballot))


def _listed(summary: Summary) -> list[Ballot]:
    """The ballots of what the summary remembers for the retry window."""
    decided = [each.ballot for each in summary.recent] + [each.ballot for each in summary.settled]
    return decided + [ballot for _, ballot in summary.ambiguous]
