"""The README does what it says: every block of it that a reader would type is run, in order, on a live cluster.

Each fenced block stands below a mark: `run: sh|background|python|toml`, or `not run:` with the reason. The ports that
the README names are replaced by free ones.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from quorate.api_specs.cluster import parse
from quorate.cli.local_cluster import free_ports

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
STEP_TIMEOUT_S = 60
RUNNABLE = {"sh", "python", "toml"}


class Block(NamedTuple):
    """A fenced block: what to do with it, the language it names, and its text."""

    mark: str
    language: str
    text: str


BLOCKS = [
    Block(*found) for found in re.findall(r"(?:<!-- (.*?) -->\n)?```(\w*)\n(.*?)```", README, re.DOTALL)
]


def replaced(text: str, ports: dict[str, str]) -> str:
    """`text` with its ports exchanged."""
    return re.sub(r"\b(?:800[1-3]|9001)\b", lambda found: ports[found[0]], text)


class Reader:
    """Somebody who types the blocks into a shell that remembers its variables and folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(["8001", "8002", "8003", "9001"], map(str, free_ports(4)), strict=True))
        self.exports = ""
        self.background: subprocess.Popen[str] | None = None
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

    def start(self, text: str) -> None:
        """Run the command until the end of the test, and wait for its line."""
        command = "exec " + replaced(text, self.ports)
        self.background = subprocess.Popen(
            ["bash", "-c", self.exports + command], cwd=self.folder, stdout=subprocess.PIPE, text=True
        )
        assert self.background.stdout is not None
        assert len(json.loads(self.background.stdout.readline())["replicas"]) == 3

    def stop(self) -> None:
        """End what runs in the background."""
        if self.background is not None:
            self.background.send_signal(signal.SIGTERM)
            self.background.communicate(timeout=STEP_TIMEOUT_S)

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=STEP_TIMEOUT_S,
            check=False,
            env={name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    someone = Reader(tmp_path)
    try:
        yield someone
    finally:
        someone.stop()


def test_every_block_that_can_be_run_says_whether_it_is() -> None:
    unmarked = [
        block.text
        for block in BLOCKS
        if block.language in RUNNABLE and not re.match(r"run: |not run: .", block.mark)
    ]
    assert not unmarked


@pytest.mark.slow
def test_reader_can_follow_from_top_to_bottom(reader: Reader) -> None:
    printed = ""
    for block in BLOCKS:
        match block.mark:
            case "run: sh":
                printed += reader.shell(block.text)
            case "run: background":
                reader.start(block.text)
            case "run: python":
                printed += reader.python(block.text)
            case "run: toml":
                made = (reader.folder / "try" / "cluster.toml").read_text()
                parse(made.replace("[[choices]]", block.text + "\n[[choices]]", 1))
    for expected in (
        '[Enq("wash"); Ok()]',
        '{"items":["fold"]}',
        "[{'clean': 'kitchen'}]",
        "bob leads",
        "'bob': {'age': 41}",
        "['iron'",
        "  (0, 1)   (3, 1)   (3, 0)     \n  (0, 2)   (2, 2)   (2, 0)     \n  (0, 3)   (1, 3)   (1, 0)",
        "  (0, 1)   (5, 1)   (5, 0)     \n  (0, 2)   (4, 2)   (4, 0)     \n  (0, 3)   (3, 3)   (3, 0)",
        "  (1, 5)     (1, 0)   \n  (2, 4)     (2, 0)   \n  (3, 3)     (3, 0)",
        "  (0, 1)     (5, 0)   \n  (0, 2)     (4, 0)   \n  (0, 3)     (3, 0)   \n  (0, 4)     (2, 0)   \n  (0, 5)     (1, 0)",
        "  (3, 3)   (3, 3)   (3, 0)",
        "equal votes; Enq/Ok (0, 1)  Deq/Ok (3, 1)  Deq/Empty (3, 0)",
        "item = item'",
    ):
        assert expected in printed, printed
