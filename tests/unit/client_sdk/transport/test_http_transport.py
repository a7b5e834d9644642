"""HTTP as it goes wrong: every exception and every answer becomes one sentence, and says whether it is definite. Each test
of the transport runs with each HTTP client."""

import asyncio
import inspect
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Batch, Collect
from quorate.client_sdk.errors import BadCluster, RefusedByReplicas, Unavailable
from quorate.client_sdk.protocol.configurations import settled
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport import http_transport
from quorate.client_sdk.transport.http_answer import HttpAnswer, HttpClient
from quorate.client_sdk.transport.http_transport import HttpTransport, fetch_cluster
from quorate.client_sdk.transport.httpx_client import NEVER_SENT, told
from tests.unit.client_sdk.exchanging import BATCH, PATIENT_S, REPLY, TOKEN, ForwardedRequest, Make, right
from tests.unit.client_sdk.loopback import PendingCommand, Server, problem, response, serving, silence
from tests.unit.client_sdk.scripted import changed, document_of


async def test_a_batch_goes_as_messagepack_with_the_token_and_its_reply_comes_back(
    server: Server, ask: ForwardedRequest
) -> None:
    assert await ask() == REPLY
    [asked] = server.asked
    assert asked.line == "POST /replica/v1/batch HTTP/1.1"
    assert asked.headers["content-type"] == asked.headers["accept"] == "application/msgpack"
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["quorate-protocol"] == "1-2"
    assert msgspec.msgpack.decode(asked.body, type=Batch) == BATCH


async def test_json_is_an_option(server: Server, to: Make) -> None:
    async def handle(asked: PendingCommand) -> bytes:
        assert msgspec.json.decode(asked.body, type=Batch) == BATCH
        return response(200, msgspec.json.encode(REPLY), asked.headers["accept"])

    server.handler = handle
    transport = to(server.url, encoding="json")
    assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    await transport.aclose()


async def test_connections_are_kept(server: Server, to: Make) -> None:
    transport = to(server.url)
    for _ in range(5):
        assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    await transport.aclose()
    assert server.connections == 1


async def test_a_refused_connection_is_definite(to: Make) -> None:
    with socket.socket() as bound:  # Nobody listens there, nor can anybody else.
        bound.bind(("127.0.0.1", 0))
        transport = to(f"http://127.0.0.1:{bound.getsockname()[1]}")
        answer = await transport.exchange("r1", BATCH, PATIENT_S)
        await transport.aclose()
    assert isinstance(answer, Unanswered)
    assert answer.definite
    assert answer.detail.startswith("r1: ")


async def test_silence_ends_at_the_timeout_and_is_not_definite(server: Server, ask: ForwardedRequest) -> None:
    server.handler = silence
    started_s = time.monotonic()
    answer = await ask(timeout_s=0.1)
    assert time.monotonic() - started_s < 30
    assert isinstance(answer, Unanswered)
    assert not answer.definite
    assert "no answer in time" in answer.detail


async def test_an_answer_that_trickles_ends_at_the_timeout_too(to: Make) -> None:
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
    transport = to(url, 100_000)
    answer = await transport.exchange("r1", BATCH, 0.2)
    assert isinstance(answer, Unanswered)
    assert not answer.definite
    await transport.aclose()
    trickling.close()
    for writer in writers:
        writer.transport.abort()


async def test_a_connection_cut_after_sending_is_not_definite(server: Server, ask: ForwardedRequest) -> None:
    server.cuts = True
    started_s = time.monotonic()
    answer = await ask(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", timeout_s=60)
    assert time.monotonic() - started_s < 30, "it was cut, not waited out"
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
async def test_a_malformed_reply_is_no_reply(body: bytes, content_type: str, ask: ForwardedRequest) -> None:
    answer = await ask(response(200, body, content_type))
    assert isinstance(answer, Unanswered)
    assert not answer.definite
    assert "malformed" in answer.detail


async def test_not_even_http_is_no_reply(ask: ForwardedRequest) -> None:
    answer = await ask(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    assert isinstance(answer, Unanswered)
    assert not answer.definite


async def test_an_endless_reply_ends_at_the_bound(ask: ForwardedRequest) -> None:
    answer = await ask(response(200, b"x" * 100_000))
    assert isinstance(answer, Unanswered)
    assert "longer than 8000 bytes" in answer.detail


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int, ask: ForwardedRequest) -> None:
    with serving(right) as elsewhere:
        answer = await ask(response(status, Location=elsewhere.url))
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
    answered: bytes, refused: bool, definite: bool, ask: ForwardedRequest
) -> None:
    answer = await ask(answered)
    assert isinstance(answer, Unanswered)
    assert (answer.refused, answer.definite) == (refused, definite)


