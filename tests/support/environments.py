"""Virtual environments that tests fill with pip.

A Python that comes with an old pip makes each of them wait for it: this environment's pip, which `make` has seen to be a quick one,
does the same for another environment. Where there is none, as after uv, the new environment has its own.
"""

import importlib.util
import shlex
import subprocess
import sys
from pathlib import Path


def make(folder: Path, python: str = sys.executable, *, keeps_pip: bool = False) -> list[str]:
    """Make an environment of that Python, with a pip of its own if it is to keep one; the words that pip is called by for it."""
    has_pip = importlib.util.find_spec("pip") is not None
    options = ["--without-pip"] if has_pip and not keeps_pip else []
    done = subprocess.run(
        [python, "-m", "venv", *options, str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [sys.executable, "-m", "pip", "--python", str(folder)] if has_pip else [str(folder / "bin/pip")]


def make_with_program(folder: Path) -> None:
    """The same, of this Python, with a program `pip` that calls it."""
    words = make(folder)
    program = folder / "bin" / "pip"
    if not program.exists():
        program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        program.chmod(0o755)
