"""The replica: what it answers to a request, and what it must have on disk before it does. Pure.

Owns the promises of one replica (DESIGN section 2): fences never fall, a promised term refuses lower ballots, an
accepted summary is replaced only by a higher ballot, rows are collected only below a *committed* horizon. It knows
neither time (it arrives as `now_us`) nor disk (reads come through `Log`, writes leave as effects), nor other replicas.
"""

from typing import Final

from msgspec.structs import replace

from ...adts.log import NO_LEASES, Entry, count_leases, t_of
from ...adts.types.catalogue import adt_of
from ...api_specs.messages import (
    Accept,
    Accepted,
    Append,
    Appended,
    Change,
    Changed,
    Changes,
    Collect,
    Collected,
    Commit,
    Committed,
    Refused,
    Reply,
    Request,
    Reserve,
    Row,
    Scan,
    Scanned,
    Status,
    Window,
)
from ...api_specs.weights import weight
from ...gc.collection import collected_by_commit, collected_by_completion, ended_at, may_forget
from ...timestamps.ballot import Ballot, term_of
from ...timestamps.timestamp import INFINITY, ZERO, Timestamp, wall_us
from .key_consensus import reserve
from .log import Claim, Effect, Forget, Log, MarkComplete, ObjectState, PutEvent, PutRows, PutState
from .pages import page_of, payloads_bytes
from .refusals import Bounds, claims_of, malformed, refusal

Handled = tuple[Reply, list[Effect]]

READ_PER_PAGE: Final = 4
"""Where payloads are read and not shown, so many times as much is read for a page."""


def handle(request: Request, log: Log, now_us: int, bounds: Bounds, keeps_events: bool = False) -> Handled:
    """The reply to `request`, and the effects that must be durable before the reply is sent.

    `keeps_events`: the object's logs keep decided events and are never collected (`collect = false`).
    """
    if type(request) is Scan:
        return _scan(request, log, bounds), []
    if type(request) is Changes:
        return _changes(request, log, bounds), []
    claims, highest = claims_of(request), log.highest
    if (problem := malformed(request.object, claims, bounds.types)) is not None:
        return Refused("bad-request", problem), []
    if (refused := refusal(request, claims, highest, now_us, bounds)) is not None:
        return refused, []
    known = log.state(request.object)
    state = _unknown(request.object, log.floor()) if known is None else known
    reply, effects = _handled(request, state, log, now_us, bounds, keeps_events)
    if effects and type(request) is Append:
        if known is None:
            effects.append(PutState(state))
    elif effects and claims.latest > highest and (type(request) is Accept or type(request) is Commit):
        effects.insert(0, Claim(claims.latest))
    return reply, effects


def without_room(request: Request, log: Log, now_us: int, bounds: Bounds) -> Handled | None:
    """What a replica without room does instead of refusing: told of an object which it does not know that it came to nothing long ago, it raises
    its floor, that of all objects which it does not know, above that, and keeps nothing. It takes no older entry or decision of the object then,
    and all may forget it: else replicas that are full, each of objects which others lack, would stay so. None for all else; a young floor
    would have who reads what this replica lacks look again and again."""
    if not isinstance(request, Commit) or request.summary is None or log.state(request.object) is not None:
        return None
    if ended_at(request.object, request.summary, request.ballot) is None:
        return None
    floor = max(term_of(request.ballot), request.summary.horizon)
    if wall_us(floor) > now_us - bounds.repeats_us:
        return None
    if malformed(request.object, claims_of(request), bounds.types) is not None:
        return None
    return _forget(request.object, max(floor, log.floor()), log, now_us)


def _forget(name: str, floor: Timestamp, log: Log, now_us: int) -> Handled | None:
    """None where the floor of all objects would be ahead of time, and whoever writes to a new one would have to wait."""
    if wall_us(floor) > max(now_us, wall_us(log.floor())):
        return None
    return Committed(_status(_unknown(name, floor))), [Forget(name, floor)]


