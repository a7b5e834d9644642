"""Shows that a replica with damaged files refuses to vote and says what to do, or still has all that it acknowledged.

A real replica is filled through the SDK with queues, a register, a dictionary and an object that keeps its events, in two
halves: the first is folded into the database file, the second is in the write-ahead log alone when SIGKILL comes. Then
copies of its folder are damaged in the ways of a bad disk or a careless hand, at places that a seed draws: bits flipped,
blocks zeroed or overwritten, pages misplaced, files cut short or gone. Each copy is opened as `quorate serve` opens it:
either it is refused with advice, or its contents are the very same, row by row. Last, files are damaged below replicas
that run: they stop voting, the others go on, and a start on such files is refused. `QUORATE_DAMAGES=N` tries more of each.
"""

import asyncio
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import is_ready
from quorate.client_sdk import connect, connect_async
from quorate.replica.data_folder.identity import (
    DATABASE_FILE,
    IDENTITY_FILE,
    LOCK_FILE,
    FolderRefused,
    open_folder,
)
from quorate.replica.store.store import Store
from quorate.timestamps.timestamp import INFINITY, ZERO
from tests.system.cluster.test_folders import get, serve
from tests.system.harness import Clusters, until_now

SEED: Final = 20
EACH: Final = int(os.environ.get("QUORATE_DAMAGES", "20"))
"""Damages of each kind."""
PAGE: Final = 4096
FRAME: Final = PAGE + 24
WAL_HEADER: Final = 32
ALL: Final = 1_000_000
WAL: Final = DATABASE_FILE + "-wal"
MARK: Final = DATABASE_FILE + "-mark"
TAUGHT: Final = ChoiceRule(
    "queue/taught", {"Enq/Ok": (0, 1), "Deq/Ok": (1, 1), "Deq/Empty": (1, 0)}, collect=False
)
ADVICE: Final = ("Do not delete it", "Put the folder back", "start again")
MISMATCH: Final = ("belongs to", "different stores", "written by a newer release", "votes from store")
"""What is said of an identity that is another's."""

Damage = Callable[[Path, random.Random], None]


async def _fill(cluster: LocalCluster, half: int) -> None:
    async with connect_async(cluster.document) as client:
        for name in ("jobs", "taught"):
            queue = client.queue(name)
            await queue.enqueue_many([f"{half}-{number}" for number in range(60)])
            for _ in range(5):
                await queue.dequeue()
        await client.queue("keyed").enqueue(half, idempotency_key=f"key-{half}")
        for number in range(20):
            await client.register(f"cell-{half}").write(number)
            await client.dictionary("users").put(f"user-{number}", [half, number, "x" * 300])
        await client.dictionary("users").delete("user-3")
        await client.register("elected").compare_and_set(None, "r1")
        await client.queue(f"old-{half}").enqueue_many([f"{number}" * 300 for number in range(200)])


def contents(folder: Path, document: ClusterDocument) -> Any:
    """All that the replica's store holds. Raises FolderRefused; also when it must not vote for want of a store."""
    opened = open_folder(folder, document, "r1")
    try:
        if opened.database is None:
            raise FolderRefused(str(opened.lost))
        store = Store(opened.database)
        found = {
            name: (store.state(name), store.rows(name, ZERO, ALL), store.events(name))
            for name in store.names("", "", ALL)
        }
        arrived = [store.arrivals(name, ZERO, INFINITY, 0, ALL) for name in found]
        return found, arrived, store.clock, store.floor(), store.arrival()
    finally:
        opened.abandon()


def _span(file: Path, rng: random.Random, size_max: int) -> tuple[bytearray, slice]:
    content = bytearray(file.read_bytes())
    start = rng.randrange(len(content))
    return content, slice(start, min(len(content), start + rng.randint(1, size_max)))


def flip(file: Path, rng: random.Random) -> None:
    """One bit is wrong."""
    content, place = _span(file, rng, 1)
    content[place.start] ^= 1 << rng.randrange(8)
    file.write_bytes(content)


def zero(file: Path, rng: random.Random) -> None:
    """Some bytes read as zeros."""
    content, place = _span(file, rng, PAGE)
    content[place] = bytes(place.stop - place.start)
    file.write_bytes(content)


def scribble(file: Path, rng: random.Random) -> None:
    """Some bytes are anything."""
    content, place = _span(file, rng, 600)
    content[place] = rng.randbytes(place.stop - place.start)
    file.write_bytes(content)


def misplace(file: Path, rng: random.Random) -> None:
    """A page was written where another belongs."""
    content, _ = _span(file, rng, 1)
    unit, head = (FRAME, WAL_HEADER) if file.name == WAL else (PAGE, 0)
    pages = range(head, len(content) - unit + 1, unit)
    source, target = rng.choice(pages), rng.choice(pages)
    content[target : target + unit] = content[source : source + unit]
    file.write_bytes(content)


