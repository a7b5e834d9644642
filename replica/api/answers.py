"""The form of the ADT API's answers, put together from values as canonical text."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from starlette.responses import Response

from ...adts.keys import name_key
from ...adts.log import Dead, Leased, Value
from ...adts.plain_class import Json
from ...client_sdk.protocol.core.values import Done, LeaseBook
from ..http.problems import Refusal


def json_response(text: str) -> Response:
    """JSON that was put together."""
    return Response(text, media_type="application/json")


CONSISTENCY: Final = "Quorate-Consistency"
"""The header of an answer that may miss changes which had ended when it was asked for."""


def labelled(answer: Callable[[Any], Response], done: Done) -> Response:
    """The answer that tells the result, or the Refusal; it says so where it may be old."""
    label = {CONSISTENCY: "eventual"} if done.is_weak else {}
    try:
        response = answer(done.result)
    except Refusal as refusal:
        refusal.headers.update(label)
        raise
    response.headers.update(label)
    return response


def length_of(result: object) -> int:
    """How long the answer that tells a result of an operation will be, by the values in it."""
    match result:
        case str():
            return len(result)
        case Json():
            return len(result.text)
        case tuple():
            return sum(map(length_of, result))
        case Leased() | Dead():
            return length_of(result.entry.value)
        case LeaseBook():
            return length_of(result.leases) + length_of(result.dead)
    return 0


def enqueued(count: int) -> Response:
    """So many items were added."""
    return json_response(f'{{"enqueued":{count}}}')


def listed(values: Iterable[Value]) -> Response:
    """The items that were taken, or looked at."""
    return json_response('{"items":[' + ",".join(values) + "]}")


def held(value: Value | None) -> Response:
    """What a register holds."""
    return json_response(f'{{"value":{"null" if value is None else value}}}')


def held_at(name: str, key: str, value: Value | None) -> Response:
    """What a dictionary holds at the key of that name. Raises Refusal when that is nothing."""
    if value is None:
        raise Refusal("not-found", f"the dictionary {name} has no key {name_key(key)}")
    return held(value)


def nothing() -> Response:
    """It was done, and there is nothing to tell."""
    return Response(status_code=204)
