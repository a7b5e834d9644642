"""A live cluster for the tests of a module, and the command run as a user runs it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quorate.cli.local_cluster import LocalCluster

Run = Callable[..., subprocess.CompletedProcess[str]]
TIMEOUT_S = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three replicas that are ready."""
    with LocalCluster.create(tmp_path_factory.mktemp("cluster")) as made:
        made.start()
        made.ready()
        yield made


def quorate(
    *words: str, stdin: str = "", cwd: Path | None = None, timeout_s: float = TIMEOUT_S, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, 120 columns wide."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")}
    return subprocess.run(
        [sys.executable, "-m", "quorate.cli.main", *words],
        input=stdin,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=kept | {"COLUMNS": "120"} | environment,
    )


@pytest.fixture
def run(cluster: LocalCluster) -> Run:
    """The command on the live cluster."""

    def run_on_cluster(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return quorate(*words, stdin=stdin, QUORATE_CLUSTER=str(cluster.document_path))

    return run_on_cluster
