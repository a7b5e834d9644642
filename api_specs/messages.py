"""The replica protocol: requests and replies between front ends and replicas. Pure values; every request is idempotent.

One HTTP request carries a `Batch` to one replica, and its answer a `BatchReply` with one reply per request, in order.
The replica handles a batch in one transaction and answers when that is on disk. Nothing here can be part of a cycle, so the garbage
collector need not look at it (`gc=False`). Nothing derives from a request or a reply, so what is
looked at for each of them is its `type`: for structs, an `isinstance` that fails takes five times as long.
"""

import re
from typing import Any, Final, Literal, final

import msgspec
from msgspec import Struct

from ..adts.log import NO_LEASES, NOTHING, Entry, LeaseCounts, Leased, Summary
from ..timestamps.ballot import NO_BALLOT, Ballot
from ..timestamps.timestamp import INFINITY, ZERO, Timestamp
from .commands import ForwardableCommand, SettleResult

TRACEPARENT_PATTERN: Final = "00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
"""A place in a trace (W3C Trace Context, version 00)."""

NOT_DECODED: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises for bytes that are no message: of the wrong form, not UTF-8 within, or nested without end."""


Purpose = Literal["change", "settle", "forget"]
"""What a decision is for."""

PROTOCOL_HEADER: Final = "Quorate-Protocol"
"""The header of a request that says which versions of this protocol its sender speaks."""
_PROTOCOLS: Final = re.compile(r"([1-9][0-9]{0,3})(?:-([1-9][0-9]{0,3}))?", re.ASCII)


class Protocols(Struct, frozen=True, gc=False):
    """Versions of this protocol: these two, and all between them."""

    oldest: int
    newest: int

    @property
    def text(self) -> str:
        """As the header has it: `1-2`, or `2` for one version."""
        return str(self.newest) if self.oldest == self.newest else f"{self.oldest}-{self.newest}"

    @property
    def told(self) -> str:
        """In words."""
        return f"version{'' if self.oldest == self.newest else 's'} {self.text}"


FOLLOWING: Final = 2
"""The first version with configurations that follow one another. Once the configuration has changed, who speaks less knows another one than replicas."""
SPOKEN: Final = Protocols(1, FOLLOWING)
"""What this release speaks."""
UNTOLD: Final = Protocols(1, 1)
"""What a program speaks that does not say."""


def protocols_in(text: str) -> Protocols | None:
    """What the header says; None where it is not in form."""
    if (found := _PROTOCOLS.fullmatch(text)) is None:
        return None
    protocols = Protocols(int(found[1]), int(found[2] or found[1]))
    return protocols if protocols.oldest <= protocols.newest else None


def why_not_spoken(sender: Protocols, replica: str, spoken: Protocols) -> str | None:
    """Why a sender and the replica cannot talk, and who is to be updated; None where they have a version in common."""
    if spoken.oldest <= sender.newest and sender.oldest <= spoken.newest:
        return None
    older, needed = f"replica {replica}", sender.oldest
    if sender.newest < spoken.oldest:
        older, needed = "the sender", spoken.oldest
    return (
        f"the sender speaks {sender.told} of the replica protocol, and replica {replica} {spoken.told}: update {older} to a release that speaks "
        f"version {needed}"
    )


class Window(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Which entries of a log a front end wants.

    It knows the replica's entries in (after, upto] as of arrival number `since`. The reply brings what arrived there
    since, then at most `limit` entries above `upto` in timestamp order. `payload` False asks for ids and timestamps.
    """

    after: Timestamp = ZERO
    upto: Timestamp = ZERO
    since: int = 0
    limit: int = 0
    payload: bool = True


@final
class Append(Struct, frozen=True, gc=False, tag="append", omit_defaults=True, forbid_unknown_fields=True):
    """Store each entry unless its timestamp is at or below the object's fence.

    `attempt` is "first" for new timestamps (refused when too far behind the replica's clock), "again" for a repeat
    (refused when older than a repeat may be), "repair" for a reader that writes back what it saw.
    """

    object: str
    entries: tuple[Entry, ...]
    attempt: Literal["first", "again", "repair"] = "again"


@final
class Collect(Struct, frozen=True, gc=False, tag="collect", omit_defaults=True, forbid_unknown_fields=True):
    """Read summary and entries. In this order: promise `ballot` (unless a higher one is promised: refused, and nothing
    else is done), raise the fence to `fence` and to the timestamp of the `fence_next`-th entry above `window.after`,
    then read. `known` is the ballot of the summary that the front end has: the same one is not sent again.
    `wanted` asks for these entries with their payloads, taken ones included while they last.
    `purpose`: of the decision that the promise is for. To "settle" what is there, for a reader, or to have it forgotten ("forget"), goes
    further beyond a replica's bounds than to "change" something.
    """

    object: str
    ballot: Ballot | None = None
    fence: Timestamp = ZERO
    fence_next: int = 0
    window: Window | None = None
    known: Ballot | None = None
    wanted: tuple[Timestamp, ...] = ()
    purpose: Purpose = "change"


