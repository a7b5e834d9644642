"""What a well-formed batch must also satisfy: the forms of names, timestamps and values, and the bounds. Pure.

Owns every rule that a message's types cannot say, so that nothing behind the replica's door meets a limit of -1, a
timestamp that does not sort or a value that is no JSON. Must not know any replica's state or clock.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from ..adts.log import Dead, Decision, Entry, Leased, Settled, Summary
from ..adts.types.catalogue import adt_of, is_object_name
from ..timestamps.ballot import NO_BALLOT, Ballot, parse_ballot
from ..timestamps.timestamp import INFINITY, WALL_US_MAX, ZERO, Timestamp, parse
from .cluster import is_replica_id
from .commands import AcquireCommand, CompareAndSetCommand, DequeueCommand, ForwardableCommand, SettleCommand
from .limits import (
    ADOPTED_MAX,
    AMBIGUOUS_MAX,
    BATCH_ENTRIES_MAX,
    DEAD_MAX,
    DELAY_S_MAX,
    DELIVERIES_MAX,
    FORWARD_S_MAX,
    FORWARDED_COMMANDS_MAX,
    KEYED_ENTRIES_MAX,
    LEASE_S_MAX,
    LEASES_MAX,
    NAME_CHARS_MAX,
    SETTLE_TOKENS_MAX,
    SETTLED_MAX,
    Limits,
)
from .messages import (
    TRACEPARENT_PATTERN,
    Accept,
    Announcement,
    Append,
    Batch,
    BatchReply,
    Changes,
    Collect,
    Commit,
    ForwardedRequest,
    Refused,
    Reply,
    Request,
    Reserve,
    Scan,
    Window,
)
from .values import check_value

ID_CHARS_MAX: Final = 500
"""An entry's or a decision's id: a timestamp, or made of an object's name and an idempotency key."""
LEASE_TOKEN_CHARS_MAX: Final = len(f"{DELIVERIES_MAX}/") + ID_CHARS_MAX
"""A lease's token: the count of deliveries, and the item's id. Every item that a replica takes in can be acknowledged."""
TERMS_MAX: Final = 100
"""Turns that a summary names; a front end keeps 64 of them."""
DIGEST_CHARS_MAX: Final = 64
COUNT_MAX: Final = (1 << 62) - 1
"""Counts and arrival numbers; the store's integers have 64 bits."""
_NO_END: Final = "the end of all timestamps can only bound a window"
_TRACEPARENT: Final = re.compile(TRACEPARENT_PATTERN)
_NO_PLACE: Final = "trace: a place is a traceparent of version 00 (W3C Trace Context), or empty"
PREFIX_CHARS_MAX: Final = 2 * NAME_CHARS_MAX + 20


class BadBatch(ValueError):
    """A batch that must not reach a replica's machine; the sentence names the request."""


class Checked(NamedTuple):
    """What of a batch may reach a replica's machine, and what is refused of it, by its place in the batch."""

    sound: Batch
    refused: Mapping[int, Refused]

    def whole(self, reply: BatchReply) -> BatchReply:
        """The reply to the batch, from that to what is sound of it (or to the first of that)."""
        if not self.refused:
            return reply
        given, replies = iter(reply.replies), list[Reply | Refused]()
        for place in range(len(self.sound.requests) + len(self.refused)):
            answer = self.refused.get(place) or next(given, None)
            if answer is None:
                break
            replies.append(answer)
        return replace(reply, replies=tuple(replies))


def check_batch(
    batch: Batch,
    limits: Limits,
    check_entries: Callable[[Append | Accept | Commit], object] | None = None,
    refused: Mapping[int, Refused] = MappingProxyType({}),
) -> Checked:
    """Which requests of `batch` are in form and in bounds, besides those that are `refused`: one that is not keeps out no other, for a front end sends
    those of many callers together. `check_entries` raises ValueError where entries that a request brings are none of its object.
    Raises BadBatch when no request is sound, or the batch itself is not."""
    if len(batch.requests) > limits.requests_max:
        raise BadBatch(
            f"requests: {len(batch.requests)} of them, at most {limits.requests_max} go in a batch"
        )
    if batch.trace:
        _check_trace(batch)
    refused = dict(refused)
    for place, request in enumerate(batch.requests):
        if place in refused:
            continue
        try:
            _check_request(request, limits)
            if check_entries is not None and isinstance(request, Append | Accept | Commit):
                check_entries(request)
        except ValueError as error:
            refused[place] = Refused("bad-request", f"requests[{place}]: {error}")
    if not refused:
        return Checked(batch, refused)
    sound = [place for place in range(len(batch.requests)) if place not in refused]
    if not sound:
        raise BadBatch(next(iter(refused.values())).detail)
    trace = tuple(batch.trace[place] for place in sound if batch.trace)
    return Checked(Batch(batch.cluster, tuple(batch.requests[place] for place in sound), trace), refused)


