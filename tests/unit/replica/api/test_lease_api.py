"""Leases over plain HTTP, at any replica: delivered, ended, lost, dead letters, and input that is refused."""

from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from quorate.adts.log import Entry, Value
from quorate.api_specs.checking import ID_CHARS_MAX
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Append, Batch
from quorate.replica.api.protocol_api import PATH
from quorate.timestamps.timestamp import make
from tests.support.in_process import InProcessCluster, in_process


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("lease-api"), Limits(batch_items_max=20)) as made:
        yield made


class Api:
    """One queue, at one replica."""

    def __init__(self, cluster: InProcessCluster, replica: str, name: str) -> None:
        self._base = f"{cluster.document.urls[replica]}/v1/queues/{name}"

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        answer = httpx.post(f"{self._base}/{path}", json=body, timeout=60)
        assert answer.status_code == status, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        answer = httpx.get(f"{self._base}/{path}", timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def apis(cluster: InProcessCluster, request: pytest.FixtureRequest) -> tuple[Api, Api]:
    """The test's own queue, at two replicas."""
    name = request.node.originalname
    return Api(cluster, "r1", name), Api(cluster, "r2", name)


def test_an_item_is_delivered_accepted_and_gone(apis: tuple[Api, Api]) -> None:
    one, other = apis
    one.post("items", {"items": [{"n": 1}, 'quote " and €', 3]})
    leases = other.post("acquire", {"max": 2, "lease_s": 60})["leases"]
    assert [lease["item"] for lease in leases] == [{"n": 1}, 'quote " and €']
    assert leases[0].keys() == {"item", "id", "token", "deliveries", "redelivered", "deadline"}
    assert (leases[0]["deliveries"], leases[0]["redelivered"]) == (1, False)
    tokens = [lease["token"] for lease in leases]
    assert one.post("ack", {"tokens": tokens}) == {"lost": []}
    assert other.post("ack", {"tokens": tokens}) == {"lost": []}, "a repeat is answered as the first"
    assert one.post("ack", {"tokens": ["1/nobody"]}) == {"lost": ["1/nobody"]}
    assert len(one.post("acquire")["leases"]) == 1
    assert one.get("leases") == {"held": 1, "waiting": 0, "dead": 0}
    assert one.post("acquire", {"wait_s": 0.1}) == {"leases": []}


def test_leases_are_renewed_released_and_lost(cluster: InProcessCluster, apis: tuple[Api, Api]) -> None:
    one, other = apis
    one.post("items", {"item": "a"})
    (lease,) = one.post("acquire", {"lease_s": 50})["leases"]
    renewed = one.post("renew", {"tokens": [lease["token"]], "lease_s": 500})
    assert renewed["lost"] == []
    assert renewed["deadline"] > lease["deadline"] + 400
    assert one.post("release", {"tokens": [lease["token"]], "delay_s": 100}) == {"lost": []}
    assert other.post("acquire")["leases"] == []
    assert other.get("leases")["waiting"] == 1
    cluster.clock.leap(101)
    (again,) = other.post("acquire")["leases"]
    assert (again["id"], again["deliveries"], again["redelivered"]) == (lease["id"], 2, True)
    assert one.post("ack", {"tokens": [lease["token"]]}) == {"lost": [lease["token"]]}


def test_dead_letters_are_listed_requeued_and_discarded(
    cluster: InProcessCluster, apis: tuple[Api, Api]
) -> None:
    one, other = apis
    one.post("items", {"items": ["a", "b"]})
    one.post("items", {"item": "late", "delay_s": 1, "expires_s": 2})
    first, second = one.post("acquire", {"max": 2, "lease_s": 3})["leases"]
    one.post("reject", {"tokens": [first["token"]]})
    cluster.clock.leap(5)
    assert other.post("acquire", {"max": 5, "max_deliveries": 1})["leases"] == []
    letters = other.get("dead-letters")["letters"]
    assert [(each["item"], each["reason"], each["deliveries"]) for each in letters] == [
        ("a", "rejected", 1),
        ("b", "deliveries", 1),
        ("late", "expired", 0),
    ]
    assert one.post("dead-letters/requeue", {"ids": [second["id"]]}) == {"cleared": 1}
    (again,) = other.post("acquire", {"max_deliveries": 1})["leases"]
    assert again["item"] == "b"
    assert other.post("reject", {"tokens": [again["token"]], "dead_letter": False}) == {"lost": []}
    assert one.post("dead-letters/purge") == {"cleared": 2}
    assert one.get("leases") == {"held": 0, "waiting": 0, "dead": 0}


def test_an_item_with_the_longest_id_that_replicas_take_is_settled_over_http_and_by_the_sdk(
    cluster: InProcessCluster, apis: tuple[Api, Api], request: pytest.FixtureRequest
) -> None:
    """Its token is longer than its id: it was delivered again and again, and failed the acknowledgement of those beside it."""
    name, (one, _) = request.node.originalname, apis
    stamp = make(cluster.clock.now().wall_us, 0, "site")
    longest = Entry(stamp + "k" * (ID_CHARS_MAX - len(stamp)), stamp, Value('"long"'))
    append = Append(f"queue/{name}", (longest,), "first")
    for url in cluster.document.urls.values():
        body = msgspec.json.encode(Batch(cluster.document.hash, (append,)))
        assert httpx.post(url + PATH, content=body, timeout=60).status_code == 200
    (lease,) = one.post("acquire", {"lease_s": 60})["leases"]
    assert lease["id"] == longest.id
    assert one.post("renew", {"tokens": [lease["token"]], "lease_s": 60})["lost"] == []
    assert one.post("reject", {"tokens": [lease["token"]]}) == {"lost": []}
    assert one.post("dead-letters/requeue", {"ids": [longest.id]}) == {"cleared": 1}
    queue = cluster.front_end().client.queue(name)
    (again,) = cluster.run(queue.acquire())
    cluster.run(queue.ack(again.token))
    assert one.get("leases") == {"held": 0, "waiting": 0, "dead": 0}


def test_delayed_items_are_purged(apis: tuple[Api, Api]) -> None:
    one, other = apis
    one.post("items", {"item": "soon", "delay_s": 1000})
    one.post("items", {"item": "late", "delay_s": 9000})
    assert one.post("acquire", {})["leases"] == []
    assert other.post("delayed/purge", {"due_after_s": 5000}) == {"purged": 1}
    assert other.post("delayed/purge") == {"purged": 1}
    assert one.get("leases") == {"held": 0, "waiting": 0, "dead": 0}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("delayed/purge", {"due_after_s": -1}),
        ("acquire", {"max": 0}),
        ("acquire", {"max": 21}),
        ("acquire", {"lease_s": 0}),
        ("acquire", {"lease_s": 604801}),
        ("acquire", {"wait_s": 21}),
        ("acquire", {"max_deliveries": 0}),
        ("acquire", {"count": 1}),
        ("ack", {}),
        ("ack", {"tokens": []}),
        ("ack", {"tokens": ["é"]}),
        ("ack", {"tokens": ["t"] * 1025}),
        ("release", {"tokens": ["t"], "delay_s": -1}),
        ("reject", {"tokens": ["t"], "dead_letter": "no"}),
        ("renew", {"tokens": ["t"], "lease_s": -1}),
        ("dead-letters/requeue", {"ids": []}),
        ("items", {"item": 1, "delay_s": 5, "expires_s": 5}),
        ("items", {"item": 1, "expires_s": 0}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_out_of_form_or_bounds_is_malformed(apis: tuple[Api, Api], path: str, body: Any) -> None:
    problem = apis[0].post(path, body, status=400)
    assert (problem["type"], problem["definite"]) == ("/problems/malformed", True)
