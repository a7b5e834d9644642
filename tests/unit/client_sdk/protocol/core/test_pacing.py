"""Shows that many dequeues that wait at one front end share out how often they look, and a few look often."""

import asyncio
from collections.abc import Iterator

import pytest

from quorate.client_sdk import connect_async
from quorate.client_sdk.protocol.core.pacing import LOOK_S_FIRST, LOOK_S_MAX, PAUSE_S_MAX, Pacing
from tests.unit.client_sdk.loopback import LoopbackCluster, cluster_of
from tests.unit.client_sdk.scripted import document_of

MANY = 200
WAIT_S = 1.0
LOOKS_MAX = 8
"""Of each. One that waits alone for so long looks 14 times; each of so many looks twice, then 5 times a second on average, and at
the end: 8 times at most, for a first pause is half an average one."""


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


def test_pauses_grow_with_what_is_under_way() -> None:
    under_way = [0]
    pacing = Pacing(under_way)
    assert [pacing.pause_s(looked) for looked in (1, 2, 3)] == [LOOK_S_FIRST * factor for factor in (1, 2, 4)]
    assert pacing.pause_s(100) == LOOK_S_MAX
    under_way *= 1000
    pauses = [pacing.pause_s(1) for _ in range(1000)]
    assert 0.95 < sum(pauses) / len(pauses) < 1.05, "a thousand look a thousand times a second"
    under_way *= 1000
    assert max(pacing.pause_s(1) for _ in range(1000)) <= 1.5 * PAUSE_S_MAX
