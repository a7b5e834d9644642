"""So many operations at a time, for so long: how many a second, and the percentiles of what each took. No imports of ours,
so that the scripts which drive other systems measure with the very same lines."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)


async def in_flight(
    operation: Callable[[int], Awaitable[Any]], width: int, seconds: float, most: int
) -> dict[str, float]:
    """Keep `width` operations under way until the time is over or `most` were begun."""
    taken_s: list[float] = []
    numbers = iter(range(most))
    begun_s = time.perf_counter()
    until_s = begun_s + seconds

    async def worker() -> None:
        for number in numbers:
            at_s = time.perf_counter()
            if at_s > until_s:
                return
            await operation(number)
            taken_s.append(time.perf_counter() - at_s)

    await asyncio.gather(*(worker() for _ in range(width)))
    return {"count": len(taken_s), "per_s": _short(len(taken_s) / (time.perf_counter() - begun_s))} | spread(
        taken_s
    )


def spread(taken_s: Sequence[float]) -> dict[str, float]:
    """The percentiles, in milliseconds; one that so few operations cannot tell is left out."""
    ordered = sorted(taken_s)
    return {
        f"p{percent:g}_ms": _short(ordered[int(len(ordered) * percent / 100)] * 1e3)
        for percent in PERCENTILES
        if len(ordered) * (1 - percent / 100) >= 1
    }


def _short(number: float) -> float:
    return float(f"{number:.4g}")
