"""What generates clients is installed when its first test begins, beside the tests of other workers."""

import fcntl
import subprocess

import pytest

from tests.generated_clients import tools

INSTALL_S = 600


@pytest.fixture(scope="session", autouse=True)
def _installed() -> None:
    """One worker installs, and the others wait for it. Where that cannot be had, as without a network, the rest is tested."""
    command = ["make", "--no-print-directory", "clients"]
    with (tools.ROOT / "Makefile").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        made = subprocess.run(
            command, cwd=tools.ROOT, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    if made.returncode:
        pytest.skip(f"what generates clients cannot be installed (make clients): {made.stderr[-500:]}")
