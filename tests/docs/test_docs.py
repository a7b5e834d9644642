"""The documents name only what there is."""

import re
from pathlib import Path

import pytest

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
    r"`((?:tests|docs|adts|api_specs|client_sdk|gc|integrations|quorums|replica|timestamps)/[\w/.]+)`"
)
SYMBOL = re.compile(r"`((?:client_sdk|replica)(?:\.\w+)+)\.(\w+)`")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    named = FILE.findall((ROOT / page).read_text())
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


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
