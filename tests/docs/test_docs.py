"""The documents name only what there is."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/explanation/verification.md",
    "docs/internals/performance.md",
    "docs/internals/planted-mistakes.md",
    "docs/internals/sharing.md",
    "docs/internals/tests.md",
    "docs/internals/verification.md",
    "docs/reference/limits.md",
    "docs/explanation/security.md",
    "docs/explanation/sharing-a-replica.md",
    "docs/reference/types.md",
    "docs/how-to/quorums.md",
    "docs/explanation/celery.md",
    "docs/how-to/huey.md",
    "docs/how-to/clients.md",
    "docs/how-to/live-page.md",
]
DECISIONS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs/decisions").glob("0*.md"))
ROOMS = "adts|api_specs|cli|client_sdk|gc|integrations|measurement|quorums|replica|simulation|spark_reports|timestamps"
FILE = re.compile(rf"`((?:tests|docs|{ROOMS})/[\w/.-]+)`")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SYMBOL = re.compile(r"`((?:client_sdk|replica)(?:\.\w+)+)\.(\w+)`")
PATH = re.compile(r"([\w.]+): (\w+(?:, \w+)*)")
"""In the lists of modules that operations pass: a package, and modules of it."""


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    named = FILE.findall((ROOT / page).read_text())
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", DECISIONS)
def test_every_file_that_a_decision_names_exists(page: str) -> None:
    assert [name for name in FILE.findall((ROOT / page).read_text()) if not (ROOT / name).exists()] == []


def test_every_test_that_a_page_names_exists() -> None:
    named = [found for page in PAGES for found in TEST.findall((ROOT / page).read_text())]
    assert len(named) > 40
    assert [each for each in named if not has_test(*each)] == []


def has_test(path: str, name: str) -> bool:
    """Whether the file has a test, or a test class with one, of that name."""
    file = ROOT / path
    return (
        file.exists()
        and re.search(rf"^ *(?:async )?def {name}\(", file.read_text(), re.MULTILINE) is not None
    )


def test_every_name_of_the_code_that_a_page_mentions_exists() -> None:
    named = [found for page in PAGES + DECISIONS for found in SYMBOL.findall((ROOT / page).read_text())]
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


def test_the_index_of_decisions_has_each_by_its_title_and_number() -> None:
    listed = re.findall(
        r"^- \[(.+)\]\((.+)\)$", (ROOT / "docs/decisions/README.md").read_text(), re.MULTILINE
    )
    assert [f"docs/decisions/{name}" for _, name in listed] == DECISIONS
    for number, (title, name) in enumerate(listed, 1):
        text = (ROOT / "docs/decisions" / name).read_text()
        assert name.startswith(f"{number:04}-")
        assert title.startswith(f"{number}. ")
        assert re.findall("^#+ (.+)$", text, re.MULTILINE) == [title, "Context", "Decision", "Consequences"]


def test_the_floors_of_the_page_are_those_of_the_contracts() -> None:
    shown = [line.partition("  ")[0] for line in _lines_of_lists("## Rooms")]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers"]
    assert layers
    for wanted in layers:
        floors = [each.replace("quorate.", "") for each in wanted]
        assert [each for each in shown if each in floors] == floors


def test_the_lists_of_modules_that_operations_pass_add_up() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    parts = re.split("^### ", page.split("## Dependencies")[0], flags=re.MULTILINE)[1:]
    shared, *operations = [(_modules(part), int(_first(r": (\d+) modules", part))) for part in parts]
    assert len(shared[0]) == shared[1]
    assert operations
    assert [len(shared[0] | own) for own, _ in operations] == [count for _, count in operations]
    missing = [each for own, _ in [shared, *operations] for each in own if not (ROOT / each).exists()]
    assert missing == []


def _lines_of_lists(heading: str) -> list[str]:
    """The lines of all lists (blocks of text) in the page about the architecture, from that heading on."""
    blocks = re.findall(
        r"```text\n(.*?)```", (ROOT / "ARCHITECTURE.md").read_text().split(heading)[1], re.DOTALL
    )
    return [line for block in blocks for line in block.splitlines()]


def _modules(part: str) -> set[str]:
    """The files of the modules in the lists of a section."""
    lists = "".join(re.findall(r"```text\n(.*?)```", part, re.DOTALL))
    return {
        f"{package.replace('.', '/')}/{name}.py"
        for package, names in PATH.findall(lists)
        for name in names.split(", ")
    }


def _first(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, pattern
    return found[1]
