"""Silent connections make room for new ones, and one address does not take all places."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.replica.http.connection_shares import Crowd, origin
from quorate.replica.http.connections import Bounds
from quorate.replica.http.tls.context import ServerContext, ServerTls
from tests.support.certificates import Authority
from tests.system.guarded import GuardedCluster
from tests.unit.replica.http.test_connections import GET, WAIT_S, Serve, served

__all__ = ["served"]

OTHER = "127.0.0.2"


class Caller:
    """One connection from an address of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self._writer = reader, writer

    async def asks(self) -> bytes:
        """The status of the answer to a request; nothing where the connection was closed."""
        self._writer.write(GET + b"\r\n")
        try:
            async with asyncio.timeout(WAIT_S):
                head = await self.reader.readuntil(b"}")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        return head.split(b" ")[1]

    async def is_cut_off(self) -> bool:
        """Whether the connection ends, though nothing was said on it."""
        try:
            async with asyncio.timeout(WAIT_S):
                return await self.reader.read() == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def calling(
    port: int, count: int, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[list[Caller]]:
    """So many connections from that address."""
    async with AsyncExitStack() as stack:
        callers = []
        for _ in range(count):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(address, 0), ssl=tls
            )
            stack.callback(writer.close)
            callers.append(Caller(reader, writer))
        yield callers


async def test_silent_connections_of_one_address_lock_nobody_out(served: Serve) -> None:
    async with (
        served(Bounds(connections_max=4, address_share=1.0)) as port,
        calling(port, 4) as silent,
        calling(port, 2, OTHER) as others,
    ):
        assert [await each.asks() for each in others] == [b"200", b"200"]
        assert [await each.is_cut_off() for each in silent[:2]] == [True, True]
        assert [await each.asks() for each in silent[2:]] == [b"200", b"200"]


async def test_one_that_speaks_is_never_cut_off_for_a_new_one(served: Serve) -> None:
    async with served(Bounds(connections_max=3)) as port, calling(port, 2) as speaking:
        assert [await each.asks() for each in speaking] == [b"200"] * 2
        async with calling(port, 1, OTHER) as third:
            assert await third[0].asks() == b"200"
            async with calling(port, 1, "127.0.0.3") as fourth:
                assert await fourth[0].asks() == b"503"
        assert [await each.asks() for each in speaking] == [b"200"] * 2


async def test_the_share_of_one_address_is_settable(tmp_path: Path) -> None:
    """A hundredth of 2,000 connections, or of fewer where the system allows fewer files."""
    cluster = LocalCluster.create(tmp_path / "cluster", replicas=1)
    cluster.serve_options["r1"] = ["--address-share", "0.01"]
    with cluster:
        await asyncio.to_thread(_started, cluster)
        port = int(cluster.urls["r1"].rpartition(":")[2])
        async with calling(port, 30, OTHER) as callers:
            said = [await each.asks() for each in callers]
            assert 1 <= said.count(b"200") <= 20
            # The others gave way while they were silent, or spoke before a busy replica had looked at them.
            assert set(said) <= {b"200", b"", b"503"}


def _started(cluster: LocalCluster) -> None:
    cluster.start()
    cluster.ready()


async def test_who_has_not_agreed_on_tls_gives_way_and_has_no_longer_than_a_head(
    served: Serve, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "authority")
    tls = ServerContext(ServerTls(*map(str, authority.signed("server"))))
    trusting = ssl.create_default_context(cafile=str(authority.own.certificate))
    async with (
        served(Bounds(connections_max=4, address_share=1.0), tls=tls) as port,
        calling(port, 4) as silent,
        calling(port, 2, OTHER, tls=trusting) as others,
    ):
        assert [await each.asks() for each in others] == [b"200", b"200"]
        assert [await each.is_cut_off() for each in silent[:2]] == [True, True]
        async with calling(port, 1, OTHER, tls=trusting) as further:
            assert await further[0].asks() == b"200"
        assert [await each.asks() for each in others] == [b"200", b"200"], "who speaks is never cut off"
    async with served(Bounds(head_s=0.2), tls=tls) as port, calling(port, 1) as silent:
        assert await silent[0].is_cut_off()


async def test_silent_connections_of_one_address_take_no_more_than_its_share_of_a_replica_by_tls(
    tmp_path: Path,
) -> None:
    """A hundredth of 2,000: of a handshake that never begins nobody heard before, so that they took all files of the process."""
    cluster = GuardedCluster(tmp_path, authority=Authority(tmp_path, "authority"))
    cluster.serve_options.extend(["--address-share", "0.01"])
    with cluster:
        port = int(cluster.url.rpartition(":")[2])
        async with calling(port, 30, OTHER) as callers:
            assert [await each.is_cut_off() for each in callers[:10]] == [True] * 10
            with cluster.client(cluster.replica_token) as client:
                assert 'quorate_refusals_total{reason="overloaded"} 1' in client.get("/metrics").text, (
                    "they gave way, and were not late"
                )
            trusting = ssl.create_default_context(cafile=cluster.tls.ca)
            async with calling(port, 1, tls=trusting) as other:
                assert await other[0].asks() == b"200"


async def test_an_address_that_speaks_on_all_its_connections_leaves_room_for_others(served: Serve) -> None:
    async with served(Bounds(connections_max=4)) as port, calling(port, 3) as greedy:
        assert [await each.asks() for each in greedy] == [b"200"] * 3
        async with calling(port, 1) as further, calling(port, 1, OTHER) as other:
            assert await further[0].asks() == b"503"
            assert await other[0].asks() == b"200"


def test_connections_without_an_address_are_bounded_too() -> None:
    crowd: Crowd[int] = Crowd(10, 2)
    assert [crowd.enter(number, "") for number in (1, 2, 3)] == [None, None, 1]


def test_what_left_counts_no_more() -> None:
    crowd: Crowd[int] = Crowd(3, 2)
    assert [crowd.enter(number, "a") for number in (1, 2)] == [None, None]
    assert crowd.enter(3, "a") == 1
    crowd.leave(1, "a")
    crowd.speaks(2, "a")
    assert crowd.enter(4, "b") is None
    assert crowd.enter(5, "c") in (3, 4)
    for number, address in ((2, "a"), (3, "a"), (4, "b"), (5, "c")):
        crowd.leave(number, address)
    assert [crowd.enter(number, "a") for number in (6, 7)] == [None, None]


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_addresses_are_counted_as_hosts_have_them(host: str, counted: str) -> None:
    assert origin(host) == counted
