"""Who begins when: one long one or some short ones in each turn of the loop, callers in turn."""

import asyncio
from functools import partial

import pytest

from quorate.replica.http.fair_queue import LONG_BYTES, SHORT_AT_ONCE, FairQueue, Slots

LONG = LONG_BYTES + 1


async def test_so_many_short_ones_begin_in_each_turn_of_the_loop() -> None:
    queue, done = FairQueue(), list[int]()
    for number in range(3 * SHORT_AT_ONCE):
        queue.put("a", 0, partial(done.append, number))
    seen = []
    for _ in range(4):
        seen.append(len(done))
        await asyncio.sleep(0)
    assert seen == [SHORT_AT_ONCE, 2 * SHORT_AT_ONCE, 3 * SHORT_AT_ONCE, 3 * SHORT_AT_ONCE]
    assert done == list(range(3 * SHORT_AT_ONCE))


async def test_one_long_one_begins_in_each_turn_of_the_loop() -> None:
    queue, done = FairQueue(), list[int]()
    for number in range(4):
        queue.put("a", LONG, partial(done.append, number))
    seen = []
    for _ in range(5):
        seen.append(len(done))
        await asyncio.sleep(0)
    assert seen == [1, 2, 3, 4, 4]
    assert done == [0, 1, 2, 3]
    assert queue.may_begin(LONG), "a turn is over, and nobody waits"
    assert not queue.may_begin(0), "this turn is used up"
    queue.put("a", 0, partial(done.append, 4))
    await asyncio.sleep(0)
    assert done[-1] == 4, "it goes on after it was empty"


@pytest.mark.parametrize("size", [0, LONG])
async def test_callers_take_turns(size: int) -> None:
    """One that came with a thousand does not keep another one waiting for more than one turn of them."""
    queue, done = FairQueue(), list[str]()
    for _ in range(1000):
        queue.put("many", size, partial(done.append, "many"))
    queue.put("one", size, partial(done.append, "one"))
    await asyncio.gather(queue.wait("other", size), queue.wait("other", size))
    at_once = 1 if size else SHORT_AT_ONCE
    assert done.index("one") <= at_once + 1
    assert len(done) <= 8 * at_once


async def test_short_ones_of_a_caller_do_not_wait_for_its_long_ones() -> None:
    queue, done = FairQueue(), list[str]()
    for _ in range(20):
        queue.put("a", LONG, partial(done.append, "long"))
    queue.put("a", 0, partial(done.append, "short"))
    await queue.wait("b", 0)
    assert done.index("short") <= 2


def fail() -> None:
    raise IndexError


async def test_one_that_fails_or_leaves_holds_up_nobody() -> None:
    queue, done = FairQueue(), list[str]()
    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context["exception"]))
    left = asyncio.ensure_future(queue.wait("a", LONG))
    await asyncio.sleep(0)
    left.cancel()
    queue.put("b", LONG, fail)
    queue.put("c", LONG, partial(done.append, "c"))
    await queue.wait("d", LONG)
    assert done == ["c"]
    assert [type(each) for each in failed] == [IndexError]


async def test_no_caller_has_more_slots_than_are_left_for_others_and_all_take_turns() -> None:
    slots = Slots(8)
    for _ in range(4):
        await slots.take("many", 60)
    waiting = [asyncio.create_task(slots.take("many", 60)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting), "half of them are for others"
    for _ in range(2):
        await slots.take("other", 60)
    await slots.take("third", 60)
    slots.give("many")
    await asyncio.sleep(0)
    assert not any(each.done() for each in waiting), "three are held, and two are free"
    for _ in range(2):
        slots.give("other")
    await asyncio.gather(waiting[0])
    assert [each.done() for each in waiting] == [True, False, False]
    slots.give("third")
    for _ in range(4):
        slots.give("many")
    await asyncio.gather(*waiting)


async def test_where_all_are_taken_callers_take_turns() -> None:
    slots, begun = Slots(2), list[str]()

    async def work(caller: str) -> None:
        await slots.take(caller, 60)
        begun.append(caller)
        await asyncio.sleep(0)
        slots.give(caller)

    await asyncio.gather(*(work("many") for _ in range(10)), *(work("one") for _ in range(2)))
    assert sorted(begun) == ["many"] * 10 + ["one"] * 2
    assert begun.index("one") < 3


async def test_a_slot_whose_taker_leaves_is_free_for_the_next() -> None:
    slots = Slots(1)
    await slots.take("a", 60)
    leaving = [asyncio.create_task(slots.take("b", 60)) for _ in range(2)]
    await asyncio.sleep(0)
    leaving[0].cancel()
    slots.give("a")  # To the second, which leaves at the very moment that it gets it.
    leaving[1].cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    await asyncio.wait_for(slots.take("c", 60), 5)


async def test_who_waits_too_long_for_a_slot_hears_so_and_keeps_none() -> None:
    slots = Slots(1)
    await slots.take("a", 60)
    with pytest.raises(TimeoutError):
        await slots.take("b", 0.001)
    slots.give("a")
    await slots.take("c", 60)


async def test_a_large_one_leaves_slots_for_others() -> None:
    slots = Slots(8)
    await slots.take("many", 1, 100)
    await slots.take("many", 1, 100)
    with pytest.raises(TimeoutError):
        await slots.take("many", 0.01, 100)
    await slots.take("one", 1, 100)
    slots.give("one", 100)
    slots.give("many", 100)
    await slots.take("many", 1, 100)
