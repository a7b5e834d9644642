"""Which scope opens what: every operation of the OpenAPI document, and every message of the protocol."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from quorate.adts.log import Entry, Summary, Value
from quorate.adts.types.catalogue import CONFIGURATION
from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.commands import AcquireCommand, PeekCommand
from quorate.api_specs.messages import (
    Accept,
    Append,
    Batch,
    Collect,
    Commit,
    ForwardedRequest,
    Proposal,
    Request,
    Reserve,
    Scan,
    Window,
)
from quorate.api_specs.tokens import SCOPES, ScopeName, digest_of, make_token
from quorate.replica.access.authorization import batch_problem, forwarding_problem, scope_needed
from quorate.replica.access.credentials import Credential, parse_tokens
from quorate.replica.access.token_list import Access, from_file, from_text
from quorate.replica.api.protocol_api import Batches
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.http.problems import Refusal
from quorate.replica.server.app import create_app
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import Timestamp, make
from tests.support.documents import BOTH
from tests.unit.replica.conftest import one_replica

TOKENS = {scope: make_token(f"{scope:x<6}"[:6], scope[0] * 43) for scope in SCOPES}
LINES = "\n".join(
    f"tag={token[3:9]} scopes={scope} sha256={digest_of(token.encode()).hex()}"
    for scope, token in TOKENS.items()
)
KNOWN = parse_tokens(LINES, "tokens")
WHOLE = one_replica()
DOCUMENTS = ("/v1/openapi.json", "/replica/v1/openapi.json")
OPERATIONS = [
    (path, method) for path, item in BOTH["paths"].items() for method in item if method != "parameters"
]


def holder(scope: ScopeName) -> Credential:
    found = KNOWN.find(f"Bearer {TOKENS[scope]}".encode())
    assert found is not None
    return found


def stamp(scope: ScopeName, wall: int = 1) -> Timestamp:
    return make(wall, 0, TOKENS[scope][3:9] + "0123456789")


def requests(t: Timestamp) -> dict[str, Request]:
    entry = Entry(t, t, Value("1"))
    return {
        "scan": Scan("queue/"),
        "look": Collect("queue/q", window=Window(limit=1)),
        "append": Append("queue/q", (entry,), "first"),
        "promise": Collect("queue/q", make_ballot(t, 0)),
        "fence": Collect("queue/q", fence=t),
        "fence next": Collect("queue/q", fence_next=1, window=Window(limit=1)),
        "accept": Accept("queue/q", make_ballot(t, 1), Summary()),
        "commit": Commit("queue/q", complete=(t,)),
        "collect": Commit("dictionary/d/k", tombstone=t),
    }


@pytest.mark.parametrize("scope", SCOPES)
def test_what_of_the_protocol_a_scope_opens(scope: ScopeName) -> None:
    allowed = {
        name
        for name, request in requests(stamp(scope)).items()
        if batch_problem(Batch("h", (request,)), holder(scope), KNOWN) is None
    }
    every = set(requests(stamp(scope)))
    reading = {"scan", "look"}
    assert (
        allowed == {"read": reading, "admin": reading, "write": every - {"collect"}, "replica": every}[scope]
    )


def test_leases_are_asked_for_in_the_name_of_who_asks() -> None:
    """Replicas ask for those that called them."""
    tag = {scope: TOKENS[scope][3:9] for scope in SCOPES}

    def problem(scope: ScopeName, whose: str) -> str | None:
        ask = ForwardedRequest(
            "h", stamp(scope), "queue/q", "i", (PeekCommand(), AcquireCommand(1, 1, holder=whose)), 0.5
        )
        return forwarding_problem(ask, holder(scope), KNOWN, WHOLE)

    assert problem("write", tag["write"]) is None
    assert tag["write"] in str(problem("write", tag["replica"]))
    assert tag["write"] in str(problem("write", "nobody"))
    assert problem("replica", tag["write"]) is None


def test_turns_and_new_entries_bear_the_sites_of_their_sender() -> None:
    own, foreign = requests(stamp("write")), requests(stamp("replica"))
    for name in ("append", "promise", "accept"):
        assert batch_problem(Batch("h", (own[name],)), holder("write"), KNOWN) is None
        problem = batch_problem(Batch("h", (own[name], foreign[name])), holder("write"), KNOWN)
        assert problem is not None
        assert TOKENS["write"][3:9] in problem
    then = Collect("queue/q", make_ballot(stamp("replica"), 0))
    riding = Accept("queue/q", make_ballot(stamp("write"), 1), Summary(), then=then)
    assert batch_problem(Batch("h", (riding,)), holder("write"), KNOWN) is not None
    ask = ForwardedRequest("h", stamp("replica"), "queue/q")
    assert forwarding_problem(ask, holder("write"), KNOWN, WHOLE) is not None
    assert forwarding_problem(ask, holder("replica"), KNOWN, WHOLE) is None


def test_entries_of_others_may_be_written_back_and_sent_again() -> None:
    entry = Entry(stamp("replica"), stamp("replica"), Value("1"))
    for attempt in ("again", "repair"):
        batch = Batch("h", (Append("queue/q", (entry,), attempt),))
        assert batch_problem(batch, holder("write"), KNOWN) is None


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_document_says_of_each_operation_which_scope_it_needs(path: str, method: str) -> None:
    security = BOTH["paths"][path][method]["security"]
    if path.startswith(("/v1/health/", "/problems/")):
        assert security == []
        return
    assert {"token": [scope_needed(method.upper(), path)]} in security


@asynccontextmanager
async def guarded(
    folder: Path, document: ClusterDocument, access: Access | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Asks a replica that knows the tokens of LINES, or those of `access`."""
    member = Member(open_folder(folder, document, "r1"))
    access = access or from_text(LINES, TOKENS["replica"])
    app = create_app(member, lambda each: embedded_front_end(each, None), access=access)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r1") as client,
    ):
        yield client


