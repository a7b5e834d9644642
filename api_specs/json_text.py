"""JSON text, read so that it means one thing: in UTF-8 without a byte order mark, each member of an object given once.

RFC 8259 asks senders for all three. A parser that takes the last of two members with one name would use another value than a proxy
or a log in front, which takes the first, has seen. The API and the command line read JSON by this one rule.
"""

from typing import Any, Final

import msgspec

from ..adts.parsing import parsed
from .values import outside_strings

_NO_PARTS: Final = bytes(set(range(256)) - set(b",:[{"))
"""Each part of JSON text but the first has one of the other four before it, or is an array or an object."""
_NAME_PARTS: Final = 3
"""The name of a member counts as so many parts: half a million names in one object take ten times as long as half a million numbers."""
_WORDS: Final = {
    "Input data was truncated": "it is cut off, or a text in it ends with half of a surrogate pair"
}
"""Where the parser's own words say too little."""
_ESCAPED_COLON: Final = b"\\u003"


class BadJson(ValueError):
    """What is wrong with the text, as the rest of a sentence about it."""


class GivenTwice(BadJson):
    """An object has a member twice."""


class TooManyParts(BadJson):
    """It has more parts than it may have."""


def read_json(text: bytes, parts_max: int | None = None) -> Any:
    """What JSON text means. What has more parts than `parts_max` is not parsed. Raises BadJson."""
    if parts_max is not None and not has_few_parts(text, parts_max):
        raise TooManyParts(f"has more than {parts_max} values and names of members")
    if text.startswith(b"\xef\xbb\xbf"):
        raise BadJson("begins with a byte order mark")
    try:
        found = parsed(text)
    except UnicodeDecodeError:
        raise BadJson("is not UTF-8") from None
    except RecursionError:
        raise BadJson("is nested too deeply") from None
    except msgspec.DecodeError as error:
        why = _WORDS.get(str(error), str(error).removeprefix("JSON is malformed: "))
        raise BadJson(f"is not JSON: {why}") from None
    _check_members(text, found)
    return found


def has_few_parts(text: bytes, most: int) -> bool:
    """Whether JSON text has at most so many values, with the names of members (`_NAME_PARTS` each), by the signs between them. What stands
    in strings is looked at only where it decides: between so many strings are as many signs."""
    if len(text) <= most or _signs(text) <= most:
        return True
    if text.count(b'"') - text.count(b'\\"') > 2 * (most + 1):
        return False
    return _signs(outside_strings(text)) <= most


def _signs(text: bytes) -> int:
    signs = text.translate(None, _NO_PARTS)
    return len(signs) + (_NAME_PARTS - 1) * signs.count(b":")


def _check_members(text: bytes, found: Any) -> None:
    """Raises GivenTwice where a member is given more than once: then what was found has fewer members than the text, and fewer
    colons when it is text again. They are counted first as they are, then outside strings. To hear of each object as it is
    parsed would take 20 times as long."""
    colons = text.count(b":")
    if colons in (0, len(found) if isinstance(found, dict) else 0):
        return
    again = msgspec.json.encode(found)
    if _ESCAPED_COLON not in text and again.count(b":") == colons:
        return
    if outside_strings(again).count(b":") != outside_strings(text).count(b":"):
        raise GivenTwice("gives a member of an object more than once")
