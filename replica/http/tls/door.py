"""A connection by TLS from its first moment: who is connected counts from then on, not only once a handshake has ended.

Servers of asyncio tell a protocol of a connection when its handshake is over; until then nobody could bound them: silent ones took
all files that the process may open, and a thousand that came at once took the event loop for a second. So a connection is accepted
plainly, and counted; what comes on it is handed to TLS in pieces, one in each turn of the loop, and addresses take turns. Later, those
take turns whose records are many. Owns these turns. Must not know what is said by TLS.
"""

import asyncio
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ..connection_shares import origin
from ..connections import BoundedProtocol
from ..fair_queue import LONG_BYTES, FairQueue
from .records import RecordByRecord
from .transport import Between, TlsTransport

PIECE_BYTES: Final = 4096
HANDSHAKE_BYTES_MAX: Final = 32_768
"""Of a client, until TLS is agreed on: a dozen certificates. Five hundred of them cost 0.06 s to read, and their sender nothing."""


class Door(asyncio.Protocol):
    """Gives one connection to `behind` when TLS is agreed on, within the time that a head may take.

    It stands between the connection and the protocol of TLS, which the event loop makes, until then.
    """

    def __init__(self, behind: BoundedProtocol, context: ssl.SSLContext, turns: FairQueue) -> None:
        self._behind: Final = behind
        self._context: Final = context
        self._turns: Final = turns
        self._early: Final = _Early()
        self._tls: asyncio.BufferedProtocol | None = None
        self._agreeing: asyncio.Task[None] | None = None
        self._rest = b""
        """What has come, and TLS has not been given yet."""
        self._given_bytes = 0
        self._is_counted = self._is_lost = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio.Protocol."""
        self._transport = transport
        if (peer := transport.get_extra_info("peername")) is None:  # It has gone already.
            transport.abort()
            return
        self._origin = origin(str(peer[0]))
        self._is_counted = True
        self._behind.arrive(str(peer[0]), transport.abort)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        self._transport.pause_reading()
        is_first = not self._rest
        self._rest += data
        if is_first:
            self._wait()

    def eof_received(self) -> None:
        """See asyncio.Protocol: the connection is closed, since nothing can be agreed on any more."""

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._leave()
        if self._tls is not None:
            self._tls.connection_lost(exc)

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        if self._tls is not None:
            self._tls.pause_writing()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        if self._tls is not None:
            self._tls.resume_writing()

    def _wait(self) -> None:
        self._turns.put(self._origin, LONG_BYTES, self._have_turn)

    def _have_turn(self) -> None:
        if self._is_lost or self._behind.is_made or self._transport.is_closing():
            return
        if self._agreeing is None:
            self._agreeing = asyncio.get_running_loop().create_task(self._agree())
        else:
            self._give_piece()

    def _leave(self) -> None:
        """The connection is lost. Whoever hears of it first tells: for a moment `start_tls` has its own protocol there."""
        self._is_lost = True
        if self._is_counted:
            self._is_counted = False
            self._behind.depart()

    async def _agree(self) -> None:
        loop = asyncio.get_running_loop()
        secure = None
        try:
            if not self._transport.is_closing():
                loop.call_soon(self._stand_between)  # First after `start_tls` has put its protocol there.
                secure = await loop.start_tls(self._transport, self._early, self._context, server_side=True)
        except (OSError, ssl.SSLError):
            pass  # Nothing was agreed on.
        if secure is None or self._transport.is_closing():
            self._transport.abort()
            self._leave()
        else:
            self._open(secure)

    def _stand_between(self) -> None:
        if self._transport.is_closing():
            return
        self._tls = self._transport.get_protocol()  # type: ignore[assignment]
        self._transport.set_protocol(self)
        asyncio.get_running_loop().call_soon(self._give_piece)  # Behind what `start_tls` does first.

    def _give_piece(self) -> None:
        if self._is_lost or self._transport.is_closing():
            return
        piece, self._rest = self._rest[:PIECE_BYTES], self._rest[PIECE_BYTES:]
        self._given_bytes += len(piece)
        if self._given_bytes > HANDSHAKE_BYTES_MAX:
            self._transport.abort()
            return
        self._give(piece)
        if self._rest:
            self._wait()
        else:
            self._transport.resume_reading()

    def _give(self, data: bytes) -> None:
        assert self._tls is not None, "it has begun"
        while data and not self._is_lost:
            room = memoryview(self._tls.get_buffer(len(data)))
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self._tls.buffer_updated(count)
            data = data[count:]

    def _open(self, secure: asyncio.Transport) -> None:
        """TLS is agreed on: from now on the door stands between no more."""
        assert self._tls is not None, "it has agreed"
        writing = TlsTransport(self._transport, secure, self._behind)
        self._transport.pause_reading()
        self._transport.set_protocol(Between(self._tls, writing))
        self._transport.resume_reading()
        records = secure.get_extra_info("ssl_object")
        assert isinstance(records, RecordByRecord), "a replica's context makes such"
        records.may_go_on = partial(_may_read_on, self._transport, self._turns, self._origin)
        secure.set_protocol(self._behind)
        self._behind.connection_made(writing)
        if self._early.data:
            self._behind.data_received(bytes(self._early.data))
        self._give(self._rest)


def _may_read_on(
    transport: asyncio.Transport, turns: FairQueue, origin: str, go_on: Callable[[], None]
) -> bool:
    """See RecordByRecord. It knows neither the door nor TLS: they would keep each other in memory."""
    if turns.may_begin(LONG_BYTES):
        return True
    turns.put(origin, LONG_BYTES, partial(_read_on, transport, go_on))
    return False


def _read_on(transport: asyncio.Transport, go_on: Callable[[], None]) -> None:
    go_on()
    tls: Any = transport.get_protocol()
    if tls is not None:  # Else the connection is lost.
        tls.buffer_updated(0)


class _Early(asyncio.Protocol):
    """Keeps what was said right behind the handshake."""

    def __init__(self) -> None:
        self.data: Final = bytearray()

    def data_received(self, data: Any) -> None:
        """See asyncio.Protocol."""
        self.data.extend(data)
