"""The application as a client sees it: the ADT API end to end on one replica, health, and the committed document."""

import asyncio
import logging
import shutil
from pathlib import Path

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Append, Batch, BatchReply, Collect, Window
from quorate.api_specs.problems import KINDS
from quorate.client_sdk.protocol.configurations import joint
from quorate.replica.access.authorization import DOCUMENT_PATH, PROTOCOL_DOCUMENT_PATH
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.server.app import create_app
from quorate.replica.server.write_openapi import documents
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from tests.support.documents import API, PROTOCOL
from tests.unit.replica.conftest import Serving, one_replica, serve_from

ROOT = Path(__file__).parents[4]


async def test_queue_gives_items_back_in_order_exactly_as_they_were(client: httpx.AsyncClient) -> None:
    items = [{"b": [1, 2.5, None], "a": "é\U0001f600"}, "x", 18446744073709551615, None]
    assert (await client.post("/v1/queues/q/items", json={"items": items})).json() == {"enqueued": 4}
    assert (await client.post("/v1/queues/q/items", json={"item": [5]})).json() == {"enqueued": 1}
    assert (await client.get("/v1/queues/q/peek")).json() == {"items": items[:1]}
    assert (await client.get("/v1/queues/q")).json()["size"] == 5
    taken = await client.post("/v1/queues/q/dequeue", json={"max": 3})
    assert taken.json() == {"items": items[:3]}
    assert taken.text.startswith('{"items":[{"a":"é')
    assert (await client.post("/v1/queues/q/dequeue")).json() == {"items": [None]}
    assert (await client.post("/v1/queues/q/dequeue")).json() == {"items": [[5]]}
    assert (await client.post("/v1/queues/q/dequeue")).json() == {"items": []}


async def test_waiting_dequeue_gets_the_item_that_comes_later(client: httpx.AsyncClient) -> None:
    waiting = asyncio.ensure_future(client.post("/v1/queues/q/dequeue", json={"wait_s": 10}))
    assert (await client.get("/v1/queues/q")).json()["size"] == 0
    await client.post("/v1/queues/q/items", json={"item": "late"})
    assert (await waiting).json() == {"items": ["late"]}


async def test_repeated_post_with_its_key_takes_effect_once(client: httpx.AsyncClient) -> None:
    header = {"Idempotency-Key": "once/for-all"}
    for _ in range(2):
        await client.post("/v1/queues/q/items", json={"item": 1}, headers=header)
    assert (await client.get("/v1/queues/q")).json()["size"] == 1
    taken = [await client.post("/v1/queues/q/dequeue", headers={"Idempotency-Key": "t"}) for _ in range(2)]
    assert [each.json() for each in taken] == [{"items": [1]}] * 2


async def test_a_key_that_comes_back_with_another_request_is_unprocessable(client: httpx.AsyncClient) -> None:
    header = {"Idempotency-Key": "k"}
    for path, first, other in (
        ("/v1/queues/q/items", {"item": 1}, {"item": 2}),
        ("/v1/registers/r/compare-and-set", {"old": None, "new": 1}, {"old": None, "new": 2}),
        ("/v1/dictionaries/d/entries/a/compare-and-set", {"old": None, "new": 1}, {"old": 1, "new": 2}),
        ("/v1/dictionaries/d/entries/b/put-if-absent", {"value": 1}, {"value": 2}),
        ("/v1/dictionaries/d/entries/b/compare-and-delete", {"old": 1}, {"old": 2}),
    ):
        answer = (await client.post(path, json=first, headers=header)).json()
        refused = await client.post(path, json=other, headers=header)
        assert refused.status_code == 422, path
        assert refused.json()["type"] == "/problems/key-reused"
        assert refused.json()["definite"] is True
        assert (await client.post(path, json=first, headers=header)).json() == answer


async def test_register_is_null_until_written(client: httpx.AsyncClient) -> None:
    path = "/v1/registers/leader"
    assert (await client.get(path)).json() == {"value": None}
    swap = await client.post(path + "/compare-and-set", json={"old": None, "new": "a"})
    assert swap.json() == {"swapped": True}
    swap = await client.post(path + "/compare-and-set", json={"old": None, "new": "b"})
    assert swap.json() == {"swapped": False}
    assert (await client.put(path, json={"value": {"z": 1, "a": 2}})).status_code == 204
    swap = await client.post(path + "/compare-and-set", json={"old": {"a": 2, "z": 1}, "new": 0})
    assert swap.json() == {"swapped": True}