async def test_the_advice_of_a_problem_reaches_the_user(ask: ForwardedRequest) -> None:
    answer = await ask(problem(409, "wrong-cluster"))
    assert isinstance(answer, Unanswered)
    assert answer.detail == "r1: advice on wrong-cluster"


@pytest.mark.parametrize("epoch", [None, 0, 3])
async def test_who_is_in_another_configuration_says_in_which(
    epoch: int | None, ask: ForwardedRequest
) -> None:
    said = {} if epoch is None else {"epoch": epoch}
    answer = await ask(problem(409, "wrong-cluster", definite=True, **said))
    assert answer == Unanswered("r1: advice on wrong-cluster", refused=True, definite=True, epoch=epoch)


async def test_an_epoch_that_is_none_is_not_believed(ask: ForwardedRequest) -> None:
    answer = await ask(problem(409, "wrong-cluster", epoch="later"))
    assert isinstance(answer, Unanswered)
    assert (answer.refused, answer.epoch) == (True, None)


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
    answer = told("r1", error)
    assert answer.definite == (kind in before_sending)
    assert not answer.refused
    assert answer.detail.startswith("r1: ")
    assert set(NEVER_SENT) == before_sending


async def test_the_token_is_in_no_repr_and_no_sentence(
    server: Server, caplog: pytest.LogCaptureFixture, to: Make
) -> None:
    caplog.set_level("DEBUG")
    transport = to(server.url, token=TOKEN)
    await transport.exchange("r1", BATCH, PATIENT_S)
    shown = repr(transport) + repr(vars(transport)) + repr(vars(transport._client))
    server.stop()
    shown += repr(await transport.exchange("r1", BATCH, PATIENT_S))
    await transport.aclose()
    assert TOKEN not in shown
    assert TOKEN not in caplog.text


