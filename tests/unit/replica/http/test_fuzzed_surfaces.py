"""Both HTTP surfaces of a live three-replica cluster that asks for a token, fuzzed from the committed OpenAPI documents
(schemathesis).

Whatever is sent, in form or out of form: no 5xx, every answer is one that the document describes (status, media type,
schema), what is out of form is refused and leaves nothing behind, and the replicas stay ready. Random accepts and commits
may well disturb objects: a front end that lies is outside the fault model.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, checks
from schemathesis.generation.stateful.state_machine import StepInput, StepOutput
from schemathesis.schemas import APIOperation

from quorate.api_specs.messages import BatchReply, Request
from quorate.api_specs.problems import MEDIA_TYPE
from quorate.replica.access.authorization import DOCUMENT_PATH
from quorate.timestamps.timestamp import TIMESTAMP_PATTERN, make, wall_us
from tests.support.documents import API, BOTH, PROTOCOL
from tests.support.in_process import InProcessCluster, in_process
from tests.support.own_types import TYPES
from tests.unit.api_specs.strategies import values_of

Operation = APIOperation[Any, Any, Any, Any]

MODEST: Final = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
ROUNDS_MAX: Final = 6
"""Of examples, until two links were followed. One nearly always does; but what a seed draws depends on the modules loaded."""
DEADLINE_S: Final = 25.0
WAIT_S: Final = 0.01
TOKEN: Final = "fuzzed-5e81"
AUTHORISED: Final = {"Authorization": f"Bearer {TOKEN}"}
MSGPACK: Final = "application/msgpack"
BATCH: Final = "POST /replica/v1/batch"
CHECKS: Final = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
"""Not that everything in form is accepted: a schema cannot say all rules."""


@schemathesis.serializer(MSGPACK)
def _packed(_: Any, value: Any) -> bytes | None:
    try:
        return msgspec.msgpack.encode(value)
    except (OverflowError, TypeError, ValueError):
        return b"\xc1"  # What MessagePack cannot say is sent as bytes that it never uses.


@schemathesis.deserializer(MSGPACK)
def _unpacked(_: Any, response: Any) -> Any:
    return msgspec.msgpack.decode(response.content)


def operations(document: dict[str, Any]) -> dict[str, Operation]:
    # Of a copy, for schemathesis writes into what it is given, and other tests read the same.
    results = schemathesis.openapi.from_dict(deepcopy(document)).get_all_operations()
    found: list[Operation] = [result.ok() for result in results]  # type: ignore[union-attr]
    return {each.label: each for each in found}


ALL: Final = operations(BOTH)
WITH_BODIES: Final = [label for label, each in ALL.items() if "requestBody" in each.definition.raw]
"""Elsewhere nothing can be out of form but names; `test_bad_input` has those."""
CLOSED: Final = [label for label, each in ALL.items() if each.definition.raw.get("security") != []]
STRANGERS: Final = [
    {"Authorization": f"Bearer {TOKEN}x"},
    {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": ""},
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("cluster"), token=TOKEN) as running:
        yield running
        assert_ready(running)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    """A cluster to which next to nothing is sent that it should accept."""
    with in_process(tmp_path_factory.mktemp("untouched"), token=TOKEN) as running:
        yield running
        assert_ready(running)


def assert_ready(cluster: InProcessCluster) -> None:
    for url in cluster.document.urls.values():
        assert httpx.get(f"{url}/v1/health/ready", trust_env=False).status_code == 200


def fuzz(operation: Operation, mode: GenerationMode, url: str) -> list[int]:
    """Send cases of one operation; the statuses of their answers."""
    statuses: list[int] = []
    with requests.Session() as session:

        @MODEST
        @given(operation.as_strategy(generation_mode=mode))
        def send(case: Case[Any]) -> None:
            _give_time(case)
            answer = case.call_and_validate(base_url=url, session=session, headers=AUTHORISED, checks=CHECKS)
            statuses.append(answer.status_code)

        send()
    return statuses


def _give_time(case: Case[Any]) -> None:
    """A deadline in form becomes a long one, and waiting short: else honest answers would be 503, and tests take long."""
    places: Any = ((case.query, "deadline_s", DEADLINE_S), (case.body, "wait_s", WAIT_S))
    for place, name, replaced in places:
        given_s = place.get(name) if isinstance(place, dict) else None
        try:
            if not isinstance(given_s, bool | list | None) and 0 < float(given_s) <= DEADLINE_S:
                place[name] = replaced
        except (TypeError, ValueError):
            continue


_accepted: Final[Counter[str]] = Counter()
"""How many requests each cluster accepted, by its hash."""


@pytest.mark.parametrize("label", ALL)
def test_data_in_form_get_documented_answers(cluster: InProcessCluster, label: str) -> None:
    assert fuzz(ALL[label], GenerationMode.POSITIVE, cluster.document.urls["r1"])


@pytest.mark.parametrize("label", WITH_BODIES)
def test_data_out_of_form_are_refused_and_leave_nothing(untouched: InProcessCluster, label: str) -> None:
    """What is in form in spite of the attempt to damage it (the checks tell) makes one object at most."""
    statuses = fuzz(ALL[label], GenerationMode.NEGATIVE, untouched.document.urls["r1"])
    _accepted[untouched.document.hash] += sum(status < 400 for status in statuses)
    assert any(status >= 400 for status in statuses)
    for url in untouched.document.urls.values():
        objects = httpx.get(f"{url}/v1/status", headers=AUTHORISED, trust_env=False).json()["objects"]
        assert objects <= _accepted[untouched.document.hash]


@pytest.mark.parametrize("label", CLOSED)
def test_whatever_is_sent_without_the_token_is_unauthorised(untouched: InProcessCluster, label: str) -> None:
    """Neither what is missing nor what is wrong with the rest is told to a stranger."""

    @settings(MODEST, max_examples=4)
    @given(ALL[label].as_strategy(), st.sampled_from(STRANGERS))
    def send(case: Case[Any], headers: dict[str, str]) -> None:
        answer = case.call_and_validate(
            base_url=untouched.document.urls["r2"], headers=headers, checks=CHECKS
        )
        assert answer.status_code == 401

    send()


@pytest.mark.parametrize("kind", ["queues", "registers", "dictionaries"])
def test_operations_that_links_lead_to_get_documented_answers(cluster: InProcessCluster, kind: str) -> None:
    """What was answered leads on, as the document's links say: to another operation on the same object."""
    schema = schemathesis.openapi.from_dict(deepcopy(API)).include(tag=kind)
    schema.config.update(base_url=cluster.document.urls["r3"])
    followed: Counter[str] = Counter()

    class Chain(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Case[Any]) -> dict[str, Any]:
            _give_time(case)
            return {"headers": AUTHORISED}

        def validate_response(self, response: Any, case: Case[Any], **_: Any) -> None:
            case.validate_response(response, checks=CHECKS)

        def step(self, input: StepInput) -> StepOutput | None:
            output: StepOutput | None = super().step(input)
            link = input.transition if input.is_applied else None
            if link is not None and output is not None and not link.is_inferred:
                followed[link.id] += output.response.status_code < 400
            return output

    for number in range(ROUNDS_MAX):
        seed(number)(Chain)
        Chain.run(settings=settings(MODEST, derandomize=False, max_examples=6, stateful_step_count=8))
        if len(+followed) > 1:
            return
    pytest.fail(f"links were followed to no two kinds of operations: {dict(followed)}")


