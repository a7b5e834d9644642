"""Connections of the quick client: which are kept, which are given up, and what is never waited for."""

import asyncio
import socket
import tracemalloc

import msgspec
import pytest
import uvloop

from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport.http1 import (
    HEAD_BYTES_MAX,
    IDLE_MAX,
    KEEPALIVE_S,
    QuickClient,
    _Broken,
    _Connection,
)
from quorate.client_sdk.transport.http_answer import HttpAnswer
from quorate.client_sdk.transport.http_transport import HttpTransport
from quorate.client_sdk.transport.tls import ClientTls
from tests.unit.client_sdk.exchanging import BATCH, PATIENT_S, REPLY, Make, right
from tests.unit.client_sdk.loopback import PendingCommand, Server


def test_it_runs_on_uvloop_too(server: Server) -> None:
    """As it does within a replica."""

    async def twice() -> None:
        transport = HttpTransport({"r1": server.url}, body_bytes_max=1000)
        for _ in range(2):
            assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
        server.stop()
        answer = await transport.exchange("r1", BATCH, PATIENT_S)
        assert isinstance(answer, Unanswered)
        await transport.aclose()

    uvloop.run(twice())
    assert server.connections == 1


async def test_what_comes_is_received_into_memory_that_is_there() -> None:
    """A buffer made for each piece is mapped and taken back by the system each time, which costs as much as the rest of a read."""
    near, far = socket.socketpair()
    with far:
        far.setblocking(False)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, sock=near)
        told: asyncio.Future[HttpAnswer | _Broken] = loop.create_future()
        connection.ask(b"?", 1000, 5.0, told.set_result)
        tracemalloc.start()
        try:
            await loop.sock_sendall(far, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            assert await told == HttpAnswer(200, "", "", b"{}")
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        connection.close()
    assert most < 100_000


async def test_a_connection_is_not_kept_after_what_nobody_asked_for(server: Server) -> None:
    async def twice(asked: PendingCommand) -> bytes:
        return 2 * await right(asked)

    server.handler = twice
    transport = HttpTransport({"r1": server.url}, body_bytes_max=1000)
    for _ in range(3):
        assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    await transport.aclose()
    assert server.connections == 3


async def test_what_begins_behind_an_answer_is_not_taken_for_the_next(server: Server) -> None:
    """The head of an answer that nobody asked for comes with the first one, its rest with the second."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r"
    replies = iter((lambda right: right + head, lambda right: b"\n\r\nEVIL" + right))

    async def mixed(asked: PendingCommand) -> bytes:
        return next(replies)(await right(asked)) if server.connections == 1 else await right(asked)

    server.handler = mixed
    transport = HttpTransport({"r1": server.url}, body_bytes_max=1000)
    for _ in range(2):
        assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    await transport.aclose()
    assert server.connections == 2


@pytest.mark.parametrize("header", ["Connection: close", "Content-Length: 5\r\nTransfer-Encoding: chunked"])
async def test_an_answer_can_end_its_connection(server: Server, header: str) -> None:
    """By saying so, or by saying two lengths: then nobody can be sure where it ended."""
    body = msgspec.msgpack.encode(REPLY)
    length = "" if "Length" in header else f"Content-Length: {len(body)}\r\n"

    async def closing(_: PendingCommand) -> bytes:
        return f"HTTP/1.1 200 OK\r\n{length}{header}\r\n\r\n".encode() + body

    server.handler = closing
    transport = HttpTransport({"r1": server.url}, body_bytes_max=1000)
    answers = [await transport.exchange("r1", BATCH, PATIENT_S) for _ in range(2)]
    await transport.aclose()
    assert server.connections == 2
    assert all(answer == REPLY if length else isinstance(answer, Unanswered) for answer in answers)


async def test_an_answer_of_unknown_length_is_not_waited_for(server: Server) -> None:
    async def endless(_: PendingCommand) -> bytes:
        return b"HTTP/1.1 200 OK\r\n\r\n"

    server.handler = endless
    transport = HttpTransport({"r1": server.url}, body_bytes_max=1000)
    answer = await transport.exchange("r1", BATCH, 30)
    await transport.aclose()
    assert isinstance(answer, Unanswered)
    assert not answer.definite
    assert "does not say how long it is" in answer.detail


async def test_headers_without_end_end_at_the_bound(server: Server) -> None:
    async def flood(_: PendingCommand) -> bytes:
        return b"HTTP/1.1 200 OK\r\n" + b"X-Y: zzzzzzzzzzzz\r\n" * (HEAD_BYTES_MAX // 8)

    server.handler = flood
    transport = HttpTransport(
        {"r1": server.url}, body_bytes_max=HEAD_BYTES_MAX
    )  # A body may be longer than a head.
    answer = await transport.exchange("r1", BATCH, PATIENT_S)
    await transport.aclose()
    assert isinstance(answer, Unanswered)
    assert "longer than" in answer.detail


async def test_callers_at_once_have_a_connection_each_and_few_are_kept(server: Server) -> None:
    client = QuickClient(None)
    transport = HttpTransport({"r1": server.url}, body_bytes_max=1000, client=lambda *_: client)
    at_once = 3 * IDLE_MAX
    replies = await asyncio.gather(*(transport.exchange("r1", BATCH, PATIENT_S) for _ in range(at_once)))
    assert replies == [REPLY] * at_once
    assert server.connections == at_once
    assert [len(kept) for kept in client._idle.values()] == [IDLE_MAX]
    await transport.aclose()


async def test_a_connection_idle_for_long_is_not_used_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = HttpTransport({"r1": server.url}, body_bytes_max=1000)
    assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    loop, real = asyncio.get_running_loop(), asyncio.get_running_loop().time
    monkeypatch.setattr(loop, "time", lambda: real() + KEEPALIVE_S)
    assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    await transport.aclose()
    assert server.connections == 2


async def test_a_server_that_does_not_take_the_connection_is_definite(
    to: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its backlog is full: the system drops what knocks."""
    monkeypatch.undo()
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        knocking = [socket.socket() for _ in range(3)]
        for each in knocking:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        transport = to(f"http://127.0.0.1:{full.getsockname()[1]}")
        answer = await transport.exchange("r1", BATCH, 30)
        await transport.aclose()
        for each in knocking:
            each.close()
    assert isinstance(answer, Unanswered)
    assert answer.definite
    assert "no answer in time" in answer.detail


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:port",
        "http://127.0.0.1:99999",
        "http://",
        "ftp://127.0.0.1",
        "http://a..b",
        "http://a\0b",
    ],
)
async def test_what_is_no_url_was_never_sent(url: str) -> None:
    transport = HttpTransport({"r1": url}, body_bytes_max=1000, client=QuickClient)
    answer = await transport.exchange("r1", BATCH, PATIENT_S)
    await transport.aclose()
    assert isinstance(answer, Unanswered)
    assert answer.definite