def _handled(
    request: Append | Collect | Accept | Commit | Reserve,
    state: ObjectState,
    log: Log,
    now_us: int,
    bounds: Bounds,
    keeps_events: bool,
) -> Handled:
    if type(request) is Append:
        return _append(request, state, log)
    if type(request) is Collect:
        return _collect(request, state, log, bounds)
    if type(request) is Accept:
        return _accept(request, state, log, bounds, keeps_events)
    if type(request) is Commit:
        return _commit(request, state, log, now_us, keeps_events)
    return reserve(request, log)


def _state(name: str, log: Log) -> ObjectState:
    if (known := log.state(name)) is not None:
        return known
    return _unknown(name, log.floor())


def _unknown(name: str, floor: Timestamp) -> ObjectState:
    return ObjectState(name, fence=floor, promised=floor, floor=floor)


def _status(state: ObjectState) -> Status:
    return Status(state.fence, state.promised, state.accepted, state.committed, state.horizon, state.floor)


def _changed(before: ObjectState, after: ObjectState) -> list[Effect]:
    return [] if after is before or after == before else [PutState(after)]


def _append(request: Append, state: ObjectState, log: Log) -> Handled:
    timestamps = list(map(t_of, request.entries))
    here = log.stored(request.object, timestamps)
    if state.made_upto > ZERO and (doubtful := _in_doubt(request, state, log)):
        if request.attempt != "repair":
            return Refused(
                "too-old", "this store was made from others, and does not know what the lost one answered"
            ), []
        here -= doubtful
    fence = state.fence
    new = {entry.t: entry for entry in request.entries if entry.t > fence and entry.t not in here}
    stored = tuple([t in new or t in here for t in timestamps])
    effects: list[Effect] = [PutRows(request.object, tuple(new.values()))] if new else []
    return Appended(_status(state), stored), effects


def _in_doubt(request: Append, state: ObjectState, log: Log) -> set[Timestamp]:
    """Entries that are asked for of which a lost store may have answered something else: it must be said neither that they are stored, or
    what never took effect would be told as done, nor to their own operation that they are not, or what was taken would be stored anew. Who
    repairs what he read stores nothing anew, and has it decided."""
    old = [entry.t for entry in request.entries if entry.t <= state.made_upto]
    return {row.entry.t for row in log.wanted(request.object, old) if not row.complete} if old else set()


def _collect(request: Collect, state: ObjectState, log: Log, bounds: Bounds) -> Handled:
    promised = state.promised if request.ballot is None else term_of(request.ballot)
    if promised < state.promised:
        return Collected(_status(state), refused=True, summary=None), []
    fence = max(state.fence, request.fence, _fence_of_next(request, state, log))
    if promised == state.promised and fence == state.fence:
        return _read(request, state, log, bounds), []
    after = replace(state, promised=promised, fence=fence)
    return _read(request, after, log, bounds), [PutState(after)]


def _fence_of_next(request: Collect, state: ObjectState, log: Log) -> Timestamp:
    if not request.fence_next or request.window is None:
        return ZERO
    above = max(request.window.after, state.summary.horizon)
    return log.nth(request.object, above, request.fence_next) or ZERO


def _read(request: Collect, state: ObjectState, log: Log, bounds: Bounds) -> Collected:
    """Summary and rows; read after promise and fence, so that nothing at or below the fence can slip in later."""
    summary = None if request.known == state.accepted else state.summary
    room = bounds.page_bytes_max
    rows = page_of(log.wanted(request.object, request.wanted, room), room) if request.wanted else []
    if request.window is None:
        latest = _latest_held(state, log)
        return Collected(
            _status(state), summary=summary, rows=tuple(rows), since=log.arrival(), upto=ZERO, latest=latest
        )
    found, since, upto, more = _read_window(request.window, state, log, bounds)
    return Collected(_status(state), summary=summary, rows=(*rows, *found), since=since, upto=upto, more=more)


