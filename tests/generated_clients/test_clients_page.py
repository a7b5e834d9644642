"""`docs/how-to/clients.md` does what it says: its blocks are run in order, by somebody who has the tools and a live cluster."""

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Final

import pytest

from tests.docs.checkout import constraints
from tests.docs.pages import blocks_of
from tests.docs.reader import Reader
from tests.generated_clients import tools
from tests.support import environments

NAME: Final = "docs/how-to/clients.md"
PAGE: Final = (tools.ROOT / NAME).read_text()
BLOCKS: Final = blocks_of(NAME, PAGE)
pytestmark = pytest.mark.slow


def test_page_names_operations_that_there_are() -> None:
    paths = json.loads(tools.DOCUMENT.read_text())["paths"]
    there = {operation["operationId"] for path in paths.values() for operation in path.values()}
    named = set(re.findall(r"`([a-z]+[A-Z]\w*)`", PAGE.partition("## Names")[2]))
    assert named
    assert named <= there


def test_reader_generates_clients_and_uses_them(tmp_path: Path) -> None:
    """At last the first replica is killed: the program that repeats with its key asks another one."""
    venv = tmp_path / "venv"
    environments.make_with_program(venv)
    pins = constraints(tools.HERE / "requirements.lock", tmp_path)
    with Reader(tmp_path, tools=[venv / "bin", tools.NODE.parent], variables=pins) as reader:
        # npm keeps to them, as to those of a project.
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(tools.HERE / name, tmp_path / "here")
        reader.follow(BLOCKS)
        [program] = [block for block in BLOCKS if "def enqueue_once" in block.text]
        os.kill(reader.pids["r1"], signal.SIGKILL)
        reader.do(program)
        assert reader.printed == "added once\n"
