"""Callers that go on at their pace while something is done to what serves them, and what each such phase meant for them. No
imports of ours, so that the scripts which drive other systems measure with the very same lines."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

CALLERS: Final = 5
DEADLINE_S: Final = 10.0
"""An operation that is not done by then has failed."""
AFTER_S: Final = 0.5
"""What comes so soon after a change counts as of it."""
_LOOK_S: Final = 0.01

Call = Callable[[int], Awaitable[Any]]
"""The call of that number."""


class _Took(NamedTuple):
    operation: str
    begun_s: float
    seconds: float
    error: str


class Callers:
    """Each does its operations in turn, one at a time, and rests in between; from `async with` on."""

    def __init__(self, callers: Sequence[Mapping[str, Call]], rest_s: float) -> None:
        self._callers: Final = callers
        self._rest_s: Final = rest_s
        self._took: list[_Took] = []
        self._under_way: Final[dict[int, float]] = {}
        """Since when, by caller."""
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.create_task(self._call(caller, calls)) for caller, calls in enumerate(self._callers)
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True  # Each ends what it has begun: one that is cut off may have taken an item.
        await asyncio.gather(*self._tasks)

    async def during(self, change: Coroutine[Any, Any, Any]) -> dict[str, Any]:
        """How long the change took, and the operations that were under way at any time from its begin until AFTER_S after its end: how many, how many
        failed and of what, the median and the 99th percentile in milliseconds, and the one that took longest, failed ones included."""
        begun_s = time.monotonic()
        await change
        ended_s = time.monotonic()
        await asyncio.sleep(AFTER_S)
        over_s = time.monotonic()
        while any(since_s < over_s for since_s in self._under_way.values()):
            await asyncio.sleep(_LOOK_S)
        took = [each for each in self._took if each.begun_s < over_s]
        self._took = [each for each in self._took if each.begun_s >= over_s]
        return {"seconds": round(ended_s - begun_s, 2)} | _figures(
            [each for each in took if each.begun_s + each.seconds > begun_s]
        )

    async def _call(self, caller: int, calls: Mapping[str, Call]) -> None:
        number, names = 0, list(calls)
        await asyncio.sleep(self._rest_s * caller / len(self._callers))  # Not all at once.
        while not self._is_over:
            name = names[number % len(names)]
            begun_s = self._under_way[caller] = time.monotonic()
            error = await _outcome(calls[name](number))
            self._took.append(_Took(name, begun_s, time.monotonic() - begun_s, error))
            del self._under_way[caller]
            number += 1
            await asyncio.sleep(self._rest_s)


async def _outcome(call: Awaitable[Any]) -> str:
    """The kind of its error; empty where it was done."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            await call
    except Exception as error:  # noqa: BLE001 - whatever a client raises is an operation that failed
        return type(error).__name__
    return ""


def _figures(took: Sequence[_Took]) -> dict[str, Any]:
    if not took:
        return {"operations": 0}
    ordered = sorted(each.seconds for each in took)
    longest = max(took, key=lambda each: each.seconds)
    errors = Counter(each.error for each in took if each.error)
    return {
        "operations": len(took),
        "failed": errors.total(),
        "errors": dict(errors),
        "p50_ms": _ms(ordered[len(ordered) // 2]),
        "p99_ms": _ms(ordered[len(ordered) * 99 // 100]),
        "longest_ms": _ms(longest.seconds),
        "longest": longest.operation,
    }


def _ms(seconds: float) -> float:
    return float(f"{seconds * 1e3:.4g}")
