"""Tables of the page as values: what stands in them is decided and tested here, how they look is the template's business. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

ROWS_MAX: Final = 400
"""Rows of one table; the page stays readable and small, and figures.json holds the rest."""


class Column(NamedTuple):
    """A column: its heading, whether it holds numbers (which stand to the right), whether it holds long text."""

    heading: str
    number: bool = True
    long: bool = False


class Cell(NamedTuple):
    """What stands in a cell: a text, and a smaller note under it."""

    text: str
    note: str = ""


Cells = list[Cell | str]
Columns = list[Column | str]


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its caption, and rows whose first cell names the row."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    left_out: int = 0
    note: str = ""


def table(caption: str, columns: Sequence[Column | str], rows: Iterable[Sequence[Cell | str]]) -> Table:
    """Make a table of at most `ROWS_MAX` rows; a bare text is a column of numbers, or a cell without a note."""
    every = [tuple(Cell(cell) if isinstance(cell, str) else cell for cell in row) for row in rows]
    headings = tuple(Column(column) if isinstance(column, str) else column for column in columns)
    return Table(caption, headings, tuple(every[:ROWS_MAX]), max(0, len(every) - ROWS_MAX))


def text(heading: str) -> Column:
    """Make a column of short texts."""
    return Column(heading, number=False)


def prose(heading: str) -> Column:
    """Make a column of texts that may take several lines."""
    return Column(heading, number=False, long=True)
