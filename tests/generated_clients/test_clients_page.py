"""`docs/clients.md` does what it says: its blocks are run in order, by somebody who has the tools and a live cluster."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from quorate.cli.local_cluster import free_ports
from tests.generated_clients import tools

PAGE: Final = (tools.ROOT / "docs" / "clients.md").read_text()
BLOCKS: Final = re.findall(r"(?:<!-- (.*?) -->\n)?```(\w*)\n(.*?)```", PAGE, re.DOTALL)
OBJECTS: Final = {"queues", "registers", "dictionaries"}
STOP_S: Final = 30
TSC: Final = ["--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext"]

pytestmark = [tools.needs_tools, pytest.mark.slow, pytest.mark.xdist_group("generated-clients")]


class Reader:
    """Somebody whose shell finds `quorate`, the generators and Node; its ports stand for those of the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = dict(zip(("8001", "8002", "8003"), map(str, free_ports(3)), strict=True))
        self.exports = ""
        self.replicas: list[dict[str, Any]] = []
        self.cluster: subprocess.Popen[str] | None = None
        path = [str(tools.PYTHON.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {"PATH": os.pathsep.join(path)}
        shutil.copy(tools.HERE / "package.json", folder)
        (folder / "node_modules").symlink_to(tools.NODE_MODULES)

    def shell(self, text: str) -> str:
        """What the commands print; each must end well."""
        command = self.exports + self._replaced(text)
        self.exports += "".join(line + "\n" for line in text.splitlines() if line.startswith("export "))
        return self._run("bash", "-euo", "pipefail", "-c", command)

    def start(self, text: str) -> None:
        """Run the command until the end of the test, and wait for its line."""
        self.cluster = subprocess.Popen(
            ["bash", "-c", f"{self.exports}exec {self._replaced(text)}"],
            cwd=self.folder,
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.cluster.stdout is not None
        self.replicas = json.loads(self.cluster.stdout.readline())["replicas"]

    def python(self, text: str) -> str:
        """What the program prints."""
        (self.folder / "program.py").write_text(self._replaced(text))
        return self.shell(f"{tools.PYTHON} program.py")

    def typescript(self, text: str) -> str:
        """What the program prints, once its types are found to be right."""
        (self.folder / "program.ts").write_text(self._replaced(text))
        return self.shell(f"npx tsc {' '.join(TSC)} program.ts\nnode program.js")

    def stop(self) -> None:
        """End what runs in the background."""
        if self.cluster is not None:
            self.cluster.send_signal(signal.SIGTERM)
            self.cluster.communicate(timeout=STOP_S)

    def _replaced(self, text: str) -> str:
        return re.sub(r"\b800[1-3]\b", lambda found: self.ports[found[0]], text)

    def _run(self, *command: str) -> str:
        return tools.run(*command, cwd=self.folder, **self.environment).output


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    someone = Reader(tmp_path)
    try:
        yield someone
    finally:
        someone.stop()


def test_every_block_says_whether_it_is_run() -> None:
    assert [text for mark, _, text in BLOCKS if not re.match(r"run: |not run: .", mark)] == []


def test_page_names_the_operations_of_an_application() -> None:
    paths = json.loads(tools.DOCUMENT.read_text())["paths"]
    operations = [operation for path in paths.values() for operation in path.values()]
    wanted = {each["operationId"] for each in operations if OBJECTS.intersection(each["tags"])}
    assert wanted == set(re.findall(r"`([a-z]+[A-Z]\w*|enqueue|dequeue)`", PAGE.partition("## Names")[2]))


def test_reader_generates_clients_and_uses_them(reader: Reader) -> None:
    """At last the first replica is killed: the program that repeats with its key asks another one."""
    printed = ""
    for mark, _, text in BLOCKS:
        match mark:
            case "run: sh":
                reader.shell(text)
            case "run: background":
                reader.start(text)
            case "run: python":
                printed += reader.python(text)
            case "run: typescript":
                printed += reader.typescript(text)
    assert printed.splitlines() == [
        "python took [{'wash': 'cups'}]",
        "ann leads: True",
        "typescript took [ 'fold', 'iron' ]",
        "added once",
    ]
    os.kill(reader.replicas[0]["pid"], signal.SIGKILL)
    assert reader.python(BLOCKS[-1][2]) == "added once\n"
