"""What the lines of a history mean to a type: the SDK's methods for the types that the service offers, else the operations by
their names, with a list of arguments and, as the result, a list of how it ended and what came back: `["Ok", 3]`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from ...adts.histories.calls import Call
from ...adts.log import Value
from ...adts.own import Computed
from ...adts.plain_class import PlainClass, frozen
from ...adts.specification import Invocation, Response, Specification
from ...api_specs.values import comparable
from ..failure import Usage
from .history_file import Recorded

LEASES: Final = frozenset(
    (
        "acquire",
        "ack",
        "release",
        "renew",
        "reject",
        "leases",
        "dead_letters",
        "requeue_dead",
        "purge_dead",
        "purge_delayed",
    )
)
OK: Final = (Response("Ok"),)


class Unjudged(Exception):
    """Nothing can be said of the object: why, as the rest of a sentence that begins with its name."""


def calls_of(specification: Specification, operations: Sequence[Recorded]) -> list[Call]:
    """The calls on an object of that type. Raises Unjudged, and Usage for what the type does not know."""
    words = {} if isinstance(specification, Computed) else _WORDS.get(specification.name, {})
    used = sorted({operation.f for operation in operations} & LEASES)
    if used and "dequeue" in words:
        raise Unjudged(
            f"was used with leases ({', '.join(used)}), which no serial specification describes here"
        )
    is_null_there = any(operation.f == "enqueue" and operation.value == b"null" for operation in operations)
    calls = []
    for operation in operations:
        if operation.f == "repair" or (words is _TRANSPORT and operation.f in _LOOKS):
            continue
        translate = words.get(operation.f)
        where = f"line {operation.number}: {operation.f} of {operation.object}"
        try:
            if translate is None:
                invocation, answers = _by_name(specification, operation)
            else:
                invocation, answers = translate(operation, is_null_there)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Usage(f"{where} has another value or result than the SDK writes: {error}") from None
        wanted = list(specification.arguments[invocation.operation])
        is_listing = invocation.operation in ("Items", "Size")  # Perhaps of a page.
        if len(invocation.args) != len(wanted) and not is_listing:
            raise Usage(
                f"{where} is to say {', '.join(wanted) or 'nothing'}: a dictionary's operations have a key"
            )
        calls.append(
            Call(
                operation.process,
                operation.object,
                invocation,
                operation.invoked,
                operation.returned,
                answers if operation.result is not None else (),
                operation.is_weak,
            )
        )
    return calls


_Told = tuple[Invocation, tuple[Response, ...]]


def _read(name: str, operation: Recorded, _: bool) -> _Told:
    return Invocation(name, _key(operation)), (Response("Ok", (_value(operation.result),)),)


def _write(name: str, operation: Recorded, _: bool) -> _Told:
    return Invocation(name, (*_key(operation), _present(operation))), OK


def _delete(operation: Recorded, _: bool) -> _Told:
    return Invocation("Delete", _key(operation)), OK


def _put_if_absent(operation: Recorded, _: bool) -> _Told:
    condition = "Ok" if _is_done(operation) else "Present"
    return Invocation("PutIfAbsent", (*_key(operation), _present(operation))), (Response(condition),)


def _cas(operation: Recorded, _: bool) -> _Told:
    old, new = msgspec.json.decode(operation.value, type=tuple[msgspec.Raw, msgspec.Raw])
    if operation.key is not None and bytes(new) == b"null":
        raise Unjudged(
            f"had null set for the key {operation.key}, or the key deleted: a compare-and-set does not tell which"
        )
    condition = "Ok" if _is_done(operation) else "Fail"
    return Invocation("Cas", (*_key(operation), _value(bytes(old)), _value(bytes(new)))), (
        Response(condition),
    )


def _is_done(operation: Recorded) -> bool:
    return operation.result is not None and msgspec.json.decode(operation.result, type=bool)


def _items(operation: Recorded, _: bool) -> _Told:
    found = msgspec.json.decode(operation.result or b"{}", type=dict[str, msgspec.Raw])
    return Invocation("Items", _part(operation)), (Response("Ok", (_pairs(found),)),)


class _Page(msgspec.Struct):
    items: dict[str, msgspec.Raw] = {}
    next: str = ""


def _page(operation: Recorded, _: bool) -> _Told:
    found = msgspec.json.decode(operation.result or b"{}", type=_Page)
    return Invocation("Items", _part(operation, found.next)), (Response("Ok", (_pairs(found.items),)),)


def _pairs(found: Mapping[str, msgspec.Raw]) -> frozenset[tuple[str, str | None]]:
    return frozenset((key, _value(bytes(value))) for key, value in found.items())


def _part(operation: Recorded, last: str = "") -> tuple[str, ...]:
    """Which keys were listed: nothing for all of them."""
    if operation.value == b"null":
        return ()
    prefix, after = msgspec.json.decode(operation.value, type=tuple[str, str])
    return prefix, after, last


def _size(operation: Recorded, _: bool) -> _Told:
    return Invocation("Size", _part(operation)), (
        Response("Ok", (msgspec.json.decode(operation.result or b"0", type=int),)),
    )


def _enqueue(operation: Recorded, _: bool) -> _Told:
    return Invocation("Enq", (_text(operation.value),)), OK


def _taken(name: str, operation: Recorded, is_null_there: bool) -> _Told:
    """null stands for "nothing there", and for an item that is null."""
    answers = []
    if operation.result is not None and (operation.result != b"null" or is_null_there):
        answers.append(Response("Ok", (_text(operation.result),)))
    if operation.result == b"null":
        answers.append(Response("Empty"))
    return Invocation(name), tuple(answers)


_Translate = Callable[[Recorded, bool], _Told]


def _named(translate: Callable[[str, Recorded, bool], _Told], name: str) -> _Translate:
    return lambda operation, is_null_there: translate(name, operation, is_null_there)


_LOOKS: Final = frozenset({"peek", "size"})
"""They change nothing, and a queue without order says nothing of them."""
_TRANSPORT: Final[Mapping[str, _Translate]] = {"enqueue": _enqueue, "dequeue": _named(_taken, "Deq")}
_WORDS: Final[Mapping[str, Mapping[str, _Translate]]] = {
    "queue": {**_TRANSPORT, "peek": _named(_taken, "Peek"), "size": _size},
    "semiqueue": _TRANSPORT,
    "eventual-queue": _TRANSPORT,
    "register": {"read": _named(_read, "Read"), "write": _named(_write, "Write"), "cas": _cas},
    "dictionary": {
        "get": _named(_read, "Get"),
        "put": _named(_write, "Put"),
        "delete": _delete,
        "put_if_absent": _put_if_absent,
        "cas": _cas,
        "items": _items,
        "page": _page,
        "size": _size,
    },
}


def _key(operation: Recorded) -> tuple[str, ...]:
    return () if operation.key is None else (operation.key,)


def _value(text: bytes | None) -> str | None:
    """A value as text that is equal for equal values; None for null, which reads like nothing there."""
    return None if text in (None, b"null") else _text(text)


def _text(text: bytes) -> str | None:
    """The same for equal values, however they are written."""
    return comparable(Value(msgspec.json.encode(msgspec.json.decode(text), order="deterministic").decode()))


def _present(operation: Recorded) -> str | None:
    value = _value(operation.value)
    if value is None and operation.key is not None:
        raise Unjudged(
            f"had null put for the key {operation.key}, which a get does not tell from an absent key"
        )
    return value


def _by_name(specification: Specification, operation: Recorded) -> _Told:
    where = f"line {operation.number}"
    names: Collection[str] = specification.arguments.keys()
    if operation.f not in names:
        known = ", ".join([*_WORDS.get(specification.name, ()), *names])
        article = "an" if specification.name[0] in "aeiou" else "a"
        raise Usage(f"{where}: {article} {specification.name} has no operation {operation.f!r}: use {known}")
    freeze = _freezing(specification)
    args = _each(msgspec.json.decode(operation.value), freeze)
    wanted = list(specification.arguments[operation.f])
    args = () if args is None else args
    if not isinstance(args, tuple) or len(args) != len(wanted):
        listed = ", ".join(wanted)
        raise Usage(f"{where}: the value of {operation.f} is a list of its arguments: [{listed}]")
    if operation.result is None:
        return Invocation(operation.f, args), ()
    result = _each(msgspec.json.decode(operation.result), freeze)
    if not isinstance(result, tuple) or not result or not isinstance(result[0], str):
        raise Usage(
            f"the end of {operation.f} of {where}: the result is a list of how it ended and what came back, as "
            '["Ok"] or ["Ok", 3]'
        )
    return Invocation(operation.f, args), (Response(result[0], result[1:]),)


def _freezing(specification: Specification) -> Callable[[Any], Any]:
    """How arguments and results of the type hold JSON values."""
    serial = specification.serial if isinstance(specification, Computed) else None
    return frozen if isinstance(serial, PlainClass) else _frozen


def _each(value: Any, freeze: Callable[[Any], Any]) -> Any:
    """A list as a tuple of values that may be held; anything else as it is."""
    return tuple(map(freeze, value)) if isinstance(value, list) else value


def _frozen(value: Any) -> Any:
    """A value as states may hold it: lists as tuples, objects as sets of pairs."""
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return frozenset((key, _frozen(each)) for key, each in value.items())
    return value
