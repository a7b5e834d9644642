"""A server that stops listening leaves no socket behind. What a proxy does is in tests/system/failures/test_fault_proxy.py."""

import asyncio
import socket

import pytest

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
