"""Who reads nothing is cut off where too much waits to be sent, and who reads is not."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

from quorate.replica.http import connections
from quorate.replica.http.connections import BoundedProtocol, Bounds
from quorate.replica.http.tls.context import ServerContext, ServerTls
from quorate.replica.http.unsent_answers import STALL_BYTES, UnsentAnswers
from tests.support.certificates import Authority
from tests.unit.replica.http.test_connections import WAIT_S, Serve, all_said, served
from tests.unit.replica.http.tls.test_door import LOOPS

__all__ = ["served"]

ANSWERS = 60
"""So many of a large document, behind each other, are more than the buffers of two sockets hold."""
ASKED = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * ANSWERS
METRICS = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
UNREAD = 6
BYTES_MAX = 8_000_000
"""More than waits here of so few answers: what the system holds counts, too."""


class Paused:
    """A connection with so many bytes that wait."""

    def __init__(self, unsent: int) -> None:
        self.unsent = unsent

    def unsent_bytes(self) -> int:
        return self.unsent


def test_who_was_paused_first_is_cut_off_until_the_rest_is_within_the_bound() -> None:
    answers: UnsentAnswers[Paused] = UnsentAnswers(10 * STALL_BYTES)
    first, second, third = (Paused(4 * STALL_BYTES) for _ in range(3))
    assert answers.pause(first) == []
    assert answers.pause(second) == []
    assert answers.pause(third) == [first]
    assert answers.pause(Paused(10 * STALL_BYTES)) == [second, third]


def test_who_takes_something_stays_before_who_takes_nothing() -> None:
    answers: UnsentAnswers[Paused] = UnsentAnswers(10 * STALL_BYTES)
    reading, still = Paused(6 * STALL_BYTES), Paused(4 * STALL_BYTES)
    answers.pause(reading)
    answers.pause(still)
    reading.unsent -= STALL_BYTES
    still.unsent -= 1
    assert answers.pause(Paused(2 * STALL_BYTES)) == [still]


def test_what_was_sent_or_has_gone_counts_no_more() -> None:
    answers: UnsentAnswers[Paused] = UnsentAnswers(10 * STALL_BYTES)
    first, second = Paused(6 * STALL_BYTES), Paused(6 * STALL_BYTES)
    answers.pause(first)
    answers.resume(first)
    answers.resume(first)
    assert answers.pause(second) == []


def test_a_single_larger_answer_still_goes() -> None:
    answers: UnsentAnswers[Paused] = UnsentAnswers(1)
    assert answers.pause(Paused(STALL_BYTES)) == []


async def test_who_reads_nothing_is_cut_off_and_who_reads_is_not(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off: list[int] = []
    give_way = BoundedProtocol.give_way

    def noting(self: BoundedProtocol) -> None:
        assert self.client is not None
        cut_off.append(self.client[1])
        give_way(self)

    monkeypatch.setattr(BoundedProtocol, "give_way", noting)
    async with served(Bounds(unsent_bytes_max=BYTES_MAX)) as port, asyncio.timeout(WAIT_S):
        with ExitStack() as stack:
            unread = [stack.enter_context(await _asking(port)) for _ in range(UNREAD)]
            ports = [each.getsockname()[1] for each in unread]
            while not cut_off:
                await asyncio.sleep(0.02)
            heard = await all_said(port, ASKED + METRICS)
    assert heard.count(b"HTTP/1.1 200 ") == ANSWERS + 1
    assert set(cut_off) < set(ports), "as many as are within the bound stay"
    assert b'quorate_refusals_total{reason="overloaded"}' in heard
    assert b'quorate_refusals_total{reason="overloaded"} 0' not in heard


async def _asking(port: int) -> socket.socket:
    """A connection that asks for much, and reads nothing."""
    asking = socket.socket()
    asking.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    asking.setblocking(False)
    await asyncio.get_running_loop().sock_connect(asking, ("127.0.0.1", port))
    await asyncio.get_running_loop().sock_sendall(asking, ASKED)
    return asking


@pytest.mark.parametrize("make", LOOPS)
def test_who_reads_nothing_by_tls_is_cut_off(
    make: Callable[[], asyncio.AbstractEventLoop],
    served: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also of one answer, all of which TLS hands on at once: thirteen hundred of a megabyte took two gigabytes."""
    authority = Authority(tmp_path / "tls", "authority")
    own = authority.signed("own")
    trusting = ssl.create_default_context(cafile=str(authority.own.certificate))
    cut_off: list[BoundedProtocol] = []
    give_way = BoundedProtocol.give_way

    def noting(self: BoundedProtocol) -> None:
        cut_off.append(self)
        give_way(self)

    monkeypatch.setattr(BoundedProtocol, "give_way", noting)
    monkeypatch.setattr(connections, "whole_answer", lambda _: bytes(2 * BYTES_MAX))

    async def work() -> None:
        tls = ServerContext(ServerTls(str(own.certificate), str(own.key)))
        async with served(Bounds(unsent_bytes_max=BYTES_MAX), tls=tls) as port, asyncio.timeout(WAIT_S):
            writers = [await _asking_by_tls(port, trusting) for _ in range(UNREAD)]
            while not cut_off:
                await asyncio.sleep(0.02)
            for each in writers:
                each.transport.abort()

    with asyncio.Runner(loop_factory=make) as runner:
        runner.run(work())
    assert 0 < len(cut_off) < UNREAD, "a single larger answer still goes"


async def _asking_by_tls(port: int, trusting: ssl.SSLContext) -> asyncio.StreamWriter:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
    cast("asyncio.Transport", writer.transport).pause_reading()
    writer.write(b"no HTTP\r\n\r\n")
    return writer
