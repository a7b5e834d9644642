"""A live cluster for the tests of a module, and the command run as a user runs it."""

import asyncio
import contextlib
import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest

from quorate.api_specs.cluster import ClusterDocument
from quorate.cli import main
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk.api.connect import Recipe
from quorate.client_sdk.protocol.configurations import NOBODY
from quorate.client_sdk.protocol.reconfiguration import Ask, Steps, change
from tests.support import forked

forked.fork_replicas()

Run = Callable[..., subprocess.CompletedProcess[str]]
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Three replicas that are ready."""
    with LocalCluster.create(tmp_path_factory.mktemp("cluster")) as made:
        made.start()
        made.ready()
        yield made


@pytest.fixture
def running(tmp_path: Path) -> Iterator[LocalCluster]:
    """Three replicas of each test's own: their configuration is another one afterwards."""
    with LocalCluster.create(tmp_path / "cluster") as made:
        made.start()
        made.ready()
        yield made


def begun(cluster: LocalCluster, wanted: ClusterDocument, dead: AbstractSet[str] = NOBODY) -> int:
    """An operator has begun this change, without these members, and has vanished once all were told: in which configuration the cluster is."""

    def steps(at: ClusterDocument) -> Steps:
        going, answer = change(at, lambda _: wanted, dead), None
        while True:
            todo = going.send(answer)
            if isinstance(todo, Ask) and todo.document.former is not None:
                return todo.document
            answer = yield todo

    return asyncio.run(Recipe(cluster.document, {}, None, None).operate(steps)).number


def run_at(cluster: LocalCluster, *words: str) -> tuple[int, str, str]:
    """What the command comes to with the file of that cluster: exit code, standard output, standard error."""
    done = quorate(*words, QUORATE_CLUSTER=str(cluster.document_path))
    return done.returncode, done.stdout, done.stderr


def quorate(
    *words: str, stdin: str = "", cwd: Path | None = None, timeout_s: float = TIMEOUT_S, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, 120 columns wide."""
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")}
    environment = kept | {"COLUMNS": "120"} | environment
    with forked.started(words, **streams, cwd=cwd, text=True, env=environment) as process:
        try:
            out, err = process.communicate(stdin, timeout_s)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def told_in_vain(code: int, sentence: str, *words: str, **environment: Any) -> str:
    """Run a command that its deadline ends, until it ends with this code and says this: a busy machine may hold it up for longer than that lasts.
    All that it says then."""
    late_s = time.monotonic() + TIMEOUT_S
    while True:
        done = quorate(*words, **environment)
        said = " ".join(done.stderr.split())
        if (done.returncode, sentence in said) == (code, True):
            return said
        assert time.monotonic() < late_s, (done.returncode, said)


def quorate_here(*words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in this process, for those that leave nothing behind: to start Python takes longer than they do."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["quorate", *words])
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        for name in [name for name in os.environ if name.startswith("QUORATE_")]:
            patch.delenv(name)
        for name, value in ({"COLUMNS": "120"} | environment).items():
            patch.setenv(name, value)
        try:
            main.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


@pytest.fixture
def run(cluster: LocalCluster) -> Run:
    """The command on the live cluster, in this process."""

    def run_on_cluster(*words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return quorate_here(*words, stdin=stdin, QUORATE_CLUSTER=str(cluster.document_path))

    return run_on_cluster
