"""A TCP proxy that makes a network bad: delay, holding back, swallowing, cutting, refusing; each way has its own faults.

Owns what a real network may do to a connection, and no more: bytes are never doubled, reordered or changed, and a
connection that has lost some never carries any later ones (TCP would not leave a gap). What is held back or delayed still
arrives after the sender has hung up, as what is under way does. It must not know what the bytes mean.
"""

import asyncio
import random
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Self
from urllib.parse import urlsplit

from .held_ports import LOCAL, HeldPort

CHUNK_BYTES: Final = 64 * 1024
CHUNKS_MAX: Final = 64
"""Chunks of one way of one connection that wait; the sender then waits too."""
CLOSE_DEADLINE_S: Final = 5.0
_RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: closing sends a reset, and what waits is dropped."""


class Way:
    """The faults of one direction of all connections through a proxy; none to begin with.

    `delay_s` and up to `jitter_s` more for each chunk. `is_swallowing`: what comes is lost, and the connection with it
    stays open and silent. `hold()`: nothing passes until `release()`.
    """

    def __init__(self, rng: random.Random) -> None:
        self.delay_s = 0.0
        self.jitter_s = 0.0
        self.is_swallowing = False
        self._passing: Final = asyncio.Event()
        self._passing.set()
        self._rng: Final = rng
        self.felt: Final[Counter[str]] = Counter()
        """How many chunks met which fault."""

    def hold(self) -> None:
        """Let nothing pass."""
        self._passing.clear()

    def release(self) -> None:
        """Let pass what was held back, and what comes."""
        self._passing.set()

    def due_s(self) -> float:
        """When a chunk that comes now may pass, by the loop's clock."""
        delay_s = self.delay_s + self.jitter_s * self._rng.random()
        self.felt["delay"] += delay_s > 0
        return asyncio.get_running_loop().time() + delay_s

    async def passing(self) -> None:
        """Wait while this way is held."""
        self.felt["hold"] += not self._passing.is_set()
        await self._passing.wait()


class Proxy:
    """A proxy before the server at `url`. `to_server` and `to_client` are its two ways.

    Its port is its own for as long as it is there, also while it refuses.
    """

    def __init__(self, url: str, seed: int) -> None:
        self._host: Final = urlsplit(url).hostname or "127.0.0.1"
        self._port: Final = urlsplit(url).port or 80
        self._held: Final = HeldPort.chosen()
        self.url: Final = f"http://{LOCAL}:{self._held.number}"
        rng = random.Random(seed)
        self.to_server: Final = Way(rng)
        self.to_client: Final = Way(rng)
        self.cut_count = 0
        self._server: asyncio.Server | None = None
        self._pairs: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        self.cut()
        for pair in self._pairs:
            pair.cancel()
        if self._pairs:
            await asyncio.wait(self._pairs, timeout=CLOSE_DEADLINE_S)
        self._held.release()

    async def listen(self) -> None:
        """Take connections, again after `refuse`."""
        assert self._server is None
        self._server = await asyncio.start_server(self._begin, LOCAL, self._held.number)

    def refuse(self) -> None:
        """Refuse further connections; those that are there stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def cut(self) -> None:
        """Reset every connection on both sides; what was under way is lost."""
        for writer in self._writers:
            _reset(writer)
        self.cut_count += len(self._writers) // 2

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection, in a task of our own: the server's would report it as an error that we cancel it."""
        task = asyncio.get_running_loop().create_task(self._take(reader, writer))
        self._pairs.add(task)
        task.add_done_callback(self._pairs.discard)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
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
                group.create_task(_carry(reader, far_writer, self.to_server))
                group.create_task(_carry(far_reader, writer, self.to_client))
        except* OSError:
            _reset(writer)
        finally:
            self._writers.discard(far_writer)
            far_writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
    """One way of one connection, until its end; then the end is passed on too."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(CHUNKS_MAX)
    async with asyncio.TaskGroup() as group:
        group.create_task(_read(reader, way, waiting.put))
        group.create_task(_write(writer, way, waiting))


async def _read(
    reader: asyncio.StreamReader, way: Way, put: Callable[[tuple[float, bytes]], Awaitable[None]]
) -> None:
    due_s = 0.0
    while True:
        chunk = await reader.read(CHUNK_BYTES)
        due_s = max(due_s, way.due_s())  # never before the chunk that came before
        await put((due_s, chunk))
        if not chunk:
            return


async def _write(writer: asyncio.StreamWriter, way: Way, waiting: asyncio.Queue[tuple[float, bytes]]) -> None:
    is_dead = False
    while True:
        due_s, chunk = await waiting.get()
        await asyncio.sleep(due_s - asyncio.get_running_loop().time())
        await way.passing()
        if not chunk:
            if writer.can_write_eof():
                writer.write_eof()
            return
        is_dead = is_dead or way.is_swallowing
        if is_dead:
            way.felt["swallow"] += 1
            continue
        writer.write(chunk)
        await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    found = writer.get_extra_info("socket")
    if found is not None and not writer.transport.is_closing():
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