@final
class Accept(Struct, frozen=True, gc=False, tag="accept", omit_defaults=True, forbid_unknown_fields=True):
    """Store the summary under the ballot, unless a higher ballot is promised or accepted.

    `event` describes the decision for logs that keep decided events (`collect = false`), as `Deq();Ok("x")`; for others it
    is empty.
    `then` is a collect of the same owner that rides along (the owner's next view).
    `purpose`: as of a collect.
    """

    object: str
    ballot: Ballot
    summary: Summary
    event: str = ""
    then: Collect | None = None
    purpose: Purpose = "change"


@final
class Commit(
    Struct,
    frozen=True,
    gc=False,
    tag="commit",
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename={"tombstone": "buried"},  # As replicas of before know it.
):
    """It is decided: the summary under `ballot`; and complete: the entries with the timestamps `complete`.

    `summary` comes along for a replica that may not have accepted it.
    `tombstone` (`buried` in the message) is the timestamp of a deletion, or the term that decided on nothing: every replica has held the decision of
    `ballot`, by which the object came to nothing, for the retry window, and it may be forgotten where none is newer.
    """

    object: str
    ballot: Ballot = NO_BALLOT
    horizon: Timestamp = ZERO
    summary: Summary | None = None
    complete: tuple[Timestamp, ...] = ()
    tombstone: Timestamp = ZERO


@final
class Scan(Struct, frozen=True, gc=False, tag="scan", omit_defaults=True, forbid_unknown_fields=True):
    """Name the objects whose names start with `prefix`, above `after` in order, at most `limit` of them, each with its
    summary and the newest of its entries. For whole-dictionary reads, for `trace` and for the live page.

    `newest` bounds the entries, and the decided events, of each object (left out: a page of entries, and every event).
    `payload` False asks for ids and timestamps alone, without summaries.
    """

    prefix: str
    after: str = ""
    limit: int = 100
    newest: int | None = None
    payload: bool = True


