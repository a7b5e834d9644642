"""A connection that knows the head of a batch answers as one that parses each: whatever comes, in whatever pieces."""

import asyncio
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from quorate.api_specs.limits import HEADERS_MAX
from quorate.api_specs.messages import Collect
from quorate.replica.server import direct
from quorate.replica.server.direct import HEAD_KNOWN_BYTES_MAX, HEADERS_KNOWN_MAX, HEADS_MAX, DirectProtocol
from tests.unit.replica.server.test_direct import (
    HEADERS,
    PATH,
    WAIT_S,
    Held,
    Served,
    batch,
    one_answer,
    served,
    until,
)

Answers = list[tuple[bytes, bytes]]
SEQUENCES = 200
EMPTY_LINE = b"\r\n"


def last(body: bytes, *headers: bytes, line: bytes = b"POST " + PATH + b" HTTP/1.1") -> bytes:
    """A request as front ends send it: the length of its body comes last."""
    return b"\r\n".join((line, b"Host: localhost", *headers, b"Content-Length: %d" % len(body), b"", body))


def stays(here: Served) -> list[bytes]:
    """Requests after which a connection stays."""
    return [
        last(batch(here, Collect("register/r")), *HEADERS, b"X-Other: 1"),
        last(b"\xc1", *HEADERS),
        last(b'{"item":1}', b"Content-Type: application/json", line=b"POST /v1/queues/q/items HTTP/1.1"),
        last(batch(here, Collect("register/r")), *HEADERS, b"Upgrade: h2c", b"Connection: upgrade"),
        last(batch(here, Collect("register/r")), *HEADERS).replace(b"Content-Length: ", b"Content-Length: 0"),
        last(batch(here, Collect("register/r")), b"Accept: application/json", *HEADERS[:1]),
        last(b"", *HEADERS),
        last(last(batch(here, Collect("register/r")), *HEADERS), *HEADERS),
        b"GET /v1/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n",
        EMPTY_LINE,
    ]


def ends(here: Served) -> list[bytes]:
    """Requests after which it ends."""
    body = batch(here, Collect("register/r"))
    return [
        last(body, *HEADERS, b"Connection: close"),
        last(body, *HEADERS, *[b"X: 1"] * HEADERS_MAX),
        last(body, *HEADERS, b"Host: localhost"),
        last(body, *HEADERS, b"Origin: http://evil.example"),
        last(body, *HEADERS).replace(b"Content-Length: ", b"Content-Length: 1, "),
        b"no request\r\n\r\n",
        b"POST %b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n" % PATH,
    ]


def requests(here: Served, rng: Random) -> list[bytes]:
    """Some of each kind, batches of a front end above all."""
    usual = [
        last(batch(here, *(Collect(f"register/{n}") for n in range(many))), *HEADERS)
        for many in (1, 2, 5, 40)
    ]
    others = stays(here)
    return [rng.choice(usual) if rng.random() < 0.6 else rng.choice(others) for _ in range(6)]


def pieces(asked: list[bytes], rng: Random) -> list[bytes]:
    """One for each request, or some at once, or cut anywhere."""
    found: list[bytes] = []
    for request in asked:
        way = rng.random()
        if way < 0.25 and found:
            found[-1] += request
        elif way < 0.35:
            end = request.find(b"\r\n\r\n")
            behind_length = request.find(b"\r\n", request.find(b"Content-Length: "))
            cut = rng.choice([rng.randrange(len(request)), behind_length, end, end + 4])
            found += [request[:cut], request[cut:]]
        else:
            found.append(request)
    return [piece for piece in found if piece]


async def answers(here: Served, sent: list[bytes], count: int, end: bytes) -> Answers:
    """Status and type of so many that come for what is sent, and of what comes for `end`."""
    reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
    for piece in sent:
        writer.write(piece)
        for _ in range(20):  # Most pieces are taken one by one: the answers need not be the same for it.
            await asyncio.sleep(0)
    found = [await answer(reader) for _ in range(count)]
    writer.write(end)
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            found.append(await answer(reader))
    writer.close()
    return found


async def answer(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    status, headers, _ = await one_answer(reader)
    return status, headers[b"content-type"]


async def test_any_requests_are_answered_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[bool] = []
    is_known = DirectProtocol._is_known

    def noting(self: DirectProtocol, data: bytes) -> bool:
        known.append(is_known(self, data))
        return known[-1]

    monkeypatch.setattr(DirectProtocol, "_is_known", noting)
    async with served(tmp_path, is_direct=True) as here:
        here.app.batches = here.by_asgi
        for seed in range(SEQUENCES):
            rng = Random(seed)
            asked, end = requests(here, rng), rng.choice(ends(here))
            sent, count = pieces(asked, rng), len(asked) - asked.count(EMPTY_LINE)
            found: list[Answers] = []
            for heads_max in (4, 0):
                monkeypatch.setattr(direct, "HEADS_MAX", heads_max)
                async with asyncio.timeout(WAIT_S):
                    found.append(await answers(here, sent, count, end))
            assert found[0] == found[1], (seed, sent, end)
    assert sum(known) > SEQUENCES, "most batches come behind one with the same head"


async def test_a_request_with_a_known_head_is_not_cut_off_as_an_idle_connection_is(tmp_path: Path) -> None:
    async with served(tmp_path, is_direct=True) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        request = last(batch(here, Collect("register/r")), *HEADERS)
        writer.write(request)
        assert (await answer(reader))[0] == b"HTTP/1.1 200 OK"
        held = Held(here.member)
        writer.write(request)
        await until(lambda: held.waits == 1)
        (connection,) = here.server.server_state.connections
        idle = cast(Any, connection).timeout_keep_alive_task
        assert idle is None or idle.cancelled(), "it would be cut off once its idle time is over"
        held.release()
        assert (await answer(reader))[0] == b"HTTP/1.1 200 OK"
        writer.close()


async def test_half_a_head_proves_nothing_for_who_comes_next(tmp_path: Path) -> None:
    """Behind a proxy, two callers share a connection."""
    body = b"\xc1"
    half = b"POST " + PATH + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d" % len(body)
    async with served(tmp_path, is_direct=True, has_tokens=True) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(half)
        for _ in range(20):
            await asyncio.sleep(0)
        writer.write(b"\r\nAuthorization: Bearer writes\r\n\r\n" + body)
        assert (await answer(reader))[0] == b"HTTP/1.1 400 Bad Request"
        writer.write(half + b"\r\n\r\n" + body)
        assert (await answer(reader))[0] == b"HTTP/1.1 401 Unauthorized"
        writer.close()


@pytest.mark.parametrize(
    ("more", "is_known"),
    [
        ((b"X: 1" * 9,), True),
        ((b"X: " + b"x" * HEAD_KNOWN_BYTES_MAX,), False),
        ((b"X: 1",) * HEADERS_KNOWN_MAX, False),
    ],
    ids=["small", "long", "of many headers"],
)
async def test_little_is_known_of_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[bytes, ...], *, is_known: bool
) -> None:
    known: list[int] = []
    answered = DirectProtocol._answer

    def noting(self: DirectProtocol, *given: Any, **named: Any) -> None:
        known.append(len(self._known))
        answered(self, *given, **named)

    monkeypatch.setattr(DirectProtocol, "_answer", noting)
    async with served(tmp_path, is_direct=True) as here:
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        for number in range(HEADS_MAX + 2):
            writer.write(last(batch(here, Collect("register/r")), *HEADERS, b"Y: %d" % number, *more))
            await answer(reader)
        writer.close()
    assert max(known) == (HEADS_MAX if is_known else 0)
