"""A connection by TLS from its first moment: who is connected counts from then on, not only once a handshake has ended.

Servers of asyncio tell a protocol of a connection when its handshake is over; until then nobody could bound them, and silent ones
took all files that the process may open. So the socket is accepted plainly, counted, and only then given to TLS. Owns that
step. Must not know what is said by TLS.
"""

import asyncio
import socket
import ssl
from functools import partial
from typing import Final

from .connections import BoundedProtocol

_Agreed = tuple[asyncio.Transport, asyncio.BaseProtocol]


class Door(asyncio.Protocol):
    """Gives one connection to `behind` when TLS is agreed on, within the time that a head may take."""

    def __init__(self, behind: BoundedProtocol, context: ssl.SSLContext) -> None:
        self._behind: Final = behind
        self._context: Final = context

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio.Protocol. Nothing was read yet: the socket goes on under a transport of its own."""
        try:
            accepted: socket.socket = transport.get_extra_info("socket").dup()
            peer = accepted.getpeername()
        except OSError:  # It has gone already, or there is no file for it.
            return
        finally:
            transport.abort()
        agreeing = asyncio.get_running_loop().create_task(self._agree(accepted))
        agreeing.add_done_callback(partial(self._ended, accepted))
        self._behind.arrive(str(peer[0]), agreeing.cancel)

    async def _agree(self, accepted: socket.socket) -> _Agreed:
        loop = asyncio.get_running_loop()
        return await loop.connect_accepted_socket(lambda: self._behind, accepted, ssl=self._context)

    def _ended(self, accepted: socket.socket, agreeing: "asyncio.Task[_Agreed]") -> None:
        if (agreeing.cancelled() or agreeing.exception() is not None) and not self._behind.is_made:
            accepted.close()
            self._behind.depart()
