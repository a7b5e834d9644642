"""A replica starts on its own folder, and on no other."""

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.client_sdk.protocol.configurations import joint, settled, taken_back
from quorate.replica.data_folder.identity import (
    DATABASE_FILE,
    IDENTITY_FILE,
    Folder,
    FolderRefused,
    format_store,
    open_folder,
)
from quorate.replica.store import statements
from quorate.replica.store.database import Database
from quorate.replica.store.store import Store

STORE = "0123456789abcdef"
JOINS_AT = "http://127.0.0.1:7004"


def cluster(store: str = "", name: str = "test") -> ClusterDocument:
    replicas = (
        ReplicaInfo("r1", "http://127.0.0.1:7001", store=store),
        ReplicaInfo("r2", "http://127.0.0.1:7002"),
    )
    return ClusterDocument(name, replicas)


def start_and_stop(path: Path, document: ClusterDocument, replica_id: str = "r1") -> str:
    folder = open_folder(path, document, replica_id)
    folder.abandon()
    assert folder.lost is None
    return folder.identity.store


def test_first_start_makes_the_folder_and_later_ones_find_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "data"
    made = start_and_stop(path, cluster())
    assert start_and_stop(path, cluster()) == made
    assert start_and_stop(path, cluster(store=made)) == made
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for file in path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_each_start_is_a_new_incarnation(tmp_path: Path) -> None:
    incarnations = set()
    for _ in range(3):
        folder = open_folder(tmp_path, cluster(), "r1")
        incarnations.add(folder.incarnation)
        folder.abandon()
    assert len(incarnations) == 3


@pytest.mark.parametrize(
    ("document", "replica_id", "sentence"),
    [
        (cluster(), "r2", "belongs to replica 'r1'"),
        (cluster(name="other"), "r1", "belongs to cluster 'test'"),
        (cluster(store=STORE), "r1", "votes from store 0123456789abcdef"),
        (cluster(), "r9", "has no replica 'r9'"),
    ],
)
def test_folder_of_another_is_refused(
    tmp_path: Path, document: ClusterDocument, replica_id: str, sentence: str
) -> None:
    start_and_stop(tmp_path, cluster())
    with pytest.raises(FolderRefused, match=sentence):
        open_folder(tmp_path, document, replica_id)


def test_database_of_another_is_refused_when_its_identity_file_was_swapped(tmp_path: Path) -> None:
    start_and_stop(tmp_path / "a", cluster())
    start_and_stop(tmp_path / "b", cluster())
    (tmp_path / "a" / DATABASE_FILE).replace(tmp_path / "b" / DATABASE_FILE)
    with pytest.raises(FolderRefused, match="different stores"):
        open_folder(tmp_path / "b", cluster(), "r1")


def test_newer_schema_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    start_and_stop(tmp_path, cluster())
    file = tmp_path / IDENTITY_FILE
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": 9}))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FolderRefused, match=r"schema 9, this one knows 7 to 8\): install that release again"):
        open_folder(tmp_path, cluster(), "r1")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_newer_schema_is_refused_though_the_identity_file_has_not_heard_of_it(tmp_path: Path) -> None:
    start_and_stop(tmp_path, cluster())
    opened = Database(tmp_path / DATABASE_FILE)
    opened.write(statements.PUT_META, ("schema", "9"))
    opened.commit()
    opened.close()
    with pytest.raises(FolderRefused, match="schema 9, this one knows 7 to 8"):
        open_folder(tmp_path, cluster(), "r1")


def test_folder_in_use_is_refused_and_free_again_when_its_process_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, msgspec; from pathlib import Path; from quorate.api_specs.cluster import from_json\n"
        "from quorate.replica.data_folder.identity import open_folder\n"
        "kept = open_folder(Path(sys.argv[1]), from_json(msgspec.json.decode(sys.argv[2])), 'r1')\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    text = msgspec.json.encode(cluster()).decode()
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(FolderRefused, match="in use by another process"):
            open_folder(tmp_path, cluster(), "r1")
        process.kill()
    start_and_stop(tmp_path, cluster())