async def test_a_path_and_a_name_in_the_url_go_along(server: Server, to: Make) -> None:
    transport = to(f"http://localhost:{server.port}/proxy for/r1/")
    assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    await transport.aclose()
    [asked] = server.asked
    assert asked.line == "POST /proxy%20for/r1/replica/v1/batch HTTP/1.1"
    assert asked.headers["host"] == f"localhost:{server.port}"


async def test_what_is_asked_for_in_the_url_goes_along(server: Server) -> None:
    """An operator's pages come from the next name on: without it the first one came again for ever."""
    client = QuickClient(None, ClientTls())
    asked_for = "/v1/list?after=queue%2Fa%2Bb c&limit=2"
    assert isinstance(
        await client.request("r1", server.url + asked_for, timeout_s=PATIENT_S, bytes_max=1000), HttpAnswer
    )
    await client.aclose()
    assert server.asked[0].line == "GET /v1/list?after=queue%2Fa%2Bb%20c&limit=2 HTTP/1.1"


async def test_files_for_tls_that_cannot_be_used_are_named(server: Server) -> None:
    tls = ClientTls("/none.pem")
    transport = HttpTransport({"r1": server.url.replace("http:", "https:")}, body_bytes_max=1000, tls=tls)
    answer = await transport.exchange("r1", BATCH, PATIENT_S)
    assert isinstance(answer, Unanswered)
    assert answer.definite
    assert answer.detail.startswith("r1: tls: /none.pem holds no certificate"), answer.detail
    await transport.aclose()
