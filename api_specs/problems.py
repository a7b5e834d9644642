"""Problems: every error that crosses the wire, as documents of RFC 9457. Pure.

Owns their names, statuses and advice, in one table. `definite` says whether it is certain that the operation did not
take effect and will not; None where that depends on the case, which then says so.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from .messages import NOT_DECODED

MEDIA_TYPE: Final = "application/problem+json"
TYPE_PREFIX: Final = "/problems/"

Limit = Literal[
    "too-many-keys",
    "too-many-leases",
    "too-many-dead-letters",
    "log-full",
    "too-many-objects",
    "disk-full",
    "listing-too-large",
]
"""Bounds that an operation may meet: it was not done, and may be repeated when there is room again."""
LIMITS: Final[tuple[Limit, ...]] = get_args(Limit)


class Kind(NamedTuple):
    """A row of the table. `advice` is what the caller should do; most problems are `definite`."""

    status: int
    title: str
    advice: str
    definite: bool | None = True


KINDS: Final[Mapping[str, Kind]] = {
    "malformed": Kind(400, "The request is malformed", "Correct the request; repeating it will not help."),
    "bad-name": Kind(
        400,
        "The name is not allowed",
        "Use 1 to 200 of the characters A-Z a-z 0-9 . _ ~ @ = : + - and no dot in front; a dictionary's key may have others, too, which take more room.",
    ),
    "unauthorized": Kind(
        401,
        "No valid token",
        "Send the header 'Authorization: Bearer TOKEN' with a token that this cluster accepts.",
    ),
    "forbidden": Kind(
        403,
        "The token does not allow this",
        "Use a token that allows what the detail names (`quorate token new` makes one).",
    ),
    "foreign-origin": Kind(
        403,
        "A page of another origin must not do this",
        "Call from a program, or from a page that this replica served.",
    ),
    "not-found": Kind(
        404, "Nothing is stored there", "Check the name and the key, or store something there first."
    ),
    "no-such-path": Kind(
        404,
        "There is no such path",
        "See /docs for the paths that there are. A name or a key has no / in it.",
    ),
    "method-not-allowed": Kind(
        405, "The path has no such method", "Use one of the methods in the Allow header."
    ),
    "timeout": Kind(408, "The request did not arrive in time", "Send the request again."),
    "wrong-cluster": Kind(
        409,
        "Sender and replica hold different cluster files",
        "Clients go on to a later configuration by themselves (GET /v1/cluster shows the replica's). Where the epochs are the same, give both the same "
        "cluster file and restart the one that changed.",
    ),
    "other-protocol": Kind(
        409,
        "Sender and replica speak different versions of the replica protocol",
        "Install a release that speaks a version of the other side: the detail names both. GET /v1/status shows the replica's.",
    ),
    "refused": Kind(
        409, "The replicas refused the operation", "See the detail: it names what to correct.", None
    ),
    "too-large": Kind(413, "The request body is too large", "Send less at a time."),
    "url-too-long": Kind(414, "The URL is too long", "Send what is long in the body."),
    "unsupported-media-type": Kind(
        415, "The media type is not supported", "Send application/json (or application/msgpack to a replica)."
    ),
    "wrong-host": Kind(
        421,
        "The request is meant for another host",
        "A replica that listens on this machine alone is addressed as localhost, 127.0.0.1, [::1] or as its URL says.",
    ),
    "too-many-requests": Kind(429, "Too many requests", "Wait as long as Retry-After says, then try again."),
    "too-many-keys": Kind(
        429,
        "As much is remembered of keys, or of items just taken, as may be",
        "Repeat the operation when the retry window of some of it has passed. Send it without a key only if no earlier attempt may be under way.",
    ),
    "too-many-leases": Kind(
        429,
        "The queue has as many items delivered as it may",
        "Acknowledge or release some, or try again when some are due; or purge delayed ones, or dead letters, among which those that were delivered too often then find room.",
    ),
    "too-many-dead-letters": Kind(
        429,
        "The queue has as many dead letters as it may",
        "Requeue or purge some, or reject without a dead letter.",
    ),
    "log-full": Kind(
        429,
        "The object's log has as many entries as it may",
        "Take items out, or wait until others do, then try again.",
    ),
    "listing-too-large": Kind(
        429,
        "The dictionary is larger than a listing may be",
        "List it in pages, or in smaller ones, or delete keys; `listing_bytes_max` in the cluster file sets the bound.",
    ),
    "unknown-coding": Kind(
        501, "The body comes in a coding that is not known", "Send it as it is, or chunked."
    ),
    "http-version": Kind(
        505, "The version of HTTP is not known", "Send the request as HTTP/1.1 or HTTP/1.0."
    ),
    "head-too-large": Kind(431, "The request's headers are too large", "Send fewer or shorter ones."),
    "key-reused": Kind(
        422,
        "The Idempotency-Key was used with other arguments",
        "Use a new key for another operation; repeat the first one's arguments to get its answer.",
    ),
    "internal": Kind(
        500,
        "The replica met an error of its own",
        "Report it with the replica's log; an operation with an Idempotency-Key may be repeated.",
        False,
    ),
    "type-not-loaded": Kind(
        501,
        "The replica cannot run this type's code",
        "Ask another replica, or mend what the detail names, and restart this one.",
    ),
    "unavailable": Kind(
        503,
        "No quorum of replicas answered in time",
        "Try again; GET /v1/health/ready of each replica shows which are missing.",
        None,
    ),
    "store-lost": Kind(
        503,
        "The replica has lost its store and does not vote",
        "Use another replica; give this one its own data folder back, or make it a new store with `quorate replace`.",
    ),
    "other-configuration": Kind(
        503,
        "The replica must not vote in this configuration of the cluster",
        "Do what the detail says: put back the lines that it names, or stop a replica that was removed.",
    ),
    "starting": Kind(
        503,
        "The replica has only just started",
        "Wait as long as Retry-After says, then try again; the other replicas serve meanwhile.",
    ),
    "stopping": Kind(
        503,
        "The replica is stopping",
        "Use another replica; this one takes no new requests until it has been started again.",
    ),
    "overloaded": Kind(
        503, "The replica has too much to do", "Wait as long as Retry-After says, then try again."
    ),
    "storage-failed": Kind(
        503,
        "The replica's database failed",
        "Use another replica; make room on the disk of this one, or restart it when the detail says so.",
        False,
    ),
    "too-many-objects": Kind(
        507,
        "The replica has as many objects as it may",
        "Delete keys of dictionaries that are not needed, or give the replica more with --objects-max.",
    ),
    "disk-full": Kind(
        507,
        "The replica takes in nothing more, for its disk would be full",
        "Take items out or delete some, make room on the replica's disk, or give it more with --disk-bytes-max.",
    ),
    "no-room": Kind(
        507,
        "The replica's disk has no room for this",
        "Make room on the replica's disk, or back it up while it is stopped.",
    ),
    "outcome-unknown": Kind(
        504,
        "The operation may or may not have taken effect",
        "Repeat it with the same Idempotency-Key, or look at the object before doing it again.",
        False,
    ),
}


class Problem(Struct, frozen=True):
    """A problem document. `type` is relative to the server and stable; `detail` is about this case."""

    type: Annotated[
        str,
        Meta(description="Which problem it is; GET it to learn more", examples=[TYPE_PREFIX + "malformed"]),
    ]
    title: Annotated[str, Meta(description="What this type of problem is, in a few words")]
    status: Annotated[int, Meta(description="The HTTP status")]
    detail: Annotated[str, Meta(description="What was wrong in this case; for people, not for programs")]
    advice: Annotated[str, Meta(description="What the caller should do")]
    definite: Annotated[
        bool,
        Meta(
            description="true: it is certain that the operation did not take effect and will not. "
            "false: it may have, or may still do so."
        ),
    ]
    epoch: Annotated[
        int | UnsetType,
        Meta(
            description="With wrong-cluster: which configuration of its cluster the replica is in, counted from 0"
        ),
    ] = UNSET

    @property
    def name(self) -> str:
        """The row of the table that it is an instance of."""
        return self.type.removeprefix(TYPE_PREFIX)


_DECODE: Final = msgspec.json.Decoder(Problem).decode


def as_limit(name: str) -> Limit | None:
    """The bound that the name of a problem tells of, if it tells of one."""
    return next((limit for limit in LIMITS if limit == name), None)


def problem(
    name: str, detail: str, *, definite: bool | None = None, epoch: int | UnsetType = UNSET
) -> Problem:
    """The document of problem `name` (a key of KINDS). `definite` must be given where the table leaves it open."""
    kind = KINDS[name]
    certain = kind.definite if definite is None else definite
    assert certain is not None, f"say whether this {name} is definite"
    return Problem(TYPE_PREFIX + name, kind.title, kind.status, detail, kind.advice, certain, epoch)


def parse(body: bytes) -> Problem | None:
    """The problem in a response body, or None when it is not such a document."""
    try:
        return _DECODE(body)
    except NOT_DECODED:
        return None


def as_json(document: Problem) -> dict[str, Any]:
    """The document as JSON data."""
    data: dict[str, Any] = msgspec.to_builtins(document)
    return data
