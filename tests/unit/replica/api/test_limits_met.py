"""Where a bound is met, over HTTP and by the SDK: 429 with Retry-After, a word for the bound, and nothing was done."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from quorate.api_specs.limits import Limits
from quorate.client_sdk import AsyncQueue, LimitReached
from quorate.client_sdk.protocol.decisions import lease_table
from quorate.replica.protocol import key_consensus
from tests.support.in_process import InProcessCluster, in_process

FEW = 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("limits-met"), Limits(recent_decisions_max=FEW + 1)) as made:
        yield made


class Caller:
    """One who calls r1 by plain HTTP, from an address of his own."""

    def __init__(self, cluster: InProcessCluster, address: str) -> None:
        self._base = f"{cluster.document.urls['r1']}/v1"
        self._transport = httpx.HTTPTransport(local_address=address)

    def post(self, path: str, body: Any, key: str = "") -> httpx.Response:
        headers = {"Idempotency-Key": key} if key else {}
        with httpx.Client(transport=self._transport, timeout=60) as client:
            return client.post(f"{self._base}/{path}", json=body, headers=headers)


@pytest.fixture
def caller(cluster: InProcessCluster) -> Caller:
    return Caller(cluster, "127.0.0.1")


def tells(refused: httpx.Response, limit: str) -> bool:
    problem = refused.json()
    told = (refused.status_code, problem["type"], problem["definite"])
    assert told == (429, f"/problems/{limit}", True), problem["detail"]
    return int(refused.headers["Retry-After"]) >= 1


def test_a_replica_that_remembers_no_more_keys(
    cluster: InProcessCluster, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_consensus, "RESERVATIONS_MAX", 0)
    assert tells(caller.post("queues/full/items", {"item": 1}, "k"), "too-many-keys")
    queue = cluster.front_end().client.queue("full")
    with pytest.raises(LimitReached, match="only if no earlier attempt") as reached:
        cluster.run(queue.enqueue(1, idempotency_key="k"))
    assert (reached.value.limit, reached.value.definite) == ("too-many-keys", True)
    assert cluster.run(queue.size()) == 0
    monkeypatch.undo()
    assert caller.post("queues/full/items", {"item": 1}, "k").status_code == 200


def test_an_object_that_remembers_no_more_keyed_decisions(cluster: InProcessCluster, caller: Caller) -> None:
    """And of one caller no more than are left for others."""
    path = "registers/swapped/compare-and-set"
    for number in range(FEW):
        swapped = caller.post(path, {"old": number or None, "new": number + 1}, f"k{number}")
        assert swapped.json()["swapped"]
    assert tells(caller.post(path, {"old": FEW, "new": 0}, "one-more"), "too-many-keys")
    register = cluster.front_end().client.register("swapped")
    assert cluster.run(register.compare_and_set(FEW, 9, idempotency_key="other")), "another has what is left"
    with pytest.raises(LimitReached) as reached:
        cluster.run(register.compare_and_set(9, 0, idempotency_key="one-more"))
    assert reached.value.limit == "too-many-keys"
    assert cluster.run(register.read()) == 9
    assert caller.post(path, {"old": None, "new": 1}, "k0").json()["swapped"], (
        "what is remembered is answered"
    )


def test_callers_of_one_replica_have_shares_of_their_own(cluster: InProcessCluster, caller: Caller) -> None:
    caller.post("queues/shared/items", {"items": [1, 2, 3, 4]})
    for place in range(FEW):
        assert caller.post("queues/shared/dequeue", {}, f"k{place}").json()["items"]
    assert tells(caller.post("queues/shared/dequeue", {}, "one-more"), "too-many-keys")
    other = Caller(cluster, "127.0.0.2")
    assert other.post("queues/shared/dequeue", {}, "other").json()["items"] == [3]
    assert tells(other.post("queues/shared/dequeue", {}, "one-more"), "too-many-keys")


def test_callers_are_told_apart_for_as_long_as_their_keys_are_remembered(
    cluster: InProcessCluster, caller: Caller
) -> None:
    """Also after another one's turn: who has had one of three may have no second one when two are taken."""
    caller.post("queues/turns/items", {"items": [1, 2, 3, 4]})
    assert caller.post("queues/turns/dequeue", {}, "first").json()["items"] == [1]
    assert Caller(cluster, "127.0.0.2").post("queues/turns/dequeue", {}, "other").json()["items"] == [2]
    assert tells(caller.post("queues/turns/dequeue", {}, "second"), "too-many-keys")
    assert Caller(cluster, "127.0.0.3").post("queues/turns/dequeue", {}, "third").json()["items"] == [3]


def test_a_queue_that_hands_out_no_more(
    cluster: InProcessCluster, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And to one caller no more than are left for others."""
    monkeypatch.setattr(lease_table, "LEASES_MAX", FEW + 1)
    caller.post("queues/lent/items", {"items": [1, 2, 3, 4]})
    held = caller.post("queues/lent/acquire", {"max": 3}).json()["leases"]
    assert len(held) == FEW
    assert tells(caller.post("queues/lent/acquire", {}), "too-many-leases")
    queue: AsyncQueue = cluster.front_end().client.queue("lent")
    (lease,) = cluster.run(queue.acquire(3))
    assert lease.value == 3, "another caller is given what is left"
    with pytest.raises(LimitReached) as reached:
        cluster.run(queue.acquire())
    assert reached.value.limit == "too-many-leases"
    caller.post("queues/lent/ack", {"tokens": [each["token"] for each in held]})
    assert [lease["item"] for lease in caller.post("queues/lent/acquire", {}).json()["leases"]] == [4]


def test_a_queue_that_keeps_no_more_dead_letters(
    cluster: InProcessCluster, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_table, "DEAD_MAX", 1)
    caller.post("queues/dead/items", {"items": [1, 2]})
    tokens = [each["token"] for each in caller.post("queues/dead/acquire", {"max": 2}).json()["leases"]]
    assert caller.post("queues/dead/reject", {"tokens": tokens[:1]}).is_success
    assert tells(caller.post("queues/dead/reject", {"tokens": tokens[1:]}), "too-many-dead-letters")
    assert caller.post("queues/dead/ack", {"tokens": tokens[1:]}).is_success, "it is held still"
