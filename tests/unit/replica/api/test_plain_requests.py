"""Nobody can tell which way a request went: past the framework, or through it.

Each request is sent twice to one application with a front end that records what it is asked: once as it is, and once with a
header that the shorter way leaves to the framework.
"""

import json
from collections.abc import AsyncIterator, Hashable
from math import ceil
from typing import Any, Final, cast

import httpx
import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.adts.log import Value
from quorate.adts.specification import EventClass
from quorate.client_sdk.protocol.core.counters import Counts
from quorate.client_sdk.protocol.core.values import Dequeue, Done, Failed, Operation, Outcome, Read
from quorate.client_sdk.transport.driver import Driver
from quorate.replica.api import plain_requests
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.server.app import create_app
from quorate.replica.service.member import Member
from quorate.timestamps.clock import Now
from tests.unit.replica.conftest import small

pytestmark = pytest.mark.asyncio(loop_scope="module")
JSON: Final = "application/json"


class Recorder:
    """A front end that notes what it is asked, and does nothing."""

    def __init__(self) -> None:
        self.counts: Final = Counts()
        self.asked: list[tuple[Operation, int, Hashable]] = []
        self.failure: Failed | None = None

    def now(self) -> Now:
        return Now(0.0, 0)

    async def run(
        self, operation: Operation, deadline_s: float, turn: Hashable = None, asked: object = None
    ) -> Outcome:
        self.asked.append((operation, ceil(deadline_s / 10), turn))
        if self.failure is not None:
            return self.failure
        result: Any = None
        if isinstance(operation, Dequeue):
            result = (Value('"a"'), Value('{"b":1}'))
        elif isinstance(operation, Read) and "absent" not in operation.object:
            result = Value("[1]")
        return Done(result, EventClass("Any/Ok"), frozenset(("r1",)))

    def hurry(self) -> None:
        """Nothing waits."""

    async def aclose(self) -> None:
        """Nothing is open."""


class Both:
    """Sends a request both ways."""

    def __init__(
        self, client: httpx.AsyncClient, front_end: Recorder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.client: Final = client
        self.front_end: Final = front_end
        self._monkeypatch: Final = monkeypatch

    async def answers(self, method: str, path: str, body: bytes = b"", **headers: str) -> list[Any]:
        """For each way: what the front end was asked, and what was answered."""
        found = []
        for asks in (plain_requests._PLAIN, {}):
            self.front_end.asked.clear()
            with self._monkeypatch.context() as patched:
                patched.setattr(plain_requests, "_PLAIN", asks)
                named = {name.replace("_", "-"): value for name, value in headers.items()}
                got = await self.client.request(method, path, content=body, headers=named)
            assert got.status_code < 500 or self.front_end.failure is not None
            found.append(
                (list(self.front_end.asked), got.status_code, list(got.headers.items()), got.content)
            )
        return found

    async def same(self, method: str, path: str, body: bytes = b"", **headers: str) -> Any:
        """The status that both ways answer with."""
        shorter, framework = await self.answers(method, path, body, **headers)
        assert shorter == framework
        return shorter[1]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[httpx.AsyncClient, Recorder]]:
    """One application for all tests: nothing is kept in it, and the recorder is new to each."""
    recorder, document = Recorder(), small()
    member = Member(open_folder(tmp_path_factory.mktemp("served") / "data", document, "r1"))
    app = create_app(member, lambda _: cast(Driver, recorder))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://r1") as client,
    ):
        yield client, recorder


@pytest.fixture
def both(served: tuple[httpx.AsyncClient, Recorder], monkeypatch: pytest.MonkeyPatch) -> Both:
    client, recorder = served
    recorder.failure = None
    return Both(client, recorder, monkeypatch)


