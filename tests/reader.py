"""Somebody who follows a page: types what its fenced blocks say, in order, on a live cluster.

Each block stands below a mark that says what to do with it, or `not run:` with the reason:

* `run: sh`, `run: python`: run it to its end, which must be well;
* `run: background`: `quorate up`, which is ready when it prints its line; `run: service`: another command that goes on running;
* `run: file NAME`: write it to that file; `run: toml`: it must be right as part of a cluster document.

The ports that pages name are replaced by free ones.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from quorate.api_specs.cluster import parse
from quorate.cli.local_cluster import free_ports

STEP_TIMEOUT_S = 60
RUNNABLE = {"sh", "python", "toml"}


class Block(NamedTuple):
    """A fenced block: what to do with it, the language it names, and its text."""

    mark: str
    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    return [
        Block(*found) for found in re.findall(r"(?:<!-- (.*?) -->\n)?```(\w*)\n(.*?)```", page, re.DOTALL)
    ]


def unmarked(blocks: list[Block]) -> list[str]:
    """The blocks that a reader might run and that do not say whether they are."""
    return [
        block.text
        for block in blocks
        if block.language in RUNNABLE and not re.match(r"run: |not run: .", block.mark)
    ]


def replaced(text: str, ports: dict[str, str]) -> str:
    """`text` with its ports exchanged."""
    return re.sub(r"\b(?:800[1-3]|9001)\b", lambda found: ports[found[0]], text)


def environment() -> dict[str, str]:
    """The variables of somebody who has set none of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")}


class Reader:
    """Somebody who types the blocks into a shell that remembers its variables and folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(["8001", "8002", "8003", "9001"], map(str, free_ports(4)), strict=True))
        self.exports = ""
        self._running: list[subprocess.Popen[str]] = []
        (folder / ".venv").mkdir()
        (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)

    def shell(self, text: str) -> str:
        """What the commands print; each must end well."""
        command = ["bash", "-euo", "pipefail", "-c", self.exports + replaced(text, self.ports)]
        self.exports += "".join(line + "\n" for line in text.splitlines() if line.startswith("export "))
        return self._run(command)

    def python(self, text: str) -> str:
        """What the program prints."""
        return self._run([sys.executable, "-c", replaced(text, self.ports)])

    def follow(self, blocks: list[Block]) -> str:
        """Do what each block says, in order; all that was printed."""
        printed = ""
        for block in blocks:
            match block.mark.split():
                case ["run:", "sh"]:
                    printed += self.shell(block.text)
                case ["run:", "background"]:
                    self.start(block.text)
                case ["run:", "service"]:
                    self.serve(block.text)
                case ["run:", "python"]:
                    printed += self.python(block.text)
                case ["run:", "file", name]:
                    (self.folder / name).write_text(replaced(block.text, self.ports))
                case ["run:", "toml"]:
                    made = (self.folder / "try" / "cluster.toml").read_text()
                    parse(made.replace("[[choices]]", block.text + "\n[[choices]]", 1))
                case ["run:", *_]:
                    raise ValueError(f"nobody knows how to do {block.mark!r}")
        return printed

    def start(self, text: str) -> None:
        """Run `quorate up` until the end of the test, and wait for its line."""
        running = self.serve(text)
        assert running.stdout is not None
        assert len(json.loads(running.stdout.readline())["replicas"]) == 3

    def serve(self, text: str) -> "subprocess.Popen[str]":
        """Run the command until the end of the test."""
        command = "exec " + replaced(text, self.ports)
        self._running.append(
            subprocess.Popen(
                ["bash", "-c", self.exports + command],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                text=True,
                env=environment(),
            )
        )
        return self._running[-1]

    def stop(self) -> None:
        """End what runs, what came last first."""
        for running in reversed(self._running):
            running.send_signal(signal.SIGINT)
            try:
                running.communicate(timeout=STEP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                running.kill()
                running.communicate()
                raise

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=STEP_TIMEOUT_S,
            check=False,
            env=environment(),
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
