"""Whether what a page states is what was printed.

A line of dots alone, `...`, stands for any lines, also none; dots within a line for any text. How many spaces or drawn
lines there are in a row counts for nothing at the end of a line, where terminals differ, and counts elsewhere.
"""

import re
from difflib import unified_diff
from typing import Final

DOTS: Final = re.compile(r"\.\.\.|…")


def differs(stated: str, printed: str, *, is_part: bool = False) -> str:
    """What is wrong with a statement, as a difference of lines; nothing when it is right.

    `is_part`: the lines need only be found somewhere, one after the other.
    """
    wanted, got = _lines(stated), _lines(printed)
    pattern = "".join(map(_pattern, wanted))
    text = "".join(f"{line}\n" for line in got)
    is_right = re.search(f"^{pattern}", text, re.MULTILINE) if is_part else re.fullmatch(pattern, text)
    return "" if is_right else "\n".join(unified_diff(wanted, got, "stated", "printed", lineterm="", n=1000))


def _lines(text: str) -> list[str]:
    """The lines, without blanks at their ends and without empty ones at the beginning and the end."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").splitlines()


def _pattern(line: str) -> str:
    if DOTS.fullmatch(line.strip()):
        return r"(?:.*\n)*?"
    return ".*?".join(map(re.escape, DOTS.split(line))) + r"\n"