def cut(file: Path, rng: random.Random) -> None:
    """The file ends too early."""
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.truncate(rng.randrange(size))


KINDS: Final[tuple[Damage, ...]] = (flip, zero, scribble, misplace, cut)


class Filled:
    """A replica's folder as SIGKILL left it, and the same after a stop in good order."""

    def __init__(self, cluster: LocalCluster, folder: Path) -> None:
        self.document: Final = cluster.document
        self.killed: Final = cluster.data_folder("r1")
        self.stopped: Final = folder / "stopped"
        shutil.copytree(self.killed, self.stopped)
        self.contents: Final = contents(self.stopped, self.document)

    def copy(self, state: str, to: Path) -> Path:
        """A copy of one of the two."""
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.killed if state == "killed" else self.stopped, to)
        return to

    def outcome(self, folder: Path, what: str, advice: Collection[str] = ADVICE) -> str:
        """Whether a damaged copy is refused, or whole in spite of it; AssertionError when it is neither."""
        try:
            found = contents(folder, self.document)
        except FolderRefused as error:
            said = str(error)
        else:
            assert found == self.contents, f"{what}: it serves something else than it acknowledged"
            return "whole"
        assert any(words in said for words in advice), f"{what}: {said}"
        return "refused"


@pytest.fixture(scope="module")
def filled(shared_clusters: Clusters) -> Filled:
    """A cluster of one replica: all that was acknowledged, it has acknowledged."""
    cluster = shared_clusters.make(rules=[TAUGHT], replicas=1)
    for half in (1, 2):
        cluster.start()
        cluster.ready()
        asyncio.run(_fill(cluster, half))
        cluster.stop() if half == 1 else cluster.kill("r1")
    made = Filled(cluster, shared_clusters.folder)
    assert (made.killed / WAL).stat().st_size > 20 * FRAME
    assert (made.stopped / DATABASE_FILE).stat().st_size > 40 * PAGE
    return made


@pytest.mark.parametrize("damage", KINDS)
@pytest.mark.parametrize(
    ("state", "name"), [("stopped", DATABASE_FILE), ("killed", DATABASE_FILE), ("killed", WAL)]
)
def test_damage_is_refused_or_harmless(
    filled: Filled, tmp_path: Path, state: str, name: str, damage: Damage
) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(EACH):
        folder = filled.copy(state, tmp_path / "damaged")
        damage(folder / name, random.Random(f"{SEED} {name} {number}"))
        what = f"{damage.__name__} {name} of a {state} replica, seed {SEED} number {number}"
        outcomes[filled.outcome(folder, what)] += 1
    print(state, name, damage.__name__, dict(outcomes))
    assert outcomes["refused"] > 0


def test_a_log_that_ends_between_two_frames_is_refused(filled: Filled, tmp_path: Path) -> None:
    """SQLite itself opens each of these without a word, at an earlier moment."""
    frames = ((filled.killed / WAL).stat().st_size - WAL_HEADER) // FRAME
    cuts = {*random.Random(SEED).sample(range(frames), EACH), *range(frames - 10, frames)}
    outcomes: Counter[str] = Counter()
    for kept in cuts:
        folder = filled.copy("killed", tmp_path / "damaged")
        os.truncate(folder / WAL, WAL_HEADER + kept * FRAME)
        outcomes[filled.outcome(folder, f"{kept} of {frames} frames kept")] += 1
    assert outcomes == {"refused": len(cuts)}


def test_what_a_crash_leaves_behind_the_end_of_the_log_is_harmless(filled: Filled, tmp_path: Path) -> None:
    """A transaction that was cut off by a crash was not answered, and does not count as damage."""
    log = (filled.killed / WAL).read_bytes()
    frame = log[-FRAME:]
    for torn in (frame[:100], frame[:-1], bytes(FRAME), random.Random(SEED).randbytes(3 * FRAME)):
        folder = filled.copy("killed", tmp_path / "torn")
        (folder / WAL).write_bytes(log + torn)
        assert filled.outcome(folder, f"{len(torn)} bytes more") == "whole"


@pytest.mark.parametrize(
    ("name", "when_gone", "when_empty"),
    [
        (DATABASE_FILE, "refused", "refused"),
        (WAL, "refused", "refused"),
        (MARK, "whole", "refused"),
        (DATABASE_FILE + "-shm", "whole", "whole"),
        (IDENTITY_FILE, "whole", "refused"),
        (LOCK_FILE, "whole", "whole"),
    ],
)
def test_a_file_that_is_gone_or_empty(
    filled: Filled, tmp_path: Path, name: str, when_gone: str, when_empty: str
) -> None:
    folder = filled.copy("killed", tmp_path / "damaged")
    (folder / name).unlink()
    assert filled.outcome(folder, f"{name} is gone") == when_gone
    folder = filled.copy("killed", tmp_path / "damaged")
    os.truncate(folder / name, 0)
    log = (folder / WAL).read_bytes()
    assert filled.outcome(folder, f"{name} is empty") == when_empty
    if name == DATABASE_FILE:
        assert (folder / WAL).read_bytes() == log, "the only copy of the rest is still there"


