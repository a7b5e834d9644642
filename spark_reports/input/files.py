"""What places of files are read and written by: texts, whole files, and what disks and other file systems do differently.

`Files` is that difference. This module has the one for the paths of this machine, `quorate.spark_reports.spark.hadoop` the other.
"""

import gzip
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeVar

from ..model.places import Place

AnyPlace = TypeVar("AnyPlace", bound=Place)


def beside(place: AnyPlace) -> AnyPlace:
    """Where a file is written, before it is renamed into its place."""
    return place.with_name(f"_{place.name}.new")


class Files(Protocol):
    """One kind of file systems. Each method raises OSError where it cannot be done."""

    def put(self, place: Any, content: bytes) -> None:
        """Put a file into its place, over a former one. Whenever that ends, the former file or the new one is there, or `beside` it."""

    def locked(self, place: Any, *, is_shared: bool) -> AbstractContextManager[None]:
        """Have a place for oneself, or keep writers out: BlockingIOError where somebody else has it."""

    def remove(self, place: Any) -> None:
        """Take a folder away with all that is in it, where it is there."""

    def dataset(self, place: Any) -> tuple[Any, Any]:
        """A folder as `pyarrow.dataset` reads it: its file system, None for that of this machine, and its path there."""


class LocalFiles:
    """The disks of this machine."""

    def put(self, place: Path, content: bytes) -> None:
        """As `Files`: written beside and renamed, also where the machine loses its power between."""
        new = beside(place)
        try:
            with new.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            new.replace(place)
        except OSError:
            new.unlink(missing_ok=True)
            raise
        folder = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def locked(self, place: Path, *, is_shared: bool) -> Iterator[None]:
        """As `Files`. The kernel drops this lock with the process, however that ends, so it is never stale."""
        import fcntl  # noqa: PLC0415 - reports without a store work where it is missing

        lock = os.open(place, os.O_RDONLY if is_shared else os.O_CREAT | os.O_RDWR, 0o644)
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            yield
        finally:
            os.close(lock)

    def remove(self, place: Path) -> None:
        """As `Files`."""
        shutil.rmtree(place, ignore_errors=True)

    def dataset(self, place: Path) -> tuple[Any, Any]:
        """As `Files`."""
        return None, place


LOCAL: Final = LocalFiles()


def files_of(place: Place) -> Files:
    """The file systems that a place is on."""
    return getattr(place, "files", LOCAL)


@contextmanager
def opened_text(place: Place, *, errors: str | None = None) -> Iterator[IO[str]]:
    """A file as text in UTF-8 (`.gz` too), with or without a mark of byte order."""
    with ExitStack() as stack:
        if place.suffix != ".gz":
            yield stack.enter_context(place.open("rt", encoding="utf-8-sig", errors=errors))
            return
        packed = stack.enter_context(place.open("rb"))
        yield stack.enter_context(gzip.open(packed, "rt", encoding="utf-8-sig", errors=errors))
