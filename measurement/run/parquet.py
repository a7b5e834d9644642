"""From compressed JSON lines to Parquet, once a run is over. The only module that imports pyarrow, and only when it is used.

Owns the columns of the Parquet form and its partitions. No row is dropped: a line that is no row stays in a file of lines, is
counted, and meets the report's reasons there.
"""

import importlib.util
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from ..rows import OperationRow, ProbeRow
from .recorder import lines_of

BATCH_ROWS: Final = 50_000
"""Rows in memory at a time, and in a row group at most."""


class Converted(Struct, frozen=True):
    """What became of a run's lines: `rows` in Parquet, `left` lines that are no rows."""

    is_parquet: bool
    rows: int = 0
    left: int = 0

    @property
    def sentence(self) -> str:
        """It, for people."""
        if not self.is_parquet:
            return "The measurements stay compressed JSON lines: Parquet needs pyarrow (pip install 'quorate[reports]')."
        text = f"{self.rows} rows are in Parquet, by day and type."
        if self.left:
            text += f" {self.left} lines could not be read as rows; they are kept as lines."
        return text


def convert(folder: Path) -> Converted:
    """Turn the lines of a run into Parquet; without pyarrow they stay as they are. Safe to repeat after an interruption."""
    if importlib.util.find_spec("pyarrow") is None:
        return Converted(is_parquet=False)
    rows = left = 0
    for name, kind, parts in (
        ("operations", OperationRow, _operation_parts),
        ("probes", ProbeRow, _probe_parts),
    ):
        done = _convert(folder, name, kind, parts)
        rows, left = rows + done[0], left + done[1]
    return Converted(is_parquet=True, rows=rows, left=left)


def _operation_parts(row: Any) -> str:
    return f"day={_day(row.start_s)}/adt={row.adt}"


def _probe_parts(row: Any) -> str:
    return f"day={_day(row.time_s)}"


def _day(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d")


def _convert(folder: Path, name: str, kind: type[Struct], part_of: Callable[[Any], str]) -> tuple[int, int]:
    sources = sorted(folder.glob(f"{name}*.jsonl.gz"))
    if not sources:
        return 0, 0
    if (folder / name).exists():
        raise FileExistsError(
            f"{folder} holds both {name}/ and {sources[0].name}: one is of another run; move it away."
        )
    fresh, leftover = folder / f".{name}.new", folder / f".{name}-left.new"
    shutil.rmtree(fresh, ignore_errors=True)
    count = left = 0
    with _Writers(fresh, kind) as writers, leftover.open("wb") as file:
        for line in (line for source in sources for line in lines_of(source)):
            try:
                row = msgspec.json.decode(line, type=kind)
                part = part_of(row)
            except (msgspec.MsgspecError, ValueError, OverflowError, OSError):
                file.write(line + b"\n")
                left += 1
            else:
                writers.add(part, row)
                count += 1
    if left:
        leftover.replace(folder / f"{name}-left.jsonl")
    else:
        leftover.unlink()
    if count:
        fresh.replace(folder / name)
    for source in sources:
        source.unlink()
    return count, left


class _Writers:
    """A Parquet file for each part, and the rows that wait to go there."""

    def __init__(self, root: Path, kind: type[Struct]) -> None:
        self._root: Final = root
        self._schema: Final = _schema(kind)
        self._open: Final[dict[str, Any]] = {}
        self._waiting: Final[dict[str, list[dict[str, Any]]]] = defaultdict(list)
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._write()
        for writer in self._open.values():
            writer.close()

    def add(self, part: str, row: Struct) -> None:
        """Take over a row for a part."""
        self._waiting[part].append(msgspec.structs.asdict(row))
        self._count += 1
        if self._count >= BATCH_ROWS:
            self._write()

    def _write(self) -> None:
        import pyarrow  # noqa: PLC0415 - an extra, and slow to import
        from pyarrow import parquet  # noqa: PLC0415

        for part, rows in self._waiting.items():
            if part not in self._open:
                path = self._root / part / "part-0.parquet"
                path.parent.mkdir(parents=True)
                self._open[part] = parquet.ParquetWriter(path, self._schema, compression="zstd")
            self._open[part].write_table(pyarrow.Table.from_pylist(rows, self._schema))
        self._waiting.clear()
        self._count = 0


def _schema(kind: type[Struct]) -> Any:
    """The columns; what a folder's name says already (day, adt) is none."""
    import pyarrow  # noqa: PLC0415

    text, number = pyarrow.string(), pyarrow.float64()
    if kind is ProbeRow:
        fields = {"replica": text, "time_s": number, "up": pyarrow.int8(), "latency_s": number}
    else:
        fields = dict.fromkeys(("object", "operation", "event_class", "choice", "front_end"), text)
        fields |= {"start_s": number, "latency_s": number, "outcome": text, "answered": pyarrow.list_(text)}
    return pyarrow.schema(list(fields.items()))


def read_rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a run in either form, for small runs: `name` is operations or probes. Lines that are no JSON are left out."""
    for path in sorted(folder.glob(f"{name}*.jsonl*")):
        for line in lines_of(path):
            try:
                yield msgspec.json.decode(line)
            except msgspec.DecodeError:
                continue
    if (folder / name).is_dir():
        from pyarrow import dataset  # noqa: PLC0415

        for batch in dataset.dataset(folder / name, partitioning="hive").to_batches():
            yield from batch.to_pylist()
