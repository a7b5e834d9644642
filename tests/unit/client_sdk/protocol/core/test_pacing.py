"""Shows that many dequeues that wait at one front end share out how often they look, and a few look often."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from statistics import mean

import pytest

from quorate.api_specs.limits import PLACES_MAX
from quorate.client_sdk import connect_async
from quorate.client_sdk.protocol.core.pacing import (
    LOOK_S_FIRST,
    LOOK_S_MAX,
    LOOKS_PER_S_MAX,
    PAUSE_S_MAX,
    Pacing,
)
from tests.unit.client_sdk.loopback import LoopbackCluster, cluster_of
from tests.unit.client_sdk.scripted import document_of

MANY = 200
WAIT_S = 1.0
LOOKS_MAX = 5
"""Of each. One that waits alone for so long looks 14 times; each of so many looks at once, then less than twice a second on average, and at the end."""


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


async def test_who_waits_among_many_looks_less_often(cluster: LoopbackCluster) -> None:
    async with connect_async(cluster.document) as client:
        queues = [client.queue(f"jobs-{number}") for number in range(MANY)]
        taken = await asyncio.gather(*(queue.dequeue(wait_s=WAIT_S, deadline_s=20) for queue in queues))
        assert taken == [None] * MANY
        rounds = client.counters().rounds
        print({name: each.count for name, each in rounds.items()})
        assert rounds["Collect"].count < LOOKS_MAX * MANY


def test_pauses_grow_with_what_waits() -> None:
    pacing = Pacing()
    with ExitStack() as waiting:
        waiting.enter_context(pacing.waits("a"))
        pauses = [pacing.pause_s(looked, "a") for looked in (1, 2, 3)]
        assert pauses == [LOOK_S_FIRST * factor for factor in (1, 2, 4)]
        assert pacing.pause_s(100, "a") == LOOK_S_MAX
        for _ in range(LOOKS_PER_S_MAX - 1):
            waiting.enter_context(pacing.waits("a"))
        assert 0.95 < mean(pacing.pause_s(1, "a") for _ in range(1000)) < 1.05, "each looks once a second"
        for _ in range(1000):
            waiting.enter_context(pacing.waits("a"))
        assert max(pacing.pause_s(1, "a") for _ in range(1000)) <= 1.5 * PAUSE_S_MAX


def test_a_caller_of_whom_one_waits_looks_as_often_beside_one_of_whom_many_do() -> None:
    """Who held 280 dequeues on empty queues had others find their items a third of a second later."""
    pacing = Pacing()
    with ExitStack() as waiting:
        waiting.enter_context(pacing.waits("b"))
        for _ in range(LOOKS_PER_S_MAX // 2):
            waiting.enter_context(pacing.waits("a"))
        assert 0.95 < mean(pacing.pause_s(1, "a") for _ in range(1000)) < 1.05, "half of all looks"
        assert pacing.pause_s(100, "b") == LOOK_S_MAX
    with pacing.waits("b"):
        assert pacing.pause_s(1, "b") == LOOK_S_FIRST, "nobody else waits any more"
    assert not pacing._waiting, "no caller is remembered"


def test_all_places_of_a_replica_together_look_350_times_a_second_at_most() -> None:
    assert PLACES_MAX / PAUSE_S_MAX < 350
