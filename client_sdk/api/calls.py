"""Calls: what the methods of the handles mean, once for the asyncio and the blocking client. Pure.

Owns the checks of arguments, the operation that each method runs, how its result looks to the caller, and how the call
is told in a history. Must not know how operations are run. Everything wrong with an argument is BadInput.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from ...adts.log import Value
from ...adts.types.catalogue import BadName, check_name, is_object_name, object_name
from ...api_specs.limits import DELAY_S_MAX, Limits
from ...api_specs.values import BadValue, from_value, text_bytes, to_value
from ..errors import BadInput
from ..protocol.core.values import (
    AT_ONCE,
    CompareAndSet,
    Dequeue,
    Enqueue,
    Items,
    Operation,
    Peek,
    PutIfAbsent,
    QueueInfo,
    QueueSize,
    Read,
    Repair,
    Spans,
    Write,
)

Result = TypeVar("Result")

NULL: Final = Value("null")


class Told(Struct, frozen=True):
    """How a history names one operation: method, object, key of a dictionary, argument as JSON text."""

    f: str
    object: str
    key: str | None = None
    value: Value = NULL


class Call(Struct, Generic[Result], frozen=True):
    """One call of a method. `result` turns what the operation gives into what the method returns.

    `told` are the operations that a history shows, one for each item of a batch; `results` gives JSON text for as many
    of them as took effect.
    """

    operation: Operation
    told: tuple[Told, ...]
    result: Callable[[Any], Result]
    results: Callable[[Any], Sequence[Value]]
    wait_s: float = 0.0


def enqueue(
    name: str, values: Sequence[Any], key: str | None, limits: Limits, spans: Spans = AT_ONCE
) -> Call[None]:
    """Enqueue `values` in order; those that are acquired keep to `spans`."""
    if len(values) > limits.batch_items_max:
        raise BadInput(
            f"{len(values)} values at once: at most {limits.batch_items_max} (batch_items_max) are allowed"
        )
    texts = tuple(_value(value, limits) for value in values)
    if sum(map(text_bytes, texts)) * 2 > limits.body_bytes_max and len(texts) > 1:
        raise BadInput("the values are too long for one message: enqueue fewer at once")
    full = full_name("queue", name)
    told = tuple(Told("enqueue", full, value=text) for text in texts)
    return Call(Enqueue(full, texts, _key(key), spans), told, _nothing, lambda _: [NULL] * len(texts))


def spans(delay_s: float, expires_s: float | None) -> Spans:
    """After how long an item is due, and expires (None: never); BadInput when that is not allowed."""
    for what, seconds in (("delay_s", delay_s), ("expires_s", expires_s or 0.0)):
        if not 0 <= seconds <= DELAY_S_MAX:
            raise BadInput(f"{what} is {seconds}: use 0 to {DELAY_S_MAX:.0f} seconds")
    if expires_s is not None and expires_s <= delay_s:
        raise BadInput(
            f"expires_s is {expires_s}: it must be above 0 and above delay_s, or nobody gets the item"
        )
    return Spans(delay_s, expires_s or 0.0)


def dequeue(name: str, items_max: int | None, wait_s: float, key: str | None, limits: Limits) -> Call[Any]:
    """Take up to `items_max` values, as a list; without it one value, or None when there is none."""
    most = 1 if items_max is None else items_max
    if not 1 <= most <= limits.batch_items_max:
        raise BadInput(f"max_items is {most}: use 1 to {limits.batch_items_max} (batch_items_max)")
    if not 0 <= wait_s <= limits.wait_s_max:
        raise BadInput(f"wait_s is {wait_s}: use 0 to {limits.wait_s_max} seconds (wait_s_max)")
    full = full_name("queue", name)
    return Call(
        Dequeue(full, most, wait_s, _key(key)),
        (Told("dequeue", full),) * most,
        _first if items_max is None else lambda values: [from_value(each) for each in values],
        lambda values: values or [NULL],
        wait_s,
    )


def _first(values: Sequence[Value]) -> Any:
    return from_value(values[0]) if values else None


def peek(name: str) -> Call[Any]:
    """Look at the front of a queue; None when it is empty."""
    full = full_name("queue", name)
    return Call(
        Peek(full),
        (Told("peek", full),),
        _first,
        lambda values: values or [NULL],
    )


def queue_size(name: str) -> Call[int]:
    """Count the waiting items."""

    def size(info: QueueInfo) -> int:
        return info.size

    full = full_name("queue", name)
    return Call(QueueSize(full), (Told("size", full),), size, lambda info: [Value(str(info.size))])


def queue_items(name: str, items_max: int | None) -> Call[list[Any]]:
    """List the waiting items, or the first of them. A history shows it as the count that it also is."""

    def first(info: QueueInfo) -> list[Any]:
        return [from_value(each) for each in info.first]

    if items_max is not None and items_max < 1:
        raise BadInput(f"max_items is {items_max}: use 1 or more, or leave it out for all")
    counting = queue_size(name)
    operation = QueueSize(full_name("queue", name), sys.maxsize if items_max is None else items_max)
    return Call(operation, counting.told, first, counting.results)


def read(name: str) -> Call[Any]:
    """Read a register."""
    return _reading("read", full_name("register", name))


def get(name: str, key: str) -> Call[Any]:
    """Read a dictionary's key."""
    return _reading("get", full_name("dictionary", name), key)


