"""What one connection may do before a request is whole, and how long it may take: uvicorn's protocol, with bounds.

Owns the bounds that no application can set: number of connections, bytes and time of a request's head, bytes of what stands
around a body, requests that wait for the one ahead, how long a client may leave an answer unread, and how much all of them together; and that a request ends
where its head says: another protocol is never changed to, and trailers are no headers. The Gate owns the rest. A request that
passes in one piece costs few comparisons.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from msgspec import Struct
from starlette.types import Scope
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ...api_specs.limits import (
    ADDRESS_SHARE_MAX,
    AHEAD_BYTES_MAX,
    AHEAD_MAX,
    CONNECTIONS_MAX,
    HEAD_BYTES_MAX,
    HEAD_S_MAX,
    HEADERS_MAX,
    STALL_S_MAX,
    UNSENT_BYTES_MAX,
    URL_BYTES_MAX,
)
from ...api_specs.problems import Problem, problem
from ...timestamps.clock import Now
from .connection_shares import Crowd, origin
from .fair_queue import FairQueue
from .large_bodies import CLOCK
from .problems import ProblemResponse, whole_answer
from .traffic import Traffic
from .unsent_answers import STALL_BYTES, UnsentAnswers, unconfirmed_bytes

AROUND_PER: Final = 8
"""Bytes of a body that may have one around them, besides `HEAD_BYTES_MAX` in all: chunks of fifty and more always may."""
PIECE_BYTES: Final = 1024
"""So much is parsed at once, but of a body whose length is known: sixteen requests fit into it, which are work of half a millisecond."""
HANG_UP_S: Final = 0.02
HANG_UPS_MAX: Final = 50
_VERSIONS: Final = ("1.1", "1.0")
_AUTHORITY: Final = re.compile(rb"[^/?#]*")


_CYCLE: Final = "quorate.cycle"
"""Where a scope of ASGI holds uvicorn's cycle of request and response."""


def cycle_of(scope: Scope) -> RequestResponseCycle | None:
    """Take uvicorn's cycle off the scope: the two know each other, and would wait for the garbage collector."""
    cycle: RequestResponseCycle | None = scope.pop(_CYCLE, None)
    return cycle


def came_at(cycle: RequestResponseCycle | None) -> Now:
    """When the last of a request came whose body is whole; now where nobody noted it."""
    came: Now | None = getattr(cycle, "came", None)
    return came or CLOCK.now()


def body_at_hand(cycle: RequestResponseCycle | None) -> bytes | None:
    """The body of a request, taken off it, if all of it has come already, as nearly always: to wait for it within a time costs more
    than to parse it."""
    if cycle is None or cycle.more_body:
        return None
    body, cycle.body = bytes(cycle.body), bytearray()
    cycle.message_event.clear()  # As `receive` does: it tells next that the client has gone.
    cycle.flow.resume_reading()
    return body


class Bounds(Struct, frozen=True):
    """What one server allows: connections, the share of them that one address may have, seconds of patience, and bytes that may
    wait for callers who do not read."""

    connections_max: int = CONNECTIONS_MAX
    address_share: float = ADDRESS_SHARE_MAX
    head_s: float = HEAD_S_MAX
    stall_s: float = STALL_S_MAX
    unsent_bytes_max: int = UNSENT_BYTES_MAX


class _Flow(FlowControl):
    """uvicorn's, with a hold on reading that nobody's wish for more lifts: each request asks for what it may still have to come,
    though others wait."""

    is_held = False

    def resume_reading(self) -> None:
        if not self.is_held:
            super().resume_reading()


