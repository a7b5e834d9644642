"""Item values: from Python to canonical JSON text and back.

Owns what a value may be, its one text form (no blanks, object keys sorted), and when two are equal: JSON has one kind of
number, so `1` and `1.0` are equal, though each comes back as it went in. Must not know what values are for.
"""

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from typing import Any, Final

import msgspec

from ..adts.collector import collector_off
from ..adts.log import Entry, Value
from ..adts.parsing import SHORT_BYTES, canonical, parsed
from .limits import DEFAULTS, ENTRY_BYTES, WORK_OF_A_WAITING_BYTE, Limits

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 64) - 1
PLACE_CHARS_MAX: Final = 80
PARSED_CHARS_MAX: Final = 16 * 1024
"""Longer texts are compared as they stand: to parse a megabyte takes tens of milliseconds, for which a caller need send a few bytes. All that the API
stores is canonical; only a program of its own that appends to logs may have written it otherwise."""
_NESTED: Final = (list, tuple, dict)
_NO_NUMBER_HAS: Final = '",[{'
_MAY_HAVE_A_FLOAT: Final = re.compile(r"\d[.eE]")
_APART: Final = "\2"
"""No JSON text has it, nor "\0" or "\1": strings have control characters escaped."""
_BEHIND_A_NUMBER: Final = (",", "]", "}", _APART)
_LARGE: Final = re.compile(r"(?<![\d.-])(-?\d++(?:\.\d++)?e1[6-9])(?!\d)")
"""A number that canonical text has with an exponent, though it may be an integer's amount. Each is looked at once, from its beginning, or
numbers of thousands of digits would take minutes."""
_ALL_DIGITS_ALIKE: Final = bytes.maketrans(b"0123456789", b"0" * 10)
_LONG: Final = b"0" * 19
"""An integer beyond 64 bits has so many digits at least."""
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_STEP_BYTES: Final = 131_072
REMEMBERED_BYTES: Final = 128
"""What was found of a text of so many bytes is remembered: to check a shorter one takes no longer than to look it up."""
STATES_MAX: Final = 16
"""States of which it is remembered how much work they are."""
VERDICTS_MAX: Final = 16_384
"""Texts of which that is remembered: some 6 MB."""


BRACKET_BYTES: Final = 16
"""An array or object takes as long as so many bytes of a string, or somewhat longer (measured: 60 ms for 240 KB of nested arrays, 1.5 for a
string, 20 for objects)."""
CALL_BRACKETS: Final = 2
"""Of the text of a call, `["add",[1]]`: they do not come into the state."""


class BadValue(ValueError):
    """Something that is no JSON value, or one over the limits; the sentence names the place in it."""


def to_value(obj: Any, limits: Limits = DEFAULTS) -> Value:
    """The canonical JSON text of None, a bool, int, float or str, or of lists, tuples and dicts of these.

    Raises BadValue for NaN and infinities, integers beyond 64 bits, lone surrogates, keys that are not str, other types,
    nesting deeper than `value_depth_max`, and text over `value_bytes_max` bytes.
    """
    _check(obj, limits)
    return _bounded(canonical(obj, _plain), limits)


def json_to_value(found: Any, limits: Limits = DEFAULTS) -> Value:
    """As `to_value`, for what a parser of JSON has made, in a fifth of its time. Raises BadValue."""
    try:
        encoded = canonical(found)
    except RecursionError:
        raise BadValue(
            f"the value is nested deeper than {limits.value_depth_max} (value_depth_max)"
        ) from None
    value = _bounded(encoded, limits)
    if _may_be_refused(encoded, limits):
        _check(found, limits)
    return value


def _bounded(encoded: bytes, limits: Limits) -> Value:
    if len(encoded) > limits.value_bytes_max:
        raise BadValue(
            f"the value is {len(encoded)} bytes of JSON: at most {limits.value_bytes_max} (value_bytes_max) are allowed"
        )
    return Value(encoded.decode())


