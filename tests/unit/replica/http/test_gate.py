"""What the gate looks at besides token and size: which page asks, how the path is written, and what a log tells of the refused."""

import asyncio
import logging
from pathlib import Path

import httpx
import msgspec
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.limits import (
    DOCUMENTS_PER_S_MAX,
    HEALTH_PER_S_MAX,
    UNPROVEN_PER_S_MAX,
    Limits,
)
from quorate.api_specs.messages import Batch, Collect
from quorate.api_specs.problems import Problem
from quorate.api_specs.tokens import make_token
from quorate.client_sdk.protocol.core.turns import Shares
from quorate.replica.access.rate import BURST_S, Buckets
from quorate.replica.access.refused_callers import RefusedCallers
from quorate.replica.access.token_list import from_text, nobody_asked
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.http.fair_queue import SHORT_AT_ONCE
from quorate.replica.http.gate import UNPROVEN_WAIT_S, Gate
from quorate.replica.http.host_header import AllowedHosts
from quorate.replica.http.large_bodies import turn
from quorate.replica.http.traffic import Traffic
from quorate.replica.server.app import create_app
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from tests.unit.replica.conftest import Serving
from tests.unit.replica.http.test_bad_input import JSON, problem_in
from tests.unit.replica.server.test_direct import (
    HEADERS,
    READER,
    WRITER,
    append,
    batch,
    one_answer,
    post,
    served,
    tokens,
)

TOKEN = make_token("k7f2qa", "s" * 43)
TOKENS = ("wrong", READER)
BATCH = "/replica/v1/batch"


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
async def test_what_a_page_of_another_origin_has_a_browser_ask_is_refused(
    tmp_path: Path, document: ClusterDocument, site: str
) -> None:
    """A link or an image sends no Origin; a peek that it asks for would be a decision."""
    member = Member(open_folder(tmp_path / "data", document, "r1"))
    hosts = AllowedHosts(["r1"], is_loopback=True)
    app = create_app(member, lambda each: embedded_front_end(each, None), hosts=hosts)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r1") as client,
    ):
        foreign = {"Sec-Fetch-Site": site}
        for path in ("/v1/queues/jobs/peek", "/v1/registers/a", "/v1/status", "/v1/cluster", "/metrics"):
            assert problem_in(await client.get(path, headers=foreign)).name == "foreign-origin", path
        refused = await client.post("/v1/queues/jobs/items", json={"item": 1}, headers=foreign)
        assert problem_in(refused).name == "foreign-origin"
        assert (await client.get("/v1/status")).json()["objects"] == 0
        for path in ("/ui", "/docs", "/v1/openapi.json", "/v1/health/live"):
            assert (await client.get(path, headers=foreign)).status_code == 200, path
        for own in ("none", "same-origin"):
            answer = await client.get("/v1/queues/jobs/peek", headers={"Sec-Fetch-Site": own})
            assert answer.is_success, answer.text


@pytest.mark.parametrize("slash", ["%2f", "%2F"])
async def test_an_escaped_slash_parts_no_path(client: httpx.AsyncClient, slash: str) -> None:
    for path in (f"/v1/registers{slash}a", f"/v1{slash}registers/a", f"/v1/queues/a{slash}items"):
        assert problem_in(await client.get(path)).name == "no-such-path", path
    assert problem_in(await client.put(f"/v1/registers{slash}a", json={"value": 1})).name == "no-such-path"
    assert problem_in(await client.post(f"/replica/v1{slash}batch", json={})).name == "no-such-path"
    assert (await client.get("/v1/status")).json()["objects"] == 0


