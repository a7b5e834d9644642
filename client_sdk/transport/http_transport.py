"""HTTP to replicas: batches out, replies in.

Owns which path a message goes to and in which encoding, and which HTTP client carries it. Must not know what a batch means.
"""

from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ...api_specs.cluster import BadCluster as BadDocument
from ...api_specs.cluster import ClusterDocument, ReplicaInfo, from_json
from ...api_specs.limits import REPLY_BODIES_MAX
from ...api_specs.messages import (
    NOT_DECODED,
    Announcement,
    Batch,
    BatchReply,
    ForwardedReply,
    ForwardedRequest,
    Testimony,
)
from ..errors import BadCluster, RefusedByReplicas, Unavailable
from ..protocol.core.values import Unanswered
from .http1 import QuickClient
from .http_answer import JSON, MSGPACK, HttpAnswer, HttpClient, batch_reply, message, refusal
from .ports import Done, GiveUp, Transport
from .tls import SYSTEM_TRUST, ClientTls

BATCH_PATH: Final = "/replica/v1/batch"
FORWARD_PATH: Final = "/replica/v1/forward"
ANNOUNCEMENT_PATH: Final = "/replica/v1/announcement"
CLUSTER_PATH: Final = "/v1/cluster"

TESTIMONY_BYTES_MAX: Final = 16 * 1024
CLUSTER_BYTES_MAX: Final = 8 * 1024 * 1024


_NO_ENDPOINTS: Final[Mapping[str, str]] = {}
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class _ClusterReply(Struct, frozen=True):
    """The answer of `GET /v1/cluster`."""

    hash: str
    document: msgspec.Raw


_DECODE_CLUSTER: Final = msgspec.json.Decoder(_ClusterReply).decode
_DECODE_FORWARDED: Final = msgspec.msgpack.Decoder(ForwardedReply).decode
_DECODE_TESTIMONY: Final = msgspec.json.Decoder(Testimony).decode


def quick_client(token: str | None, tls: ClientTls) -> HttpClient:
    """The client that carries batches."""
    return QuickClient(token, tls)


def httpx_client(token: str | None, tls: ClientTls) -> HttpClient:
    """The client by httpx, imported only when it is wanted."""
    from .httpx_client import HttpxClient  # noqa: PLC0415

    return HttpxClient(token, tls)


class HttpTransport(Transport):
    """Connections to the replicas at `urls` (by replica id), but to those of `endpoints` there, wherever they move. Belongs to one event loop."""

    def __init__(
        self,
        urls: Mapping[str, str],
        *,
        endpoints: Mapping[str, str] = _NO_ENDPOINTS,
        token: str | None = None,
        encoding: Literal["msgpack", "json"] = "msgpack",
        body_bytes_max: int,
        tls: ClientTls = SYSTEM_TRUST,
        client: Callable[[str | None, ClientTls], HttpClient] = quick_client,
    ) -> None:
        self._endpoints: Final = endpoints
        self._base_urls: Final[dict[str, str]] = {}
        self._urls: Final[dict[str, str]] = {}
        """Of batches: the hot path."""
        self._media_type: Final = MSGPACK if encoding == "msgpack" else JSON
        self._encode: Final = (msgspec.msgpack if encoding == "msgpack" else msgspec.json).Encoder().encode
        self._reply_bytes_max: Final = REPLY_BODIES_MAX * body_bytes_max
        self._client: Final = client(token, tls)
        self._find_at({**urls, **endpoints})

    def _find_at(self, urls: Mapping[str, str]) -> None:
        for replica, url in urls.items():
            self._base_urls[replica] = base = url.rstrip("/")
            self._urls[replica] = base + BATCH_PATH

    def post(
        self, replica: str, batch: Batch, timeout_s: float, done: Done[BatchReply | Unanswered]
    ) -> GiveUp:
        """See Transport."""
        return self._client.send(
            replica,
            self._urls[replica],
            lambda answer: done(batch_reply(replica, answer) if isinstance(answer, HttpAnswer) else answer),
            timeout_s=timeout_s,
            bytes_max=self._reply_bytes_max,
            body=self._encode(batch),
            media_type=self._media_type,
        )

    def follow(self, document: ClusterDocument) -> None:
        """See Transport."""
        self._find_at({each.id: each.url for each in document.members if self._is_elsewhere(each)})

    async def forward(
        self, replica: str, request: ForwardedRequest, timeout_s: float
    ) -> ForwardedReply | Unanswered:
        """See Forwarder. Only what any copy of the forwarded request would meet with is definite: a refusal of what it says, or no way."""
        answer = await self._client.request(
            replica,
            self._base_urls[replica] + FORWARD_PATH,
            timeout_s=timeout_s,
            bytes_max=self._reply_bytes_max,
            body=msgspec.msgpack.encode(request),
            media_type=MSGPACK,
        )
        if not isinstance(answer, HttpAnswer):
            return answer
        served = message(replica, answer, _DECODE_FORWARDED)
        if isinstance(served, Unanswered):
            return Unanswered(
                served.detail, refused=served.refused, definite=served.refused, epoch=served.epoch
            )
        return served

    async def announce(
        self, replica: str, announcement: Announcement, timeout_s: float
    ) -> Testimony | Unanswered:
        """What the replica knows of the sender's store; for replicas among themselves."""
        answer = await self._client.request(
            replica,
            self._base_urls[replica] + ANNOUNCEMENT_PATH,
            timeout_s=timeout_s,
            bytes_max=TESTIMONY_BYTES_MAX,
            body=msgspec.json.encode(announcement),
        )
        return message(replica, answer, _DECODE_TESTIMONY) if isinstance(answer, HttpAnswer) else answer

    async def configuration(self, replica: str, timeout_s: float) -> ClusterDocument | Unanswered:
        """The configuration that the replica is in. Raises BadCluster as `fetch_cluster`; it may lead to any host, for the replica has the token already,
        but not from https:// to http://."""
        url = self._base_urls[replica]
        answer = await self._client.request(
            replica, url + CLUSTER_PATH, timeout_s=timeout_s, bytes_max=CLUSTER_BYTES_MAX
        )
        if not isinstance(answer, HttpAnswer):
            return answer
        if answer.status != HTTPStatus.OK:
            return refusal(replica, answer)
        document = _document_in(url + CLUSTER_PATH, answer)
        if any(map(self._is_elsewhere, document.members)):
            check_hosts(url, document, has_token=False)
        return document

    def _is_elsewhere(self, member: ReplicaInfo) -> bool:
        """Whether its URL is not known here yet. One that never moved keeps that of the file here."""
        known = self._base_urls.get(member.id)
        has_moved = member.placed_in > 0 and member.id not in self._endpoints
        return known is None or (has_moved and known != member.url.rstrip("/"))

    async def aclose(self) -> None:
        """See Transport."""
        await self._client.aclose()


