"""What is left unread by TLS counts, whole, waits clear, and comes whole to who reads it in the end."""

import asyncio
import ssl
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from quorate.replica.http.fair_queue import FairQueue
from quorate.replica.http.tls.door import Door
from quorate.replica.http.tls.transport import PIECE_BYTES, TlsTransport
from quorate.replica.http.unsent_answers import unconfirmed_bytes
from tests.unit.replica.http.tls.test_door import LOOPS, WAIT_S, Behind, contexts, run

Make = Callable[[], asyncio.AbstractEventLoop]
LARGE = bytes(range(256)) * 64_000
"""More than the buffers of two sockets hold."""
RESUMED_BYTES = 16_384
"""The socket's transport pauses until no more waits in it."""
RECORDS_PER = 1.01
"""Encrypted, by clear."""


class Saying(Behind):
    """Says something large to whoever says something."""

    made: "Callable[[], Saying | None]" = staticmethod(lambda: None)
    """The one that came last."""
    ends = False
    """Whether it hangs up behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        Saying.made = weakref.ref(self)

    def data_received(self, data: bytes) -> None:
        del data
        self._transport.write(LARGE)
        if self.ends:
            self._transport.close()

    def pause_writing(self) -> None:
        self.heard.append("pause")

    def resume_writing(self) -> None:
        self.heard.append("resume")

    @property
    def transport(self) -> TlsTransport:
        assert isinstance(self._transport, TlsTransport)
        return self._transport


@asynccontextmanager
async def asked(
    replica: ssl.SSLContext, trusting: ssl.SSLContext
) -> AsyncIterator[tuple[Callable[[], Saying | None], asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection on which something large was said, of which nothing is read yet; the other side, and the reader's."""
    Saying.made = staticmethod(lambda: None)
    server = await asyncio.get_running_loop().create_server(
        lambda: Door(Saying(), replica, FairQueue()),  # type: ignore[arg-type]
        "127.0.0.1",
        0,
    )
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trusting, server_hostname="localhost", limit=PIECE_BYTES
    )
    writer.write(b"say")
    try:
        async with asyncio.timeout(WAIT_S):
            while (saying := Saying.made()) is None or not saying.heard:
                await asyncio.sleep(0.001)
            before = -1
            while (waits := saying.transport.get_write_buffer_size()) != before:
                before = waits
                await asyncio.sleep(0.1)
        del saying
        yield Saying.made, reader, writer
    finally:
        writer.transport.abort()
        server.close()
        async with asyncio.timeout(WAIT_S):
            while Behind.there:
                await asyncio.sleep(0.001)


@pytest.mark.parametrize("make", LOOPS)
def test_what_is_left_unread_counts_whole_and_waits_clear(make: Make, tmp_path: Path) -> None:
    async def work() -> None:
        async with asked(*contexts(tmp_path)) as (made, reader, _):
            saying = made()
            assert saying is not None
            assert saying.heard[-1] == "pause"
            waits = saying.transport.get_write_buffer_size()
            sent = unconfirmed_bytes(saying.transport)
            assert waits > len(LARGE) // 4
            encrypted = waits - saying.transport._waiting_bytes
            assert RESUMED_BYTES < encrypted < 3 * PIECE_BYTES
            assert waits + sent <= RECORDS_PER * len(LARGE)
            async with asyncio.timeout(WAIT_S):
                assert await reader.readexactly(len(LARGE)) == LARGE
                while saying.transport.get_write_buffer_size():
                    await asyncio.sleep(0.001)
            assert saying.heard == ["pause", "resume"] * (len(saying.heard) // 2)

    run(make, work())


@pytest.mark.parametrize("make", LOOPS)
def test_who_hangs_up_behind_an_answer_sends_all_of_it(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Saying, "ends", True)

    async def work() -> None:
        async with asked(*contexts(tmp_path)) as (made, reader, _), asyncio.timeout(WAIT_S):
            saying = made()
            assert saying is not None
            assert saying.transport.is_closing()
            assert await reader.read(-1) == LARGE

    run(make, work())


@pytest.mark.parametrize("make", LOOPS)
@pytest.mark.parametrize("is_reset", [True, False])
def test_nothing_is_kept_of_a_connection_that_is_lost(make: Make, is_reset: bool, tmp_path: Path) -> None:
    async def work() -> None:
        async with asked(*contexts(tmp_path)) as (made, _, writer), asyncio.timeout(WAIT_S):
            saying = made()
            assert saying is not None
            transport = saying.transport
            del saying
            if is_reset:
                writer.transport.abort()
            else:
                transport.abort()
            while Behind.there:
                await asyncio.sleep(0.001)
            assert transport.get_write_buffer_size() == 0
            del transport
            while made() is not None:
                await asyncio.sleep(0.001)

    run(make, work())
