"""How a replica that was told to stop ends: no new request, then what is under way, then all that is left; and the server
that does so at a signal, and says when it has begun.

Owns the order and the times. Nothing need be handed back: a term of this replica's front end is passed by whoever takes a
higher one, and what it has promised is on its disk. What this saves callers is a doubt: whoever asks hears that certainly
nothing was done, and whoever waits hears the end.
"""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import uvicorn

from ...api_specs.limits import DRAIN_S_MAX
from ..api.operations import Operations
from ..http.traffic import Traffic
from ..service.copying import Copies
from ..service.member import Member
from ..upkeep.upkeep import Upkeep
from .accepting import AcceptLoop
from .systemd import tell_ready

LINGER_S: Final = 0.5
"""Connections stay open at least so long, for a caller to hear on them that the replica stops: a connection that is closed
while a request is on its way leaves the caller in doubt."""
CUT_S: Final = 2
"""What is left after the drain is told that its outcome is not known; then connections get so long to take their answers."""
EXIT_AT_ONCE: Final = 1
"""The exit code after a second signal."""
_LOOK_S: Final = 0.02

_log = logging.getLogger(__name__)


class Shutdown:
    """The end of one application."""

    def __init__(self, member: Member, traffic: Traffic, operations: Operations, copies: Copies) -> None:
        self._member: Final = member
        self._traffic: Final = traffic
        self._operations: Final = operations
        self._copies: Final = copies
        self.upkeep: Upkeep | None = None
        """What uses the front end, once both run."""

    def begin(self) -> None:
        """From now on the replica says that it is not ready, refuses requests, and hurries those that wait for items."""
        self._member.is_stopping = True
        self._copies.stop()
        if self._operations.front_end is not None:
            self._operations.front_end.hurry()

    async def drain(self, has_callers: Callable[[], bool]) -> None:
        """Wait for what is under way, and while `has_callers`, for at least LINGER_S; after DRAIN_S_MAX, end the rest."""
        now_s = asyncio.get_running_loop().time
        linger_s, late_s = now_s() + LINGER_S, now_s() + DRAIN_S_MAX
        while self._traffic.under_way > 0 or (now_s() < linger_s and has_callers()):
            if now_s() > late_s:
                # A body that had not come whole is no doubt of anybody: nothing was done.
                if (left := self._traffic.under_way - self._traffic.end_bodies()) > 0:
                    _log.warning("%s requests were still under way: their outcome is unknown", left)
                break
            await asyncio.sleep(_LOOK_S)
        await self.end()

    async def end(self) -> None:
        """End the front end, and before it what uses it."""
        if self.upkeep is not None:
            await self.upkeep.stop()
        if self._operations.front_end is not None:
            await self._operations.front_end.aclose()


class Server(uvicorn.Server):
    """uvicorn, with our end: the first SIGTERM or SIGINT stops in good order, a second one at once."""

    def __init__(self, config: uvicorn.Config, shutdown: Shutdown) -> None:
        super().__init__(config)
        self._shutdown: Final = shutdown
        self._acceptors: list[AcceptLoop] = []

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals while it serves. uvicorn would raise them again at the end, as if the process had failed."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.handle_exit)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See uvicorn: called by a signal, between any two steps of the main thread."""
        if self.should_exit:
            os._exit(EXIT_AT_ONCE)  # As a crash: what was answered for is on disk.
        self.should_exit = True
        self._shutdown.begin()

    async def startup(self, sockets: "list[socket.socket] | None" = None) -> None:
        """Start as uvicorn does; then a service manager that waits for it is told."""
        await super().startup(sockets)
        self._acceptors = [
            AcceptLoop(each, self._protocol) for server in self.servers for each in server.sockets
        ]
        if not self.should_exit:
            tell_ready()

    async def shutdown(self, sockets: "list[object] | None" = None) -> None:  # type: ignore[override]
        """Stop accepting, drain, then stop as uvicorn does."""
        del sockets  # It makes its own.
        self.stop_accepting()
        await self._shutdown.drain(lambda: bool(self.server_state.connections))
        await super().shutdown()

    def stop_accepting(self) -> None:
        """Let nobody connect any more."""
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors.clear()
        for server in self.servers:
            server.close()

    def _protocol(self) -> asyncio.Protocol:
        """For one connection, as uvicorn makes it."""
        protocol = self.config.http_protocol_class
        assert not isinstance(protocol, str), "the configuration is loaded"
        return protocol(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg]
