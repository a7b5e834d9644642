"""A TCP proxy that makes a network bad: delay, holding back, swallowing, cutting, refusing; each way has its own faults.

Owns what a real network may do to a connection, and no more: bytes are never doubled, reordered or changed, and a
connection that has lost some never carries any later ones (TCP would not leave a gap). What is held back or delayed still
arrives after the sender has hung up, as what is under way does. It must not know what the bytes mean.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

from quorate.measurement.faults.proxy import CHUNK_BYTES, Proxy

CHUNKS_MAX: Final = 64
"""Chunks of one way of one connection that wait; the sender then waits too."""


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


class FaultProxy(Proxy):
    """A proxy before the server at `url`. `to_server` and `to_client` are its two ways."""

    def __init__(self, url: str, seed: int) -> None:
        super().__init__(url)
        rng = random.Random(seed)
        self.to_server: Final = Way(rng)
        self.to_client: Final = Way(rng)
        self.cut_count = 0

    def cut(self) -> int:
        """See Proxy; counted."""
        count = super().cut()
        self.cut_count += count
        return count

    async def carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_request: bool
    ) -> None:
        """See Proxy."""
        await _carry(reader, writer, self.to_server if is_request else self.to_client)


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