def test_batches_of_this_very_cluster_get_documented_answers(cluster: InProcessCluster) -> None:
    """The document cannot name the cluster's hash, without which a batch is refused before anybody looks into it."""
    document = deepcopy(PROTOCOL)
    document["components"]["schemas"]["Batch"]["properties"]["cluster"] = {"const": cluster.document.hash}
    for mode in GenerationMode:
        assert fuzz(operations(document)[BATCH], mode, cluster.document.urls["r2"])


def test_calls_of_types_of_ones_own_get_documented_answers(tmp_path: Path) -> None:
    """What the document says of a TypedDict is what arguments are checked against."""
    with in_process(tmp_path, token=TOKEN, types={"orders": TYPES["orders"]}) as running:
        url = running.document.urls["r1"]
        document = httpx.get(f"{url}{DOCUMENT_PATH}", headers=AUTHORISED, trust_env=False).json()
        own = [each for label, each in operations(document).items() if "/v1/objects/" in label]
        assert len(own) == 3
        for operation in own:
            for mode in GenerationMode:
                statuses = fuzz(operation, mode, url)
                assert any((status >= 400) == mode.is_negative for status in statuses)
        assert_ready(running)


NAMES: Final = ["queue/q{}", "register/r{}", "dictionary/d{}/k"]
READS: Final = [
    "queues/q{}",
    "queues/q{}/peek",
    "registers/r{}",
    "dictionaries/d{}",
    "dictionaries/d{}/entries/k",
]
LIES_TOLD: Final = 3
"""About each object."""
_TIMES = re.compile(TIMESTAMP_PATTERN)


