"""Batches that come whole go a shorter way: with the same answers, counters and bounds as by ASGI, and in the same order."""

import asyncio
import importlib
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
import pytest
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quorate.adts.log import Entry, Value
from quorate.api_specs.checking import Checked
from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Append, Appended, Batch, BatchReply, Collect, Request
from quorate.api_specs.tokens import digest_of
from quorate.replica.access.credentials import Credential
from quorate.replica.access.token_list import from_text
from quorate.replica.api.protocol_api import Batches
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.http.connections import Bounds
from quorate.replica.http.host_header import AllowedHosts
from quorate.replica.server.app import ReplicaApp, create_app
from quorate.replica.server.direct import Answer, Call, bounded
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.replica.store.database import StorageFailed
from quorate.replica.store.group_commit import Committer, Done
from quorate.timestamps.timestamp import make
from tests.support.in_process import _bound

WAIT_S = 60.0
PATH = b"/replica/v1/batch"
READER, WRITER = "reads", "writes"
HEADERS = (b"content-type: application/msgpack", b"accept: application/msgpack")


class Served(NamedTuple):
    """A served replica."""

    port: int
    app: ReplicaApp
    member: Member
    server: uvicorn.Server
    by_asgi: ASGIApp
    """What answers batches the longer way."""


async def nobody(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands where batches go by ASGI, where none should."""
    raise AssertionError("this batch should have gone the shorter way")


@asynccontextmanager
async def served(root: Path, *, is_direct: bool, has_tokens: bool = False) -> AsyncIterator[Served]:
    """r1, whose batches go all the shorter way, or none."""
    socket = _bound(0)
    port: int = socket.getsockname()[1]
    limits = Limits(body_bytes_max=20_000, value_bytes_max=5_000, page_bytes_max=5_000)
    document = ClusterDocument("t", (ReplicaInfo("r1", f"http://127.0.0.1:{port}"),), limits=limits)
    member = Member(open_folder(root, document, "r1"))
    app = create_app(
        member,
        lambda each: embedded_front_end(each, WRITER if has_tokens else None),
        access=from_text(tokens(), "all") if has_tokens else None,
        hosts=AllowedHosts(["127.0.0.1"], is_loopback=True),
    )
    longer = app.batches
    if is_direct:
        app.batches = nobody
    config = uvicorn.Config(app, http="httptools", ws="none", log_config=None, access_log=False)
    config.load()
    config.http_protocol_class = bounded(Bounds(), app.traffic, app.direct if is_direct else None)
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup([socket])
    try:
        yield Served(port, app, member, server, longer)
    finally:
        if server.servers[0].is_serving():
            await server.shutdown()


def tokens() -> str:
    lines = [("read", READER), ("write", WRITER), ("write,replica", "all")]
    return ";".join(f"scopes={scopes} sha256={digest_of(token.encode()).hex()}" for scopes, token in lines)


def append(number: int, ahead_us: int = 0) -> Append:
    t = make(time.time_ns() // 1000 + ahead_us, number, "c")
    return Append("queue/q", (Entry(t, t, Value("1")),), "first")


def batch(here: Served, *requests: Request, cluster: str = "") -> bytes:
    return msgspec.msgpack.encode(Batch(cluster or here.member.document.hash, requests))


def post(body: bytes, *headers: bytes, path: bytes = PATH) -> bytes:
    lines = [b"POST " + path + b" HTTP/1.1", b"Content-Length: %d" % len(body), *headers]
    if not any(header.startswith(b"Host:") for header in headers):
        lines.append(b"Host: localhost")
    return b"\r\n".join((*lines, b"", body))


async def one_answer(reader: asyncio.StreamReader) -> tuple[bytes, dict[bytes, bytes], bytes]:
    async with asyncio.timeout(WAIT_S):
        status, *lines = (await reader.readuntil(b"\r\n\r\n")).strip().split(b"\r\n")
        headers = dict(line.split(b": ", 1) for line in lines)
        return status, headers, await reader.readexactly(int(headers[b"content-length"]))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not is_so():
            await asyncio.sleep(0.001)


def after(here: Served, **is_so: object) -> bytes:
    """A batch for a replica of which this is so."""
    for name, value in is_so.items():
        setattr(here.member, name, value)
    return batch(here, append(1))


def with_full_disk(here: Served) -> bytes:
    """A batch for a replica that can do all of it but make it durable."""

    def commit() -> None:
        raise StorageFailed("the database failed: database or disk is full", passing=True)

    committer = here.member._committer
    assert committer is not None
    committer._store.commit = commit  # type: ignore[method-assign]
    return batch(here, append(1))


CASES: dict[str, tuple[Callable[[Served], bytes], tuple[bytes, ...]]] = {
    "answered": (lambda here: batch(here, append(1)), HEADERS),
    "as JSON": (
        lambda here: msgspec.json.encode(Batch(here.member.document.hash, (Collect("queue/q"),))),
        (),
    ),
    "no message": (lambda _: b"\xc1", HEADERS),
    "another type": (lambda _: b"<batch/>", (b"Content-Type: text/xml",)),
    "another cluster": (lambda here: batch(here, append(1), cluster="0" * 16), HEADERS),
    "all refused": (lambda here: batch(here, append(1, 3_600_000_000)), HEADERS),
    "nothing": (lambda _: b"", HEADERS),
    "another host": (lambda here: batch(here, append(1)), (*HEADERS, b"Host: evil.example")),
    "two hosts": (
        lambda here: batch(here, append(1)),
        (*HEADERS, b"Host: localhost", b"HOST: localhost"),
    ),
    "two tokens": (
        lambda here: batch(here, append(1)),
        (*HEADERS, b"Authorization: Bearer writes", b"authorization: Bearer writes"),
    ),
    "another origin": (lambda here: batch(here, append(1)), (*HEADERS, b"Origin: http://evil.example")),
    "too large": (lambda _: b"x" * 20_001, HEADERS),
    "to be closed": (lambda here: batch(here, append(1)), (*HEADERS, b"Connection: close")),
    "stopping": (lambda here: after(here, is_stopping=True), HEADERS),
    "starting": (lambda here: after(here, is_vouched_for=False), HEADERS),
    "lost": (lambda here: after(here, lost="it was rolled back"), HEADERS),
    "with a full disk": (with_full_disk, HEADERS),
    "no token": (lambda here: batch(here, append(1)), HEADERS),
    "a wrong token": (lambda here: batch(here, append(1)), (*HEADERS, b"Authorization: Bearer guessed")),
    "may only read": (lambda here: batch(here, append(1)), (*HEADERS, b"Authorization: Bearer reads")),
    "may write": (lambda here: batch(here, append(1)), (*HEADERS, b"Authorization: Bearer writes")),
}


async def test_a_large_batch_is_read_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On both ways."""
    threads: list[str] = []
    read = Batches.read

    def noting(self: Batches, headers: Mapping[bytes, bytes], body: bytes, caller: Credential) -> Any:
        threads.append(threading.current_thread().name)
        return read(self, headers, body, caller)

    monkeypatch.setattr(Batches, "read", noting)
    for module in ("server.direct", "http.large_bodies"):
        monkeypatch.setattr(f"quorate.replica.{module}.LARGE_BYTES", 300)
    for is_direct in (True, False):
        async with served(tmp_path / str(is_direct), is_direct=is_direct) as here:
            for requests in (1, 9):
                body = batch(here, *(append(number) for number in range(requests)))
                reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
                writer.write(post(body, *HEADERS))
                assert (await one_answer(reader))[0] == b"HTTP/1.1 200 OK"
                writer.close()
    assert [name.startswith("quorate-bodies") for name in threads] == [False, True] * 2


@pytest.mark.parametrize("case", CASES)
async def test_both_ways_answer_alike_and_count_alike(tmp_path: Path, case: str) -> None:
    found: list[tuple[object, ...]] = []
    for is_direct in (True, False):
        has_tokens = "token" in case or case.startswith("may")
        async with served(tmp_path / str(is_direct), is_direct=is_direct, has_tokens=has_tokens) as here:
            make_body, headers = CASES[case]
            reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
            writer.write(post(make_body(here), *headers))
            status, heard, body = await one_answer(reader)
            async with asyncio.timeout(WAIT_S):
                is_closed = heard.get(b"connection") == b"close" and await reader.read() == b""
            traffic = here.app.traffic
            await until(lambda: traffic.under_way == 0)  # noqa: B023 - it is awaited here
            assert traffic.bodies.held == 0
            writer.close()
            if b"problem" not in heard[b"content-type"]:
                decode = msgspec.json.decode if b"json" in heard[b"content-type"] else msgspec.msgpack.decode
                body = type(decode(body, type=BatchReply).replies[0]).__name__.encode()
            else:
                body = msgspec.json.decode(body)["type"].encode()
            told = {name: heard[name] for name in heard.keys() - {b"date", b"content-length"}}
            found.append((status, told, body, is_closed, traffic.requests, traffic.refusals))
    assert found[0] == found[1]
    if case.startswith("two"):
        assert (found[0][0], found[0][2]) == (b"HTTP/1.1 400 Bad Request", b"/problems/malformed")


async def test_a_batch_in_pieces_goes_by_asgi(tmp_path: Path) -> None:
    """Its time is bounded there."""
    async with served(tmp_path, is_direct=True) as here:
        seen: list[bytes] = []

        async def whole(scope: Scope, receive: Receive, send: Send) -> None:
            has_more = True
            while has_more:
                message = await receive()
                has_more = message["more_body"]
                seen.append(message["body"])
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

        here.app.batches = whole
        request = post(b"123456", *HEADERS)
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(request[:-4])
        await until(lambda: b"".join(seen) == b"12")
        writer.write(request[-4:])
        assert (await one_answer(reader))[0] == b"HTTP/1.1 200 OK"
        assert b"".join(seen) == b"123456"
        writer.close()


@pytest.mark.parametrize("is_direct", [True, False])
@pytest.mark.parametrize("is_split", [True, False])
async def test_a_body_that_is_no_http_is_told_so(tmp_path: Path, *, is_direct: bool, is_split: bool) -> None:
    async with served(tmp_path, is_direct=is_direct) as here:
        here.app.batches = here.by_asgi
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(b"POST %b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" % PATH)
        if is_split:
            writer.write(b"1\r\n[")
            await until(lambda: here.app.traffic.bodies.held == 1)
        writer.write(b"\r\nno length\r\n")
        status, _, body = await one_answer(reader)
        assert (status, b"/problems/malformed" in body) == (b"HTTP/1.1 400 Bad Request", True)
        assert await reader.read() == b""
        await until(lambda: here.app.traffic.under_way == 0)
        writer.close()


async def test_an_empty_line_does_not_keep_an_idle_connection_open(tmp_path: Path) -> None:
    async with served(tmp_path, is_direct=True) as here:
        here.server.config.timeout_keep_alive = 1
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(post(batch(here, Collect("register/r")), *HEADERS))
        assert (await one_answer(reader))[0] == b"HTTP/1.1 200 OK"
        writer.write(b"\r\n")
        async with asyncio.timeout(WAIT_S):
            assert await reader.read() == b""
        writer.close()


async def test_requests_sent_ahead_are_answered_in_order(tmp_path: Path) -> None:
    async with served(tmp_path, is_direct=True) as here:
        here.app.batches = here.by_asgi  # For those that come before the one ahead of them is answered.
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        bodies = [batch(here, *(append(n) for n in range(many))) for many in (1, 2, 3)]
        writer.write(b"".join(post(body, *HEADERS) for body in bodies))
        for many in (1, 2, 3):
            status, _, body = await one_answer(reader)
            assert status == b"HTTP/1.1 200 OK"
            replies = msgspec.msgpack.decode(body, type=BatchReply).replies
            assert [isinstance(reply, Appended) for reply in replies] == [True] * many
        writer.close()


async def test_nothing_is_done_of_what_is_sent_behind_the_last_request(tmp_path: Path) -> None:
    async with served(tmp_path, is_direct=True) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        last = post(batch(here, Collect("register/r")), *HEADERS, b"Connection: close")
        writer.write(last + post(batch(here, append(1)), *HEADERS))
        assert (await one_answer(reader))[0] == b"HTTP/1.1 200 OK"
        assert await reader.read() == b""
        assert here.app.traffic.requests == 1
        writer.close()


class Held:
    """Stands where the member takes batches, and holds them until it is told."""

    def __init__(self, member: Member) -> None:
        self._post = member.post
        self._waiting: list[tuple[Batch, Done, Callable[[], bool], Hashable]] = []
        member.post = self.post  # type: ignore[method-assign]

    def post(self, batch: Batch, done: Done, is_wanted: Callable[[], bool], caller: Hashable = None) -> None:
        self._waiting.append((batch, done, is_wanted, caller))

    @property
    def waits(self) -> int:
        return len(self._waiting)

    def release(self) -> None:
        for waiting in self._waiting:
            self._post(*waiting)


async def test_a_caller_who_leaves_is_not_counted_for_ever(tmp_path: Path) -> None:
    async with served(tmp_path, is_direct=True) as here:
        held, traffic = Held(here.member), here.app.traffic
        _, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(post(batch(here, append(1)), *HEADERS))
        await until(lambda: traffic.under_way == 1)
        writer.transport.abort()
        await until(lambda: traffic.connections == 0)
        held.release()
        await until(lambda: traffic.under_way == 0)
        assert traffic.bodies.held == 0


async def test_what_is_under_way_is_answered_before_a_server_ends(tmp_path: Path) -> None:
    async with served(tmp_path, is_direct=True) as here:
        held, traffic = Held(here.member), here.app.traffic
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(post(batch(here, append(1)), *HEADERS))
        await until(lambda: traffic.under_way == 1)
        shutdown = asyncio.create_task(here.server.shutdown())
        await until(lambda: not here.server.servers[0].is_serving())
        held.release()
        status, headers, _ = await one_answer(reader)
        assert status == b"HTTP/1.1 200 OK"
        assert headers[b"connection"] == b"close"
        assert await reader.read() == b""
        writer.close()
        await shutdown


class _Ticks:
    """Counts turns of the event loop, and in which of them each batch is read."""

    def __init__(self, app: ReplicaApp, monkeypatch: pytest.MonkeyPatch) -> None:
        assert app.direct is not None
        self._now = 0
        self._loop = asyncio.get_running_loop()
        self.reads: list[int] = []
        batches = app.direct._batches
        read = batches.read

        def noting(headers: Mapping[bytes, bytes], body: bytes, caller: Credential) -> tuple[Checked, str]:
            self.reads.append(self._now)
            return read(headers, body, caller)

        monkeypatch.setattr(batches, "read", noting)
        self._tick()

    def _tick(self) -> None:
        self._now += 1
        self._handle = self._loop.call_soon(self._tick)

    def stop(self) -> None:
        self._handle.cancel()


LONG_BATCHES = 5


def long_batch(here: Served) -> bytes:
    return batch(here, *(Collect(f"register/{number}") for number in range(300)))


def call(
    headers: list[tuple[bytes, bytes]], body: bytes, send: Callable[[Answer], None], *, is_wanted: bool = True
) -> Call:
    return Call(headers, dict(headers), body, None, send, lambda: is_wanted)


@pytest.mark.parametrize("is_direct", [True, False])
async def test_no_two_long_batches_are_read_in_one_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_direct: bool
) -> None:
    """Two hundred that came at once, of a thousand reads each, held the event loop for ten seconds."""
    async with served(tmp_path, is_direct=True) as here:
        ticks, body = _Ticks(here.app, monkeypatch), long_batch(here)
        headers = [tuple(each.lower().split(b": ")) for each in (*HEADERS, b"Host: localhost")]
        answers, tasks = list[int](), list[asyncio.Task[None]]()
        assert here.app.direct is not None
        for _ in range(LONG_BATCHES):
            if is_direct:
                sent = [(name, value) for name, value in headers]
                here.app.direct.answer(call(sent, body, lambda answer: answers.append(answer.status)))
            else:
                tasks.append(asyncio.create_task(by_asgi(here, headers, body, answers)))
        await until(lambda: len(answers) == LONG_BATCHES)
        ticks.stop()
    assert answers == [200] * LONG_BATCHES
    assert len(set(ticks.reads)) == LONG_BATCHES


