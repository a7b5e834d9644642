"""Whose turn it is to have a dictionary listed: it waits in vain, its caller goes, it is over."""

import asyncio
from typing import Any

import pytest

from quorate.adts.log import Value
from quorate.api_specs.limits import LISTINGS_MAX
from quorate.client_sdk.protocol.core.values import Done, Listed
from quorate.replica.api.listings import Listing
from quorate.replica.http.fair_queue import Slots
from quorate.replica.http.problems import Refusal

FOUND = {"a": Value("1"), "b": Value("2")}


class Caller:
    """Asks for a listing; `sent` is what it was answered."""

    def __init__(self) -> None:
        self.has_gone = asyncio.Event()
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        await self.has_gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def ask(self, listing: Listing) -> None:
        await listing({"type": "http"}, self.receive, self.send)


class Lists:
    """Lists when it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.begun = 0
        self.ended = 0

    async def run(self) -> Done:
        self.begun += 1
        try:
            await self.may.wait()
        finally:
            self.ended += 1
        return Done(Listed(FOUND), "Items/Ok", frozenset({"r1"}))


async def turns_of_the_loop() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_one_at_a_time_and_the_next_when_it_is_sent() -> None:
    async def ask() -> None:
        slots, lists, callers = Slots(1), Lists(), [Caller(), Caller()]
        asking = [
            asyncio.ensure_future(caller.ask(Listing(slots, None, lists.run, 30.0))) for caller in callers
        ]
        await turns_of_the_loop()
        assert lists.begun == 1
        lists.may.set()
        await asyncio.gather(*asking)
        assert lists.begun == 2
        for caller in callers:
            assert caller.sent[-1]["body"] == b'{"size":2,"items":{"a":1,"b":2}}'

    asyncio.run(ask())


def test_who_goes_away_leaves_its_turn_to_others() -> None:
    async def ask() -> None:
        slots, lists, callers = Slots(1), Lists(), [Caller(), Caller(), Caller()]
        asking = [
            asyncio.ensure_future(caller.ask(Listing(slots, None, lists.run, 30.0))) for caller in callers
        ]
        await turns_of_the_loop()
        for caller in callers[:2]:  # One that is under way, and one that waits.
            caller.has_gone.set()
        await asyncio.gather(*asking[:2])
        await turns_of_the_loop()
        assert (lists.begun, lists.ended) == (2, 1)
        lists.may.set()
        await asking[2]
        assert [len(caller.sent) for caller in callers] == [0, 0, 2]
        await slots.take("another", 0.01)

    asyncio.run(ask())


def test_who_waits_in_vain_is_told_so() -> None:
    async def ask() -> None:
        slots, lists = Slots(0), Lists()
        with pytest.raises(Refusal) as refused:
            await Caller().ask(Listing(slots, None, lists.run, 0.01))
        assert refused.value.problem.name == "overloaded"
        assert lists.begun == 0
        with pytest.raises(TimeoutError):
            await slots.take("another", 0.01)

    asyncio.run(ask())


def test_one_caller_leaves_a_listing_to_another() -> None:
    async def ask() -> None:
        slots, lists = Slots(LISTINGS_MAX), Lists()
        callers = [(Caller(), whose) for whose in ("many", "many", "other")]
        asking = [
            asyncio.ensure_future(caller.ask(Listing(slots, whose, lists.run, 30.0)))
            for caller, whose in callers
        ]
        await turns_of_the_loop()
        assert lists.begun == 2, "one of the one, and that of the other"
        lists.may.set()
        await asyncio.gather(*asking)
        assert lists.begun == 3

    asyncio.run(ask())
