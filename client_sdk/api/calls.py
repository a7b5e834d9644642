"""Calls: an operation, how its result looks to the caller, and how a history tells it. Pure.

Owns the checks of arguments, too: everything wrong with one is BadInput. Must not know how operations are run.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from ...adts.keys import as_kept, key_name, prefix_name
from ...adts.log import Value
from ...adts.plain_class import PlainClass
from ...adts.types.catalogue import BadName, check_name, is_object_name, object_name
from ...api_specs.commands import IDEMPOTENCY_KEY_PATTERN
from ...api_specs.limits import DELAY_S_MAX, Limits
from ...api_specs.values import BadValue, from_value, to_value
from ..errors import BadInput
from ..protocol.core.values import Operation, Read, Repair, Spans

Result = TypeVar("Result")

NULL: Final = Value("null")
_KEY: Final = re.compile(IDEMPOTENCY_KEY_PATTERN)
UNBOUNDED: Final = Limits(value_bytes_max=1 << 62, value_depth_max=1 << 20)
"""For values that the service itself put together, out of values within the limits."""


class Told(Struct, frozen=True):
    """How a history names one operation: method, object, name of a dictionary's key, argument as JSON text."""

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


def single(
    told: Told,
    operation: Operation,
    result: Callable[[Any], Result],
    results: Callable[[Any], Sequence[Value]] | None = None,
) -> Call[Result]:
    """A call that a history shows as one operation: with what the caller gets, where `results` does not say something else."""

    def as_returned(given: Any) -> Sequence[Value]:
        return [to_value(result(given), UNBOUNDED)]

    return Call(operation, (told,), result, results or as_returned)


def lookup(name: str, key: str) -> Call[tuple[Any, ...]]:
    """Read a dictionary's key: a tuple of its value, or an empty one where it is absent (a null value is there)."""

    def as_tuple(value: Value | None) -> tuple[Any, ...]:
        return () if value is None else (from_value(value),)

    dictionary, kept = full_name("dictionary", name), checked_key_name(key)
    told = Told("get", dictionary, kept)
    return single(told, Read(f"{dictionary}/{kept}"), as_tuple, lambda value: [value or NULL])


def repair(full: str, found: PlainClass | None = None, *, is_anew: bool = False) -> Call[tuple[str, ...]]:
    """Make an object (TYPE/NAME, dictionary/NAME/KEY) go on that no decision can go on from, with the class of one's own type: what was
    changed. With `is_anew`, an object of one's own type begins with the state of a new one."""
    kept = _named(as_kept, full)
    if not is_object_name(kept):
        raise BadInput(
            f"{full!r} is no object: use queue/NAME, register/NAME, dictionary/NAME/KEY or TYPE/NAME"
        )
    return Call(Repair(kept, found, is_anew), (Told("repair", kept),), tuple, lambda told: number(len(told)))


def nothing(_: Any) -> None:
    """The result of a method that returns nothing."""


def decoded(value: Value | None) -> Any:
    """The result of a method that returns a value; None where there is none."""
    return None if value is None else from_value(value)


def first(values: Sequence[Value]) -> Any:
    """The result of a method that returns the first value, if there is one."""
    return from_value(values[0]) if values else None


def some_or_null(values: Sequence[Value]) -> Sequence[Value]:
    """What a history shows of values, of which there may be none."""
    return values or [NULL]


def number(count: int) -> Sequence[Value]:
    """What a history shows of a count."""
    return [Value(str(count))]


def check_whole(what: str, given: object) -> None:
    """BadInput unless `given` is a whole number: who calls without a type checker is told in words, too."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise BadInput(f"{what} is of type {type(given).__name__}: use a whole number (an int)")


def check_seconds(what: str, given: object) -> None:
    """As `check_whole`, for a number of seconds, which may have a fraction."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise BadInput(
            f"{what} is of type {type(given).__name__}: use a number of seconds (an int or a float)"
        )


def spans(delay_s: float, expires_s: float | None, named: str = "delay_s") -> Spans:
    """After how long an item is due (`named` so by the caller), and expires (None: never); BadInput when that is not allowed."""
    for what, seconds in ((named, delay_s), ("expires_s", 0.0 if expires_s is None else expires_s)):
        check_seconds(what, seconds)
        if not 0 <= seconds <= DELAY_S_MAX:
            raise BadInput(f"{what} is {seconds}: use 0 to {DELAY_S_MAX:.0f} seconds")
    if expires_s is not None and expires_s <= delay_s:
        raise BadInput(
            f"expires_s is {expires_s}: it must be above 0 and above delay_s, or nobody gets the item"
        )
    # A repeat with 3 is one with 3.0, as REST has it, and digests are of text.
    return Spans(float(delay_s), float(expires_s or 0.0))


def check_taking(items_max: int, wait_s: float, limits: Limits) -> None:
    """BadInput unless a dequeue or an acquire may take so many items, and wait so long for the first."""
    check_whole("max_items", items_max)
    check_seconds("wait_s", wait_s)
    if not 1 <= items_max <= limits.batch_items_max:
        raise BadInput(f"max_items is {items_max}: use 1 to {limits.batch_items_max} (batch_items_max)")
    if not 0 <= wait_s <= limits.wait_s_max:
        raise BadInput(f"wait_s is {wait_s}: use 0 to {limits.wait_s_max} seconds (wait_s_max)")


def full_name(adt: str, name: str) -> str:
    """The object's name with its type; BadInput when it is not allowed."""
    return _named(partial(object_name, adt), name)


def checked_name(name: str) -> str:
    """`name` itself; BadInput when it is not allowed."""
    return _named(check_name, name)


def checked_key_name(key: str, what: str = "key") -> str:
    """The name under which a dictionary's key is kept; BadInput when the key is not allowed."""
    return _named(partial(key_name, what=what), key)


def checked_prefix_name(prefix: str) -> str:
    """What the names of the keys that begin with `prefix` begin with; BadInput when no key begins so."""
    return _named(prefix_name, prefix)


def _named(make: Callable[[str], str], given: str) -> str:
    try:
        return make(given)
    except BadName as error:
        raise BadInput(str(error)) from None


def checked_key(idempotency_key: str | None) -> str:
    """The key, empty for none; BadInput when it is not allowed."""
    if idempotency_key is None:
        return ""
    if not isinstance(idempotency_key, str):
        raise BadInput(
            f"the idempotency key {idempotency_key!r} is of type {type(idempotency_key).__name__}: write it as a text"
        )
    if not _KEY.fullmatch(idempotency_key):
        raise BadInput(
            f"the idempotency key {idempotency_key[:80]!r} is not allowed: use 1 to 200 printable characters of ASCII, and no space"
        )
    return idempotency_key


def checked_value(value: Any, limits: Limits) -> Value:
    """The value as JSON text; BadInput when it is not allowed."""
    try:
        return to_value(value, limits)
    except BadValue as error:
        raise BadInput(str(error)) from None
