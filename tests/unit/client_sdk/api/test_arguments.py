"""Arguments of another type than a method takes: BadInput that names the argument, before anything is run."""

from typing import Any

import pytest

from quorate.api_specs.cluster import ClusterDocument
from quorate.client_sdk import AsyncDictionary, AsyncQueue, BadInput
from quorate.client_sdk.api.calls import Call
from quorate.client_sdk.api.consuming import Left, Loops
from tests.unit.client_sdk.scripted import document_of


class _Nothing:
    """Runs no call."""

    document: ClusterDocument = document_of("r1")

    async def perform(self, call: Call[Any], deadline_s: float | None = None) -> Any:
        raise AssertionError(f"ran {call}")

    async def _nowhere(self, call: Call[Any], deadline_s: float | None, left: Left | None) -> Any:
        raise AssertionError(f"ran {call}")

    @property
    def loops(self) -> Loops:
        return Loops(self._nowhere, 1.0, lambda: 0.0)


@pytest.mark.parametrize(
    ("method", "arguments", "named", "words"),
    [
        ("dequeue", (1.0,), {}, "max_items is of type float: use a whole number"),
        ("dequeue", (True,), {}, "max_items is of type bool"),
        ("dequeue", (1, "1"), {}, "wait_s is of type str: use a number of seconds"),
        ("dequeue", (1, None), {}, "wait_s is of type NoneType"),
        ("acquire", ("1",), {}, "max_items is of type str"),
        ("acquire", (1, "30"), {}, "lease_s is of type str"),
        ("acquire", (), {"max_deliveries": 1.5}, "max_deliveries is of type float"),
        ("items", (1.5,), {}, "max_items is of type float"),
        ("enqueue", (1,), {"delay_s": "1"}, "delay_s is of type str"),
        ("enqueue", (1,), {"expires_s": False}, "expires_s is of type bool"),
        ("enqueue", (1,), {"idempotency_key": 5}, "idempotency key 5 is of type int"),
        ("enqueue_many", ("abc",), {}, "several values, not a str: pass a list"),
        ("enqueue_many", ({"a": 1},), {}, "several values, not a dict"),
        ("enqueue_many", (5,), {}, "several values, not a int"),
        ("enqueue_many", (["é" * 100_000] * 22,), {}, "too long for one message: enqueue fewer at once"),
        ("release", ("t",), {"delay_s": "1"}, "delay_s is of type str"),
        ("renew", ("t",), {"lease_s": None}, "lease_s is of type NoneType"),
        ("requeue_dead_letters", (5,), {}, "one dead letter in place of several"),
        ("purge_dead_letters", ([5],), {}, "a int is no dead letter"),
    ],
)
async def test_a_queue_names_the_argument(method: str, arguments: Any, named: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        await getattr(AsyncQueue(_Nothing(), "q"), method)(*arguments, **named)


@pytest.mark.parametrize("key", [None, 5, b"k"])
async def test_a_dictionary_needs_a_key(key: Any) -> None:
    users = AsyncDictionary(_Nothing(), "users")
    for ask in (
        lambda: users.get(key),
        lambda: users.put(key, 1),
        lambda: users.delete(key),
        lambda: users.put_if_absent(key, 1),
        lambda: users.compare_and_set(key, 1, 2),
        lambda: users.compare_and_delete(key, 1),
    ):
        with pytest.raises(BadInput, match=f"the key {key!r} is of type {type(key).__name__}"):
            await ask()