async def test_numbers_are_compared_by_amount_and_come_back_as_written(client: httpx.AsyncClient) -> None:
    path = "/v1/registers/ratio"
    typed = {"Content-Type": "application/json"}
    await client.put(path, content='{"value": {"x": [1.0, 2e0]}}', headers=typed)
    assert (await client.get(path)).text == '{"value":{"x":[1.0,2.0]}}'
    swap = await client.post(path + "/compare-and-set", json={"old": {"x": [1, 2]}, "new": 3})
    assert swap.json() == {"swapped": True}
    swap = await client.post(path + "/compare-and-set", json={"old": True, "new": 3})
    assert swap.json() == {"swapped": False}
    keyed = {**typed, "Idempotency-Key": "k"}
    for body in ('{"old": 3.0, "new": 4.0}', '{"old": 3, "new": 4}'):
        swap = await client.post(path + "/compare-and-set", content=body, headers=keyed)
        assert swap.json() == {"swapped": True}, "the second is a repeat of the first"
    for body in ('{"item": 5.0}', '{"item": 5}'):
        assert (await client.post("/v1/queues/q/items", content=body, headers=keyed)).status_code == 200
    assert (await client.get("/v1/queues/q")).json()["size"] == 1


async def test_dictionary_keeps_keys_apart_and_forgets_deleted_ones(client: httpx.AsyncClient) -> None:
    entry = "/v1/dictionaries/d/entries/"
    assert (await client.get(entry + "a")).status_code == 404
    assert (await client.put(entry + "a", json={"value": 1})).status_code == 204
    assert (await client.post(entry + "a/put-if-absent", json={"value": 2})).json() == {"stored": False}
    assert (await client.post(entry + "b/put-if-absent", json={"value": 2})).json() == {"stored": True}
    assert (await client.get("/v1/dictionaries/d")).json() == {"size": 2, "items": {"a": 1, "b": 2}}
    assert (await client.post(entry + "a/compare-and-delete", json={"old": 2})).json() == {"deleted": False}
    assert (await client.get(entry + "a")).json()["value"] == 1
    keyed = {"Idempotency-Key": "once"}
    for _ in range(2):
        gone = await client.post(entry + "a/compare-and-delete", json={"old": 1.0}, headers=keyed)
        assert gone.json() == {"deleted": True}, "the second is a repeat of the first"
    assert (await client.get(entry + "a")).status_code == 404
    assert (await client.put(entry + "a", json={"value": 1})).status_code == 204
    assert (await client.delete(entry + "a")).status_code == 204
    assert (await client.delete(entry + "a")).status_code == 204
    assert (await client.get(entry + "a")).status_code == 404
    assert (await client.get("/v1/dictionaries/d")).json() == {"size": 1, "items": {"b": 2}}


async def test_what_was_answered_is_there_after_a_restart(
    serving: Serving, document: ClusterDocument
) -> None:
    async with serving(document) as client:
        await client.post("/v1/queues/q/items", json={"items": [1, 2, 3]})
        await client.post("/v1/queues/q/dequeue")
        before = (await client.get("/v1/status")).json()
    async with serving(document) as client:
        after = (await client.get("/v1/status")).json()
        assert after["store"] == before["store"]
        assert after["incarnation"] != before["incarnation"]
        assert after["clock"] >= before["clock"]
        assert (await client.post("/v1/queues/q/dequeue", json={"max": 9})).json() == {"items": [2, 3]}


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
@pytest.mark.parametrize("answered", ["json", "msgpack"])
async def test_batch_is_answered_in_the_encoding_asked_for(
    client: httpx.AsyncClient, document: ClusterDocument, encoding: str, answered: str
) -> None:
    # The read comes last: what is left of a batch whose reads took long is not answered.
    batch = Batch(document.hash, (Append("queue/q", ()), Collect("queue/q", window=Window(limit=5))))
    response = await client.post(
        "/replica/v1/batch",
        content=getattr(msgspec, encoding).encode(batch),
        headers={"Content-Type": f"application/{encoding}", "Accept": f"application/{answered}"},
    )
    assert response.headers["content-type"] == f"application/{answered}"
    reply = getattr(msgspec, answered).decode(response.content, type=BatchReply)
    assert reply.replica == "r1"
    assert len(reply.replies) == 2


async def test_cluster_document_is_served_with_its_hash(
    client: httpx.AsyncClient, document: ClusterDocument
) -> None:
    answer = (await client.get("/v1/cluster")).json()
    assert answer["hash"] == document.hash
    assert msgspec.convert(answer["document"], ClusterDocument) == document


