"""The files of one cluster in a store of days: the lock, the manifest, and the edges of each day as Parquet.

Each file is put into its place whole. The manifest names the files of the days, whose names are of their content, and is put
last: a process that ends at any moment leaves the former state or the new one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO
from typing import Any, Final

from ..input.files import beside, files_of
from ..input.probes import Edge
from ..model.errors import ReportError
from ..model.places import Place
from . import manifest as manifests
from .manifest import Manifest

MANIFEST: Final = "_manifest.json"
LOCK: Final = "_lock"
"""Readers of Parquet pass over names that begin so."""

NAME_PATTERN: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


class ClusterFolder:
    """One cluster's part of a store.

    Raises:
        ReportError: the name of the cluster cannot be that of a partition.
    """

    def __init__(self, store: Place, cluster: str) -> None:
        if not re.fullmatch(NAME_PATTERN, cluster):
            raise ReportError(
                f"--cluster {cluster!r} cannot name a partition: give letters, digits, dots, hyphens and underscores, at most 64"
            )
        self.cluster = cluster
        self.place = store / f"cluster={cluster}"
        self._files: Final = files_of(store)
        self._known: bytes | None = None

    @contextmanager
    def written(self) -> Iterator[None]:
        """Have it for oneself; on a file system of Hadoop nobody is kept out, and `commit` sees who was there meanwhile.

        Raises:
            ReportError: somebody else is at work in it, or it cannot be written.
        """
        try:
            self.place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from error
        with self._locked(is_shared=False):
            self._finish()
            yield

    def _finish(self) -> None:
        """Finish what a run had begun that ended between taking the former manifest away and renaming the new one."""
        path = self.place / MANIFEST
        try:
            if not path.exists() and self._text() is not None:
                beside(path).rename(path)
        except OSError as error:
            raise self._unwritable(error) from error

    @contextmanager
    def read(self) -> Iterator[None]:
        """Keep others from writing it, and let them read.

        Raises:
            ReportError: somebody writes it, or there is none.
        """
        if self._text() is None:
            kept = sorted(each.name.partition("=")[2] for each in self.place.parent.glob("cluster=*"))
            there = f"it has {', '.join(kept)}" if kept else "it has none yet"
            raise ReportError(
                f"{self.place.parent} keeps no day of the cluster {self.cluster}; {there}: give another --cluster, or its probes with --input"
            )
        with self._locked(is_shared=True):
            yield

    @contextmanager
    def _locked(self, *, is_shared: bool) -> Iterator[None]:
        with ExitStack() as lock:
            try:
                lock.enter_context(self._files.locked(self.place / LOCK, is_shared=is_shared))
            except BlockingIOError as error:
                raise self._others(str(error)) from error
            except OSError as error:
                raise self._unwritable(error) from error
            yield

    def _others(self, error: str) -> ReportError:
        return ReportError(
            f"another report is at work in {self.place} ({error}): run this one again when that has ended"
        )

    def manifest(self) -> Manifest | None:
        """What is kept; None where nothing is yet.

        Raises:
            ReportError: it cannot be read, or is of a newer schema.
        """
        self._known = self._text()
        return None if self._known is None else manifests.decode(self._known, str(self.place / MANIFEST))

    def _text(self) -> bytes | None:
        path = self.place / MANIFEST
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return self._unfinished(beside(path))
        except OSError as error:
            raise ReportError(f"{path} cannot be read ({error}); bring it back from a copy") from error

    def _unfinished(self, path: Place) -> bytes | None:
        """A manifest that was to be renamed; None where there is none, or it was never written to its end."""
        try:
            text = path.read_bytes()
            manifests.decode(text, str(path))
        except (OSError, ReportError):
            return None
        return text

    def commit(self, manifest: Manifest) -> None:
        """Make it what is kept.

        Raises:
            ReportError: the folder cannot be written, or somebody wrote it since `manifest` read it.
        """
        if self._text() != self._known:
            raise self._others(f"{MANIFEST} changed meanwhile")
        try:
            self._files.put(self.place / MANIFEST, manifests.encode(manifest))
        except OSError as error:
            raise self._unwritable(error) from error

    def sweep(self, manifest: Manifest) -> None:
        """Take away the files of days that it does not name: those of days that were repeated, and what a run left that was cut off."""
        named = {day.edges for day in manifest.days.values()}
        for name in self.edge_files() - named:
            (self.place / name).unlink(missing_ok=True)
        for folder in self.place.glob("day=*"):
            if folder.name.partition("=")[2] not in manifest.days and not any(folder.iterdir()):
                folder.rmdir()

    def edge_files(self) -> frozenset[str]:
        """All files of edges, those of runs that were cut off among them, by the names that manifests have."""
        found = self.place.glob("day=*/*edges-*")
        return frozenset(f"{path.parent.name}/{path.name}" for path in found)

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
        content = BytesIO()
        parquet.write_table(table, content)
        name = f"day={day}/edges-{digest[:16]}.parquet"
        try:
            (self.place / name).parent.mkdir(exist_ok=True)
            self._files.put(self.place / name, content.getvalue())
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
            with (self.place / name).open("rb") as file:
                columns = parquet.ParquetFile(file).read().to_pydict()
        except (ArrowException, OSError) as error:
            raise ReportError(
                f"{self.place / name} cannot be read ({error}); take it away and run with --input, which makes the day anew"
            ) from error
        for replica, time_us, up, before_us, before_up in zip(*columns.values(), strict=True):
            yield replica, Edge(time_us << 1 | up, None if before_us is None else before_us << 1 | before_up)

    def _unwritable(self, error: Any) -> ReportError:
        return ReportError(f"{self.place} cannot be used ({error}); give another --store")
