"""CONTRIBUTING.md names only commands and paths that exist."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml

from tests.docs.pages import ROOT, blocks_of, prose

NAME = "CONTRIBUTING.md"
TARGET = re.compile(r"^make ([a-z]+)\b", re.MULTILINE)
MODULE = re.compile(r"python -m ([\w.]+)")
INSTALLED = re.compile(r"\.venv/bin/([\w-]+)")
PATH = re.compile(r"(?:^|(?<= ))([a-z_.]+/[\w/.-]+|[\w.]+\.(?:toml|md))(?=$| )", re.MULTILINE)
MADE_BY_COMMANDS = (".venv/", "my-cluster")


def code_of_the_page() -> str:
    """The blocks and the code within lines, each on a line of its own."""
    text = (ROOT / NAME).read_text()
    blocks = [block.text for block in blocks_of(NAME, text)]
    within_lines = [code for _, line in prose(text) for code in re.findall(r"`([^`]+)`", line)]
    return "\n".join([*blocks, *within_lines])


def test_every_target_of_make_exists() -> None:
    named = set(TARGET.findall(code_of_the_page()))
    assert named >= {"demo", "test", "openapi"}
    assert named <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_module_that_is_run_exists() -> None:
    named = set(MODULE.findall(code_of_the_page()))
    assert named >= {"pytest", "tests.sim.run"}
    assert [name for name in sorted(named) if find_spec(name) is None] == []


def test_every_program_is_installed() -> None:
    named = set(INSTALLED.findall(code_of_the_page()))
    assert "quorate" in named
    assert [name for name in sorted(named) if not (Path(sys.executable).parent / name).exists()] == []


def test_every_path_exists() -> None:
    named = {name for name in PATH.findall(code_of_the_page()) if not name.startswith(MADE_BY_COMMANDS)}
    assert named >= {"tests/unit/quorums", "pyproject.toml", ".ci/run", "cli/objects/commands.py"}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_what_runs_before_a_commit_is_what_make_checks_and_is_not_downloaded() -> None:
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [each["repo"] for each in repositories] == ["local"]
    assert [hook["entry"] for hook in repositories[0]["hooks"]] == ["make check"]


def test_the_help_of_make_fits_a_screen() -> None:
    printed = subprocess.run(
        ["make", "--no-print-directory", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    lines = printed.splitlines()
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    assert [line.split()[1] for line in lines] == targets[1].split()[1:]
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
