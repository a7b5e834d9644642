"""Calls of blind operations that front ends store in logs: a replica that has the code of the type takes in none that its class does not take."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import Append, Appended, Batch, BatchReply, Commit, Refused
from quorate.api_specs.tokens import ScopeName, digest_of
from quorate.replica.access.token_list import from_text
from quorate.replica.api.protocol_api import PATH
from quorate.replica.store.store import Store
from quorate.replica.upkeep import catching_up
from quorate.timestamps.timestamp import Timestamp
from tests.support.in_process import in_process
from tests.unit.replica.access.test_authorization import LINES, TOKENS, guarded, stamp
from tests.unit.replica.conftest import small

TYPES = {
    "jobs": "quorate.adts.library.collections:PriorityQueue",
    "lost": "tests.support.nowhere:Lost",
}
DOCUMENT = replace(small(), types=TYPES)
OPERATOR = "o" * 32
ACCESS = f"{LINES}\nscopes=admin,write sha256={digest_of(OPERATOR.encode()).hex()}"
DEPTH = DOCUMENT.limits.stored_depth_max
GOOD, BAD = '["put",["a",1]]', '["put",["a","x"]]'
DEEP = f'["put",[{"[" * (DEPTH - 2)}{"]" * (DEPTH - 2)}]]'
NOT_TAKEN = {
    BAD: "put: the argument priority is 'x', and its hint says int",
    '["put",[]]': "missing a required argument: 'item'",
    '["put",[1,2,3]]': "too many positional arguments",
    '["nope",[]]': "PriorityQueue has no operation 'nope'",
    '["take",[]]': "take is no blind operation of PriorityQueue",
    '"x"': '"x" is no call',
    "{}": "{} is no call",
    '["put",[1e15,1]]': 'is not as calls are written: ["put",[1000000000000000.0,1]]',
    f'["put",[{"[" * DEPTH}{"]" * DEPTH}]]': f"nested {DEPTH} deep at most",
}


def now(scope: ScopeName = "write", later_us: int = 0) -> Timestamp:
    return stamp(scope, time.time_ns() // 1000 + later_us)


def append(*texts: str, name: str = "jobs/a", attempt: Any = "again", scope: ScopeName = "write") -> Append:
    stamps = [now(scope, place) for place in range(len(texts))]
    return Append(
        name, tuple(Entry(t, t, Value(text)) for t, text in zip(stamps, texts, strict=True)), attempt
    )


@asynccontextmanager
async def served(folder: Path, document: ClusterDocument = DOCUMENT) -> AsyncIterator[httpx.AsyncClient]:
    async with guarded(folder, document, from_text(ACCESS, TOKENS["replica"])) as client:
        yield client


async def send(client: httpx.AsyncClient, token: str, *requests: Append) -> httpx.Response:
    body = msgspec.json.encode(Batch(DOCUMENT.hash, requests))
    return await client.post(PATH, content=body, headers={"Authorization": f"bearer {token}"})


async def size(client: httpx.AsyncClient) -> Any:
    header = {"Authorization": f"bearer {TOKENS['write']}"}
    answer = await client.post("/v1/objects/jobs/a/size", headers=header)
    return answer.json()


@pytest.mark.parametrize("attempt", ["first", "again", "repair"])
async def test_a_call_that_the_class_does_not_take_is_refused_as_a_malformed_message(
    attempt: str, tmp_path: Path
) -> None:
    async with served(tmp_path) as client:
        for text, words in NOT_TAKEN.items():
            answer = await send(client, TOKENS["write"], append(GOOD, text, attempt=attempt))
            assert answer.status_code == 400, text
            problem = answer.json()
            assert (problem["type"], problem["definite"]) == ("/problems/malformed", True)
            assert problem["detail"].startswith("requests[0]: entries[1]: ")
            assert words in problem["detail"]
        assert await size(client) == {"outcome": "Ok", "result": 0}


async def test_it_keeps_out_no_other_message(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        answer = await send(client, TOKENS["write"], append(GOOD), append(BAD), append(DEEP))
        first, refused, second = msgspec.json.decode(answer.content, type=BatchReply).replies
        assert isinstance(refused, Refused)
        assert refused.reason == "bad-request"
        assert isinstance(first, Appended)
        assert isinstance(second, Appended)
        assert await size(client) == {"outcome": "Ok", "result": 2}, "what a call leaves out are defaults"


@pytest.mark.parametrize("token", [TOKENS["replica"], OPERATOR], ids=["replica", "operator"])
async def test_what_is_stored_already_is_handed_on_by_replicas_and_by_changes_of_the_configuration(
    token: str, tmp_path: Path
) -> None:
    """It may be from before the code was here, or of an earlier version of the class."""
    async with served(tmp_path) as client:
        answer = await send(client, token, append(BAD, attempt="repair"))
        assert answer.status_code == 200, answer.text
        assert (await send(client, token, append(BAD, attempt="again"))).status_code == 400


async def test_other_types_and_those_without_code_take_what_they_took(tmp_path: Path) -> None:
    async with served(tmp_path) as client:
        for name in ("lost/a", "queue/a"):
            answer = await send(client, TOKENS["write"], append(BAD, name=name))
            assert answer.status_code == 200, answer.text


def test_a_replica_that_missed_what_is_stored_already_gets_it_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catch-up fetches it, so that no replica's class decides which replicas have it."""
    monkeypatch.setattr(catching_up, "PASS_S", 0.05)
    with in_process(tmp_path, types=TYPES) as cluster:
        wrong = append(BAD, attempt="repair")
        complete = Commit(wrong.object, complete=(wrong.entries[0].t,))
        body = msgspec.json.encode(Batch(cluster.document.hash, (wrong, complete)))
        answer = httpx.post(cluster.document.urls["r1"] + PATH, content=body, timeout=60)
        assert answer.status_code == 200, answer.text
        late_s = time.monotonic() + 60
        while not all(cluster.run(cluster.member(replica).run(holds(wrong))) for replica in cluster.up):
            assert time.monotonic() < late_s
            time.sleep(0.05)


def holds(append: Append) -> Callable[[Store], bool]:
    return lambda store: bool(store.stored(append.object, [each.t for each in append.entries]))