def _check_trace(batch: Batch) -> None:
    if len(batch.trace) != len(batch.requests):
        raise BadBatch("trace: must be as long as requests, or be left out")
    if not all(map(_is_place, batch.trace)):
        raise BadBatch(_NO_PLACE)


def _is_place(trace: str) -> bool:
    return not trace or _TRACEPARENT.fullmatch(trace) is not None


def check_announcement(announcement: Announcement, own: str, former_members: Collection[str]) -> None:
    """Raises BadBatch unless `announcement` is in form and comes from another replica than the `own` one, which is a member, or may become one."""
    if announcement.replica == own or not is_replica_id(announcement.replica):
        raise BadBatch("replica: must be the id of another replica")
    if announcement.replica in former_members:
        raise BadBatch("replica: it was a member before, and is none now: give a new replica another id")
    try:
        _check_id(announcement.store)
        if announcement.born:
            _check_id(announcement.born)
        _check_timestamps((announcement.clock,))
    except ValueError as error:
        raise BadBatch(f"announcement: {error}") from None


def check_forwarded(request: ForwardedRequest, limits: Limits, types: Collection[str]) -> None:
    """Raises BadBatch unless `request` is in form and in bounds: commands that fit the object's type, none under a key, and a
    deadline; or nothing but the question which incarnation answers."""
    try:
        _check_timestamps((request.id,))
        _check_object(request.object)
        if adt_of(request.object) not in types:
            raise ValueError(f"object: the cluster has no data type {adt_of(request.object)!r}")
        _check_listed(request.commands, "commands", FORWARDED_COMMANDS_MAX)
        if not _is_place(request.trace):
            raise ValueError(_NO_PLACE)
        if not request.commands:
            return
        _check_id(request.incarnation)
        if not 0 < request.deadline_s <= FORWARD_S_MAX:
            raise ValueError(f"deadline_s: must be above 0, and at most {FORWARD_S_MAX} seconds")
        for command in request.commands:
            _check_command(command, adt_of(request.object), limits)
    except ValueError as error:
        raise BadBatch(f"forwarded request: {error}") from None


def _check_command(command: ForwardableCommand, adt: str, limits: Limits) -> None:
    wanted = ("register", "dictionary") if isinstance(command, CompareAndSetCommand) else ("queue",)
    if adt not in wanted:
        raise ValueError("commands: swap is for registers and dictionaries' keys, all others for queues")
    if isinstance(command, DequeueCommand | CompareAndSetCommand) and command.key:
        raise ValueError("commands: one with a key is not forwarded: decide it where it was called")
    if isinstance(command, AcquireCommand) and not 0 < command.lease_us <= LEASE_S_MAX * 1e6:
        raise ValueError(f"lease_us: must be above 0, and at most {LEASE_S_MAX:.0f} seconds")
    if isinstance(command, AcquireCommand):
        _check_count(command.deliveries_max, "deliveries_max", DELIVERIES_MAX)
        _check_short(command.holder, "holder")
    if isinstance(command, SettleCommand):
        _check_settle(command)
    if (
        isinstance(command, DequeueCommand | AcquireCommand)
        and not 1 <= command.items_max <= limits.batch_items_max
    ):
        raise ValueError(f"items_max: must be 1 to {limits.batch_items_max} (batch_items_max)")
    if isinstance(command, CompareAndSetCommand):
        for value in (command.old, command.new):
            if value is not None:
                _check_text(value, limits)


def _check_settle(command: SettleCommand) -> None:
    _check_listed(command.tokens, "tokens", SETTLE_TOKENS_MAX)
    for token in command.tokens:
        _check_id(token, LEASE_TOKEN_CHARS_MAX)
    if not 0 <= command.span_us <= max(DELAY_S_MAX, LEASE_S_MAX) * 1e6:
        raise ValueError(f"span_us: must be 0, or at most {DELAY_S_MAX:.0f} seconds")


