"""Clients that threads of one process make at the same time, as the first thing it does."""

import subprocess
import sys
from pathlib import Path

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.slow

PROCESSES = 6
"""Of two, one crashed, before decoders were made as modules load (`tests/project/test_decoders.py`)."""

PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from quorate.client_sdk import connect

sys.setswitchinterval(1e-6)
together = Barrier(8)

def work(number):
    together.wait()
    with connect(sys.argv[1], deadline_s=20) as client:
        client.register("leader").write(number)
        return client.register("leader").read()

with ThreadPoolExecutor(8) as pool:
    print(len(list(pool.map(work, range(8)))))
"""


def test_threads_connect_at_once(shared_cluster: LocalCluster, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    for _ in range(PROCESSES):
        command = [sys.executable, str(program), str(shared_cluster.document_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout) == (0, "8\n"), done.stderr
