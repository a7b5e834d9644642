"""Item values: from Python to canonical JSON text and back.

Owns what a value may be, its one text form (no blanks, object keys sorted), and when two are equal: JSON has one kind of
number, so `1` and `1.0` are equal, though each comes back as it went in. Must not know what values are for.
"""

import math
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from quorate.adts.log import Entry, Value
from quorate.api_specs.limits import DEFAULTS, Limits

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 64) - 1
PLACE_CHARS_MAX: Final = 80
_WORD: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')
"""A string or a number in JSON text."""
_MAY_HAVE_A_FLOAT: Final = re.compile(r"\d[.eE]")


class BadValue(ValueError):
    """Something that is no JSON value, or one over the limits; the sentence names the place in it."""


def to_value(obj: Any, limits: Limits = DEFAULTS) -> Value:
    """The canonical JSON text of None, a bool, int, float or str, or of lists, tuples and dicts of these.

    Raises BadValue for NaN and infinities, integers beyond 64 bits, lone surrogates, keys that are not str, other types,
    nesting deeper than `value_depth_max`, and text over `value_bytes_max` bytes.
    """
    _check(obj, limits)
    encoded = msgspec.json.encode(obj, enc_hook=_plain, order="deterministic")
    if len(encoded) > limits.value_bytes_max:
        raise BadValue(
            f"the value is {len(encoded)} bytes of JSON: at most {limits.value_bytes_max} (value_bytes_max) are allowed"
        )
    return Value(encoded.decode())


def from_value(value: Value) -> Any:
    """The Python value of canonical JSON text."""
    return msgspec.json.decode(value)


def comparable(value: Value | None) -> str | None:
    """Text that is the same for values that are equal in JSON's data model, where a number is its amount: 1, 1.0 and 1e0 are
    equal, and so are 0 and -0.0. Numbers with a fraction or an exponent are doubles, integers are exact."""
    return _WORD.sub(_amount, value) if value and _MAY_HAVE_A_FLOAT.search(value) else value


def is_equal(value: Value, other: Value) -> bool:
    """Whether two values are equal in JSON's data model."""
    return value == other or comparable(value) == comparable(other)


def _amount(word: re.Match[str]) -> str:
    """A number as the integer that it equals, if a value may have that; else, and for a string, what is there."""
    text = word[0]
    if text.startswith('"') or text.lstrip("-").isdigit():
        return text
    amount = float(text)
    return str(int(amount)) if amount.is_integer() and INT_MIN <= amount <= INT_MAX else repr(amount)


def check_value(text: str, limits: Limits = DEFAULTS) -> str | None:
    """Why `text` cannot be stored as a value, in a sentence; None when it can. For text that a front end sent as a value:
    it must be JSON within the limits; that it is canonical is the front end's promise."""
    # A character has at most four bytes, so that a short text need not be encoded to be counted.
    if len(text) > limits.value_bytes_max // 4 and text_bytes(Value(text)) > limits.value_bytes_max:
        return f"the value is over {limits.value_bytes_max} bytes of JSON (value_bytes_max)"
    try:
        _check(msgspec.json.decode(text), limits)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"the value is not JSON text: {error}"
    except BadValue as error:
        return str(error)
    return None


def text_bytes(value: Value) -> int:
    """The length of JSON text in a message."""
    return len(value) if value.isascii() else len(value.encode())


def payload_bytes(entries: Iterable[Entry]) -> int:
    """What the payloads of these entries, as far as they are at hand, weigh in a message."""
    return sum(text_bytes(entry.value) for entry in entries if isinstance(entry.value, str))


def _plain(part: Any) -> Any:
    """The plain form of a subclass that msgspec does not know, as numpy.float64 is one of float."""
    return next(kind(part) for kind in (str, int, float) if isinstance(part, kind))


def _check(obj: Any, limits: Limits) -> None:
    """Look at every part, level by level, so that a value that contains itself ends at the limits."""
    if not isinstance(obj, list | tuple | dict):
        _check_scalar("", obj)
        return
    level: list[tuple[str, Any]] = [("", obj)]
    for _ in range(limits.value_depth_max + 1):
        inner: list[tuple[str, Any]] = []
        for place, part in level:
            if len(inner) > limits.value_bytes_max:  # each part is at least one byte
                raise BadValue(f"the value is over {limits.value_bytes_max} bytes of JSON (value_bytes_max)")
            if isinstance(part, list | tuple):
                inner += ((f"{place}[{index}]", each) for index, each in enumerate(part))
            elif isinstance(part, dict):
                inner += _parts_of_dict(place, part)
            else:
                _check_scalar(place, part)
        if not inner:
            return
        level = inner
    raise BadValue(f"{_named(level[0][0])} is nested deeper than {limits.value_depth_max} (value_depth_max)")


def _parts_of_dict(place: str, part: dict[Any, Any]) -> Iterable[tuple[str, Any]]:
    for key, each in part.items():
        if not isinstance(key, str):
            raise BadValue(f"{_named(place)} has the key {_shown(key)}: keys of JSON objects are strings")
        _check_text(place, key)
        yield f"{place}.{key}", each


def _check_scalar(place: str, part: Any) -> None:
    match part:
        case None | bool():
            return
        case str():
            _check_text(place, part)
        case int():
            if not INT_MIN <= part <= INT_MAX:
                raise BadValue(f"{_named(place)} is an integer beyond 64 bits: send it as a string")
        case float():
            if not math.isfinite(part):
                raise BadValue(f"{_named(place)} is {part}, which JSON does not have: send null or a string")
        case _:
            kind = type(part).__name__
            raise BadValue(
                f"{_named(place)} is of type {kind}, which is not JSON: use None, bool, int, float, str, list, dict"
            )


def _check_text(place: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadValue(
            f"{_named(place)} has text with a lone surrogate, which is not valid Unicode: decode it properly first"
        ) from None


def _named(place: str) -> str:
    if not place:
        return "the value"
    shown = place if len(place) <= PLACE_CHARS_MAX else f"{place[:PLACE_CHARS_MAX]}..."
    return f"the value at {shown.encode(errors='replace').decode()}"


def _shown(key: Any) -> str:
    return repr(key)[:PLACE_CHARS_MAX]
