"""A connection that knows the head of an answer hears the same as one that parses each: whatever comes, in whatever pieces."""

from random import Random
from typing import Any, cast

import pytest

from quorate.client_sdk.transport.http1 import _Broken, _Connection
from quorate.client_sdk.transport.http_answer import HttpAnswer

BYTES_MAX = 1000
SEQUENCES = 300


class Transport:
    """Where requests go."""

    is_aborted = False

    def write(self, data: bytes) -> None:
        """As asyncio has it."""

    def abort(self) -> None:
        """As asyncio has it."""
        self.is_aborted = True


def answer(body: bytes, *headers: bytes, status: bytes = b"200 OK", length: int | None = None) -> bytes:
    """As replicas send it: the length of the body comes last."""
    said = b"content-length: %d" % (len(body) if length is None else length)
    return b"\r\n".join((b"HTTP/1.1 " + status, *headers, said, b"", body))


MSGPACK = b"content-type: application/msgpack"
OK = (b"date: Thu, 26 Nov 2026 19:00:00 GMT", MSGPACK)
USUAL = [answer(b"x" * size, *OK) for size in (0, 1, 10, 999, BYTES_MAX)]
OTHERS = [
    answer(b"later", b"date: Thu, 26 Nov 2026 19:00:01 GMT", MSGPACK),
    answer(b"{}", b"content-type: application/json", status=b"503 Service Unavailable"),
    answer(b"", b"location: /there", status=b"307 Temporary Redirect"),
    answer(b"x" * (BYTES_MAX + 1), *OK),
    answer(b"short", *OK, length=7),
    answer(b"long", *OK, length=2),
    answer(b"to be closed", *OK, b"connection: close"),
    answer(b"zeros", *OK).replace(b"content-length: ", b"content-length: 00"),
    answer(b"twice", *OK) + answer(b"twice", *OK),
    b"HTTP/1.1 100 Continue\r\ncontent-length: 0\r\n\r\n" + answer(b"at last", *OK),
    b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n" + MSGPACK + b"\r\n\r\nfirst",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\ncontent-length: 3\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"no HTTP\r\n\r\n",
    answer(USUAL[2], *OK),
]


def heard(sent: list[list[bytes]]) -> list[HttpAnswer | str | None]:
    """What came of each request that was answered with these pieces; None where more must come. One that is spoilt is not asked again."""
    found: list[HttpAnswer | str | None] = []
    connection = _Connection()
    for pieces in sent:
        if not connection.is_usable or (found and found[-1] is None):
            connection.close()
            connection = _Connection()
        connection.connection_made(cast(Any, Transport()))
        found.append(None)

        def done(came: HttpAnswer | _Broken) -> None:
            assert found[-1] is None, "it is told once"
            found[-1] = str(came) if isinstance(came, _Broken) else came

        connection.ask(b"", BYTES_MAX, 60.0, done)
        for piece in pieces:
            connection.get_buffer(-1)[: len(piece)] = piece
            connection.buffer_updated(len(piece))
    connection.close()
    return found


async def test_any_answers_are_heard_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    known: list[bool] = []
    is_known = _Connection._is_known

    def noting(self: _Connection, data: bytes) -> bool:
        known.append(is_known(self, data))
        return known[-1]

    for seed in range(SEQUENCES):
        rng = Random(seed)
        sent: list[list[bytes]] = []
        whole = USUAL[0]
        for _ in range(8):
            if not sent or rng.random() < 0.7:
                whole = rng.choice(USUAL if rng.random() < 0.6 else OTHERS)
            end = whole.find(b"\r\n\r\n")
            behind_length = whole.find(b"\r\n", whole.find(b"content-length: "))
            cut = rng.choice([0, 0, rng.randrange(len(whole)), behind_length, end, end + 4])
            sent.append([piece for piece in (whole[:cut], whole[cut:]) if piece])
        monkeypatch.setattr(_Connection, "_is_known", noting)
        told = heard(sent)
        monkeypatch.setattr(_Connection, "_is_known", lambda *_: False)
        assert told == heard(sent), (seed, sent)
    assert sum(known) > SEQUENCES, "most answers come behind one with the same head"


async def test_half_a_head_is_not_known() -> None:
    """The next answer lacks what came behind the half."""
    typed, untyped = b"HTTP/1.1 200 OK\r\ncontent-length: 2", answer(b"{}")
    found = heard([[typed, b"\r\n" + MSGPACK + b"\r\n\r\nab"], [untyped], [untyped], [typed, b"\r\n\r\n{}"]])
    assert [each.content_type for each in found if isinstance(each, HttpAnswer)] == [
        "application/msgpack",
        "",
        "",
        "",
    ]
