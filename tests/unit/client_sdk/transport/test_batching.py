"""Which enqueues go together, and what each of their callers hears."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Append
from quorate.client_sdk.errors import Closed
from quorate.client_sdk.protocol.core.values import Done, Enqueue, Outcome
from quorate.client_sdk.transport.batching import Together
from quorate.client_sdk.transport.driver import Driver, new_site
from quorate.timestamps.timestamp import make
from tests.unit.client_sdk.scripted import ManualClock, ScriptedMachine, document_of

DONE = Done(None, "Enq/Ok", frozenset({"r1"}))
LIMITS = Limits(body_bytes_max=4000, value_bytes_max=1000, batch_items_max=4)


def enqueue(*values: str, queue: str = "queue/q") -> Enqueue:
    """An enqueue of JSON text."""
    return Enqueue(queue, tuple(map(Value, values)))


class Runs:
    """Notes what is run; each run ends when it is told to."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, tuple[Value, ...], float]] = []
        self.cancelled = 0
        self.end: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    async def __call__(self, operation: Enqueue, deadline_s: float, traced: Sequence[Any]) -> Outcome:
        del traced
        self.begun.append((operation.object, operation.values, deadline_s))
        try:
            return await asyncio.shield(self.end)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


def begin(together: Together, *operations: Enqueue, deadline_s: float = 5) -> list[asyncio.Task[Outcome]]:
    """Callers, all in this turn of the loop."""
    return [asyncio.create_task(together.enqueue(each, deadline_s)) for each in operations]


async def terms() -> None:
    """A few turns of the loop: callers begin, then their group, then its task."""
    for _ in range(4):
        await asyncio.sleep(0)


async def test_enqueues_of_one_turn_are_one_in_the_order_of_their_callers() -> None:
    runs = Runs()
    callers = begin(Together(runs, LIMITS), enqueue("1"), enqueue("2", "3"), enqueue("4"))
    await terms()
    assert runs.begun == [("queue/q", ("1", "2", "3", "4"), 5)]
    runs.end.set_result(DONE)
    assert await asyncio.gather(*callers) == [DONE] * 3


async def test_what_comes_later_does_not_wait_for_them() -> None:
    runs = Runs()
    together = Together(runs, LIMITS)
    callers = begin(together, enqueue("1"))
    await terms()
    callers += begin(together, enqueue("2"))
    await terms()
    assert [values for _, values, _ in runs.begun] == [("1",), ("2",)]
    runs.end.set_result(DONE)
    await asyncio.gather(*callers)


async def test_other_queues_and_other_deadlines_go_alone() -> None:
    runs = Runs()
    together = Together(runs, LIMITS)
    callers = begin(together, enqueue("1"), enqueue("2", queue="queue/other"))
    callers += begin(together, enqueue("3"), deadline_s=6)
    await terms()
    assert runs.begun == [("queue/q", ("1",), 5), ("queue/other", ("2",), 5), ("queue/q", ("3",), 6)]
    runs.end.set_result(DONE)
    await asyncio.gather(*callers)


async def test_no_more_go_together_than_one_message_holds() -> None:
    runs = Runs()
    long = "9" * 1000
    callers = begin(
        Together(runs, LIMITS), enqueue("1", "2", "3"), enqueue("4", "5"), enqueue(long), enqueue(long)
    )
    await terms()
    assert [values for _, values, _ in runs.begun] == [("1", "2", "3"), ("4", "5", long), (long,)]
    runs.end.set_result(DONE)
    await asyncio.gather(*callers)


async def test_small_values_weigh_what_their_entries_do() -> None:
    limits = replace(LIMITS, batch_items_max=1000)
    runs = Runs()
    callers = begin(Together(runs, limits), *(enqueue("1") for _ in range(100)))
    await terms()
    stamp = make(2**40, 2**10, new_site())
    for _, values, _ in runs.begun:
        append = Append("queue/q", tuple(Entry(stamp, stamp, value) for value in values), "first")
        assert len(values) > 1
        assert len(msgspec.msgpack.encode(append)) < limits.body_bytes_max / 2
    runs.end.set_result(DONE)
    await asyncio.gather(*callers)


async def test_who_goes_away_leaves_the_others_to_it() -> None:
    runs = Runs()
    gone, stays = begin(Together(runs, LIMITS), enqueue("1"), enqueue("2"))
    await terms()
    gone.cancel()
    await terms()
    assert runs.cancelled == 0
    runs.end.set_result(DONE)
    assert await stays == DONE


async def test_what_nobody_waits_for_any_more_is_cancelled() -> None:
    runs = Runs()
    callers = begin(Together(runs, LIMITS), enqueue("1"), enqueue("2"))
    await terms()
    for caller in callers:
        caller.cancel()
    await terms()
    assert runs.cancelled == 1


async def test_who_goes_away_at_once_sends_nothing() -> None:
    runs = Runs()
    gone, stays = begin(Together(runs, LIMITS), enqueue("1"), enqueue("2"))
    await asyncio.sleep(0)
    gone.cancel()
    await terms()
    assert [values for _, values, _ in runs.begun] == [("2",)]
    runs.end.set_result(DONE)
    assert await stays == DONE


async def test_an_error_is_everybodys() -> None:
    runs = Runs()
    callers = begin(Together(runs, LIMITS), enqueue("1"), enqueue("2"))
    await terms()
    runs.end.set_exception(Closed("closed", definite=False))
    assert [type(each) for each in await asyncio.gather(*callers, return_exceptions=True)] == [Closed, Closed]


async def test_a_driver_that_is_closed_tells_those_who_were_about_to_begin() -> None:
    class Nowhere:
        async def exchange(self, *_: object) -> None:
            raise AssertionError

        async def aclose(self) -> None:
            pass

    driver = Driver(
        document_of("r1"),
        transport=Nowhere(),  # type: ignore[arg-type]
        site="s",
        seed=1,
        clock=ManualClock(),
        machine=ScriptedMachine(),
    )
    caller = asyncio.create_task(driver.run(enqueue("1"), 5))
    await asyncio.sleep(0)
    await driver.aclose()
    with pytest.raises(Closed) as caught:
        await caller
    assert caught.value.definite
