"""JSON text, parsed and written so that no text of its length takes much longer than another. Pure.

Owns how numbers, garbage and the order of names are dealt with meanwhile. Must not know what the text is.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from .collector import COLLECTOR, collector_off

_EXPONENTS_ALIKE: Final = bytes.maketrans(b"E123456789", b"e" + b"0" * 9)
_FAR: Final = b"e000"
"""A number far from 1 has an exponent of three digits; so looks text where the signs are left out."""
_LOWER: Final = bytes.maketrans(b"E", b"e")
_HALFWAY: Final = b"e23"
"""Lies halfway between two floats, as `1e23` and its doubles do: what takes msgspec fifteen times as long as others. Their text may have signs
and zeros in the exponent."""
_YOUNG_MAX: Final = 20_000
"""So many arrays and objects may a search for garbage well look at."""
SHORT_BYTES: Final = 4096
"""Shorter text has few parts: to keep the garbage collector from them would take longer than it does."""
FEW_NAMES: Final = 512
"""In a text. msgspec puts so many in order quickly. The time that it takes grows with the square of their number where all but a few are in order, as
where a state got one more."""


def parsed(text: bytes) -> Any:
    """What JSON text means, without looking for garbage meanwhile: there is none, and with many arrays the search takes nine
    tenths of the time. Raises msgspec.DecodeError, UnicodeDecodeError, RecursionError."""
    decode = _decode_far if _may_be_far(text) else msgspec.json.decode
    if len(text) <= SHORT_BYTES:
        return decode(text)
    with collector_off() as was_on:
        found = decode(text)
        if was_on and len(text) > _YOUNG_MAX and text.count(b"[") + text.count(b"{") > _YOUNG_MAX:
            _age_all()
        return found


def canonical(value: Any, enc_hook: Callable[[Any], Any] | None = None) -> bytes:
    """The JSON text of a value: no blanks, and the names of each object in order. Raises what `msgspec.json.encode` raises."""
    encoded = msgspec.json.encode(value, enc_hook=enc_hook)
    names = encoded.count(b'":')
    if names < 2:
        return encoded
    if names <= FEW_NAMES:
        return msgspec.json.encode(value, enc_hook=enc_hook, order="deterministic")
    found = parsed(encoded)
    _put_in_order(found)
    return msgspec.json.encode(found, order="deterministic")


def _put_in_order(found: Any) -> None:
    """The names of each large object, which the parser has made."""
    left = [found]
    while left:
        part = left.pop()
        if type(part) is dict:
            if len(part) > FEW_NAMES:
                in_order = {name: part[name] for name in sorted(part)}
                part.clear()
                part.update(in_order)
            part = part.values()
        left += [each for each in part if type(each) is dict or type(each) is list]


def _age_all() -> None:
    """Have Python take all that is there for old, in two steps that look at none of it: the next search for young garbage
    would look at every array that was just parsed, and so would the one after it. What is garbage by now stays for long: so this is
    for what is seldom parsed."""
    COLLECTOR.freeze()
    COLLECTOR.unfreeze()


def _may_be_far(text: bytes) -> bool:
    """Whether JSON text may have numbers that are far from 1, as `1e300`: for each of these msgspec takes as long as for five
    hundred others; or halfway between two floats."""
    return _FAR in text.translate(_EXPONENTS_ALIKE, b"+-") or _HALFWAY in text.translate(_LOWER, b"+-0")


def _double(text: str) -> float:
    """A number with a fraction or an exponent, by Python. Raises ValueError for one beyond a double."""
    if math.isinf(number := float(text)):
        raise ValueError("Number out of range")
    return number


_decode_far: Final = msgspec.json.Decoder(float_hook=_double).decode
