"""A TCP proxy that can refuse connections and cut those that are there. It must not know what the bytes mean.

Bytes are never doubled, reordered or changed, and a connection that has lost some never carries any later ones.
"""

import asyncio
import socket
import struct
from typing import Final, Self
from urllib.parse import urlsplit

from .held_ports import LOCAL, HeldPort

CHUNK_BYTES: Final = 64 * 1024
CLOSE_DEADLINE_S: Final = 5.0
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends a reset, and what waits is dropped."""


class Proxy:
    """A proxy before the server at `url`. Its port is its own for as long as it is there, also while it refuses."""

    def __init__(self, url: str) -> None:
        self._host: Final = urlsplit(url).hostname or "127.0.0.1"
        self._port: Final = urlsplit(url).port or 80
        self._held: Final = HeldPort.chosen()
        self.url: Final = f"http://{LOCAL}:{self._held.number}"
        self._server: asyncio.Server | None = None
        self._pairs: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        self.cut()
        for pair in self._pairs:
            pair.cancel()
        if self._pairs:
            await asyncio.wait(self._pairs, timeout=CLOSE_DEADLINE_S)
        self._held.release()

    @property
    def is_listening(self) -> bool:
        """Whether it takes connections."""
        return self._server is not None

    async def listen(self) -> None:
        """Take connections, again after `refuse`."""
        assert self._server is None
        self._server = await asyncio.start_server(self._begin, LOCAL, self._held.number)

    async def refuse(self) -> None:
        """Refuse further connections; those that are there stay."""
        if self._server is not None:
            server, self._server = self._server, None
            await stop_listening(server)

    def cut(self) -> int:
        """Reset every connection on both sides, and say how many there were; what was under way is lost."""
        for writer in self._writers:
            _reset(writer)
        return len(self._writers) // 2

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection, in a task of our own: the server's would report it as an error that we cancel it."""
        if self._server is None:  # It was being accepted as the way was closed.
            _reset(writer)
            return
        self._writers.add(writer)  # Before the task's first step, which never comes if it is cancelled first.
        task = asyncio.get_running_loop().create_task(self._take(reader, writer))
        self._pairs.add(task)
        task.add_done_callback(self._pairs.discard)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._pair(reader, writer)
        except OSError:
            _reset(writer)
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _pair(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        self._writers.add(far_writer)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.carry(reader, far_writer, is_request=True))
                group.create_task(self.carry(far_reader, writer, is_request=False))
        except* OSError:
            _reset(writer)
        finally:
            self._writers.discard(far_writer)
            far_writer.close()

    async def carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool
    ) -> None:
        """Carry one way of one connection, until its end; then the end is passed on too."""
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def stop_listening(server: asyncio.Server) -> None:
    """Accept no more, and close the server once what was accepted has its connection: asyncio (Python 3.11) would leave that
    socket open, with nobody to close it but the garbage collector."""
    for listening in server.sockets:
        server.get_loop().remove_reader(listening.fileno())
    try:
        await asyncio.sleep(0)
    finally:
        server.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    found = writer.get_extra_info("socket")
    if found is not None and not writer.transport.is_closing():
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
