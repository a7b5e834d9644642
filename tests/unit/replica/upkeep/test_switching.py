"""The task that switches standing rules: when it begins an attempt, when it gives one up, and what it says.

The clock is the test's, and so are the words of the watch and of an operator: real ones are in `tests/system/cluster/test_standing_rules.py`.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final, cast

import pytest
import pytest_asyncio
from msgspec.structs import replace

from quorate.api_specs.cluster import (
    BadCluster,
    ChoiceRule,
    ClusterDocument,
    Fallback,
    ReplicaInfo,
    checked,
    with_states,
)
from quorate.client_sdk.errors import RefusedByReplicas, Unavailable
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.client_sdk.protocol.core.values import Carry, Done, Failed, Outcome
from quorate.client_sdk.protocol.reconfiguration import (
    Ask,
    CarryAll,
    Look,
    Looked,
    Perform,
    Steps,
    Tell,
    Todo,
    Wait,
)
from quorate.client_sdk.transport.operator import Operator
from quorate.replica.access.token_list import from_text, nobody_asked, one_token
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.member import Member, Peer
from quorate.replica.upkeep import announcer
from quorate.replica.upkeep import switching as module
from quorate.replica.upkeep.announcer import Watch
from quorate.replica.upkeep.switching import NO_RIGHT, REST_S, Switching, put_off

WAIT_S: Final = 60.0
MEMBERS: Final = ("r1", "r2", "r3", "r4")
PLAIN: Final = ClusterDocument(
    "c", tuple(ReplicaInfo(name, f"http://127.0.0.1:1/{name}") for name in MEMBERS)
)
RULE: Final = ChoiceRule("queue/jobs", fallback=Fallback(down=("r4",), after_s=3.0))
FIRST: Final = checked(ClusterDocument("c", PLAIN.replicas, (RULE,)))
BOTH: Final = joint(FIRST, with_states(FIRST, {"queue/jobs": True}))
FALLEN: Final = settled(BOTH)


CHOSEN: Final = Done(True, "CompareAndSet/Ok", frozenset())


class Scripted:
    """Those who change the configuration: each ends as the test says."""

    def __init__(self) -> None:
        self.begun = 0
        self.closed = 0
        self.end: asyncio.Future[ClusterDocument] = asyncio.get_running_loop().create_future()

        self.outcome: Outcome = CHOSEN
        """Of having a configuration chosen."""

    async def run(self, steps: Steps) -> ClusterDocument:
        self.begun += 1
        answers = {
            Look: Looked(Done(None, "Read/Ok", frozenset()), FIRST),
            Ask: {},
            Tell: dict.fromkeys(MEMBERS[:3], 0),
        }
        todo = next(steps)
        while not isinstance(todo, Perform):
            todo = steps.send(answers[type(todo)])
        steps.send(self.outcome)
        steps.close()
        return await asyncio.shield(self.end)

    async def aclose(self) -> None:
        self.closed += 1

    def answer(self, end: ClusterDocument | Exception) -> None:
        """Whoever is at it ends so, and the next one waits."""
        before, self.end = self.end, asyncio.get_running_loop().create_future()
        if isinstance(end, Exception):
            before.set_exception(end)
        else:
            before.set_result(end)


class Rig:
    """One member that looks at each call, by a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.now_s = 1000.0
        self.member = Member(open_folder(folder, FIRST, "r1"), mono_s=lambda: self.now_s)
        self.member.is_new, self.member.is_vouched_for = False, True
        self.operators = Scripted()
        self.may_change = True
        self.switching = Switching(
            self.member, lambda: cast(Operator, self.operators), lambda: self.may_change
        )

    async def look(self, live: str, seconds: int = 1) -> None:
        """Each second, while the watch meets these others."""
        for _ in range(seconds):
            self.now_s += 1
            for name in MEMBERS[1:]:
                self.member.peers[name] = Peer(True, votes=name in live, met_s=self.now_s)
            await self.switching._look()
            await asyncio.sleep(0)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await asyncio.sleep(0)

    @property
    def ended(self) -> dict[str, int]:
        return {name: times for name, times in self.member.switches.ended.items() if times}


@pytest_asyncio.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    made = Rig(tmp_path / "r1")
    yield made
    await made.switching.stop()
    await asyncio.to_thread(made.member.close)


