"""The pages, taken apart: their fenced blocks with the marks above them, their headings and their links.

Owns the form of a page, and nothing of what becomes of a block: `tests.docs.reader` does what the marks say.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
DRAWN: Final = "drawn: "
RUN_BY: Final = "run by: "
ACTION: Final = "do: "

_COMMENT: Final = re.compile(r"\s*<!-- (.*) -->\s*")
_FENCE: Final = re.compile(r"( *)```([\w-]*)\s*")
_HEADING: Final = re.compile(r"#{1,6} (.*)")
_LINK: Final = re.compile(r"(?<!!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
_LINK_TEXT: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")


class Block(NamedTuple):
    """A fenced block, and the mark in the comment above it; or an action, a comment alone, which has no text."""

    page: str
    line: int
    mark: str
    language: str
    text: str

    @property
    def place(self) -> str:
        """Where a reader finds it."""
        return f"{self.page}:{self.line}"


def run_pages() -> list[str]:
    """The pages whose blocks are run, by their paths in the repository."""
    return ["README.md", "CONTRIBUTING.md", *_pages_of_docs()]


def blocks_run_by(test: str) -> list[Block]:
    """The blocks which that file of tests runs, by its path in the repository."""
    pages = {page: blocks_of(page, (ROOT / page).read_text()) for page in run_pages()}
    return [block for blocks in pages.values() for block in blocks if block.mark == RUN_BY + test]


def linked_pages() -> list[str]:
    """All pages that people read."""
    tops = sorted(str(path.relative_to(ROOT)) for path in [*ROOT.glob("*.md"), *ROOT.glob("examples/*.md")])
    return [*tops, *_pages_of_docs()]


def _pages_of_docs() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def blocks_of(page: str, text: str) -> list[Block]:
    """The blocks and actions of a page, in order; lines are counted from 1."""
    found: list[Block] = []
    lines = iter(enumerate(text.splitlines(), 1))
    mark = ""
    for number, line in lines:
        if comment := _COMMENT.fullmatch(line):
            mark = comment[1]
            if mark.startswith(ACTION):
                found.append(Block(page, number, mark, "", ""))
        elif fence := _FENCE.fullmatch(line):
            found.append(Block(page, number, mark, fence[2], _inside(lines, fence[1], f"{page}:{number}")))
        if not comment:
            mark = ""
    return found


def _inside(lines: Iterator[tuple[int, str]], indent: str, place: str) -> str:
    """The text up to the closing fence, without the fence's own indent."""
    inside: list[str] = []
    for _, line in lines:
        if line.strip() == "```":
            return "".join(f"{each.removeprefix(indent)}\n" for each in inside)
        inside.append(line)
    raise AssertionError(f"{place}: this block has no end")


def prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside its blocks, with their numbers."""
    is_inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.fullmatch(line):
            is_inside = not is_inside
        elif not is_inside:
            yield number, line


def anchors_of(text: str) -> set[str]:
    """The names by which a page's headings may be linked to, made as GitHub makes them."""
    found: set[str] = set()
    for _, line in prose(text):
        if heading := _HEADING.fullmatch(line):
            name = anchor = _anchor(heading[1])
            repeated = 0
            while anchor in found:
                repeated += 1
                anchor = f"{name}-{repeated}"
            found.add(anchor)
    return found


def _anchor(heading: str) -> str:
    shown = _LINK_TEXT.sub(r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")


def links_of(text: str) -> Iterator[tuple[int, str]]:
    """Every target of a link, with its line. A link's text may go over several lines; code is left out."""
    kept = "\n".join(dict(_padded(text)).values())
    without_code = re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), kept)
    for link in _LINK.finditer(without_code):
        yield without_code.count("\n", 0, link.start()) + 1, link[1]


def _padded(text: str) -> Iterator[tuple[int, str]]:
    """All lines by number, those inside blocks empty."""
    kept = dict(prose(text))
    for number in range(1, text.count("\n") + 2):
        yield number, kept.get(number, "")