async def test_who_is_refused_leaves_a_line_without_the_secret(
    serving: Serving, document: ClusterDocument, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(document, token="right") as client:
        await client.get("/v1/status", headers={"Authorization": f"Bearer {TOKEN}"})
        await client.post(BATCH, content=b"", headers={"Authorization": "Bearer mistyped"})
    told = [each.getMessage() for each in caplog.records if each.name.endswith("refused_callers")]
    assert told == [
        "refused as unauthorized: a token with the tag k7f2qa, from 127.0.0.1",
        "refused as unauthorized: a token without a tag, from 127.0.0.1",
    ]
    assert "ssss" not in caplog.text
    assert "mistyped" not in caplog.text


async def test_who_is_refused_on_the_shorter_way_leaves_a_line_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path, is_direct=True, has_tokens=True) as here:
        answers = [await one(here.port, post(batch(here, append(1)), *HEADERS, bearer(t))) for t in TOKENS]
    assert answers == [b"401", b"403"]
    told = [each.getMessage() for each in caplog.records if each.name.endswith("refused_callers")]
    assert told == [
        "refused as unauthorized: a token without a tag, from 127.0.0.1",
        "refused as forbidden: a token without a tag, from 127.0.0.1",
    ]


async def one(port: int, request: bytes) -> bytes:
    """The status that answers one request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    try:
        return (await one_answer(reader))[0].split()[1]
    finally:
        writer.close()


def bearer(token: str) -> bytes:
    return b"Authorization: Bearer " + token.encode()


def test_lines_about_the_refused_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    refused = RefusedCallers(lambda: now_s)
    caplog.set_level(logging.WARNING)
    for number in range(1000):
        refused.meet("unauthorized", {}, f"10.0.0.{number % 256}")
    refused.meet("too-large", {}, "10.0.0.1")
    assert len(caplog.records) == 2
    now_s = 1.0
    refused.meet("forbidden", {b"authorization": f"bearer {TOKEN}".encode()}, "10.0.0.9")
    assert caplog.messages[-1] == (
        "refused as forbidden: a token with the tag k7f2qa, from 10.0.0.9 (998 more were refused since the last such line)"
    )


async def test_a_message_in_json_gives_each_member_once(
    client: httpx.AsyncClient, document: ClusterDocument
) -> None:
    right = msgspec.json.encode(Batch(document.hash, (Collect("queue/jobs"),)))
    assert (await client.post(BATCH, content=right, headers=JSON)).status_code == 200
    cluster = b'"cluster":"' + document.hash.encode() + b'"'
    assert cluster in right
    twice = right.replace(cluster, cluster + b"," + cluster)
    problem = problem_in(await client.post(BATCH, content=twice, headers=JSON))
    assert (problem.name, problem.detail) == (
        "malformed",
        "the body gives a member of an object more than once",
    )
    for body in (b"\xef\xbb\xbf" + right, right.decode().encode("utf-16")):
        assert problem_in(await client.post(BATCH, content=body, headers=JSON)).name == "malformed"


class Standing:
    """What stands behind a gate: notes who takes turns, and answers when it may."""

    def __init__(self, text: str = "done") -> None:
        self.text = text
        self.turns: list[object] = []
        self.may = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.turns.append(turn())
        await self.may.wait()
        await PlainTextResponse(self.text)(scope, receive, send)


def gate_before(app: Standing, traffic: Traffic) -> Gate:
    return Gate(
        app, body_bytes_max=Limits().body_bytes_max, access=from_text(tokens(), "all"), traffic=traffic
    )


def asking(
    gate: Gate,
    method: str,
    token: str,
    *pieces: bytes,
    path: str = "/v1/registers/v",
    address: str = "127.0.0.1",
    told: list[bytes] | None = None,
    goes: bool = False,
) -> "tuple[asyncio.Task[None], list[int]]":
    """A request under way, whose body's pieces come at once and whose end does not come, unless its caller `goes`; and the status of its
    answer, whose body goes to `told`."""
    coming = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    answers: list[int] = []

    async def receive() -> Message:
        if not coming and goes:
            return {"type": "http.disconnect"}
        if not coming:
            await asyncio.Event().wait()
        return coming.pop(0)

    async def send(message: Message) -> None:
        if "status" in message:
            answers.append(message["status"])
        elif told is not None:
            told.append(message["body"])

    headers = [(b"authorization", b"Bearer " + token.encode())]
    if pieces:
        headers += [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": headers,
    }
    scope["client"] = (address, 1)
    return asyncio.create_task(gate(scope, receive, send)), answers


async def test_who_reads_without_a_body_takes_turns_by_its_token_too() -> None:
    """Else one token could hold all places for reads: they would all be nobody's."""
    app = Standing()
    gate = gate_before(app, Traffic())
    both = [asking(gate, "GET", token) for token in (READER, WRITER)]
    app.may.set()
    await asyncio.gather(*(task for task, _ in both))
    assert [answers for _, answers in both] == [[200], [200]]
    assert None not in app.turns
    assert len(set(app.turns)) == 2


