"""The documents name only what there is."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import blocks_of, prose

ROOT = Path(__file__).parents[2]
PAGES = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/verification.md",
    "docs/limits.md",
    "docs/security.md",
    "docs/types.md",
    "docs/quorums.md",
    "docs/celery.md",
    "docs/huey.md",
    "docs/clients.md",
    "docs/live-page.md",
]
FILE = re.compile(
    r"`((?:tests|docs|examples|adts|api_specs|cli|client_sdk|gc|integrations|measurement|quorums|replica|spark_reports"
    r"|timestamps)/[\w/.-]+)`"
)
TARGET = re.compile(r"^make ([a-z]+)\b", re.MULTILINE)
MODULE = re.compile(r"python -m ([\w.]+)")
INSTALLED = re.compile(r"\.venv/bin/([\w-]+)")
SYMBOL = re.compile(r"`((?:client_sdk|replica)(?:\.\w+)+)\.(\w+)`")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    named = FILE.findall((ROOT / page).read_text())
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def commands_of_contributors() -> str:
    """The page's code, in blocks and in lines, without what stands between."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = [block.text for block in blocks_of("CONTRIBUTING.md", text)]
    lines = [code for _, line in prose(text) for code in re.findall(r"`([^`]+)`", line)]
    return "\n".join([*blocks, *lines])


def test_every_command_for_contributors_exists() -> None:
    commands = commands_of_contributors()
    targets, modules, programs = (set(found.findall(commands)) for found in (TARGET, MODULE, INSTALLED))
    assert targets >= {"demo", "test", "openapi"}
    made = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(targets - set(made)) == []
    assert {"pytest", "tests.sim.run"} <= modules
    assert [name for name in sorted(modules) if find_spec(name) is None] == []
    assert "quorate" in programs
    assert [name for name in sorted(programs) if not (Path(sys.executable).parent / name).exists()] == []


def test_every_path_of_a_contributor_s_command_exists() -> None:
    commands = commands_of_contributors()
    named = re.findall(r"(?:^|(?<= ))([a-z_.]+/[\w/.-]+|[\w.]+\.(?:toml|md))(?=$| )", commands, re.MULTILINE)
    own = {name for name in named if not name.startswith((".venv/", "my-cluster"))}
    assert {"tests/unit/quorums", "pyproject.toml", ".ci/run"} <= own
    assert [name for name in sorted(own) if not (ROOT / name).exists()] == []


def test_every_name_of_the_code_that_a_page_mentions_exists() -> None:
    named = [found for page in PAGES for found in SYMBOL.findall((ROOT / page).read_text())]
    assert named
    for module, symbol in named:
        text = (ROOT / f"{module.replace('.', '/')}.py").read_text()
        assert re.search(rf"^(?:class|def) {symbol}\b", text, re.MULTILINE), f"{module}.{symbol}"


def test_every_package_that_is_declared_has_a_reason() -> None:
    """The table of dependencies in ARCHITECTURE.md, against pyproject.toml."""
    declared = re.findall(
        r'^    "([A-Za-z0-9_-]+)[\w\[\]]*[><=]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    rows = (ROOT / "ARCHITECTURE.md").read_text().split("## Dependencies")[1]
    assert "httpx" in declared
    missing = [name for name in declared if not re.search(rf"\b{re.escape(name)}\b", rows)]
    assert missing == []
