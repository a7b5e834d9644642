"""Bare sockets against a served replica: heads without end, slow callers, too many connections, answers left unread."""

import asyncio
import contextlib
import itertools
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import uvicorn

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.limits import (
    AHEAD_BYTES_MAX,
    AHEAD_MAX,
    HEAD_BYTES_MAX,
    OPEN_BODY_BYTES_MAX,
    URL_BYTES_MAX,
    Limits,
)
from quorate.api_specs.problems import Problem
from quorate.replica.access.token_list import one_token
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.http import connections, gate
from quorate.replica.http.connections import PIECE_BYTES, BoundedProtocol, Bounds
from quorate.replica.http.fair_queue import LONG_BYTES, FairQueue
from quorate.replica.http.host_header import AllowedHosts
from quorate.replica.http.large_bodies import CLOCK
from quorate.replica.http.tls.context import ServerContext
from quorate.replica.server import direct
from quorate.replica.server.app import create_app
from quorate.replica.server.direct import bounded
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.timestamps.clock import Now
from tests.support.in_process import _bound
from tests.support.turns import CountedTurns

WAIT_S = 60.0
READ_BYTES = 256 * 1024
"""What asyncio and uvloop read at once, at most."""
Say = Callable[[bytes], AbstractAsyncContextManager[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
Serve = Callable[..., AbstractAsyncContextManager[int]]
GET = b"GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def served(tmp_path: Path) -> Serve:
    """Serves r1 as `quorate.replica.server.server` does, with bounds of the test's own; the port."""

    @asynccontextmanager
    async def serve(
        bounds: Bounds | None = None, token: str | None = None, tls: ServerContext | None = None
    ) -> AsyncIterator[int]:
        port: int = (socket := _bound(0)).getsockname()[1]
        limits = Limits(body_bytes_max=20_000, value_bytes_max=5_000, page_bytes_max=5_000)
        document = ClusterDocument("t", (ReplicaInfo("r1", f"http://127.0.0.1:{port}"),), limits=limits)
        member = Member(open_folder(tmp_path / "data", document, "r1"))
        hosts = AllowedHosts(["127.0.0.1"], is_loopback=True)
        app = create_app(
            member, lambda each: embedded_front_end(each, token), access=one_token(token), hosts=hosts
        )
        config = uvicorn.Config(app, http="httptools", ws="none", log_config=None, access_log=False)
        config.load()
        config.http_protocol_class = bounded(bounds or Bounds(), app.traffic, app.direct, tls)
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup([socket])
        try:
            yield port
        finally:
            await server.shutdown()

    return serve


async def exchange(port: int, *parts: bytes) -> tuple[int, Problem | None, bytes]:
    """Say all parts on one connection; the status of the answer, its problem if it is one, and its head."""
    return understood(await all_said(port, *parts))


async def all_said(port: int, *parts: bytes) -> bytes:
    """Say all parts on one connection; all that came until its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            try:
                await writer.drain()
            except ConnectionError:
                break
        async with asyncio.timeout(WAIT_S):
            return await read_all(reader)
    finally:
        writer.transport.abort()


async def read_all(reader: asyncio.StreamReader) -> bytes:
    heard = b""
    try:
        while piece := await reader.read(65_536):
            heard += piece
    except ConnectionError:
        pass
    return heard


def understood(heard: bytes) -> tuple[int, Problem | None, bytes]:
    head, _, body = heard.partition(b"\r\n\r\n")
    status = int(head.split(b" ")[1])
    problem = None
    if b"problem+json" in head:
        problem = msgspec.json.decode(body, type=Problem)
        assert problem.status == status
        assert b"connection: close" in head.lower()
    return status, problem, head


def named(answer: tuple[int, Problem | None, bytes]) -> str:
    assert answer[1] is not None, answer
    return answer[1].name


@pytest.mark.parametrize("host", [b"localhost", b"127.0.0.1:80", b"[::1]:9", b"LOCALHOST", b"127.9.9.9"])
async def test_loopback_replica_answers_to_names_of_this_machine(served: Serve, host: bytes) -> None:
    async with served() as port:
        request = b"GET /v1/health/live HTTP/1.1\r\nConnection: close\r\nHost: " + host + b"\r\n\r\n"
        assert (await exchange(port, request))[0] == 200


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://localhost/v1/health/live", 200),
        (b"HTTP://127.0.0.1:80/v1/health/live?a=b", 200),
        (b"http://evil.example/v1/health/live", 421),
        (b"http://localhost@evil.example/v1/health/live", 421),
        (b"/v1/health/live?a=http://evil.example/", 200),
    ],
)
async def test_the_host_in_a_target_counts_and_not_that_of_the_header(
    served: Serve, target: bytes, status: int
) -> None:
    """RFC 9112, section 3.2.2."""
    async with served() as port:
        for host in (b"localhost", b"evil.example") if target.startswith(b"h") else (b"localhost",):
            request = b"GET %b HTTP/1.1\r\nConnection: close\r\nHost: %b\r\n\r\n" % (target, host)
            assert (await exchange(port, request))[0] == status


@pytest.mark.parametrize(
    "line",
    [b"Host: evil.example\r\n", b"Host: localhost.evil.example:80\r\n", b"Host:\r\n", b"", b"Host: [\r\n"],
)
async def test_page_that_rebinds_its_name_is_refused(served: Serve, line: bytes) -> None:
    async with served() as port:
        request = b"GET /v1/registers/a HTTP/1.1\r\nConnection: close\r\n" + line + b"\r\n"
        status, _, head = await exchange(port, request)
        assert status == 421, head


async def test_page_of_another_origin_cannot_take_items_blindly(served: Serve) -> None:
    """A POST without a body is sent by a browser for any page, without asking."""
    async with served() as port:
        for origin, status in ((b"http://evil.example", 403), (b"null", 403), (b"http://localhost", 200)):
            request = b"POST /v1/queues/q/dequeue HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n"
            request += b"Content-Length: 0\r\nOrigin: " + origin + b"\r\n\r\n"
            assert (await exchange(port, request))[0] == status, origin


async def test_headers_without_end_are_cut_off(served: Serve) -> None:
    async with served() as port:
        endless = [b"X-%d: %b\r\n" % (number, b"x" * 1000) for number in range(300)]
        assert named(await exchange(port, GET, *endless)) == "head-too-large"
        assert named(await exchange(port, GET, b"X: ", *[b"x" * 10_000] * 30)) == "head-too-large"


async def test_head_that_comes_whole_is_measured_too(served: Serve) -> None:
    async with served() as port:
        fits = GET + b"Connection: close\r\nX: " + b"x" * (HEAD_BYTES_MAX - 1000) + b"\r\n\r\n"
        assert (await exchange(port, fits))[0] == 200
        long = GET + b"X: " + b"x" * (HEAD_BYTES_MAX + 1) + b"\r\n\r\n"
        assert named(await exchange(port, long)) == "head-too-large"
        upgrade = b"Connection: close, Upgrade\r\nUpgrade: h2c\r\n"
        assert named(await exchange(port, GET + upgrade + long.removeprefix(GET))) == "head-too-large"
        long = b"GET /" + b"x" * URL_BYTES_MAX + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert named(await exchange(port, long)) == "url-too-long"
        endless = [b"GET /" + b"x" * 1000, *[b"x" * 10_000] * 30]
        assert named(await exchange(port, *endless)) == "head-too-large"


@pytest.mark.parametrize("end", [b"", b"\r\n"])
async def test_a_head_of_many_short_headers_is_refused(served: Serve, end: bytes) -> None:
    """Each took 28 times its bytes: 1,400 heads of 60 kB without an end, of callers without a token, had 2 GB."""
    async with served() as port:
        assert (await exchange(port, GET + b"Connection: close\r\n" + b"a:\r\n" * 250 + b"\r\n"))[0] == 200
        assert named(await exchange(port, GET + b"a:\r\n" * 600 + end)) == "head-too-large"


async def test_what_many_connections_have_sent_ahead_is_parsed_in_turns(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """126,000 requests on 1,400 connections were three seconds of work in one turn, and their sender has no token."""
    turns: list[CountedTurns] = []

    def made() -> CountedTurns:
        turns.append(CountedTurns())
        return turns[-1]

    monkeypatch.setattr(direct, "FairQueue", made)
    request = GET + b"\r\n"
    ahead = 4000 // len(request)
    async with served() as port:
        callers = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for _, writer in callers:
            writer.write(request * ahead + GET + b"Connection: close\r\n\r\n")
        for reader, writer in callers:
            assert (await read_all(reader)).count(b"HTTP/1.1 200 ") == ahead + 1
            writer.close()
    assert turns[0].begun() >= 20 * 4
    assert turns[0].most_bytes() < LONG_BYTES + PIECE_BYTES


async def test_slow_head_is_cut_off(served: Serve) -> None:
    async with served(Bounds(head_s=0.2)) as port:
        assert named(await exchange(port, GET[:20])) == "timeout"
        assert named(await exchange(port, GET, b"X-Drip: 1\r\n")) == "timeout"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        async with asyncio.timeout(WAIT_S):
            assert await reader.read() == b"", "who says nothing at all is not answered"
        writer.close()


async def test_slow_second_head_is_cut_off_and_a_patient_one_is_not(served: Serve) -> None:
    async with served(Bounds(head_s=0.5)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET + b"\r\n")
        first = await reader.readuntil(b"}")
        assert first.startswith(b"HTTP/1.1 200")
        writer.write(GET)
        async with asyncio.timeout(WAIT_S):
            assert named(understood(await read_all(reader))) == "timeout"
        writer.close()
        # Between requests the time of a head does not run: that is the time of an idle connection.
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(3):
            writer.write(GET + b"\r\n")
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(0.4)
        writer.close()


async def test_slow_body_is_cut_off(served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.replica.http.gate.BODY_S_MAX", 0.2)
    async with served() as port:
        request = b"PUT /v1/registers/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        answer = await exchange(port, request + b'Content-Length: 11\r\n\r\n{"value"')
        assert named(answer) == "timeout"


async def test_one_connection_too_many_is_told_to_wait(served: Serve) -> None:
    async with served(Bounds(connections_max=2, address_share=1.0)) as port:
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, writer in kept:
            writer.write(GET + b"\r\n")
            await reader.readuntil(b"}")
        answer = await exchange(port)
        assert named(answer) == "overloaded"
        assert b"retry-after: 1" in answer[2]
        for reader, writer in kept:
            writer.close()
            await reader.read()
        assert (await exchange(port, GET + b"Connection: close\r\n\r\n"))[0] == 200


async def test_answer_left_unread_does_not_stay_for_ever(served: Serve) -> None:
    async with served(Bounds(stall_s=0.2)) as port:
        # With that limit the streams stop reading at once.
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        async with asyncio.timeout(WAIT_S):
            request = b"GET /v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
            with contextlib.suppress(ConnectionError):
                while not writer.transport.is_closing():
                    writer.write(request)
                    await asyncio.sleep(0.001)
        assert reader.exception() is not None or writer.transport.is_closing()
        writer.transport.abort()


async def test_refused_body_is_not_read_and_the_connection_ends(served: Serve) -> None:
    """Neither for a stranger, nor beyond the limit, nor behind a method that has none."""
    async with served(token="t") as port:
        much = b"Content-Length: 300000000\r\n\r\n"
        stranger = await exchange(port, b"PUT /v1/registers/a HTTP/1.1\r\nHost: localhost\r\n" + much)
        assert named(stranger) == "unauthorized"
        known = b"Host: localhost\r\nAuthorization: bearer t\r\n"
        assert named(await exchange(port, b"PUT /v1/registers/a HTTP/1.1\r\n" + known + much)) == "too-large"
        assert named(await exchange(port, b"GET /v1/registers/a HTTP/1.1\r\n" + known + much)) == "too-large"
        assert named(await exchange(port, b"GET /v1/health/live HTTP/1.1\r\n" + known + much)) == "too-large"
        expecting = b"PUT /v1/registers/a HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n" + much
        answer = await exchange(port, expecting)
        assert answer[0] == 401, "nobody is asked to go on with what will be refused"


@pytest.mark.parametrize(
    "request_line",
    [b"nonsense\r\n\r\n", b"GET HTTP/1.1\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00"],
)
async def test_what_is_no_http_is_told_so(served: Serve, request_line: bytes) -> None:
    async with served() as port:
        assert named(await exchange(port, request_line)) == "malformed"


@pytest.mark.parametrize(
    "path", [b"/v1/registers/a", b"/v1/queues/q/peek?deadline_s=1", b"/replica/v1/batch"]
)
@pytest.mark.parametrize("version", [b"2.0", b"3.0", b"1.2", b"0.9"])
async def test_another_version_of_http_is_told_so(served: Serve, path: bytes, version: bytes) -> None:
    """Both by those that the parser takes and by those that it does not, on every way through a replica."""
    method = b"POST " if path.startswith(b"/replica") else b"GET "
    async with served() as port:
        head = b" HTTP/" + version + b"\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        status, refused, _ = await exchange(port, method + path + head)
        assert refused is not None
        assert (status, refused.name) == (505, "http-version")
        assert f"HTTP/{version.decode()}, and HTTP/1.1" in refused.detail


async def test_http_2_that_begins_without_a_question_is_told_so(served: Serve) -> None:
    async with served() as port:
        assert named(await exchange(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) == "http-version"


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 3\r\nContent-Length: 4\r\n",
        b"Content-Length: +3\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding: gzip\r\n",
    ],
)
async def test_request_whose_body_could_be_read_in_two_ways_is_refused(served: Serve, headers: bytes) -> None:
    async with served() as port:
        head = b"PUT /v1/registers/a HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n"
        assert (await exchange(port, head + b"1\r\n1\r\n0\r\n\r\n"))[0] in (400, 501)


ENDINGS = {"trailers": b"0\r\n" + b"X: y\r\n" * 4000, "a chunk's extensions": b"5;x=" + b"y" * 20_000}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "line", [GET, b"PUT /v1/registers/a HTTP/1.1\r\nHost: localhost\r\nAuthorization: bearer t\r\n"]
)
async def test_what_stands_around_a_body_is_bounded(served: Serve, line: bytes, ending: str) -> None:
    """In any pieces: all of it would be held in memory, of a caller without a token, too."""
    async with served(token="t") as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(line + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(WAIT_S):
                for piece in itertools.chain([ENDINGS[ending]], itertools.repeat(ENDINGS[ending][-6000:])):
                    writer.write(piece)
                    await writer.drain()
                    sent += len(piece)
                    assert sent < 100 * HEAD_BYTES_MAX, "it would take more, and more"
        assert await read_all(reader) == b""
        assert (await exchange(port, GET + b"Connection: close\r\n\r\n"))[0] == 200
        writer.transport.abort()


CHUNKS = {"one byte": b"1\r\nx\r\n", "extensions": b"8;x=" + b"y" * 500 + b"\r\nxxxxxxxx\r\n"}


@pytest.mark.parametrize("line", [b"POST /replica/v1/batch", b"PUT /v1/registers/a"])
@pytest.mark.parametrize("chunk", CHUNKS)
async def test_a_body_in_crumbs_is_cut_off(served: Serve, line: bytes, chunk: str) -> None:
    """Each chunk has its price, whatever it holds: 4 MB in four million of them took seconds."""
    many = CHUNKS[chunk] * (2 * HEAD_BYTES_MAX // len(CHUNKS[chunk]))
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(line + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for start in range(0, len(many), 10_000):
                writer.write(many[start : start + 10_000])
                await writer.drain()
            async with asyncio.timeout(WAIT_S):
                assert await read_all(reader) == b""
        writer.transport.abort()


async def test_a_body_in_chunks_of_fifty_bytes_is_taken(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it is: more than the bound stands around this one."""
    monkeypatch.setattr(connections, "HEAD_BYTES_MAX", 200)
    monkeypatch.setattr(
        connections, "PIECE_BYTES", 64
    )  # Else much of the body would be read with the head, and not counted.
    body = b'{"value":"' + b"x" * 4500 + b'"}'
    pieces = [body[start : start + 50] for start in range(0, len(body), 50)]
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    assert len(chunks) - len(body) > 2 * 200
    head = b"PUT /v1/registers/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with served() as port:
        assert (await exchange(port, head, chunks + b"0\r\n\r\n"))[0] == 204


@pytest.mark.parametrize("path", [b"/replica/v1/batch", b"/replica/v1/batch?x", b"/v1/registers/a"])
@pytest.mark.parametrize("is_split", [False, True])
async def test_trailers_are_no_headers(served: Serve, path: bytes, *, is_split: bool) -> None:
    """Neither do they let in who gave no token, nor keep out who gave one."""
    method = b"PUT " if path.startswith(b"/v1") else b"POST "
    head = (
        method
        + path
        + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    )
    rest = (
        b'Transfer-Encoding: chunked\r\n\r\nb\r\n{"value":1}\r\n0\r\n',
        b"Host: evil\r\nAuthorization: bearer %b\r\n\r\n",
    )
    async with served(token="t") as port:
        for given, trailed, name in ((b"", b"t", "unauthorized"), (b"Authorization: bearer t\r\n", b"x", "")):
            said = [head + given, rest[0], rest[1] % trailed]
            status, refused, _ = await exchange(port, *(said if is_split else [b"".join(said)]))
            if name:
                assert refused is not None
                assert refused.name == name
            else:
                assert status == (204 if method == b"PUT " else 400), "what was no batch is malformed"


async def test_no_other_protocol_is_changed_to_and_no_body_is_a_request(served: Serve) -> None:
    command = b"Host: localhost\r\nConnection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n"
    body = b'{"value":"GET /v1/cluster HTTP/1.1\r\n\r\n"}'.replace(b"\r\n", b"\\r\\n")
    length = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    put = b"PUT /v1/registers/a HTTP/1.1\r\n" + command + length + body
    last = b"GET /v1/registers/a HTTP/1.1\r\nHost: localhost\r\nConnection: close, Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with served() as port:
        for cut in (0, len(put) - len(body), len(put) - 5):
            heard = await all_said(port, put[:cut], put[cut:] + put + last)
            assert heard.count(b"HTTP/1.1 204 ") == 2
            assert heard.count(b"HTTP/1.1 200 ") == 1
            assert heard.endswith(body)
            assert heard.count(b"HTTP/1.1 ") == 3
        inner = GET + b"\r\n"
        outer = (
            b"POST /v1/queues/q/dequeue HTTP/1.1\r\n" + command + b"Content-Length: %d\r\n\r\n" % len(inner)
        )
        for parts in ([outer + inner + last], [outer, inner + last]):
            heard = await all_said(port, *parts)
            assert [heard.count(b"HTTP/1.1 415 "), heard.count(b"HTTP/1.1 ")] == [1, 2]
            assert b'"live"' not in heard, "what is in a body is no request"
        for path in (b"http://:x/", b"?"):
            assert (
                named(await exchange(port, b"GET " + path + b" HTTP/1.1\r\n" + command + b"\r\n"))
                == "malformed"
            )
        connect = b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nContent-Length: 9\r\n\r\n"
        assert named(await exchange(port, connect, GET + b"\r\n")) == "malformed"


async def test_many_requests_sent_ahead_are_all_answered(served: Serve) -> None:
    """A piece that begins and ends within heads holds much besides."""
    async with served() as port:
        request = GET + b"X: %b\r\n\r\n" % (b"x" * 100)
        heard = await all_said(port, request * 2000 + GET + b"Connection: close\r\n\r\n")
    assert heard.count(b"HTTP/1.1 200 ") == 2001


@pytest.mark.parametrize("request_line", [b"GET /v1/health/live", b"POST /v1/health/live"])
async def test_requests_sent_ahead_are_held_back_while_many_wait(
    served: Serve, monkeypatch: pytest.MonkeyPatch, request_line: bytes
) -> None:
    """Whoever sends faster than is answered, and reads the answers, needs no token. With a body, each request asks for more."""
    waiting, held = [0], [0]
    begin = BoundedProtocol.begin_request

    def noting(self: BoundedProtocol) -> None:
        begin(self)
        waiting.append(len(self.pipeline))
        held.append(len(self._rest))

    monkeypatch.setattr(BoundedProtocol, "begin_request", noting)
    body = b"{}" if request_line.startswith(b"POST") else b""
    head = b"%b HTTP/1.1\r\nHost: localhost\r\nX: %b\r\n" % (request_line, b"x" * 300)
    request = head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        heard = asyncio.create_task(read_all(reader))
        writer.write(request * 4000 + GET + b"Connection: close\r\n\r\n")
        assert (await heard).count(b"HTTP/1.1 ") == 4001
        writer.close()
    assert max(waiting) <= AHEAD_MAX + PIECE_BYTES // len(request) + 1
    assert max(held) < 1024 * 1024


def long_poll(wait_s: int) -> bytes:
    """A request that is answered after so many seconds, unless an item comes."""
    body = b'{"wait_s": %d}' % wait_s
    return (
        b"POST /v1/queues/q/dequeue?deadline_s=25 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )


@pytest.mark.parametrize(("behind", "later"), [(1, 0), (3 * AHEAD_MAX, 0), (0, 1)])
async def test_who_leaves_with_requests_behind_a_long_poll_is_heard_at_once(
    served: Serve, monkeypatch: pytest.MonkeyPatch, behind: int, later: int
) -> None:
    """Whether they come with it, or `later`, when it listens for its client already."""
    begun, lost = [0], asyncio.Event()
    begin, lose = BoundedProtocol.begin_request, BoundedProtocol.connection_lost

    def noting(self: BoundedProtocol) -> None:
        begun[0] += 1
        begin(self)

    def losing(self: BoundedProtocol, exc: Exception | None) -> None:
        lost.set()
        lose(self, exc)

    monkeypatch.setattr(BoundedProtocol, "begin_request", noting)
    monkeypatch.setattr(BoundedProtocol, "connection_lost", losing)
    async with served() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(long_poll(20) * (1 + behind))
        async with asyncio.timeout(WAIT_S):
            while begun[0] < min(1 + behind, AHEAD_MAX):
                await asyncio.sleep(0.01)
            if later:
                await asyncio.sleep(0.1)
                writer.write(long_poll(20) * later)
                while begun[0] < 1 + later:
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(10):  # Half of the time that the poll takes.
            writer.transport.abort()
            await lost.wait()


async def test_who_leaves_while_others_are_parsed_is_heard_at_once(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a replica would go on with what many sent who have gone."""
    waiting, lost = asyncio.Event(), asyncio.Event()
    lose = BoundedProtocol.connection_lost

    def losing(self: BoundedProtocol, exc: Exception | None) -> None:
        lost.set()
        lose(self, exc)

    monkeypatch.setattr(BoundedProtocol, "connection_lost", losing)
    async with served() as port:
        with monkeypatch.context() as patch:  # A turn that never comes.
            patch.setattr(FairQueue, "may_begin", lambda *_: False)
            patch.setattr(FairQueue, "put", lambda *_: waiting.set())
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET + b"\r\n")
            async with asyncio.timeout(WAIT_S):
                await waiting.wait()
                writer.transport.abort()
                await lost.wait()


async def test_a_request_has_waited_since_it_came_whatever_held_up_the_process(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was read, and not begun, before a replica was stopped, was done a minute after its repeat at another one."""

    class Earlier:
        def now(self) -> Now:
            now = CLOCK.now()
            return Now(now.mono_s - 30, now.wall_us - 30_000_000)

    begun = asyncio.Event()
    begin = BoundedProtocol.begin_request

    def noting(self: BoundedProtocol) -> None:
        begin(self)
        begun.set()

    def receiving(self: BoundedProtocol, data: bytes) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(connections, "CLOCK", clock)
            receive(self, data)

    receive = BoundedProtocol.data_received
    monkeypatch.setattr(BoundedProtocol, "data_received", receiving)
    monkeypatch.setattr(BoundedProtocol, "begin_request", noting)
    put = b"PUT /v1/registers/r HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
    head, body = put + b"Content-Length: 11\r\n\r\n", b'{"value":1}'
    async with served() as port:
        for clock, status in ((Earlier(), 503), (CLOCK, 204)):  # noqa: B007 - `receiving` takes it
            assert (await exchange(port, head + body))[0] == status
            begun.clear()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head)
            async with asyncio.timeout(WAIT_S):
                await begun.wait()
                writer.write(body)
                assert understood(await read_all(reader))[0] == status
            writer.close()


async def test_what_comes_while_a_request_waits_is_bounded_in_bytes(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body needs no room before its request begins."""
    kept = [0]
    receive = BoundedProtocol.data_received

    def noting(self: BoundedProtocol, data: bytes) -> None:
        receive(self, data)
        kept.append(len(self._rest) + sum(len(cycle.body) for cycle, _ in self.pipeline))

    monkeypatch.setattr(BoundedProtocol, "data_received", noting)
    put = b"PUT /v1/registers/r HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    body = b'"%b"' % (b"x" * 4000)
    request = put + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    async with served() as port:
        heard = await all_said(port, long_poll(1) + request * 1000 + GET + b"Connection: close\r\n\r\n")
    assert heard.count(b"HTTP/1.1 ") == 1002
    assert max(kept) <= AHEAD_BYTES_MAX + 2 * READ_BYTES


async def test_body_of_a_request_that_needs_no_token_takes_no_room(served: Serve) -> None:
    """Else strangers would fill the room for the bodies of all."""
    async with served(token="t") as port:
        for line in (b"POST /v1/health/live", b"GET /docs"):
            head = line + b" HTTP/1.1\r\nHost: localhost\r\n"
            long = b"Content-Length: %d\r\n\r\n" % (OPEN_BODY_BYTES_MAX + 1)
            chunk = b"Transfer-Encoding: chunked\r\n\r\n1000\r\n" + b"x" * 0x1000
            for much in (long, chunk):
                assert named(await exchange(port, head + much)) == "too-large"
        short = b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
        assert (await exchange(port, GET + short))[0] == 200


async def test_who_leaves_a_long_poll_with_a_request_behind_it_takes_nothing(served: Serve) -> None:
    """The server tells only the last request that the client has gone: an item would be taken for nobody."""
    post = b"POST /v1/queues/q/%b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
    closing = b"Connection: close\r\n\r\n"
    async with served() as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(post % (b"dequeue", 13) + b'\r\n{"wait_s":10}' + GET + b"\r\n")
        await asyncio.sleep(0.3)
        writer.close()
        await asyncio.sleep(0.3)
        await all_said(port, post % (b"items", 10) + closing + b'{"item":7}')
        await asyncio.sleep(2)
        heard = await all_said(port, post % (b"dequeue", 12) + closing + b'{"wait_s":1}')
    assert heard.endswith(b'{"items":[7]}')


class Written:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        """As asyncio has it."""
        self.pieces.append(data)

    def close(self) -> None:
        """As asyncio has it."""
        self.is_closed = True

    def is_closing(self) -> bool:
        """As asyncio has it."""
        return self.is_closed


async def test_an_answers_head_and_body_leave_in_one_piece() -> None:
    transport = Written()
    joined = connections._Joined(cast(Any, transport))
    for data in (b"head ", b"body ", b"more"):
        joined.write(data)
    await asyncio.sleep(0)
    assert transport.pieces == [b"head body ", b"more"]


async def test_a_head_whose_body_comes_later_does_not_wait_for_it() -> None:
    transport = Written()
    joined = connections._Joined(cast(Any, transport))
    joined.write(b"head")
    await asyncio.sleep(0)
    assert transport.pieces == [b"head"]
    joined.write(b"body")
    assert transport.pieces == [b"head", b"body"]


async def test_a_head_leaves_before_its_connection_closes_and_never_after_it_was_lost() -> None:
    for is_lost in (False, True):
        transport = Written()
        joined = connections._Joined(cast(Any, transport))
        joined.write(b"head")
        transport.is_closed = is_lost
        joined.close()
        await asyncio.sleep(0)
        assert transport.pieces == ([] if is_lost else [b"head"])


@pytest.mark.parametrize("comes_later", [b"", b"}"])
async def test_a_body_is_at_hand_once_all_of_it_has_come(
    served: Serve, monkeypatch: pytest.MonkeyPatch, comes_later: bytes
) -> None:
    found: list[bytes | None] = []
    at_hand = connections.body_at_hand

    def noting(cycle: Any) -> bytes | None:
        found.append(at_hand(cycle))
        return found[-1]

    monkeypatch.setattr(gate, "body_at_hand", noting)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = b'{"item":1}'.removesuffix(comes_later)
        head = b"POST /v1/queues/q/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: 10\r\n\r\n" + body)
        async with asyncio.timeout(WAIT_S):
            while not found:
                await asyncio.sleep(0.001)
            writer.write(comes_later)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.close()
    assert found == ([b'{"item":1}'] if not comes_later else [None])


async def test_nothing_of_an_idle_connection_stays_when_it_is_reset(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its idle time kept the protocol in memory, and with it all that TLS had made room for: a megabyte and more each."""
    lost: list[BoundedProtocol] = []
    connection_lost = BoundedProtocol.connection_lost

    def noting(self: BoundedProtocol, exc: Exception | None) -> None:
        assert exc is not None, "it was reset"
        assert self.timeout_keep_alive_task is not None, "it was idle"
        connection_lost(self, exc)
        lost.append(self)

    monkeypatch.setattr(BoundedProtocol, "connection_lost", noting)
    async with served() as port, asyncio.timeout(WAIT_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(GET + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        writer.transport.abort()
        while not lost:
            await asyncio.sleep(0.001)
    assert lost[0].timeout_keep_alive_task is None