@pytest.mark.parametrize(("length", "together"), [(100_000, 1), (100, 20)])
async def test_of_many_long_answers_that_are_ready_at_once_one_leaves_in_each_turn(
    length: int, together: int
) -> None:
    """1,400 callers of the same overview were answered in one turn: all others waited for two seconds."""
    app = Standing("x" * length)
    gate = gate_before(app, Traffic())
    callers = [asking(gate, "GET", READER) for _ in range(20)]
    await turns_of_the_loop()
    app.may.set()
    before, most = 0, 0
    while not all(task.done() for task, _ in callers):
        await asyncio.sleep(0)
        heard = sum(len(answers) for _, answers in callers)
        before, most = heard, max(most, heard - before)
    assert [answers for _, answers in callers] == [[200]] * 20
    assert most == together


async def test_who_asks_what_is_open_does_not_wait_for_those_of_another_address() -> None:
    """Four thousand health checks that were sent ahead stood before those of all others."""
    app = Standing()
    app.may.set()
    gate = Gate(app, body_bytes_max=100, access=nobody_asked(), traffic=Traffic())
    path = "/v1/health/live"
    many = [asking(gate, "GET", "", path=path) for _ in range(20 * SHORT_AT_ONCE)]
    await asyncio.sleep(0)
    other, answers = asking(gate, "GET", "", path=path, address="127.0.0.2")
    await other
    assert answers == [200]
    assert sum(len(each) for _, each in many) <= 10 * SHORT_AT_ONCE
    await asyncio.gather(*(task for task, _ in many))


async def test_one_callers_bodies_leave_room_for_those_of_others() -> None:
    traffic = Traffic()
    traffic.bodies = Shares(1000)
    gate = gate_before(Standing(), traffic)
    many = [asking(gate, "PUT", WRITER, b"x" * 100) for _ in range(6)]
    await turns_of_the_loop()
    assert [answers for _, answers in many] == [[]] * 5 + [[503]], "half of it is one caller's"
    other, answers = asking(gate, "PUT", "all", b"x" * 100)
    await turns_of_the_loop()
    assert answers == []
    assert traffic.bodies.held == 600
    for task in (other, *(task for task, _ in many)):
        task.cancel()
    await asyncio.gather(other, *(task for task, _ in many), return_exceptions=True)
    assert traffic.bodies.held == 0


@pytest.mark.parametrize(
    ("path", "rate", "other"),
    [
        ("/v1/health/quorums", HEALTH_PER_S_MAX, "/docs"),
        ("/v1/openapi.json", DOCUMENTS_PER_S_MAX, "/v1/health/live"),
    ],
)
async def test_who_floods_what_needs_no_token_is_refused_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, path: str, rate: float, other: str
) -> None:
    """2 GB of documents were answered to 0.5 MB of requests, by nobody's token."""
    monkeypatch.setattr("quorate.replica.http.gate.UNPROVEN_WAIT_S", 0.0)
    times = [0.0]
    app = Standing()
    app.may.set()
    gate = Gate(
        app, body_bytes_max=100, access=from_text(tokens(), "all"), traffic=Traffic(), now_s=lambda: times[0]
    )

    async def status(path: str, address: str) -> int:
        task, answers = asking(gate, "GET", "", path=path, address=address)
        await task
        return answers[0]

    at_once = int(rate * BURST_S)
    assert [await status(path, "127.0.0.1") for _ in range(at_once + 5)] == [200] * at_once + [429] * 5
    assert len(app.turns) == at_once, "what is refused costs no answer"
    assert await status(path, "127.0.0.2") == 200, "as a load balancer that asks from elsewhere"
    assert await status(other, "127.0.0.1") == 200, "health and documents are apart"
    times[0] = 1.0
    later = [await status(path, "127.0.0.1") for _ in range(int(rate) + 1)]
    assert later == [200] * int(rate) + [429]


