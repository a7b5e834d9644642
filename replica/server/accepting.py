"""Takes many connections that wait to be accepted in one turn of the event loop.

uvloop accepts one in each turn (libuv since 1.45), so a newcomer would wait for as many turns as connections came before it, with all
that is done in them: a burst from one caller would hold up the others before anybody could tell whose connection is whose. Once
accepted, callers take turns (`quorate.replica.http.gate`). Owns that step. Must not know what is said on a connection.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

ACCEPTS_MAX: Final = 64
"""In one turn: to accept one takes a tenth of a millisecond, and a file, before it can be refused where there are too many."""

_log = logging.getLogger(__name__)


class AcceptLoop:
    """Accepts at one listening socket, beside the server that owns it."""

    def __init__(self, listening: socket.socket, protocol: Callable[[], asyncio.Protocol]) -> None:
        self._listening: Final = listening.dup()
        self._protocol: Final = protocol
        self._loop: Final = asyncio.get_running_loop()
        self._opening: Final[set[asyncio.Task[object]]] = set()
        self._loop.add_reader(self._listening, self._accept)

    def close(self) -> None:
        """Accept no more."""
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        for _ in range(ACCEPTS_MAX):
            try:
                accepted, _ = self._listening.accept()
            except OSError:  # None waits, or there is no file for it: the server says so.
                return
            accepted.setblocking(False)
            opening = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, accepted))
            self._opening.add(opening)
            opening.add_done_callback(self._opened)

    def _opened(self, opening: "asyncio.Task[object]") -> None:
        self._opening.discard(opening)
        if not opening.cancelled() and not isinstance(error := opening.exception(), OSError | None):
            _log.error(
                "a connection could not be opened", exc_info=error
            )  # Else its caller has gone already.
