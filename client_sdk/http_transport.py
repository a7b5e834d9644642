"""HTTP to replicas: batches out, replies in. The only module that imports httpx.

Owns the mapping of everything that HTTP can do (exceptions, statuses, problem documents, malformed bodies) to Unanswered,
and whether a failure is definite. Must not know what a batch means. Redirects are not followed: the token would go along.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, Literal

import httpx
import msgspec
from msgspec import Struct

from quorate.api_specs.cluster import BadCluster as BadDocument
from quorate.api_specs.cluster import ClusterDocument, from_json
from quorate.api_specs.limits import REPLY_BODIES_MAX
from quorate.api_specs.messages import NOT_DECODED, Announcement, Ask, Batch, BatchReply, Served, Testimony
from quorate.client_sdk.effects import Unanswered
from quorate.client_sdk.errors import BadCluster, RefusedByReplicas, Unavailable

MSGPACK: Final = "application/msgpack"
JSON: Final = "application/json"
BATCH_PATH: Final = "/replica/v1/batch"
ASK_PATH: Final = "/replica/v1/ask"
ANNOUNCEMENT_PATH: Final = "/replica/v1/announcement"
CLUSTER_PATH: Final = "/v1/cluster"

CONNECT_TIMEOUT_S: Final = 1.0
KEEPALIVE_S: Final = 4.0
"""Below uvicorn's 5 s, so that a connection is seldom used just when the replica closes it."""
TESTIMONY_BYTES_MAX: Final = 1024
CLUSTER_BYTES_MAX: Final = 8 * 1024 * 1024
DETAIL_CHARS_MAX: Final = 300

NEVER_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
)
"""These mean that the replica never got the whole request. After any other, it may have acted on it."""

NOTHING_DONE: Final = frozenset({"store-lost", "starting", "overloaded"})
"""Problems that a replica answers with before it does anything, though their status (503) does not say so."""


class _Problem(Struct, frozen=True):
    """What is read of a problem document (RFC 9457); the rest is left alone."""

    type: str = ""
    title: str = ""
    detail: str = ""
    advice: str = ""
    definite: bool | None = None

    @property
    def name(self) -> str:
        """The last part of the type, whatever stands before it."""
        return self.type.replace("#", "/").replace(":", "/").rpartition("/")[2]


class _ClusterReply(Struct, frozen=True):
    """The answer of `GET /v1/cluster`."""

    hash: str
    document: msgspec.Raw


class HttpTransport:
    """A connection pool to the replicas at `urls` (by replica id). Belongs to one event loop."""

    def __init__(
        self,
        urls: Mapping[str, str],
        *,
        token: str | None = None,
        encoding: Literal["msgpack", "json"] = "msgpack",
        body_bytes_max: int,
    ) -> None:
        self._base_urls: Final = {replica: url.rstrip("/") for replica, url in urls.items()}
        self._urls: Final = {replica: url + BATCH_PATH for replica, url in self._base_urls.items()}
        self._content_type: Final = MSGPACK if encoding == "msgpack" else JSON
        self._reply_bytes_max: Final = REPLY_BODIES_MAX * body_bytes_max
        self._client: Final = _client(token)

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """See Transport."""
        encode = msgspec.msgpack.encode if self._content_type == MSGPACK else msgspec.json.encode
        request = self._client.build_request(
            "POST",
            self._urls[replica],
            content=encode(batch),
            headers={"Content-Type": self._content_type, "Accept": self._content_type},
            timeout=_timeout(timeout_s),
        )
        try:
            async with asyncio.timeout(timeout_s):
                response, body = await _sent(self._client, request, self._reply_bytes_max)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            return unanswered(replica, error)
        return _answer(replica, response, body)

    async def ask(self, replica: str, ask: Ask, timeout_s: float) -> Served | Unanswered:
        """See Asker. Only what any copy of the ask would meet with is definite: a refusal of what it says, or no way."""
        request = self._client.build_request(
            "POST",
            self._base_urls[replica] + ASK_PATH,
            content=msgspec.msgpack.encode(ask),
            headers={"Content-Type": MSGPACK, "Accept": MSGPACK},
            timeout=_timeout(timeout_s),
        )
        try:
            async with asyncio.timeout(timeout_s):
                response, body = await _sent(self._client, request, self._reply_bytes_max)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            return unanswered(replica, error)
        if response.status_code != httpx.codes.OK:
            refusal = _refusal(replica, response, body)
            return Unanswered(refusal.detail, refused=refusal.refused, definite=refusal.refused)
        try:
            return msgspec.msgpack.decode(body, type=Served)
        except NOT_DECODED as error:
            return Unanswered(f"{replica}: its answer is malformed: {error}"[:DETAIL_CHARS_MAX])

    async def announce(
        self, replica: str, announcement: Announcement, timeout_s: float
    ) -> Testimony | Unanswered:
        """What the replica knows of the sender's store; for replicas among themselves."""
        request = self._client.build_request(
            "POST",
            self._base_urls[replica] + ANNOUNCEMENT_PATH,
            content=msgspec.json.encode(announcement),
            headers={"Content-Type": JSON},
            timeout=_timeout(timeout_s),
        )
        try:
            async with asyncio.timeout(timeout_s):
                response, body = await _sent(self._client, request, TESTIMONY_BYTES_MAX)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            return unanswered(replica, error)
        if response.status_code != httpx.codes.OK:
            return _refusal(replica, response, body)
        try:
            return msgspec.json.decode(body, type=Testimony)
        except NOT_DECODED as error:
            return Unanswered(f"{replica}: its answer is malformed: {error}"[:DETAIL_CHARS_MAX])

    async def aclose(self) -> None:
        """See Transport."""
        await self._client.aclose()