async def test_the_environment_is_not_asked_for_proxies(
    monkeypatch: pytest.MonkeyPatch, ask: ForwardedRequest
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert await ask() == REPLY


async def test_the_cluster_document_is_fetched(server: Server) -> None:
    document = document_of("r1", "r2")

    async def handle(asked: PendingCommand) -> bytes:
        assert asked.line == "GET /v1/cluster HTTP/1.1"
        served = {"hash": document.hash, "document": document}
        return response(200, msgspec.json.encode(served), "application/json")

    server.handler = handle
    fetched = await fetch_cluster(server.url + "/", token=None, timeout_s=PATIENT_S)
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
    async def handle(_: PendingCommand) -> bytes:
        return answered

    server.handler = handle
    with pytest.raises(error, match=r"127\.0\.0\.1"):
        await fetch_cluster(server.url, token=None, timeout_s=PATIENT_S)


@pytest.mark.parametrize(
    ("hosts", "token", "endpoints", "is_refused"),
    [
        (("127.0.0.1", "localhost"), "t", {}, False),
        (("127.0.0.1", "10.0.0.9"), None, {}, False),
        (("127.0.0.1", "10.0.0.9"), "t", {}, True),
        (("127.0.0.1", "10.0.0.9"), "t", {"r2": "http://10.0.0.9:2"}, False),
        (("127.0.0.1", "10.0.0.9"), "t", {"r2": "http://127.0.0.1:2"}, False),
        (("127.0.0.1", "10.0.0.9"), "t", {"r1": "http://10.0.0.8:2"}, True),
    ],
)
async def test_a_token_goes_to_no_host_that_the_caller_has_not_named(
    server: Server, hosts: tuple[str, str], token: str | None, endpoints: dict[str, str], is_refused: bool
) -> None:
    replicas = tuple(ReplicaInfo(f"r{n}", f"http://{host}:{n}") for n, host in enumerate(hosts, 1))
    document = ClusterDocument("served", replicas)

    async def handle(_: PendingCommand) -> bytes:
        served = {"hash": document.hash, "document": document}
        return response(200, msgspec.json.encode(served), "application/json")

    server.handler = handle
    fetched = fetch_cluster(server.url, token=token, timeout_s=PATIENT_S, endpoints=endpoints)
    if not is_refused:
        assert await fetched == document
        return
    others = list(document.urls.values())
    assert await fetch_cluster(server.url, token=token, timeout_s=PATIENT_S, named=others) == document
    with pytest.raises(BadCluster, match=r"10\.0\.0\.9:2, a host that you have not named"):
        await fetched


async def test_a_document_is_not_waited_for_without_an_end(server: Server) -> None:
    server.handler = silence
    with pytest.raises(Unavailable, match="no answer in time") as caught:
        await fetch_cluster(server.url, token=None, timeout_s=0.1)
    assert caught.value.definite


def test_only_one_module_imports_each_http_library() -> None:
    room = Path(http_transport.__file__).parent
    for library, module in (("httpx", "httpx_client.py"), ("httptools", "http1.py")):
        importing = [path.name for path in room.glob("*.py") if f"import {library}\n" in path.read_text()]
        assert importing == [module]


async def test_an_answer_may_be_announced_and_come_in_chunks(server: Server, ask: ForwardedRequest) -> None:
    body = msgspec.msgpack.encode(REPLY)
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:3], body[3:]))
    announced = (
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: application/msgpack\r\n"
    )
    assert await ask(announced + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n") == REPLY


async def test_a_large_batch_goes_whole(server: Server, to: Make) -> None:
    batch = Batch("hash", (Collect("register/" + "x" * 4_000_000),))
    transport = to(server.url)
    assert await transport.exchange("r1", batch, 30) == REPLY
    await transport.aclose()
    assert msgspec.msgpack.decode(server.asked[0].body, type=Batch) == batch


async def test_a_connection_that_the_server_closed_is_not_used_again(server: Server, to: Make) -> None:
    transport = to(server.url)
    assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    server.stop()
    server.start()
    for _ in range(3):  # The loop asks the system in its next turn, and hears it in the one after.
        await asyncio.sleep(0)
    assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
    await transport.aclose()
    assert server.connections == 2


async def test_an_answer_that_came_too_late_is_nobody_elses(server: Server, to: Make) -> None:
    """The first caller goes away; the second must not be given what the first was to get."""
    first_asked, late = asyncio.Event(), REPLY
    loop = asyncio.get_running_loop()
    go_on: list[Callable[[], Any]] = []

    async def slow(asked: PendingCommand) -> bytes:
        if len(server.asked) > 1:
            return await right(asked)
        held = asyncio.Event()
        serving_loop = asyncio.get_running_loop()
        go_on.append(lambda: serving_loop.call_soon_threadsafe(held.set))
        loop.call_soon_threadsafe(first_asked.set)
        await held.wait()
        return response(200, b"late")

    server.handler = slow
    transport = to(server.url)
    first = asyncio.create_task(transport.exchange("r1", BATCH, 30))
    await asyncio.wait_for(first_asked.wait(), 30)
    first.cancel()
    await asyncio.wait([first])
    go_on[0]()
    assert await transport.exchange("r1", BATCH, PATIENT_S) == late
    await transport.aclose()
    assert server.connections == 2


def served(document: ClusterDocument, given: str | None = None) -> bytes:
    """The answer of a replica in that configuration, with the hash that is given."""
    told = {"hash": document.hash if given is None else given, "document": document}
    return response(200, msgspec.json.encode(told), "application/json")


async def configuration(
    server: Server, to: Make, answer: bytes, token: str | None = None
) -> ClusterDocument | Unanswered:
    """Which configuration r1 is in, where it answers so."""

    async def handle(_: PendingCommand) -> bytes:
        return answer

    server.handler = handle
    transport = to(server.url + "/", token=token)
    try:
        return await transport.configuration("r1", PATIENT_S)
    finally:
        await transport.aclose()


BOTH = changed(document_of("r1", "r2", "r3"))
AFTER = settled(BOTH)


@pytest.mark.parametrize("document", [BOTH.former, BOTH, AFTER])
async def test_a_replica_says_which_configuration_it_is_in(
    server: Server, to: Make, document: ClusterDocument
) -> None:
    told = await configuration(server, to, served(document), TOKEN)
    assert told == document
    assert isinstance(told, ClusterDocument)
    assert told.hash == document.hash
    [asked] = server.asked
    assert asked.line == "GET /v1/cluster HTTP/1.1"
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        (problem(401, "unauthorized"), True),
        (problem(503, "starting"), False),
        (response(500, b"", "text/plain"), False),
        (response(302, Location="http://127.0.0.1:1"), True),
        (b"garbage\r\n\r\n", False),
    ],
)
async def test_a_replica_that_does_not_say_which_configuration_it_is_in_has_not_answered(
    server: Server, to: Make, answer: bytes, refused: bool
) -> None:
    told = await configuration(server, to, answer)
    assert isinstance(told, Unanswered)
    assert told.refused == refused
    assert told.detail.startswith("r1: ")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (response(200, b"{}"), "no cluster file that can be used"),
        (response(200, b"no json"), "no cluster file that can be used"),
        (response(200, b'{"hash":"x","document":{"name":"x","replicas":[]}}'), "no cluster file that can"),
        (served(BOTH, given=AFTER.hash), "the document's hash differs"),
    ],
)
async def test_a_configuration_that_cannot_be_used_is_a_bad_cluster_file(
    server: Server, to: Make, answer: bytes, why: str
) -> None:
    with pytest.raises(BadCluster, match=why) as caught:
        await configuration(server, to, answer)
    assert str(caught.value).startswith(server.url + "/v1/cluster: ")


