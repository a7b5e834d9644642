"""Progress that is visible on a terminal (a bar) and in a log (a line now and then)."""

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

    with _shown(out, what, total_s, (TextColumn("{task.fields[left]}"),), words) as reached:
        yield reached


@contextmanager
def _shown(
    out: Console, what: str, total: float, columns: tuple[ProgressColumn, ...], words: Callable[[float], str]
) -> Iterator[Reached]:
    """Drawn, with these columns behind the bar, or written in these words."""
    if not out.is_terminal:
        yield _written(lambda reached: out.print(f"  {what}: {words(reached)}"), total)
        return
    columns = (TextColumn("  {task.description}"), BarColumn(None), *columns)
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task(what, total=total, left="")

        def draw(reached: float) -> None:
            left_s = max(0, round(total - reached))
            left = f"{left_s // 60}:{left_s % 60:02d} left"
            progress.update(task, completed=min(reached, total), left=left)

        yield draw


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
