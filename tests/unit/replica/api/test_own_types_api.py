"""Objects of one's own types over plain HTTP, at any replica; and what the OpenAPI document says of them."""

import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from quorate.adts.plain_class import PlainClass
from quorate.adts.specification import Invocation
from quorate.api_specs.cluster import ChoiceRule
from quorate.client_sdk.protocol.core.values import Failed, Repair
from quorate.replica.access.authorization import DOCUMENT_PATH, PROTOCOL_DOCUMENT_PATH
from quorate.replica.api import own_types_api
from quorate.replica.api.operations import Operations
from tests.support.in_process import InProcessCluster, in_process
from tests.support.own_types import ENDS, TYPES, Cart

EVENTUAL = ChoiceRule("cart/old*", consistency="eventual")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("own-api"), types=TYPES, rules=(EVENTUAL,)) as made:
        yield made


def post(
    cluster: InProcessCluster,
    path: str,
    body: Any = None,
    replica: str = "r1",
    status: int = 200,
    key: str = "",
) -> Any:
    url = f"{cluster.document.urls[replica]}/v1/objects/{path}"
    answer = httpx.post(url, json=body, timeout=60, headers={"Idempotency-Key": key} if key else None)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_operations_are_called_at_any_replica(cluster: InProcessCluster) -> None:
    assert post(cluster, "cart/ann/add", {"item": "book", "count": 2}) == {"outcome": "Ok"}
    assert post(cluster, "cart/ann/add", {"item": "pen"}, "r2") == {"outcome": "Ok"}
    assert post(cluster, "cart/ann/content", replica="r3") == {
        "outcome": "Ok",
        "result": {"book": 2, "pen": 1},
    }
    assert post(cluster, "cart/ann/take", {"item": "book"}, "r3") == {"outcome": "Ok", "result": 2}
    assert post(cluster, "cart/ann/take", {"item": "book"}) == {"outcome": "NotThere"}
    assert post(cluster, "cart/bob/content", {}) == {"outcome": "Ok", "result": {}}
    assert post(cluster, "cart/bob/keep", {"note": [{"a": 1.5}]})["result"] == [{"a": 1.5}]
    assert post(cluster, "cart/bob/keep", {"note": None}) == {"outcome": "Ok", "result": None}


def test_an_answer_of_eventual_consistency_says_that_it_may_be_old(cluster: InProcessCluster) -> None:
    for name, consistency in (("old", "eventual"), ("new", None)):
        url = f"{cluster.document.urls['r1']}/v1/objects/cart/{name}"
        added = httpx.post(f"{url}/add", json={"item": "pen"}, timeout=60)
        assert "Quorate-Consistency" not in added.headers
        assert httpx.post(f"{url}/content", timeout=60).headers.get("Quorate-Consistency") == consistency


def test_a_replica_says_whose_code_it_has_not(cluster: InProcessCluster) -> None:
    told = httpx.get(f"{cluster.document.urls['r1']}/v1/status", timeout=60).json()["without_code"]
    assert set(told) == {"bag", "broken", "lost"}
    assert told["lost"].startswith("tests.support.nowhere:Lost cannot be imported")


def test_a_repeat_under_a_key_takes_effect_once_wherever_it_comes(cluster: InProcessCluster) -> None:
    post(cluster, "cart/eve/add", {"item": "book"})
    assert [
        post(cluster, "cart/eve/take", {"item": "book"}, replica, key="k") for replica in ("r1", "r2")
    ] == [{"outcome": "Ok", "result": 1}] * 2
    reused = post(cluster, "cart/eve/take", {"item": "pen"}, status=422, key="k")
    assert reused["type"] == "/problems/key-reused"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("cart/ann/add", {"count": 1}, 400, "item: Field required"),
        ("cart/ann/add", {"item": "a", "count": "2"}, 400, "count: Input should be a valid integer"),
        ("cart/ann/add", {"item": "a", "much": 2}, 400, "much: Extra inputs are not permitted"),
        ("cart/ann/add", [], 400, ""),
        ("cart/.ann/add", {"item": "a"}, 400, ""),
        ("cart/ann/slip", None, 409, "raised KeyError"),
        ("cart/ann/quit", None, 409, "raised SystemExit"),
        ("cart/ann/loop", None, 409, "or holds itself"),
        ("cart/ann/keep", {"note": "x" * 1_100_000}, 400, "value_bytes_max"),
        ("bag/ann/add", {"number": 1}, 501, "derives from a class of Python's own"),
        ("cart/ann/fill", {"bytes": 300_000}, 409, "keep less in one object"),
        ("cart/ann/nothing", None, 404, "cart has no operation 'nothing': it has add, take, content"),
        (
            "basket/ann/add",
            None,
            404,
            "the cluster has no type 'basket': its document's [types] name cart, lost",
        ),
        (
            "lost/ann/add",
            None,
            501,
            "keeps objects of type lost, and cannot run their code: tests.support.nowhere:Lost",
        ),
        ("broken/ann/add", None, 501, "NotThere has no public method"),
    ],
)
def test_what_cannot_be_called_is_told_with_the_remedy(
    cluster: InProcessCluster, path: str, body: Any, status: int, words: str
) -> None:
    problem = post(cluster, path, body, status=status)
    assert words in problem["detail"]
    assert problem["definite"] is True
    assert (status == 404) == (problem["type"] == "/problems/no-such-path"), "nothing to store first"


