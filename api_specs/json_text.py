"""JSON text, read so that it means one thing: in UTF-8 without a byte order mark, each member of an object given once.

RFC 8259 asks senders for all three. A parser that takes the last of two members with one name would use another value than a proxy
or a log in front, which takes the first, has seen. The API and the command line read JSON by this one rule.
"""

import re
from typing import Any, Final

import msgspec

from .values import parsed

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class BadJson(ValueError):
    """What is wrong with the text, as the rest of a sentence about it."""


class GivenTwice(BadJson):
    """An object has a member twice."""


def read_json(text: bytes) -> Any:
    """What JSON text means. Raises BadJson."""
    if text.startswith(b"\xef\xbb\xbf"):
        raise BadJson("begins with a byte order mark")
    try:
        found = parsed(text)
    except UnicodeDecodeError:
        raise BadJson("is not UTF-8") from None
    except RecursionError:
        raise BadJson("is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise BadJson(f"is not JSON: {str(error).removeprefix('JSON is malformed: ')}") from None
    _check_members(text, found)
    return found


def _check_members(text: bytes, found: Any) -> None:
    """Raises GivenTwice where a member is given more than once: then `found` has fewer members than the text has colons, which
    are counted first as they are, then outside strings. To hear of each object as it is parsed would take 20 times as long."""
    colons = text.count(b":")
    if colons in (0, len(found) if isinstance(found, dict) else 0):
        return
    members = _members(found)
    if members not in (colons, _STRING.sub(b"", text).count(b":")):
        raise GivenTwice("gives a member of an object more than once")


def _members(found: Any) -> int:
    """How many members all objects have together."""
    count, parts = 0, [found]
    while parts:
        holders = [each for each in parts if type(each) is dict or type(each) is list]
        parts = []
        for each in holders:
            count += len(each) if type(each) is dict else 0
            parts += each.values() if type(each) is dict else each
    return count