async def by_asgi(here: Served, headers: list[tuple[bytes, ...]], body: bytes, answers: list[int]) -> None:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.sleep(WAIT_S)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    scope = {"type": "http", "method": "POST", "path": PATH.decode(), "headers": headers, "client": None}
    await here.by_asgi(scope, receive, send)


async def test_a_long_batch_whose_caller_has_gone_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with served(tmp_path, is_direct=True) as here:
        ticks, body = _Ticks(here.app, monkeypatch), long_batch(here)
        direct, headers = (
            here.app.direct,
            [(b"host", b"localhost"), (b"content-type", b"application/msgpack")],
        )
        assert direct is not None
        answers = list[int]()
        for is_wanted in (False, False, True):
            direct.answer(
                call(headers, body, lambda answer: answers.append(answer.status), is_wanted=is_wanted)
            )
        await until(lambda: bool(answers))
        ticks.stop()
        assert (here.app.traffic.under_way, here.app.traffic.bodies.held) == (0, 0)
    assert answers == [200]
    assert len(ticks.reads) == 1


async def test_a_short_batch_does_not_wait_for_long_ones(tmp_path: Path) -> None:
    async with served(tmp_path, is_direct=True) as here:
        direct, headers = (
            here.app.direct,
            [(b"host", b"localhost"), (b"content-type", b"application/msgpack")],
        )
        assert direct is not None
        answers = list[str]()
        long, short = long_batch(here), batch(here, Collect("register/a"))
        for _ in range(4):
            direct.answer(call(headers, long, lambda _: answers.append("long")))
        direct.answer(call(headers, short, lambda _: answers.append("short")))
        await until(lambda: len(answers) == 5)
    assert answers.index("short") < 3