async def test_a_replica_has_so_long_to_say_which_configuration_it_is_in(server: Server, to: Make) -> None:
    server.handler = silence
    transport = to(server.url)
    async with asyncio.timeout(30):
        told = await transport.configuration("r1", 0.05)
    assert isinstance(told, Unanswered)
    assert "no answer in time" in told.detail
    await transport.aclose()


def strange(document: ClusterDocument) -> ClusterDocument:
    """The next one, where r2 and r4 are on hosts of their own."""
    info = ReplicaInfo("r2", "http://10.0.0.8:2"), ReplicaInfo("r4", "http://10.0.0.9:4")
    return ClusterDocument(document.name, (document.replicas[0], *info), epoch=1)


@pytest.mark.parametrize("token", [None, TOKEN])
async def test_a_configuration_may_lead_to_new_hosts_for_who_tells_it_has_the_token_already(
    server: Server, to: Make, token: str | None
) -> None:
    document = strange(document_of("r1"))
    assert await configuration(server, to, served(document), token) == document


async def test_new_members_are_reached_where_the_document_says_and_those_known_where_they_were(
    server: Server, to: Make
) -> None:
    with serving(right) as new, serving(right) as elsewhere:
        infos = ReplicaInfo("r1", elsewhere.url), ReplicaInfo("r2", new.url + "/")
        transport = to(server.url, token=TOKEN)
        transport.follow(ClusterDocument("local", infos, epoch=1))
        for replica in ("r1", "r2"):
            assert await transport.exchange(replica, BATCH, PATIENT_S) == REPLY
            with pytest.raises(BadCluster):  # They answer with a reply to a batch.
                await transport.configuration(replica, PATIENT_S)
        await transport.aclose()
        assert [asked.line.split(" ")[1] for asked in server.asked] == ["/replica/v1/batch", "/v1/cluster"]
        assert [asked.line.split(" ")[1] for asked in new.asked] == ["/replica/v1/batch", "/v1/cluster"]
        assert elsewhere.asked == []


async def test_one_that_moved_is_reached_at_its_new_place_unless_an_endpoint_was_given(
    server: Server, to: Make
) -> None:
    with serving(right) as there:
        moved = ClusterDocument("local", (ReplicaInfo("r1", there.url + "/", moved=2),), epoch=2)
        given = HttpTransport({"r1": "http://127.0.0.1:9"}, endpoints={"r1": server.url}, body_bytes_max=1000)
        for transport in (to(server.url), given):
            transport.follow(moved)
            assert await transport.exchange("r1", BATCH, PATIENT_S) == REPLY
            await transport.aclose()
        assert (len(there.asked), len(server.asked)) == (1, 1)


class Telling(HttpClient):
    """Answers the same to everybody."""

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer

    def send(self, who: str, url: str, done: Callable[[Any], object], **_: Any) -> Callable[[], object]:
        asyncio.get_running_loop().call_soon(done, self._answer)
        return lambda: None

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_member_that_moved_is_not_followed_from_https_to_http() -> None:
    moved = ClusterDocument("local", (ReplicaInfo("r1", "http://127.0.0.1:9", moved=2),), epoch=2)
    answer = HttpAnswer(
        200, "application/json", "", msgspec.json.encode({"hash": moved.hash, "document": moved})
    )
    transport = HttpTransport(
        {"r1": "https://127.0.0.1:9"}, body_bytes_max=1000, client=lambda *_: Telling(answer)
    )
    with pytest.raises(BadCluster, match="the token would be sent in the clear"):
        await transport.configuration("r1", 1)
