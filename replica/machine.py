"""The replica: what it answers to a request, and what it must have on disk before it does. Pure.

Owns the promises of one replica (DESIGN section 2): fences never fall, a promised turn refuses lower ballots, an
accepted summary is replaced only by a higher ballot, rows are collected only below a *committed* horizon. It knows
neither time (it arrives as `now_us`) nor disk (reads come through `Log`, writes leave as effects), nor other replicas.
"""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from quorate.adts.catalogue import adt_of, is_object_name
from quorate.adts.log import NO_LEASES, Entry, Summary, count_leases
from quorate.adts.times import Times
from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.limits import DELAY_S_MAX
from quorate.api_specs.messages import (
    Accept,
    Accepted,
    Append,
    Appended,
    Collect,
    Collected,
    Commit,
    Committed,
    Refused,
    Reply,
    Request,
    Row,
    Scan,
    Scanned,
    Status,
    Window,
)
from quorate.api_specs.values import text_bytes
from quorate.gc.collection import collected_by_commit, collected_by_completion, may_forget
from quorate.replica.ports import Effect, Forget, Log, MarkComplete, ObjectState, PutEvent, PutRow, PutState
from quorate.replica.weights import weight
from quorate.timestamps.ballot import turn_of
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp, make, wall_us

Handled = tuple[Reply, list[Effect]]


class Bounds:
    """How far timestamps may be from the replica's clock, and how large a page may get."""

    def __init__(
        self, *, offset_max_s: float, retry_window_s: float, page_entries_max: int, page_bytes_max: int
    ) -> None:
        self.offset_max_us: Final = int(offset_max_s * 1e6)
        self.times_ahead_max_us: Final = int(DELAY_S_MAX * 1e6) + self.offset_max_us
        self.retry_window_us: Final = int(retry_window_s * 1e6)
        self.page_entries_max: Final = page_entries_max
        self.page_bytes_max: Final = page_bytes_max

    @classmethod
    def of(cls, document: ClusterDocument) -> "Bounds":
        """The bounds that a cluster document sets."""
        limits = document.limits
        return cls(
            offset_max_s=document.clock.offset_max_s,
            retry_window_s=limits.retry_window_s,
            page_entries_max=limits.page_entries_max,
            page_bytes_max=limits.page_bytes_max,
        )


def handle(request: Request, log: Log, now_us: int, bounds: Bounds, keeps_events: bool = False) -> Handled:
    """The reply to `request`, and the effects that must be durable before the reply is sent.

    `keeps_events`: the object's logs keep decided events and are never collected (`collect = false`).
    """
    if isinstance(request, Scan):
        return _scan(request, log, bounds), []
    if (refusal := _refusal(request, now_us, bounds)) is not None:
        return refusal, []
    state = _state(request.object, log)
    match request:
        case Append():
            return _append(request, state, log)
        case Collect():
            return _collect(request, state, log, bounds)
        case Accept():
            return _accept(request, state, log, bounds, keeps_events)
        case Commit():
            return _commit(request, state, log, keeps_events)


def _state(name: str, log: Log) -> ObjectState:
    if (known := log.state(name)) is not None:
        return known
    floor = log.floor()
    return ObjectState(name, fence=floor, promised=floor, floor=floor)


def _status(state: ObjectState) -> Status:
    return Status(state.fence, state.promised, state.accepted, state.committed, state.horizon, state.floor)


def _changed(before: ObjectState, after: ObjectState) -> list[Effect]:
    return [] if after == before else [PutState(after)]


def _refusal(request: Append | Collect | Accept | Commit, now_us: int, bounds: Bounds) -> Refused | None:
    """Timestamps that would drag every clock along, or that outlived what the replica remembers, are refused."""
    if (problem := _malformed(request)) is not None:
        return Refused("bad-request", problem)
    latest = _latest_claimed(request)
    ahead_us = wall_us(latest) - now_us
    if ahead_us > bounds.offset_max_us:
        detail = f"{latest} is {ahead_us / 1e6:.3f} s ahead of this replica's clock: one of the two is wrong"
        return Refused("clock-ahead", detail, ahead_us)
    if (until_us := _furthest_us(request) - now_us) > bounds.times_ahead_max_us:
        detail = f"an item's deadline, delay or expiry lies {until_us / 1e6:.0f} s ahead: at most {DELAY_S_MAX:.0f} s"
        return Refused("bad-request", detail)
    if isinstance(request, Append) and request.attempt != "repair":
        oldest_us = min((wall_us(entry.t) for entry in request.entries), default=now_us) - now_us
        if request.attempt == "first" and -oldest_us > bounds.offset_max_us:
            detail = f"the entry is stamped {-oldest_us / 1e6:.3f} s behind this replica's clock: one of the two is wrong"
            return Refused("clock-behind", detail, oldest_us)
        if -oldest_us > bounds.retry_window_us:
            return Refused(
                "too-old", "the entry is older than the retry window: its outcome is unknown", oldest_us
            )
    return None


