"""Files of histories: the lines of `quorate.client_sdk.api.history`, as operations with their beginning and end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ...adts.histories.calls import NEVER
from ..failure import Usage
from ..output import say


class Line(Struct):
    """A line, as far as it is needed here; other members do not matter."""

    process: str | int
    id: str | int
    type: Literal["invoke", "ok", "fail", "info"]
    f: str
    time: int | float
    object: str = "object"
    key: str | None = None
    value: Raw = Raw(b"null")
    result: Raw = Raw(b"null")
    weak: bool = False


class Recorded(NamedTuple):
    """An operation that may have had an effect. `number` is the line of its beginning; `result` is there once it ended well."""

    number: int
    process: str
    object: str
    f: str
    key: str | None
    value: bytes
    invoked: float
    returned: float = NEVER
    result: bytes | None = None
    is_weak: bool = False


_DECODE: Final = msgspec.json.Decoder(Line).decode


def recorded(path: Path) -> list[Recorded]:
    """The operations of a file, but those that certainly had no effect, by beginning. Raises Usage, which names the line."""
    begun: dict[str, Recorded] = {}
    ended: list[Recorded] = []
    for number, line in _lines(path):
        id_ = str(line.id)
        if abs(line.time) >= NEVER:
            raise Usage(f"{path}, line {number}: the time {line.time} is out of range: use less than {NEVER}")
        if line.type == "invoke":
            if id_ in begun:
                raise Usage(
                    f"{path}, line {number}: {id_!r} began before, and has not ended: give each operation an id"
                )
            begun[id_] = Recorded(
                number, str(line.process), line.object, line.f, line.key, bytes(line.value), line.time
            )
            continue
        operation = begun.pop(id_, None)
        if operation is None:
            raise Usage(f"{path}, line {number}: {id_!r} ends, and no line before says that it began")
        if line.time < operation.invoked:
            raise Usage(f"{path}, line {number}: {id_!r} ends before it began, by the times given")
        match line.type:
            case "ok":
                ended.append(
                    operation._replace(returned=line.time, result=bytes(line.result), is_weak=line.weak)
                )
            case "info":
                ended.append(operation)
    return sorted([*ended, *begun.values()], key=lambda operation: operation.number)


def _lines(path: Path) -> Iterator[tuple[int, Line]]:
    """The lines with their numbers. A last one without an end was being written when its writer died: it is not there, which is said.
    Where it is the only one, nothing tells that the file is a history at all: Usage."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise Usage(f"{path} cannot be read: {error.strerror}") from None
    has_lines = False
    with file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                line = _DECODE(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                if text.endswith(b"\n"):
                    raise Usage(f"{path}, line {number} is not one of a history: {error}") from None
                if not has_lines:
                    raise Usage(
                        f"{path} is no history, for its only line is not one of a history: {error}. Give a file with a JSON object for each "
                        "line, each ended by a line feed, as the SDK writes it: connect(…, history=FILE)"
                    ) from None
                say(f"{path}, line {number} was cut off while it was written: it is left out.")
                return
            has_lines = True
            yield number, line
