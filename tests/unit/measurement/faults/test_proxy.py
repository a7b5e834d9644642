"""A server that stops listening leaves no socket behind. What a proxy does is in tests/system/failures/test_fault_proxy.py."""

import asyncio
import socket

import pytest

from quorate.measurement.faults.proxies import Ways
from quorate.measurement.faults.proxy import stop_listening


class Counted(asyncio.Protocol):
    made = 0
    lost = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        Counted.made += 1
        transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        Counted.lost += 1


@pytest.mark.parametrize("turns", range(5))
async def test_what_is_being_accepted_as_a_server_stops_has_its_connection(turns: int) -> None:
    server = await asyncio.get_running_loop().create_server(Counted, "127.0.0.1", 0)
    before = Counted.made
    with socket.create_connection(server.sockets[0].getsockname()):
        for _ in range(turns):
            await asyncio.sleep(0)
        await stop_listening(server)
        for _ in range(5):
            await asyncio.sleep(0)
    assert Counted.made - before == (turns > 1)
    assert Counted.lost == Counted.made


async def echoed(caller: socket.socket) -> bytes:
    """What comes back; nothing where the connection was reset."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(60):
            await loop.sock_sendall(caller, b"1")
            return await loop.sock_recv(caller, 1)
    except ConnectionError:
        return b""


@pytest.mark.parametrize("turns", range(5))
async def test_what_is_being_accepted_as_a_way_closes_is_reset(turns: int) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(1))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    way = ("f", "r1")
    async with Ways([way], {"r1": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}) as ways:
        port = int(ways.urls_of("f")["r1"].rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as caller:
            caller.setblocking(False)
            for _ in range(turns):
                await asyncio.sleep(0)
            await ways.close(way, "cut")
            assert await echoed(caller) == b""
    server.close()


async def test_faults_that_close_and_open_a_way_at_once_leave_it_as_the_last_says() -> None:
    way = ("f", "r1")
    async with Ways([way], {"r1": "http://127.0.0.1:9"}) as ways:
        await ways.close(way, "a")
        await asyncio.gather(ways.open(way, "a"), ways.close(way, "b"))
        assert ways.reasons(way) == {"b"}
        assert not ways._proxies[way].is_listening
        await asyncio.gather(ways.close(way, "c"), ways.open(way, "c"), ways.open(way, "b"))
        assert not ways.reasons(way)
        assert ways._proxies[way].is_listening