async def test_a_configuration_that_is_told_again_is_no_act(
    client: httpx.AsyncClient, document: ClusterDocument, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever waits for others tells it many times a second."""
    caplog.set_level(logging.INFO)
    first = replace(document, limits=Limits())
    both = joint(first, replace(first, choices=(ChoiceRule("queue/jobs"),)))
    for told in (first, both, both):
        answer = await client.post("/v1/admin/configuration", json={"document": msgspec.to_builtins(told)})
        assert answer.json()["epoch"] == told.number
    assert caplog.text.count("configuration-told") == 1


async def test_every_type_of_problem_can_be_looked_up(client: httpx.AsyncClient) -> None:
    for name in KINDS:
        assert (await client.get(f"/problems/{name}")).json()["advice"] == KINDS[name].advice
    assert (await client.get("/problems/unheard-of")).status_code == 404


async def test_replica_that_lost_its_store_serves_but_never_votes(serving: Serving) -> None:
    async with serving(one_replica(store="0123456789abcdef")) as client:
        assert (await client.get("/v1/health/live")).status_code == 200
        batch = Batch(one_replica(store="0123456789abcdef").hash, (Append("queue/q", ()),))
        refused = [
            await client.get("/v1/health/ready"),
            await client.post("/replica/v1/batch", content=msgspec.json.encode(batch)),
            await client.post("/v1/queues/q/items", json={"item": 1}),
            await client.get("/v1/registers/a"),
        ]
        for response in refused:
            assert response.status_code == 503
            assert response.json()["type"] == "/problems/store-lost"
            assert "promises are forgotten" in response.json()["detail"]
        status = (await client.get("/v1/status")).json()
        assert status["objects"] is None
        assert len(status["reasons"]) == 1


async def test_unforeseen_error_is_a_problem_without_a_traceback(
    tmp_path: Path,
    document: ClusterDocument,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    member = Member(open_folder(tmp_path, document, "r1"))
    app = create_app(member, lambda each: embedded_front_end(each, None))

    async def broken() -> None:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(member, "vitals", broken)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r1") as client,
    ):
        response = await client.get("/v1/status")
        assert (await client.get("/v1/cluster")).status_code == 200
    assert "ZeroDivisionError: secret" in caplog.text, "the log has what the client does not get"
    assert response.status_code == 500
    assert response.json()["type"] == "/problems/internal"
    assert response.json()["definite"] is False
    assert "secret" not in response.text


async def test_what_is_asked_about_the_cluster_is_checked_even_while_the_replica_starts(
    tmp_path: Path, document: ClusterDocument
) -> None:
    member = Member(open_folder(tmp_path, document, "r1"))
    app = create_app(member, lambda each: embedded_front_end(each, None))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r1") as client:
        for path in ("/v1/overview", "/v1/choices", "/v1/trace?object=queue/q"):
            early = await client.get(path)
            assert (early.status_code, early.json()["detail"]) == (503, "the replica is starting")
        assert (await client.get("/v1/trace?object=q")).status_code == 400
    await asyncio.to_thread(member.close)


async def test_two_replicas_of_one_process_share_routes_and_nothing_else(
    tmp_path: Path, document: ClusterDocument
) -> None:
    other = ClusterDocument("other", document.replicas, limits=Limits(batch_items_max=1))
    serve = {each.name: serve_from(tmp_path / each.name) for each in (document, other)}
    async with (
        serve["test"](document, "one") as client,
        serve["other"](other, "two") as stranger,
    ):
        for each, token in ((client, "one"), (stranger, "two")):
            each.headers["Authorization"] = f"Bearer {token}"
        for _ in range(2):
            both = await asyncio.gather(client.get("/v1/cluster"), stranger.get("/v1/cluster"))
            assert [each.json()["document"]["name"] for each in both] == ["test", "other"]
        items = {"items": [1, 2]}
        several = [await each.post("/v1/queues/q/items", json=items) for each in (client, stranger)]
        assert [each.status_code for each in several] == [200, 400]
        sizes = [(await each.get("/v1/queues/q")).json()["size"] for each in (client, stranger)]
        assert sizes == [2, 0]
        client.headers["Authorization"] = "Bearer two"
        assert (await client.get("/v1/status")).status_code == 401


async def test_batches_pass_the_gate_though_not_the_framework(
    tmp_path: Path, document: ClusterDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Token, methods and errors that nobody foresaw, as for every other path."""
    member = Member(open_folder(tmp_path, document, "r1"))
    app = create_app(member, lambda each: embedded_front_end(each, "secret"), "secret")
    path = "/replica/v1/batch"

    async def broken(requests: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(member, "answer", broken)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r1") as client,
    ):
        stranger = await client.post(path, content=msgspec.json.encode(Batch(document.hash, ())))
        client.headers["Authorization"] = "Bearer secret"
        read = await client.get(path)
        failed = await client.post(path, content=msgspec.json.encode(Batch(document.hash, ())))
    assert stranger.json()["type"] == "/problems/unauthorized"
    assert (read.json()["type"], read.headers["allow"]) == ("/problems/method-not-allowed", "POST")
    assert failed.json()["type"] == "/problems/internal"


def test_committed_openapi_documents_are_current() -> None:
    for name, text in documents().items():
        assert (ROOT / "api_specs" / name).read_text() == text, "run: make openapi"


async def test_both_documents_are_served_as_they_are_committed(client: httpx.AsyncClient) -> None:
    answers = [await client.get(path) for path in (DOCUMENT_PATH, PROTOCOL_DOCUMENT_PATH)]
    assert [each.json() for each in answers] == [API, PROTOCOL]


def test_copied_folder_serves_as_well(tmp_path: Path, document: ClusterDocument) -> None:
    """A folder may be moved while its replica is stopped: nothing in it names its place."""
    open_folder(tmp_path / "a", document, "r1").abandon()
    shutil.move(tmp_path / "a", tmp_path / "b")
    moved = open_folder(tmp_path / "b", document, "r1")
    assert moved.lost is None
    moved.abandon()
