"""HTTP as it goes wrong: every exception and every answer becomes one sentence, and says whether it is definite."""

import asyncio
import inspect
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from quorate.api_specs.messages import Ask, Batch, BatchReply, Collect, Collected, Served, Status
from quorate.client_sdk import http_transport
from quorate.client_sdk.effects import Unanswered
from quorate.client_sdk.errors import BadCluster, RefusedByReplicas, Unavailable
from quorate.client_sdk.http_transport import NEVER_SENT, HttpTransport, fetch_cluster, unanswered
from quorate.timestamps.timestamp import ZERO
from tests.client_sdk.loopback import Asked, Server, problem, response, serving, silence
from tests.client_sdk.scripted import document_of

BATCH = Batch("hash", (Collect("register/x"),))
REPLY = BatchReply("r1", "i", ZERO, 0, (Collected(Status()),))
TOKEN = "a-very-secret-token"


async def right(_: Asked) -> bytes:
    """The answer that all is well."""
    return response(200, msgspec.msgpack.encode(REPLY))


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(right) as made:
        yield made


async def ask(server: Server, answer: bytes | None = None, timeout_s: float = 5) -> BatchReply | Unanswered:
    """One exchange with a server that answers `answer`."""
    if answer is not None:

        async def handle(_: Asked) -> bytes:
            return answer

        server.handler = handle
    transport = HttpTransport({"r1": server.url}, token=TOKEN, body_bytes_max=1000)
    try:
        return await transport.exchange("r1", BATCH, timeout_s)
    finally:
        await transport.aclose()


async def test_a_batch_goes_as_messagepack_with_the_token_and_its_reply_comes_back(server: Server) -> None:
    assert await ask(server) == REPLY
    [asked] = server.asked
    assert asked.line == "POST /replica/v1/batch HTTP/1.1"
    assert asked.headers["content-type"] == asked.headers["accept"] == "application/msgpack"
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert msgspec.msgpack.decode(asked.body, type=Batch) == BATCH


async def test_json_is_an_option(server: Server) -> None:
    async def handle(asked: Asked) -> bytes:
        assert msgspec.json.decode(asked.body, type=Batch) == BATCH
        return response(200, msgspec.json.encode(REPLY), asked.headers["accept"])

    server.handler = handle
    transport = HttpTransport({"r1": server.url}, encoding="json", body_bytes_max=1000)
    assert await transport.exchange("r1", BATCH, 5) == REPLY
    await transport.aclose()


async def test_connections_are_kept(server: Server) -> None:
    transport = HttpTransport({"r1": server.url}, body_bytes_max=1000)
    for _ in range(5):
        assert await transport.exchange("r1", BATCH, 5) == REPLY
    await transport.aclose()
    assert server.connections == 1


async def test_a_refused_connection_is_definite() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    transport = HttpTransport({"r1": f"http://127.0.0.1:{port}"}, body_bytes_max=1000)
    answer = await transport.exchange("r1", BATCH, 5)
    await transport.aclose()
    assert isinstance(answer, Unanswered)
    assert answer.definite
    assert answer.detail.startswith("r1: ")


async def test_silence_ends_at_the_timeout_and_is_not_definite(server: Server) -> None:
    server.handler = silence
    started_s = time.monotonic()
    answer = await ask(server, timeout_s=0.1)
    assert time.monotonic() - started_s < 2
    assert isinstance(answer, Unanswered)
    assert not answer.definite
    assert "no answer in time" in answer.detail


