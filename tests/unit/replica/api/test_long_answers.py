"""Long answers leave one in each turn of the loop: a thousand callers may have read the same megabyte in one round."""

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from quorate.adts.log import Dead, Entry, Leased, Value
from quorate.adts.plain_class import PlainClass
from quorate.adts.specification import EventClass
from quorate.api_specs.limits import Limits
from quorate.client_sdk.protocol.core.counters import Counts
from quorate.client_sdk.protocol.core.values import (
    Dequeue,
    Done,
    Enqueue,
    Invoke,
    LeaseBook,
    Operation,
    Outcome,
    Peek,
    QueueSize,
    Read,
    ReadLeases,
    Write,
)
from quorate.replica.api import operations as running
from quorate.replica.api.answers import length_of
from quorate.replica.api.operations import Operations
from quorate.replica.http.problems import Refusal
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import make
from tests.support.own_types import Cart

CART = PlainClass(Cart)

T = make(1, 0, "f")
ENTRY = Entry(T, T, Value('"four"'))


@pytest.mark.parametrize(
    ("result", "length"),
    [
        (None, 0),
        (True, 0),
        (Value("[1]"), 3),
        ((Value("[1]"), Value("22")), 5),
        ((Leased(ENTRY, 1), Leased(ENTRY, 2)), 12),
        (LeaseBook((Leased(ENTRY, 1),), (Dead(ENTRY, "rejected"),)), 12),
    ],
)
def test_an_answer_is_as_long_as_the_values_in_it(result: object, length: int) -> None:
    assert length_of(result) == length


class _Reads:
    """A front end that has what it is asked for."""

    counts = Counts()

    def __init__(self, value: str) -> None:
        self._value = Value(value)

    async def run(
        self, operation: Operation, deadline_s: float, turn: object = None, asked: object = None
    ) -> Outcome:
        del operation, deadline_s
        return Done(self._value, EventClass("Read/Ok"), frozenset())

    def now(self) -> Now:
        return Now(0.0, 0)

    def hurry(self) -> None:
        """Nothing waits."""

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("characters", "together"), [(1_000_000, 1), (10, 20)])
async def test_of_many_who_read_a_long_value_one_hears_of_it_in_each_turn(
    characters: int, together: int
) -> None:
    operations = Operations(Limits(), lambda: None)
    operations.front_end = _Reads("x" * characters)  # type: ignore[assignment]
    heard: list[Any] = []

    async def read() -> None:
        heard.append(await operations.run(Read("register/r"), None))

    callers = asyncio.gather(*(read() for _ in range(20)))
    before, most = 0, 0
    while not callers.done():
        await asyncio.sleep(0)
        before, most = len(heard), max(most, len(heard) - before)
    await callers
    assert most == together


async def test_who_reads_a_short_value_does_not_wait_for_the_long_ones_of_another_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sixty acquires of 512 items that were decided together stood before the answers of all others."""
    caller: ContextVar[str] = ContextVar("caller")
    monkeypatch.setattr(running, "turn", caller.get)
    operations = Operations(Limits(), lambda: None)
    operations.front_end = _Reads("x" * 1_000_000)  # type: ignore[assignment]
    heard: list[str] = []

    async def write(name: str) -> None:
        caller.set(name)
        await operations.run(Write("register/r", Value("1")), None)
        heard.append(name)

    await asyncio.gather(*(write(name) for name in ["many"] * 20 + ["one"]))
    assert heard.index("one") < 3


class _Held(_Reads):
    """One whose reads go on when they are let go."""

    def __init__(self) -> None:
        super().__init__("1")
        self.begun = 0
        self.go_on = asyncio.Event()

    async def run(
        self, operation: Operation, deadline_s: float, turn: object = None, asked: object = None
    ) -> Outcome:
        self.begun += 1
        await self.go_on.wait()
        return await super().run(operation, deadline_s)


@pytest.mark.parametrize(
    ("operation", "bound", "most"),
    [
        (Read("register/r"), "PLACES_MAX", 24),
        (Write("register/r", Value("1")), "PLACES_MAX", 6),
        (Peek("queue/q"), "PLACES_MAX", 24),
        (QueueSize("queue/q"), "COUNTS_MAX", 6),
    ],
)
async def test_so_many_are_under_way_at_a_time_and_the_others_wait_within_their_deadlines(
    operation: Operation, bound: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, bound, most)
    operations, front_end = Operations(Limits(), lambda: None), _Held()
    operations.front_end = front_end  # type: ignore[assignment]
    patient = [asyncio.create_task(operations.run(operation, 20)) for _ in range(10)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert front_end.begun == 3
    with pytest.raises(Refusal) as caught:
        await operations.run(operation, 0.001)
    assert caught.value.problem.name == "overloaded"
    asyncio.get_running_loop().call_soon(front_end.go_on.set)
    assert [done.result for done in await asyncio.gather(*patient)] == ["1"] * 10
    assert front_end.begun == 10


@pytest.mark.parametrize(
    ("operation", "begun"),
    [
        (Enqueue("queue/q", (Value("1"),) * 1000), 8),
        (Enqueue("queue/q", (Value("1" * 1024 * 1024),)), 8),
        (Write("register/r", Value("1" * 1024 * 1024)), 8),
        (ReadLeases("queue/q"), 8),
        (Write("register/r", Value("[" * 60_000)), 4),
        (Enqueue("queue/q", (Value('{"":{}}' * 1000),) * 10), 8),
        (Invoke("cart/c", CART, CART.call("keep", [[[[]]] * 30_000])), 4),
        (Read("register/r"), 60),
        (Peek("queue/q"), 60),
        (Dequeue("queue/q", 1, 20.0), 300),
    ],
)
async def test_what_takes_longer_takes_more_places_and_what_waits_takes_none(
    operation: Operation, begun: int
) -> None:
    """1,400 small bodies, of a thousand items each, made others wait for seconds of the replica's processor's time; so did as many looks at
    dead letters, as many reads of values of a megabyte, and 300 values of 60 KB that are arrays in arrays."""
    operations, front_end = Operations(Limits(), lambda: None), _Held()
    operations.front_end = front_end  # type: ignore[assignment]
    asked = [asyncio.create_task(operations.run(operation, 20, 20)) for _ in range(300)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert begun <= front_end.begun <= 2 * begun
    front_end.go_on.set()
    await asyncio.gather(*asked)