@pytest.mark.parametrize(
    ("path", "at_once", "status"),
    [("/v1/health/live", 2 * HEALTH_PER_S_MAX, 200), ("/v1/registers/v", 2 * UNPROVEN_PER_S_MAX, 401)],
)
async def test_who_asks_too_often_without_a_token_is_not_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, path: str, at_once: float, status: int
) -> None:
    """24 connections had a replica refuse 1,400 requests a second, which slowed others as much as answers to them did."""
    waits = asyncio.Event()

    async def wait(delay_s: float) -> None:
        assert delay_s == UNPROVEN_WAIT_S
        await waits.wait()

    monkeypatch.setattr("quorate.replica.http.gate.asyncio.sleep", wait)
    app, traffic = Standing(), Traffic()
    app.may.set()
    gate = Gate(
        app, body_bytes_max=100, access=from_text(tokens(), "all"), traffic=traffic, now_s=lambda: 0.0
    )
    for _ in range(int(at_once)):
        task, answers = asking(gate, "GET", "wrong", path=path)
        await task
        assert answers == [status]
    task, answers = asking(gate, "GET", "wrong", path=path)
    gone, unheard = asking(gate, "GET", "wrong", path=path, goes=True)
    done, _ = await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
    assert done == {gone}
    assert (answers, unheard, traffic.under_way) == ([], [], 1)
    waits.set()
    await task
    assert answers == [429]


async def test_where_no_token_is_asked_for_all_is_as_open() -> None:
    app = Standing()
    app.may.set()
    gate = Gate(app, body_bytes_max=100, access=nobody_asked(), traffic=Traffic(), now_s=lambda: 0.0)
    many = [asking(gate, "GET", "", path="/v1/openapi.json") for _ in range(int(3 * DOCUMENTS_PER_S_MAX))]
    await asyncio.gather(*(task for task, _ in many))
    assert {answers[0] for _, answers in many} == {200}


def test_as_many_callers_have_a_rate_of_their_own_as_are_remembered() -> None:
    buckets = Buckets(0.5, 2)
    assert [buckets.of("a").takes(0), buckets.of("a").takes(0), buckets.of("b").takes(0)] == [
        True,
        False,
        True,
    ]
    assert buckets.of("a") is buckets.of("a")
    remembered = buckets.of("a")
    buckets.of("c")
    assert buckets.of("a") is remembered, "b was the one that had asked longest ago"
    assert buckets.of("b").takes(0)
    assert buckets.of("c").takes(0), "it makes room for b in turn, and begins anew"


@pytest.mark.parametrize(
    ("path", "is_certain"), [("/v1/queues/q/items", True), ("/replica/v1/forward", False)]
)
async def test_who_has_not_sent_all_of_a_body_when_the_replica_stops_is_told_so(
    path: str, *, is_certain: bool
) -> None:
    """It was a bare 500 that left callers in doubt. Of a forwarded request another copy may have been served."""
    traffic, stops = Traffic(), [False]
    gate = Gate(
        Standing(),
        body_bytes_max=1000,
        access=from_text(tokens(), "all"),
        traffic=traffic,
        is_over=lambda path: stops[0] and path != "/replica/v1/forward",
    )
    told: list[bytes] = []
    slow, answers = asking(gate, "POST", "all", b"x" * 100, path=path, told=told)
    await turns_of_the_loop()
    stops[0] = True
    await turns_of_the_loop()
    assert answers == [], "it may still come"
    assert traffic.end_bodies() == 1
    await turns_of_the_loop()
    assert answers == [503]
    found = msgspec.json.decode(told[0], type=Problem)
    assert (found.name, found.definite) == ("stopping", is_certain)
    late, answers = asking(gate, "POST", "all", b"x" * 100, path="/replica/v1/forward")
    await turns_of_the_loop()
    assert answers == [503], "nor is one waited for that begins later"
    assert traffic.end_bodies() == 0
    for task in (slow, late):
        task.cancel()
    await asyncio.gather(slow, late, return_exceptions=True)


async def turns_of_the_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)
