"""What a caller's scopes allow: which scope a request needs, and what of the replica protocol it opens. Pure.

Owns both tables. A write token may do all that a front end does: such callers are trusted to keep to the protocol, and
`docs/explanation/security.md` says what one that does not can do. What is checked here is what honest front ends never do.
"""

import re
from collections.abc import Callable
from typing import Final

from ...adts.types.catalogue import CONFIGURATION
from ...api_specs.cluster import ClusterDocument
from ...api_specs.commands import AcquireCommand
from ...api_specs.messages import (
    Accept,
    Append,
    Batch,
    Changes,
    Collect,
    Commit,
    ForwardedRequest,
    Refused,
    Request,
    Reserve,
    Scan,
)
from ...api_specs.outboxes import MARK
from ...api_specs.problems import TYPE_PREFIX
from ...api_specs.tokens import ScopeName
from ...timestamps.ballot import Ballot, term_of
from ...timestamps.timestamp import ZERO, Timestamp, site
from .credentials import Credential, TokenList

OPEN_PREFIX: Final = "/v1/health/"
"""What needs no token."""
DOCUMENT_PATH: Final = "/v1/openapi.json"
PROTOCOL_DOCUMENT_PATH: Final = "/replica/v1/openapi.json"
PUBLIC_PATHS: Final = re.compile(
    f"{re.escape(DOCUMENT_PATH)}|{re.escape(PROTOCOL_DOCUMENT_PATH)}|/docs(/.*)?|/ui(/.*)?|{re.escape(TYPE_PREFIX)}[^/]*"
)
"""Open as well: the same for every cluster. A generator or a browser that first looks at the document has no token to send,
the live page asks for the one that its reader has, and who is refused for want of a token is pointed to the type of the problem."""
_BY_PATH: Final[dict[str, ScopeName]] = {
    "/replica/v1/batch": "read",  # what in it changes something is looked at when it has been decoded
    "/replica/v1/forward": "write",
    "/replica/v1/announcement": "replica",
}
_CONFIGURING: Final = "scope admin is needed to change the configuration of the cluster"
_PROTOCOL_PREFIX: Final = "/replica/"
ADMIN_PREFIX: Final = "/v1/admin/"
_TYPES: Final = {"queues": "queue", "registers": "register", "dictionaries": "dictionary"}
_OF_OBJECT: Final = re.compile(rf"/v1/(?:({'|'.join(_TYPES)})|objects/([^/]+))/([^/]+)(?:/.*)?")
_OF_CLUSTER: Final = frozenset({"/v1/cluster", "/v1/status", "/replica/v1/batch", "/replica/v1/forward"})
"""What a token for some objects may ask besides these; whose objects are in a message is looked at when it has been decoded."""
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def scope_needed(method: str, path: str) -> ScopeName:
    """The scope that a request needs; none but those under OPEN_PREFIX and of PUBLIC_PATHS need no token."""
    if (by_path := _BY_PATH.get(path)) is not None:
        return by_path
    if path.startswith(ADMIN_PREFIX):
        return "admin"
    return "read" if method in _READING else "write"


def path_problem(path: str, caller: Credential, matched_by: Callable[[str], str]) -> str | None:
    """Why `caller`, whose token is for some objects or the HTTP API alone, must not ask there; None when it may. `matched_by`: see
    `ClusterDocument.matched_by`."""
    if caller.is_http_only and path.startswith(_PROTOCOL_PREFIX):
        return "the token is for the HTTP API alone: the SDK and replicas need one without via=http"
    if not caller.objects or path in _OF_CLUSTER:
        return None
    if (place := _OF_OBJECT.fullmatch(path)) is None:
        return f"this shows more than the objects that the token is for ({_listed(caller)})"
    name = matched_by(f"{_TYPES.get(place[1]) or place[2]}/{place[3]}")
    return None if caller.may_use(name) else _not_for(name, caller)


def foreign_requests(batch: Batch, caller: Credential, document: ClusterDocument) -> dict[int, Refused]:
    """The requests of a batch, by place, that are about objects which the caller's token is not for."""
    if not caller.objects:
        return {}
    problems = ((place, _object_problem(each, caller, document)) for place, each in enumerate(batch.requests))
    return {place: Refused("forbidden", problem) for place, problem in problems if problem is not None}


