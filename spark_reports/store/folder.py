"""The files of one cluster in a store of days: the lock, the manifest, and the edges of each day as Parquet.

A file is written beside its place and renamed into it. The manifest names the files of the days, whose names are of their
content, and is renamed last: a process that ends at any moment leaves the former state or the new one.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ..input.probes import Edge
from ..model.errors import ReportError
from . import manifest as manifests
from .manifest import Manifest

MANIFEST: Final = "_manifest.json"
LOCK: Final = "_lock"
"""Readers of Parquet pass over names that begin so."""

NEW: Final = ".new"
NAME_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


class ClusterFolder:
    """One cluster's part of a store.

    Raises:
        ReportError: the name of the cluster cannot be that of a partition.
    """

    def __init__(self, store: Path, cluster: str) -> None:
        if not re.fullmatch(NAME_PATTERN, cluster):
            raise ReportError(
                f"--cluster {cluster!r} cannot name a partition: give letters, digits, dots, hyphens and underscores, at most 64"
            )
        self.cluster = cluster
        self.place = store / f"cluster={cluster}"

    @contextmanager
    def written(self) -> Iterator[None]:
        """Have it for oneself. The kernel drops this lock with the process, however that ends, so it is never stale.

        Raises:
            ReportError: somebody else is at work in it, or it cannot be written.
        """
        try:
            self.place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        with self._locked(is_shared=False):
            yield

    @contextmanager
    def read(self) -> Iterator[None]:
        """Keep others from writing it, and let them read.

        Raises:
            ReportError: somebody writes it, or there is none.
        """
        if not (self.place / MANIFEST).is_file():
            kept = sorted(each.name.partition("=")[2] for each in self.place.parent.glob("cluster=*"))
            there = f"it has {', '.join(kept)}" if kept else "it has none yet"
            raise ReportError(
                f"{self.place.parent} keeps no day of the cluster {self.cluster}; {there}: give another --cluster, or its probes with --input"
            )
        with self._locked(is_shared=True):
            yield

    @contextmanager
    def _locked(self, *, is_shared: bool) -> Iterator[None]:
        import fcntl  # noqa: PLC0415 - reports without a store work where it is missing

        path = self.place / LOCK
        try:
            lock = os.open(path, os.O_RDONLY if is_shared else os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            try:
                fcntl.flock(lock, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except OSError as error:
                raise ReportError(
                    f"another report is at work in {self.place} ({error}): run this one again when that has ended"
                ) from error
            yield
        finally:
            os.close(lock)

    def manifest(self) -> Manifest | None:
        """What is kept; None where nothing is yet.

        Raises:
            ReportError: it cannot be read, or is of a newer schema.
        """
        path = self.place / MANIFEST
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ReportError(f"{path} cannot be read ({error}); bring it back from a copy") from error
        return manifests.decode(text, str(path))

    def commit(self, manifest: Manifest) -> None:
        """Make it what is kept.

        Raises:
            ReportError: the folder cannot be written.
        """
        try:
            self._replace(self.place / MANIFEST, manifests.encode(manifest))
        except OSError as error:
            raise self._unwritable(error) from error

    def sweep(self, manifest: Manifest) -> None:
        """Take away the files of days that it does not name: those of days that were repeated, and what a run left that was cut off."""
        named = {self.place / day.edges for day in manifest.days.values()}
        for path in self.place.glob("day=*/*edges-*"):
            if path not in named:
                path.unlink(missing_ok=True)
        for folder in self.place.glob("day=*"):
            if not any(folder.iterdir()):
                folder.rmdir()

    def has(self, name: str) -> bool:
        """Whether the edges of a day are there."""
        return (self.place / name).is_file()

    def write_edges(self, day: str, digest: str, edges: Mapping[str, Sequence[Edge]]) -> str:
        """Write the edges of a day, by replica; give the name of the file.

        Raises:
            ReportError: the folder cannot be written.
        """
        import pyarrow as pa  # noqa: PLC0415 - optional
        from pyarrow import parquet  # noqa: PLC0415

        rows = [(name, each) for name, own in edges.items() for each in own]
        befores = [each.before for _, each in rows]
        table = pa.table(
            {
                "replica": pa.array([name for name, _ in rows], "string"),
                "time_us": pa.array([each.sample >> 1 for _, each in rows], "int64"),
                "up": pa.array([each.sample & 1 for _, each in rows], "int8"),
                "before_us": pa.array([None if each is None else each >> 1 for each in befores], "int64"),
                "before_up": pa.array([None if each is None else each & 1 for each in befores], "int8"),
            }
        )
        sink = pa.BufferOutputStream()
        parquet.write_table(table, sink)
        name = f"day={day}/edges-{digest[:16]}.parquet"
        try:
            (self.place / name).parent.mkdir(exist_ok=True)
            self._replace(self.place / name, sink.getvalue().to_pybytes())
        except OSError as error:
            raise self._unwritable(error) from error
        return name

    def edges(self, name: str) -> Iterator[tuple[str, Edge]]:
        """The edges of a day, each with its replica.

        Raises:
            ReportError: the file cannot be read.
        """
        from pyarrow import ArrowException, parquet  # noqa: PLC0415

        try:
            columns = parquet.ParquetFile(self.place / name).read().to_pydict()
        except (ArrowException, OSError) as error:
            raise ReportError(
                f"{self.place / name} cannot be read ({error}); take it away and run with --input, which makes the day anew"
            ) from error
        for replica, time_us, up, before_us, before_up in zip(*columns.values(), strict=True):
            yield replica, Edge(time_us << 1 | up, None if before_us is None else before_us << 1 | before_up)

    def _replace(self, path: Path, content: bytes) -> None:
        """Put a file into its place, whole or not at all, also where the machine loses its power."""
        beside = path.with_name(f"_{path.name}{NEW}")
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _unwritable(self, error: Any) -> ReportError:
        return ReportError(f"{self.place} cannot be used ({error}); give another --store")
