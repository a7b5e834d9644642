"""So many operations under way, until one of three bounds is met."""

import asyncio
from collections import Counter

import pytest

from quorate.measurement.speed.in_flight import in_flight

LONG_S = 600.0


async def test_so_many_are_under_way_at_a_time_and_each_number_is_used_once() -> None:
    numbers, under_way, most = list[int](), 0, 0

    async def operation(number: int) -> None:
        nonlocal under_way, most
        numbers.append(number)
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1

    taken = await in_flight(operation, 4, LONG_S, 10)
    assert (sorted(numbers), most) == (list(range(10)), 4)
    assert len(taken.each_s) == 10
    assert 0 < max(taken.each_s) <= taken.seconds


async def test_errors_that_count_as_failures_do_not_end_it_and_others_do() -> None:
    async def operation(number: int) -> None:
        if number % 2:
            raise ConnectionError

    taken = await in_flight(operation, 1, LONG_S, 5, failures=(ConnectionError,))
    assert (len(taken.each_s), taken.failed) == (3, Counter(ConnectionError=2))
    with pytest.raises(ConnectionError):
        await in_flight(operation, 1, LONG_S, 5, failures=(TimeoutError,))


async def test_it_ends_when_the_time_is_over_and_when_it_is_told_to() -> None:
    begun = list[int]()

    async def operation(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(0)

    await in_flight(operation, 1, -1.0, 10)
    assert begun == []
    taken = await in_flight(operation, 1, LONG_S, 10, is_over=lambda: len(begun) == 3)
    assert (begun, len(taken.each_s)) == ([0, 1, 2], 3)
