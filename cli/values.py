"""Values on the command line and on standard input: JSON, and a sentence that says how to quote when it is not."""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

from ..api_specs.json_text import BadJson, GivenTwice, read_json
from .failure import Usage

_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, ends of lines and marks of direction: nobody sees them, a terminal obeys them, and some turn around
the text that follows."""
_COLUMN: Final = re.compile(r"[^\n\t]+")


def parse_value(word: str, place: str = "") -> Any:
    """The JSON value of one word; `place` names where it stood, as in "line 3"."""
    where = f" ({place})" if place else ""
    try:
        return read_json(word.encode(errors="surrogateescape"))
    except GivenTwice as error:
        raise Usage(f"The value {_shown(word)!r}{where} {error}.") from None
    except BadJson as error:
        raise Usage(_not_json(word, where, error)) from None


def parse_words(words: Sequence[str], stdin: TextIO) -> list[Any]:
    """The values of several words; the single word `-` stands for one JSON value on each line of standard input."""
    if list(words) == ["-"]:
        lines = (line.strip() for line in stdin)
        return [parse_value(line, f"line {number}") for number, line in enumerate(lines, 1) if line]
    return [parse_value(word) for word in words]


def parse_one(word: str, stdin: TextIO) -> Any:
    """The value of one word; `-` stands for all of standard input, which must be one JSON value."""
    return parse_value(stdin.read(), "standard input") if word == "-" else parse_value(word)


def compact(value: Any) -> str:
    """A value as one line of JSON, with what nobody would see spelled out."""
    return spelled_out(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def spelled_out(text: str) -> str:
    """`text` on one line, with what nobody would see as an escape, like \\u202e: JSON text stays JSON of the same value."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def lines_spelled_out(text: str) -> str:
    """The same of each line and column of a text: whoever wrote a value that it tells of moves nothing in a terminal."""
    return _COLUMN.sub(lambda found: spelled_out(found[0]), text)


def compact_lines(values: Iterable[Any]) -> str:
    """Values as JSON lines, without a last line end."""
    return "\n".join(compact(value) for value in values)


def _shown(word: str) -> str:
    return word if len(word) <= 60 else word[:60] + "…"


def _not_json(word: str, where: str, error: BadJson) -> str:
    shown = _shown(word)
    if not word.strip():
        return f"The value{where} is empty: give JSON; the empty text is '\"\"'."
    plain = not any(mark in word for mark in '[]{}"\\')
    if plain:
        quoted = shlex.quote(compact(shown))
        return f"The value {shown!r}{where} is not JSON: write {quoted} for that text (the shell takes the outer quotes)."
    return f"The value {shown!r}{where} {error}: put single quotes around it, as '{{\"a\": [1, 2]}}'."
