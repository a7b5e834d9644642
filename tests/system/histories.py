"""From the JSON lines of a client's history to the calls that `simulation` judges by.

Owns the meaning of the lines' words. The order of the lines is the order of the moments: a client writes "invoke"
before it sends, the end of an operation after it knows it, and each line with one write, whoever shares the file.
"""

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import msgspec

from quorate.adts.types.catalogue import adt_of
from quorate.client_sdk.api.history import Line
from quorate.simulation.history import Call
from quorate.simulation.judging.checkers import check_drained, check_items, check_object

_WORDS = {
    "enqueue": "Enq",
    "dequeue": "Deq",
    "peek": "Peek",
    "size": "Size",
    "read": "Read",
    "write": "Write",
    "get": "Get",
    "put": "Put",
    "delete": "Delete",
    "cas": "Cas",
    "put_if_absent": "PutIfAbsent",
    "items": "Items",
}

_READING = frozenset({"Peek", "Size", "Read", "Get", "Items"})
"""What changes nothing: without an answer it tells nothing either."""


class Told:
    """A history: calls by object (those that certainly did nothing left out), and how many lines ended how."""

    def __init__(self, path: Path) -> None:
        self.calls: dict[str, list[Call]] = {}
        self.ends: dict[str, Counter[str]] = {}
        begun: dict[str, tuple[Line, Call]] = {}
        with path.open("rb") as file:
            for moment, text in enumerate(file):
                self._read(msgspec.json.decode(text, type=Line), moment, begun)
        for line, _ in begun.values():
            self.ends[line.object]["never ended"] += 1

    def _read(self, line: Line, moment: int, begun: dict[str, tuple[Line, Call]]) -> None:
        ends = self.ends.setdefault(line.object, Counter())
        calls = self.calls.setdefault(line.object, [])
        if line.type == "invoke":
            call = Call(_WORDS[line.f], _args(line), moment, who=line.process)
            begun[line.id] = (line, call)
            calls.append(call)
            return
        _, call = begun.pop(line.id)
        ends[line.type] += 1
        if line.type == "ok":
            call.returned, call.results = moment, _results(line)
        elif line.type == "fail" or call.operation in _READING:
            calls[:] = [each for each in calls if each is not call]

    def unknown(self, name: str) -> int:
        """Operations on the object whose outcome nobody learned."""
        return self.ends[name]["info"] + self.ends[name]["never ended"]

    def check(self, search: Collection[str] | None = None, *, is_exact: bool = True) -> int:
        """Violation when an item was lost, doubled or invented, or an object is not linearizable.

        Queues must have been drained to Empty at the end. `search`: the objects for which an order is searched (all, if
        left out); many unknown dequeues make that long. `is_exact`: as `quorate.simulation.judging.checkers` has it. Returns how many
        searches were given up.
        """
        given_up = 0
        for name, calls in self.calls.items():
            if search is None or name in search:
                given_up += check_object(name, calls, is_exact=is_exact)
            if adt_of(name) == "queue":
                check_items(name, calls)
                check_drained(name, calls)
        return given_up


def _args(line: Line) -> tuple[Any, ...]:
    key = () if line.key is None else (line.key,)
    match line.f:
        case "cas":
            old, new = msgspec.json.decode(bytes(line.value), type=tuple[msgspec.Raw, msgspec.Raw])
            return (*key, _value(old), _value(new))
        case "enqueue" | "write" | "put" | "put_if_absent":
            return (*key, _value(line.value))
    return key


def _results(line: Line) -> tuple[Any, ...]:
    result = _value(line.result)
    match line.f:
        case "dequeue" | "peek":
            return () if result is None else (result,)
        case "read" | "get":
            return (result,)
        case "size":
            return (json.loads(bytes(line.result)),)
        case "cas":
            return ("Ok" if result == "true" else "Fail",)
        case "put_if_absent":
            return ("Ok" if result == "true" else "Present",)
        case "items":
            pairs = msgspec.json.decode(bytes(line.result), type=dict[str, msgspec.Raw])
            return (frozenset((key, _value(text)) for key, text in pairs.items()),)
    return ()


def _value(text: msgspec.Raw) -> str | None:
    """JSON text as the checkers hold it; null, which these tests never store, stands for nothing."""
    return None if bytes(text) == b"null" else bytes(text).decode()


__all__ = ["Told"]