async def test_each_scope_is_let_in_where_it_belongs_and_nowhere_else(
    tmp_path: Any, document: ClusterDocument
) -> None:
    expected = {
        ("GET", "/v1/registers/a"): {"read", "write", "admin", "replica"},
        ("PUT", "/v1/registers/a"): {"write", "replica"},
        ("DELETE", "/v1/dictionaries/d/entries/k"): {"write", "replica"},
        ("POST", "/v1/queues/q/dequeue"): {"write", "replica"},
        ("POST", "/replica/v1/forward"): {"write", "replica"},
        ("POST", "/replica/v1/announcement"): {"replica"},
        ("POST", "/v1/admin/anything"): {"admin"},
        ("GET", "/v1/admin/anything"): {"admin"},
    }
    async with guarded(tmp_path, document) as client:
        for (method, path), scopes in expected.items():
            let_in = set()
            for scope, token in TOKENS.items():
                header = {"Authorization": f"bearer {token}"}
                answer = await client.request(method, path, headers=header, json={"value": 1})
                if answer.status_code != 403:
                    let_in.add(scope)
                else:
                    assert answer.json()["definite"] is True
            assert let_in == scopes, (method, path)


async def test_what_a_token_asked_for_before_it_was_removed_goes_on(
    tmp_path: Path, document: ClusterDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dequeue that waits is answered, within what it may wait; nothing else is begun for it."""
    path = tmp_path / "tokens"
    path.write_text(LINES)
    path.chmod(0o600)
    access = from_file(path, TOKENS["replica"])
    asked: list[bytes] = []
    find = access.find

    def found(header: bytes) -> Credential | None:
        asked.append(header)
        return find(header)

    monkeypatch.setattr(access, "find", found)
    old, other = ({"Authorization": f"Bearer {TOKENS[scope]}"} for scope in ("write", "replica"))
    async with guarded(tmp_path / "data", document, access) as client:
        url = "/v1/queues/q/dequeue"
        waiting = asyncio.create_task(client.post(url, headers=old, json={"wait_s": 20}, timeout=60))
        while not asked:
            await asyncio.sleep(0)
        path.write_text("\n".join(line for line in LINES.splitlines() if TOKENS["write"][3:9] not in line))
        access.look()
        assert (await client.post(url, headers=old, json={})).status_code == 401
        assert not waiting.done()
        await client.post("/v1/queues/q/items", headers=other, json={"item": 1})
        assert (await waiting).json() == {"items": [1]}


@pytest.mark.parametrize("path", ["/replica/v1/announcement", "/v1/cluster", "/v1/health/live"])
async def test_path_with_a_line_feed_behind_it_is_no_path(
    tmp_path: Any, document: ClusterDocument, path: str
) -> None:
    """The framework would serve it as the one without, whose scope the whole of it does not name."""
    header = {"Authorization": f"Bearer {TOKENS['write']}"}
    async with guarded(tmp_path, document) as client:
        for method in ("GET", "POST"):
            answer = await client.request(method, path + "%0A", headers=header, json={})
            assert (answer.status_code, answer.json()["type"]) == (404, "/problems/no-such-path")


async def test_without_a_token_nothing_of_the_cluster_is_told(
    tmp_path: Any, document: ClusterDocument
) -> None:
    opened = set()
    async with guarded(tmp_path, document) as client:
        for path in (*BOTH["paths"], *DOCUMENTS, "/docs", "/ui", "/ui/page.js", "/problems/a/b"):
            if (await client.get(path)).status_code != 401:
                opened.add(path)
        refused = (await client.get("/v1/status")).json()
        meaning = await client.get(refused["type"])
        assert (meaning.status_code, meaning.json()["type"]) == (200, refused["type"])
        assert (await client.post(refused["type"])).status_code == 401
    pages = {*DOCUMENTS, "/docs", "/ui", "/ui/page.js", "/problems/{name}"}
    assert opened == {"/v1/health/live", "/v1/health/ready", "/v1/health/quorums"} | pages


async def test_both_documents_are_open_in_the_same_way(tmp_path: Any, document: ClusterDocument) -> None:
    """Also to a token for some objects and the HTTP API alone, which is not let in to what is around them."""
    narrow = make_token("narrow", "n" * 43)
    line = f"tag=narrow scopes=write objects=queue/q via=http sha256={digest_of(narrow.encode()).hex()}"
    access = from_text(f"{LINES}\n{line}", TOKENS["replica"])
    asked = [("GET", ""), ("HEAD", ""), ("POST", ""), ("GET", "/"), ("GET", "%2F"), ("GET", "x")]

    async def statuses(path: str) -> list[int]:
        said = []
        for token in ("", narrow, *TOKENS.values()):
            header = {"Authorization": f"Bearer {token}"} if token else {}
            for method, ending in asked:
                said.append((await client.request(method, path + ending, headers=header)).status_code)
        return said

    async with guarded(tmp_path, document, access) as client:
        first, second = [await statuses(path) for path in DOCUMENTS]
    assert first == second
    assert first[:6] == [200, 200, 401, 401, 404, 401]
    assert first[6:12] == [200, 200, 403, 403, 404, 403]


async def test_who_asks_too_often_is_told_when_to_come_again(
    tmp_path: Any, document: ClusterDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At rates that the slowest machine exceeds."""
    monkeypatch.setattr("quorate.replica.access.token_list.UNPROVEN_PER_S_MAX", 1.0)
    monkeypatch.setattr("quorate.replica.http.gate.UNPROVEN_WAIT_S", 0.0)
    member = Member(open_folder(tmp_path, document, "r1"))
    slow = f"scopes=read rate=1 sha256={digest_of(b'slow').hex()}"
    app = create_app(
        member,
        lambda each: embedded_front_end(each, None),
        access=from_text(LINES + ";" + slow, TOKENS["replica"]),
    )
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r1") as client,
    ):
        header = {"Authorization": "Bearer slow"}
        answers = [await client.get("/v1/cluster", headers=header) for _ in range(100)]
        refused = next(each for each in answers if each.status_code == 429)
        assert refused.json()["type"] == "/problems/too-many-requests"
        assert int(refused.headers["retry-after"]) >= 1
        other = await client.get("/v1/cluster", headers={"Authorization": f"Bearer {TOKENS['read']}"})
        assert other.status_code == 200, "each token has a rate of its own"
        strangers = [(await client.get("/v1/cluster")).status_code for _ in range(100)]
        assert set(strangers) == {401, 429}
        assert (await client.get("/v1/health/live")).status_code == 200


