"""Leases on three shipped replicas: delivered, ended, lost, and found again when holders, replicas and front ends die."""

from collections.abc import Iterator
from typing import Any

import pytest

from quorate.api_specs.limits import DELAY_S_MAX, LEASE_S_MAX, SETTLE_TOKENS_MAX, Limits
from quorate.client_sdk import (
    AsyncQueue,
    BadInput,
    DeadLetter,
    Lease,
    LeaseCounts,
    LeaseLost,
    RefusedByReplicas,
    connect,
)
from quorate.client_sdk.protocol.core.values import Acquire, Done
from tests.support.in_process import InProcessCluster, in_process
from tests.unit.client_sdk.loopback import cluster_of
from tests.unit.client_sdk.scripted import document_of

LIMITS = Limits(batch_items_max=50, page_entries_max=20)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessCluster]:
    with in_process(tmp_path_factory.mktemp("leases"), LIMITS) as made:
        yield made


class Here:
    """One queue through a front end of its own; its methods block."""

    def __init__(self, cluster: InProcessCluster, name: str) -> None:
        self._cluster = cluster
        self._queue: AsyncQueue = cluster.front_end().client.queue(name)

    def __getattr__(self, method: str) -> Any:
        bound = getattr(self._queue, method)
        return lambda *args, **options: self._cluster.run(bound(*args, **options))


@pytest.fixture
def queues(cluster: InProcessCluster, request: pytest.FixtureRequest) -> tuple[Here, Here]:
    """A queue of the test's own, as two front ends have it."""
    name = request.node.originalname
    return Here(cluster, name), Here(cluster, name)


def values(leases: list[Lease]) -> list[Any]:
    return [lease.value for lease in leases]


def test_what_one_holds_no_other_is_given(queues: tuple[Here, Here]) -> None:
    one, other = queues
    assert one.acquire() == []
    one.enqueue_many([1, {"n": 2}, "three"])
    first = one.acquire(2)
    assert values(first) == [1, {"n": 2}]
    assert [(lease.deliveries, lease.redelivered) for lease in first] == [(1, False), (1, False)]
    assert values(other.acquire(10)) == ["three"]
    assert other.acquire(10) == one.acquire() == []
    assert one.size() == 0
    assert one.dequeue() is None
    assert other.leases() == LeaseCounts(held=3, waiting=0, dead=0)


def test_an_acknowledged_item_is_gone_and_a_repeated_ack_is_answered_as_the_first(
    cluster: InProcessCluster, queues: tuple[Here, Here]
) -> None:
    one, other = queues
    one.enqueue_many([1, 2])
    first, second = one.acquire(2, lease_s=15)
    one.ack(first)
    one.ack(first.token)
    other.ack(first)
    cluster.clock.leap(16)
    assert values(other.acquire(10)) == [2]
    with pytest.raises(LeaseLost, match="1 lease is not held any more") as caught:
        one.ack(first, second)
    assert caught.value.lost == (second.token,)
    assert caught.value.definite


def test_a_dead_holders_item_comes_back_with_its_count(
    cluster: InProcessCluster, queues: tuple[Here, Here]
) -> None:
    one, other = queues
    one.enqueue("a")
    (lost,) = one.acquire(lease_s=2)
    tokens = {lost.token}
    lease = lost
    for count in (2, 3):
        cluster.clock.leap(3)
        (lease,) = other.acquire(lease_s=2)
        assert (lease.value, lease.id, lease.deliveries, lease.redelivered) == ("a", lost.id, count, True)
        tokens.add(lease.token)
    assert len(tokens) == 3
    cluster.clock.leap(3)
    other.ack(lease)
    assert other.leases() == LeaseCounts(0, 0, 0), "an expired lease that nobody else got may be acknowledged"


def test_a_renewed_lease_lasts(cluster: InProcessCluster, queues: tuple[Here, Here]) -> None:
    one, other = queues
    one.enqueue("a")
    (lease,) = one.acquire(lease_s=100)
    cluster.clock.leap(60)
    assert one.renew(lease, lease_s=200) > lease.deadline + 50
    cluster.clock.leap(120)
    assert other.acquire() == []
    one.ack(lease)
    with pytest.raises(LeaseLost):
        one.renew(lease)


