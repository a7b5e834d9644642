"""A link goes on to another configuration: what belongs to the one before ends there, and who is in another one is silent for now."""

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest
from msgspec.structs import replace

from quorate.api_specs.limits import SUMMARY_BYTES_MAX, Limits
from quorate.api_specs.messages import Batch, BatchReply, Collect, Commit, Request, Scan
from quorate.client_sdk.protocol.configurations import settled
from quorate.client_sdk.protocol.core.values import Answer, Send, Unanswered
from quorate.client_sdk.transport import link
from quorate.client_sdk.transport.link import Link
from quorate.client_sdk.transport.ports import Done, GiveUp, Transport
from quorate.timestamps.clock import Now
from tests.unit.client_sdk.scripted import ManualClock, changed, document_of, lazy, reply_to

SMALL = Limits(body_bytes_max=1000, value_bytes_max=100, page_bytes_max=100)
FIRST = document_of("r1", "r2", "r3", limits=SMALL)
BOTH = changed(FIRST)
AFTER = settled(BOTH)
DOWN = Unanswered("r1: refused connection", definite=True)
TURNS: Final = 10


class ByHand(Transport):
    """Keeps what it is to send; the test answers."""

    def __init__(self) -> None:
        self.sent: list[Batch] = []
        self._tell: list[Done[BatchReply | Unanswered]] = []

    def post(
        self, replica: str, batch: Batch, timeout_s: float, done: Done[BatchReply | Unanswered]
    ) -> GiveUp:
        self.sent.append(batch)
        self._tell.append(done)
        return lambda: None

    async def aclose(self) -> None:
        """See Transport."""

    def answer(self, number: int, answer: BatchReply | Unanswered | None = None) -> None:
        """What came of that batch; a whole reply where nothing else is given."""
        self._tell[number](answer or reply_to("r1", self.sent[number]))


LONG = link.SHORT_BYTES + 1


class Rig:
    """A link to r1 with everything around it in hand."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.transport = ByHand()
        self.told: list[tuple[tuple[int, ...], Answer]] = []
        self.heard: list[str] = []
        self.link = Link("r1", FIRST, self.transport, self.clock, self._deliver, self.heard.append)

    def _deliver(self, replica: str, tokens: Sequence[int], answer: Answer, sent: Now, now: Now) -> None:
        self.told.append((tuple(tokens), answer))

    def batches(self) -> list[tuple[str, int]]:
        """Of each: the hash that it names, and how many requests it has."""
        return [(batch.cluster, len(batch.requests)) for batch in self.transport.sent]

    def requests(self) -> list[list[type[Request]]]:
        """Of each batch: what kinds of requests it has."""
        return [[type(each) for each in batch.requests] for batch in self.transport.sent]

    async def crowd(self, name_bytes: int = 1) -> None:
        """As many batches are under way as may be, each of one request of this length."""
        for token in range(link.IN_FLIGHT_MAX):
            self.link.put(send(1000 + token, name_bytes=name_bytes))
            await settle()


async def settle() -> None:
    """Let everything that can run now run."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


def send(token: int, *, name_bytes: int = 1, size: int = 1, repeats: int = 0) -> Send:
    """One of so many requests."""
    requests = tuple(Collect("register/" + "x" * name_bytes) for _ in range(size))
    return Send("r1", requests, token, repeats=repeats)


def page(token: int) -> Send:
    """One that asks for a page of a listing."""
    return Send("r1", (Scan("dictionary/users/", "", 200),), token)


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.mark.parametrize(
    ("waiting", "name_bytes"),
    [(send(1), 1), (send(1, name_bytes=LONG), LONG), (lazy("r1"), 1)],
    ids=["short", "long", "lazy"],
)
async def test_what_waits_at_a_change_is_dropped_and_nobody_hears_of_it(
    rig: Rig, waiting: Send, name_bytes: int
) -> None:
    await rig.crowd(name_bytes)
    rig.link.put(waiting)
    await settle()
    rig.link.follow(BOTH)
    rig.transport.answer(0)
    rig.transport.answer(1)
    rig.link.put(send(2))
    await settle()
    assert rig.batches() == [(FIRST.hash, 1)] * link.IN_FLIGHT_MAX + [(BOTH.hash, 1)]
    rig.transport.answer(2)
    assert [tokens for tokens, _ in rig.told] == [(2,)]


