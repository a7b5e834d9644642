"""Members of JSON objects: each is given once, else the text has more than one meaning.

Python's parser takes the last of two members with one name; a proxy or a log in front, which takes the first, would have seen
another value than the one that was used. The API and the command line read JSON by this one rule.
"""

from typing import Any, Final

_NAME_SHOWN: Final = 64


class NotOneMeaning(ValueError):
    """The JSON is refused for what the sentence says."""


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these members, as the parser's `object_pairs_hook`. Raises NotOneMeaning."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise NotOneMeaning(f"the member {_given_twice(pairs)[:_NAME_SHOWN]!r} is given more than once")
    return found


def _given_twice(pairs: list[tuple[str, Any]]) -> str:
    """The first name that was met before. A body may have a million members: each is looked at once."""
    met: set[str] = set()
    for name, _ in pairs:
        if name in met:
            return name
        met.add(name)
    raise AssertionError("one is there twice")
