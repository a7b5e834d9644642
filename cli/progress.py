"""Progress that is visible on a terminal (a bar) and in a log (a line now and then)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

_LINES: Final = 5
"""How many lines a log gets for a whole bar."""


class Bar(Protocol):
    """What counts towards a total."""

    def advance(self) -> None:
        """One more is done."""


class _Drawn:
    def __init__(self, progress: Progress, what: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=total)

    def advance(self) -> None:
        self._progress.advance(self._task)


class _Written:
    def __init__(self, out: Console, what: str, total: int) -> None:
        self._out = out
        self._what = what
        self._total = total
        self._done = 0

    def advance(self) -> None:
        self._done += 1
        if self._done * _LINES // self._total > (self._done - 1) * _LINES // self._total:
            self._out.print(f"  {self._what}: {self._done} of {self._total}")


@contextmanager
def bar(out: Console, what: str, total: int) -> Iterator[Bar]:
    """A bar on `out` while the block runs."""
    if not out.is_terminal:
        yield _Written(out, what, total)
        return
    columns = (TextColumn("  {task.description}"), BarColumn(None), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True) as progress:
        yield _Drawn(progress, what, total)


class TimeBar(Protocol):
    """What shows how much of a known time is over, and how much is left."""

    def reached(self, elapsed_s: float) -> None:
        """So much is over."""


class _DrawnTime:
    def __init__(self, progress: Progress, what: str, total_s: float) -> None:
        self._progress = progress
        self._total_s = total_s
        self._task = progress.add_task(what, total=total_s, left="")

    def reached(self, elapsed_s: float) -> None:
        left_s = max(0, round(self._total_s - elapsed_s))
        left = f"{left_s // 60}:{left_s % 60:02d} left"
        self._progress.update(self._task, completed=min(elapsed_s, self._total_s), left=left)


class _WrittenTime:
    def __init__(self, out: Console, what: str, total_s: float) -> None:
        self._out = out
        self._what = what
        self._total_s = total_s
        self._lines = 0

    def reached(self, elapsed_s: float) -> None:
        if min(elapsed_s, self._total_s) * _LINES >= (self._lines + 1) * self._total_s:
            self._lines += 1
            left_s = max(0.0, self._total_s - elapsed_s)
            self._out.print(f"  {self._what}: {elapsed_s:.0f} s of {self._total_s:.0f}, {left_s:.0f} s left")


@contextmanager
def time_bar(out: Console, what: str, total_s: float) -> Iterator[TimeBar]:
    """A bar of time on `out` while the block runs, with the time left."""
    if not out.is_terminal:
        yield _WrittenTime(out, what, total_s)
        return
    columns = (TextColumn("  {task.description}"), BarColumn(None), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=out, transient=True) as progress:
        yield _DrawnTime(progress, what, total_s)


@contextmanager
def busy(out: Console, what: str) -> Iterator[None]:
    """Shows that something takes a while."""
    if not out.is_terminal:
        out.print(f"  {what} …")
        yield
        return
    with out.status(f"{what} …"):
        yield
