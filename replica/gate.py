"""What every HTTP request passes first: token, load, body size; and what no response leaves without: a form.

Owns what holds for all endpoints. Must not know any of them, but those that are open to everyone. ASGI, no framework.
"""

import asyncio
import hmac
import re
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quorate.api_specs.limits import Limits
from quorate.replica.responses import Refusal, problem_of, problem_response

CONCURRENT_MAX: Final = 4000
BODY_TIMEOUT_S: Final = 30.0
OPEN_PREFIX: Final = "/v1/health/"
DOCUMENT_PATH: Final = "/v1/openapi.json"
PUBLIC_PATHS: Final = re.compile(re.escape(DOCUMENT_PATH) + "|/docs(/.*)?|/ui(/.*)?")
"""Open as well: the same for every cluster. A generator or a browser that first looks at the document has no token to send,
and the live page asks for the one that its reader has."""
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class _Gone(Exception):
    """The client went away."""


class Crowd:
    """How many requests are under way, at all gates that share it."""

    def __init__(self) -> None:
        self.count = 0


class Gate:
    """ASGI middleware. A body is handed on only once it is whole and known to be within the limit."""

    def __init__(self, app: ASGIApp, *, limits: Limits, token: str | None, crowd: Crowd) -> None:
        self._app: Final = app
        self._crowd: Final = crowd
        self._body_bytes_max: Final = limits.body_bytes_max
        self._credentials: Final = None if token is None else b"Bearer " + token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; lifespan events pass through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def noting_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        self._crowd.count += 1
        try:
            await self._pass(scope, receive, noting_send)
        except _Gone:
            return
        except Exception as error:
            # The outer border: whatever goes wrong inside, known or not, leaves as a problem document (which says
            # that nothing is certain, where the error is unknown; `problem_of` logs that one).
            document = problem_of(error)
            if started:
                raise  # Half an answer has gone: the server can only cut the connection.
            await problem_response(document)(scope, receive, send)
        finally:
            self._crowd.count -= 1

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if not scope["path"].startswith(OPEN_PREFIX):
            if not _is_public(scope):
                self._check_token(headers.get(b"authorization", b""))
            if self._crowd.count > CONCURRENT_MAX:
                raise Refusal("overloaded", f"{CONCURRENT_MAX} requests are under way already")
        if scope["method"] in _BODILESS:
            await self._app(scope, receive, send)
            return
        self._check_length(headers.get(b"content-length"))
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = await self._body(receive)
        except TimeoutError:
            raise Refusal("timeout", f"the body took longer than {BODY_TIMEOUT_S:g} s") from None
        await self._app(scope, _Replay(body, receive), send)

    def _check_token(self, given: bytes) -> None:
        if self._credentials is not None and not hmac.compare_digest(given, self._credentials):
            raise Refusal("unauthorized", "this replica asks for a token, and none or another one was sent")

    def _check_length(self, length: bytes | None) -> None:
        if (
            length is not None
            and length.isdigit()
            and (len(length) > 18 or int(length) > self._body_bytes_max)
        ):
            raise self._too_large()

    async def _body(self, receive: Receive) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self._body_bytes_max:
                raise self._too_large()
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    def _too_large(self) -> Refusal:
        return Refusal("too-large", f"a body may have {self._body_bytes_max} bytes (body_bytes_max)")


def _is_public(scope: Scope) -> bool:
    return scope["method"] in _BODILESS and PUBLIC_PATHS.fullmatch(scope["path"]) is not None


class _Replay:
    """Hands the whole body to the application, then what the client does next (which is to go away)."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive: Final = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}
