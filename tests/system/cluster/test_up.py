"""Shows that `quorate up` is a good citizen: one JSON line, and afterwards no process and no temporary folder.

It is started as a user starts it, with a folder for temporary files that the test can look into. SIGTERM and Ctrl-C
(SIGINT) stop all replicas and remove what was made; if `up` itself is killed with SIGKILL, its replicas notice and end.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from quorate.measurement.faults.held_ports import HeldPort
from tests.system.harness import WAIT_S, is_running, until_now

TIMEOUT_S: Final = 60.0


class Up:
    """A running `quorate up`."""

    def __init__(self, temporary: Path) -> None:
        temporary.mkdir()
        self._ports: Final = [HeldPort.chosen() for _ in range(3)]
        ports = ",".join(str(port.number) for port in self._ports)
        self.process: Final = subprocess.Popen(
            [sys.executable, "-m", "quorate.cli.main", "up", "--ports", ports],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": str(temporary)},
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.line: Final = self.process.stdout.readline()
        self.told: Final[dict[str, Any]] = json.loads(self.line or "{}")
        self.pids: Final[list[int]] = [replica["pid"] for replica in self.told.get("replicas", ())]

    def end(self) -> tuple[str, str]:
        """What else it wrote until its end, which must come by itself."""
        return self.process.communicate(timeout=WAIT_S)


@contextmanager
def up(temporary: Path) -> Iterator[Up]:
    """`quorate up`, and nothing of it left afterwards whatever a test does."""
    running = Up(temporary)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.communicate(timeout=WAIT_S)
        until_now(lambda: not any(map(is_running, running.pids)), "the replicas end")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with up(tmp_path / "temporary") as running:
        assert [replica["id"] for replica in running.told["replicas"]] == ["r1", "r2", "r3"]
        assert Path(running.told["cluster"]).is_relative_to(tmp_path)
        for replica in running.told["replicas"]:
            assert is_running(replica["pid"])
            assert Path(replica["data"]).is_dir()
            assert httpx.get(
                replica["url"] + "/v1/health/ready", timeout=TIMEOUT_S, trust_env=False
            ).is_success
        running.process.send_signal(number)
        rest, _ = running.end()
        assert rest == "", "one line, and no more"
        assert running.process.returncode == 0
        assert not any(map(is_running, running.pids))
        assert list((tmp_path / "temporary").iterdir()) == []


def test_replicas_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    with up(tmp_path / "temporary") as running:
        assert len(running.pids) == 3
        running.process.kill()
        running.end()
        until_now(lambda: not any(map(is_running, running.pids)), "the replicas end with their parent")


def test_up_without_a_free_port_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    """The neighbours of a replica that cannot start are stopped, too."""
    with up(tmp_path / "first") as running:
        taken = running.told["replicas"][0]["url"].rpartition(":")[2]
        held = [HeldPort.chosen() for _ in range(2)]
        ports = ",".join([*(str(port.number) for port in held), taken])
        (tmp_path / "second").mkdir()
        second = subprocess.run(
            [sys.executable, "-m", "quorate.cli.main", "up", "--ports", ports],
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            env=os.environ | {"TMPDIR": str(tmp_path / "second")},
            check=False,
        )
        assert second.returncode == 1
        assert f"Port {taken}" in second.stderr
        assert second.stdout == ""
        assert list((tmp_path / "second").iterdir()) == []
