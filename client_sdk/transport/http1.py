"""HTTP/1.1 over kept connections, as quick as asyncio allows: framing by httptools, TLS by asyncio, no proxies, one request
at a time on each connection.

Owns connections, their reuse, and whether a failure is definite: it is until the first byte of the request has been
written. Must not know what a body means.
"""

import asyncio
import os
import ssl
from collections import deque
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote, urlsplit

import httptools

from ...api_specs.messages import PROTOCOL_HEADER, SPOKEN
from ..errors import BadInput
from ..protocol.core.values import Unanswered
from .http_answer import JSON, HttpAnswer, HttpClient, unanswered
from .ports import Done, GiveUp, answer_to, post_task
from .tls import SYSTEM_TRUST, ClientTls

CONNECT_TIMEOUT_S: Final = 1.0
KEEPALIVE_S: Final = 4.0
"""A connection idle for longer is not used again: a server, or something on the way, may be about to close it. uvicorn's own
limit is 5 s."""
IDLE_MAX: Final = 4
"""Connections to one place that are kept while nobody uses them."""
RECEIVED_BYTES_MAX: Final = 256 * 1024
"""What a connection takes in at once: an answer that comes whole need not be put together."""
HEAD_BYTES_MAX: Final = 65_536
"""All of an answer besides its body: status line, headers, the sizes of chunks."""
LENGTH_DIGITS_MAX: Final = 10
_PATH_SAFE: Final = "/%:@!$&'()*+,;=~-._"
_PLACES_MAX: Final = 1000


class _Place(NamedTuple):
    """Where a URL leads, and how a request to it begins."""

    host: str
    port: int
    is_tls: bool
    head: bytes


class _Broken(Exception):
    """No answer came; the sentence says why."""


