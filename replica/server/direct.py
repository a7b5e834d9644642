"""The shorter way of a batch that comes in one piece: from the parser through the gate to the committer and back, in plain
calls.

By ASGI each request costs a task, two dictionaries, several coroutines and two writes: more than what the replica has to do
for a small batch. All other requests go by ASGI, and so does a batch of which only a part has come yet (the gate then bounds
how long it may take), that comes before the one ahead of it is answered, or that is traced. Both ways have the same rules:
the gate's, and those of `protocol_api.Batches`. Owns who goes which way, and what the shorter one writes. Must not know
what a batch means.
"""

import asyncio
from collections.abc import Callable, Collection, Hashable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from ...api_specs.checking import Checked
from ...api_specs.messages import BatchReply
from ...api_specs.problems import MEDIA_TYPE
from ..access.credentials import Credential
from ..api.protocol_api import PATH, Batches
from ..http.connection_shares import Crowd
from ..http.connections import BoundedProtocol, Bounds
from ..http.fair_queue import FairQueue
from ..http.gate import Gate, address_of, check_once, turn_of
from ..http.large_bodies import LARGE_BYTES
from ..http.problems import Refusal, headers_of, problem_of
from ..http.tls.context import ServerContext
from ..http.tls.door import Door
from ..http.traffic import Traffic
from ..http.unsent_answers import UnsentAnswers
from ..store.group_commit import Unwanted

_URL: Final = PATH.encode()
HEADS_MAX: Final = 4
"""So many heads a connection knows. A front end sends one, or two."""
HEAD_KNOWN_BYTES_MAX: Final = 1024
HEADERS_KNOWN_MAX: Final = 16
"""A larger head is parsed each time: so little is kept for each connection, however many there are."""
LENGTH_DIGITS_MAX: Final = 10
_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"\r\nContent-Length: "
"""The last header of such a head."""


class Answer(NamedTuple):
    """What is sent back; `headers` besides the body's type and length. `closes`: no other request may follow."""

    status: int
    media_type: str
    body: bytes
    headers: Mapping[str, str] = {}
    closes: bool = False


