"""Shows that the fault proxy does to a connection what its faults say, and never doubles, reorders or changes a byte."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from tests.support.fault_proxy import FaultProxy
from tests.system.harness import until

WAIT_S: Final = 90.0
SILENCE_S: Final = 0.05
BIG: Final = random.Random(7).randbytes(3_000_000)


class Peer:
    """A server that keeps what it got and echoes it."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.is_ended = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Echo until the end."""
        try:
            while chunk := await reader.read(10_000):
                self.got += chunk
                writer.write(chunk)
                await writer.drain()
            self.is_ended = True
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def proxied() -> AsyncIterator[tuple[Peer, FaultProxy]]:
    peer = Peer()
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with (
            asyncio.timeout(WAIT_S),
            FaultProxy(f"http://127.0.0.1:{port}", seed=1) as proxy,
        ):
            yield peer, proxy
    finally:
        server.close()


async def opened(proxy: FaultProxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))


async def echoed(proxy: FaultProxy, text: bytes) -> bytes:
    """What comes back of `text` on a connection of its own."""
    reader, writer = await opened(proxy)

    async def send() -> None:
        writer.write(text)
        await writer.drain()
        writer.write_eof()

    _, back = await asyncio.gather(send(), reader.read(-1))
    writer.close()
    return back


async def is_silent(reader: asyncio.StreamReader) -> bool:
    """Whether nothing comes, not even the end, for a moment."""
    try:
        async with asyncio.timeout(SILENCE_S):
            await reader.read(1)
    except TimeoutError:
        return True
    return False


async def test_delayed_bytes_arrive_all_and_in_order() -> None:
    async with proxied() as (peer, proxy):
        for way in (proxy.to_server, proxy.to_client):
            way.delay_s, way.jitter_s = 0.001, 0.01
        assert await echoed(proxy, BIG) == BIG
        assert peer.got == BIG
        assert proxy.to_server.felt["delay"] > 10
        assert proxy.to_client.felt["delay"] > 10


async def test_what_is_held_back_arrives_after_its_sender_has_hung_up() -> None:
    async with proxied() as (peer, proxy):
        proxy.to_server.hold()
        _, writer = await opened(proxy)
        writer.write(b"late")
        writer.close()
        await writer.wait_closed()
        await until(lambda: proxy.to_server.felt["hold"] > 0, "the proxy holds it")
        assert peer.got == b""
        proxy.to_server.release()
        await until(lambda: peer.is_ended, "it arrives")
        assert peer.got == b"late"


@pytest.mark.parametrize("is_request", [True, False])
async def test_a_way_that_swallowed_stays_silent_and_open_and_the_other_goes_on(is_request: bool) -> None:
    async with proxied() as (peer, proxy):
        reader, writer = await opened(proxy)
        writer.write(b"1")
        assert await reader.readexactly(1) == b"1"
        way = proxy.to_server if is_request else proxy.to_client
        way.is_swallowing = True
        writer.write(b"2")
        await until(lambda: way.felt["swallow"] > 0, "it is swallowed")
        way.is_swallowing = False
        writer.write(b"3")
        await until(lambda: way.felt["swallow"] > 1, "no gap: what comes later is swallowed, too")
        assert await is_silent(reader)
        assert bytes(peer.got) == (b"1" if is_request else b"123")
        assert await echoed(proxy, b"4") == b"4"
        writer.close()


async def test_cut_resets_what_is_there_and_takes_new_connections() -> None:
    async with proxied() as (_, proxy):
        reader, writer = await opened(proxy)
        writer.write(b"1")
        assert await reader.readexactly(1) == b"1"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            await reader.read(1)
        assert proxy.cut_count == 1
        assert await echoed(proxy, b"2") == b"2"


async def test_refused_connections_are_told_so_and_others_stay() -> None:
    async with proxied() as (_, proxy):
        reader, writer = await opened(proxy)
        writer.write(b"1")
        assert await reader.readexactly(1) == b"1"
        await proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            await opened(proxy)
        writer.write(b"2")
        assert await reader.readexactly(1) == b"2"
        await proxy.listen()
        assert await echoed(proxy, b"3") == b"3"
        writer.close()


async def test_waiting_bytes_are_bounded() -> None:
    """A sender that goes on while the way is held must itself wait; the proxy does not collect without end."""
    async with proxied() as (peer, proxy):
        proxy.to_server.hold()
        _, writer = await opened(proxy)
        sent = 0
        async with asyncio.timeout(WAIT_S):
            while True:
                writer.write(BIG)
                sent += 1
                try:
                    async with asyncio.timeout(5 * SILENCE_S):
                        await writer.drain()
                except TimeoutError:
                    break
        assert sent * len(BIG) < 60_000_000
        proxy.to_server.release()
        await writer.drain()
        await until(lambda: len(peer.got) == sent * len(BIG), "all of it arrives")
        writer.transport.abort()
