"""The rules of the code base: who may import whom, form, types, sizes, docstrings, and no traces of a machine."""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = Path(sys.executable).parent
FUNCTION_LINES_MAX = 70
MODULE_LINES_MAX = 800
"""For one thought, as a state machine: most modules have a tenth of it."""
FOLDER_MODULES_MAX = 15

# Each exception with its reason: "room/module.py" or "room/module.py:function".
TOO_LONG_BY_INTENT: dict[str, str] = {}

CHECKS = {
    "imports": [["lint-imports"]],
    "form": [["ruff", "check", "."], ["ruff", "format", "--check", "."]],
    "types": [["mypy"]],
}

# Written so that this file does not match itself.
TRACES = re.compile(
    r"/(?:root|home|Users)/\w|/work/(?:main|shared|wt)|/opt/(?:wheels|pypi)"
    r"|pypi[.]org|pythonhosted[.]org|anaconda[.]org|npmjs[.]org|docker[.]io|ghcr[.]io|quay[.]io|gcr[.]io"
)


def git_files() -> list[Path]:
    """The files that are tracked or about to be; the test is skipped where there is no git checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    paths = (ROOT / name for name in listed.split("\0") if name)
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def modules() -> Iterator[tuple[str, str]]:
    """Every Python module of the rooms and of the tests: its path and its text."""
    for top in ROOT.iterdir():
        if top.is_dir() and (top / "__init__.py").exists():
            for path in sorted(top.rglob("*.py")):
                yield str(path.relative_to(ROOT)), path.read_text()


def lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function from its `def`, those of its docstring not counted."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is None:
        return lines
    return lines - ((first.end_lineno or first.lineno) - first.lineno + 1)


def functions(text: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a module; one inside another counts for both."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def too_long() -> set[str]:
    """The modules and functions that exceed the limits."""
    found = set()
    for path, text in modules():
        if text.count("\n") > MODULE_LINES_MAX:
            found.add(path)
        long = (each for each in functions(text) if lines_without_docstring(each) > FUNCTION_LINES_MAX)
        found.update(f"{path}:{each.name}" for each in long)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_tool_finds_nothing(check: str) -> None:
    for tool, *arguments in CHECKS[check]:
        process = subprocess.run(
            [TOOLS / tool, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert process.returncode == 0, process.stdout + process.stderr


def test_no_folder_of_a_room_has_too_many_modules() -> None:
    counts = Counter(str(Path(path).parent) for path, _ in modules() if not path.startswith("tests/"))
    assert not {folder: count for folder, count in counts.items() if count > FOLDER_MODULES_MAX + 1}


def test_every_module_has_a_docstring() -> None:
    assert not [path for path, text in modules() if not ast.get_docstring(ast.parse(text))]


def test_functions_and_modules_keep_to_their_sizes() -> None:
    assert too_long() == set(TOO_LONG_BY_INTENT)


def test_no_file_names_a_registry_host_or_a_path_of_this_machine() -> None:
    found = []
    for path in git_files():
        text = path.read_bytes().decode(errors="ignore")
        found += [f"{path.relative_to(ROOT)}: {match.group()}" for match in TRACES.finditer(text)]
    assert not found