async def test_an_answer_that_trickles_ends_at_the_timeout_too(server: Server) -> None:
    """Each byte is in time for httpx, whose timeout is for one read; the whole is not."""
    writers: list[asyncio.StreamWriter] = []

    async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x")
            await asyncio.sleep(0.01)

    trickling = await asyncio.start_server(trickle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{trickling.sockets[0].getsockname()[1]}"
    transport = HttpTransport({"r1": url}, body_bytes_max=100_000)
    answer = await transport.exchange("r1", BATCH, 0.2)
    assert isinstance(answer, Unanswered)
    assert not answer.definite
    await transport.aclose()
    trickling.close()
    for writer in writers:
        writer.transport.abort()


async def test_a_connection_cut_after_sending_is_not_definite(server: Server) -> None:
    server.cuts = True
    started_s = time.monotonic()
    answer = await ask(server, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
    assert time.monotonic() - started_s < 4, "it was cut, not waited out"
    assert isinstance(answer, Unanswered)
    assert not answer.definite


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\x93\x01\x02\x03",
        b"<html>",
        msgspec.msgpack.encode({"replica": 1}),
        b"\xa2\xff\xfe",
        b"\x91" * 5000,
    ],
)
@pytest.mark.parametrize("content_type", ["application/msgpack", "application/json", "text/html"])
async def test_a_malformed_reply_is_no_reply(server: Server, body: bytes, content_type: str) -> None:
    answer = await ask(server, response(200, body, content_type))
    assert isinstance(answer, Unanswered)
    assert not answer.definite
    assert "malformed" in answer.detail


async def test_not_even_http_is_no_reply(server: Server) -> None:
    answer = await ask(server, b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    assert isinstance(answer, Unanswered)
    assert not answer.definite


async def test_an_endless_reply_ends_at_the_bound(server: Server) -> None:
    answer = await ask(server, response(200, b"x" * 100_000))
    assert isinstance(answer, Unanswered)
    assert "longer than 8000 bytes" in answer.detail


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(server: Server, status: int) -> None:
    with serving(right) as elsewhere:
        answer = await ask(server, response(status, Location=elsewhere.url))
        assert elsewhere.asked == []
    assert isinstance(answer, Unanswered)
    assert answer.refused
    assert "give the replica's own URL" in answer.detail


@pytest.mark.parametrize(
    ("answered", "refused", "definite"),
    [
        (problem(409, "wrong-cluster", definite=True), True, True),
        (problem(409, "wrong-cluster"), True, True),
        (problem(401, "unauthorized", definite=True), True, True),
        (problem(413, "too-large", definite=True), True, True),
        (problem(503, "store-lost"), False, True),
        (problem(503, "overloaded", definite=True), False, True),
        (problem(503, "shutting-down", definite=False), False, False),
        (problem(500, "internal"), False, False),
        (response(502, b"<html>bad gateway</html>", "text/html"), False, False),
        (response(404, b"", "text/plain"), True, True),
    ],
)
async def test_problems_say_whether_it_was_refused_and_whether_that_is_definite(
    server: Server, answered: bytes, refused: bool, definite: bool
) -> None:
    answer = await ask(server, answered)
    assert isinstance(answer, Unanswered)
    assert (answer.refused, answer.definite) == (refused, definite)


async def test_the_advice_of_a_problem_reaches_the_user(server: Server) -> None:
    answer = await ask(server, problem(409, "wrong-cluster"))
    assert isinstance(answer, Unanswered)
    assert answer.detail == "r1: advice on wrong-cluster"


def exceptions_of_httpx() -> list[type[Exception]]:
    """Every exception class that httpx exports."""
    classes = (getattr(httpx, name) for name in httpx.__all__)
    return [each for each in classes if inspect.isclass(each) and issubclass(each, Exception)]


def test_every_exception_of_httpx_is_one_that_the_transport_catches() -> None:
    """A class that a new httpx adds outside of these families must be looked at."""
    caught = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError)
    # Only for cookies looked up by name, which this transport never does.
    assert {each for each in exceptions_of_httpx() if not issubclass(each, caught)} == {httpx.CookieConflict}


@pytest.mark.parametrize("kind", exceptions_of_httpx(), ids=lambda kind: kind.__name__)
def test_only_failures_before_sending_are_definite(kind: type[Exception]) -> None:
    before_sending = {
        httpx.ConnectError,
        httpx.ConnectTimeout,
        httpx.PoolTimeout,
        httpx.ProxyError,
        httpx.UnsupportedProtocol,
        httpx.InvalidURL,
    }
    error = kind.__new__(kind)
    Exception.__init__(error, "something")
    answer = unanswered("r1", error)
    assert answer.definite == (kind in before_sending)
    assert not answer.refused
    assert answer.detail.startswith("r1: ")
    assert set(NEVER_SENT) == before_sending


