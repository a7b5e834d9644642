"""A measured run read back from its folder, as the tests need it."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from quorate.measurement.run.recorder import lines_of


def read_rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The rows of a run in either form: `name` is operations or probes. Lines that are no JSON are left out."""
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


class Down(NamedTuple):
    """A true time down, of a replica or a way."""

    start_s: float
    end_s: float

    def holds(self, start_s: float, end_s: float) -> bool:
        """Whether it lasted for the whole of another time."""
        return self.start_s <= start_s and end_s <= self.end_s


class RunRead:
    """A run as it is on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: dict[str, Any] = json.loads((folder / "run.json").read_text())
        self.operations = list(read_rows(folder, "operations"))
        self.probes = list(read_rows(folder, "probes"))
        self.start_s, self.end_s = self.told["window"]

    def downs(self, file: str = "replicas.csv") -> Iterator[tuple[tuple[str, ...], Down]]:
        """The true times down, each with the name of what was down."""
        with (self.folder / file).open(newline="") as rows:
            for *name, start_s, end_s, up in list(csv.reader(rows))[1:]:
                if up == "0":
                    yield tuple(name), Down(float(start_s), float(end_s))

    def of(self, *name: str, file: str = "replicas.csv") -> list[Down]:
        """The true times down of one replica or way."""
        return [down for each, down in self.downs(file) if each == name]
