"""Endpoints of administrators (scope admin): which tokens are valid here, to read their list again, and backups.

Owns these paths. What they tell is what an operator needs who rotates tokens; no digest is among it.
"""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from fastapi import Request
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ...api_specs.limits import BACKUP_SENT_S_MAX
from ..access.token_list import Access
from ..http.gate import CALLER
from ..http.routers import of_application, tagged
from ..logs.audit import audit
from ..service.copying import Copies, Copy

TOKENS_PATH: Final = "/v1/admin/tokens"
BACKUP_PATH: Final = "/v1/admin/backup"
BACKUP_MEDIA_TYPE: Final = "application/octet-stream"
TAKEN_HEADER: Final = "Quorate-Backup"
"""Holds, as JSON, when and of which process the copy was taken (`quorate.replica.data_folder.backup.Taken`)."""
DIGEST_HEADER: Final = "Repr-Digest"
"""The SHA-256 of the body (RFC 9530)."""
_CHUNK: Final = 256 * 1024
_log = logging.getLogger(__name__)


class KnownToken(BaseModel):
    """A token that is accepted. Both are empty for one without."""

    tag: str
    name: str
    scopes: list[str]
    """What it allows, with all that its scopes include."""
    rate: float
    """Requests a second."""


class KnownTokens(BaseModel):
    """All tokens that the replica accepts; `asked` is false where it asks for none."""

    asked: bool = Field(examples=[True])
    tokens: list[KnownToken] = Field(
        examples=[[{"tag": "k3v9", "name": "shop", "scopes": ["read", "write"], "rate": 1000}]]
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
"""The endpoints."""


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
    tokens = [
        {"tag": each.tag, "name": each.name, "scopes": sorted(each.scopes), "rate": each.rate_max}
        for each in access.known.credentials
    ]
    return {"asked": not access.is_open, "tokens": tokens}