class Call:
    """A POST of a batch that came in one piece, from `client` with the headers `sent` (`headers`: each once), and whom to answer. What has
    not begun when it is no longer wanted is not done."""

    __slots__ = ("body", "caller", "client", "headers", "is_wanted", "send", "sent", "turn")

    def __init__(
        self,
        sent: Collection[tuple[bytes, bytes]],
        headers: Mapping[bytes, bytes],
        body: bytes,
        client: tuple[str, int] | None,
        send: Callable[[Answer], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self.sent = sent
        self.headers = headers
        self.body = body
        self.client = client
        self.send = send
        self.is_wanted = is_wanted
        self.caller: Credential | None = None
        """Who asks, once that is known."""
        self.turn: Hashable = None
        """Who takes turns with others, once that is known."""


class Direct:
    """Answers whole batches. `gate` is that of the application, `traffic` what it counts in."""

    def __init__(self, gate: Gate, traffic: Traffic, batches: Batches) -> None:
        self._gate: Final = gate
        self._traffic: Final = traffic
        self._batches: Final = batches

    def answer(self, call: Call) -> None:
        """Answer, maybe before this returns. Raises nothing."""
        self._traffic.under_way += 1
        self._traffic.requests += 1
        try:
            check_once(call.sent, call.headers)
            call.caller = self._gate.admit("POST", PATH, call.headers)
            self._gate.check_size(len(call.body))
            call.turn = turn_of(call.caller, call.client)
            self._gate.hold(call.turn, len(call.body))
        except Exception as error:  # noqa: BLE001 - the outer border, as in the gate
            self._traffic.under_way -= 1
            call.send(self._refused(call, error, closes=True))
            return
        self._gate.turns.put(call.turn, len(call.body), partial(self._begin, call))

    def _begin(self, call: Call) -> None:
        read = partial(self._read, call)
        if len(call.body) <= LARGE_BYTES:
            self._go_on(call, read)
        else:
            reading = self._gate.large_bodies.read(call.turn, read)
            reading.add_done_callback(lambda done: self._go_on(call, done.result))

    def _read(self, call: Call) -> tuple[Checked, str]:
        if not call.is_wanted():
            raise Unwanted("the caller has gone")
        assert call.caller is not None, "batches are for those who may send them"
        return self._batches.read(call.headers, call.body, call.caller)

    def _go_on(self, call: Call, read: Callable[[], tuple[Checked, str]]) -> None:
        try:
            found, media_type = read()
            done = partial(self._done, call, found, media_type)
            self._batches.member.post(found.sound, done, call.is_wanted, call.turn)
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(call, error)

    def _done(
        self, call: Call, found: Checked, media_type: str, reply: BatchReply | None, error: Exception | None
    ) -> None:
        if error is not None:
            # Not raised: it would know this frame, which knows it, and all that was sent would stay with them.
            self._fail(call, error)
            return
        try:
            assert reply is not None, "work ends with a reply or an error"
            answer = Answer(200, media_type, self._batches.written(found, reply, media_type))
        except Exception as failure:  # noqa: BLE001 - as above
            self._fail(call, failure)
        else:
            self._end(call, answer)

    def _fail(self, call: Call, error: Exception) -> None:
        self._end(call, None if isinstance(error, Unwanted) else self._refused(call, error))

    def _end(self, call: Call, answer: Answer | None) -> None:
        self._traffic.under_way -= 1
        self._traffic.bodies.give(call.turn, len(call.body))
        if answer is not None:
            call.send(answer)

    def _refused(self, call: Call, error: Exception, *, closes: bool = False) -> Answer:
        document = problem_of(error)
        self._gate.refused_callers.meet(document.name, call.headers, address_of(call.client))
        self._traffic.refuse(document.name)
        headers = headers_of(document, error.headers if isinstance(error, Refusal) else None)
        return Answer(document.status, MEDIA_TYPE, msgspec.json.encode(document), headers, closes)


class _Cycle:
    """Stands where uvicorn has the cycle of request and response, for as much as it asks of it there."""

    message_event: Final = asyncio.Event()
    """Nobody waits for it."""

    def __init__(self, *, keep_alive: bool) -> None:
        self.keep_alive = keep_alive
        self.response_complete = False
        self.disconnected = False


class DirectProtocol(BoundedProtocol):
    """One connection, on which whole batches go to `direct`."""

    def __init__(self, *args: Any, direct: Direct | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._direct: Final = direct
        self._pieces: list[bytes] | None = None
        """Of the body of a batch that may go the shorter way."""
        self._known: Final[dict[bytes, tuple[Collection[tuple[bytes, bytes]], Mapping[bytes, bytes]]]] = {}
        """The headers of batches that were answered here, by all of their heads but the length of the body."""
        self._coming: bytes | None = None
        """Such a head, of the request with which the piece that has just come begins, …"""
        self._head: bytes | None = None
        """… and of the one that is being parsed."""

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol. A front end sends the same head with all its batches: to parse it again, and to hear of each header, would
        take a quarter of the time that a read takes here."""
        if not (self._is_between() and self._is_known(data)):
            super().data_received(data)

    def _is_between(self) -> bool:
        """Whether nothing of a request has come that is not answered."""
        is_free = self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]
        is_parsed = not (self._rest or self._is_in_head or self._is_in_body or self.pipeline)
        return is_free and is_parsed and not (self.flow.write_paused or self.transport.is_closing())

    def _is_known(self, data: bytes) -> bool:
        """Answer a whole batch if its head is known."""
        head, end, body = data.partition(_END)
        head, _, length = head.rpartition(_LENGTH)
        if (
            not (end and length.isdigit())
            or len(length) > LENGTH_DIGITS_MAX
            or len(head) > HEAD_KNOWN_BYTES_MAX
        ):
            return False
        if (known := self._known.get(head)) is None:
            self._coming = head
            return False
        if int(length) != len(body) or not self._reading.may_begin(0):
            return False
        self._unset_keepalive_if_required()
        self._answer(*known, body, keep_alive=True)
        return True

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head, self._coming = self._coming, None

    def all_taken(self) -> None:
        if self._pieces is not None:  # More of it is still to come.
            pieces, self._pieces = self._pieces, None
            if not self.transport.is_closing():
                super().begin_request()
                for piece in pieces:
                    super().on_body(piece)

    def begin_request(self) -> None:
        if self.cycle is not None and self.transport.is_closing():  # type: ignore[redundant-expr]
            return  # It was sent behind the last one that is answered here; what uvicorn still hears of it, it drops.
        if self._direct is not None and self._may_be_direct():
            self._pieces = []
        else:
            super().begin_request()

    def _may_be_direct(self) -> bool:
        return (
            self.url == _URL
            and self.parser.get_method() == b"POST"
            and self.parser.get_http_version() == "1.1"
            and not self.expect_100_continue
            and not self.flow.write_paused
            and (self.cycle is None or self.cycle.response_complete)  # type: ignore[redundant-expr]
        )

    def on_body(self, body: bytes) -> None:
        if self._pieces is None:
            super().on_body(body)
        else:
            self.count_body(body)
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self._pieces is None:
            super().on_message_complete()
            return
        pieces, self._pieces = self._pieces, None
        self._is_in_body = False
        keep_alive = self.parser.should_keep_alive()
        is_small = len(self.headers) <= HEADERS_KNOWN_MAX
        if self._head is not None and is_small and len(self._known) < HEADS_MAX:
            sent = [each for each in self.headers if each[0] != b"content-length"]
            self._known[self._head] = sent, dict(sent)
        self._answer(self.headers, dict(self.headers), b"".join(pieces), keep_alive=keep_alive)

    def _answer(
        self,
        sent: Collection[tuple[bytes, bytes]],
        headers: Mapping[bytes, bytes],
        body: bytes,
        *,
        keep_alive: bool,
    ) -> None:
        assert self._direct is not None, "what is collected, and known, is for it alone"
        cycle = self.cycle = _Cycle(keep_alive=keep_alive)  # type: ignore[assignment]

        def is_wanted() -> bool:
            return not (cycle.disconnected or self.transport.is_closing())

        send = partial(self._send, cycle)
        self._direct.answer(Call(sent, headers, body, self.client, send, is_wanted))

    def _send(self, cycle: _Cycle, answer: Answer) -> None:
        """In one write; what is written after the caller has gone is nobody's."""
        if cycle.disconnected or self.transport.is_closing():
            return
        lines = [STATUS_LINE[answer.status]]
        for name, value in self.server_state.default_headers:
            lines += (name, b": ", value, b"\r\n")
        lines.append(f"content-type: {answer.media_type}\r\ncontent-length: {len(answer.body)}\r\n".encode())
        lines += [f"{name.lower()}: {value}\r\n".encode("latin-1") for name, value in answer.headers.items()]
        cycle.keep_alive = cycle.keep_alive and not answer.closes and "Connection" not in answer.headers
        if not cycle.keep_alive and "Connection" not in answer.headers:
            lines.append(b"connection: close\r\n")
        lines += (b"\r\n", answer.body)
        self.transport.write(b"".join(lines))
        cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()


def bounded(
    bounds: Bounds, traffic: Traffic, direct: Direct | None = None, tls: ServerContext | None = None
) -> Any:
    """What makes the protocol of each connection, for uvicorn's setting `http`; `traffic` and `direct` are the
    application's. With `tls`, uvicorn is to be given no context of its own."""
    share = max(1, int(bounds.connections_max * bounds.address_share))
    crowd: Crowd[BoundedProtocol] = Crowd(bounds.connections_max, share)
    unsent: UnsentAnswers[BoundedProtocol] = UnsentAnswers(bounds.unsent_bytes_max)
    reading = FairQueue()
    plain = partial(
        DirectProtocol,
        bounds=bounds,
        traffic=traffic,
        crowd=crowd,
        unsent=unsent,
        reading=reading,
        direct=direct,
    )
    return plain if tls is None else lambda **given: Door(plain(**given), tls.context, reading)