async def test_each_key_that_a_batch_asks_for_counts_as_a_request(
    tmp_path: Any, document: ClusterDocument
) -> None:
    """Else a thousand came with one request, and a token of any rate filled the memory of keys for everybody."""
    member = Member(open_folder(tmp_path, document, "r1"))
    slow = next(each for each in LINES.splitlines() if "scopes=write" in each) + " rate=1"
    access = from_text(slow, TOKENS["write"])
    app = create_app(member, lambda each: embedded_front_end(each, None), access=access)
    now_us, keys_max = time.time_ns() // 1000, document.limits.batch_items_max

    def reserve(first: int, keys: int) -> Reserve:
        stamps = [stamp("write", now_us + number) for number in range(first, first + keys)]
        return Reserve("queue/q", stamps[0], tuple(Proposal(f"k{t}", (Entry(t, t),)) for t in stamps))

    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r1") as client,
    ):
        headers = {"Authorization": f"Bearer {TOKENS['write']}", "Content-Type": "application/json"}

        def batch(*asked: Reserve) -> bytes:
            return msgspec.json.encode(Batch(document.hash, asked))

        async def ask(*asked: Reserve) -> httpx.Response:
            return await client.post("/replica/v1/batch", content=batch(*asked), headers=headers)

        assert (await ask(reserve(0, 1))).status_code == 200
        many = [reserve(1 + keys_max * number, keys_max) for number in range(document.limits.requests_max)]
        assert (await ask(*many)).status_code == 200, (
            "one key counted once, and one batch goes beyond the rate"
        )
        refused = await ask(reserve(0, 1))
        assert (refused.status_code, refused.json()["type"]) == (429, "/problems/too-many-requests")
        assert int(refused.headers["retry-after"]) >= 60, "it owes what it asked for"
        caller = access.find(headers["Authorization"].encode())
        assert caller is not None
        with pytest.raises(
            Refusal, match="may ask 1 times a second"
        ):  # It was let through before, and is decoded now.
            Batches(member, access, app.state.types).read({}, batch(reserve(0, 1)), caller)


