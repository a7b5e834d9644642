"""The task that finishes decisions whose clients vanished: it outlives every error, and comes back to what it could not finish."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from quorate.adts.log import Entry, Summary, Value
from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Accept, Commit
from quorate.client_sdk.protocol.core.values import Done, Failed, Outcome, ReadRepair
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


class Asked:
    """The embedded front end, which notes what it is asked for, and what comes of it."""

    def __init__(self, outcome: Outcome) -> None:
        self.asked: list[ReadRepair] = []
        self.outcome = outcome

    async def run(self, operation: ReadRepair, deadline_s: float) -> Outcome:
        """See FrontEnd."""
        assert deadline_s == repairing.DEADLINE_S
        self.asked.append(operation)
        return self.outcome


DONE: Outcome = Done(None, "ReadRepair/Ok", frozenset())
T = make(1, 0, "c")
LEFT = [Entry(T, T, Value('"x"'))]


async def test_entries_that_were_left_are_taken_up_a_few_at_a_time_and_each_once(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairing, "LEFT_AT_ONCE", 2)
    task = Repairing(member, front_end := Asked(DONE))
    names = [f"queue/{number}" for number in range(5)]
    for name in names:
        task.take_up({name: LEFT})
    rounds = []
    while task._left:
        await task._round_of_left()
        rounds.append(len(front_end.asked))
    assert rounds == [2, 4, 5]
    assert front_end.asked == [ReadRepair(name, tuple(LEFT)) for name in names]


async def test_entries_that_were_left_are_taken_up_beside_all_else(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairing, "LEFT_AT_ONCE", 1)
    task = Repairing(member, front_end := Asked(DONE))
    task.start()
    try:
        for names in (["queue/a"], ["queue/b", "queue/c"]):
            front_end.asked.clear()
            task.take_up(dict.fromkeys(names, LEFT))
            async with asyncio.timeout(WAIT_S):
                while len(front_end.asked) < len(names):
                    await asyncio.sleep(0.005)
            assert [each.object for each in front_end.asked] == names
            assert not task._is_any_left.is_set(), "it waits until there is more"
    finally:
        await task.stop()


async def test_of_entries_that_were_left_so_many_objects_wait(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairing, "LEFT_MAX", 2)
    task = Repairing(member, Asked(DONE))
    for number in range(2):
        assert task.has_room
        task.take_up({f"queue/{number}": LEFT})
    assert not task.has_room
    await task._round_of_left()
    assert task.has_room


@pytest.mark.parametrize(
    ("reason", "expected"), [("unavailable", ["queue/0", "register/other"]), ("refused", [])]
)
async def test_where_too_few_replicas_answer_others_with_the_same_quorums_are_found_again_later(
    member: Member, monkeypatch: pytest.MonkeyPatch, reason: Any, expected: list[str]
) -> None:
    """What is refused is a matter of that object."""
    monkeypatch.setattr(repairing, "LEFT_AT_ONCE", 1)
    names = ["queue/0", "queue/1", "queue/2", "register/other"]
    task = Repairing(member, front_end := Asked(Failed(reason, "for a reason", definite=True)))
    task.take_up(dict.fromkeys(names, LEFT))
    while task._left:
        await task._round_of_left()
    assert [each.object for each in front_end.asked] == (expected or names)


async def test_who_must_not_vote_takes_up_nothing_that_was_left(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = Repairing(member, front_end := Asked(DONE))
    task.take_up({"queue/0": LEFT})
    monkeypatch.setattr(member, "why_not_ready", lambda: "it is another store")
    await task._round_of_left()
    assert front_end.asked == []
    assert task._left == {}
