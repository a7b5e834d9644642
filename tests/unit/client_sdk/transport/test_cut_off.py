"""A replica answers the first requests of a batch alone: the rest is sent again, and nobody hears of it."""

import asyncio
from collections.abc import AsyncIterator
from itertools import chain, repeat

import pytest
import pytest_asyncio
from msgspec.structs import replace

from quorate.api_specs.limits import DEFAULTS
from quorate.api_specs.messages import Batch, BatchReply, Collect
from quorate.client_sdk.protocol.core.values import Answer, Send, Unanswered
from tests.unit.client_sdk.scripted import Behaviour, lazy, reply_to
from tests.unit.client_sdk.transport.test_driver import DOWN, Rig, settle


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    await rig.driver.aclose()


def cut_off(after: int, *incarnations: str) -> Behaviour:
    """Answers so many requests of each batch, each time as the next of the incarnations, the last of which stays."""
    names = chain(incarnations[:-1], repeat(incarnations[-1] if incarnations else "one"))

    def behave(replica: str, batch: Batch) -> BatchReply:
        whole = reply_to(replica, batch)
        return replace(whole, replies=whole.replies[:after], incarnation=next(names))

    return behave


def round_to_r1(size: int) -> Send:
    """One send of so many requests, of which the caller hears nothing."""
    return Send("r1", tuple(Collect(f"register/x{number}") for number in range(size)), 1000)


async def test_what_a_cut_off_reply_leaves_goes_with_the_next_batch(rig: Rig) -> None:
    rig.transport.behaviour = cut_off(3)
    await asyncio.gather(*(rig.run("r1") for _ in range(8)))
    assert rig.batches_to("r1") == [8, 5, 2]
    assert [len(tokens) for _, tokens, _ in rig.machine.answers] == [3, 3, 2]


async def test_while_replies_are_cut_off_little_is_sent_at_a_time(rig: Rig) -> None:
    rig.transport.behaviour = cut_off(3)
    await asyncio.gather(*(rig.run("r1") for _ in range(30)))
    sizes = rig.batches_to("r1")
    assert sizes[0] == 30
    assert max(sizes[1:]) == 6, "twice what was answered"
    rig.transport.behaviour = reply_to
    for _ in range(5):
        await rig.run("r1")
    before = len(rig.batches_to("r1"))
    await asyncio.gather(*(rig.run("r1") for _ in range(30)))
    assert rig.batches_to("r1")[before:] == [30], "and more again once all is answered"


async def test_what_still_waits_to_be_sent_is_not_sent_twice(rig: Rig) -> None:
    rig.transport.stuck["r1"] = asyncio.Event()
    callers = []
    for _ in range(3):  # Two batches are under way, and the third one waits.
        callers.append(asyncio.create_task(rig.run("r1")))
        await settle()
    rig.machine.lazies = [
        Send("r1", (Collect("register/x"),), 1000, repeats=3),
        Send("r1", (Collect("register/x"),), 2000, repeats=1),
    ]
    callers.append(asyncio.create_task(rig.run("r1")))
    await settle()
    [(_, tokens, answer)] = rig.machine.answers
    assert tokens == (1000,)
    assert answer == Unanswered("r1: no answer in time", definite=True), "nothing waits but for that"
    rig.transport.stuck["r1"].set()
    await asyncio.gather(*callers)
    assert rig.batches_to("r1") == [1, 1, 3], (
        "the third, the repeat of the first, which may be lost, and the fourth"
    )


async def test_a_lazy_send_that_a_cut_off_reply_left_keeps_no_other_from_being_sent(rig: Rig) -> None:
    rig.transport.behaviour = cut_off(1)
    free = rig.transport.stuck["r1"] = asyncio.Event()
    rig.machine.lazies = [lazy("r1", number) for number in range(6)]
    callers = [asyncio.create_task(rig.run("r1"))]
    await settle()
    free.set()
    for _ in range(10):
        await asyncio.sleep(0)
        callers.append(asyncio.create_task(rig.run("r1")))
    await asyncio.gather(*callers)
    assert not [answer for _, _, answer in rig.machine.answers if isinstance(answer, Unanswered)]


async def test_a_send_that_was_answered_in_parts_is_delivered_whole(rig: Rig) -> None:
    rig.transport.behaviour = cut_off(3)
    rig.machine.lazies = [round_to_r1(7)]
    await rig.run("r1")
    assert rig.batches_to("r1") == [8, 5, 2]
    answers = [(tokens, answer) for _, tokens, answer in rig.machine.answers if tokens]
    (tokens, answer) = answers[-1]
    assert tokens.count(1000) == 7
    assert isinstance(answer, BatchReply)
    assert len(answer.replies) == len(tokens)


def answers_of(rig: Rig, token: int) -> list[Answer]:
    """What came of the send under that token."""
    return [answer for _, tokens, answer in rig.machine.answers if token in tokens]


async def test_a_send_answered_in_parts_by_two_incarnations_is_lost_and_may_be_done(rig: Rig) -> None:
    """Sent again under its token, it might be refused, or not reach the replica: then it would count as certainly not done, though
    the first incarnation has done a part of it."""
    rig.transport.behaviour = cut_off(3, "one", "two")
    rig.machine.lazies = [round_to_r1(5)]
    await rig.run("r1")
    await settle()
    assert rig.batches_to("r1") == [6, 3]
    [answer] = answers_of(rig, 1000)
    assert isinstance(answer, Unanswered)
    assert not answer.definite
    assert not answer.refused, "it is to be asked again"


@pytest.mark.parametrize("clock", ["mono_s", "suspended_s"])
@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize(("paused_s", "is_lost"), [(1.0, False), (DEFAULTS.deadline_s_max + 1, True)])
async def test_a_part_that_would_be_too_old_by_itself_is_lost(
    rig: Rig, paused_s: float, place: int, clock: str, *, is_lost: bool
) -> None:
    """As where the process was stopped before or after the second part was asked for, or the machine was suspended: what the replica showed
    then may be deleted, and forgotten, since."""
    behave = cut_off(3)

    def paused(replica: str, batch: Batch) -> BatchReply | Unanswered:
        if len(rig.batches_to("r1")) == place:
            setattr(rig.clock, clock, getattr(rig.clock, clock) + paused_s)
        return behave(replica, batch)

    rig.transport.behaviour = paused
    rig.machine.lazies = [round_to_r1(5)]
    await rig.run("r1")
    await settle()
    assert rig.batches_to("r1") == [6, 3]
    [answer] = answers_of(rig, 1000)
    assert isinstance(answer, Unanswered) is is_lost


@pytest.mark.parametrize("is_asked_again", [True, False])
async def test_a_send_answered_in_part_is_not_certainly_undone(rig: Rig, *, is_asked_again: bool) -> None:
    behave, met = cut_off(3), 0

    def failing(replica: str, batch: Batch) -> BatchReply | Unanswered:
        nonlocal met
        met += 1
        if met == 1 or (met == 2 and not is_asked_again):
            return behave(replica, batch)
        return DOWN

    rig.transport.behaviour = failing
    rig.machine.lazies = [round_to_r1(7)]
    await rig.run("r1")
    told = {
        token: answer.definite
        for _, tokens, answer in rig.machine.answers
        if isinstance(answer, Unanswered)
        for token in tokens
    }
    assert told[1000] is False
    assert all(definite for token, definite in told.items() if token != 1000)


async def test_no_reply_at_all_is_no_answer(rig: Rig) -> None:
    rig.transport.behaviour = cut_off(0)
    await rig.run("r1")
    [(_, _, answer)] = rig.machine.answers
    assert isinstance(answer, Unanswered)