async def test_lazy_messages_that_come_after_a_change_leave_as_before(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timer of the one that was dropped runs still."""
    monkeypatch.setattr(link, "LAZY_WAIT_S", 0.001)
    rig.link.put(lazy("r1", 1))
    rig.link.follow(BOTH)
    rig.link.put(lazy("r1", 2))
    async with asyncio.timeout(30):
        while not rig.transport.sent:
            await asyncio.sleep(0.001)
    assert [batch.requests for batch in rig.transport.sent] == [(Commit("register/lazy2"),)]


async def test_what_is_done_is_told_before_what_is_asked_now(rig: Rig) -> None:
    """A replica that has room for one more takes what others have stored, and refuses what is new, as they do."""
    rig.link.put(lazy("r1", 1))
    rig.link.put(send(1))
    rig.link.put(lazy("r1", 2))
    await settle()
    assert rig.requests() == [[Commit, Commit, Collect]]
    rig.transport.answer(0)
    assert [tokens for tokens, _ in rig.told] == [(0, 0, 1)]


async def test_what_is_long_shares_no_batch_with_what_is_short_and_little_with_others(rig: Rig) -> None:
    half = link.LONG_BATCH_BYTES // 2
    for token in range(3):
        rig.link.put(send(token, name_bytes=half))
    rig.link.put(send(3))
    await settle()
    assert rig.batches() == [(FIRST.hash, 1)] * 3, "no two of half a batch and a little more fit into one"
    assert [len(repr(batch.requests)) > half for batch in rig.transport.sent] == [False, True, True]
    rig.transport.answer(0)
    assert [tokens for tokens, _ in rig.told] == [(3,)]
    rig.transport.answer(1)
    await settle()
    assert rig.batches() == [(FIRST.hash, 1)] * 4


async def test_pages_of_listings_go_by_themselves_and_one_at_a_time(rig: Rig) -> None:
    for token in (1, 2):
        rig.link.put(page(token))
    rig.link.put(send(3))
    await settle()
    rig.link.put(send(4))
    await settle()
    assert rig.requests() == [[Collect], [Scan], [Collect]], "two batches, and a page beside them"
    rig.link.put(send(5))
    rig.transport.answer(0)
    await settle()
    assert rig.requests()[3:] == [[Collect]], "what is no page waits for no page"
    rig.transport.answer(1)
    assert rig.requests()[4:] == [[Scan]]
    assert [tokens for tokens, _ in rig.told] == [(3,), (1,)]


async def test_a_replica_that_is_down_is_asked_once_be_it_for_a_page(rig: Rig) -> None:
    rig.link.put(send(1))
    await settle()
    rig.transport.answer(0, DOWN)
    rig.clock.mono_s += link.BACKOFF_MAX_S
    rig.link.put(page(2))
    rig.link.put(send(3))
    await settle()
    assert len(rig.transport.sent) == 2
    rig.transport.answer(1)
    assert sorted(rig.requests()[1:], key=str) == [[Collect], [Scan]]


async def test_what_was_declined_at_a_change_is_answered_to_nobody(rig: Rig) -> None:
    rig.link.put(send(1))
    await settle()
    rig.transport.answer(0, DOWN)
    rig.link.put(send(2))
    rig.link.follow(BOTH)
    await settle()
    assert [tokens for tokens, _ in rig.told] == [(1,)]
    rig.link.put(send(3))
    await settle()
    assert [tokens for tokens, _ in rig.told] == [(1,), (3,)], "the replica is down as before"


async def test_a_repeat_in_vain_at_a_change_is_answered_to_nobody(rig: Rig) -> None:
    await rig.crowd()
    rig.link.put(send(1))
    rig.link.put(send(2, repeats=1))
    rig.link.follow(BOTH)
    await settle()
    assert rig.told == []


async def test_a_repeat_of_what_a_change_dropped_is_sent(rig: Rig) -> None:
    await rig.crowd()
    rig.link.put(send(1))
    rig.link.follow(BOTH)
    rig.link.put(send(2, repeats=1))
    await settle()
    rig.transport.answer(0)
    assert rig.batches()[2:] == [(BOTH.hash, 1)]
    assert rig.told == []


async def test_what_a_change_dropped_takes_no_room(rig: Rig) -> None:
    async def declined() -> int:
        before = len(rig.told)
        for token in range(1, 51):
            rig.link.put(send(token, name_bytes=SUMMARY_BYTES_MAX // 8))
        await settle()
        return sum(len(tokens) for tokens, _ in rig.told[before:])

    await rig.crowd()
    first = await declined()
    assert 0 < first < 50
    rig.link.follow(BOTH)
    assert await declined() == first


OLD_ANSWERS = {
    "whole": None,
    "cut off": reply_to("r1", Batch(FIRST.hash, send(0).requests)),
    "refused": Unanswered("r1: other cluster file", refused=True, definite=True, epoch=BOTH.number),
    "silent": Unanswered("r1: in a later configuration", definite=True, epoch=AFTER.number),
    "down": DOWN,
}


@pytest.mark.parametrize("answer", OLD_ANSWERS.values(), ids=OLD_ANSWERS.keys())
async def test_an_answer_to_a_batch_of_the_configuration_before_is_told_to_nobody(
    rig: Rig, answer: BatchReply | Unanswered | None
) -> None:
    rig.link.put(send(1, size=3))
    await settle()
    rig.link.follow(BOTH)
    rig.transport.answer(0, answer)
    await settle()
    assert rig.told == []
    assert rig.batches() == [(FIRST.hash, 3)], "the rest of a reply that was cut off goes no more"
    rig.clock.mono_s += link.BACKOFF_MAX_S
    rig.link.put(send(2))
    await settle()
    assert rig.batches()[1:] == [(BOTH.hash, 1)]
    rig.transport.answer(1)
    assert [tokens for tokens, _ in rig.told] == [(2,)]


async def test_the_rest_of_a_reply_that_was_cut_off_before_a_change_goes_no_more(rig: Rig) -> None:
    """It waits, in parts, since as much is under way as may be."""
    for token in range(1, 11):
        rig.link.put(send(token))
    await settle()
    rig.transport.answer(0, reply_to("r1", Batch(FIRST.hash, send(0).requests)))
    assert rig.batches() == [(FIRST.hash, 10), (FIRST.hash, 2), (FIRST.hash, 2)]
    rig.link.follow(BOTH)
    rig.transport.answer(1)
    rig.transport.answer(2)
    await settle()
    assert len(rig.transport.sent) == 3
    assert [tokens for tokens, _ in rig.told] == [(1,)]


async def test_what_waits_under_the_new_configuration_goes_as_soon_as_a_batch_of_before_is_answered(
    rig: Rig,
) -> None:
    await rig.crowd()
    rig.link.follow(BOTH)
    rig.link.put(send(1))
    await settle()
    assert len(rig.transport.sent) == link.IN_FLIGHT_MAX
    rig.transport.answer(0)
    assert rig.batches()[link.IN_FLIGHT_MAX :] == [(BOTH.hash, 1)]


@pytest.mark.parametrize(
    ("epoch", "refused", "heard"),
    [
        (None, True, []),
        (FIRST.number, False, []),
        (BOTH.number, True, []),
        (AFTER.number, False, ["r1"]),
    ],
)
async def test_who_is_in_another_configuration_is_silent_and_a_later_one_is_heard_of(
    rig: Rig, epoch: int | None, refused: bool, heard: list[str]
) -> None:
    rig.link.follow(BOTH)
    rig.link.put(send(1))
    await settle()
    answer = Unanswered("r1: other cluster file", refused=True, definite=True, epoch=epoch)
    rig.transport.answer(0, answer)
    assert rig.told == [((1,), replace(answer, refused=refused))]
    assert rig.heard == heard
    rig.link.put(send(2))
    await settle()
    assert len(rig.transport.sent) == 2, "it is not taken for one that is down"


async def test_who_is_where_this_front_end_has_come_meanwhile_is_not_heard_of(rig: Rig) -> None:
    rig.link.put(send(1))
    await settle()
    rig.link.follow(BOTH)
    rig.transport.answer(0, Unanswered("r1: other", refused=True, definite=True, epoch=BOTH.number))
    assert rig.heard == []