@pytest.mark.parametrize("is_direct", [True, False])
async def test_tokens_take_turns_at_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_direct: bool
) -> None:
    callers: list[object] = []
    right = Committer.post

    def noting(*args: Any, **kwargs: Any) -> None:
        callers.append(kwargs["caller"])
        right(*args, **kwargs)

    async with served(tmp_path, is_direct=is_direct, has_tokens=True) as here:
        monkeypatch.setattr(Committer, "post", noting)
        for token in (READER, WRITER):
            reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
            writer.write(
                post(batch(here, Collect("queue/q")), *HEADERS, b"Authorization: Bearer " + token.encode())
            )
            assert (await one_answer(reader))[0] == b"HTTP/1.1 200 OK"
            writer.close()
    assert len(set(callers) - {None}) == 2


FAILED_CALLS = 30


@pytest.mark.parametrize("is_direct", [True, False])
async def test_what_failed_stays_in_memory_for_nobody(tmp_path: Path, *, is_direct: bool) -> None:
    """An error knows the frames that it passed, and these the bodies: where one of them keeps the error, too, all of that waits for
    the garbage collector, and no bound counts it."""

    collector = importlib.import_module("gc")
    async with served(tmp_path, is_direct=is_direct) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        with_full_disk(here)
        collector.collect()
        collector.disable()
        try:
            for number in range(FAILED_CALLS):
                writer.write(post(batch(here, append(number)), *HEADERS))
                assert (await one_answer(reader))[0] == b"HTTP/1.1 503 Service Unavailable"
            collector.set_debug(collector.DEBUG_SAVEALL)
            collector.collect()
            kept = Counter(
                each.tb_frame.f_code.co_name for each in collector.garbage if isinstance(each, TracebackType)
            )
        finally:
            collector.set_debug(0)
            collector.garbage.clear()
            collector.enable()
        assert max(kept.values(), default=0) < FAILED_CALLS, kept
        writer.close()