class Proposal(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The entries (ids and timestamps, no values) of the operation under an idempotency key, as a front end would have them."""

    key: str
    entries: tuple[Entry, ...]


@final
class Reserve(Struct, frozen=True, gc=False, tag="reserve", omit_defaults=True, forbid_unknown_fields=True):
    """Agree on the entries of operations under idempotency keys, each named once, before any of them is appended (DESIGN
    section 2, "Keys"): one consensus for each object and key, which no other operation takes part in.

    Without `accept` it asks: promise `ballot` for each key, unless a higher one is promised (refused, and nothing else is done),
    and tell what is held under it. Who holds nothing takes what is proposed there and then, with no ballot (ZERO). With `accept`:
    hold what is proposed under the ballot, unless a higher one is promised.
    """

    object: str
    ballot: Timestamp
    proposals: tuple[Proposal, ...]
    accept: bool = False


@final
class Changes(Struct, frozen=True, gc=False, tag="changes", omit_defaults=True, forbid_unknown_fields=True):
    """Name what changed after number `since`, up to `upto`: objects, and of each the entries that arrived, newest first. For
    replicas that catch up with this one.

    Objects come in an order of this replica's own. The answer goes on where an earlier one ended: within object number
    `place`, with entries that arrived before `below`; or, where that is 0, with the objects after it.
    """

    since: int
    upto: int
    place: int = 0
    below: int = 0
    limit: int = 1000


Request = Append | Collect | Accept | Commit | Scan | Reserve | Changes


class Row(Struct, frozen=True, gc=False, omit_defaults=True):
    """An entry in a replica's log, and whether it is known there to be complete."""

    entry: Entry
    complete: bool = False


class Status(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a replica has promised for an object; part of every reply about it."""

    fence: Timestamp = ZERO
    promised: Timestamp = ZERO
    accepted: Ballot = NO_BALLOT
    committed: Ballot = NO_BALLOT
    horizon: Timestamp = ZERO
    """Of the committed summary."""
    floor: Timestamp = ZERO
    """What is at or below this belongs to an earlier life of the object, which ended when its deletion was collected."""


@final
class Appended(Struct, frozen=True, gc=False, tag="appended", omit_defaults=True):
    """For each entry, whether it is stored (now or ever); the others were fenced, or, where they were written back, found no room."""

    status: Status
    stored: tuple[bool, ...]


class Aged(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    rename={"ended": "deletion"},  # As replicas of before know it.
):
    """What a replica has held for the retry window, by elapsed time: what its summary lists up to, and with, the last part of
    each of these ballots, NO_BALLOT where there is nothing in that list; and when the object came to nothing (`quorate.gc.collection.ended_at`),
    if that is decided."""

    recent: Ballot = NO_BALLOT
    ambiguous: Ballot = NO_BALLOT
    settled: Ballot = NO_BALLOT
    ended: Timestamp = ZERO


NOT_AGED: Final = Aged()


@final
class Collected(Struct, frozen=True, gc=False, tag="collected", omit_defaults=True):
    """The answer to a Collect. `summary` is None when it is the one the front end said it has.

    `rows` are in no particular order. Afterwards the front end knows the log in (window.after, upto] as of arrival
    number `since`, unless `more`: then arrivals were cut off at `since`, and it must ask again (in a Scan without payloads: then older
    entries are left out, because too many payloads would have been read).
    `events` (only in a Scan) are the decided events that the log keeps, by timestamp. `leases` (only in a Scan without
    payloads) counts what the summary keeps of a queue besides its log. `latest` (only where no window was asked for) is
    the highest timestamp that the replica holds of the object. `aged` (not in a Scan): what may be forgotten of the summary.
    """

    status: Status
    refused: bool = False
    summary: Summary | None = NOTHING
    rows: tuple[Row, ...] = ()
    since: int = 0
    upto: Timestamp = INFINITY
    more: bool = False
    events: tuple[tuple[Timestamp, str], ...] = ()
    leases: LeaseCounts = NO_LEASES
    latest: Timestamp = ZERO
    aged: Aged = NOT_AGED


@final
class Accepted(Struct, frozen=True, gc=False, tag="accepted", omit_defaults=True):
    """The answer to an Accept; `then` answers the Collect that rode along, if the accept was not refused."""

    status: Status
    refused: bool = False
    then: Collected | None = None


@final
class Committed(Struct, frozen=True, gc=False, tag="committed", omit_defaults=True):
    """The answer to a Commit."""

    status: Status


class Held(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the replica holds under a key now, the ballot of that (ZERO: it was the first to come), and the highest ballot that it
    has promised."""

    key: str
    ballot: Timestamp = ZERO
    entries: tuple[Entry, ...] = ()
    promised: Timestamp = ZERO
    refused: bool = False


@final
class Reserved(Struct, frozen=True, gc=False, tag="reserved", omit_defaults=True):
    """The answer to a Reserve: under which keys it is `other` than was asked for. Under all others the replica has promised the
    ballot, and holds what was proposed, under the ballot (`accept`) or none."""

    other: tuple[Held, ...] = ()


@final
class Scanned(Struct, frozen=True, gc=False, tag="scanned", omit_defaults=True):
    """Objects and what a Collect of each answers; `more` when there are further ones."""

    objects: tuple[tuple[str, Collected], ...]
    more: bool = False


class Change(Struct, frozen=True, gc=False, omit_defaults=True):
    """What changed of one object: the ballot that is committed now, and the timestamps of entries that arrived."""

    object: str
    committed: Ballot = NO_BALLOT
    arrived: tuple[Timestamp, ...] = ()


@final
class Changed(Struct, frozen=True, gc=False, tag="changed", omit_defaults=True):
    """The answer to a Changes. `latest` is the number of this replica's newest change. While there is `more`, `place` and
    `below` say where to go on."""

    latest: int
    objects: tuple[Change, ...] = ()
    place: int = 0
    below: int = 0
    more: bool = False


@final
class Refused(Struct, frozen=True, gc=False, tag="refused", omit_defaults=True):
    """The replica will not do it, and nothing was done. A `reason` that is a bound is a problem's name, too (`quorate.api_specs.problems`).

    `clock_offset_us` is how far the timestamp in question is ahead of the replica's clock (behind when negative).
    """

    reason: Literal[
        "clock-ahead",
        "clock-behind",
        "too-old",
        "bad-request",
        "too-many-keys",
        "log-full",
        "too-many-objects",
        "disk-full",
        "forbidden",
    ]
    detail: str
    clock_offset_us: int = 0


Reply = Appended | Collected | Accepted | Committed | Scanned | Reserved | Changed | Refused


class Batch(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """What one HTTP request carries to a replica. `cluster` is the hash of the sender's cluster file.

    Where operations are traced, `trace` has the place of each request in a trace: a traceparent (W3C Trace Context, version
    00), or an empty text for one that is not traced.
    """

    cluster: str
    requests: tuple[Request, ...]
    trace: tuple[str, ...] = ()


class BatchReply(Struct, frozen=True, gc=False, omit_defaults=True):
    """One reply per request, in order; for a batch that asks for much, to the first of them: the rest is to be sent again, and
    nothing was done of it.

    `clock` is at or above every timestamp that the replica stores; `now_us` is its physical clock when it answered;
    `began` is where `clock` stood when this incarnation opened its store: below what was seen before, if it was rolled back.
    `ahead`: up to there stores may hold timestamps that were given while clocks were ahead, until time has come there.
    """

    replica: str
    incarnation: str
    clock: Timestamp
    now_us: int
    replies: tuple[Reply, ...]
    began: Timestamp = ZERO
    ahead: Timestamp = ZERO


class ForwardedRequest(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A front end hands commands to the one embedded in a replica, which decides them with those of all others (DESIGN section
    2, "Forwarding"). Not idempotent, unlike all else in the protocol: it is sent once, and served once at most.

    `cluster` is the hash of the sender's cluster file, `incarnation` the only one of the replica that may serve it, and
    `id` a new timestamp of the sender. No command carries a key: what was answered under a key by the sender itself ("Empty"
    is remembered nowhere) must not be undone by a forwarded request that arrives later. `deadline_s` counts from its arrival.
    Without commands, and with no incarnation, it asks only which incarnation answers. `trace` is its place in a trace, as in a
    batch.
    """

    cluster: str
    id: Timestamp
    object: str
    incarnation: str = ""
    commands: tuple[ForwardableCommand, ...] = ()
    deadline_s: float = 0.0
    trace: str = ""


class Granted(Struct, frozen=True, gc=False, tag="granted", omit_defaults=True):
    """A command was decided, with this result: the entries of a dequeue or a peek, the leases of an acquire, what a settling did, or whether
    a compare-and-set took place.

    `answered` are the replicas that it rests on.
    """

    entries: tuple[Entry, ...] = ()
    leases: tuple[Leased, ...] = ()
    settled: SettleResult = SettleResult()
    swapped: bool = False
    answered: tuple[str, ...] = ()


class Denied(Struct, frozen=True, gc=False, tag="denied", omit_defaults=True):
    """A command was not decided. `definite`: it certainly was not and will not be, so that the sender may decide it."""

    detail: str
    definite: bool = False


class ForwardedReply(Struct, frozen=True, gc=False, omit_defaults=True):
    """The answer to a ForwardedRequest: one result per command, in order.

    `is_shared`: another front end asked about the same object just now.
    """

    replica: str
    incarnation: str
    results: tuple[Granted | Denied, ...] = ()
    is_shared: bool = False


class Announcement(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What a replica tells each other one, so that they can bear witness if its store is ever replaced by an older state of
    itself, or by another store (DESIGN section 4: rolled back, swapped). Front ends neither send nor see it.

    `cluster` is the hash of the sender's cluster file; `clock` is at or above every timestamp in its store, and never
    falls. `named`: the cluster file names `store`, so that one known before was replaced on purpose. `born` is new with each
    store ever made, whatever its id. `is_new`: it has never voted, and asks whether it may.
    """

    cluster: str
    replica: str
    store: str
    clock: Timestamp
    named: bool = False
    born: str = ""
    is_new: bool = False


class Testimony(Struct, frozen=True, gc=False):
    """The answer: the sender's store as it was known before, and how far it had come; empty when there was none.

    `noted`: what was announced will be remembered; else (its disk is full) it is to be told again. `now_us` is the witness's
    physical clock when it answered. `refuses` is the sentence that says why the witness itself does not vote under the cluster
    document that both hold; empty when it would.
    """

    store: str = ""
    clock: Timestamp = ZERO
    noted: bool = True
    now_us: int = 0
    born: str = ""
    refuses: str = ""


class ProbeRow(Struct, frozen=True, gc=False):
    """Whether a replica voted when it was asked, as a prober or another replica writes it down (docs/reference/measurements.md).

    `time_s` is when it was asked, in seconds since 1970; `latency_s` is how long the answer took, None without one.
    """

    replica: str
    time_s: float
    up: Literal[0, 1]
    latency_s: float | None


class ConfigurationNote(Struct, frozen=True):
    """Since when at the latest a replica is in a configuration, as it writes that down beside its probes: the cluster file in force, as JSON."""

    time_s: float
    document: dict[str, Any]


PROBE_LOG_PATH: Final = "/v1/probes"
PROBE_LOG_FILE: Final = re.compile(r"probes-([a-z0-9]+)-([0-9]{8}T[0-9]{6}Z)\.jsonl")
"""The name of a file of a replica's probe log: who observed, and when the file began (UTC)."""