def lookup(name: str, key: str) -> Call[tuple[Any, ...]]:
    """Read a dictionary's key: a tuple of its value, or an empty one where it is absent (a null value is there)."""
    found = _reading("get", full_name("dictionary", name), key)

    def as_tuple(value: Value | None) -> tuple[Any, ...]:
        return () if value is None else (from_value(value),)

    return Call(found.operation, found.told, as_tuple, found.results)


def _reading(f: str, full: str, key: str | None = None) -> Call[Any]:
    return Call(
        Read(_with_key(full, key)),
        (Told(f, full, key),),
        lambda value: None if value is None else from_value(value),
        lambda value: [value or NULL],
    )


def write(name: str, value: Any, limits: Limits) -> Call[None]:
    """Set a register."""
    return _writing("write", full_name("register", name), None, _value(value, limits))


def put(name: str, key: str, value: Any, limits: Limits) -> Call[None]:
    """Set a dictionary's key."""
    return _writing("put", full_name("dictionary", name), key, _value(value, limits))


def delete(name: str, key: str) -> Call[None]:
    """Delete a dictionary's key."""
    return _writing("delete", full_name("dictionary", name), key, None)


def _writing(f: str, full: str, key: str | None, text: Value | None) -> Call[None]:
    return Call(
        Write(_with_key(full, key), text), (Told(f, full, key, text or NULL),), _nothing, lambda _: [NULL]
    )


def compare_and_set_register(
    name: str, old: Any, new: Any, idempotency_key: str | None, limits: Limits
) -> Call[bool]:
    """Set a register if it holds `old`."""
    return _comparing(full_name("register", name), None, old, new, idempotency_key, limits)


def compare_and_set_key(
    name: str, key: str, old: Any, new: Any, idempotency_key: str | None, limits: Limits
) -> Call[bool]:
    """Set a dictionary's key if it holds `old`."""
    return _comparing(full_name("dictionary", name), key, old, new, idempotency_key, limits)


def compare_and_delete(
    name: str, key: str, old: Any, idempotency_key: str | None, limits: Limits
) -> Call[bool]:
    """Delete a dictionary's key if it holds `old`."""
    if old is None:
        raise BadInput(
            "compare_and_delete needs a value: null stands for an absent key as well, so use delete"
        )
    full = full_name("dictionary", name)
    before = _value(old, limits)
    told = Told("cas", full, key, Value(f"[{before},null]"))
    operation = CompareAndSet(_with_key(full, key), before, None, _key(idempotency_key))
    return Call(operation, (told,), bool, _boolean)


def _comparing(
    full: str, key: str | None, old: Any, new: Any, idempotency_key: str | None, limits: Limits
) -> Call[bool]:
    before, after = _value(old, limits), _value(new, limits)
    told = Told("cas", full, key, Value(f"[{before},{after}]"))
    operation = CompareAndSet(_with_key(full, key), before, after, _key(idempotency_key))
    return Call(operation, (told,), bool, _boolean)


def repair(full: str) -> Call[tuple[str, ...]]:
    """Make an object (TYPE/NAME, dictionary/NAME/KEY) go on that no decision can go on from: what was changed."""
    if not is_object_name(full):
        raise BadInput(f"{full!r} is no object: use queue/NAME, register/NAME or dictionary/NAME/KEY")
    return Call(Repair(full), (Told("repair", full),), tuple, lambda told: [Value(str(len(told)))])


def put_if_absent(name: str, key: str, value: Any, idempotency_key: str | None, limits: Limits) -> Call[bool]:
    """Set a dictionary's key if it is absent."""
    full = full_name("dictionary", name)
    text = _value(value, limits)
    operation = PutIfAbsent(_with_key(full, key), text, _key(idempotency_key))
    return Call(operation, (Told("put_if_absent", full, key, text),), bool, _boolean)


def items(name: str) -> Call[dict[str, Any]]:
    """Read a whole dictionary."""

    def decoded(pairs: dict[str, Value]) -> dict[str, Any]:
        return {key: from_value(value) for key, value in pairs.items()}

    full = full_name("dictionary", name)
    return Call(
        Items(full), (Told("items", full),), decoded, lambda pairs: [to_value(decoded(pairs), UNBOUNDED)]
    )


def dictionary_size(name: str) -> Call[int]:
    """Count the keys of a dictionary."""
    full = full_name("dictionary", name)
    return Call(Items(full), (Told("size", full),), len, lambda pairs: [Value(str(len(pairs)))])


UNBOUNDED: Final = Limits(value_bytes_max=1 << 62, value_depth_max=1 << 20)
"""For values that the service itself put together, out of values within the limits."""


def _nothing(_: Any) -> None:
    """The result of a method that returns nothing."""


def _boolean(was: Any) -> Sequence[Value]:
    return [Value("true" if was else "false")]


def full_name(adt: str, name: str) -> str:
    """The object's name with its type; BadInput when it is not allowed."""
    try:
        return object_name(adt, name)
    except BadName as error:
        raise BadInput(str(error)) from None


def _with_key(full: str, key: str | None) -> str:
    if key is None:
        return full
    try:
        return f"{full}/{check_name(key, 'key')}"
    except BadName as error:
        raise BadInput(str(error)) from None


def _key(idempotency_key: str | None) -> str:
    if idempotency_key is None:
        return ""
    try:
        return check_name(idempotency_key, "idempotency key")
    except BadName as error:
        raise BadInput(str(error)) from None


def _value(value: Any, limits: Limits) -> Value:
    try:
        return to_value(value, limits)
    except BadValue as error:
        raise BadInput(str(error)) from None
