"""Shows what a replica does whose disk is full: nothing is lost, it says so, and it comes back when there is room.

Three replicas get small disks of their own. Under load that of r3 is filled: it answers 503 with the reason, is not
ready, and the others go on; when there is room it is ready again, though nobody writes. With r1 dead besides, what is settled
is still read from r2 and r3, a write has an unknown outcome and a dequeue is certainly not done. Started on the full
disk, r3 ends and says to make room, not that its store is damaged. With all three full nothing is acknowledged. In the
end r2 is killed, everything is read and drained from the others, and the history is checked.

The disks are mounted in a mount namespace, which takes a kernel that lets its users make one.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.system.harness import ROOT

ALONE: Final = ("unshare", "--user", "--map-root-user", "--mount")
WAIT_S: Final = 300.0


def may_mount() -> bool:
    """Whether this machine lets us have a mount namespace."""
    command = [*ALONE, "mount", "-t", "tmpfs", "quorate-test", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, timeout=WAIT_S, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_full_disks_lose_nothing_and_are_told(tmp_path: Path) -> None:
    if not may_mount():
        pytest.skip("no mount namespaces here")
    command = [*ALONE, sys.executable, "-m", "tests.system.full_disk", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout + ended.stderr
