"""The files of a cluster's folder: edges as they were written, and nothing taken away that no report wrote."""

from pathlib import Path

import pytest

from quorate.spark_reports.input.probes import Edge
from quorate.spark_reports.model.errors import ReportError
from quorate.spark_reports.store.folder import ClusterFolder
from quorate.spark_reports.store.manifest import Facts, KeptDay, Manifest

EDGES = {"r1": [Edge(21, None), Edge(40, 39)], "r2": [Edge(1 << 57, (1 << 57) - 1)]}


def test_edges_are_read_as_they_were_written_and_by_anybody_as_a_partitioned_table(tmp_path: Path) -> None:
    from pyarrow import dataset  # noqa: PLC0415 - collecting the tests must not need it

    folder = ClusterFolder(tmp_path, "shop")
    with folder.written():
        name = folder.write_edges("2026-11-01", "0123456789abcdef0123", EDGES)
        folder.commit(Manifest("shop", 1, days={"2026-11-01": KeptDay("", name, (), Facts())}))
    assert name == "day=2026-11-01/edges-0123456789abcdef.parquet"
    assert list(folder.edges(name)) == [(replica, edge) for replica, own in EDGES.items() for edge in own]
    rows = dataset.dataset(tmp_path, format="parquet", partitioning="hive").to_table().to_pylist()
    common = {"cluster": "shop", "day": "2026-11-01"}
    assert rows[1] == common | {"replica": "r1", "time_us": 20, "up": 0, "before_us": 19, "before_up": 1}
    assert rows[0]["before_us"] is None


def test_what_the_manifest_does_not_name_is_taken_away_if_it_is_of_a_report(tmp_path: Path) -> None:
    folder, place = ClusterFolder(tmp_path, "shop"), tmp_path / "cluster=shop"
    with folder.written():
        for day in ("2026-11-01", "2026-11-02"):
            folder.write_edges(day, "0" * 64, EDGES)
            (place / f"day={day}" / "_edges-1.parquet.new").touch()
        notes = place / "day=2026-11-01" / "notes.txt"
        notes.touch()
        folder.sweep(Manifest("shop", 1))
    assert [path for path in place.rglob("*") if path.is_file()] == [place / "_lock", notes]


def test_a_manifest_that_was_not_renamed_is_finished_if_it_is_whole(tmp_path: Path) -> None:
    """As where a file system takes the former file away before it renames the new one, and a run ends between."""
    folder, place = ClusterFolder(tmp_path, "shop"), tmp_path / "cluster=shop"
    with folder.written():
        folder.commit(Manifest("shop", 7))
    new = (place / "_manifest.json").rename(place / "__manifest.json.new")
    with folder.read():
        assert folder.manifest() == Manifest("shop", 7)
    with folder.written():
        assert not new.exists()
        assert folder.manifest() == Manifest("shop", 7)
    torn = (place / "_manifest.json").read_bytes()[:-3]
    new.write_bytes(torn)
    (place / "_manifest.json").unlink()
    with folder.written():
        assert folder.manifest() is None, "the first run ended before it had written all of it"


def test_what_somebody_else_wrote_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    """As two runs can on a file system without locks."""
    folder, other = ClusterFolder(tmp_path, "shop"), ClusterFolder(tmp_path, "shop")
    with folder.written():
        assert (folder.manifest(), other.manifest()) == (None, None)
        other.commit(Manifest("shop", 7))
        with pytest.raises(
            ReportError, match=r"another report is at work in .*changed meanwhile\): run this one again"
        ):
            folder.commit(Manifest("shop", 8))
        assert other.manifest() == Manifest("shop", 7)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "_a", "a b", "x" * 65])
def test_a_name_that_is_no_partition_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReportError, match="cannot name a partition: give letters"):
        ClusterFolder(tmp_path, name)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ReportError, match=r"cannot be used .*; give another --store"):
        ClusterFolder(tmp_path / "file", "shop").written().__enter__()
