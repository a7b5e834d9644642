"""How a connection by TLS is written to: what waits to be sent is counted at all levels, and little of it is encrypted.

The transport that an event loop gives for TLS tells only what TLS itself has not handed on, and pauses its writer by that alone: of one
answer of any size, which is encrypted at once and waits below in the socket's transport, it tells nothing. 1,300 clients that left one
answer of 1 MB unread each took 2 GB of a replica, and nobody was cut off. And what OpenSSL has once encrypted into keeps its room for as
long as the connection is open. So an answer is handed on in pieces, and only while the socket's transport takes them. Owns what waits
before TLS. Must not know what is said.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

PIECE_BYTES: Final = 65_536
"""As much as the socket's transport takes before it pauses: so much at most is encrypted and waits above it."""


class TlsTransport(asyncio.Transport):
    """Writes for `behind` by `secure`, which stands on `below`, the socket's. It pauses and resumes its writer as `below` would."""

    def __init__(
        self, below: asyncio.Transport, secure: asyncio.Transport, behind: asyncio.BaseProtocol
    ) -> None:
        super().__init__()
        self._below: Final = below
        self._secure: Final = secure
        self._behind: asyncio.BaseProtocol | None = behind
        """None when the connection is lost: the two would keep each other in memory."""
        self._waiting: Final[deque[memoryview]] = deque()
        self._waiting_bytes = 0
        self._is_full = False
        """Whether the socket's transport wants no more for now."""
        self._is_behind_paused = self._is_closing = False
        self.get_extra_info = secure.get_extra_info  # type: ignore[method-assign]
        self.pause_reading = secure.pause_reading  # type: ignore[method-assign]
        self.resume_reading = secure.resume_reading  # type: ignore[method-assign]
        self.abort = secure.abort  # type: ignore[method-assign]

    # From the protocol behind.

    def write(self, data: Any) -> None:
        """See asyncio.Transport."""
        if self.is_closing():
            return
        if self._is_full or self._waiting or len(data) > PIECE_BYTES:
            self._waiting.append(memoryview(data))
            self._waiting_bytes += len(data)
            self._send_on()
        else:
            self._secure.write(data)

    def get_write_buffer_size(self) -> int:
        """What waits: clear, encrypted, and in the socket's transport."""
        return (
            self._waiting_bytes + self._secure.get_write_buffer_size() + self._below.get_write_buffer_size()
        )

    def is_closing(self) -> bool:
        """See asyncio.Transport."""
        return self._is_closing or self._secure.is_closing()

    def close(self) -> None:
        """See asyncio.Transport: what waits is sent before."""
        self._is_closing = True
        self._send_on()

    # From the socket's transport.

    def hold(self) -> None:
        """Nothing more is to be written."""
        self._is_full = True
        if not self._is_behind_paused and self._behind is not None:
            self._is_behind_paused = True
            self._behind.pause_writing()

    def go_on(self, tls_goes_on: Callable[[], object]) -> None:
        """It takes more again: first what TLS has kept back, then what waits here."""
        self._is_full = False
        tls_goes_on()
        self._send_on()

    def lose(self) -> None:
        """The connection is lost."""
        self._behind = None
        self._drop_waiting()

    def _send_on(self) -> None:
        while self._waiting and not self._is_full:
            if self._secure.is_closing():  # The other side has ended TLS, and hears nothing more.
                self._drop_waiting()
                break
            piece = self._waiting.popleft()
            if len(piece) > PIECE_BYTES:
                self._waiting.appendleft(piece[PIECE_BYTES:])
                piece = piece[:PIECE_BYTES]
            self._waiting_bytes -= len(piece)
            self._secure.write(piece)
        if self._waiting or self._is_full:
            return
        if self._is_behind_paused and self._behind is not None:
            self._is_behind_paused = False
            self._behind.resume_writing()
        if self._is_closing and not self._secure.is_closing():
            self._secure.close()

    def _drop_waiting(self) -> None:
        self._waiting.clear()
        self._waiting_bytes = 0


class Between(asyncio.BufferedProtocol):
    """Stands between the socket's transport and TLS, and has `writing` hear when that wants no more: TLS alone would, and tell nobody."""

    def __init__(self, tls: asyncio.BufferedProtocol, writing: TlsTransport) -> None:
        self._tls: Final = tls
        self._writing: Final = writing
        self.get_buffer = tls.get_buffer  # type: ignore[method-assign]
        self.buffer_updated = tls.buffer_updated  # type: ignore[method-assign]
        self.eof_received = tls.eof_received  # type: ignore[method-assign]

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._tls.pause_writing()
        self._writing.hold()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._writing.go_on(self._tls.resume_writing)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._writing.lose()
        self._tls.connection_lost(exc)
