"""The shorter way of plain requests to the ADT API: past the framework, which costs more than what is asked for.

A request is plain when it names nothing besides an object and a value, or how many items to take: no query, no
Idempotency-Key, a body that is application/json. All others, and whatever is wrong with a plain one, go to the framework, so
that nobody can tell which way a request went. Owns which requests are plain. Must not know what becomes of them:
`quorate.replica.api.operations` runs them, and `answers` has the form of their answers.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...adts.collector import collector_off
from ...adts.parsing import SHORT_BYTES
from ...adts.types.catalogue import NAME_PATTERN, object_name
from ...api_specs.json_text import BadJson
from ...client_sdk.protocol.core.values import Dequeue, Enqueue, Operation, Read, Write
from ..http.gate import Replay
from ..http.json_body import decoded
from ..http.large_bodies import read_apart
from . import answers
from .operations import Operations

_PATH: Final = re.compile(
    rf"/v1/(?:queues/(?P<queue>{NAME_PATTERN})/(?P<end>items|dequeue)|registers/(?P<register>{NAME_PATTERN})"
    rf"|dictionaries/(?P<dictionary>{NAME_PATTERN})/entries/(?P<key>{NAME_PATTERN}))"
)


class Plain(NamedTuple):
    """What a plain request asks for, and how its result is answered."""

    operation: Operation
    answer: Callable[[Any], Response]


class PlainRequests:
    """ASGI middleware behind the gate: runs plain requests by itself, and leaves all others to `app`."""

    def __init__(self, app: ASGIApp, *, operations: Operations) -> None:
        self._app: Final = app
        self._operations: Final = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ask = _PLAIN.get(scope["method"]) if scope["type"] == "http" and not scope["query_string"] else None
        place = None if ask is None else _PATH.fullmatch(scope["path"])
        if ask is None or place is None:
            await self._app(scope, receive, send)
            return
        body = b""
        if scope["method"] != "GET":
            body = (await receive())["body"]
            receive = Replay(body, receive)
        plain = None
        if _is_plain(scope["headers"], body):
            plain = await read_apart(partial(_asked, ask, self._operations, place, body))
        if plain is None:
            await self._app(scope, receive, send)
            return
        done = await self._operations.run(plain.operation, None)
        await answers.labelled(plain.answer, done)(scope, receive, send)


def _asked(
    ask: Callable[[Operations, re.Match[str], bytes], Plain | None],
    operations: Operations,
    place: re.Match[str],
    body: bytes,
) -> Plain | None:
    """What a parser makes of the body is gone before somebody looks for garbage again."""
    if len(body) <= SHORT_BYTES:  # Few parts: not to have them looked at takes longer.
        return ask(operations, place, body)
    with collector_off():
        return ask(operations, place, body)


def _is_plain(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bool:
    is_typed = not body
    for name, value in headers:
        if name == b"content-type":
            if value != b"application/json":
                return False
            is_typed = True
        elif name == b"idempotency-key":
            return False
    return is_typed


def _members(body: bytes) -> dict[str, Any] | None:
    """The members of a JSON object, read as the framework reads it."""
    try:
        found = decoded(body)
    except BadJson:
        return None
    return found if isinstance(found, dict) else None


def _post(operations: Operations, place: re.Match[str], body: bytes) -> Plain | None:
    if (name := place["queue"]) is None:
        return None
    given = _members(body) if body else {}
    if given is None or len(given) > 1:
        return None
    if place["end"] == "items":
        items = [given["item"]] if "item" in given else given.get("items")
        if not isinstance(items, list) or not 0 < len(items) <= operations.limits.batch_items_max:
            return None
        values = operations.values(items)
        return Plain(Enqueue(object_name("queue", name), values), lambda _: answers.enqueued(len(values)))
    items_max = given.get("max", 1) if len(given) == ("max" in given) else 0
    if type(items_max) is not int or not 0 < items_max <= operations.limits.batch_items_max:
        return None
    return Plain(Dequeue(object_name("queue", name), items_max), answers.listed)


def _put(operations: Operations, place: re.Match[str], body: bytes) -> Plain | None:
    given = _members(body)
    if place["queue"] is not None or given is None or given.keys() != {"value"}:
        return None
    return Plain(Write(_cell(place), operations.value(given["value"])), lambda _: answers.nothing())


def _get(operations: Operations, place: re.Match[str], body: bytes) -> Plain | None:
    del operations
    if place["queue"] is not None or body:
        return None
    if place["register"] is not None:
        return Plain(Read(_cell(place)), answers.held)
    return Plain(Read(_cell(place)), partial(answers.held_at, place["dictionary"], place["key"]))


def _cell(place: re.Match[str]) -> str:
    if (name := place["register"]) is not None:
        return object_name("register", name)
    return object_name("dictionary", place["dictionary"], place["key"])


_PLAIN: Final[Mapping[str, Callable[[Operations, re.Match[str], bytes], Plain | None]]] = {
    "GET": _get,
    "POST": _post,
    "PUT": _put,
}