async def fetch_cluster(
    url: str,
    *,
    token: str | None,
    timeout_s: float,
    tls: ClientTls = SYSTEM_TRUST,
    endpoints: Mapping[str, str] = _NO_ENDPOINTS,
    named: Collection[str] = (),
) -> ClusterDocument:
    """The cluster file that the replica at `url` serves.

    Raises Unavailable when it does not answer, RefusedByReplicas when it will not tell, BadCluster when what it tells is
    no valid cluster file, or leads where the token must not go: see `check_hosts`.
    """
    place = url.rstrip("/") + CLUSTER_PATH
    client = httpx_client(token, tls)
    try:
        answer = await client.request(place, place, timeout_s=timeout_s, bytes_max=CLUSTER_BYTES_MAX)
    finally:
        await client.aclose()
    if isinstance(answer, Unanswered):
        raise Unavailable(answer.detail, definite=True)
    if answer.status != HTTPStatus.OK:
        raise RefusedByReplicas(refusal(place, answer).detail, definite=True)
    document = _document_in(place, answer)
    check_hosts(url, document, has_token=token is not None, endpoints=endpoints, named=named)
    return document


def _document_in(place: str, answer: HttpAnswer) -> ClusterDocument:
    try:
        reply = _DECODE_CLUSTER(answer.body)
        document = from_json(msgspec.json.decode(reply.document))
    except (*NOT_DECODED, BadDocument) as error:
        raise BadCluster(f"{place}: no cluster file that can be used: {error}") from None
    if document.hash != reply.hash:
        raise BadCluster(
            f"{place}: the document's hash differs: client and replica are of different versions"
        )
    return document


def check_hosts(
    url: str,
    document: ClusterDocument,
    *,
    has_token: bool,
    endpoints: Mapping[str, str] = _NO_ENDPOINTS,
    named: Collection[str] = (),
) -> None:
    """Raises BadCluster for a document that was fetched from `url` and leads where a token must not go: from https:// to
    http://, or, fetched without TLS, to a host that the caller has not named. `endpoints` has URLs of replicas by id, `named` others that the caller
    has named."""
    known = {_host(each) for each in (url, *endpoints.values(), *named)}
    strangers = [each for each in (document.urls | dict(endpoints)).values() if _host(each) not in known]
    if has_token and strangers and not url.startswith("https:"):
        raise BadCluster(
            f"{url}: its document leads to {strangers[0]}, a host that you have not named, and the token would be sent there: "
            "name the document's file instead, or give that replica's URL in endpoints"
        )
    plain = [each for each in document.urls.values() if not each.startswith("https:")]
    if url.startswith("https:") and plain:
        raise BadCluster(
            f"{url}: its document leads to {plain[0]}, where the token would be sent in the clear: give the replicas "
            "https:// URLs, or name the document's file instead"
        )


def _host(url: str) -> str:
    """The host of a URL; the names of this machine for itself count as one."""
    host = urlsplit(url).hostname or ""
    return "127.0.0.1" if host in _LOOPBACK else host
