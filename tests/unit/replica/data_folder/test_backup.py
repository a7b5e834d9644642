"""Backups of one store: what is copied while others write, what counts as a backup, and what is made of one."""

import sqlite3
import threading
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo, parse
from quorate.api_specs.messages import Append, Request
from quorate.replica.data_folder.backup import (
    MANIFEST_FILE,
    BackupRefused,
    back_up_stopped,
    read_manifest,
    restore,
    restore_cluster,
    sort_backups,
)
from quorate.replica.data_folder.identity import (
    DATABASE_FILE,
    FolderRefused,
    Identity,
    format_store,
    open_folder,
)
from quorate.replica.data_folder.replacement import make_replacement, with_store
from quorate.replica.protocol.acceptor import handle
from quorate.replica.protocol.log import Forget
from quorate.replica.protocol.refusals import Bounds
from quorate.replica.store.database import CopyStopped, Database, StorageFailed, copy_database
from quorate.replica.store.store import Store
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.support.voted import go_on

NOW_US = 1_000_000
IDS = ("r1", "r2", "r3")


def document(name: str = "c") -> ClusterDocument:
    replicas = "".join(
        f'[[replicas]]\nid = "{id}"\nurl = "http://127.0.0.1:{port}"\nstore = "{id * 4}"\n'
        for port, id in enumerate(IDS, 1)
    )
    return parse(f'name = "{name}"\n{replicas}')


def t(number: int) -> Timestamp:
    return make(NOW_US, number, "s")


def put(name: str, number: int, value: str | None = "1") -> Append:
    return Append(name, (Entry(t(number), t(number), None if value is None else Value(value)),), "first")


def tell(data: Path, replica: str, *requests: Request, forgets: Forget | None = None) -> None:
    """Have a replica that does not run handle requests."""
    opened = open_folder(data / replica, document(), replica)
    assert opened.database is not None
    store = Store(opened.database)
    for request in requests:
        store.apply(handle(request, store, NOW_US, Bounds.of(document()))[1])
    store.apply([] if forgets is None else [forgets])
    store.commit()
    store.close()
    opened.close()


def held(folder: Path, made: ClusterDocument, replica: str, name: str) -> list[str]:
    """The values in an object's log at a replica that does not run."""
    opened = open_folder(folder, made, replica)
    assert opened.database is not None, opened.lost
    store = Store(opened.database)
    found = [str(row.entry.value) for row in store.rows(name, ZERO, 100)]
    store.close()
    opened.close()
    return found


def back_up(data: Path, replica: str, out: Path) -> Path:
    back_up_stopped(document(), replica, data / replica, out, NOW_US)
    return out


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three formatted folders; the queue holds 1 at r1 and r2, 2 at r2 and r3."""
    for replica in IDS:
        format_store(tmp_path / "data" / replica, document(), replica)
    for replica in ("r1", "r2"):
        tell(tmp_path / "data", replica, put("queue/jobs", 1, "1"))
    for replica in ("r2", "r3"):
        tell(tmp_path / "data", replica, put("queue/jobs", 2, "2"))
    return tmp_path / "data"


def modes(folder: Path) -> set[str]:
    return {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}


def test_backup_is_private_and_says_what_it_is(data: Path, tmp_path: Path) -> None:
    backup = back_up(data, "r2", tmp_path / "b")
    assert oct(backup.stat().st_mode & 0o777) == "0o700"
    assert {path.name for path in backup.iterdir()} == {DATABASE_FILE, MANIFEST_FILE}
    assert modes(backup) == {"0o600"}
    manifest = read_manifest(backup)
    assert (manifest.cluster, manifest.hash, manifest.replica) == ("c", document().hash, "r2")
    assert (manifest.store, manifest.objects, manifest.clock) == ("r2" * 4, 1, t(2))


def test_restored_folder_is_private_has_a_store_of_its_own_and_does_not_vote(
    data: Path, tmp_path: Path
) -> None:
    _, identity = restore(back_up(data, "r2", tmp_path / "b"), tmp_path / "again")
    assert oct((tmp_path / "again").stat().st_mode & 0o777) == "0o700"
    assert modes(tmp_path / "again") == {"0o600"}
    assert identity.store != "r2" * 4
    opened = open_folder(tmp_path / "again", document(), "r2")
    assert opened.database is None
    assert opened.lost is not None
    assert "quorate replace" in opened.lost
    opened.close()


def test_backup_of_a_restored_folder_is_refused(data: Path, tmp_path: Path) -> None:
    restore(back_up(data, "r2", tmp_path / "b"), tmp_path / "again")
    with pytest.raises(BackupRefused, match="holds no store that votes"):
        back_up_stopped(document(), "r2", tmp_path / "again", tmp_path / "b2", NOW_US)
    assert not (tmp_path / "b2").exists()


def test_folder_that_is_not_empty_is_refused_and_left_alone(data: Path, tmp_path: Path) -> None:
    backup = back_up(data, "r1", tmp_path / "b")
    full = tmp_path / "full"
    full.mkdir(mode=0o755)
    (full / "mine").write_text("mine")
    with pytest.raises(FolderRefused, match="not empty"):
        restore(backup, full)
    with pytest.raises(FolderRefused, match="not empty"):
        restore(backup, data / "r3")
    with pytest.raises(BackupRefused, match="not empty"):
        back_up(data, "r2", full)
    with pytest.raises(BackupRefused, match="not empty"):
        restore_cluster(document(), {"r1": backup}, full)
    assert [path.name for path in full.iterdir()] == ["mine"]
    assert full.stat().st_mode & 0o777 == 0o755, "it may be somebody's home"


def test_restoring_that_fails_at_its_end_can_be_tried_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that fills up when the copy is there, and its identity is not."""
    backup = back_up(data, "r1", tmp_path / "b")
    for error, told in ((StorageFailed("disk full"), BackupRefused), (OSError("disk full"), OSError)):

        def claim(folder: Path, made: Database, error: Exception = error) -> Identity:
            made.close()
            made.path.rename(folder / DATABASE_FILE)
            (folder / f"{DATABASE_FILE}-wal").touch()
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("quorate.replica.data_folder.backup.claim_restored", claim)
            with pytest.raises(told, match="disk full"):
                restore(backup, tmp_path / "again")
        assert not (tmp_path / "again").exists()
    restore(backup, tmp_path / "again")