async def test_it_switches_once_the_condition_has_held_and_says_so(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await rig.look("r2 r3 r4", 60)
    await rig.look("r2 r3", 3)
    assert rig.operators.begun == 0
    await rig.look("r2 r3", 5)
    assert rig.operators.begun == 1, "the one attempt goes on"
    await rig.member.configured.follow(BOTH)
    await rig.look("r2 r3", 5)
    await rig.member.configured.follow(FALLEN)
    await rig.look("r2 r3", 5)
    assert (rig.operators.begun, rig.operators.closed, rig.ended) == (1, 0, {})
    rig.operators.answer(FALLEN)
    await rig.until(lambda: rig.ended == {"done": 1})
    assert rig.operators.closed == 1
    assert "switches the configuration: queue/jobs falls back: r4 is down" in caplog.text
    told = (
        '{"act":"fallbacks","epoch":2,"in_force":["queue/jobs"],"reason":"queue/jobs falls back: r4 is down"}'
    )
    assert caplog.text.count(told) == 1
    assert rig.member.switches.waits == ""


@pytest.mark.parametrize(
    ("outcome", "is_told"),
    [
        (CHOSEN, True),
        (replace(CHOSEN, result=False), False),
        (Failed("unavailable", "no quorum", definite=True), False),
        (Failed("unknown", "its answer is lost", definite=False), True),
    ],
)
async def test_of_those_who_carry_out_a_switch_only_who_had_it_chosen_writes_an_audit_line(
    rig: Rig, caplog: pytest.LogCaptureFixture, outcome: Outcome, is_told: bool
) -> None:
    caplog.set_level(logging.INFO)
    rig.operators.outcome = outcome
    await rig.look("r2 r3", 5)
    rig.operators.answer(FALLEN)
    await rig.until(lambda: rig.ended == {"done": 1})
    assert ('"act":"fallbacks"' in caplog.text) is is_told


async def test_an_attempt_that_is_not_wanted_any_more_is_given_up(rig: Rig) -> None:
    await rig.look("r2 r3", 5)
    assert rig.operators.begun == 1
    await rig.look("r2 r3 r4")
    await rig.until(lambda: rig.ended == {"given-up": 1})
    assert rig.operators.closed == 1
    for _ in range(5):
        await rig.look("r2 r3")
        assert rig.member.switches.waits == ""
    assert rig.operators.begun == 2, "it need not rest"


async def test_where_it_has_come_to_both_the_change_is_taken_back_instead(rig: Rig) -> None:
    await rig.look("r2 r3", 5)
    await rig.member.configured.follow(BOTH)
    await rig.look("r2 r3 r4", 3)
    assert (rig.operators.begun, rig.ended) == (1, {})
    await rig.look("r2 r3 r4")
    await rig.until(lambda: rig.ended == {"given-up": 1})
    await rig.look("r2 r3 r4", 2)
    assert rig.operators.begun == 2
    back = settled(joint(FALLEN, with_states(FALLEN, {"queue/jobs": False})))
    rig.operators.answer(back)
    await rig.until(lambda: rig.ended == {"given-up": 1, "done": 1})


@pytest.mark.parametrize(
    ("end", "outcome", "words"),
    [
        (
            RefusedByReplicas("no scope", definite=True),
            "refused",
            "other replicas refuse the switch: no scope",
        ),
        (Unavailable("no quorum", definite=True), "given-up", "the switch came to nothing: no quorum"),
        (BadCluster("it was taken back"), "given-up", "the switch came to nothing: it was taken back"),
        (FIRST, "given-up", "somebody else has changed the configuration meanwhile"),
        (TimeoutError(), "given-up", "the switch has not come to its end in time"),
        (ZeroDivisionError(), "given-up", "the switch met an error of its own"),
    ],
)
async def test_what_came_to_nothing_is_told_and_tried_again_after_a_rest(
    rig: Rig, caplog: pytest.LogCaptureFixture, end: Any, outcome: str, words: str
) -> None:
    await rig.look("r2 r3", 5)
    rig.operators.answer(end)
    await rig.until(lambda: rig.ended == {outcome: 1})
    await rig.look("r2 r3", int(REST_S))
    assert rig.operators.begun == 1
    waits = rig.member.switches.waits
    assert waits.startswith("queue/jobs falls back: r4 is down; ")
    assert words in waits
    assert caplog.text.count(waits) == 1, "once, while it lasts"
    await rig.look("r2 r3", 2)
    assert rig.operators.begun == 2
    await rig.look("r2 r3 r4", 2)
    assert rig.member.switches.waits == "", "nothing is due any more"


async def test_an_attempt_has_a_deadline(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ATTEMPT_S", 0.01 - FIRST.memory_s)
    await rig.look("r2 r3", 5)
    await rig.until(lambda: rig.ended == {"given-up": 1})


async def test_each_step_of_a_switch_may_put_its_deadline_off(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Todo] = []

    async def run(operators: Scripted, steps: Steps) -> ClusterDocument:
        next(steps)
        steps.send(Looked(Failed("unavailable", "no quorum", definite=True), FIRST))
        steps.close()
        return await operators.end

    monkeypatch.setattr(Scripted, "run", run)
    monkeypatch.setattr(module, "put_off", lambda _limit, _seconds, todo, _answer: heard.append(todo))
    await rig.look("r2 r3", 5)
    await rig.until(lambda: heard == [Look()])


async def test_the_deadline_of_a_switch_begins_anew_with_each_object_that_is_carried() -> None:
    """There may be any number of them, and another attempt would carry all again."""
    failed = Failed("unavailable", "no quorum", definite=True)
    some, none = (Done(0, "Carry/Ok", frozenset()), failed), (failed,)
    async with asyncio.timeout(10.0) as limit:
        begun_s = limit.when()
        assert begun_s is not None
        for todo, answer in ((CarryAll((Carry("queue/a"),)), none), (Wait(1.0), None)):
            put_off(limit, 100.0, todo, answer)
            await asyncio.sleep(0)
            assert limit.when() == begun_s
        put_off(limit, 100.0, CarryAll((Carry("queue/a"), Carry("queue/b"))), some)
        later_s = limit.when()
        assert later_s is not None
        assert later_s >= begun_s + 90.0


async def test_what_cannot_be_switched_is_told(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    await rig.look("r2", 6)
    assert "it cannot be switched now: live members do not hold all quorums" in rig.member.switches.waits
    assert caplog.text.count("it cannot be switched now") == 1
    assert rig.operators.begun == 0


async def test_without_the_right_it_says_so_at_once_and_once(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.may_change = False
    await rig.look("r2 r3 r4")
    assert rig.member.switches.waits == NO_RIGHT
    await rig.look("r2 r3", 30)
    assert rig.operators.begun == 0
    assert caplog.text.count(NO_RIGHT) == 1
    rig.may_change = True
    await rig.look("r2 r3")
    assert (rig.operators.begun, rig.member.switches.waits) == (1, "")


async def test_who_does_not_vote_and_who_has_no_standing_rule_does_nothing(rig: Rig) -> None:
    rig.may_change = False
    rig.member.lost = "it has lost its store"
    await rig.look("r2 r3", 10)
    assert rig.member.switches.waits == ""
    rig.member.lost = None
    await rig.member.configured.follow(settled(joint(FIRST, PLAIN)))
    await rig.look("r2 r3", 10)
    assert rig.member.switches.waits == ""


async def test_it_looks_by_itself(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROUND_S", 0.001)
    rig.may_change = False
    rig.switching.start()
    await rig.until(lambda: rig.member.switches.waits == NO_RIGHT)


@pytest.mark.parametrize(("document", "is_due"), [(FIRST, True), (PLAIN, False)])
async def test_who_is_live_is_asked_often_where_quorums_go_by_it(
    tmp_path: Path, document: ClusterDocument, is_due: bool
) -> None:
    member = Member(open_folder(tmp_path, document, "r1"))
    watch = Watch(member, cast(Any, None))
    told = await member.announcement()
    watch._told["r2"] = told
    watch._asked_s["r2"] = time.monotonic() - announcer.TELL_S
    assert watch._is_due("r2", told) is is_due
    await asyncio.to_thread(member.close)


@pytest.mark.parametrize(
    ("scopes", "expected"), [("replica", False), ("replica,admin", True), ("write,admin", True)]
)
def test_the_right_is_the_own_tokens_as_the_own_list_has_it(scopes: str, expected: bool) -> None:
    sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"  # Of the text: test.
    access = from_text(f"scopes={scopes} sha256={sha256}", "test")
    assert access.may_change is expected
    assert not from_text(f"scopes=admin sha256={sha256}", "another").may_change
    assert not from_text(f"scopes=admin sha256={sha256}", None).may_change
    assert nobody_asked().may_change
    assert one_token("test").may_change