@pytest.mark.parametrize("how", ENDS)
def test_a_call_that_raises_what_ends_other_things_is_answered(cluster: InProcessCluster, how: str) -> None:
    """Each was never answered and kept its place: after 256 of them the replica served nobody."""
    problem = post(cluster, "cart/kim/end", {"how": how}, status=409)
    assert f"raised {how}: \\ud800: for an outcome, raise an exception that you define" in problem["detail"]
    assert problem["definite"] is True
    assert post(cluster, "cart/kim/content")["result"] == {}


def test_the_document_describes_each_operation_with_its_arguments_and_result(
    cluster: InProcessCluster,
) -> None:
    document = httpx.get(f"{cluster.document.urls['r1']}{DOCUMENT_PATH}", timeout=60).json()
    own = {path: item["post"] for path, item in document["paths"].items() if path.startswith("/v1/objects/")}
    assert [path for path in own if path.startswith("/v1/objects/cart/")] == [
        f"/v1/objects/cart/{{name}}/{operation}"
        for operation in (
            "add",
            "take",
            "content",
            "keep",
            "slip",
            "quit",
            "end",
            "loop",
            "odd",
            "pass_on",
            "paint",
            "fill",
        )
    ]
    add = own["/v1/objects/cart/{name}/add"]
    assert (add["operationId"], add["description"]) == ("cartAdd", "Put so many of an item into the cart.")
    assert add["security"] == [{"token": ["write"]}, {}]
    schemas = document["components"]["schemas"]
    wanted = schemas["CartAddArguments"]
    assert wanted["required"] == ["item"]
    assert wanted["properties"]["item"]["type"] == "string"
    assert (wanted["properties"]["count"]["type"], wanted["properties"]["count"]["default"]) == ("integer", 1)
    told = schemas["CartContentAnswer"]["properties"]["result"]
    assert {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}} in told["anyOf"]
    assert [tag["name"] for tag in document["tags"]].count("types of your own") == 1
    assert {"404", "409", "503"} <= add["responses"].keys()


ORDER = {"lines": [{"item": "book", "count": 2}], "state": "open", "note": None}


def test_arguments_and_results_that_are_typed_dicts_are_called_as_the_document_says(
    cluster: InProcessCluster,
) -> None:
    assert post(cluster, "orders/all/place", {"who": "ann", "order": ORDER}) == {
        "outcome": "Ok",
        "result": None,
    }
    assert post(cluster, "orders/all/add", {"who": "ann", "line": {"item": "pen"}}, "r2") == {"outcome": "Ok"}
    placed = ORDER | {"lines": [{"item": "book", "count": 2}, {"item": "pen"}]}
    later = {"who": "ann", "order": ORDER | {"instead_of": placed}}
    assert post(cluster, "orders/all/place", later, "r3")["result"] == placed
    wrong = {"who": "ann", "order": ORDER | {"instead_of": ORDER | {"lines": [{"count": 1}]}}}
    problem = post(cluster, "orders/all/place", wrong, status=400)
    assert "order.instead_of.lines.0.item: Field required" in problem["detail"]
    assert post(cluster, "orders/all/all")["result"] == {"ann": later["order"]}


def test_the_document_describes_typed_dicts_member_by_member(cluster: InProcessCluster) -> None:
    document = httpx.get(f"{cluster.document.urls['r1']}{DOCUMENT_PATH}", timeout=60).json()
    schemas = document["components"]["schemas"]
    line, order = ({"$ref": f"#/components/schemas/{name}"} for name in ("OrdersLine", "OrdersOrder"))
    wanted = schemas["OrdersPlaceArguments"]
    assert wanted["required"] == ["who", "order"]
    assert wanted["properties"]["order"]["$ref"] == order["$ref"]
    assert schemas["OrdersPlaceAnswer"]["properties"]["result"]["anyOf"] == [order, {"type": "null"}]
    everybody = {"type": "object", "additionalProperties": order}
    assert everybody in schemas["OrdersAllAnswer"]["properties"]["result"]["anyOf"]
    assert schemas["OrdersOrder"]["required"] == ["lines", "state", "note"]
    members = schemas["OrdersOrder"]["properties"]
    assert members["lines"] == {"title": "Lines", "type": "array", "items": line}
    assert members["state"]["enum"] == ["open", "paid"]
    assert members["instead_of"] == order
    count = {"title": "Count", "type": "integer", "format": "int64", "description": "How many"}
    assert schemas["OrdersLine"]["properties"]["count"] == count