def test_what_is_released_comes_back_after_its_delay(
    cluster: InProcessCluster, queues: tuple[Here, Here]
) -> None:
    one, other = queues
    one.enqueue_many(["a", "b"])
    first, second = one.acquire(2, lease_s=1000)
    one.release(second)
    one.release(first, delay_s=50)
    one.release(first, delay_s=10_000)
    assert other.leases() == LeaseCounts(held=0, waiting=2, dead=0)
    assert values(other.acquire(5, lease_s=1000)) == ["b"]
    cluster.clock.leap(51)
    assert [(lease.value, lease.deliveries) for lease in other.acquire(5)] == [("a", 2)]


def test_rejected_worn_out_and_expired_items_are_dead_letters_that_can_be_taken_back(
    cluster: InProcessCluster, queues: tuple[Here, Here]
) -> None:
    one, other = queues
    one.enqueue("rejected")
    one.enqueue("worn")
    one.enqueue("late", expires_s=200)
    one.enqueue("dropped")
    rejected, _, _, dropped = one.acquire(4, lease_s=100)
    one.reject(rejected)
    one.reject(dropped, dead_letter=False)
    cluster.clock.leap(201)
    assert other.acquire(5, max_deliveries=1) == []
    letters = other.dead_letters()
    assert [(letter.value, letter.reason, letter.deliveries) for letter in letters] == [
        ("rejected", "rejected", 1),
        ("worn", "deliveries", 1),
        ("late", "expired", 1),
    ]
    assert one.requeue_dead_letters(letters[1:]) == 2
    again = other.acquire(5, max_deliveries=1)
    assert [(lease.value, lease.deliveries) for lease in again] == [("worn", 2), ("late", 2)]
    assert one.purge_dead_letters() == 1
    assert one.purge_dead_letters() == 0
    assert one.leases() == LeaseCounts(held=2, waiting=0, dead=0)


def test_delayed_items_that_an_acquire_has_met_are_purged_by_when_they_are_due(
    queues: tuple[Here, Here],
) -> None:
    one, other = queues
    one.enqueue("soon", delay_s=1000)
    one.enqueue("never", delay_s=DELAY_S_MAX)
    assert other.purge_delayed() == 0
    assert one.acquire() == []
    one.enqueue("not met", delay_s=1000)
    assert one.leases().waiting == 2
    assert other.purge_delayed(due_after_s=2000) == 1
    assert other.purge_delayed() == 1
    assert one.leases() == LeaseCounts(held=0, waiting=0, dead=0)
    assert one.items() == ["not met"]


def test_delayed_and_expiring_items_keep_to_their_times_for_acquire_alone(
    cluster: InProcessCluster, queues: tuple[Here, Here]
) -> None:
    one, other = queues
    one.enqueue_many(["d1", "d2"], delay_s=1000)
    one.enqueue("short", delay_s=100, expires_s=300, idempotency_key="s")
    one.enqueue("short", delay_s=100, expires_s=300, idempotency_key="s")
    one.enqueue("short", delay_s=100.0, expires_s=300.0, idempotency_key="s")  # As REST callers send it.
    one.enqueue("now")
    assert values(other.acquire(5, lease_s=10_000)) == ["now"]
    assert other.leases() == LeaseCounts(held=1, waiting=3, dead=0)
    cluster.clock.leap(400)
    assert other.acquire(5) == []
    cluster.clock.leap(700)
    assert values(other.acquire(5)) == ["d1", "d2"]
    assert values(other.dead_letters()) == ["short"]
    one.enqueue("later", delay_s=1000)
    assert one.dequeue() == "later"


def test_a_key_used_with_another_delay_is_refused(queues: tuple[Here, Here]) -> None:
    one, _ = queues
    one.enqueue("a", delay_s=1, idempotency_key="k")
    with pytest.raises(RefusedByReplicas, match="other arguments"):
        one.enqueue("a", delay_s=2, idempotency_key="k")


def test_many_delayed_items_in_front_do_not_hide_what_lies_behind(queues: tuple[Here, Here]) -> None:
    one, other = queues
    for _ in range(3):
        one.enqueue_many(["later"] * 50, delay_s=1000)
    one.enqueue("now")
    assert values(other.acquire()) == ["now"]
    assert other.leases() == LeaseCounts(held=1, waiting=150, dead=0)


def test_payloads_that_were_only_named_are_kept_before_anything_is_delivered(
    cluster: InProcessCluster, queues: tuple[Here, Here]
) -> None:
    """The replica that gave the payloads dies, and all logs are pruned: the item comes back with its value all the same."""
    one, other = queues
    one.enqueue_many(list(range(20)))
    assert values(one.acquire(20, lease_s=5)) == list(range(20))
    cluster.stop("r1")
    try:
        cluster.clock.leap(200)
        for replica in cluster.up:
            cluster.prune(replica)
        assert values(other.acquire(40)) == list(range(20))
    finally:
        cluster.start("r1")