def _may_be_refused(encoded: bytes, limits: Limits) -> bool:
    """Whether JSON text, which a parser has taken, may hold what no value may: what is nested too deeply has as many brackets
    open at once, and an integer beyond 64 bits as many digits. To look at each part takes ten times as long."""
    return is_deeper(encoded, limits.value_depth_max) or _LONG in encoded.translate(_ALL_DIGITS_ALIKE)


def is_deeper(text: bytes, most: int) -> bool:
    """Whether JSON text is nested deeper than that."""
    return text.count(b"[") + text.count(b"{") > most and _depth(text) > most


def work_bytes(text: str) -> int:
    """How much work it is to read JSON text, check and write it again, in bytes of one long string: arrays and objects take most of it."""
    return text_bytes(text) + BRACKET_BYTES * (text.count("[") + text.count("{"))


def waiting_weight(calls: int, work: int, state: str | None) -> int:
    """What calls of an object of one's own type weigh that wait to be run, against `waiting_bytes_max`: ENTRY_BYTES for each, what they bring to the
    state, and a part of the work on it. `work` is theirs together, as `work_bytes` counts it, with CALL_BRACKETS of each. A call runs on the state, and
    on what those before it may have brought: half of all, in the mean."""
    brought = max(0, work - calls * CALL_BRACKETS * BRACKET_BYTES)
    on_states = calls * (_state_work(state or "") + brought // 2)
    return calls * ENTRY_BYTES + brought + on_states // WORK_OF_A_WAITING_BYTE


@lru_cache(STATES_MAX)
def _state_work(state: str) -> int:
    """As `work_bytes`: who stores calls asks it of one state again and again."""
    return work_bytes(state)


def _depth(text: bytes) -> int:
    """How many brackets of JSON text are open at once."""
    brackets = outside_strings(text).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def outside_strings(text: bytes) -> bytes:
    """JSON text without its strings. It is put together from pieces, in a third of the time of a regular expression; so much at
    a time that no step takes long."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    kept, is_within = list[bytes](), 0
    for place in range(0, len(text), _STEP_BYTES):
        pieces = text[place : place + _STEP_BYTES].split(b'"')
        kept.append(b"".join(pieces[is_within::2]))
        is_within ^= (len(pieces) - 1) & 1
    return b"".join(kept)


def from_value(value: Value) -> Any:
    """The Python value of canonical JSON text."""
    return msgspec.json.decode(value)


def comparable(value: Value | None) -> str | None:
    """Text that is the same for values that are equal in JSON's data model, where a number is its amount: 1 and 1.0 are
    equal, and so are 0 and -0.0. Numbers with a fraction or an exponent are doubles, integers are exact.

    Canonical text has one form for each double. So only what may equal an integer is looked at: what ends with ".0", and what is as large
    as integers are.
    """
    if not value or not _MAY_HAVE_A_FLOAT.search(value):
        return value
    pieces = value.replace("\\\\", "\0").replace('\\"', "\1").split('"')
    outside = _APART.join([*pieces[::2], ""])
    for end in _BEHIND_A_NUMBER:
        outside = outside.replace(f"-0.0{end}", f"0{end}").replace(f".0{end}", end)
    if "e1" in outside:
        parts = _LARGE.split(outside)
        parts[1::2] = map(_amount, parts[1::2])
        outside = "".join(parts)
    pieces[::2] = outside.split(_APART)[:-1]
    return '"'.join(pieces).replace("\1", '\\"').replace("\0", "\\\\")


def is_equal(value: Value, other: Value) -> bool:
    """Whether two values are equal in JSON's data model. What is built otherwise is found out before numbers are compared by their amounts; a log may
    hold short texts that are not canonical, as ` 1E3 `."""
    if value == other:
        return True
    is_built_alike = all(value.count(each) == other.count(each) for each in _NO_NUMBER_HAS)
    if is_built_alike and comparable(value) == comparable(other):
        return True
    return max(len(value), len(other)) <= PARSED_CHARS_MAX and _mean_the_same(value, other)


def _mean_the_same(value: Value, other: Value) -> bool:
    """What Python finds to differ does. What it takes for equal may have `true` for `1`, which their canonical texts tell apart."""
    try:
        found, sought = parsed(value.encode()), parsed(other.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # What is no JSON equals itself alone.
        return False
    return bool(found == sought) and _comparable_text(found) == _comparable_text(sought)


def _comparable_text(found: Any) -> str | None:
    return comparable(Value(canonical(found).decode()))


def _amount(word: str) -> str:
    """A number as the integer that it equals, if a value may have that."""
    amount = int(float(word))
    return str(amount) if INT_MIN <= amount <= INT_MAX else word


def check_value(text: str, limits: Limits = DEFAULTS) -> str | None:
    """Why `text` cannot be stored as a value, in a sentence; None when it can. For text that a front end sent as a value:
    it must be JSON within the limits; that it is canonical is the front end's promise."""
    # A character has at most four bytes, so that a short text need not be encoded to be counted.
    if len(text) > limits.value_bytes_max // 4 and text_bytes(Value(text)) > limits.value_bytes_max:
        return f"the value is over {limits.value_bytes_max} bytes of JSON (value_bytes_max)"
    try:
        encoded = text.encode()
    except UnicodeEncodeError as error:
        return f"the value is not JSON text: {error}"
    if len(encoded) < REMEMBERED_BYTES:
        return _problem(encoded, limits)
    verdict = _verdict(sha256(encoded).digest(), limits)
    if not verdict:
        verdict.append(_problem(encoded, limits))
    return verdict[0]


@lru_cache(VERDICTS_MAX)
def _verdict(digest: bytes, limits: Limits) -> list[str | None]:
    """What the check of a text with this SHA-256 found, once somebody has filled it in. A summary that keeps payloads has them with it in
    each decision, and to parse nested arrays again takes a hundred times as long."""
    return []


def _problem(encoded: bytes, limits: Limits) -> str | None:
    try:
        if len(encoded) <= SHORT_BYTES:
            _check_text(encoded, limits)
        else:
            with collector_off():
                _check_text(encoded, limits)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"the value is not JSON text: {error}"
    except BadValue as error:
        return str(error)
    return None


def _check_text(encoded: bytes, limits: Limits) -> None:
    found = parsed(encoded)
    if _may_be_refused(encoded, limits):
        _check(found, limits)


def text_bytes(text: str) -> int:
    """The length of text, as of a value, in a message."""
    return len(text) if text.isascii() else len(text.encode())


def payload_bytes(entries: Iterable[Entry]) -> int:
    """What the payloads of these entries, as far as they are at hand, weigh in a message."""
    return sum(text_bytes(entry.value) for entry in entries if isinstance(entry.value, str))


def payload_work(entries: Iterable[Entry]) -> int:
    """How much work it is to read the payloads of these entries, as `work_bytes` counts it."""
    return sum(work_bytes(entry.value) for entry in entries if isinstance(entry.value, str))


def _plain(part: Any) -> Any:
    """The plain form of a subclass that msgspec does not know, as numpy.float64 is one of float."""
    return next(kind(part) for kind in (str, int, float) if isinstance(part, kind))


class _Walk:
    """Looks at every part of a value, level by level, so that one that contains itself ends at the limits.

    Where a part stands is put into words only for an error: that costs more than to look. So each level keeps, besides its
    arrays and objects, only which one of the level above holds each.
    """

    def __init__(self, obj: Any, limits: Limits) -> None:
        self._limits: Final = limits
        self._levels: Final[list[tuple[list[Any], list[int]]]] = [([obj], [0])]
        self._room = (limits.value_bytes_max + 1) // 2 - 1

    def check(self) -> None:
        """Raises BadValue where any part is none of a value, or is too deep, or where there are too many parts."""
        for _ in range(self._limits.value_depth_max):
            parts, _ = self._levels[-1]
            inner: tuple[list[Any], list[int]] = [], []
            for index, part in enumerate(parts):
                self._look_into(part, index, inner)
            if not inner[0]:
                return
            self._levels.append(inner)
        raise BadValue(
            f"{_named(self._place(0))} is nested deeper than {self._limits.value_depth_max} (value_depth_max)"
        )

    def _look_into(self, part: Any, index: int, inner: tuple[list[Any], list[int]]) -> None:
        """Check the scalars of an array or object, and add to `inner` what it holds of these, unless that is empty. What is too
        large for its number of parts is refused before they are looked at: each but one takes two bytes at least."""
        self._room -= len(part)
        if self._room < 0:
            most = self._limits.value_bytes_max
            raise BadValue(f"the value is over {most} bytes of JSON (value_bytes_max)")
        if isinstance(part, dict):
            for key in part:
                self._check_key(key, index)
            part = part.values()
        for each in part:
            kind = type(each)
            if kind is int and INT_MIN <= each <= INT_MAX:
                continue
            if isinstance(each, _NESTED):
                if each:
                    inner[0].append(each)
                    inner[1].append(index)
            elif (kind is not str or not each.isascii()) and (wrong := _wrong(each)):
                raise BadValue(f"{_named(self._place(index) + self._step(index, each))} {wrong}")

    def _check_key(self, key: Any, index: int) -> None:
        if not isinstance(key, str):
            place = _named(self._place(index))
            raise BadValue(f"{place} has the key {_shown(key)}: keys of JSON objects are strings")
        if not key.isascii() and (wrong := _wrong(key)):
            raise BadValue(f"{_named(self._place(index))} {wrong}")

    def _place(self, index: int) -> str:
        """Where a part of the lowest level stands, as `.orders[3]`."""
        steps: list[str] = []
        for (parts, holders), (held_by, _) in zip(self._levels[:0:-1], self._levels[-2::-1], strict=True):
            holder = holders[index]
            steps.append(_step(held_by[holder], parts[index]))
            index = holder
        return "".join(reversed(steps))

    def _step(self, index: int, each: Any) -> str:
        return _step(self._levels[-1][0][index], each)


def _step(holder: Any, held: Any) -> str:
    """The place of `held` within the array or object that holds it."""
    if isinstance(holder, dict):
        return next(f".{key}" for key, each in holder.items() if each is held)
    return next(f"[{index}]" for index, each in enumerate(holder) if each is held)


def _check(obj: Any, limits: Limits) -> None:
    if isinstance(obj, _NESTED):
        _Walk(obj, limits).check()
    elif wrong := _wrong(obj):
        raise BadValue(f"the value {wrong}")


def _wrong(scalar: Any) -> str | None:
    """What keeps a scalar from being a value; None when nothing does."""
    match scalar:
        case None | bool():
            return None
        case str():
            return _wrong_text(scalar)
        case int() if INT_MIN <= scalar <= INT_MAX:
            return None
        case int():
            return "is an integer beyond 64 bits: send it as a string"
        case float() if math.isfinite(scalar):
            return None
        case float():
            return f"is {scalar}, which JSON does not have: send null or a string"
    kind = type(scalar).__name__
    return f"is of type {kind}, which is not JSON: use None, bool, int, float, str, list, dict"


def _wrong_text(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "has text with a lone surrogate, which is not valid Unicode: decode it properly first"
    return None


def _named(place: str) -> str:
    if not place:
        return "the value"
    shown = place if len(place) <= PLACE_CHARS_MAX else f"{place[:PLACE_CHARS_MAX]}..."
    return f"the value at {shown.encode(errors='replace').decode()}"


def _shown(key: Any) -> str:
    return repr(key)[:PLACE_CHARS_MAX]
