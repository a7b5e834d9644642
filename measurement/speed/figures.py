"""The figures of a run: as the JSON document that is kept, and as text for people. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from .histogram import Class, classes, drawn, percentiles, rounded

VERSION: Final = 1
"""Of the document. A later one may have more members; the meaning of a member changes with this number alone."""
COLUMNS: Final = 80


class Figure(Struct, frozen=True):
    """One operation with so many in flight. Each of `count` operations was of `items_each` items; `ms` has percentiles of what one took, and
    `failed` how many ended in an error of that kind, which count nowhere else."""

    work: str
    operation: str
    in_flight: int
    items_each: int
    seconds: float
    count: int
    items_per_s: float
    ms: dict[str, float]
    failed: dict[str, int]
    histogram: list[Class]


class Document(Struct, frozen=True):
    """A run. `is_whole`: it was not ended early. `began`: in UTC."""

    version: int
    began: str
    is_whole: bool
    made_by: dict[str, Any]
    cluster: dict[str, Any]
    asked: dict[str, Any]
    figures: list[Figure]


def figure_of(
    work: str,
    operation: str,
    in_flight: int,
    items_each: int,
    each_s: Sequence[float],
    seconds: float,
    failed: Mapping[str, int],
) -> Figure:
    """Of operations that took `each_s`, and `seconds` together."""
    return Figure(
        work=work,
        operation=operation,
        in_flight=in_flight,
        items_each=items_each,
        seconds=round(seconds, 3),
        count=len(each_s),
        items_per_s=rounded(len(each_s) * items_each / seconds) if seconds else 0.0,
        ms=percentiles(each_s),
        failed=dict(failed),
        histogram=classes(each_s),
    )


def lines_of(figure: Figure, *, is_ascii: bool) -> Iterator[str]:
    """A figure for people, in COLUMNS columns."""
    items = f" of {figure.items_each} items" if figure.items_each > 1 else ""
    yield f"{figure.operation}, {figure.in_flight} in flight: {figure.items_per_s:,.10g}{' items' * bool(items)} a second"
    yield f"  {figure.count:,} operations{items} in {figure.seconds:g} s{_failed(figure.failed)}"
    if figure.ms:
        yield "  " + "   ".join(f"{name} {value:,.10g} ms" for name, value in figure.ms.items())
    yield from (f"  {line}" for line in drawn(figure.histogram, COLUMNS - 2, is_ascii=is_ascii))


def _failed(failed: dict[str, int]) -> str:
    told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(failed.items()))
    return f"; failed: {told}" if told else ""


def table(figures: Sequence[Figure]) -> Iterator[str]:
    """All figures in a line each, to be looked at together."""
    names = dict.fromkeys(name for each in figures for name in each.ms)
    yield f"{'':15} {'in flight':>9} {'a second':>9}" + "".join(f" {name + ' ms':>9}" for name in names)
    for each in figures:
        told = "".join(f" {each.ms[name]:>9,.10g}" for name in names if name in each.ms)
        yield f"{each.operation:15} {each.in_flight:>9} {each.items_per_s:>9,.10g}{told}"