def _check_object(name: str) -> None:
    if not is_object_name(name):
        raise ValueError("object: must be TYPE/NAME (dictionary/NAME/KEY) of the allowed characters")


def _check_listing(request: Scan | Changes) -> None:
    if isinstance(request, Scan):
        _check_prefix(request.prefix, "prefix")
        _check_prefix(request.after, "after")
    counts = (
        ("limit", "newest") if isinstance(request, Scan) else ("limit", "since", "upto", "place", "below")
    )
    for name in counts:
        _check_count(getattr(request, name) or 0, name)


def _check_request(request: Request, limits: Limits) -> None:
    if type(request) is Scan or type(request) is Changes:
        _check_listing(request)
        return
    _check_object(request.object)
    if type(request) is Append:
        _check_entries(request.entries, limits.batch_items_max, limits)
    elif type(request) is Collect:
        _check_collect(request, limits)
    elif type(request) is Accept:
        _check_accept(request, limits)
    elif type(request) is Commit:
        _check_commit(request, limits)
    else:
        _check_reserve(request, limits)


def _check_accept(request: Accept, limits: Limits) -> None:
    _check_ballot(request.ballot)
    _check_carried(request.object, request.summary, limits)
    if request.then is not None:
        if request.then.object != request.object:
            raise ValueError("then: must be about the same object")
        _check_collect(request.then, limits)


def _check_reserve(request: Reserve, limits: Limits) -> None:
    _check_timestamps((request.ballot,))
    keys = [each.key for each in request.proposals]
    if not keys or len(keys) > len(set(keys)):
        raise ValueError("proposals: at least one, each under a key of its own")
    for key in keys:
        _check_id(key)
    if not all(each.entries for each in request.proposals):
        raise ValueError("proposals: at least one entry is reserved under a key")
    entries = tuple(entry for each in request.proposals for entry in each.entries)
    if any(entry.value is not UNSET for entry in entries):
        raise ValueError("proposals: an entry is reserved without its value")
    _check_entries(entries, limits.batch_items_max, limits)


def _check_commit(request: Commit, limits: Limits) -> None:
    """Most of them only say what is complete: what they left out is in form."""
    if request.ballot != NO_BALLOT:
        _check_ballot(request.ballot)
    for timestamp in (request.horizon, request.tombstone):
        if timestamp != ZERO:
            _check_timestamps((timestamp,))
    _check_listed(request.complete, "complete", BATCH_ENTRIES_MAX)
    _check_timestamps(request.complete)
    if request.summary is not None:
        _check_carried(request.object, request.summary, limits)


def _check_collect(request: Collect, limits: Limits) -> None:
    for ballot in (request.ballot, request.known):
        if ballot is not None:
            _check_ballot(ballot)
    _check_listed(request.wanted, "wanted", limits.page_entries_max)
    _check_timestamps((request.fence, *request.wanted))
    _check_count(request.fence_next, "fence_next")
    if request.window is not None:
        _check_window(request.window)


def _check_window(window: Window) -> None:
    for bound in (window.after, window.upto):
        if bound != INFINITY:
            parse(bound)
    _check_count(window.since, "since")
    _check_count(window.limit, "limit")


def _check_carried(name: str, summary: Summary, limits: Limits) -> None:
    """The summary that a request has with it. An honest front end sends a wrong one only when it went on from one that was
    stored before, from which nobody can go on."""
    try:
        check_summary(summary, limits)
    except ValueError as error:
        raise ValueError(f"{error} (if the replicas hold it like that: quorate repair {name})") from None


def listed_max(limits: Limits) -> dict[str, int]:
    """How many of each a summary lists at most."""
    return {
        "adopted": ADOPTED_MAX,
        "ambiguous": AMBIGUOUS_MAX,
        "recent": limits.recent_decisions_max,
        "terms": TERMS_MAX,
        "leases": LEASES_MAX,
        "dead": DEAD_MAX,
        "settled": SETTLED_MAX,
    }


CARRIED_MAX: Final = {"recent": 2 * KEYED_ENTRIES_MAX, "settled": SETTLED_MAX}
"""How much the parts of a summary's list carry together, at most. Front ends have decisions carry half as much."""


