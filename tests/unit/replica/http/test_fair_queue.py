"""Who goes on when: long ones one in each turn of the loop, callers in turn; short ones at once."""

import asyncio
from functools import partial

from quorate.replica.http.fair_queue import LONG_BYTES, FairQueue

LONG = LONG_BYTES + 1


async def test_what_is_short_goes_on_at_once() -> None:
    queue, done = FairQueue(), list[str]()
    queue.put("a", LONG, partial(done.append, "long"))
    queue.put("a", LONG_BYTES, partial(done.append, "short"))
    await queue.wait("a", LONG_BYTES)
    assert done == ["short"]


async def test_one_long_one_goes_on_in_each_turn_of_the_loop() -> None:
    queue, done = FairQueue(), list[int]()
    for number in range(4):
        queue.put("a", LONG, partial(done.append, number))
    seen = []
    for _ in range(5):
        seen.append(len(done))
        await asyncio.sleep(0)
    assert seen == [0, 1, 2, 3, 4]
    assert done == [0, 1, 2, 3]
    queue.put("a", LONG, partial(done.append, 4))
    await asyncio.sleep(0)
    assert done[-1] == 4, "it goes on after it was empty"


async def test_callers_take_turns() -> None:
    """One that came with a thousand does not keep another one waiting for more than one of them."""
    queue, done = FairQueue(), list[str]()
    for _ in range(1000):
        queue.put("many", LONG, partial(done.append, "many"))
    queue.put("one", LONG, partial(done.append, "one"))
    await asyncio.gather(queue.wait("other", LONG), queue.wait("other", LONG))
    assert done.index("one") == 1
    assert len(done) < 10


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