def _recent(text: str, now_us: int) -> str:
    """The same text with every timestamp moved to the last second, so that no clock has anything against it."""
    return _TIMES.sub(lambda found: make(now_us - wall_us(found[0]) % 1_000_000, 0, found[0][20:]), text)  # type: ignore[arg-type]


def _in_form(part: Any) -> Any:
    """The same data with counts that are small and texts that are printable: the rest is refused at the door."""
    if isinstance(part, dict):
        return {name: _in_form(each) for name, each in part.items()}
    if isinstance(part, list):
        return [_in_form(each) for each in part]
    if isinstance(part, int) and not isinstance(part, bool):
        return abs(part) % 5
    is_value = isinstance(part, str) and part.startswith('"')
    return (ascii(part)[1:-1] or "x") if isinstance(part, str) and not is_value else part


def plausible(request: Any, name: str, now_us: int) -> Any:
    """The request as JSON data, about an object that there may be, at times that are accepted."""
    data = _in_form(msgspec.json.decode(_recent(msgspec.json.encode(request).decode(), now_us)))
    if "object" in data:
        data["object"] = name
    if isinstance(data.get("then"), dict):
        data["then"]["object"] = name
    return data


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_a_front_end_that_lies_gets_documented_answers_and_disturbs_nobody_else(
    cluster: InProcessCluster, encoding: str
) -> None:
    """Messages of the right types, about objects that there are, at plausible times: they reach the machine."""
    encode: Callable[[Any], bytes] = getattr(msgspec, encoding).encode
    statuses: list[int] = []

    @settings(MODEST, max_examples=60)
    @given(st.lists(st.tuples(values_of(Request), st.sampled_from(NAMES)), min_size=1, max_size=4))
    def send(lies: list[tuple[Any, str]]) -> None:
        now_us = time.time_ns() // 1000
        life = len(statuses) // LIES_TOLD  # New objects now and then: high fences soon shut everything out.
        parts = [plausible(request, name.format(life), now_us) for request, name in lies]
        answer = client.post(
            "/replica/v1/batch",
            content=encode({"cluster": cluster.document.hash, "requests": parts}),
            headers={"Content-Type": f"application/{encoding}"},
        )
        statuses.append(answer.status_code)
        if answer.status_code == 200:
            reply = getattr(msgspec, encoding).decode(answer.content, type=BatchReply)
            # Reads that take long leave the rest to another batch (BATCH_READS_S_MAX).
            assert 1 <= len(reply.replies) <= len(parts)
        else:
            assert 400 <= answer.status_code < 500, answer.text
            assert answer.headers["content-type"] == MEDIA_TYPE

    with httpx.Client(
        base_url=cluster.document.urls["r3"], headers=AUTHORISED, trust_env=False, timeout=30.0
    ) as client:
        send()
        for path in (each.format(life) for each in READS for life in range(0, len(statuses) // LIES_TOLD, 5)):
            answer = client.get(f"/v1/{path}")
            assert answer.status_code in (200, 404, 503, 504), answer.text
            assert answer.json().get("type") != "/problems/internal"
        assert client.post("/v1/queues/other/items", json={"item": 1}).status_code == 200
    assert statuses.count(200) > 10
