"""Objects of one's own types on three shipped replicas, called by the SDK."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.api_specs.messages import Append, Refused
from quorate.client_sdk import BadInput, RefusedByReplicas, connect
from tests.support.asking import answer_of
from tests.support.in_process import InProcessCluster, in_process
from tests.support.own_types import ENDS, TYPES, Cart, NotThere


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("own"), types=TYPES) as made:
        yield made


def test_a_call_is_a_method_with_its_results_and_exceptions(cluster: InProcessCluster) -> None:
    with connect(cluster.document) as one, connect(cluster.document) as other:
        mine, theirs = one.object(Cart, "ann"), other.object(Cart, "ann")
        mine.add("book", count=2)
        theirs.add("pen")
        assert mine.content() == {"book": 2, "pen": 1}
        assert theirs.take("book") == 2
        with pytest.raises(NotThere):
            mine.take("book")
        assert one.object(Cart, "bob").content() == {}
        assert mine.keep([{"a": None}]) == [{"a": None}]


def test_the_asyncio_client_has_the_same(cluster: InProcessCluster) -> None:
    ben = cluster.front_end().client.object(Cart, "ben", deadline_s=20)
    assert cluster.run(ben.add("book")) is None
    assert cluster.run(ben.take("book")) == 1
    with pytest.raises(NotThere):
        cluster.run(ben.take("book"))


def test_a_repeat_under_a_key_takes_effect_once(cluster: InProcessCluster) -> None:
    with connect(cluster.document) as one, connect(cluster.document) as other:
        one.object(Cart, "eve").add("book")
        taken = [each.object(Cart, "eve", idempotency_key="k").take("book") for each in (one, other, one)]
        assert taken == [1, 1, 1]
        with pytest.raises(RefusedByReplicas, match="used with other arguments"):
            other.object(Cart, "eve", idempotency_key="k").take("pen")
        with pytest.raises(NotThere):
            other.object(Cart, "eve", idempotency_key="l").take("book")


@pytest.mark.parametrize("replica", ["r1", "r2", "r3"])
def test_calls_go_on_without_any_one_replica_and_it_learns_of_them(
    cluster: InProcessCluster, replica: str
) -> None:
    with connect(cluster.document) as client:
        cart = client.object(Cart, f"without-{replica}")
        cart.add("before")
        cluster.stop(replica)
        try:
            cart.add("meanwhile")
            assert cart.content() == {"before": 1, "meanwhile": 1}
        finally:
            cluster.start(replica)
        assert client.object(Cart, f"without-{replica}").content() == {"before": 1, "meanwhile": 1}


@pytest.mark.parametrize("how", ENDS)
def test_a_method_that_raises_what_ends_other_things_is_refused_and_the_client_goes_on(
    cluster: InProcessCluster, how: str
) -> None:
    with connect(cluster.document, deadline_s=20) as client:
        with pytest.raises(RefusedByReplicas, match=rf"raised {how}: \\ud800") as refused:
            client.object(Cart, "kim").end(how)
        assert refused.value.definite
        assert client.object(Cart, "kim").content() == {}


class Lost:
    """Of a type whose code no replica has."""

    def __init__(self) -> None:
        self.calls = 0

    def call(self) -> int:
        self.calls += 1
        return self.calls


def test_replicas_keep_objects_whose_code_they_have_not(cluster: InProcessCluster) -> None:
    with connect(cluster.document) as one, connect(cluster.document) as other:
        assert [each.object(Lost, "a").call() for each in (one, other, one)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (
            lambda client: client.object(Cart, "a").add(),
            "add(item, count): missing a required argument: 'item'",
        ),
        (lambda client: client.object(Cart, "a").add({1}), "the argument item is {1}, of type set"),
        (lambda client: client.object(Cart, "a").add("x" * 1_100_000), "value_bytes_max"),
        (
            lambda client: client.object(Cart, "a").add(5),
            "add: the argument item is 5, and its hint says str",
        ),
        (lambda client: client.object(Cart, "a").add("x", True), "count is True, and its hint says int"),
        (lambda client: client.object("cart", "a"), "'cart' is no class"),
        (lambda client: client.object(Cart, "a b"), "the name 'a b' is not allowed"),
        (
            lambda client: client.object(Cart, "a", idempotency_key="a b").add("x"),
            "the idempotency key 'a b'",
        ),
        (lambda client: client.object(NotThere, "a"), "NotThere has no public method"),
        (lambda client: client.object(Path, "a"), "Path"),
        (lambda client: client.object(Cart, "a", type_name="basket"), "the cluster has no type 'basket'"),
        (
            lambda client: client.object(Cart, "a", type_name="lost"),
            "is tests.support.nowhere:Lost, and not Cart",
        ),
    ],
)
def test_what_is_no_call_is_refused_before_anything_is_sent(
    cluster: InProcessCluster, act: Any, words: str
) -> None:
    with connect(cluster.document) as client, pytest.raises(BadInput) as refused:
        act(client)
    assert words in str(refused.value)


def test_attributes_are_not_set_either(cluster: InProcessCluster) -> None:
    with connect(cluster.document) as client, pytest.raises(AttributeError):
        client.object(Cart, "a").items = {}


def test_attributes_are_not_there(cluster: InProcessCluster) -> None:
    with connect(cluster.document) as client, pytest.raises(AttributeError, match="has no operation 'items'"):
        client.object(Cart, "a").items.clear()


def test_code_that_fails_and_states_beyond_all_bounds_are_told(cluster: InProcessCluster) -> None:
    with connect(cluster.document) as client:
        cart = client.object(Cart, "wrong")
        with pytest.raises(RefusedByReplicas, match=r"slip\(\) in the state .* raised KeyError") as refused:
            cart.slip()
        assert refused.value.definite
        with pytest.raises(RefusedByReplicas, match="keep less in one object"):
            cart.fill(300_000)
        assert cart.content() == {}


def test_a_history_tells_calls_and_is_checked_by_the_class(cluster: InProcessCluster, tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    with connect(cluster.document, history=file) as client:
        cart = client.object(Cart, "told")
        cart.add("book", 2)
        with pytest.raises(NotThere):
            cart.take("pen")
        cart.content()
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(each["f"], each["value"]) for each in lines if each["type"] == "invoke"] == [
        ("add", ["book", 2]),
        ("take", ["pen"]),
        ("content", []),
    ]
    assert [each["result"] for each in lines if each["type"] == "ok"] == [
        ["Ok"],
        ["NotThere"],
        ["Ok", {"book": 2}],
    ]


def test_replicas_take_no_entries_of_types_that_they_do_not_keep(cluster: InProcessCluster) -> None:
    reply = cluster.run(answer_of(cluster.member("r1"), [Append("basket/ann", ())]))
    refused = reply.replies[0]
    assert isinstance(refused, Refused)
    assert "has no data type 'basket'" in refused.detail