async def fetch_cluster(url: str, *, token: str | None, timeout_s: float) -> ClusterDocument:
    """The cluster document that the replica at `url` serves.

    Raises Unavailable when it does not answer, RefusedByReplicas when it will not tell, BadCluster when what it tells is
    no valid cluster document.
    """
    place = url.rstrip("/") + CLUSTER_PATH
    try:
        async with asyncio.timeout(timeout_s), _client(token) as client:
            request = client.build_request("GET", place, timeout=_timeout(timeout_s))
            response, body = await _sent(client, request, CLUSTER_BYTES_MAX)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
        raise Unavailable(unanswered(place, error).detail, definite=True) from None
    if response.status_code != httpx.codes.OK:
        raise RefusedByReplicas(_refusal(place, response, body).detail, definite=True)
    try:
        reply = msgspec.json.decode(body, type=_ClusterReply)
        document = from_json(msgspec.json.decode(reply.document))
    except (*NOT_DECODED, BadDocument) as error:
        raise BadCluster(f"{place}: no cluster document that can be used: {error}") from None
    if document.hash != reply.hash:
        raise BadCluster(
            f"{place}: the document's hash differs: client and replica are of different versions"
        )
    return document


class _TooLong(httpx.StreamError):
    """The body is longer than any right answer."""


def unanswered(replica: str, error: Exception) -> Unanswered:
    """What an exception of httpx, or of the system below it, tells of an exchange."""
    sentence = str(error) or type(error).__name__
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        sentence = f"no answer in time ({type(error).__name__})"
    return Unanswered(f"{replica}: {sentence}"[:DETAIL_CHARS_MAX], definite=isinstance(error, NEVER_SENT))


def _client(token: str | None) -> httpx.AsyncClient:
    headers = {"Accept-Encoding": "identity"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=50, keepalive_expiry=KEEPALIVE_S)
    return httpx.AsyncClient(headers=headers, limits=limits, trust_env=False, follow_redirects=False)


def _timeout(timeout_s: float) -> httpx.Timeout:
    return httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S))


async def _sent(
    client: httpx.AsyncClient, request: httpx.Request, bytes_max: int
) -> tuple[httpx.Response, bytes]:
    """The response and its body, which ends at `bytes_max` with an error rather than fill the memory."""
    response = await client.send(request, stream=True)
    try:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > bytes_max:
                raise _TooLong(f"the answer is longer than {bytes_max} bytes")
        return response, bytes(body)
    finally:
        await response.aclose()


def _answer(replica: str, response: httpx.Response, body: bytes) -> BatchReply | Unanswered:
    if response.status_code != httpx.codes.OK:
        return _refusal(replica, response, body)
    is_json = response.headers.get("content-type", "").partition(";")[0].strip() == JSON
    try:
        if is_json:
            return msgspec.json.decode(body, type=BatchReply)
        return msgspec.msgpack.decode(body, type=BatchReply)
    except NOT_DECODED as error:
        return Unanswered(f"{replica}: its answer is malformed: {error}"[:DETAIL_CHARS_MAX])


def _refusal(who: str, response: httpx.Response, body: bytes) -> Unanswered:
    """An answer that is not 200: a problem document says what it means, the status what kind of failure it is."""
    status = response.status_code
    problem = _problem(body)
    sentence = problem.detail or problem.title or f"it answered with HTTP status {status}"
    if response.is_redirect:
        sentence = f"it redirects to {response.headers.get('location', '')!r}: give the replica's own URL"
    elif problem.advice:
        sentence = f"{sentence.rstrip('.')}. {problem.advice.rstrip('.')}"
    refused = 300 <= status < 500 and status not in (
        httpx.codes.REQUEST_TIMEOUT,
        httpx.codes.TOO_MANY_REQUESTS,
    )
    definite = problem.definite
    if definite is None:
        definite = refused or problem.name in NOTHING_DONE
    return Unanswered(f"{who}: {sentence}"[:DETAIL_CHARS_MAX], refused=refused, definite=definite)


def _problem(body: bytes) -> _Problem:
    try:
        return msgspec.json.decode(body, type=_Problem)
    except NOT_DECODED:
        return _Problem()
