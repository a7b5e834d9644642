"""Which configuration stores note, of replicas that do not run."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.replica.data_folder.identity import DATABASE_FILE
from quorate.replica.store.configuration import latest_at
from tests.support.voted import go_on

FILE = ClusterDocument("c", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}") for n in (1, 2, 3)))
LATER = replace(FILE, epoch=2, replicas=FILE.replicas[:2], retired=("r3",))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """r1 has gone on, and r2 has not."""
    go_on(tmp_path / "r1", FILE, "r1", LATER)
    go_on(tmp_path / "r2", FILE, "r2", FILE)
    return tmp_path


def latest(root: Path) -> ClusterDocument:
    return latest_at(FILE, sorted(root.iterdir()), DATABASE_FILE)


def test_the_latest_is_found_and_nothing_is_made_beside_the_databases(root: Path) -> None:
    before = sorted(root.glob("*/*"))
    assert latest(root) == LATER
    assert sorted(root.glob("*/*")) == before


def test_stores_of_another_cluster_or_replica_say_nothing(root: Path) -> None:
    (root / "r1").rename(root / "r3")
    assert latest(root) == FILE, "it is r1's"
    other = replace(FILE, name="other")
    go_on(root / "r1", other, "r1", replace(LATER, name="other", epoch=4))
    assert latest(root) == FILE


def test_stores_of_another_cluster_of_that_name_say_nothing(root: Path) -> None:
    """One that never had the members that the file names."""
    other = replace(FILE, replicas=(ReplicaInfo("x1", "http://127.0.0.1:9"),))
    go_on(root / "x1", other, "x1", replace(other, epoch=4))
    assert latest(root) == LATER


def test_what_cannot_be_read_is_left_out(root: Path) -> None:
    (root / "r2" / DATABASE_FILE).write_bytes(b"no database")
    (root / "r3").mkdir()
    assert latest(root) == LATER