def test_damaged_backup_is_refused_and_leaves_nothing(data: Path, tmp_path: Path) -> None:
    backup = back_up(data, "r1", tmp_path / "b")
    file = backup / DATABASE_FILE
    whole = file.read_bytes()
    for damaged in (whole[:-4096], whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:], b""):
        file.write_bytes(damaged)
        with pytest.raises(BackupRefused, match="is damaged"):
            restore(backup, tmp_path / "new" / "again")
        with pytest.raises(BackupRefused, match="is damaged"):
            restore_cluster(document(), {"r1": backup}, tmp_path / "new" / "all")
        assert not (tmp_path / "new").exists()
    file.write_bytes(whole)
    restore(backup, tmp_path / "again")


def test_folder_that_was_there_stays_when_restoring_fails(data: Path, tmp_path: Path) -> None:
    backup = back_up(data, "r1", tmp_path / "b")
    (backup / DATABASE_FILE).write_bytes(b"")
    for folder in (tmp_path / "one", tmp_path / "all"):
        folder.mkdir()
    (tmp_path / "one" / "lock").touch()
    with pytest.raises(BackupRefused, match="is damaged"):
        restore(backup, tmp_path / "one")
    with pytest.raises(BackupRefused, match="is damaged"):
        restore_cluster(document(), {"r1": backup}, tmp_path / "all")
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["lock"]
    assert list((tmp_path / "all").iterdir()) == []