@pytest.mark.parametrize("name", [MARK, IDENTITY_FILE])
def test_damage_to_the_small_files_is_refused_or_harmless(filled: Filled, tmp_path: Path, name: str) -> None:
    for number in range(EACH):
        folder = filled.copy("killed", tmp_path / "damaged")
        damage = (flip, scribble, cut)[number % 3]
        damage(folder / name, random.Random(f"{SEED} {name} {number}"))
        filled.outcome(folder, f"{damage.__name__} {name}, number {number}", ADVICE + MISMATCH)


def _forge(file: Path) -> None:
    """Somebody writes to the database while the replica runs; this also makes the replica read its pages again."""
    connection = sqlite3.connect(file, timeout=60)
    with connection:
        connection.execute("""UPDATE rows SET value = '"forged"'""")
    connection.close()


def _overwrite(file: Path) -> None:
    """The log is folded into the file, and then the pages of the file are overwritten."""
    connection = sqlite3.connect(file, timeout=60)
    busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    assert busy == 0
    connection.close()
    with file.open("r+b") as opened:
        opened.seek(PAGE)
        opened.write(b"\xee" * (file.stat().st_size - PAGE))


def _rows(file: Path) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=60)) as connection:
        return int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])


@pytest.mark.parametrize("harm", [_forge, _overwrite])
def test_damage_is_noticed_while_the_replica_runs(clusters: Clusters, harm: Callable[[Path], None]) -> None:
    cluster = clusters.start()
    items = [f"item-{number}" for number in range(30)]
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue_many(items)
        client.register("leader").write("ada")
        file = cluster.data_folder("r1") / DATABASE_FILE
        # A quorum has them all, which need not be r1 yet: what it stores afterwards is whole.
        until_now(lambda: _rows(file) == len(items) + 1, "r1 has all entries")
        harm(file)
    with connect(cluster.document) as client:
        assert client.register("leader").read() == "ada"
        taken = client.queue("jobs").dequeue(max_items=20)
        while more := client.queue("jobs").dequeue(max_items=20):
            taken += more
        assert taken == items
    until_now(lambda: not is_ready(cluster.urls["r1"]), "r1 says that it cannot vote")
    told = get(cluster, "r1", "/v1/health/ready").json()
    assert told["type"].endswith("/storage-failed")
    assert "restart the replica" in told["detail"]
    cluster.kill("r1")
    refused = serve(cluster, "r1", cluster.data_folder("r1"))
    assert refused.returncode != 0
    assert "damaged" in refused.stderr
    assert "Do not delete it" in refused.stderr


def _other(value: object) -> object:
    """The same, but for one bit."""
    if isinstance(value, int):
        return value ^ 1 if value < 2 else value ^ 1024  # a number that is not another record's
    content = bytearray(value.encode() if isinstance(value, str) else bytes(value))  # type: ignore[call-overload]
    content[-1] ^= 1
    return content.decode() if isinstance(value, str) else bytes(content)


def test_one_bit_in_any_column_of_any_table_is_refused(filled: Filled, tmp_path: Path) -> None:
    """Written by way of SQLite, so that its own structures are sound and only the records can tell."""
    whole = set()
    with closing(sqlite3.connect(filled.stopped / DATABASE_FILE)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        ]
        columns = [
            (table, row[1]) for table in tables for row in connection.execute(f"PRAGMA table_info({table})")
        ]
    for table, column in columns:
        folder = filled.copy("stopped", tmp_path / "damaged")
        with closing(sqlite3.connect(folder / DATABASE_FILE)) as connection, connection:
            last = connection.execute(f"SELECT max({column}) FROM {table}").fetchone()[0]
            if last is None:
                assert table == "witnesses", "this replica is alone, and has seen no other"
                continue
            changed = (_other(last), last)
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ?", changed)
        if filled.outcome(folder, f"{table}.{column}", ADVICE + MISMATCH) == "whole":
            whole.add(f"{table}.{column}")
    assert whole == {"counters.id", "configuration.id"}, "their one row needs no name"


def test_a_table_that_is_declared_otherwise_is_refused(filled: Filled, tmp_path: Path) -> None:
    """One bit in the text of the declaration, and every entry that came later would be marked complete."""
    folder = filled.copy("stopped", tmp_path / "damaged")
    content = (folder / DATABASE_FILE).read_bytes()
    assert content.count(b"DEFAULT '0'") == 1
    (folder / DATABASE_FILE).write_bytes(content.replace(b"DEFAULT '0'", b"DEFAULT '1'"))
    assert filled.outcome(folder, "another default") == "refused"