def test_empty_folder_of_a_member_may_not_vote(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, cluster(store=STORE), "r1")
    folder.abandon()
    assert folder.database is None
    assert folder.lost is not None
    assert "promises are forgotten" in folder.lost
    assert not (tmp_path / DATABASE_FILE).exists()


def test_folder_whose_database_is_gone_may_not_vote(tmp_path: Path) -> None:
    start_and_stop(tmp_path, cluster())
    for file in tmp_path.glob(DATABASE_FILE + "*"):
        file.unlink()
    folder = open_folder(tmp_path, cluster(), "r1")
    folder.abandon()
    assert folder.lost is not None


def test_formatted_store_has_the_id_of_the_document_and_is_made_once(tmp_path: Path) -> None:
    document = cluster(store=STORE)
    assert format_store(tmp_path, document, "r1") == STORE
    assert start_and_stop(tmp_path, document) == STORE
    with pytest.raises(FolderRefused, match="already holds a store"):
        format_store(tmp_path, document, "r1")


@pytest.mark.parametrize("make", [open_folder, format_store])
def test_folder_of_somebody_else_is_refused_and_stays_as_it_is(
    tmp_path: Path, make: Callable[[Path, ClusterDocument, str], object]
) -> None:
    (tmp_path / "letters.txt").write_text("mine")
    tmp_path.chmod(0o755)
    with pytest.raises(FolderRefused, match=r"letters\.txt"):
        make(tmp_path, cluster(), "r1")
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [each.name for each in tmp_path.iterdir()] == ["letters.txt"]


def test_an_empty_disk_and_what_a_cut_off_creation_left_are_no_strangers(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "lock").touch()
    (tmp_path / "identity.json.new").touch()
    assert start_and_stop(tmp_path, cluster())


@pytest.mark.parametrize("offset", [0, 4096])
def test_damaged_database_is_refused_loudly(tmp_path: Path, offset: int) -> None:
    start_and_stop(tmp_path, cluster())
    file = tmp_path / DATABASE_FILE
    damaged = bytearray(file.read_bytes())
    damaged[offset : offset + 2000] = b"\xff" * 2000
    file.write_bytes(damaged)
    with pytest.raises(FolderRefused, match=r"replica\.sqlite3.*Do not delete it"):
        open_folder(tmp_path, cluster(), "r1")


def test_creation_that_was_cut_off_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / DATABASE_FILE).touch()
    start_and_stop(tmp_path, cluster())
    (tmp_path / IDENTITY_FILE).unlink()
    folder = open_folder(tmp_path, cluster(), "r1")
    assert folder.database is not None
    assert Store(folder.database).use().objects == 0
    assert (tmp_path / IDENTITY_FILE).exists()
    folder.abandon()


def followed(path: Path, chosen: Callable[[Folder], ClusterDocument], *, has_voted: bool = True) -> str:
    """r4 joins and comes to this configuration; the id of its store."""
    folder = open_folder(path, cluster(), "r4", joins_at=JOINS_AT)
    assert folder.database is not None
    store = Store(folder.database)
    (store.note_configuration if has_voted else store.follow_configuration)(chosen(folder))
    store.commit()
    folder.abandon()
    return folder.identity.store


def with_r4(store: str, url: str = JOINS_AT) -> ClusterDocument:
    """Both are in force, of which the later one has r4."""
    return joint(cluster(), with_members(cluster(), [*cluster().replicas, ReplicaInfo("r4", url, 1, store)]))


def is_locked(path: Path) -> bool:
    try:
        open_folder(path, cluster(), "r4", joins_at=JOINS_AT).abandon()
    except FolderRefused as refused:
        return "in use by another process" in str(refused)
    return False


def test_one_that_joins_makes_a_folder_and_finds_it_again(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, cluster(), "r4", joins_at=JOINS_AT)
    assert (folder.url, folder.is_new, folder.lost) == (JOINS_AT, True, None)
    assert folder.why_no_member(folder.document) is None
    folder.abandon()
    again = open_folder(tmp_path, cluster(), "r4", joins_at="http://127.0.0.1:7005")
    assert (again.identity, again.url, again.is_new) == (folder.identity, "http://127.0.0.1:7005", True)
    again.abandon()


