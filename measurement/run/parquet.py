"""From compressed JSON lines to Parquet, once a run is over. The only module that imports pyarrow, and only when it is used.

Owns the columns of the Parquet form and its partitions. No row is dropped: a line that is no row stays in a file of lines, is
counted, and meets the report's reasons there.
"""

import importlib.util
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

import msgspec
from msgspec import Struct

from ...api_specs.messages import ProbeRow
from ..rows import OperationRow
from .recorder import lines_of

Row = TypeVar("Row", OperationRow, ProbeRow)

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
    operations = _convert(folder, "operations", OperationRow, ("day", "adt"))
    probes = _convert(folder, "probes", ProbeRow, ("day",))
    return Converted(is_parquet=True, rows=operations.rows + probes.rows, left=operations.left + probes.left)


@dataclass
class _Count:
    """Lines that are rows, and those that are left."""

    rows: int = 0
    left: int = 0


def _convert(folder: Path, name: str, kind: type[Row], parts: Sequence[str]) -> _Count:
    count = _Count()
    sources = sorted(folder.glob(f"{name}*.jsonl.gz"))
    if not sources:
        return count
    if (folder / name).exists():
        raise FileExistsError(
            f"{folder} holds both {name}/ and {sources[0].name}: one is of another run; move it away."
        )
    fresh, leftover = folder / f".{name}.new", folder / f".{name}-left.new"
    shutil.rmtree(fresh, ignore_errors=True)
    with leftover.open("wb") as file:
        _write(fresh, _schema(kind), parts, _rows(sources, kind, file, count))
    if count.left:
        leftover.replace(folder / f"{name}-left.jsonl")
    else:
        leftover.unlink()
    if count.rows:
        fresh.replace(folder / name)
    else:
        shutil.rmtree(fresh, ignore_errors=True)
    for source in sources:
        source.unlink()
    return count


def _rows(
    sources: Iterable[Path], kind: type[Row], aside: BinaryIO, count: _Count
) -> Iterator[dict[str, Any]]:
    """The rows in the lines of files, each with its day (UTC); lines that hold none go `aside`."""
    for line in (line for source in sources for line in lines_of(source)):
        try:
            row = msgspec.structs.asdict(msgspec.json.decode(line, type=kind))
            time_s = row["start_s" if kind is OperationRow else "time_s"]
            row["day"] = datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d")
        except (msgspec.MsgspecError, ValueError, OverflowError, OSError):
            aside.write(line + b"\n")
            count.left += 1
        else:
            count.rows += 1
            yield row


def _write(folder: Path, schema: Any, parts: Sequence[str], rows: Iterator[dict[str, Any]]) -> None:
    """Write rows to Parquet files, in folders by these columns."""
    from pyarrow import RecordBatch, dataset  # noqa: PLC0415 - an extra, and slow to import

    def batches() -> Iterator[Any]:
        while batch := list(islice(rows, BATCH_ROWS)):
            yield RecordBatch.from_pylist(batch, schema)

    dataset.write_dataset(
        batches(),
        folder,
        schema=schema,
        format="parquet",
        file_options=dataset.ParquetFileFormat().make_write_options(compression="zstd"),
        partitioning=parts,
        partitioning_flavor="hive",
        basename_template="part-{i}.parquet",
        use_threads=False,  # else rows would change their order
    )


def _schema(kind: type[Struct]) -> Any:
    import pyarrow  # noqa: PLC0415

    text, number = pyarrow.string(), pyarrow.float64()
    if kind is ProbeRow:
        fields = {"replica": text, "time_s": number, "up": pyarrow.int8(), "latency_s": number}
    else:
        fields = dict.fromkeys(("object", "adt", "operation", "event_class", "choice", "front_end"), text)
        fields |= {"start_s": number, "latency_s": number, "outcome": text, "answered": pyarrow.list_(text)}
    return pyarrow.schema(list({**fields, "day": text}.items()))