async def test_the_token_is_in_no_repr_and_no_sentence(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    transport = HttpTransport({"r1": server.url}, token=TOKEN, body_bytes_max=1000)
    await transport.exchange("r1", BATCH, 5)
    shown = repr(transport) + repr(vars(transport)) + repr(transport._client.headers)
    server.stop()
    shown += repr(await transport.exchange("r1", BATCH, 5))
    await transport.aclose()
    assert TOKEN not in shown
    assert TOKEN not in caplog.text


async def test_the_environment_is_not_asked_for_proxies(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert await ask(server) == REPLY


async def test_the_cluster_document_is_fetched(server: Server) -> None:
    document = document_of("r1", "r2")

    async def handle(asked: Asked) -> bytes:
        assert asked.line == "GET /v1/cluster HTTP/1.1"
        served = {"hash": document.hash, "document": document}
        return response(200, msgspec.json.encode(served), "application/json")

    server.handler = handle
    fetched = await fetch_cluster(server.url + "/", token=None, timeout_s=5)
    assert fetched == document
    assert fetched.hash == document.hash


@pytest.mark.parametrize(
    ("answered", "error"),
    [
        (problem(401, "unauthorized"), RefusedByReplicas),
        (response(200, b"{}"), BadCluster),
        (response(200, b"no json"), BadCluster),
        (response(200, b'{"hash":"x","document":{"name":"x","replicas":[]}}'), BadCluster),
        (response(200, msgspec.json.encode({"hash": "other", "document": document_of("r1")})), BadCluster),
        (response(302, Location="http://127.0.0.1:1"), RefusedByReplicas),
        (b"garbage\r\n\r\n", Unavailable),
    ],
)
async def test_a_document_that_cannot_be_had_is_an_error_of_the_sdk(
    server: Server, answered: bytes, error: type[Exception]
) -> None:
    async def handle(_: Asked) -> bytes:
        return answered

    server.handler = handle
    with pytest.raises(error, match=r"127\.0\.0\.1"):
        await fetch_cluster(server.url, token=None, timeout_s=5)


async def test_a_document_is_not_waited_for_without_an_end(server: Server) -> None:
    server.handler = silence
    with pytest.raises(Unavailable, match="no answer in time") as caught:
        await fetch_cluster(server.url, token=None, timeout_s=0.1)
    assert caught.value.definite


def test_no_other_module_imports_httpx() -> None:
    room = Path(http_transport.__file__).parent
    importing = [path.name for path in room.glob("*.py") if "import httpx" in path.read_text()]
    assert importing == ["http_transport.py"]


ASK = Ask("hash", ZERO, "queue/q")
SERVED = Served("r1", "i")


async def asked_of(server: Server, answer: bytes) -> Served | Unanswered:
    """What comes of an ask that the server answers with `answer`."""

    async def handle(_: Asked) -> bytes:
        return answer

    server.handler = handle
    transport = HttpTransport({"r1": server.url}, token=TOKEN, body_bytes_max=1000)
    try:
        return await transport.ask("r1", ASK, 5)
    finally:
        await transport.aclose()


async def test_an_ask_goes_with_the_token_and_its_answer_comes_back(server: Server) -> None:
    assert await asked_of(server, response(200, msgspec.msgpack.encode(SERVED))) == SERVED
    [asked] = server.asked
    assert asked.line == "POST /replica/v1/ask HTTP/1.1"
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert msgspec.msgpack.decode(asked.body, type=Ask) == ASK


@pytest.mark.parametrize(
    ("answer", "definite"),
    [
        (problem(400, "malformed", definite=True), True),
        (problem(503, "overloaded", definite=True), False),
        (problem(500, "internal"), False),
        (response(200, b"nonsense"), False),
    ],
    ids=["malformed", "overloaded", "internal", "nonsense"],
)
async def test_only_what_any_copy_of_an_ask_meets_is_definite(
    server: Server, answer: bytes, definite: bool
) -> None:
    got = await asked_of(server, answer)
    assert isinstance(got, Unanswered)
    assert got.definite is definite


async def test_an_ask_that_never_left_is_definite() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    transport = HttpTransport({"r1": f"http://127.0.0.1:{port}"}, body_bytes_max=1000)
    got = await transport.ask("r1", ASK, 5)
    await transport.aclose()
    assert isinstance(got, Unanswered)
    assert got.definite