def test_folders_above_are_private_where_we_make_them(data: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir(mode=0o755)
    (tmp_path / "mine").chmod(0o755)
    backup = back_up(data, "r1", tmp_path / "mine" / "all" / "b")
    restore(backup, tmp_path / "mine" / "some" / "again")
    restore_cluster(document(), {"r1": backup}, tmp_path / "mine" / "more" / "all")
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o755, "it was there"
    assert modes(tmp_path / "mine") == {"0o700"}


def test_manifest_of_another_backup_or_none_is_refused(data: Path, tmp_path: Path) -> None:
    one, other = back_up(data, "r1", tmp_path / "b1"), back_up(data, "r2", tmp_path / "b2")
    manifest = (one / MANIFEST_FILE).read_bytes()
    (one / MANIFEST_FILE).write_bytes((other / MANIFEST_FILE).read_bytes())
    with pytest.raises(BackupRefused, match="is damaged"):
        restore(one, tmp_path / "again")
    (one / MANIFEST_FILE).write_bytes(manifest[:-30])
    with pytest.raises(BackupRefused, match="damaged or cannot be read"):
        restore(one, tmp_path / "again")
    newer = msgspec.json.encode(msgspec.json.decode(manifest) | {"schema": 9})
    (one / MANIFEST_FILE).write_bytes(newer)
    with pytest.raises(
        BackupRefused, match=r"schema 9; this one reads 1 and 7 to 8\): restore it with that release"
    ):
        restore(one, tmp_path / "again")
    (one / MANIFEST_FILE).unlink()
    with pytest.raises(BackupRefused, match="not finished"):
        restore(one, tmp_path / "again")


def test_a_folder_of_several_backups_is_told_apart_from_one(data: Path, tmp_path: Path) -> None:
    backups = [back_up(data, id, tmp_path / "monday" / id) for id in IDS[:2]]
    with pytest.raises(BackupRefused, match=f"name one of these: {backups[0]}, {backups[1]}"):
        sort_backups(document(), [tmp_path / "monday"], accept_loss=False)


def test_only_one_backup_of_each_replica_of_this_cluster_will_do(data: Path, tmp_path: Path) -> None:
    backups = [back_up(data, id, tmp_path / id) for id in IDS]
    assert list(sort_backups(document(), backups, accept_loss=False)) == list(IDS)
    with pytest.raises(BackupRefused, match=r"no backup of r3"):
        sort_backups(document(), backups[:2], accept_loss=False)
    with pytest.raises(BackupRefused, match=r"no backup of r2, r3, who alone may have held .*Enq/Ok"):
        sort_backups(document(), backups[:1], accept_loss=False)
    with pytest.raises(BackupRefused, match="both of r1"):
        sort_backups(document(), [*backups, back_up(data, "r1", tmp_path / "again")], accept_loss=False)
    with pytest.raises(BackupRefused, match="give the cluster file of that time"):
        sort_backups(document("d"), backups, accept_loss=False)
    with pytest.raises(BackupRefused, match="give the cluster file of that time"):
        sort_backups(with_store(document(), "r1", "new"), backups, accept_loss=False)


def test_restored_cluster_holds_what_all_backups_hold_together(data: Path, tmp_path: Path) -> None:
    backups = {id: back_up(data, id, tmp_path / id) for id in IDS}
    new, objects = restore_cluster(document(), backups, tmp_path / "all")
    assert objects == 1
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == list(IDS)
    assert not {each.store for each in new.replicas} & {id * 4 for id in IDS}
    for id in IDS:
        assert held(tmp_path / "all" / id, new, id, "queue/jobs") == ["1", "2"]
        assert oct((tmp_path / "all" / id).stat().st_mode & 0o777) == "0o700"
        assert modes(tmp_path / "all" / id) == {"0o600"}
        with pytest.raises(FolderRefused):
            open_folder(tmp_path / "all" / id, document(), id)


def test_restored_cluster_votes_at_once_and_under_no_other_choices(data: Path, tmp_path: Path) -> None:
    backups = {id: back_up(data, id, tmp_path / id) for id in IDS}
    new, _ = restore_cluster(document(), backups, tmp_path / "all")
    edited = replace(new, choices=(ChoiceRule("queue/*", {"Enq/Ok": (0, 1)}),))
    for id in IDS:
        opened = open_folder(tmp_path / "all" / id, new, id)
        assert (opened.is_new, opened.lost) == (False, None), "it votes without being asked for anything"
        opened.abandon()
        opened = open_folder(tmp_path / "all" / id, edited, id)
        assert opened.is_other
        assert "[[choices]] has queue/*, and no such rule then" in (opened.lost or "")
        opened.abandon()


@pytest.mark.parametrize("way", ["one", "all"])
def test_key_that_was_deleted_and_forgotten_since_does_not_come_back(
    data: Path, tmp_path: Path, way: str
) -> None:
    """r3 is backed up with a live key; then all see the deletion, r1 and r2 forget the key, and are backed up."""
    gone, alive = "dictionary/users/ann", "dictionary/users/bob"
    for id in IDS:
        tell(data, id, put(gone, 3), put(alive, 4))
    old = back_up(data, "r3", tmp_path / "b3")
    for id in ("r1", "r2"):
        tell(data, id, put(gone, 5, None), forgets=Forget(gone, t(5)))
    if way == "all":
        backups = {"r1": back_up(data, "r1", tmp_path / "b1"), "r2": back_up(data, "r2", tmp_path / "b2")}
        new, _ = restore_cluster(document(), {**backups, "r3": old}, tmp_path / "all")
        made = tmp_path / "all" / "r3"
    else:
        restore(old, tmp_path / "restored")
        new, made = with_store(document(), "r3", "new3"), tmp_path / "new"
        others = {"r1": data / "r1", "r2": data / "r2", "r3": tmp_path / "restored"}
        make_replacement(document(), new, "r3", made, others)
    assert held(made, new, "r3", gone) == []
    assert held(made, new, "r3", alive) == ["1"]


def test_replacement_takes_a_restored_folder_of_its_own_replica_only(data: Path, tmp_path: Path) -> None:
    """What r3 alone held comes back with its backup; r1's backup is no folder of a member."""
    tell(data, "r3", put("queue/jobs", 7, "7"))
    for id in ("r1", "r3"):
        restore(back_up(data, id, tmp_path / f"b{id}"), tmp_path / id)
    new = with_store(document(), "r3", "new3")
    others = {"r1": data / "r1", "r2": data / "r2", "r3": tmp_path / "r3"}
    with pytest.raises(FolderRefused, match="was restored from a backup"):
        make_replacement(document(), new, "r3", tmp_path / "new", {**others, "r1": tmp_path / "r1"})
    make_replacement(document(), new, "r3", tmp_path / "new", others)
    assert held(tmp_path / "new", new, "r3", "queue/jobs") == ["1", "2", "7"]


def test_copy_is_of_one_moment_while_another_thread_writes(tmp_path: Path) -> None:
    """Each transaction adds one to both tables: a copy of two moments would show it. It ends, though commits never stop."""
    source = tmp_path / "s.sqlite3"
    opened = Database(source)
    opened.all("CREATE TABLE a (n INTEGER, filler TEXT)")
    opened.all("CREATE TABLE b (n INTEGER, filler TEXT)")
    opened.commit()
    is_over, written, steps = threading.Event(), threading.Event(), 0

    def write() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            for table in "ab":
                opened.write(f"INSERT INTO {table} VALUES (?, ?)", *[(number, "x" * 2000)] * 50)
            opened.commit()
            if number == 40:
                written.set()

    def goes_on() -> bool:
        nonlocal steps
        steps += 1
        assert steps < 1000, "the copy began anew again and again"
        return True

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert written.wait(30)
        copy_database(source, tmp_path / "copy", goes_on)
        before = opened.commits
    finally:
        is_over.set()
        writer.join()
    assert steps > 5
    with sqlite3.connect(tmp_path / "copy") as copy:
        (in_a, rows_a), (in_b, rows_b) = (
            copy.execute(f"SELECT max(n), count(*) FROM {table}").fetchone() for table in "ab"
        )
    copy.close()
    opened.close()
    assert (in_a, rows_a) == (in_b, rows_b)
    assert 40 <= in_a < before
    assert oct((tmp_path / "copy").stat().st_mode & 0o777) == "0o600"


def test_copy_ends_when_it_is_told_to(tmp_path: Path) -> None:
    opened = Database(tmp_path / "s.sqlite3")
    opened.all("CREATE TABLE a (filler TEXT)")
    opened.write("INSERT INTO a VALUES (?)", *[("x" * 2000,)] * 2000)
    opened.commit()
    answers = iter([True, True, False])
    with pytest.raises(CopyStopped):
        copy_database(tmp_path / "s.sqlite3", tmp_path / "copy", lambda: next(answers))
    opened.close()


def test_backups_of_other_members_than_the_file_names_are_not_restored(data: Path, tmp_path: Path) -> None:
    r4 = ReplicaInfo("r4", "http://r4:1")
    later = replace(document(), epoch=2, replicas=(*document().replicas, r4))
    go_on(data / "r2", document(), "r2", later)
    backups = {id: back_up(data, id, tmp_path / id) for id in IDS}
    with pytest.raises(
        BackupRefused, match=r"had members r1, r2, r3, r4 then \(configuration 2\), and the cluster"
    ):
        restore_cluster(document(), backups, tmp_path / "all")


def test_backups_keep_to_the_configuration_that_was_in_force(data: Path, tmp_path: Path) -> None:
    """One replica had not heard of the last change yet. The file is the one of before: rules in it count no more."""
    later = replace(
        document(), epoch=2, choices=(ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),)
    )
    for id in IDS[1:]:
        go_on(data / id, document(), id, later)
    backups = {id: back_up(data, id, tmp_path / id) for id in IDS}
    assert {id: read_manifest(backup).schema for id, backup in backups.items()} == {"r1": 7, "r2": 8, "r3": 8}
    assert sort_backups(document(), list(backups.values()), accept_loss=False) == backups
    with pytest.raises(BackupRefused, match=r"no backup of r1, who alone may have held .*Enq/Ok of queue/\*"):
        sort_backups(document(), [backups["r2"], backups["r3"]], accept_loss=False)
    new, _ = restore_cluster(document(), backups, tmp_path / "all")
    for id in IDS:
        opened = open_folder(tmp_path / "all" / id, new, id)
        assert (opened.document.number, opened.document.choices) == (2, later.choices)
        assert opened.document.replicas == new.replicas
        assert opened.lost is None
        opened.abandon()
