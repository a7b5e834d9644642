"""Endpoints of administrators (scope admin): which tokens are valid here, to read their list again, backups, and changes of the configuration.

Owns these paths. What they tell is what an operator needs who rotates tokens; no digest is among it.
"""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from fastapi import Query, Request
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ...api_specs.cluster import BadCluster, from_json
from ...api_specs.limits import BACKUP_SENT_S_MAX
from ..access.token_list import Access
from ..http.gate import CALLER
from ..http.problems import Refusal
from ..http.routers import AS_DIGITS, PROTOCOL_TAG, of_application, tagged
from ..logs.audit import audit
from ..service.copying import Copies, Copy
from .service_api import AskedMember

TOKENS_PATH: Final = "/v1/admin/tokens"
BACKUP_PATH: Final = "/v1/admin/backup"
CONFIGURATION_PATH: Final = "/v1/admin/configuration"
BACKUP_MEDIA_TYPE: Final = "application/octet-stream"
TAKEN_HEADER: Final = "Quorate-Backup"
"""Holds, as JSON, when and of which process the copy was taken (`quorate.replica.data_folder.backup.Taken`)."""
DIGEST_HEADER: Final = "Repr-Digest"
"""The SHA-256 of the body (RFC 9530)."""
NAMES_MAX: Final = 10_000
_CHUNK: Final = 256 * 1024
_log = logging.getLogger(__name__)


class ToldConfiguration(BaseModel):
    """A configuration of the cluster that comes after another one."""

    document: dict[str, Any] = Field(
        description="As `GET /v1/cluster` shows it",
        examples=[{"name": "local", "epoch": 2, "replicas": [{"id": "r1", "url": "http://127.0.0.1:8001"}]}],
    )


class InConfiguration(BaseModel):
    """The configuration that the replica is in, counted from 0."""

    epoch: int = Field(examples=[2])
    replica: str = Field(description="Which replica it is", examples=["r1"])


class Holdings(InConfiguration):
    """What the replica holds: the names of its objects in order, whether there are more, and how many idempotency keys of before it came to its
    configuration."""

    cluster: str = Field(description="The hash of that configuration", examples=["3f8a0c52b1d94e67"])
    store: str = Field(description="The id of its store", examples=["d41c7b0a9e6f3852"])
    voted: bool = Field(description="Whether that has ever voted", examples=[True])
    objects: list[str] = Field(examples=[["queue/jobs", "register/leader"]])
    more: bool = Field(examples=[False])
    keys: int = Field(examples=[0])
    awaits: list[str] = Field(
        description="Where the replica is new: other replicas that have not noted its store yet, before which it does not vote",
        examples=[[]],
    )


class KnownToken(BaseModel):
    """A token that is accepted. Both are empty for one without."""

    tag: str
    name: str
    scopes: list[str]
    """What it allows, with all that its scopes include."""
    rate: float
    """Requests a second."""
    objects: list[str]
    """Patterns of the objects that it is for; none for all objects."""
    http_only: bool
    """Whether it opens the HTTP API alone, and not the replica protocol, which the SDK speaks."""


class KnownTokens(BaseModel):
    """All tokens that the replica accepts; `asked` is false where it asks for none."""

    asked: bool = Field(examples=[True])
    tokens: list[KnownToken] = Field(
        examples=[
            [
                {
                    "tag": "k3v9",
                    "name": "shop",
                    "scopes": ["read", "write"],
                    "rate": 1000,
                    "objects": ["queue/shop.*"],
                    "http_only": False,
                }
            ]
        ]
    )


