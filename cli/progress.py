"""Progress that is visible on a terminal (a bar) and in a log (a line now and then)."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

_LINES: Final = 5
"""How many lines a log gets for a whole bar."""
EVERY_S: Final = 3.0
"""Between two lines of a bar of which nobody knows how long it takes."""

_TOLD: Final = TextColumn("{task.fields[told]}")

Reached = Callable[[float], None]
"""Is told how far something has come."""


@contextmanager
def bar(out: Console, what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on `out` while the block runs, to be called for each that is done."""
    columns = (MofNCompleteColumn(), TimeElapsedColumn())
    numbers = count(1)
    with _shown(out, what, total, columns, lambda done: f"{done:.0f} of {total}") as reached:
        yield lambda: reached(next(numbers))


@contextmanager
def time_bar(out: Console, what: str, total_s: float) -> Iterator[Reached]:
    """A bar of time on `out` while the block runs, with the time left, to be called with the seconds that are over."""

    def words(elapsed_s: float) -> str:
        return f"{elapsed_s:.0f} s of {total_s:.0f}, {max(0.0, total_s - elapsed_s):.0f} s left"

    with _shown(out, what, total_s, (_TOLD,), words) as reached:
        yield reached


@contextmanager
def rate_bar(out: Console, what: str, total: int) -> Iterator[Reached]:
    """A bar on `out` while the block runs, with how many are done in a second and the time left, to be called with how many are done; for a log a line
    every EVERY_S."""
    began_s = time.monotonic()

    def words(done: float) -> str:
        return rated(done, total, time.monotonic() - began_s)

    if not out.is_terminal:
        yield _written_at_times(lambda done: out.print(f"  {what}: {words(done)}"))
        return
    with _drawn(out, what, total, (_TOLD,), words) as reached:
        yield reached


def rated(done: float, total: float, elapsed_s: float) -> str:
    """How far it is, how many were done in a second, and how long the rest takes at that rate."""
    words = f"{done:.0f} of {total:.0f}"
    if not done or elapsed_s <= 0:
        return words
    rate = done / elapsed_s
    return f"{words}, {rate:.0f} a second, {_left((total - done) / rate)}"


def _left(seconds: float) -> str:
    left_s = max(0, round(seconds))
    return f"{left_s // 60}:{left_s % 60:02d} left"


@contextmanager
def _shown(
    out: Console, what: str, total: float, columns: tuple[ProgressColumn, ...], words: Callable[[float], str]
) -> Iterator[Reached]:
    """Drawn, with these columns behind the bar, or written in these words."""
    if not out.is_terminal:
        yield _written(lambda reached: out.print(f"  {what}: {words(reached)}"), total)
        return
    with _drawn(out, what, total, columns, lambda reached: _left(total - reached)) as reached:
        yield reached


@contextmanager
def _drawn(
    out: Console, what: str, total: float, columns: tuple[ProgressColumn, ...], told: Callable[[float], str]
) -> Iterator[Reached]:
    """With these columns behind the bar; what is told then, `_TOLD` shows."""
    columns = (TextColumn("  {task.description}"), BarColumn(None), *columns)
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task(what, total=total, told="")
        yield lambda reached: progress.update(task, completed=min(reached, total), told=told(reached))


def _written_at_times(write: Reached) -> Reached:
    """Writes once EVERY_S have passed since the last line."""
    last_s = time.monotonic()

    def tell(reached: float) -> None:
        nonlocal last_s
        if time.monotonic() >= last_s + EVERY_S:
            last_s = time.monotonic()
            write(reached)

    return tell


def _written(write: Reached, total: float) -> Reached:
    """Writes now and then, and at the end."""
    lines = 0

    def tell(reached: float) -> None:
        nonlocal lines
        if min(reached, total) * _LINES >= (lines + 1) * total:
            lines += 1
            write(reached)

    return tell


@contextmanager
def busy(out: Console, what: str) -> Iterator[None]:
    """Shows that something takes a while."""
    if not out.is_terminal:
        out.print(f"  {what} …")
        yield
        return
    with out.status(f"{what} …"):
        yield
