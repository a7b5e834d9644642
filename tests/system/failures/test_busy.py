"""A size is answered in time beside consumers and a producer that never rest; a whole dictionary beside writers of one key.

A look that no decision falls into is rare then, so that two agreed by chance alone. After a few in vain, a size takes the turn, and its
front end begins no decision while it looks. A whole read takes a key that keeps changing by itself, between two looks.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest

from quorate.client_sdk import AsyncClient, OutcomeUnknown, Unavailable, connect_async
from quorate.client_sdk.protocol.operations import observe
from tests.system.harness import Clusters

DEADLINE_S = 20.0
SIZES = 20
READS = 8
CONSUMERS = 8
KEYS = 600
AT_ONCE = 50
"""Three pages of a scan."""
LOOKS_MAX = 20
"""In twenty sizes none took more than nine; without the turn, dozens."""


async def busy(
    client: AsyncClient, is_over: Callable[[], bool], step: Callable[[], Coroutine[Any, Any, Any]]
) -> int:
    """Take step after step; how many. A step that a busy machine holds up for longer than a clock may be wrong has an unknown
    outcome."""
    steps = 0
    while not is_over():
        with suppress(Unavailable, OutcomeUnknown):
            await step()
            steps += 1
    return steps


def counting(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """Count the looks of each operation, which begins a new number."""
    looks: list[int] = []
    right = getattr(observe, name)

    def counted(*args: Any, **how: Any) -> Any:
        looks[-1] += 1
        return right(*args, **how)

    monkeypatch.setattr(observe, name, counted)
    return looks


@pytest.mark.slow
@pytest.mark.parametrize("is_alone", [False, True])
def test_a_size_is_answered_beside_a_busy_consumer(
    clusters: Clusters, is_alone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`is_alone`: by a front end of its own; else by that of the consumers. Looks are counted, for how long one takes is the
    machine's affair."""
    cluster = clusters.start()
    looks = counting(monkeypatch, "collect")

    async def run() -> int:
        working = await connect_async(cluster.document, deadline_s=DEADLINE_S)
        looking = await connect_async(cluster.document, deadline_s=DEADLINE_S) if is_alone else working
        queue, over = working.queue("jobs"), asyncio.Event()
        await queue.enqueue_many(list(range(300)))
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(busy(working, over.is_set, lambda: queue.enqueue(1)))
                taking = [
                    group.create_task(busy(working, over.is_set, queue.dequeue)) for _ in range(CONSUMERS)
                ]
                try:
                    for _ in range(SIZES):
                        looks.append(0)
                        assert await looking.queue("jobs").size() >= 0
                finally:
                    over.set()
            return sum(each.result() for each in taking)
        finally:
            await working.aclose()
            await looking.aclose()

    taken = asyncio.run(run())
    assert max(looks) <= LOOKS_MAX, looks
    assert taken > SIZES, "the consumer goes on"


@pytest.mark.slow
def test_a_whole_dictionary_is_read_beside_a_busy_writer_of_one_key(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = clusters.start()
    looks = counting(monkeypatch, "_scan")

    async def run() -> tuple[list[dict[str, Any]], int]:
        working = await connect_async(cluster.document, deadline_s=DEADLINE_S)
        looking = await connect_async(cluster.document, deadline_s=DEADLINE_S)
        users, over = working.dictionary("users"), asyncio.Event()
        for start in range(
            0, KEYS, AT_ONCE
        ):  # All at once would be stamped long before the last of them arrives.
            await asyncio.gather(
                *(users.put(f"key-{start + number}", start + number) for number in range(AT_ONCE))
            )
        read = []
        try:
            async with asyncio.TaskGroup() as group:
                writing = [
                    group.create_task(busy(working, over.is_set, lambda: users.put("busy", 1)))
                    for _ in range(CONSUMERS)
                ]
                try:
                    for _ in range(READS):
                        looks.append(0)
                        read.append(await looking.dictionary("users").items())
                finally:
                    over.set()
            return read, sum(each.result() for each in writing)
        finally:
            await working.aclose()
            await looking.aclose()

    read, written = asyncio.run(run())
    assert all(each.items() >= {f"key-{number}": number for number in range(KEYS)}.items() for each in read)
    assert written > READS, "the writers go on"
    assert max(looks) <= LOOKS_MAX, looks