def _object_problem(request: Request, caller: Credential, document: ClusterDocument) -> str | None:
    if isinstance(request, Changes):
        return "scope replica is needed to ask for the changes of all objects"
    if not isinstance(request, Scan):
        name = document.matched_by(request.object)
        return None if caller.may_use(name) else _not_for(name, caller)
    is_of_outboxes = document.has_outboxes and MARK in request.prefix
    if request.prefix.count("/") > 1:
        name = document.matched_by(request.prefix)
        return None if caller.may_use(name) else _not_for(name, caller)
    return (
        None
        if caller.may_list(request.prefix) and not is_of_outboxes
        else _not_for(f"{request.prefix}*", caller)
    )


def _not_for(name: str, caller: Credential) -> str:
    return f"the token is for {_listed(caller)}, and not for {name}"


def _listed(caller: Credential) -> str:
    return ", ".join(caller.objects)


def is_public(method: str, path: str) -> bool:
    """Whether a request asks for what is the same for every cluster."""
    return method in _READING and PUBLIC_PATHS.fullmatch(path) is not None


def batch_problem(batch: Batch, caller: Credential, known: TokenList) -> str | None:
    """Why `caller` must not send this batch; None when it may."""
    may_write = "write" in caller.scopes
    is_replica = "replica" in caller.scopes
    may_configure = is_replica or "admin" in caller.scopes
    if is_replica and not known.binds_sites:
        return None  # The usual case of a replica that asks for no token, or for one alone.
    for request in batch.requests:
        if not may_write and changes(request):
            return (
                "scope write is needed for this: the token may only read, and an answer that must first be settled "
                "is for the HTTP API (GET /v1/…)"
            )
        if not may_configure and getattr(request, "object", "") == CONFIGURATION and changes(request):
            return _CONFIGURING
        if isinstance(request, Commit) and request.tombstone != ZERO and not is_replica:
            return "scope replica is needed to collect a deleted key: replicas do it among themselves"
        if any(known.is_foreign(caller, site(stamp)) for stamp in _own_stamps(request)):
            return _foreign(caller)
    return None


def forwarding_problem(
    request: ForwardedRequest, caller: Credential, known: TokenList, document: ClusterDocument
) -> str | None:
    """Why `caller` must not send this forwarded request; None when it may."""
    if not caller.may_use(name := document.matched_by(request.object)):
        return _not_for(name, caller)
    if request.object == CONFIGURATION and not caller.scopes & {"admin", "replica"}:
        return _CONFIGURING
    holders = [command.holder for command in request.commands if isinstance(command, AcquireCommand)]
    if "replica" in caller.scopes:
        holders = []  # Replicas ask for whoever called them.
    is_foreign = any(known.is_foreign(caller, whose) for whose in (site(request.id), *holders))
    return _foreign(caller) if is_foreign else None


def _foreign(caller: Credential) -> str:
    if caller.tag:
        return (
            f"the token's sites begin with {caller.tag}, and this one does not: connect with the same token"
        )
    return "the site belongs to another token: connect anew"


def may_hand_on(request: Append | Accept | Commit, caller: Credential) -> bool:
    """Whether calls on an object of one's own type, and records of an outbox, are taken as they are. What is stored must come to other
    replicas, whichever class it was stored under: it is written back by replicas, and by who carries it to another configuration. No other front end writes
    such calls back, and none but a relay decides what an outbox keeps."""
    is_stored = not isinstance(request, Append) or request.attempt == "repair"
    return is_stored and not caller.scopes.isdisjoint(("admin", "replica"))


def changes(request: Request) -> bool:
    """Whether it changes anything at the replica, promises and fences included."""
    if isinstance(request, Collect):
        return request.ballot is not None or request.fence != ZERO or request.fence_next != 0
    return not isinstance(request, (Scan, Changes))


def _own_stamps(request: Request) -> list[Timestamp]:
    """The timestamps that its sender's own clock must have given: of new entries, and of its terms.

    Not those of entries that are sent again: a reader writes back those of others, and under an idempotency key any front
    end sends those that another one reserved.
    """
    match request:
        case Append(attempt="first"):
            return [entry.t for entry in request.entries]
        case Collect():
            return _term(request.ballot)
        case Reserve():
            return [request.ballot]
        case Accept():
            return [*_term(request.ballot), *(_term(request.then.ballot) if request.then else [])]
        case _:
            return []


def _term(ballot: Ballot | None) -> list[Timestamp]:
    return [] if ballot is None else [term_of(ballot)]
