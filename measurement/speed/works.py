"""The works: operations that need nothing but a cluster, on objects of their own, each timed with so many of it under way.

They are the same for `quorate bench`, on a cluster that is there, and for `benchmarks/run.py`, on one that it starts.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final, NamedTuple

from ...api_specs.limits import ENTRY_BYTES
from ...client_sdk import AsyncClient, QuorateError
from .figures import Figure, figure_of
from .in_flight import Operation, in_flight

ITEM_BYTES: Final = 100
ITEM_BYTES_MIN: Final = 16
KEYS: Final = 1000
BATCH_ITEMS: Final = 500
BATCHES_IN_FLIGHT: Final = 4
WARM_UP: Final = 50
WARM_WIDTH: Final = 16
WARM_S: Final = 60.0
CLEAR_S: Final = 60.0
"""How long the objects may take to be emptied at the end."""
_DELETED_AT_ONCE: Final = 64


class Step(NamedTuple):
    """One operation of a work, each of `items` items. `takes`: it takes what the step before brought, and so no more. `warm_up`: so many go
    before the first that is timed."""

    operation: str
    call: Operation
    items: int = 1
    takes: bool = False
    warm_up: int = WARM_UP


class Bounds(NamedTuple):
    """Of each step, with each number of operations in flight: it ends after `seconds`, or with `items` items."""

    seconds: float
    items: int


class InUse(Exception):
    """Objects that the works would empty at their end hold something."""


def item(number: int, item_bytes: int = ITEM_BYTES) -> str:
    """A value whose JSON text has so many bytes."""
    return f"{number:08d}".ljust(item_bytes - 2, "x")


class Ground:
    """The objects that the works use: a queue and a dictionary, with the names `prefix` and their type's."""

    def __init__(self, client: AsyncClient, prefix: str, item_bytes: int = ITEM_BYTES) -> None:
        self._queue: Final = client.queue(f"{prefix}queue")
        self._dictionary: Final = client.dictionary(f"{prefix}dictionary")
        self._item_bytes: Final = item_bytes
        limits = client.document.limits
        room = limits.body_bytes_max // 2 // (item_bytes + ENTRY_BYTES)
        self._batch_items: Final = max(1, min(BATCH_ITEMS, limits.batch_items_max, room))
        self._run: Final = secrets.token_hex(8)
        self._keyed: Final = count()

    def _item(self, number: int) -> str:
        return item(number, self._item_bytes)

    async def check_unused(self) -> None:
        """Raises InUse."""
        for adt, each in (("queue", self._queue), ("dictionary", self._dictionary)):
            if found := await each.size():
                raise InUse(
                    f"{adt}/{each.name} holds {found} {'item' if adt == 'queue' else 'key'}{'s' * (found > 1)}"
                )

    async def clear(self) -> None:
        """Take all out of the queue, and delete all keys of the dictionary. Raises QuorateError, and TimeoutError after CLEAR_S."""
        async with asyncio.timeout(CLEAR_S):
            while await self._queue.dequeue(max_items=self._batch_items):
                pass
            keys = list(await self._dictionary.items())
            for first in range(0, len(keys), _DELETED_AT_ONCE):
                await asyncio.gather(*map(self._dictionary.delete, keys[first : first + _DELETED_AT_ONCE]))

    def queue(self) -> Sequence[Step]:
        """One item at a time."""
        return (
            Step("enqueue", lambda number: self._queue.enqueue(self._item(number))),
            Step("dequeue", lambda _: self._queue.dequeue(), takes=True),
        )

    def keyed(self) -> Sequence[Step]:
        """With an idempotency key each."""
        return (Step("keyed enqueue", self._enqueue_keyed),)

    def dictionary(self) -> Sequence[Step]:
        """On KEYS keys in turn: first of all each gets a value."""
        dictionary = self._dictionary
        keys = [f"key-{number}" for number in range(KEYS)]
        values: dict[str, str] = {}

        async def put(number: int) -> None:
            key = keys[number % KEYS]
            await dictionary.put(key, self._item(number))
            values[key] = self._item(number)

        async def compare_and_set(number: int) -> None:
            key = keys[number % KEYS]
            if await dictionary.compare_and_set(key, values.get(key), self._item(number)):
                values[key] = self._item(number)
            else:  # One whose outcome nobody heard took effect: it is in the way of all later ones.
                values[key] = await dictionary.get(key)

        return (
            Step("put", put, warm_up=KEYS),
            Step("get", lambda number: dictionary.get(keys[number % KEYS])),
            Step("compare-and-set", compare_and_set),
        )

    def batches(self) -> Sequence[Step]:
        """As many items at once as a batch may have and half a message has room for, and BATCH_ITEMS at most."""
        size = self._batch_items

        async def enqueue(number: int) -> None:
            await self._queue.enqueue_many([self._item(number * size + place) for place in range(size)])

        async def dequeue(_: int) -> None:
            left = size
            while left and (taken := await self._queue.dequeue(max_items=left)):
                left -= len(taken)

        return (
            Step("batch enqueue", enqueue, items=size, warm_up=2),
            Step("batch dequeue", dequeue, items=size, takes=True, warm_up=2),
        )

    async def _enqueue_keyed(self, number: int) -> None:
        key = f"{self._run}-{next(self._keyed)}"
        await self._queue.enqueue(self._item(number), idempotency_key=key)


class Work(NamedTuple):
    """Its steps, and how many are in flight where that is not asked for."""

    steps: Callable[[Ground], Sequence[Step]]
    in_flight: int | None = None


WORKS: Final[Mapping[str, Work]] = {
    "queue": Work(Ground.queue),
    "keyed": Work(Ground.keyed),
    "dictionary": Work(Ground.dictionary),
    "batches": Work(Ground.batches, BATCHES_IN_FLIGHT),
}


async def timed(
    ground: Ground,
    works: Sequence[str],
    widths: Sequence[int],
    bounds: Bounds,
    is_over: Callable[[], bool] = lambda: False,
    begins: Callable[[], object] = lambda: None,
) -> AsyncIterator[Figure]:
    """The figure of each step of the works, once it is done. `begins` is called when its warm-up is over. An operation that fails is counted; one of
    a warm-up raises QuorateError, unless there is a figure already, which would be lost."""
    warm_up = partial(in_flight, width=WARM_WIDTH, seconds=WARM_S, is_over=is_over)
    for name in works:
        work = WORKS[name]
        steps = work.steps(ground)
        for step in steps:
            if not is_over():
                await warm_up(step.call, most=step.warm_up)
        for width in widths if work.in_flight is None else (work.in_flight,):
            done = 0
            for step in steps:
                most = max(1, bounds.items // step.items)
                if is_over():
                    return
                begins()
                taken = await in_flight(
                    step.call,
                    width,
                    bounds.seconds,
                    min(most, done) if step.takes else most,
                    failures=(QuorateError,),
                    is_over=is_over,
                )
                done = len(taken.each_s)
                yield figure_of(name, step.operation, width, step.items, *taken)
                warm_up = partial(warm_up, failures=(QuorateError,))
