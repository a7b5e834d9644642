"""The task that relays what waits in outboxes: it finds what was there before it began, outlives every error, and ends with the replica."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from quorate.adts.log import Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.client_sdk.protocol.core.values import Done, Enqueue, Failed, Operation, Outcome, QueueSize
from quorate.client_sdk.transport.driver import Driver
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.replica.upkeep import relaying
from quorate.replica.upkeep.relaying import Relaying

DOCUMENT: Final = ClusterDocument(
    "test", (ReplicaInfo("r1", "http://127.0.0.1:7001"),), (ChoiceRule("queue/mail*", outbox=True),)
)
WAIT_S: Final = 60
QUEUES: Final = [f"queue/mail-{number}" for number in range(5)]


class Relays:
    """The embedded front end, which notes what it is asked for; its first answer is an error of its own, its second that it cannot be done."""

    def __init__(self, inner: Driver) -> None:
        self._inner = inner
        self.asked: list[Operation] = []

    async def run(self, operation: Operation, deadline_s: float) -> Outcome:
        """See FrontEnd."""
        self.asked.append(operation)
        if len(self.asked) == 1:
            raise ZeroDivisionError("nobody foresaw it")
        if len(self.asked) == 2:
            return Failed("unavailable", "nobody answers", definite=True)
        return await self._inner.run(operation, deadline_s)


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    opened = Member(open_folder(tmp_path / "data", DOCUMENT, "r1"))
    yield opened
    await asyncio.to_thread(opened.close)


async def size(front_end: Driver, name: str) -> int:
    outcome = await front_end.run(QueueSize(name), WAIT_S)
    assert isinstance(outcome, Done)
    return int(outcome.result.size)


async def test_it_relays_what_was_there_before_and_what_comes_and_outlives_errors(
    member: Member, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relaying, "PAGE", 2)
    await member.admit()
    front_end = embedded_front_end(member, None)
    for name in QUEUES[:-1]:
        assert isinstance(await front_end.run(Enqueue(name, (Value("1"), Value("2"))), WAIT_S), Done)
    member.outboxes = type(member.outboxes)(DOCUMENT, "r1")  # type: ignore[misc] # as after a restart
    task = Relaying(member, relays := Relays(front_end))
    task.start()
    try:
        assert isinstance(await front_end.run(Enqueue(QUEUES[-1], (Value("3"),)), WAIT_S), Done)
        async with asyncio.timeout(WAIT_S):
            for name, items in zip(QUEUES, (2, 2, 2, 2, 1), strict=True):
                while await size(front_end, name) < items:
                    await asyncio.sleep(0.01)
                while await size(front_end, f"{name}@r1"):
                    await asyncio.sleep(0.01)
    finally:
        await task.stop()
    assert "relaying met an error of its own" in caplog.text
    assert "items wait in outboxes, as in queue/mail-" in caplog.text
    asked = len(relays.asked)
    await asyncio.sleep(5 * relaying.ROUND_S)
    assert len(relays.asked) == asked
    await front_end.aclose()


async def test_it_waits_until_the_replica_may_vote(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    await member.admit()
    front_end = embedded_front_end(member, None)
    assert isinstance(await front_end.run(Enqueue(QUEUES[0], (Value("1"),)), WAIT_S), Done)
    monkeypatch.setattr(member, "why_not_ready", lambda: ["it is starting"])
    task = Relaying(member, relays := Relays(front_end))
    task.start()
    await asyncio.sleep(3 * relaying.READY_S)
    assert relays.asked == []
    await task.stop()
    await front_end.aclose()


class Stuck:
    """A front end that never answers."""

    def __init__(self) -> None:
        self.asked = self.cancelled = 0

    async def run(self, operation: Operation, deadline_s: float) -> Outcome:
        """See FrontEnd."""
        self.asked += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise AssertionError(operation)


async def test_so_many_outboxes_are_looked_at_side_by_side_and_none_is_left_when_it_stops(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relaying, "AT_ONCE_MAX", 2)
    await member.admit()
    front_end = embedded_front_end(member, None)
    for name in QUEUES:
        assert isinstance(await front_end.run(Enqueue(name, (Value("1"),)), WAIT_S), Done)
    task = Relaying(member, stuck := Stuck())
    task.start()
    async with asyncio.timeout(WAIT_S):
        while stuck.asked < 2:
            await asyncio.sleep(0.01)
    await asyncio.sleep(5 * relaying.ROUND_S)
    assert stuck.asked == 2
    await task.stop()
    async with asyncio.timeout(WAIT_S):
        while stuck.cancelled < 2:
            await asyncio.sleep(0.01)
    await front_end.aclose()


async def test_it_is_over_once_nothing_waits(member: Member, caplog: pytest.LogCaptureFixture) -> None:
    await member.admit()
    front_end = embedded_front_end(member, None)
    task = Relaying(member, front_end)
    task._note("queue/mail@r1", "failed", "r2 is down")
    task._note("queue/mail@r1", "some", "")
    task._note("queue/mail@r1", "waiting", "")
    assert "it is over" not in caplog.text, "others got through"
    caplog.set_level("INFO")
    task._note("queue/mail@r1", "empty", "")
    assert "it is over" in caplog.text
    await front_end.aclose()