@pytest.mark.parametrize("has_voted", [True, False])
@pytest.mark.parametrize("joins_at", ["", "http://127.0.0.1:7005"])
def test_one_that_has_become_a_member_starts_with_the_file_of_before(
    tmp_path: Path, joins_at: str, *, has_voted: bool
) -> None:
    """Its place is the one that was chosen, whatever it is told."""
    store = followed(tmp_path, lambda folder: settled(with_r4(folder.identity.store)), has_voted=has_voted)
    folder = open_folder(tmp_path, cluster(), "r4", joins_at=joins_at)
    assert (folder.identity.store, folder.url, folder.lost) == (store, JOINS_AT, None)
    assert folder.is_new is not has_voted
    assert (folder.document.number, list(folder.document.votes)) == (2, ["r1", "r2", "r4"])
    folder.abandon()


def test_who_is_no_member_and_does_not_join_has_no_folder_made(tmp_path: Path) -> None:
    with pytest.raises(FolderRefused, match="has no replica 'r4': it has r1, r2"):
        open_folder(tmp_path / "new", cluster(), "r4")
    assert not (tmp_path / "new").exists()


def test_who_joined_and_is_no_member_yet_does_not_start_without_its_place(tmp_path: Path) -> None:
    open_folder(tmp_path, cluster(), "r4", joins_at=JOINS_AT).abandon()
    with pytest.raises(FolderRefused, match="has no replica 'r4': it has r1, r2"):
        open_folder(tmp_path, cluster(), "r4")
    assert not is_locked(tmp_path)


def test_a_folder_of_another_replica_is_none_to_join_with(tmp_path: Path) -> None:
    start_and_stop(tmp_path, cluster())
    with pytest.raises(FolderRefused, match="belongs to replica 'r1', not to 'r4'"):
        open_folder(tmp_path, cluster(), "r4", joins_at=JOINS_AT)
    with pytest.raises(FolderRefused, match="has no replica 'r4'"):
        open_folder(tmp_path, cluster(), "r4")


@pytest.mark.parametrize("joins_at", ["", JOINS_AT])
@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (lambda store: taken_back(with_r4(store)), "r4 is a member no more, as of configuration 2"),
        (lambda _: settled(with_r4("another")), "r4 became a member with store another, and .* holds store"),
    ],
    ids=["removed", "another store"],
)
def test_who_must_never_vote_does_not_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    chosen: Callable[[str], ClusterDocument],
    words: str,
    joins_at: str,
) -> None:
    followed(tmp_path, lambda folder: chosen(folder.identity.store))
    closed: list[Path] = []
    close = Database.close

    def noted(database: Database) -> None:
        closed.append(database.path)
        close(database)

    monkeypatch.setattr(Database, "close", noted)
    with pytest.raises(FolderRefused, match=words):
        open_folder(tmp_path, cluster(), "r4", joins_at=joins_at)
    assert closed == [tmp_path / DATABASE_FILE]
    assert not is_locked(tmp_path)


def test_from_a_replica_that_was_removed_is_copied_still(tmp_path: Path) -> None:
    followed(tmp_path, lambda folder: taken_back(with_r4(folder.identity.store)))
    folder = open_folder(tmp_path, cluster(), "r4", is_source=True)
    assert folder.database is not None
    folder.abandon()


def test_what_speaks_against_a_member_is_of_the_configuration_that_is_asked_for(tmp_path: Path) -> None:
    folder = open_folder(tmp_path, cluster(), "r4", joins_at=JOINS_AT)
    both = with_r4(folder.identity.store)
    for goes_on_to, words in (
        (cluster(), None),
        (both, None),
        (with_r4(""), None),
        (settled(both), None),
        (taken_back(both), "is a member no more"),
        (with_r4("another"), "must not vote"),
    ):
        why = folder.why_no_member(goes_on_to)
        assert (why is None) if words is None else (words in (why or ""))
    folder.abandon()
