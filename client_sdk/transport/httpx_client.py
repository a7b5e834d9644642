"""HTTP by httpx: for one-off requests, and as the other opinion on the quick client. The only module that imports httpx.

Owns the mapping of its exceptions to Unanswered, and whether a failure is definite. Must not know what a body means.
"""

import asyncio
from typing import Final

import httpx

from ...api_specs.messages import PROTOCOL_HEADER, SPOKEN
from ..protocol.core.values import Unanswered
from .http_answer import JSON, HttpAnswer, unanswered
from .ports import Done, GiveUp, post_task
from .tls import SYSTEM_TRUST, ClientTls

CONNECT_TIMEOUT_S: Final = 1.0
KEEPALIVE_S: Final = 4.0
"""Below uvicorn's 5 s, so that a connection is seldom used just when the replica closes it."""

NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)
"""These mean that the replica never got the whole request. After any other, it may have acted on it."""


class HttpxClient:
    """A connection pool of httpx. Belongs to one event loop."""

    def __init__(self, token: str | None, tls: ClientTls = SYSTEM_TRUST) -> None:
        headers = {"Accept-Encoding": "identity", PROTOCOL_HEADER: SPOKEN.text}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=50, keepalive_expiry=KEEPALIVE_S)
        self._client: Final = httpx.AsyncClient(
            headers=headers, limits=limits, trust_env=False, follow_redirects=False, verify=tls.context()
        )

    async def request(
        self,
        who: str,
        url: str,
        *,
        timeout_s: float,
        bytes_max: int,
        body: bytes | None = None,
        media_type: str = JSON,
    ) -> HttpAnswer | Unanswered:
        """See HttpClient."""
        timeout = httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))
        headers = {"Accept": media_type}
        if body is not None:
            headers["Content-Type"] = media_type
        method = "GET" if body is None else "POST"
        try:
            request = self._client.build_request(method, url, content=body, headers=headers, timeout=timeout)
            async with asyncio.timeout(timeout_s):
                return await self._answer(request, bytes_max)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            return told(who, error)

    def send(
        self,
        who: str,
        url: str,
        done: Done[HttpAnswer | Unanswered],
        *,
        timeout_s: float,
        bytes_max: int,
        body: bytes | None = None,
        media_type: str = JSON,
    ) -> GiveUp:
        """See HttpClient."""
        request = self.request(
            who, url, timeout_s=timeout_s, bytes_max=bytes_max, body=body, media_type=media_type
        )
        return post_task(request, done)

    async def _answer(self, request: httpx.Request, bytes_max: int) -> HttpAnswer:
        """The answer, whose body ends at `bytes_max` with an error rather than fill the memory."""
        response = await self._client.send(request, stream=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > bytes_max:
                    raise _TooLong(f"the answer is longer than {bytes_max} bytes")
            kind, location = (response.headers.get(name, "") for name in ("content-type", "location"))
            return HttpAnswer(response.status_code, kind, location, bytes(body))
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        """See HttpClient."""
        await self._client.aclose()


class _TooLong(httpx.StreamError):
    """The body is longer than any right answer."""


def told(who: str, error: Exception) -> Unanswered:
    """What an exception of httpx, or of the system below it, tells of a request."""
    sentence = str(error) or type(error).__name__
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        sentence = f"no answer in time ({type(error).__name__})"
    return unanswered(who, sentence, definite=isinstance(error, NEVER_SENT))