def _malformed(request: Append | Collect | Accept | Commit) -> str | None:
    if not is_object_name(request.object):
        return "the object's name is not TYPE/NAME (dictionary/NAME/KEY) of the allowed characters"
    entries: tuple[Entry, ...]
    match request:
        case Append():
            entries, taken = request.entries, []
        case Accept() | Commit() if request.summary is not None:
            summary = request.summary
            entries = summary.adopted + summary.kept()
            taken = [entry for decision in summary.recent for entry in decision.taken]
        case _:
            return None
    if any(entry.value is UNSET for entry in entries):
        return "an entry without its value cannot be stored"
    is_deletion = any(entry.value is None for entry in (*entries, *taken))
    if is_deletion and adt_of(request.object) != "dictionary":
        return "only a dictionary's entries can be deletions (null value)"
    return None


def _latest_claimed(request: Append | Collect | Accept | Commit) -> Timestamp:
    """The latest timestamp that the request would have the replica take for its own."""
    match request:
        case Append():
            return max((entry.t for entry in request.entries), default=ZERO)
        case Collect():
            return _latest_asked(request)
        case Accept():
            then = ZERO if request.then is None else _latest_asked(request.then)
            return max(turn_of(request.ballot), _latest(request.summary), then)
        case Commit():
            latest = ZERO if request.summary is None else _latest(request.summary)
            return max(turn_of(request.ballot), request.horizon, request.buried, latest)


def _furthest_us(request: Append | Collect | Accept | Commit) -> int:
    """The latest time at which the request would have an item of a queue come back, be due or expire."""
    match request:
        case Append():
            return max((_times_of(entry) for entry in request.entries), default=0)
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
    """The later one of the fence and the turn that a collect asks for."""
    return request.fence if request.ballot is None else max(request.fence, turn_of(request.ballot))


def _latest(summary: Summary) -> Timestamp:
    """The latest timestamp that the summary tells of: of events, of decisions that it remembers, and of turns."""
    entries = (entry.t for entry in summary.adopted)
    ambiguous = (timestamp for _, timestamp in summary.ambiguous)
    turns = (turn_of(ballot) for ballot in (*summary.turns, summary.turns_floor))
    decided = (turn_of(decision.ballot) for decision in summary.recent)
    taken = (entry.t for decision in summary.recent for entry in decision.taken)
    kept = (entry.t for entry in summary.kept())
    remembered_us = [each.at_us for each in summary.recent] + [each.at_us for each in summary.settled]
    remembered = make(max(remembered_us, default=0), 0, "0")
    return max((summary.horizon, *entries, *ambiguous, *turns, *decided, *taken, *kept, remembered))


def _append(request: Append, state: ObjectState, log: Log) -> Handled:
    here = log.stored(request.object, [entry.t for entry in request.entries])
    new = [entry for entry in request.entries if entry.t not in here and entry.t > state.fence]
    stored = tuple(entry.t in here or entry.t > state.fence for entry in request.entries)
    effects: list[Effect] = [
        PutRow(request.object, entry) for entry in {entry.t: entry for entry in new}.values()
    ]
    if effects and log.state(request.object) is None:
        effects.append(PutState(state))
    return Appended(_status(state), stored), effects


def _collect(request: Collect, state: ObjectState, log: Log, bounds: Bounds) -> Handled:
    promised = state.promised if request.ballot is None else turn_of(request.ballot)
    if promised < state.promised:
        return Collected(_status(state), refused=True, summary=None), []
    fence = max(state.fence, request.fence, _fence_of_next(request, state, log))
    after = replace(state, promised=promised, fence=fence)
    return _read(request, after, log, bounds), _changed(state, after)


def _fence_of_next(request: Collect, state: ObjectState, log: Log) -> Timestamp:
    if not request.fence_next or request.window is None:
        return ZERO
    above = max(request.window.after, state.summary.horizon)
    return log.nth(request.object, above, request.fence_next) or ZERO


def _read(request: Collect, state: ObjectState, log: Log, bounds: Bounds) -> Collected:
    """Summary and rows; read after promise and fence, so that nothing at or below the fence can slip in later."""
    summary = None if request.known == state.accepted else state.summary
    rows = _within(log.wanted(request.object, request.wanted), bounds) if request.wanted else []
    if request.window is None:
        return Collected(_status(state), summary=summary, rows=tuple(rows), since=log.arrival(), upto=ZERO)
    found, since, upto, more = _read_window(request.window, state, log, bounds)
    if not request.window.payload:
        found = [_without_payload(row) for row in found]
    return Collected(_status(state), summary=summary, rows=(*rows, *found), since=since, upto=upto, more=more)


def _without_payload(row: Row) -> Row:
    return Row(Entry(row.entry.id, row.entry.t), row.complete)


def _within(rows: list[Row], bounds: Bounds) -> list[Row]:
    """The first of `rows`, as many as fit a page, but at least one."""
    size = 0
    for place, row in enumerate(rows):
        size += text_bytes(row.entry.value) if isinstance(row.entry.value, str) else 0
        if place and size > bounds.page_bytes_max:
            return rows[:place]
    return rows