def test_the_configuration_of_the_cluster_is_for_operators() -> None:
    """Whoever changes the register has the next operator tell all replicas what is in it."""
    t = make(1, 0, "s")
    writes = Batch("c", (Append(CONFIGURATION, (Entry(t, t, Value("1")),), "repair"),))
    reads = Batch("c", (Collect(CONFIGURATION, window=Window(limit=9)),))
    operator = parse_tokens(LINES.replace("scopes=admin ", "scopes=admin,write "), "tokens")
    found = operator.find(f"Bearer {TOKENS['admin']}".encode())
    assert found is not None
    assert batch_problem(writes, found, operator) is None
    assert batch_problem(writes, holder("replica"), KNOWN) is None
    assert "scope admin is needed" in str(batch_problem(writes, holder("write"), KNOWN))
    assert batch_problem(reads, holder("write"), KNOWN) is None
    forwarded = ForwardedRequest("c", stamp("write"), CONFIGURATION, "i", (PeekCommand(),), 1.0)
    assert "scope admin is needed" in str(forwarding_problem(forwarded, holder("write"), KNOWN, WHOLE))
    forwarded = ForwardedRequest("c", stamp("replica"), CONFIGURATION, "i", (PeekCommand(),), 1.0)
    assert forwarding_problem(forwarded, holder("replica"), KNOWN, WHOLE) is None