class _Connection(asyncio.BufferedProtocol):
    """One connection; the callbacks from `on_message_begin` on are those of httptools' parser.

    It receives into memory of its own. Without, asyncio makes 256 KiB anew for each piece that comes, which the system may have to
    map and to take back each time.
    """

    def __init__(self) -> None:
        self._loop: Final = asyncio.get_running_loop()
        self._parser: Any = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._done: Done[HttpAnswer | _Broken] | None = None
        """Who has asked and was not told yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._answer: HttpAnswer | None = None
        """That is whole, while the piece with which it ended is parsed."""
        self._bytes_max = self._head_bytes = 0
        self._is_spoilt = False
        """Whether nothing more may be asked on it."""
        self._idle_since_s = 0.0
        self._head = b""
        """Of the answer that comes, all but the length of its body, if that is said last."""
        self._known: tuple[bytes, int, str, str] | None = None
        """Such a head, and what the parser found in it."""
        self._received: Final = memoryview(bytearray(RECEIVED_BYTES_MAX))
        self._begin()

    def _begin(self) -> None:
        """Expect an answer."""
        self._content_type = self._location = ""
        self._is_framed = False
        self._body = bytearray()

    @property
    def is_usable(self) -> bool:
        """Whether a request may be sent on it."""
        return not self._is_spoilt and self._loop.time() - self._idle_since_s < KEEPALIVE_S

    def ask(self, request: bytes, bytes_max: int, timeout_s: float, done: Done[HttpAnswer | _Broken]) -> None:
        """Send a request; `done` hears the answer, or why there will be none, or none in time. It may ask again then."""
        assert self._transport is not None, "it is connected"
        self._done = done
        self._bytes_max, self._head_bytes = bytes_max, 0
        self._timer = self._loop.call_later(timeout_s, self._fail, "no answer in time")
        self._transport.write(request)

    def drop(self, done: Done[HttpAnswer | _Broken]) -> None:
        """Hang up if it is still `done` that is to be told, and hears nothing then: what comes now would be taken for the next answer."""
        if self._done is done:
            self.close()

    def close(self) -> None:
        """Hang up at once. Who has asked hears nothing."""
        self._take_done()
        self._hang_up()

    def _take_done(self) -> Done[HttpAnswer | _Broken] | None:
        done, self._done = self._done, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return done

    def _hang_up(self) -> None:
        self._is_spoilt = True
        if self._transport is not None:
            self._transport.abort()

    # From the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BufferedProtocol."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by class

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio.BufferedProtocol."""
        return self._received

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio.BufferedProtocol."""
        data = bytes(self._received[:nbytes])
        if self._done is None:  # Nobody asked.
            self._hang_up()
            return
        if not self._head_bytes and self._is_known(data):
            return
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"its answer is no HTTP: {error}")
        if self._head_bytes > HEAD_BYTES_MAX:
            self._fail(f"the answer is longer than {HEAD_BYTES_MAX} bytes without its body")
        if (
            self._answer is not None
        ):  # Only now: who is told may ask again, and the parser may not be done with this piece.
            answer, self._answer = self._answer, None
            self._tell(answer)

    def _is_known(self, data: bytes) -> bool:
        """Take a whole answer whose head is that of the one before. A replica's answers of one second have the same, and to hear of each
        header again would take as long as to read the body."""
        head, end, body = data.partition(b"\r\n\r\n")
        head, _, length = head.rpartition(b"\r\ncontent-length: ")
        if not (end and length.isdigit()) or len(length) > LENGTH_DIGITS_MAX:
            self._head = b""
            return False
        self._head = head
        if self._known is None or self._known[0] != head or not int(length) == len(body) <= self._bytes_max:
            return False
        self._tell(HttpAnswer(*self._known[1:], body))
        return True

    def _tell(self, answer: HttpAnswer) -> None:
        self._idle_since_s = self._loop.time()
        if (done := self._take_done()) is not None:
            done(answer)

    def eof_received(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._fail("the connection was closed before the whole answer came")

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.BufferedProtocol."""
        self._fail(str(exc or "the connection was closed before the whole answer came"))

    def _fail(self, sentence: str) -> None:
        """Hang up. An answer that is whole counts nevertheless."""
        self._hang_up()
        if self._answer is None and (done := self._take_done()) is not None:
            done(_Broken(sentence))

    # From the parser.

    def on_message_begin(self) -> None:
        """See httptools."""
        if self._done is None or self._answer is not None:
            self._hang_up()  # Behind an answer another one begins: it must not be taken for the next.

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools."""
        match name.lower():
            case b"content-type":
                self._content_type = value.decode("latin-1")
            case b"location":
                self._location = value.decode("latin-1")
            case b"content-length" | b"transfer-encoding":
                self._is_framed = True

    def on_headers_complete(self) -> None:
        """See httptools."""
        status = self._parser.get_status_code()
        if not self._is_framed and status >= 200 and status not in (204, 304):
            self._fail("its answer does not say how long it is")

    def on_body(self, body: bytes) -> None:
        """See httptools."""
        if len(self._body) + len(body) > self._bytes_max:
            self._fail(f"the answer is longer than {self._bytes_max} bytes")
        else:
            self._body += body
            self._head_bytes -= len(body)

    def on_message_complete(self) -> None:
        """See httptools."""
        status = self._parser.get_status_code()
        if status < 200:  # Only the announcement of an answer.
            self._head = b""
            self._begin()
            return
        if self._done is None or self._answer is not None:  # A second answer to one request.
            self._hang_up()
            return
        if not self._parser.should_keep_alive():
            self._hang_up()
        if self._head:
            self._known = self._head, status, self._content_type, self._location
        self._answer = HttpAnswer(status, self._content_type, self._location, bytes(self._body))
        self._begin()


class QuickClient(HttpClient):
    """Connections to any number of places. Belongs to one event loop."""

    def __init__(self, token: str | None, tls: ClientTls = SYSTEM_TRUST) -> None:
        self._tls: Final = tls
        credentials = "" if token is None else f"Authorization: Bearer {token}\r\n"
        self._place_of: Final = lru_cache(_PLACES_MAX)(partial(_place, credentials))
        self._idle: Final[dict[tuple[str, int, bool], deque[_Connection]]] = {}

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
        try:
            place = self._place_of("GET" if body is None else "POST", url, media_type)
        except ValueError as error:
            refused = unanswered(who, f"{url!r} is no URL that can be used: {error}", definite=True)
            return asyncio.get_running_loop().call_soon(done, refused).cancel
        whole = _whole(place.head, body)
        connection = self._kept(place)
        if connection is None:
            return post_task(self._by_new_connection(who, place, whole, timeout_s, bytes_max), done)

        def tell(answer: HttpAnswer | _Broken) -> None:
            done(self._outcome(who, place, connection, answer))

        connection.ask(whole, bytes_max, timeout_s, tell)
        return partial(connection.drop, tell)

    async def _by_new_connection(
        self, who: str, place: _Place, whole: bytes, timeout_s: float, bytes_max: int
    ) -> HttpAnswer | Unanswered:
        until_s = asyncio.get_running_loop().time() + timeout_s
        try:
            connection = await self._connected(place, timeout_s)
        except (OSError, _Broken, BadInput) as error:
            return unanswered(who, _sentence(error), definite=True)

        def ask(done: Done[HttpAnswer | _Broken]) -> GiveUp:
            connection.ask(whole, bytes_max, until_s - asyncio.get_running_loop().time(), done)
            return partial(connection.drop, done)

        try:
            answer = await answer_to(ask)
        except (
            asyncio.CancelledError
        ):  # Also where it was told in this very turn: nobody has kept the connection.
            connection.close()
            raise
        return self._outcome(who, place, connection, answer)

    def _outcome(
        self, who: str, place: _Place, connection: _Connection, answer: HttpAnswer | _Broken
    ) -> HttpAnswer | Unanswered:
        """The answer, after which the connection may be used again; or why there is none, though the request has left."""
        if isinstance(answer, _Broken):
            return unanswered(who, str(answer))
        self._keep(place, connection)
        return answer

    async def aclose(self) -> None:
        """See HttpClient."""
        for kept in self._idle.values():
            for connection in kept:
                connection.close()
        self._idle.clear()
        await asyncio.sleep(0)  # Aborted transports close their sockets in the next turn.

    def _kept(self, place: _Place) -> _Connection | None:
        """The connection used last, which is the likeliest to be good still."""
        kept = self._idle.get(place[:3])
        while kept:
            connection = kept.pop()
            if connection.is_usable:
                return connection
            connection.close()
        return None

    async def _connected(self, place: _Place, timeout_s: float) -> _Connection:
        try:
            async with asyncio.timeout(min(timeout_s, CONNECT_TIMEOUT_S)):
                loop = asyncio.get_running_loop()
                context = self._tls.context() if place.is_tls else None
                _, connection = await loop.create_connection(_Connection, place.host, place.port, ssl=context)
        except TimeoutError:
            raise _Broken("no answer in time (to connect)") from None
        except (ssl.SSLError, BadInput):  # No trust, or no files for it: ValueErrors, too.
            raise
        except ValueError as error:
            raise _Broken(f"{place.host!r} is no host name: {error}") from None
        return connection

    def _keep(self, place: _Place, connection: _Connection) -> None:
        kept = self._idle.setdefault(place[:3], deque())
        kept.append(connection)
        if len(kept) > IDLE_MAX:
            kept.popleft().close()


def _sentence(error: Exception) -> str:
    """What went wrong, in the words of the system where it has some: "Connection refused"."""
    if isinstance(error, ssl.SSLError):
        return f"no connection by TLS: {getattr(error, 'verify_message', '') or error.reason or error}"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def _place(credentials: str, method: str, url: str, media_type: str) -> _Place:
    """Raises ValueError for what is no URL of HTTP."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it must look like http://host:port or https://host:port")
    is_tls = parts.scheme == "https"
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
    shown = f"[{host}]" if ":" in host else host
    port = (443 if is_tls else 80) if parts.port is None else parts.port
    path = quote(parts.path, safe=_PATH_SAFE) or "/"
    if parts.query:
        path += "?" + quote(parts.query, safe=_PATH_SAFE + "?")
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {shown}:{port}\r\nAccept: {media_type}\r\nAccept-Encoding: identity\r\n"
        f"{PROTOCOL_HEADER}: {SPOKEN.text}\r\n{credentials}"
    )
    if method == "POST":
        head += f"Content-Type: {media_type}\r\n"
    return _Place(host, port, is_tls, head.encode("ascii"))


def _whole(head: bytes, body: bytes | None) -> bytes:
    """A request, from its first line to the end of its body."""
    return head + (b"\r\n" if body is None else b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