class _Joined:
    """Where an answer is written: its head and what follows in the same turn of the event loop leave in one piece. uvicorn writes them
    apart, which are two calls of the system, and two packets."""

    __slots__ = ("_head", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport: Final = transport
        self._head: bytes | None = None
        """Empty once it was written."""
        self.is_closing: Final = transport.is_closing

    def write(self, data: bytes) -> None:
        """See asyncio.Transport."""
        if self._head is None:
            self._head = data
            asyncio.get_running_loop().call_soon(self._flush)
            return
        if self._head:
            data, self._head = self._head + data, b""
        self._transport.write(data)

    def close(self) -> None:
        """See asyncio.Transport."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head and not self.is_closing():
            head, self._head = self._head, b""
            self._transport.write(head)


class BoundedProtocol(HttpToolsProtocol):
    """One connection. The callbacks are those of asyncio.Protocol and of httptools."""

    def __init__(
        self,
        *args: Any,
        bounds: Bounds,
        traffic: Traffic,
        crowd: "Crowd[BoundedProtocol]",
        unsent: "UnsentAnswers[BoundedProtocol]",
        reading: FairQueue,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._bounds: Final = bounds
        self._crowd: Final = crowd
        self._unsent: Final = unsent
        self._reading: Final = reading
        """What has come on all connections is parsed in turns, of addresses and then of connections."""
        self._origin = ""
        self._drop: Callable[[], object] | None = None
        """Ends the connection at once; None before it is there."""
        self.is_made = False
        """Whether something may be said on it: by TLS, only once that is agreed on."""
        self._traffic: Final = traffic
        self._is_in_head = self._is_in_body = False
        self._head_bytes = 0
        """Of the head that is being received: what was parsed, or has come in pieces that held nothing else."""
        self._has_begun = False
        """Whether a request has begun in the piece that is being read."""
        self._is_read_again = False
        """Whether the head that is being parsed has come before, in any number of pieces."""
        self._around_bytes = 0
        """What came around the body (lengths and extensions of chunks, trailers), less what a body of its length may have."""
        self._answered: RequestResponseCycle | None = None
        """The request that is being answered, or was last: `cycle` is the last one that came."""
        self._is_refused = False
        """Whether the latest request was refused for its head: its answer ends the connection."""
        self._body_left = 0
        """What must still come of a body that has said its length."""
        self._rest = memoryview(b"")
        """What has come and is not parsed yet."""
        self._came = CLOCK.now()
        """When that came, or the oldest of it; or what was parsed last."""
        self._ahead_bytes = 0
        """What has come since all requests were answered that had come."""
        self._goes_on = False
        """Whether that is being parsed, or will be in a turn that comes."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_late = False
        """Whether the time of a head has passed while something was not parsed yet: it may be the end of that head."""
        self._stall_timer: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0

    # From the event loop.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow: _Flow = _Flow(transport)
        self.is_made = True
        if self._drop is None:
            self.arrive(self.client[0] if self.client else "", transport.abort)
        else:
            self._drop = transport.abort

    def arrive(self, host: str, drop: Callable[[], object]) -> None:
        """Count a connection from `host`, on which nothing may have been said yet; `drop` ends it. Where there are too many, one
        gives way."""
        self._drop = drop
        self._traffic.connections += 1
        self._traffic.connections_made += 1
        self._origin = origin(host) if host else ""
        gives_way = self._crowd.enter(self, self._origin)
        if gives_way is self:
            self._end(
                problem("overloaded", "too many connections are open already, in all or from one address")
            )
            return
        self._head_timer = self.loop.call_later(self._bounds.head_s, self._head_is_late)
        if gives_way is not None:
            gives_way.give_way()

    def give_way(self) -> None:
        """Close this connection for another one: no whole request has begun on it, or its answers are not read."""
        self._cut_off("overloaded")

    def _cut_off(self, reason: str) -> None:
        assert self._drop is not None, "it has arrived"
        self._traffic.refuse(reason)
        self._drop()

    def depart(self) -> None:
        """Count it no more."""
        self._stop_head_timer()
        self._traffic.connections -= 1
        self._crowd.leave(self, self._origin)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_stall_timer()
        self._unset_keepalive_if_required()  # uvicorn leaves it after a reset: all that was said stayed as long as it.
        self._unsent.resume(self)
        self.depart()
        if self._answered is not None and self._answered is not self.cycle:
            self._answered.disconnected = True  # uvicorn tells the last one alone
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.pipeline or self._rest:
            self._ahead_bytes += len(data)
        if self._rest:
            self._rest = memoryview(bytes(self._rest) + data)
            self._wait()
        else:
            self._rest, self._came = memoryview(data), CLOCK.now()
            self._go_on()

    def _is_ahead(self) -> bool:
        """Whether so much has come that no more is read before all of it is parsed and answered. Less does not end the reading, or nobody
        would hear that the client has gone."""
        return self._ahead_bytes > AHEAD_BYTES_MAX

    def _go_on(self) -> None:
        """Parse what has come, as far as this turn of the event loop goes, and not too many requests wait."""
        self._goes_on = True
        while self._rest and len(self.pipeline) < AHEAD_MAX:
            if not self._reading.may_begin(self._cost()):
                self._wait()
                self._reading.put(self._origin, self._cost(), self._have_turn)
                return
            self._take_piece()
        self._goes_on = False
        if not (self._rest or self.pipeline):
            self._ahead_bytes = 0
        if self._rest or self._is_ahead():
            self._wait()
            return
        if self.transport.is_closing():
            return
        if self.flow.is_held:
            self.flow.is_held = False
            self.flow.resume_reading()
        if self._is_late:
            self._head_is_late()
        self.all_taken()

    def _have_turn(self) -> None:
        if len(self.pipeline) < AHEAD_MAX:
            self._take_piece()
        self._go_on()

    def _take_piece(self) -> None:
        if self.transport.is_closing():
            self._rest = memoryview(b"")
            return
        length = max(PIECE_BYTES, self._body_left)
        piece, self._rest = self._rest[:length], self._rest[length:]
        self._take(piece)

    def _cost(self) -> int:
        """Bytes of the next piece that cost something: those of a body are only kept."""
        return 0 if self._body_left >= len(self._rest) else min(len(self._rest), PIECE_BYTES)

    def all_taken(self) -> None:
        """There is nothing that has come and is not parsed."""

    def _wait(self) -> None:
        """What has come is not parsed now. The time of a head goes on: pieces that wait for turns would have it begin again and again."""
        if self._is_ahead():
            self.flow.pause_reading()
            self.flow.is_held = True
            if self.pipeline:  # Nobody is late who waits for answers, and may send nothing before them.
                self._stop_head_timer()

    def _take(self, data: memoryview) -> None:
        was_in_head = self._is_in_head
        self._has_begun = False
        if self._is_in_body:
            self._around_bytes += len(data)
        self._feed(data)
        if not self._is_in_head:
            if (self._head_timer is not None or self._is_late) and self.scope is not None:
                self._stop_head_timer()
            if self._around_bytes > HEAD_BYTES_MAX:
                self._traffic.refuse("head-too-large")
                self.transport.abort()
            return
        if was_in_head:
            if self._has_begun:
                self._stop_head_timer()  # Of the head that ended in this piece.
            else:
                self._head_bytes += len(data)
        if self._head_bytes > HEAD_BYTES_MAX + URL_BYTES_MAX or len(self.headers) > HEADERS_MAX:
            self._end(_head_too_large())
        elif self._head_timer is None and not self._is_late:
            self._head_timer = self.loop.call_later(self._bounds.head_s, self._head_is_late)

    def _feed(self, rest: memoryview) -> None:
        """See uvicorn. Another protocol is never changed to."""
        try:
            while rest:
                rest = self._parsed(rest)
        except HttpParserError:
            if not self._is_refused:  # The parser may say so again.
                self.send_400_response("")

    def _parsed(self, data: memoryview) -> memoryview:
        """What of `data` the parser has left. A request that asks for another protocol is read again without that wish, as RFC
        9110 (section 7.8) allows: the parser itself would take its body, and whatever follows, for the other protocol."""
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            if self.parser.get_method() == b"CONNECT":
                raise HttpParserError("there is nobody to connect to") from None
            head = self._head_without_upgrade()
            self.parser = HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            self._is_read_again = True
            self.parser.feed_data(head)
            self._is_read_again = False
            return data[upgrade.args[0] :]
        return data[len(data) :]

    def _head_without_upgrade(self) -> bytes:
        lines = [
            b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        ]
        for name, value in self.headers:
            if name == b"connection":
                kept = [token for token in value.split(b",") if token.strip().lower() != b"upgrade"]
                lines.append(b"connection: " + b",".join(kept))
            elif name != b"upgrade":
                lines.append(name + b": " + value)
        return b"\r\n".join([*lines, b"\r\n"])

    def pause_writing(self) -> None:
        """See asyncio.Protocol. Where too much waits to be sent on all connections, others end that are not read from."""
        super().pause_writing()
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._stall_timer = self.loop.call_later(self._bounds.stall_s, self._look_for_stall)
        for unread in self._unsent.pause(self):
            unread.give_way()

    def resume_writing(self) -> None:
        self._stop_stall_timer()
        self._unsent.resume(self)
        super().resume_writing()

    def unsent_bytes(self) -> int:
        """What waits to be sent on it, here and in the system: an answer is held here whole until the system has all of it."""
        return self.transport.get_write_buffer_size() + unconfirmed_bytes(self.transport)

    # From the parser.

    def on_message_begin(self) -> None:
        """See httptools. Only a request ends the time that a connection may be idle, and not an empty line or what is left of
        a body."""
        self._unset_keepalive_if_required()
        super().on_message_begin()
        self._is_in_head = self._has_begun = True
        self._head_bytes = self._around_bytes = self._body_left = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools. What comes behind a body never counts as a header (RFC 9110, section 6.5.1): who checked the head,
        here or on the way, has not seen it."""
        if self._is_in_body:
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """See httptools. A request whose head is too large is answered by an application that says so."""
        self._is_in_head = False
        if self.parser.should_upgrade():
            return
        self._crowd.speaks(self, self._origin)
        self._is_in_body = True
        if not self.url.startswith(b"/"):
            self.headers[:] = _as_the_target_says(self.url, self.headers)
        named = dict(self.headers)
        length = named.get(b"content-length", b"0")
        self._body_left = int(length[:19]) if length.isdigit() else 0
        refused = self._head_problem(named)
        if refused is None:
            self.begin_request()
            return
        self._is_refused = True
        self._traffic.refuse(refused.name)
        application, self.app = self.app, ProblemResponse(refused, {"Connection": "close"})
        try:
            super().on_headers_complete()
        finally:
            self.app = application

    def _head_problem(self, named: Mapping[bytes, bytes]) -> Problem | None:
        if (version := self.parser.get_http_version()) not in _VERSIONS:  # The parser takes 2.0 and 0.9, too.
            return _other_version(version)
        if len(self.url) > URL_BYTES_MAX:
            return problem("url-too-long", f"path and query may have {URL_BYTES_MAX} bytes together")
        # A head of which no piece was counted came in two at most, and cannot be too large.
        is_large = self._head_bytes > 0 or self._is_read_again
        if len(self.headers) > HEADERS_MAX or (
            is_large and sum(len(name) + len(value) for name, value in self.headers) > HEAD_BYTES_MAX
        ):
            return _head_too_large()
        if b"transfer-encoding" in named:
            codings = [value for name, value in self.headers if name == b"transfer-encoding"]
            if any(value.strip().lower() != b"chunked" for value in codings):  # RFC 9112, section 6.1.
                return problem("unknown-coding", "Transfer-Encoding: chunked alone is understood")
        return None

    def begin_request(self) -> None:
        """A request begins whose head is within the bounds."""
        super().on_headers_complete()
        self.scope[_CYCLE] = self.cycle  # type: ignore[typeddict-unknown-key]
        if self.scope["method"] != "HEAD":  # Its answer is a head: what comes next is the next answer's.
            self.cycle.transport = _Joined(self.transport)  # type: ignore[assignment]
        if self.pipeline:
            # uvicorn reads nothing while a request waits, and would not hear that the client has gone. What may come is bounded here.
            self.flow.resume_reading()
        else:
            self._answered = self.cycle
        self._unset_keepalive_if_required()

    def on_body(self, body: bytes) -> None:
        self.count_body(body)
        super().on_body(body)

    def count_body(self, body: bytes) -> None:
        """A chunk, or a part of one, has come. One byte in a chunk costs as much time as a thousand, and six on the way."""
        self._body_left -= len(body)
        self._around_bytes -= len(body) + len(body) // AROUND_PER

    def on_message_complete(self) -> None:
        if self._is_in_body:
            self._is_in_body = False
            self.cycle.came = self._came  # type: ignore[attr-defined]
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """See uvicorn. A body that still comes after a refusal is not waited for, as the end of TLS would."""
        if self.pipeline:
            self._answered = self.pipeline[-1][0]
        super().on_response_complete()
        if (self._rest or self.flow.is_held) and not self._goes_on:
            self._go_on()
        if self._is_in_body and self.transport.is_closing():
            self._hang_up(HANG_UPS_MAX)

    def send_400_response(self, msg: str) -> None:
        """See uvicorn: for what is no HTTP."""
        del msg
        self._is_in_head = False
        version = self.parser.get_http_version()
        # The parser knows none where it never came so far as to read one.
        is_other = version not in ("0.0", *_VERSIONS)
        self._end(_other_version(version) if is_other else problem("malformed", "the request is no HTTP/1.1"))

    # Bounds.

    def _hang_up(self, tries: int) -> None:
        """Drop the connection once the answer has left, or after `tries` looks."""
        if tries and self.transport.get_write_buffer_size():
            self.loop.call_later(HANG_UP_S, self._hang_up, tries - 1)
        else:
            self.transport.abort()

    def _end(self, refused: Problem) -> None:
        """Refuse what has not become a request, and hang up."""
        self._stop_head_timer()
        if not self.is_made:
            self._cut_off(refused.name)
            return
        if self.transport.is_closing():
            return
        self._traffic.refuse(refused.name)
        if self.cycle is None or self.cycle.response_complete or self._waits_for_body():  # type: ignore[redundant-expr]
            self.transport.write(whole_answer(refused))
            self.transport.close()
        else:  # An earlier request on this connection is still being answered: nothing may come in between.
            self.transport.abort()

    def _waits_for_body(self) -> bool:
        """Whether what is refused is the body of the one request under way, of which nothing was done or answered. Then its
        application is told that the client has gone."""
        if not self._is_in_body or self.cycle is not self._answered or self.cycle.response_started:
            return False
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        return True

    def _head_is_late(self) -> None:
        self._head_timer = None
        self._is_late = len(self._rest) > 0
        if self._is_late:
            return
        if self._is_in_head or not self.is_made:
            self._end(problem("timeout", f"the headers took longer than {self._bounds.head_s:g} s"))
        elif self.scope is None:  # A connection on which nothing ever came: there is nothing to answer.
            self.transport.close()

    def _look_for_stall(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent > self._unsent_bytes - STALL_BYTES:
            self.transport.abort()
            return
        self._unsent_bytes = unsent
        self._stall_timer = self.loop.call_later(self._bounds.stall_s, self._look_for_stall)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        self._is_late = False

    def _stop_stall_timer(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None


def _as_the_target_says(url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers with the host that the absolute form of a target names: that of the Host header does not count then (RFC 9112, section
    3.2.2)."""
    _, is_absolute, rest = url.partition(b"://")
    host = _AUTHORITY.match(rest)
    return [(name, host[0] if is_absolute and host and name == b"host" else value) for name, value in headers]


def _other_version(version: str) -> Problem:
    return problem("http-version", f"the request is HTTP/{version}, and HTTP/1.1 and HTTP/1.0 are understood")


def _head_too_large() -> Problem:
    detail = f"headers may have {HEAD_BYTES_MAX} bytes together, and be {HEADERS_MAX}"
    return problem("head-too-large", detail)
