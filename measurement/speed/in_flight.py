"""So many operations at a time, for so long: what each took. No imports of ours (see the package)."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

Operation = Callable[[int], Awaitable[Any]]
"""The operation of that number."""


class Taken(NamedTuple):
    """`each_s`: what each took that was done, in the order of their ends. `seconds`: what all took together. `failed`: how many raised an
    error of that kind."""

    each_s: list[float]
    seconds: float
    failed: Counter[str]


async def in_flight(
    operation: Operation,
    width: int,
    seconds: float,
    most: int,
    *,
    failures: tuple[type[Exception], ...] = (),
    is_over: Callable[[], bool] = lambda: False,
) -> Taken:
    """Keep `width` operations under way until the time is over, `most` were begun or `is_over` says so; what was begun ends. Errors that are
    `failures` are counted, and any other is raised."""
    taken = Taken([], 0.0, Counter())
    numbers = iter(range(most))
    begun_s = time.perf_counter()
    until_s = begun_s + seconds

    async def worker() -> None:
        for number in numbers:
            at_s = time.perf_counter()
            if at_s > until_s or is_over():
                return
            try:
                await operation(number)
            except failures as error:
                taken.failed[type(error).__name__] += 1
            else:
                taken.each_s.append(time.perf_counter() - at_s)

    await asyncio.gather(*(worker() for _ in range(min(width, most))))
    return taken._replace(seconds=time.perf_counter() - begun_s)
