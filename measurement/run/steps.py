"""How each operation of a workload is run: on queues, registers and dictionaries by their methods, on one's own types by the class's.

Owns what each call is given as arguments, and what an object must hold before them.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from msgspec import Struct

from ...adts.plain_class import PlainClass
from ...adts.specification import Kind
from ...adts.types.called import BLIND, CALL
from ...adts.types.catalogue import SPECIFICATIONS
from ...client_sdk import AsyncClient
from ...client_sdk.api.objects import OwnType
from ..plan.own_calls import calls_of
from ..plan.plan import Workload

PREFILL_DEADLINE_S: Final = 20.0
KEYS: Final = 10
VALUE: Final = "x"
"""What registers and keys hold, before and after each write beside compare-and-sets: so these always find what they expect."""

Run = Callable[[AsyncClient, str, int, float], Awaitable[object]]
"""One operation of a client: on the object of that name, the how-manieth, with that deadline in seconds."""


class Step(Struct, frozen=True):
    """An operation of a workload. `operation` is what its rows call it; those that decide wait for one another."""

    run: Run
    operation: str
    decides: bool


_RUNS: Final[dict[tuple[str, str], Run]] = {
    ("queue", "Enq"): lambda client, name, number, s: client.queue(name).enqueue(number, deadline_s=s),
    ("queue", "Deq"): lambda client, name, _, s: client.queue(name).dequeue(deadline_s=s),
    ("queue", "Peek"): lambda client, name, _, s: client.queue(name).peek(deadline_s=s),
    ("queue", "Size"): lambda client, name, _, s: client.queue(name).size(deadline_s=s),
    ("register", "Write"): lambda client, name, number, s: client.register(name).write(number, deadline_s=s),
    ("register", "Read"): lambda client, name, _, s: client.register(name).read(deadline_s=s),
    ("register", "Cas"): lambda client, name, _, s: client.register(name).compare_and_set(
        VALUE, VALUE, deadline_s=s
    ),
    ("dictionary", "Put"): lambda client, name, number, s: client.dictionary(name).put(
        _key(number), number, deadline_s=s
    ),
    ("dictionary", "Get"): lambda client, name, number, s: client.dictionary(name).get(
        _key(number), deadline_s=s
    ),
    ("dictionary", "Cas"): lambda client, name, number, s: client.dictionary(name).compare_and_set(
        _key(number), VALUE, VALUE, deadline_s=s
    ),
    ("dictionary", "Items"): lambda client, name, _, s: client.dictionary(name).items(deadline_s=s),
    # Fresh keys: one that is there already would be another event class. Delete takes them away again.
    ("dictionary", "PutIfAbsent"): lambda client, name, number, s: client.dictionary(name).put_if_absent(
        f"new-{number}", VALUE, deadline_s=s
    ),
    ("dictionary", "Delete"): lambda client, name, number, s: client.dictionary(name).delete(
        f"new-{number}", deadline_s=s
    ),
}


_BESIDE_CAS: Final[dict[tuple[str, str], Run]] = {
    ("register", "Write"): lambda client, name, _, s: client.register(name).write(VALUE, deadline_s=s),
    ("dictionary", "Put"): lambda client, name, number, s: client.dictionary(name).put(
        _key(number), VALUE, deadline_s=s
    ),
}


def _key(number: int) -> str:
    return f"key-{number % KEYS}"


def step_of(workload: Workload, operation: str, classes: Mapping[str, type]) -> Step:
    """The operation of a workload; `classes` has those of one's own types, by type."""
    if (found := classes.get(workload.type)) is not None:
        return _call_of(found, workload.type, operation)
    decides = SPECIFICATIONS[workload.type].kinds[operation] is Kind.DECIDE
    runs = _RUNS | _BESIDE_CAS if "Cas" in workload.rates else _RUNS
    return Step(runs[workload.type, operation], operation, decides)


def _call_of(found: type, type_name: str, operation: str) -> Step:
    """The method of a class, called with the examples of its arguments in turn. To quorums every call is one of two operations."""
    plain = PlainClass(found)
    calls = calls_of(plain, operation)

    def run(client: AsyncClient, name: str, number: int, deadline_s: float) -> Awaitable[object]:
        # The response itself: an exception of the class, as of a seat that is taken, is an outcome like others.
        of, invocation = OwnType(client.document, found, type_name), calls[number % len(calls)]
        return client.perform(of.call(name, invocation, None, lambda response: response), deadline_s)

    return Step(run, BLIND if operation in plain.blind else CALL, operation not in plain.blind)


async def fill(client: AsyncClient, workload: Workload, name: str, items: int) -> None:
    """Give an object what its operations expect to find; of one's own types that is nothing."""
    match workload.type:
        case "queue":
            batch = client.document.limits.batch_items_max
            for first in range(0, items, batch):
                values = range(first, min(items, first + batch))
                await client.queue(name).enqueue_many(values, deadline_s=PREFILL_DEADLINE_S)
        case "register":
            await client.register(name).write(VALUE, deadline_s=PREFILL_DEADLINE_S)
        case "dictionary":
            for number in range(KEYS):
                await client.dictionary(name).put(_key(number), VALUE, deadline_s=PREFILL_DEADLINE_S)
