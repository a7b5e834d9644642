"""A handshake's pieces are read one in each turn of the event loop, are few, and what is said behind it comes whole."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from quorate.replica.http.fair_queue import FairQueue
from quorate.replica.http.tls.context import ServerContext, ServerTls
from quorate.replica.http.tls.door import HANDSHAKE_BYTES_MAX, Door
from tests.support.certificates import Authority
from tests.support.turns import CountedTurns

WAIT_S = 20.0
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
LARGE = bytes(range(256)) * 4000


class Behind(asyncio.Protocol):
    """Says again what it hears, and counts who is there."""

    there = 0
    drop: Callable[[], object]
    """Ends the connection that came last."""

    def __init__(self) -> None:
        self.is_made = False

    def arrive(self, host: str, drop: Callable[[], object]) -> None:
        assert host == "127.0.0.1"
        Behind.drop = staticmethod(drop)
        Behind.there += 1

    def depart(self) -> None:
        Behind.there -= 1

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.is_made = True
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert self.is_made
        self._transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.depart()


class Said:
    """A client by hand: what it says goes out when it is told to, and all at once."""

    def __init__(self, context: ssl.SSLContext, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._in, self._out, server_hostname="localhost")
        self.reader, self.writer = reader, writer

    def agrees(self) -> bool:
        """Go on with the handshake; whether it is at its end, for the client."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    async def agree(self) -> None:
        """The handshake to its end for the client, whose last words are not sent yet."""
        while not self.agrees():
            self.send()
            assert await self.hear()

    def send(self) -> None:
        self.writer.write(self._out.read())

    async def hear(self) -> bytes:
        """What came, or nothing at the end."""
        try:
            async with asyncio.timeout(WAIT_S):
                found = await self.reader.read(65_536)
        except ConnectionError:
            return b""
        self._in.write(found)
        return found

    async def read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            try:
                found += self.tls.read(65_536)
            except ssl.SSLWantReadError:
                if not await self.hear():
                    break
        return found


@asynccontextmanager
async def served(context: ssl.SSLContext, turns: FairQueue) -> AsyncIterator[int]:
    server = await asyncio.get_running_loop().create_server(
        lambda: Door(Behind(), context, turns),  # type: ignore[arg-type]
        "127.0.0.1",
        0,
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        async with asyncio.timeout(WAIT_S):
            while Behind.there:
                await asyncio.sleep(0.001)


def run(make: Callable[[], asyncio.AbstractEventLoop], work: Coroutine[Any, Any, None]) -> None:
    Behind.there = 0
    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(work)


def contexts(folder: Path, certificates: int = 0) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A replica's and a client's, which shows so many certificates besides its own."""
    authority = Authority(folder, "authority")
    own = authority.signed("own")
    asked = str(authority.own.certificate) if certificates else ""
    replica = ServerContext(ServerTls(str(own.certificate), str(own.key), asked)).context
    client = ssl.create_default_context(cafile=str(authority.own.certificate))
    if certificates:
        chain = folder / "chain.pem"
        chain.write_text(own.certificate.read_text() + authority.own.certificate.read_text() * certificates)
        client.load_cert_chain(chain, own.key)
    return replica, client


@pytest.mark.parametrize("make", LOOPS)
def test_of_handshakes_that_begin_at_once_one_goes_on_in_each_turn(
    make: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    """A thousand of 0.75 ms each were one step of the loop: others waited for a second."""
    replica, trusting = contexts(tmp_path)

    async def work() -> None:
        turns = CountedTurns()
        async with served(replica, turns) as port:
            clients = [Said(trusting, *await asyncio.open_connection("127.0.0.1", port)) for _ in range(20)]
            agreeing = clients
            while agreeing := [each for each in agreeing if not each.agrees()]:
                for each in agreeing:
                    each.send()
                for each in agreeing:
                    assert await each.hear()
            for each in clients:
                each.send()
            for each in clients:
                each.tls.write(b"word")
                each.send()
                assert await each.read(4) == b"word"
                each.writer.close()
        assert turns.begun() >= 40, "a hello and an end each"
        assert turns.most() == 1

    run(make, work())


@pytest.mark.parametrize("make", LOOPS)
@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("together", [True, False])
def test_what_is_said_right_behind_a_handshake_comes_whole(
    make: Callable[[], asyncio.AbstractEventLoop], newest: ssl.TLSVersion, together: bool, tmp_path: Path
) -> None:
    replica, trusting = contexts(tmp_path, certificates=3)
    trusting.maximum_version = newest

    async def work() -> None:
        async with served(replica, FairQueue()) as port:
            client = Said(trusting, *await asyncio.open_connection("127.0.0.1", port))
            await client.agree()
            if not together:
                client.send()
            client.tls.write(LARGE)
            client.send()
            assert await client.read(len(LARGE)) == LARGE
            client.writer.close()

    run(make, work())


@pytest.mark.parametrize("make", LOOPS)
def test_who_shows_too_many_certificates_is_cut_off_before_they_are_read(
    make: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    """Sixty clients with 67 kB of them took a replica's event loop for two seconds, without one that it knows."""
    replica, trusting = contexts(tmp_path, certificates=120)

    async def work() -> None:
        async with served(replica, FairQueue()) as port:
            client = Said(trusting, *await asyncio.open_connection("127.0.0.1", port))
            await client.agree()
            assert client._out.pending > HANDSHAKE_BYTES_MAX
            client.send()
            assert not [heard async for heard in _all(client)]
            client.writer.close()

    run(make, work())


@pytest.mark.parametrize("make", LOOPS)
def test_who_has_reset_a_connection_before_it_is_accepted_is_not_counted(
    make: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    """Such a connection has no address. Seventeen hundred a second took all files of a replica."""
    replica, _ = contexts(tmp_path)

    async def work() -> None:
        async with served(replica, FairQueue()) as port:
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", port)) as gone:
                    gone.sendall(b"hello")
                    gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            for _ in range(20):
                await asyncio.sleep(0.001)

    run(make, work())


@pytest.mark.parametrize("make", LOOPS)
@pytest.mark.parametrize("turns", range(10))
def test_a_connection_that_is_dropped_in_the_midst_of_a_handshake_counts_no_more(
    make: Callable[[], asyncio.AbstractEventLoop], turns: int, tmp_path: Path
) -> None:
    replica, trusting = contexts(tmp_path)

    async def work() -> None:
        async with served(replica, FairQueue()) as port:
            client = Said(trusting, *await asyncio.open_connection("127.0.0.1", port))
            async with asyncio.timeout(WAIT_S):
                while not Behind.there:
                    await asyncio.sleep(0)
            assert not client.agrees()
            client.send()
            for _ in range(turns):
                await asyncio.sleep(0)
            Behind.drop()
            async with asyncio.timeout(WAIT_S):
                while await client.hear():
                    pass
            client.writer.close()

    run(make, work())


async def _all(client: Said) -> AsyncIterator[bytes]:
    while heard := await client.hear():
        yield heard


@pytest.mark.parametrize("make", LOOPS)
@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n\r\n"])
def test_who_agrees_on_nothing_is_counted_until_it_goes(
    make: Callable[[], asyncio.AbstractEventLoop], said: bytes, tmp_path: Path
) -> None:
    replica, _ = contexts(tmp_path)

    async def work() -> None:
        async with served(replica, FairQueue()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(WAIT_S):
                while not Behind.there:
                    await asyncio.sleep(0.001)
            writer.write(said)
            if said:
                assert b"HTTP" not in await reader.read()
            writer.close()

    run(make, work())
