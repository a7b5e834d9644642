"""Replicas and front ends of an earlier commit beside those of this one, on real processes.

The earlier commit comes out of the repository's history. Its programs run with the packages that are installed here: what they import is theirs.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import pytest

from quorate.cli.cluster import local_cluster
from quorate.cli.cluster.local_cluster import LocalCluster
from tests.system.harness import ROOT

BEFORE: Final = "7b6122f8b93f1e307ae3ded92fc9174f474a194e"
"""The last commit before members and quorum choices could change: replica protocol 1, stores of schema 7."""
FRONT_ENDS: Final = Path(__file__).parent / "front_ends_of_a_release.py"
COMMAND: Final = (sys.executable, "-m", "quorate.cli.main")
_FORKED: Final = local_cluster.subprocess  # type: ignore[attr-defined]
"""What `tests.support.forked` has put there, where processes can be forked."""


class Release:
    """A commit's code in a folder of its own; None: the code of this checkout."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path: Final = (
            None if folder is None else os.pathsep.join([str(folder), str(folder / "quorate")])
        )

    @property
    def environment(self) -> dict[str, str]:
        """In which its programs run."""
        here = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))
        return dict(os.environ, PYTHONPATH=self._path or here)

    def quorate(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run its command."""
        return subprocess.run(
            [*COMMAND, *words], env=self.environment, capture_output=True, text=True, check=False
        )

    def chosen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """From now on replicas start with it."""
        words = [] if self._path is None else ["env", f"PYTHONPATH={self._path}"]
        # What is forked is of this checkout.
        monkeypatch.setattr(local_cluster, "subprocess", subprocess if words else _FORKED)
        monkeypatch.setattr(LocalCluster, "PROGRAM", (*words, *COMMAND))


THIS: Final = Release()


def release_before(folder: Path) -> Release:
    """The earlier commit, laid out in the folder."""
    target = folder / "before"
    (target / "quorate").mkdir(parents=True)
    told = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=False)
    if told.returncode:
        pytest.skip(
            f"the history of this checkout does not reach back to {BEFORE}: run `git fetch --unshallow`, or clone the repository "
            f"({told.stderr.decode(errors='replace').strip()})"
        )
    subprocess.run(["tar", "-x", "-C", target / "quorate"], input=told.stdout, check=True)
    return Release(target)


def format_anew(cluster: LocalCluster, release: Release) -> None:
    """Make the stores of a cluster that has not run yet with that release."""
    for replica in cluster.urls:
        folder = cluster.data_folder(replica)
        for each in folder.iterdir():
            each.unlink()
        told = release.quorate(
            "format", "--cluster", str(cluster.document_path), "--id", replica, "--data", str(folder)
        )
        assert told.returncode == 0, told.stderr


class Users:
    """Front ends under load in a process of that release: see `front_ends_of_a_release`."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in: Final[IO[str]] = process.stdin
        self._out: Final[IO[str]] = process.stdout

    def ask(self, when: str) -> None:
        """Have them tell once operations on each object have ended well from now on. These have a deadline of their own."""
        print(when, file=self._in, flush=True)

    def hear(self, when: str) -> None:
        """Wait until they have."""
        assert self._out.readline() == f"{when}\n", f"operations do not go on {when}"


@contextmanager
def users(release: Release, cluster: LocalCluster, history: Path, first_number: int) -> Iterator[Users]:
    """The front ends, until the end. Values count from `first_number`: each is stored once."""
    words = [sys.executable, str(FRONT_ENDS), str(cluster.document_path), str(history), str(first_number)]
    with subprocess.Popen(
        words, env=release.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Users(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(local_cluster.STOP_DEADLINE_S + 60) == 0
