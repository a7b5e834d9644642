"""What somebody has who begins with a checkout: a folder with the repository in it, and nothing installed."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.docs import linked_environment
from tests.docs.pages import ROOT

_NOT_OF_THE_REPOSITORY: Final = (
    ".git",
    ".venv",
    ".clients",
    ".*_cache",
    "__pycache__",
    "*.egg-info",
    "build",
    "dist",
    "out",
)

AS_THEY_ARE: Final = {"PIP_COMPILE": "0"}
"""Has pip compile nothing: of all that a page installs, its commands import a small part, which Python compiles then."""

_EQUIP: Final = """\
#!/bin/sh
exec {python} {program} make "$PWD"
"""


def check_out(folder: Path) -> None:
    """Make the folder: a clone, with what has changed here since. Where git has no history of this folder it is a copy."""
    if not has_commit("HEAD"):
        shutil.copytree(ROOT, folder, symlinks=True, ignore=shutil.ignore_patterns(*_NOT_OF_THE_REPOSITORY))
        return
    _git("clone", "--quiet", str(ROOT), str(folder), at=folder.parent)
    changed = _git("ls-files", "-z", "--modified", "--deleted", "--others", "--exclude-standard", at=ROOT)
    for name in filter(None, changed.split("\0")):
        (folder / name).unlink(missing_ok=True)
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)


def link_environments(folder: Path) -> None:
    """Give each work tree that git adds to this checkout an environment for which `make` has nothing to install."""
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    words = {"python": shlex.quote(sys.executable), "program": shlex.quote(linked_environment.__file__)}
    hook.write_text(_EQUIP.format(**words))
    hook.chmod(0o755)


def has_commit(name: str) -> bool:
    """Whether this checkout's history reaches back to it; a shallow one's does not."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return False
    words = ["git", "cat-file", "-e", f"{name}^{{commit}}"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode == 0


def constraints(lock: Path, folder: Path) -> dict[str, str]:
    """Has pip install the versions of a lock file where a page asks for a package by its name; the variable that says so."""
    pinned = re.findall(r"^[\w.-]+(?:\[[\w,]+\])?==[^\\\n]+", lock.read_text(), re.MULTILINE)
    path = folder / "constraints.txt"
    path.write_text("".join(f"{each.strip()}\n" for each in pinned))
    return {"PIP_CONSTRAINT": str(path)}


def _git(*words: str, at: Path) -> str:
    return subprocess.run(["git", *words], cwd=at, capture_output=True, text=True, check=True).stdout
