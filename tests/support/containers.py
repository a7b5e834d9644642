"""What tests of containers share: a root that has this machine's programs, and a shell inside.

Owns what such a root holds beside /usr, which is mounted there read-only, and when a test of containers is skipped.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support import environments

PYTHON: Final = "/usr/bin/python3"
"""Of the machine's own /usr: containers have no other."""


def skip_unless_root_has(*programs: str) -> None:
    """Skip where no container can be made: for want of rights, of a program, or of a Python that makes environments."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root on Linux can make a container")
    if missing := [each for each in (*programs, "nsenter", "curl", PYTHON) if shutil.which(each) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if subprocess.run(
        [PYTHON, "-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 11))"], check=False
    ).returncode:
        pytest.skip(f"{PYTHON} is older than 3.11, or makes no virtual environments")


def make_root(root: Path, *others: str) -> None:
    """What a container needs beside /usr: the usual folders, those others that are named, links, and two users."""
    usual = ("usr", "var", "opt", "tmp", "root", "run", "proc", "sys", "dev", "etc")
    for folder in (*usual, *others):
        (root / folder).mkdir(parents=True, exist_ok=True)
    root.chmod(0o755)
    (root / "tmp").chmod(0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n")
    (root / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")


def make_environment(root: Path, folder: str, *commands: list[str], keeps_pip: bool = False) -> None:
    """A virtual environment in the root, with what these commands of pip get, as if made from within."""
    venv = root / folder
    pip = environments.make(venv, PYTHON, keeps_pip=keeps_pip)
    for words in commands:
        done = subprocess.run(
            [*pip, "--quiet", *words], capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    for script in (venv / "bin").iterdir():
        if not script.is_symlink() and (text := script.read_text()).startswith("#!"):
            script.write_text(text.replace(str(root), "", 1))


def children(pid: int) -> list[int]:
    """The processes that this one has started; none when it has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def run_inside(
    first: int,
    script: str,
    environment: dict[str, str],
    *,
    is_checked: bool = True,
    timeout_s: float = 60,
) -> str:
    """Run a script of the shell, as root, in the namespaces of the container whose first process this is; what it printed."""
    enter = ["nsenter", "--target", str(first), "--all", "sh", "-ec", script]
    done = subprocess.run(
        enter, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert not is_checked or done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()
