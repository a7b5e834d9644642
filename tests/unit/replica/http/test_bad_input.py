"""Bad input over both surfaces: a problem document each time, never a 5xx, nothing stored."""

import gzip
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
import pytest_asyncio

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.limits import SUMMARY_BYTES_MAX
from quorate.api_specs.problems import MEDIA_TYPE, Problem
from quorate.replica.api import protocol_api
from quorate.replica.http import json_body
from quorate.replica.http.gate import DRAIN_BYTES_MAX
from quorate.timestamps.timestamp import INFINITY, make
from tests.unit.replica.conftest import Serving, serve_from, small

# The tests share an application, for what they send is refused and stores nothing; each makes sure of that.
pytestmark = pytest.mark.asyncio(loop_scope="module")
JSON = {"Content-Type": "application/json"}
T = make(1, 0, "a")
BALLOT = f"{T}/00000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """A client of r1 of a cluster of its own."""
    async with serve_from(tmp_path_factory.mktemp("shared"))(small()) as opened:
        yield opened


def problem_in(response: httpx.Response) -> Problem:
    assert response.headers["content-type"] == MEDIA_TYPE
    document = msgspec.json.decode(response.content, type=Problem)
    assert document.status == response.status_code
    assert document.advice
    assert "Traceback" not in response.text
    return document


async def assert_nothing_stored(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/status")).json()["objects"] == 0


BAD_BODIES = [
    b"",
    b"{",
    b"nonsense",
    b"[]",
    b"null",
    b'"text"',
    b"\xff\xfe",
    b'{"value": NaN}',
    b'{"value": 1e999}',
    b'{"value": 123456789012345678901234567890}',
    b'{"value": ' + b"9" * 5000 + b"}",
    b'{"value": "\\ud800"}',
    b'{"value": {"\\udfff": 1}}',
    b'{"value": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"value": ' + b"[" * 70 + b"]" * 70 + b"}",
    b'{"value": "' + b"x" * 6000 + b'"}',
    b'{"value": 1, "surprise": 2}',
    b'{"valeu": 1}',
    b'{"value": 1, "value": 1}',
    b'{"value": {"a": 1, "b": 2, "a": 1}}',
    b'\xef\xbb\xbf{"value": 1}',
    '{"value": 1}'.encode("utf-16"),
    '{"value": 1}'.encode("utf-16-le"),
    '{"value": 1}'.encode("utf-32-be"),
]


@pytest.mark.parametrize("body", BAD_BODIES, ids=lambda body: repr(body[:24]))
@pytest.mark.parametrize(
    "call",
    [
        ("PUT", "/v1/registers/a"),
        ("PUT", "/v1/dictionaries/d/entries/k"),
        ("POST", "/v1/dictionaries/d/entries/k/put-if-absent"),
    ],
    ids=lambda call: call[1],
)
async def test_bad_value_is_refused(client: httpx.AsyncClient, call: tuple[str, str], body: bytes) -> None:
    problem = problem_in(await client.request(*call, content=body, headers=JSON))
    assert problem.name == "malformed"
    assert problem.definite
    await assert_nothing_stored(client)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/queues/q/items", {}),
        ("/v1/queues/q/items", {"items": []}),
        ("/v1/queues/q/items", {"items": None}),
        ("/v1/queues/q/items", {"items": [0] * 11}),
        ("/v1/queues/q/items", {"items": 3}),
        ("/v1/queues/q/items", {"item": 1, "items": [1]}),
        ("/v1/queues/q/items", {"item": 10**20}),
        ("/v1/queues/q/dequeue", {"max": 0}),
        ("/v1/queues/q/dequeue", {"max": 11}),
        ("/v1/queues/q/dequeue", {"max": 10**30}),
        ("/v1/queues/q/dequeue", {"max": "1"}),
        ("/v1/queues/q/dequeue", {"max": 1.5}),
        ("/v1/queues/q/dequeue", {"max": True}),
        ("/v1/queues/q/dequeue", {"wait_s": -1}),
        ("/v1/queues/q/dequeue", {"wait_s": 10**9}),
        ("/v1/queues/q/dequeue", {"wait": 1}),
        ("/v1/queues/q/dequeue?deadline_s=0", {}),
        ("/v1/queues/q/dequeue?deadline_s=nan", {}),
        ("/v1/queues/q/dequeue?deadline_s=1e9", {}),
        ("/v1/queues/q/dequeue?deadline_s=1", {"wait_s": 2}),
        ("/v1/registers/a/compare-and-set", {"old": 1}),
        ("/v1/registers/a/compare-and-set", {"old": 1, "new": 10**20}),
        ("/v1/dictionaries/d/entries/k/compare-and-set", {"new": 1}),
        ("/v1/dictionaries/d/entries/k/compare-and-delete", {}),
        ("/v1/dictionaries/d/entries/k/compare-and-delete", {"old": None}),
    ],
    ids=lambda part: str(part)[:40],
)
async def test_bad_arguments_are_refused(client: httpx.AsyncClient, path: str, body: Any) -> None:
    assert problem_in(await client.post(path, json=body)).name == "malformed"
    await assert_nothing_stored(client)


@pytest.mark.parametrize("name", [".hidden", "a%20b", "a%00b", "%C3%A9", "x" * 201, "a%0Ab", "%5C", "a*"])
async def test_bad_names_are_refused(client: httpx.AsyncClient, name: str) -> None:
    for path in (f"/v1/queues/{name}/items", f"/v1/queues/{name}/dequeue"):
        assert (
            problem_in(await client.post(path, json={"item": 1} if "items" in path else {})).name
            == "bad-name"
        )
    for path in (f"/v1/registers/{name}", f"/v1/dictionaries/{name}/entries/k", f"/v1/dictionaries/{name}"):
        assert problem_in(await client.get(path)).name == "bad-name"
    await assert_nothing_stored(client)


@pytest.mark.parametrize("key", [b"a b", b"", b"x" * 201, "é".encode("latin-1"), b"\x7f"])
async def test_bad_idempotency_keys_are_refused(client: httpx.AsyncClient, key: bytes) -> None:
    response = await client.post("/v1/queues/q/items", json={"item": 1}, headers={b"Idempotency-Key": key})
    assert problem_in(response).name == "malformed"
    await assert_nothing_stored(client)


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/queues/a/b/c", "/v1/queues/q/", "/v1/queues/..%2f..%2fetc", "/x"]
)
async def test_unknown_path_is_not_found_and_not_redirected(client: httpx.AsyncClient, path: str) -> None:
    assert problem_in(await client.get(path)).name == "no-such-path"


async def test_unknown_method_is_told_the_known_ones(client: httpx.AsyncClient) -> None:
    response = await client.patch("/v1/registers/a")
    assert problem_in(response).name == "method-not-allowed"
    assert response.headers["allow"] == "GET, PUT"


async def test_other_media_types_are_refused(client: httpx.AsyncClient) -> None:
    response = await client.put("/v1/registers/a", content=b"value=1", headers={"Content-Type": "text/plain"})
    assert problem_in(response).name == "unsupported-media-type"
    response = await client.post("/replica/v1/batch", content=b"x", headers={"Content-Type": "text/plain"})
    assert problem_in(response).name == "unsupported-media-type"


def append(**parts: Any) -> dict[str, Any]:
    return {"type": "append", "object": "queue/q", "entries": [{"id": T, "t": T, "value": "1"} | parts]}


BAD_REQUESTS: list[Any] = [
    {},
    {"type": "unheard-of"},
    {"type": "append"},
    {"type": "append", "object": "queue/q", "entries": 1},
    append(value=1),
    append(value="not json"),
    append(value="NaN"),
    append(value='"' + "x" * 6000 + '"'),
    append(value="[" * 70 + "]" * 70),
    append(t="yesterday"),
    append(t=T.upper().replace("0", "A")),
    append(t=INFINITY),
    append(id=""),
    append(id="x" * 501),
    append(id="é"),
    append(surprise=1),
    append() | {"surprise": 1},
    append() | {"object": "queue/../etc"},
    append() | {"object": "queue/" + "x" * 201},
    append() | {"object": "dictionary/d"},
    append() | {"attempt": "third"},
    {"type": "collect", "object": "queue/q", "ballot": "mine"},
    {"type": "collect", "object": "queue/q", "ballot": f"{INFINITY}/00000000"},
    {"type": "collect", "object": "queue/q", "fence": INFINITY},
    {"type": "collect", "object": "queue/q", "fence_next": -1},
    {"type": "collect", "object": "queue/q", "fence_next": 10**30},
    {"type": "collect", "object": "queue/q", "window": {"limit": -1}},
    {"type": "collect", "object": "queue/q", "window": {"since": 1 << 63}},
    {"type": "collect", "object": "queue/q", "window": {"after": "x"}},
    {"type": "collect", "object": "queue/q", "wanted": ["x"]},
    {"type": "accept", "object": "queue/q", "ballot": BALLOT, "summary": {"horizon": "x"}},
    {"type": "accept", "object": "queue/q", "ballot": BALLOT, "summary": {"value": "not json"}},
    {
        "type": "accept",
        "object": "queue/q",
        "ballot": BALLOT,
        "summary": {"recent": [{"id": "", "ballot": "x"}]},
    },
    {
        "type": "accept",
        "object": "queue/q",
        "ballot": BALLOT,
        "summary": {"adopted": [{"id": "a", "t": "x"}]},
    },
    {"type": "accept", "object": "queue/q", "ballot": BALLOT, "summary": {"ambiguous": [["a", "x"]]}},
    {
        "type": "accept",
        "object": "queue/q",
        "ballot": BALLOT,
        "summary": {},
        "then": {"type": "collect", "object": "queue/other"},
    },
    {"type": "commit", "object": "queue/q", "complete": ["x"]},
    {"type": "commit", "object": "queue/q", "collected": "x"},
    {"type": "scan", "prefix": "x" * 999},
    {"type": "scan", "prefix": "queue/\ud7ff"},
    {"type": "scan", "prefix": "queue/", "limit": -1},
]


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
@pytest.mark.parametrize("request_", BAD_REQUESTS, ids=lambda each: str(each)[:60])
async def test_bad_protocol_requests_are_refused(
    client: httpx.AsyncClient, document: ClusterDocument, request_: Any, encoding: str
) -> None:
    try:
        body = getattr(msgspec, encoding).encode({"cluster": document.hash, "requests": [request_]})
    except OverflowError:
        pytest.skip("MessagePack has no such number")
    response = await client.post(
        "/replica/v1/batch", content=body, headers={"Content-Type": f"application/{encoding}"}
    )
    assert problem_in(response).name == "malformed"
    await assert_nothing_stored(client)


async def test_a_type_that_the_cluster_does_not_keep_is_refused_by_the_replica(
    client: httpx.AsyncClient, document: ClusterDocument
) -> None:
    """Other requests of the batch may be of types that it keeps."""
    body = {"cluster": document.hash, "requests": [append() | {"object": "stack/s"}]}
    (reply,) = (await client.post("/replica/v1/batch", json=body)).json()["replies"]
    assert (reply["type"], reply["reason"]) == ("refused", "bad-request")
    assert "stack" in reply["detail"]
    await assert_nothing_stored(client)


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xc1", b"null", b"[" * 9000, b"\x91" * 9000, b'{"cluster":"x"}', b"\xff\xfe"],
    ids=repr,
)
async def test_batch_that_cannot_be_decoded_is_refused(
    client: httpx.AsyncClient, body: bytes, encoding: str
) -> None:
    response = await client.post(
        "/replica/v1/batch", content=body, headers={"Content-Type": f"application/{encoding}"}
    )
    assert problem_in(response).name == "malformed"


async def test_batch_with_too_many_requests_is_refused(
    client: httpx.AsyncClient, document: ClusterDocument
) -> None:
    scan = {"type": "scan", "prefix": "queue/"}
    response = await client.post(
        "/replica/v1/batch", json={"cluster": document.hash, "requests": [scan] * 11}
    )
    assert "at most 10" in problem_in(response).detail


async def test_sender_with_another_cluster_document_is_refused_with_both_hashes(
    client: httpx.AsyncClient, document: ClusterDocument
) -> None:
    response = await client.post("/replica/v1/batch", json={"cluster": "0" * 64, "requests": []})
    problem = problem_in(response)
    assert problem.name == "wrong-cluster"
    assert response.status_code == 409
    assert "0" * 64 in problem.detail
    assert document.hash in problem.detail


async def test_large_body_is_refused_by_its_length(client: httpx.AsyncClient) -> None:
    response = await client.put("/v1/registers/a", content=b" " * 20_001, headers=JSON)
    assert problem_in(response).name == "too-large"


@pytest.mark.parametrize("path", ["/v1/queues/q/items", "/replica/v1/batch", "/nowhere"])
async def test_endless_body_without_a_length_is_refused_while_it_streams(
    client: httpx.AsyncClient, path: str
) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1000
            yield b" " * 1000

    response = await client.post(path, content=endless(), headers=JSON)
    assert problem_in(response).name == "too-large"
    more = SUMMARY_BYTES_MAX if path.endswith("/batch") else 0  # A message may have so much more than a body.
    assert sent <= 22_000 + more + DRAIN_BYTES_MAX + 10_000


async def test_without_the_token_only_health_and_what_holds_for_every_cluster_is_told(
    serving: Serving, document: ClusterDocument
) -> None:
    async with serving(document, token="s3cret") as client:
        for header in ({}, {"Authorization": "Bearer s3cre"}, {"Authorization": "Basic s3cret"}):
            for path in ("/v1/cluster", "/v1/queues/q", "/docsy", "/nowhere"):
                response = await client.get(path, headers=header)
                assert problem_in(response).name == "unauthorized"
                assert response.headers["www-authenticate"].startswith('Bearer realm="quorate"')
            response = await client.post("/replica/v1/batch", content=b"x", headers=header)
            assert response.status_code == 401
        for path in ("/v1/health/ready", "/v1/openapi.json", "/docs", "/problems/malformed"):
            assert (await client.get(path)).status_code == 200
        given = {"Authorization": "Bearer s3cret"}
        assert (await client.get("/v1/cluster", headers=given)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "/v1/queues/q/items", '{"item": x}', "the body is not JSON: invalid character (byte 9)"),
        ("POST", "/v1/queues/q/items", '{"items": 1}', "items: Input should be a valid list"),
        ("POST", "/v1/queues/q/items", '{"item": 1, "delay_s": 1e12}', "delay_s: Input should be less"),
        ("GET", "/v1/registers/r?deadline_s=x", None, "deadline_s: Input should be a valid number"),
        (
            "GET",
            "/v1/registers/r?deadline_s=1_0",
            None,
            "deadline_s: Input should be a number without underscores",
        ),
        (
            "GET",
            "/v1/registers/r?deadline_s=%2010",
            None,
            "deadline_s: Input should be a number without underscores",
        ),
        ("GET", "/v1/dictionaries/d?limit=1_0", None, "limit: Input should be a number without underscores"),
        ("GET", "/v1/overview?limit=1_0", None, "limit: Input should be a number without underscores"),
        ("GET", "/v1/trace?object=queue/q&entries=1_0", None, "entries: Input should be a number without"),
        ("GET", "/metrics?queues=1_0", None, "queues: Input should be a number without underscores"),
        ("GET", "/v1/probes?from_s=1_0", None, "from_s: Input should be a number without underscores"),
        ("GET", "/v1/queues/q/dequeue", None, "not with GET: use POST"),
        ("GET", "/", None, "/docs lists those that do"),
        ("POST", "/v1/queues/q/items", '{"items": [1, 2, NaN]}', "the body is not JSON: invalid character"),
        ("POST", "/v1/queues/q/items", "[" * 9_000, "not nested without end"),
        (
            "POST",
            "/v1/queues/q/dead-letters/purge?ids=a",
            None,
            "no parameter 'ids': here it may have deadline_s; all else goes into the body",
        ),
        ("GET", "/v1/registers/r?deadline_s=1&deadline_s=2", None, "deadline_s: given 2 times"),
    ],
)
async def test_what_is_wrong_is_said_in_the_words_of_the_request(
    client: httpx.AsyncClient, method: str, path: str, body: str | None, words: str
) -> None:
    answer = await client.request(method, path, content=body, headers=JSON if body else {})
    assert words in problem_in(answer).detail


@pytest.mark.parametrize("path", ["items", "dequeue"])
@pytest.mark.parametrize(
    ("headers", "came"),
    [
        (
            {"Content-Type": "application/x-www-form-urlencoded"},
            "it came as application/x-www-form-urlencoded",
        ),
        ({}, "it came without a type"),
    ],
)
async def test_a_body_of_curl_without_a_type_is_told_how_to_name_it(
    client: httpx.AsyncClient, path: str, headers: dict[str, str], came: str
) -> None:
    answer = await client.post(f"/v1/queues/q/{path}", content='{"item": 1}', headers=headers)
    assert problem_in(answer).name == "unsupported-media-type"
    assert f"{came} (with curl: -H 'Content-Type: application/json')" in problem_in(answer).detail


@pytest.mark.parametrize("path", ["/v1/queues/q/items", "/replica/v1/batch"])
@pytest.mark.parametrize("body", [gzip.compress(b'{"item": 1}'), b'{"item": 1}'], ids=["packed", "plain"])
async def test_an_encoded_body_is_told_to_come_as_it_is(
    client: httpx.AsyncClient, path: str, body: bytes
) -> None:
    """And so is one that is not what it says."""
    answer = await client.post(path, content=body, headers={**JSON, "Content-Encoding": "gzip"})
    assert problem_in(answer).name == "unsupported-media-type"
    assert "Content-Encoding gzip" in problem_in(answer).detail
    assert answer.headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "path", ["/v1/queues/q/items", "/v1/queues/q/items?deadline_s=1", "/replica/v1/batch"]
)
@pytest.mark.parametrize(
    "charset", ["utf-16", '"UTF-16LE"', "iso-8859-1", ""], ids=["utf-16", "quoted", "latin-1", "none"]
)
async def test_a_body_that_says_it_is_no_utf8_is_refused(
    client: httpx.AsyncClient, path: str, charset: str
) -> None:
    """And so is one that is not what it says."""
    typed = {"Content-Type": f"application/json; charset={charset}"}
    answer = await client.post(path, content=b'{"item": 1}', headers=typed)
    assert problem_in(answer).name == "unsupported-media-type"
    assert "send it in UTF-8" in problem_in(answer).detail


@pytest.mark.parametrize(
    "typed", ["application/json;charset=UTF-8", 'application/json; v=1; Charset="utf-8"']
)
async def test_a_body_that_says_it_is_utf8_is_read(
    serving: Serving, document: ClusterDocument, typed: str
) -> None:
    async with serving(document) as client:
        for path in ("/v1/queues/q/items", "/v1/queues/q/items?deadline_s=5"):
            answer = await client.post(path, content=b'{"item": 1}', headers={"Content-Type": typed})
            assert answer.status_code == 200


async def test_a_body_of_two_types_is_refused(client: httpx.AsyncClient) -> None:
    """One way through a replica would go by the first, and another by the last."""
    for path in ("/v1/queues/q/items", "/replica/v1/batch"):
        typed = [("Content-Type", "application/json"), ("Content-Type", "application/json; charset=utf-16")]
        answer = await client.post(path, content=b'{"item": 1}', headers=typed)
        assert problem_in(answer).name == "malformed"
        assert "Content-Type was sent more than once" in problem_in(answer).detail


async def test_a_body_that_says_it_is_not_encoded_is_read(
    serving: Serving, document: ClusterDocument
) -> None:
    async with serving(document) as client:
        answer = await client.post(
            "/v1/queues/q/items", content=b'{"item": 1}', headers={**JSON, "Content-Encoding": "identity"}
        )
        assert answer.status_code == 200


async def test_who_asks_for_the_head_alone_hears_of_health_too(client: httpx.AsyncClient) -> None:
    for path in ("/v1/health/live", "/v1/health/ready"):
        assert (await client.head(path)).status_code == 200
    assert (await client.head("/v1/status")).status_code == 405


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k"}])
async def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, key: dict[str, str]
) -> None:
    """On each way that JSON is read: by plain requests, by the framework, and as a batch."""
    monkeypatch.setattr(json_body, "BODY_VALUES_MAX", 20)
    many = b'{"item": [' + b"[]," * 20
    for path in ("/v1/queues/q/items", "/replica/v1/batch"):
        refused = problem_in(await client.post(path, content=many, headers=JSON | key))
        assert refused.name == "too-large"
        assert "more than 20 values and names of members (BODY_VALUES_MAX)" in (refused.detail or "")
    await assert_nothing_stored(client)


MSGPACK = {"Content-Type": "application/msgpack"}


@pytest.mark.parametrize("path", ["/replica/v1/batch", "/replica/v1/forward"])
@pytest.mark.parametrize("part", ["", "x", "x" * 32, "x" * 256, (), ("", ""), {}, 0.5, 1 << 40])
async def test_a_message_of_too_many_values_is_refused_before_it_is_decoded(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str, part: Any
) -> None:
    """Whatever they are: the first byte of each tells it from text."""
    monkeypatch.setattr(protocol_api, "BODY_VALUES_MAX", 20)
    for values in ([part] * 21, [[part]] * 10 + [part]):
        message = msgspec.msgpack.encode({"cluster": values})
        refused = problem_in(await client.post(path, content=message, headers=MSGPACK))
        assert refused.name == "too-large"
        assert "more than 20 values (BODY_VALUES_MAX)" in (refused.detail or "")


async def test_text_of_a_message_counts_as_one_value(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whatever language, though each of its characters is made of bytes that begin values elsewhere."""
    monkeypatch.setattr(protocol_api, "BODY_VALUES_MAX", 20)
    entry = {"id": T, "t": T, "value": '"' + "äß漢字🙂\u0080\u07ff\uffff" * 500 + '"'}
    batch = {"cluster": "other", "requests": [{"type": "append", "object": "queue/q", "entries": [entry]}]}
    answer = problem_in(
        await client.post("/replica/v1/batch", content=msgspec.msgpack.encode(batch), headers=MSGPACK)
    )
    assert answer.name == "wrong-cluster"


async def test_a_body_of_many_members_hears_of_them_in_one_sentence(client: httpx.AsyncClient) -> None:
    """There were two sentences for each, which took seconds."""
    members = {f"m{number}": 1 for number in range(101)}
    refused = problem_in(await client.put("/v1/registers/a", json=members))
    assert refused.name == "malformed"
    assert "the body has 101 members" in (refused.detail or "")