def _latest_held(state: ObjectState, log: Log) -> Timestamp:
    """The highest timestamp of an event, a promise or a term that the replica holds of the object."""
    terms = (state.promised, term_of(state.accepted), term_of(state.committed))
    adopted = (entry.t for entry in state.summary.adopted)
    last = log.below(state.name, INFINITY) or ZERO
    return max(last, state.fence, *terms, state.horizon, state.summary.horizon, *adopted)


def _without_payload(row: Row) -> Row:
    return Row(Entry(row.entry.id, row.entry.t), row.complete)


def _read_window(
    window: Window, state: ObjectState, log: Log, bounds: Bounds
) -> tuple[list[Row], int, Timestamp, bool]:
    """What arrived in the window since, then what lies above it; as rows, arrival number, new upper end, cut off."""
    after = max(window.after, state.collected)
    page, room = bounds.page_entries_max, _room_to_read(bounds, payload=window.payload)
    is_known = window.upto > after
    arrived = log.arrivals(state.name, after, window.upto, window.since, page, room) if is_known else []
    kept = page_of([row for _, row in arrived], room)
    rows = _shown(kept, payload=window.payload)
    if len(arrived) == page or len(kept) < len(arrived):
        return rows, arrived[len(kept) - 1][0], window.upto, True
    limit = min(window.limit, page - len(arrived))
    if window.upto == INFINITY or limit == 0:
        return rows, log.arrival(), max(window.upto, after), False
    room = max(0, room - payloads_bytes(kept))
    above = log.rows(state.name, max(after, window.upto), limit, room)
    fitting = page_of(above, room)
    is_end = len(above) < limit and len(fitting) == len(above)
    upto = INFINITY if is_end else fitting[-1].entry.t
    return rows + _shown(fitting, payload=window.payload), log.arrival(), upto, False


def _room_to_read(bounds: Bounds, *, payload: bool) -> int:
    """Bytes of payloads that are read for one page: those of rows that are shown without are read, too, to check their sums."""
    return bounds.page_bytes_max if payload else READ_PER_PAGE * bounds.page_bytes_max


def _shown(rows: list[Row], *, payload: bool) -> list[Row]:
    return rows if payload else list(map(_without_payload, rows))


def _accept(request: Accept, state: ObjectState, log: Log, bounds: Bounds, keeps_events: bool) -> Handled:
    term = term_of(request.ballot)
    if term < state.promised or ZERO < term <= state.floor or request.ballot < state.accepted:
        return Accepted(_status(state), refused=True), []
    after = state
    effects: list[Effect] = []
    if request.ballot > state.accepted:
        after = replace(state, promised=term, accepted=request.ballot, summary=request.summary)
        if keeps_events and request.event:
            effects.append(PutEvent(request.object, term, request.event))
    then = None
    if request.then is not None:
        answer, _ = _collect(request.then, after, log, bounds)
        assert isinstance(answer, Collected)
        then = answer
        after = replace(after, fence=answer.status.fence, promised=answer.status.promised)
    return Accepted(_status(after), then=then), effects + _changed(state, after)


def _commit(request: Commit, state: ObjectState, log: Log, now_us: int, keeps_events: bool) -> Handled:
    after = _decided(request, state, log)
    effects: list[Effect] = []
    if request.complete:
        effects.append(MarkComplete(request.object, request.complete))
    if keeps_events:
        return Committed(_status(after)), effects + _changed(state, after)
    if (collected := _collected(request, after, log)) > after.collected:
        after = replace(after, collected=collected)
    if request.tombstone > ZERO and _is_collectable(request.ballot, after, log):
        floor = max(after.fence, after.promised, term_of(after.accepted), request.tombstone, log.floor())
        if (forgotten := _forget(request.object, floor, log, now_us)) is not None:
            return forgotten
    return Committed(_status(after)), effects + _changed(state, after)