_BACKUP_ANSWER: Final[dict[str, Any]] = {
    "content": {BACKUP_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    "headers": {
        DIGEST_HEADER: {"description": "The SHA-256 of the body", "schema": {"type": "string"}},
        TAKEN_HEADER: {
            "description": "As JSON: the hash of the cluster file, the replica's wall clock when the copy was taken, in "
            "microseconds, and the incarnation",
            "schema": {"type": "string"},
        },
    },
}

Known = Annotated[Access, of_application("access")]
"""Whom the application that was asked lets in."""

admin_router: Final = tagged("administration")
"""The endpoints for operators."""
configuration_router: Final = tagged(PROTOCOL_TAG)
"""What `quorate change` asks each replica."""


@admin_router.get(TOKENS_PATH, response_model=KnownTokens)
async def get_tokens(access: Known) -> dict[str, Any]:
    """The tokens that this replica accepts now, without their secrets."""
    return _told(access)


@admin_router.post(TOKENS_PATH + "/read", response_model=KnownTokens)
async def reload_tokens(request: Request, access: Known) -> dict[str, Any]:
    """Read the list of tokens again now, as SIGHUP does. One that cannot be used changes nothing: the log says why."""
    audit("tokens-asked", by=request.scope[CALLER].shown)
    access.look(wanted=True)
    return _told(access)


@admin_router.post(BACKUP_PATH, response_class=StreamingResponse, responses={200: _BACKUP_ANSWER})
async def take_backup(
    request: Request, copies: Annotated[Copies, of_application("copies")]
) -> StreamingResponse:
    """For `quorate backup`, which checks what it gets. One is made at a time, and two are sent; the replica goes on serving
    meanwhile."""
    by = request.scope[CALLER].shown
    copy = await copies.take()
    audit("backup-taken", by=by, bytes=copy.bytes, sha256=copy.sha256)
    digest = base64.b64encode(bytes.fromhex(copy.sha256)).decode()
    headers = {
        "Content-Length": str(copy.bytes),
        DIGEST_HEADER: f"sha-256=:{digest}:",
        TAKEN_HEADER: msgspec.json.encode(copy.taken).decode(),
    }
    return _Sent(copy, headers)


@configuration_router.post(CONFIGURATION_PATH, response_model=InConfiguration)
async def follow_configuration(
    request: Request, body: ToldConfiguration, member: AskedMember
) -> dict[str, Any]:
    """For `quorate change`, which has the cluster choose it. The replica goes on to later configurations alone, and keeps its own limits and clock
    settings."""
    try:
        told = from_json(body.document)
        if told.number > member.document.number:  # Whoever waits for others tells it again and again.
            audit("configuration-told", by=request.scope[CALLER].shown)
        await member.configured.follow(told)
    except BadCluster as error:
        raise Refusal("malformed", str(error)) from None
    return {"epoch": member.document.number, "replica": member.id}


@configuration_router.get(CONFIGURATION_PATH, response_model=Holdings)
async def get_holdings(
    member: AskedMember,
    after: Annotated[str, Query(description="Names above this one, in order", examples=["queue/jobs"])] = "",
    limit: Annotated[
        int, Query(ge=1, le=NAMES_MAX, description="At most so many names", examples=[1000]), AS_DIGITS
    ] = NAMES_MAX,
) -> dict[str, Any]:
    """For `quorate change`: in which configuration the replica is, and what of the one before has to be carried over."""
    held = await member.configured.holding(after, limit)
    return {
        **held._asdict(),
        "replica": member.id,
        "store": member.folder.identity.store,
        "voted": not member.is_new,
        "awaits": [] if member.is_vouched_for else list(member.awaited),
    }


class _Sent(StreamingResponse):
    """A copy on its way, which is closed at the end, however that comes: the caller may go away, or be too slow."""

    def __init__(self, copy: Copy, headers: dict[str, str]) -> None:
        super().__init__(_chunks(copy), headers=headers, media_type=BACKUP_MEDIA_TYPE)
        self._copy: Final = copy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; it is cut off when that takes too long, and the caller sees that it is not whole."""
        try:
            async with asyncio.timeout(BACKUP_SENT_S_MAX):
                await super().__call__(scope, receive, send)
        except TimeoutError:
            _log.warning("a backup was cut off: it was under way for %g s", BACKUP_SENT_S_MAX)
        finally:
            self._copy.file.close()


async def _chunks(copy: Copy) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(copy.file.read, _CHUNK):
        yield chunk


def _told(access: Access) -> dict[str, Any]:
    return {"asked": not access.is_open, "tokens": [each.told for each in access.known.credentials]}