def test_large_arguments_are_taken_apart_from_the_loop_and_let_go(
    cluster: InProcessCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve calls with a megabyte of nested arrays each had a health check wait for two seconds."""
    taken: list[tuple[str, Any]] = []

    def call(found: PlainClass, operation: str, /, *args: Any, **named: Any) -> Invocation:
        taken.append((threading.current_thread().name, named["note"]))
        return before(found, operation, *args, **named)

    before = PlainClass.call
    monkeypatch.setattr(PlainClass, "call", call)
    large, small = [["x"] * 10] * 2000, [1]
    assert post(cluster, "cart/gus/keep", {"note": large})["result"] == large
    assert post(cluster, "cart/gus/keep", {"note": small})["result"] == small
    assert [name.startswith("quorate-bodies") for name, _ in taken] == [True, False]
    assert [note for _, note in taken] == [[], []], "nothing of them waits for the decision"


def test_names_of_arguments_are_the_users_own(cluster: InProcessCluster) -> None:
    given = {"operation": "a", "model_dump": 2}
    assert post(cluster, "cart/ann/pass_on", given)["result"] == ["a", 2, 1]
    assert post(cluster, "cart/ann/paint", {"color": "red"}) == {"outcome": "Ok"}


def test_a_type_whose_endpoints_cannot_be_made_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise GeneratorExit("\ud800")

    types = {"cart": PlainClass(Cart)}
    made = own_types_api.own_type_routers(cast("Operations", None), types)
    routers = cast("Generator[Any, None, None]", made)
    next(routers)
    routers.close()
    monkeypatch.setattr(own_types_api, "_router", fail)
    assert len(list(own_types_api.own_type_routers(cast("Operations", None), types))) == 1
    assert "its endpoints cannot be made: GeneratorExit: \\ud800" in caplog.text


def test_ids_of_operations_are_their_own(cluster: InProcessCluster) -> None:
    document = httpx.get(f"{cluster.document.urls['r1']}{DOCUMENT_PATH}", timeout=60).json()
    ids = [each["operationId"] for item in document["paths"].values() for each in item.values()]
    assert len(ids) == len(set(ids))
    assert {"cartAdd", "cartKeep", "cartKeepAdd"} <= set(ids)
    assert "cartPassOn" in ids


def test_types_are_told_to_those_with_a_token_alone(tmp_path: Path) -> None:
    with in_process(tmp_path, types={"cart": TYPES["cart"]}, token="t" * 24) as guarded:
        url = f"{guarded.document.urls['r1']}{DOCUMENT_PATH}"
        anybody = httpx.get(url, timeout=60)
        known = httpx.get(url, timeout=60, headers={"Authorization": f"Bearer {'t' * 24}"})
        of_protocol = httpx.get(f"{guarded.document.urls['r1']}{PROTOCOL_DOCUMENT_PATH}", timeout=60)
    assert [each.status_code for each in (anybody, known, of_protocol)] == [200, 200, 200]
    assert (anybody.headers["Vary"], known.headers["Vary"]) == ("Authorization", "Authorization")
    assert "cart" not in (anybody.text + of_protocol.text).lower()
    assert "cartAdd" in known.text


def test_requests_about_types_that_are_not_there_harm_nobody(cluster: InProcessCluster) -> None:
    """A forwarded command on one reset the front end, so that all its callers heard that their outcomes are unknown."""
    base, member = cluster.document.urls["r1"], cluster.member("r1")
    for commands in ([{"type": "swap"}], [{"type": "dequeue", "items_max": 1}]):
        ask = {
            "cluster": cluster.document.hash,
            "id": "06611eeae29a7f.0001.a",
            "object": "foo/x",
            "incarnation": member.folder.incarnation,
            "commands": commands,
            "deadline_s": 1.0,
        }
        assert httpx.post(f"{base}/replica/v1/forward", json=ask, timeout=60).status_code == 400
    assert httpx.get(f"{base}/v1/trace", params={"object": "foo/x"}, timeout=60).status_code == 404
    refused = cluster.outcome(cluster.front_end(), Repair("foo/x"))
    assert isinstance(refused, Failed)
    assert (refused.reason, refused.definite) == ("refused", True)
    assert "has no data type 'foo'" in refused.detail