def test_an_acquire_waits_for_a_first_item(cluster: InProcessCluster, queues: tuple[Here, Here]) -> None:
    one, other = queues
    one.enqueue("a")
    (lease,) = one.acquire()
    one.release(lease, delay_s=0.2)
    assert values(other.acquire(wait_s=15)) == ["a"]
    outcome = cluster.outcome(cluster.front_end(), Acquire("queue/nothing-here", 1, 1.0))
    assert isinstance(outcome, Done)
    assert (outcome.result, outcome.event_class) == ((), "Acquire/Empty")


def test_leases_are_there_after_all_replicas_started_again(
    cluster: InProcessCluster, queues: tuple[Here, Here]
) -> None:
    one, other = queues
    one.enqueue_many(["a", "b", "c"])
    first, second, third = one.acquire(3)
    one.reject(third)
    one.ack(first)
    for replica in ("r1", "r2", "r3"):
        cluster.stop(replica)
    cluster.start("r1", "r2", "r3")
    one.ack(first)
    other.ack(second)
    assert other.leases() == LeaseCounts(held=0, waiting=0, dead=1)
    assert [letter.value for letter in other.dead_letters()] == ["c"]


@pytest.mark.parametrize(
    ("method", "arguments", "options", "sentence"),
    [
        ("acquire", (0,), {}, "max_items is 0: use 1 to 50"),
        ("acquire", (51,), {}, "max_items is 51: use 1 to 50"),
        ("acquire", (1, 0), {}, "lease_s is 0: use above 0"),
        ("acquire", (1, LEASE_S_MAX + 1), {}, "use above 0 to 604800"),
        ("acquire", (1, float("nan")), {}, "lease_s is nan"),
        ("acquire", (1, 1, -1), {}, "wait_s is -1"),
        ("acquire", (), {"max_deliveries": 0}, "max_deliveries is 0: use 1 to 1000000000"),
        ("acquire", (), {"max_deliveries": 10**30}, "use 1 to 1000000000"),
        ("ack", (), {}, "0 leases: use 1 to"),
        pytest.param("ack", ("t",) * (SETTLE_TOKENS_MAX + 1), {}, "1025 leases: use 1 to", id="too-many"),
        ("ack", ("é",), {}, "is no lease: pass what acquire gave"),
        ("ack", (["t"],), {}, r"a list is no lease: pass what acquire gave each by itself \(\*leases\)"),
        ("release", ("t",), {"delay_s": -1}, "delay_s is -1"),
        ("release", ("t",), {"delay_s": DELAY_S_MAX + 1}, "delay_s is"),
        ("renew", ("t",), {"lease_s": 0}, "lease_s is 0"),
        ("requeue_dead_letters", ([],), {}, "no dead letter is named"),
        ("purge_dead_letters", ("id",), {}, "one dead letter in place of several: pass a list of it"),
        ("purge_delayed", (), {"due_after_s": -1}, "due_after_s is -1: use 0 to"),
        ("enqueue", (1,), {"delay_s": float("nan")}, "delay_s is nan"),
        ("enqueue", (1,), {"expires_s": 0}, "it must be above 0 and above delay_s"),
        ("enqueue_many", ([1],), {"delay_s": 5, "expires_s": 5}, "it must be above 0 and above delay_s"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(
    queues: tuple[Here, Here], method: str, arguments: Any, options: Any, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        getattr(queues[0], method)(*arguments, **options)


def test_a_token_of_nobody_is_lost(queues: tuple[Here, Here]) -> None:
    with pytest.raises(LeaseLost, match="1/nobody"):
        queues[0].ack("1/nobody")


def test_the_blocking_client_has_them_too() -> None:
    with cluster_of(document_of("r1", "r2", "r3")) as cluster, connect(cluster.document) as client:
        jobs = client.queue("jobs")
        jobs.enqueue("a", delay_s=0.05)
        (lease,) = jobs.acquire(wait_s=10)
        assert jobs.renew(lease) > lease.deadline - 1
        jobs.release(lease)
        (lease,) = jobs.acquire()
        jobs.reject(lease)
        assert jobs.dead_letters() == [DeadLetter("a", lease.id, "rejected", 2)]
        assert jobs.requeue_dead_letters([lease.id]) == 1
        (lease,) = jobs.acquire()
        jobs.ack(lease)
        assert jobs.purge_dead_letters() == 0
        assert jobs.leases() == LeaseCounts(held=0, waiting=0, dead=0)
