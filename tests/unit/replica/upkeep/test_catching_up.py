"""Catching up where transactions fail: what was not made durable is got all the same, by a later pass."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Append, Batch, BatchReply
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.member import Member
from quorate.replica.store.store import StorageFailed, Store
from quorate.replica.upkeep import catching_up
from quorate.replica.upkeep.catching_up import CatchingUp
from quorate.timestamps.timestamp import make

DOCUMENT = ClusterDocument("test", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}") for n in (1, 2)))
NAME = "queue/q"
Work = Callable[[Store], Any]
Run = Callable[[Work], Awaitable[Any]]


class To:
    """The way to another member in this process."""

    def __init__(self, other: Member) -> None:
        self._other = other

    async def exchange(self, _replica: str, batch: Batch, _timeout_s: float) -> BatchReply | Unanswered:
        """What it answers."""
        return await self._other.answer(batch.requests)

    async def aclose(self) -> None:
        """There is nothing to close."""


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[list[Member]]:
    """r1, which has nothing, and r2, which has an entry."""
    found = [Member(DOCUMENT, name, open_folder(tmp_path / name, DOCUMENT, name)) for name in ("r1", "r2")]
    for member in found:
        await member.admit()
    t = make(found[1].wall_us(), 0, "c")
    await found[1].answer([Append(NAME, (Entry(t, t, Value('"' + "x" * 100_000 + '"')),), "first")])
    yield found
    for member in found:
        await asyncio.to_thread(member.close)


def failing(run: Run, place: int) -> Run:
    """`run`, whose transaction at this place is undone: the disk is full."""
    calls = 0

    async def once(work: Work) -> Any:
        nonlocal calls
        calls += 1
        if calls != place:
            return await run(work)

        def fails(store: Store) -> None:
            work(store)
            raise StorageFailed("the database failed: database or disk is full", passing=True)

        try:
            return await run(fails)
        finally:  # As the janitor does, which writes until it may.
            await run(lambda store: store.others.put_progress("r3", "", 1))

    return once


def repeating(run: Run, place: int) -> Run:
    """`run`, whose transaction at this place is undone and done once more, as where other work in it raises."""
    calls = 0

    async def twice(work: Work) -> Any:
        nonlocal calls
        calls += 1
        if calls != place:
            return await run(work)

        def undone(store: Store) -> Any:
            work(store)
            store.rollback()
            return work(store)

        return await run(undone)

    return twice


@pytest.mark.parametrize("wrong", [failing, repeating])
@pytest.mark.parametrize("place", range(1, 8))
async def test_what_a_transaction_lost_is_got_by_a_later_pass(
    members: list[Member], monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Run, int], Run], place: int
) -> None:
    here, there = members
    monkeypatch.setattr(catching_up, "PASS_S", 0.01)
    run: Run = here.run
    monkeypatch.setattr(here, "run", wrong(run, place))
    following = CatchingUp(here, To(there))
    following.start()
    try:
        await until_it_is_here(run)
    finally:
        await following.stop()


async def until_it_is_here(run: Run) -> None:
    """Until the entry is in the log, for a while."""
    async with asyncio.timeout(30):
        while not await is_here(run):
            await asyncio.sleep(0.005)


async def is_here(run: Run) -> bool:
    """Whether the entry is in the log. A look that shares its transaction with one that failed knows nothing."""
    try:
        return bool(await run(lambda store: len(store.arrived(NAME, 0, store.arrival(), 10))))
    except StorageFailed:
        return False
