"""The task that finishes decisions whose clients vanished: it outlives every error, and comes back to what it could not finish."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorate.adts.log import Summary, Value
from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Accept, Commit
from quorate.client_sdk.protocol.core.values import Failed, Outcome, ReadRepair
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.protocol import undecided
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.replica.upkeep import repairing
from quorate.replica.upkeep.repairing import Repairing
from quorate.timestamps.ballot import Ballot, make_ballot
from quorate.timestamps.timestamp import make
from tests.support.asking import answer_of

DOCUMENT = ClusterDocument("test", (ReplicaInfo("r1", "http://127.0.0.1:7001"),))
WAIT_S = 60


class Repairs:
    """The embedded front end, which notes what it is asked for; its first answer is an error of its own, its second that it cannot be done."""

    def __init__(self, member: Member) -> None:
        self.inner = embedded_front_end(member, None)
        self.asked: list[ReadRepair] = []

    async def run(self, operation: ReadRepair, deadline_s: float) -> Outcome:
        """See FrontEnd."""
        self.asked.append(operation)
        if len(self.asked) == 1:
            raise ZeroDivisionError("nobody foresaw it")
        if len(self.asked) == 2:
            return Failed("unavailable", "nobody answers", definite=True)
        return await self.inner.run(operation, deadline_s)


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    opened = Member(open_folder(tmp_path / "data", DOCUMENT, "r1"))
    await opened.admit()
    yield opened
    await asyncio.to_thread(opened.close)


async def accepted(member: Member, name: str) -> Ballot:
    """A value that was accepted here, and nobody tells that it is decided."""
    t = make(member.wall_us(), 0, "c")
    ballot = make_ballot(t, 1)
    await answer_of(member, [Accept(name, ballot, Summary(t, Value("1")))])
    return ballot


async def committed(member: Member, name: str) -> Ballot:
    state = await member.run(lambda store: store.state(name))
    assert state is not None
    return state.committed


async def test_a_decision_whose_client_vanished_is_finished_whatever_goes_wrong_before(
    member: Member, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(repairing, "ROUND_S", 0.01)
    monkeypatch.setattr(undecided, "AFTER_S", 0.01)
    ballot = await accepted(member, "register/left")
    front_end = Repairs(member)
    task = Repairing(member, front_end)
    task.start()
    try:
        async with asyncio.timeout(WAIT_S):
            while await committed(member, "register/left") < ballot:
                await asyncio.sleep(0.005)
    finally:
        await task.stop()
        await front_end.inner.aclose()
    assert set(front_end.asked) == {ReadRepair("register/left")}
    assert len(front_end.asked) >= 3
    assert "read repair met an error of its own" in caplog.text


async def test_what_was_left_before_a_restart_is_met_on_the_walk_over_all_objects(member: Member) -> None:
    ballot = await accepted(member, "register/left")
    await member.run(lambda store: store.undecided.clear())
    assert await member.run(lambda store: [state.accepted for _, state in store.states(0, 9)]) == [ballot]
    assert await member.run(lambda store: store.undecided) == {"register/left": None}


async def test_what_is_decided_at_once_is_left_alone(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(undecided, "AFTER_S", 0.0)
    ballot = await accepted(member, "register/done")
    await answer_of(member, [Commit("register/done", ballot, make(member.wall_us(), 0, "c"))])
    front_end = Repairs(member)
    task = Repairing(member, front_end)
    await task._round()
    await front_end.inner.aclose()
    assert front_end.asked == []


async def test_who_must_not_vote_repairs_nothing(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    await accepted(member, "register/left")
    monkeypatch.setattr(undecided, "AFTER_S", 0.0)
    task = Repairing(member, front_end := Repairs(member))
    monkeypatch.setattr(member, "why_not_ready", lambda: "it is another store")
    await task._round()
    assert front_end.asked == []
    monkeypatch.undo()
    monkeypatch.setattr(undecided, "AFTER_S", 0.0)
    with pytest.raises(ZeroDivisionError):
        await task._round()
    await front_end.inner.aclose()
