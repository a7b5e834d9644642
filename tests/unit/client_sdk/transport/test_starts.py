"""Which operations begin together, and what becomes of those that do not begin."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Append
from quorate.client_sdk.errors import Closed
from quorate.client_sdk.protocol.core.values import Enqueue, Operation, Peek, Read, Write
from quorate.client_sdk.protocol.front_end import NOT_BEGUN
from quorate.client_sdk.transport import starts
from quorate.client_sdk.transport.driver import Driver, new_site
from quorate.client_sdk.transport.starts import Start, Starts
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import make
from tests.unit.client_sdk.scripted import (
    ManualClock,
    ScriptedMachine,
    ScriptedTransport,
    asking,
    document_of,
)

NOW = Now(1.0, 2)
LIMITS = Limits(body_bytes_max=8000, value_bytes_max=1000, requests_max=4)


class Begun:
    """Notes what begins."""

    def __init__(self) -> None:
        self.groups: list[tuple[list[Operation], float]] = []

    def __call__(self, group: Sequence[Start], deadline_s: float, asked: Now) -> None:
        assert asked.wall_us == NOW.wall_us
        self.groups.append(([start.operation for start in group], deadline_s))


def reads(*names: str) -> list[Operation]:
    return [Read(f"register/{name}") for name in names]


async def groups(operations: Sequence[Operation], limits: Limits = LIMITS) -> list[int]:
    """How many of them begin together."""
    begun = Begun()
    made = Starts(begun, limits, lambda: NOW)
    for operation in operations:
        made.add(operation, 5)
    await asyncio.sleep(0)
    return [len(group) for group, _ in begun.groups]


async def test_those_of_one_turn_begin_together_and_later_ones_do_not_wait() -> None:
    begun = Begun()
    made = Starts(begun, LIMITS, lambda: NOW)
    for name in ("a", "b"):
        made.add(Read(f"register/{name}"), 5)
    await asyncio.sleep(0)
    made.add(Read("register/c"), 5)
    await asyncio.sleep(0)
    assert begun.groups == [(reads("a", "b"), 5), (reads("c"), 5)]


async def test_they_are_told_since_when_the_first_of_them_waits() -> None:
    told, times = list[tuple[int, Now]](), iter(range(100))
    made = Starts(
        lambda group, _, asked: told.append((len(group), asked)), LIMITS, lambda: Now(float(next(times)), 0)
    )
    for names in ("abcdef", "gh"):
        for operation in reads(*names):
            made.add(operation, 5)
        await asyncio.sleep(0)
    assert told == [(4, Now(1.0, 0)), (2, Now(1.0, 0)), (2, Now(2.0, 0))]


async def test_what_waits_while_the_process_is_stopped_is_not_begun() -> None:
    clock, transport = ManualClock(), ScriptedTransport()
    driver = Driver(document_of("r1"), transport=transport, site=new_site(), seed=1, clock=clock)
    running = asyncio.create_task(driver.run(Enqueue("queue/q", (Value("1"),), "key"), 5))
    asyncio.get_running_loop().call_soon(
        setattr, clock, "mono_s", 160.0
    )  # Behind what asks, before what begins.
    assert await running == NOT_BEGUN
    assert transport.batches == []
    await driver.aclose()


async def test_each_deadline_has_a_group_of_its_own() -> None:
    begun = Begun()
    made = Starts(begun, LIMITS, lambda: NOW)
    for name, deadline_s in (("a", 5), ("b", 6), ("c", 5)):
        made.add(Read(f"register/{name}"), deadline_s)
    await asyncio.sleep(0)
    assert begun.groups == [(reads("a", "c"), 5), (reads("b"), 6)]


async def test_no_more_begin_together_than_one_message_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await groups(reads(*"abcdefghij")) == [4, 4, 2]
    long = Write("register/r", Value("9" * 1500))
    small = Write("register/s", Value("1"))
    assert await groups([small, long, long, long, small]) == [3, 2]
    keyed = Enqueue("queue/q", (Value("9" * 700),) * 3, "key")
    assert await groups([keyed, keyed, small]) == [1, 2]
    monkeypatch.setattr(starts, "STARTS_MAX", 3)
    assert await groups(reads(*"abcde"), replace(LIMITS, requests_max=1000)) == [3, 2]


async def test_who_goes_away_before_is_not_begun() -> None:
    begun = Begun()
    made = Starts(begun, LIMITS, lambda: NOW)
    gone, _ = (made.add(operation, 5) for operation in reads("a", "b"))
    gone.caller.cancel()
    await asyncio.sleep(0)
    assert begun.groups == [(reads("b"), 5)]


class Rig:
    """A driver around a scripted machine."""

    def __init__(self) -> None:
        self.machine = ScriptedMachine()
        self.transport = ScriptedTransport()
        self.driver = Driver(
            document_of("r1"),
            transport=self.transport,
            site="s",
            seed=1,
            clock=ManualClock(),
            machine=self.machine,
        )


async def test_small_values_weigh_what_their_entries_do() -> None:
    begun = Begun()
    limits = replace(LIMITS, requests_max=1000)
    made = Starts(begun, limits, lambda: NOW)
    for _ in range(100):
        made.add(Enqueue("queue/q", (Value("1"),)), 5)
    await asyncio.sleep(0)
    stamp = make(2**40, 2**10, new_site())
    for group, _ in begun.groups:
        append = Append("queue/q", tuple(Entry(stamp, stamp, Value("1")) for _ in group), "first")
        assert len(group) > 1
        assert len(msgspec.msgpack.encode(append)) < limits.body_bytes_max / 2


async def test_a_driver_begins_what_comes_in_one_turn_in_one_call() -> None:
    rig = Rig()
    enqueues = [Enqueue("r1", (Value("1"),), key) for key in ("", "", "k", "l")]
    called: list[Operation] = [asking("r1"), asking("r1"), Peek("r1"), *enqueues]
    await asyncio.gather(*(rig.driver.run(each, 5) for each in called))
    assert rig.machine.begun == [7]
    await rig.driver.aclose()


async def test_a_driver_that_is_closed_tells_those_who_had_not_begun() -> None:
    rig = Rig()
    caller = asyncio.create_task(rig.driver.run(asking("r1"), 5))
    await asyncio.sleep(0)
    await rig.driver.aclose()
    with pytest.raises(Closed) as caught:
        await caller
    assert caught.value.definite
    assert rig.machine.begun == []


async def test_who_goes_away_is_cancelled_alone() -> None:
    rig = Rig()
    rig.transport.stuck["r1"] = asyncio.Event()
    gone, stays = (asyncio.create_task(rig.driver.run(asking("r1"), 5)) for _ in range(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert rig.machine.cancelled == [1]
    rig.transport.stuck["r1"].set()
    await stays
    await rig.driver.aclose()


@pytest.mark.parametrize(
    ("deadlines_s", "expected"),
    [
        ((4.9999, 5.0, 5.0001), [(3, 4.9999)]),
        ((0.0051, 0.0149), [(1, 0.0051), (1, 0.0149)]),  # Half of such a one would be lost.
        ((4.98, 5.0), [(1, 4.98), (1, 5.0)]),
    ],
    ids=["nearly the same", "short", "not the same"],
)
async def test_deadlines_that_are_nearly_the_same_are_the_earliest(
    deadlines_s: tuple[float, ...], expected: list[tuple[int, float]]
) -> None:
    begun = Begun()
    together = Starts(begun, LIMITS, lambda: NOW)
    for operation, deadline_s in zip(reads(*"abc"), deadlines_s, strict=False):
        together.add(operation, deadline_s)
    await asyncio.sleep(0)
    assert [(len(group), deadline_s) for group, deadline_s in begun.groups] == expected


@pytest.mark.parametrize("by_connections", [True, False])
async def test_those_who_come_by_connections_begin_with_others_of_the_next_turn(
    *, by_connections: bool
) -> None:
    begun = Begun()
    together = Starts(begun, LIMITS, lambda: NOW, by_connections=by_connections)
    for operation in reads(*"ab"):
        together.add(operation, 5.0)
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [len(group) for group, _ in begun.groups] == ([2] if by_connections else [1, 1])


@pytest.mark.parametrize(("own", "expected"), [(None, [1, 1]), ("r1", [2])])
async def test_an_embedded_driver_waits_a_turn_for_others(own: str | None, expected: list[int]) -> None:
    machine = ScriptedMachine()
    driver = Driver(
        document_of("r1"), transport=ScriptedTransport(), site=new_site(), seed=1, own=own, machine=machine
    )
    first = asyncio.create_task(driver.run(asking("r1"), 5))
    await asyncio.sleep(0)
    await asyncio.gather(first, driver.run(asking("r1"), 5))
    assert machine.begun == expected
    await driver.aclose()