def _read_window(
    window: Window, state: ObjectState, log: Log, bounds: Bounds
) -> tuple[list[Row], int, Timestamp, bool]:
    """What arrived in the window since, then what lies above it; as rows, arrival number, new upper end, cut off."""
    after = max(window.after, state.collected)
    page = bounds.page_entries_max
    arrived = log.arrivals(state.name, after, window.upto, window.since, page) if window.upto > after else []
    rows = [row for _, row in arrived]
    kept = _within(rows, bounds) if window.payload else rows
    if len(arrived) == page or len(kept) < len(rows):
        return kept, arrived[len(kept) - 1][0], window.upto, True
    limit = min(window.limit, page - len(arrived))
    if window.upto == INFINITY or limit == 0:
        return rows, log.arrival(), max(window.upto, after), False
    above = log.rows(state.name, max(after, window.upto), limit)
    fitting = _within(above, bounds) if window.payload else above
    is_end = len(above) < limit and len(fitting) == len(above)
    return rows + fitting, log.arrival(), INFINITY if is_end else fitting[-1].entry.t, False


def _accept(request: Accept, state: ObjectState, log: Log, bounds: Bounds, keeps_events: bool) -> Handled:
    turn = turn_of(request.ballot)
    if turn < state.promised or ZERO < turn <= state.floor or request.ballot < state.accepted:
        return Accepted(_status(state), refused=True), []
    after = state
    effects: list[Effect] = []
    if request.ballot > state.accepted:
        after = replace(state, promised=turn, accepted=request.ballot, summary=request.summary)
        if keeps_events and request.event:
            effects.append(PutEvent(request.object, turn, request.event))
    then = None
    if request.then is not None:
        answer, _ = _collect(request.then, after, log, bounds)
        assert isinstance(answer, Collected)
        then = answer
        after = replace(after, fence=answer.status.fence, promised=answer.status.promised)
    return Accepted(_status(after), then=then), effects + _changed(state, after)


def _commit(request: Commit, state: ObjectState, log: Log, keeps_events: bool) -> Handled:
    after = _decided(request, state)
    effects: list[Effect] = []
    if request.complete:
        effects.append(MarkComplete(request.object, request.complete))
    if not keeps_events:
        after = replace(after, collected=_collected(request, after, log))
    if request.buried > ZERO and _is_buried(request.buried, after, log):
        floor = max(after.fence, after.promised, turn_of(after.accepted), request.buried, log.floor())
        return Committed(_status(after)), [Forget(request.object, floor)]
    return Committed(_status(after)), effects + _changed(state, after)


def _is_buried(buried: Timestamp, state: ObjectState, log: Log) -> bool:
    here = next((row.entry for row in log.wanted(state.name, [buried])), None)
    return may_forget(buried, state.summary, here, is_newer_here=bool(log.rows(state.name, buried, 1)))


def _decided(request: Commit, state: ObjectState) -> ObjectState:
    """A decided summary counts as accepted too. A mark without the summary helps only where it was accepted."""
    if request.ballot <= state.committed or turn_of(request.ballot) <= state.floor:
        return state
    if request.ballot > state.accepted:
        if request.summary is None:
            return state
        state = replace(state, accepted=request.ballot, summary=request.summary)
    return replace(state, committed=request.ballot, horizon=max(state.horizon, request.horizon))


def _collected(request: Commit, state: ObjectState, log: Log) -> Timestamp:
    collected = max(state.collected, collected_by_commit(adt_of(state.name), state.horizon))
    complete = log.stored(state.name, request.complete) if request.complete else set()
    newest = collected_by_completion(adt_of(state.name), complete)
    below = None if newest is None else log.below(state.name, newest)
    return max(collected, below or ZERO)


def _scan(request: Scan, log: Log, bounds: Bounds) -> Scanned:
    """Objects by name, each with the newest page of its log."""
    found: list[tuple[str, Collected]] = []
    limit = min(request.limit, bounds.page_entries_max)
    page = bounds.page_entries_max
    entries_max = page if request.newest is None else min(request.newest, page)
    names = log.names(request.prefix, request.after, limit + 1)
    room = bounds.page_bytes_max
    for name in names[:limit]:
        if room < 0:
            break
        state = _state(name, log)
        newest = log.newest(name, state.collected, entries_max)
        rows = reversed(_within(newest[::-1], bounds)) if request.payload else map(_without_payload, newest)
        events = log.events(name, None if request.newest is None else entries_max)
        answer = Collected(
            _status(state),
            summary=state.summary if request.payload else None,
            rows=tuple(rows),
            since=log.arrival(),
            events=tuple(events),
            leases=NO_LEASES if request.payload else count_leases(state.summary.leases, state.summary.dead),
        )
        found.append((name, answer))
        room -= weight(answer)
    return Scanned(tuple(found), more=len(names) > len(found))