PLAIN: Final = [
    ("POST", "/v1/queues/jobs/items", b'{"item": {"b": 1, "a": [null, 2.5]}}', 200),
    ("POST", "/v1/queues/jobs/items", b'{"items": ["x", 2]}', 200),
    ("POST", "/v1/queues/jobs/dequeue", b"", 200),
    ("POST", "/v1/queues/jobs/dequeue", b"{}", 200),
    ("POST", "/v1/queues/jobs/dequeue", b'{"max": 3}', 200),
    ("GET", "/v1/registers/colour", b"", 200),
    ("GET", "/v1/registers/absent", b"", 200),
    ("PUT", "/v1/registers/colour", b'{"value": null}', 204),
    ("GET", "/v1/dictionaries/ages/entries/ada", b"", 200),
    ("GET", "/v1/dictionaries/ages/entries/absent", b"", 404),
    ("PUT", "/v1/dictionaries/ages/entries/ada", b'{"value": 36}', 204),
]
REFUSED: Final = [
    ("POST", "/v1/queues/jobs/items", body)
    for body in (
        b"",
        b"{}",
        b"[]",
        b"nonsense",
        b'{"item": 1, "item": 2}',
        b'{"item": {"a": 1, "a": 2}}',
        b'\xef\xbb\xbf{"item": 1}',
        '{"item": 1}'.encode("utf-16"),
        '{"item": 1}'.encode("utf-16-le"),
        '{"item": 1}'.encode("utf-32"),
        b'{"item": 1, "items": [2]}',
        b'{"items": []}',
        b'{"items": [1,2,3,4,5,6,7,8,9,10,11]}',
        b'{"items": {"a": 1}}',
        b'{"item": NaN}',
        b'{"item": 123456789012345678901234567890}',
        b'{"item": "\\ud800"}',
        b'{"item": "' + b"x" * 6000 + b'"}',
        b'{"item": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"item": "\xff"}',
        b'{"other": 1}',
    )
] + [
    ("POST", "/v1/queues/jobs/dequeue", b'{"max": 0}'),
    ("POST", "/v1/queues/jobs/dequeue", b'{"max": 11}'),
    ("POST", "/v1/queues/jobs/dequeue", b'{"max": true}'),
    ("POST", "/v1/queues/jobs/dequeue", b'{"max": "1"}'),
    ("POST", "/v1/queues/jobs/dequeue", b'{"other": 1}'),
    ("PUT", "/v1/registers/colour", b'{"value": 1, "other": 2}'),
    ("PUT", "/v1/registers/colour", b""),
    ("POST", "/v1/queues/.jobs/items", b'{"item": 1}'),
    ("POST", "/v1/queues/a%2Fb/items", b'{"item": 1}'),
    ("DELETE", "/v1/registers/colour", b""),
    ("GET", "/v1/queues/jobs/items", b""),
    ("PUT", "/v1/queues/jobs/items", b'{"value": 1}'),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), PLAIN)
async def test_plain_requests_are_answered_as_by_the_framework(
    both: Both, method: str, path: str, body: bytes, status: int
) -> None:
    assert await both.same(method, path, body, Content_Type=JSON) == status


@pytest.mark.parametrize(("method", "path", "body"), REFUSED)
async def test_what_is_wrong_is_told_by_the_framework(
    both: Both, method: str, path: str, body: bytes
) -> None:
    assert await both.same(method, path, body, Content_Type=JSON) >= 400


@pytest.mark.parametrize(("method", "path", "body", "status"), PLAIN)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content_Type": "text/plain"},
        {"Content_Type": "application/json; charset=utf-8"},
        {"Content_Type": JSON, "Idempotency_Key": "order-1"},
        {"Content_Type": JSON, "Idempotency_Key": "not in form\x7f"},
    ],
)
async def test_other_headers_mean_what_they_mean_to_the_framework(
    both: Both, method: str, path: str, body: bytes, status: int, headers: dict[str, str]
) -> None:
    await both.same(method, path, body, **headers)


@pytest.mark.parametrize(("method", "path", "body", "status"), PLAIN)
async def test_a_query_is_the_frameworks(
    both: Both, method: str, path: str, body: bytes, status: int
) -> None:
    for query in ("deadline_s=20", "deadline_s=0", "unknown=1"):
        await both.same(method, f"{path}?{query}", body, Content_Type=JSON)


@pytest.mark.parametrize(("method", "path", "body", "status"), PLAIN)
async def test_failures_are_told_alike(both: Both, method: str, path: str, body: bytes, status: int) -> None:
    for reason in ("unavailable", "unknown", "refused"):
        both.front_end.failure = Failed(reason, "so it is", definite=reason != "unknown")
        assert await both.same(method, path, body, Content_Type=JSON) >= 400


@pytest.mark.parametrize(("method", "path", "body", "status"), PLAIN)
async def test_operations_wait_in_the_turn_of_their_caller(
    both: Both, method: str, path: str, body: bytes, status: int
) -> None:
    for asked, *_ in await both.answers(method, path, body, Content_Type=JSON):
        assert [turn for _, _, turn in asked] == ["127.0.0.1"]


async def test_plain_requests_do_not_reach_the_framework(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or all of the above would hold by nothing."""

    def broken(*_: Any, **__: Any) -> Any:
        raise AssertionError("the framework was asked")

    monkeypatch.setattr("fastapi.routing.APIRoute.handle", broken)
    for method, path, body, status in PLAIN:
        got = await both.client.request(method, path, content=body, headers={"Content-Type": JSON})
        assert got.status_code == status
    assert (await both.client.get("/v1/registers/colour?deadline_s=2")).status_code == 500


JSON_TEXT: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
).map(lambda value: json.dumps(value, allow_nan=True))
NAMES: Final = st.sampled_from(["item", "items", "max", "value", "wait_s", "delay_s"])
BODIES: Final = st.dictionaries(NAMES, JSON_TEXT, max_size=2).map(
    lambda parts: ("{" + ",".join(f'"{name}":{text}' for name, text in parts.items()) + "}").encode()
)


@settings(max_examples=150)
@given(place=st.sampled_from([(method, path) for method, path, *_ in PLAIN]), body=BODIES)
async def test_whatever_is_sent_is_answered_as_by_the_framework(
    both: Both, place: tuple[str, str], body: bytes
) -> None:
    """The body of a plain request replaced by any other."""
    await both.same(*place, body, Content_Type=JSON)