def carried_by(part: object) -> int:
    """How many entries or tokens a part of one of these lists carries: each look at the object takes time for all of them."""
    match part:
        case Decision():
            return len(part.taken)
        case Settled():
            return len(part.tokens)
    return 0


def check_summary(summary: Summary, limits: Limits) -> None:
    """Raises ValueError unless every part of the summary is in form and in bounds."""
    for what, most in listed_max(limits).items():
        _check_listed(getattr(summary, what), what, most)
    for what, most in CARRIED_MAX.items():
        if (carried := sum(map(carried_by, getattr(summary, what)))) > most:
            raise ValueError(f"{what}: they carry {carried} entries or tokens, at most {most} are allowed")
    _check_timestamps([summary.horizon])
    for ballot in (*summary.terms, summary.terms_floor):
        _check_ballot(ballot)
    if summary.value is not None:
        _check_text(summary.value, limits)
    _check_entries(summary.adopted, ADOPTED_MAX, limits)
    _check_leases(summary, limits)
    for entry_id, ballot in summary.ambiguous:
        _check_id(entry_id)
        _check_ballot(ballot)
    for decision in summary.recent:
        _check_id(decision.id)
        _check_short(decision.digest, "digest")
        _check_ballot(decision.ballot)
        _check_entries(decision.taken, limits.batch_items_max, limits)
        if decision.result is not None:
            _check_text(decision.result, limits)


def _check_time(at_us: int, where: str) -> None:
    if not 0 <= at_us <= WALL_US_MAX:
        raise ValueError(f"{where}: times must be 0 to {WALL_US_MAX} microseconds since 1970")


def _check_leases(summary: Summary, limits: Limits) -> None:
    kept: tuple[Leased | Dead, ...] = (*summary.leases, *summary.dead)
    _check_entries(tuple(each.entry for each in kept), LEASES_MAX + DEAD_MAX, limits)
    for each in kept:
        _check_count(each.deliveries, "deliveries", DELIVERIES_MAX)
    for record in summary.leases:
        _check_count(record.excused, "excused", record.deliveries)
        _check_short(record.holder, "holder")
        _check_time(record.until_us, "leases")
        _check_time(record.expires_us, "leases")
    for settled in summary.settled:
        _check_ballot(settled.ballot)
        _check_listed(settled.tokens, "settled", SETTLE_TOKENS_MAX)
        for token in settled.tokens:
            _check_short(token, "settled")


def _check_entries(entries: tuple[Entry, ...], most: int, limits: Limits) -> None:
    _check_listed(entries, "entries", most)
    for entry in entries:
        if parse(entry.t) == INFINITY:
            raise ValueError(_NO_END)
        if entry.id != entry.t:
            _check_id(entry.id)
        if entry.value is not None and entry.value is not UNSET:
            _check_text(entry.value, limits)


def _check_text(value: str, limits: Limits) -> None:
    if (wrong := check_value(value, limits)) is not None:
        raise ValueError(wrong)


def _check_timestamps(timestamps: Iterable[Timestamp]) -> None:
    for timestamp in timestamps:
        if parse(timestamp) == INFINITY:
            raise ValueError(_NO_END)


def _check_ballot(ballot: Ballot) -> None:
    if parse_ballot(ballot).startswith(INFINITY):
        raise ValueError("the end of all timestamps cannot be a term")


def _check_id(text: str, most: int = ID_CHARS_MAX) -> None:
    if not 1 <= len(text) <= most or not text.isascii() or not text.isprintable():
        raise ValueError(f"id: must be 1 to {most} printable ASCII characters")


def _check_short(text: str, what: str) -> None:
    if len(text) > DIGEST_CHARS_MAX or not text.isascii() or not text.isprintable():
        raise ValueError(f"{what}: must be at most {DIGEST_CHARS_MAX} printable ASCII characters")


def _check_count(count: int, what: str, most: int = COUNT_MAX) -> None:
    if not 0 <= count <= most:
        raise ValueError(f"{what}: must be 0 to {most}")


def _check_listed(listed: tuple[object, ...], what: str, most: int) -> None:
    if len(listed) > most:
        raise ValueError(f"{what}: {len(listed)} of them, at most {most} are allowed")


def _check_prefix(text: str, what: str) -> None:
    if len(text) > PREFIX_CHARS_MAX or not text.isascii() or not text.isprintable():
        raise ValueError(f"{what}: must be at most {PREFIX_CHARS_MAX} printable ASCII characters")