def _is_collectable(decided: Ballot, state: ObjectState, log: Log) -> bool:
    is_newer_here = bool(log.rows(state.name, max(state.summary.horizon, state.collected), 1))
    return may_forget(decided, state.accepted, state.ended(), is_newer_here=is_newer_here)


def _decided(request: Commit, state: ObjectState, log: Log) -> ObjectState:
    """A decided summary counts as accepted too. A mark without the summary helps only where it was accepted. One of a forgotten life is below the
    floor with all that it rests on: a decision may rest on later entries than its term."""
    if request.ballot <= state.committed:
        return state
    if max(term_of(request.ballot), request.horizon) <= state.floor:
        return state  # It is of a forgotten life.
    if request.ballot > state.accepted:
        if request.summary is None:
            return state
        state = replace(state, accepted=request.ballot, summary=request.summary)
    # What came to nothing is held anew by each ballot, whose term ends what was accepted below it.
    if request.horizon > state.horizon or state.ended() is not None:
        state = replace(state, horizon=max(state.horizon, request.horizon), decided_by=log.arrival() + 1)
    return replace(state, committed=request.ballot)


def _collected(request: Commit, state: ObjectState, log: Log) -> Timestamp:
    adt = adt_of(state.name)
    collected = max(state.collected, collected_by_commit(adt, state.horizon))
    if not request.complete:
        return collected
    newest = collected_by_completion(adt, log.stored(state.name, request.complete))
    below = None if newest is None else log.below(state.name, newest)
    return max(collected, below or ZERO)


def _scan(request: Scan, log: Log, bounds: Bounds) -> Scanned:
    """Objects by name, each with the newest page of its log."""
    found: list[tuple[str, Collected]] = []
    limit = min(request.limit, bounds.page_entries_max)
    page = bounds.page_entries_max
    entries_max = page if request.newest is None else min(request.newest, page)
    names = log.names(request.prefix, request.after, limit + 1)
    room, full = bounds.page_bytes_max, _room_to_read(bounds, payload=request.payload)
    left = full
    for name in names[:limit]:
        if room < 0 or left < 0:
            break
        state = _state(name, log)
        read = log.newest(name, state.collected, entries_max, full)[::-1]
        newest = page_of(read, full)
        left -= payloads_bytes(newest)
        rows = reversed(_shown(newest, payload=request.payload))
        events = log.events(name, None if request.newest is None else entries_max)
        answer = Collected(
            _status(state),
            summary=state.summary if request.payload else None,
            rows=tuple(rows),
            since=log.arrival(),
            more=not request.payload and len(newest) < len(read),
            events=tuple(events),
            leases=NO_LEASES if request.payload else count_leases(state.summary.leases, state.summary.dead),
        )
        found.append((name, answer))
        room -= weight(answer)
    return Scanned(tuple(found), more=len(names) > len(found))


def _changes(request: Changes, log: Log, bounds: Bounds) -> Changed:
    """Changed objects by number, each with what arrived there, until the page is full."""
    found: list[Change] = []
    left = min(request.limit, bounds.page_entries_max)
    above = request.place - 1 if request.below else request.place
    objects = log.changed(request.since, above, left + 1)
    for number, name in objects[:left]:
        is_begun = request.below > 0 and number == request.place
        upto = min(request.upto, request.below - 1) if is_begun else request.upto
        rows = log.arrived(name, request.since, upto, left) if request.since < upto else []
        state = _state(name, log)
        found.append(Change(name, state.committed, tuple(t for _, t in rows if t > state.collected)))
        if len(rows) == left:
            return Changed(log.arrival(), tuple(found), number, rows[-1][0], more=True)
        left -= len(rows)
        if left <= len(found):
            return Changed(log.arrival(), tuple(found), number, more=True)
    return Changed(log.arrival(), tuple(found), more=False)
