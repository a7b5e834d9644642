"""The folder where a replica writes, as `quorate doctor` looks at it: rights, room, file system, and whether SQLite can work there.

What it finds out by trying is tried in a folder of its own, which goes away.
"""

import os
import shutil
import sqlite3
import stat
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from .check import Check

ROOM_BYTES_MIN: Final = 64 * 1024 * 1024
"""With less, a replica will soon refuse writes."""
ROOM_SHARE_MIN: Final = 0.05
COMMITS: Final = 20
COMMIT_S_MAX: Final = 0.05
"""A replica acknowledges nothing faster than its disk syncs."""
NETWORK_TYPES: Final = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "fuse.sshfs",
        "fuse.glusterfs",
        "glusterfs",
        "lustre",
    }
)
FLEETING_TYPES: Final = frozenset({"tmpfs", "ramfs"})
_MOUNTS: Final = Path("/proc/self/mountinfo")
_MIB: Final = 1024 * 1024


def folder_checks(folder: Path) -> Iterator[Check]:
    """Everything about the folder, or about the nearest one above it that exists."""
    nearest = next(
        (each for each in (folder.absolute(), *folder.absolute().parents) if each.exists()), Path("/")
    )
    if nearest != folder.absolute():
        yield missing(folder.absolute(), nearest)
    is_writable = nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)
    yield Check(
        "writable folder",
        is_writable,
        f"{nearest}{'' if is_writable else ' is not'}",
        f"name another one with --data DIR, or give {nearest} to the user who runs the replica (chown), and see that its disk "
        "is mounted for writing",
    )
    if (folder / "identity.json").exists():
        yield private(folder)
    if not nearest.is_dir():
        return
    yield room(nearest)
    if _MOUNTS.exists():
        yield file_system(type_of(nearest.resolve(), _MOUNTS.read_text(errors="replace")))
    if is_writable:
        yield sqlite_there(nearest)


def missing(folder: Path, nearest: Path) -> Check:
    """Whether a folder that is not there could be meant: one whose parent is missing, too, is misspelt or not mounted."""
    found = f"{folder} is not there yet"
    if nearest == folder.parent:
        return Check("data folder", True, found)
    fix = f"correct --data, mount its disk, or make the folder: mkdir -m 700 -p {folder}"
    return Check(
        "data folder", False, f"{found}, nor is {folder.parent}; what follows is about {nearest}", fix
    )


def private(folder: Path) -> Check:
    """Whether a data folder belongs to who asks, and to nobody else."""
    wrong = []
    for path in (folder, *sorted(folder.iterdir())):
        found = path.stat()
        if found.st_uid != os.geteuid():
            wrong.append(f"{path.name} belongs to user {found.st_uid}")
        elif found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            wrong.append(f"{path.name} has mode {stat.S_IMODE(found.st_mode):04o}")
    fix = f"as the user who runs the replica: chown -R $USER {folder}; chmod -R go= {folder}"
    return Check("data folder is private", not wrong, "; ".join(wrong) or "0700, and 0600 inside", fix)


def room(folder: Path) -> Check:
    """Whether the disk has room."""
    usage = shutil.disk_usage(folder)
    is_enough = usage.free >= ROOM_BYTES_MIN and usage.free >= ROOM_SHARE_MIN * usage.total
    return Check(
        "room on the disk",
        is_enough,
        f"{usage.free / _MIB:.0f} MiB free of {usage.total / _MIB:.0f} MiB",
        "make room, or move the data folder (of a stopped replica, whole) to a larger disk: a replica whose disk is full "
        "refuses writes until there is room",
    )


def type_of(path: Path, mounts: str) -> str:
    """The type of the file system that `path`, which is resolved, lies on; `mounts` as /proc/self/mountinfo has them."""
    best, found = -1, "unknown"
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        mounted = Path(fields[4].replace("\\040", " "))
        if (path == mounted or mounted in path.parents) and len(mounted.parts) >= best:
            best, found = len(mounted.parts), after.split()[0]
    return found


def file_system(kind: str) -> Check:
    """Whether the file system is one that SQLite's write-ahead log works on, and that outlives the machine's restart."""
    if kind in NETWORK_TYPES:
        fix = "put the data folder on a disk of this machine: locks and shared memory of SQLite do not work over a network"
        return Check("file system", False, f"{kind}, over a network", fix)
    if kind in FLEETING_TYPES:
        fix = "put the data folder on a disk: what is in memory is gone when the machine is restarted"
        return Check("file system", False, f"{kind}, in memory", fix, needed=False)
    return Check("file system", True, kind)


def sqlite_there(folder: Path) -> Check:
    """Whether SQLite can keep a write-ahead log there, and how long a commit takes until it is on disk."""
    fix = "make room, look at the disk (dmesg), or put the data folder on another one"
    try:
        with tempfile.TemporaryDirectory(prefix="quorate-doctor-", dir=folder) as scratch:
            mode, commits_s = _tried(Path(scratch) / "tried.sqlite3")
    except (sqlite3.Error, OSError) as error:
        return Check("SQLite in the folder", False, f"it cannot write there: {error}", fix)
    if mode != "wal":
        return Check("SQLite in the folder", False, f"no write-ahead log there (it says {mode})", fix)
    middle_s = statistics.median(commits_s)
    found = (
        f"write-ahead log; a commit takes {middle_s * 1000:.1f} ms, at most {max(commits_s) * 1000:.1f} ms"
    )
    slow = "use a faster disk, or one that others use less: each write waits for a sync"
    return Check("SQLite in the folder", middle_s <= COMMIT_S_MAX, found, slow, needed=False)


def _tried(file: Path) -> tuple[str, list[float]]:
    """The journal mode that SQLite takes, and the time of each of some commits, as a replica makes them."""
    commits_s = []
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE tried (value TEXT)")
        for _ in range(COMMITS):
            began_s = time.monotonic()
            connection.execute("INSERT INTO tried VALUES (?)", ("x" * 100,))
            commits_s.append(time.monotonic() - began_s)
    return str(mode), commits_s
