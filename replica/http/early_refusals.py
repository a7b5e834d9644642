"""Problems as answers to what the application never sees: a head that is too large, what is no HTTP, one connection too many.

Owns their bytes. Must not know why they are sent.
"""

from http import HTTPStatus

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from ...api_specs.problems import MEDIA_TYPE, Problem
from .problems import RETRY_AFTER_S


def refusing(refused: Problem) -> ASGIApp:
    """An application that answers so, whatever is asked."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        body = msgspec.json.encode(refused)
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return refuse


def whole(refused: Problem) -> bytes:
    """A problem as an answer, from the status line on."""
    body = msgspec.json.encode(refused)
    lines = [
        f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}",
        f"content-type: {MEDIA_TYPE}",
        f"content-length: {len(body)}",
        "connection: close",
        *([f"retry-after: {RETRY_AFTER_S}"] if refused.name == "overloaded" else []),
    ]
    return "\r\n".join([*lines, "\r\n"]).encode() + body
