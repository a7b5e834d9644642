"""What is installed: the package list, the wheel, the lock files, and what a client-only import brings in."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from quorate import __version__
from quorate.cli.main import EXTRAS
from tests.docs.linked_environment import link, needed
from tests.project.components import CLIENT, asked_for, brought_by, pinned
from tests.project.release import SERVES, build

ROOT = Path(__file__).parents[2]
NOT_ROOMS = {"build", "dist", "out", "tests"}
"""Folders at the top that are not installed."""
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: list[str] = PROJECT["tool"]["setuptools"]["packages"]
ROOMS = sorted(name.removeprefix("quorate.") for name in PACKAGES if name.count(".") == 1)


def packages_in_folders() -> list[str]:
    """The import names of all folders outside the tests that hold an `__init__.py`."""
    tops = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    found = [init.parent for top in tops if top.name not in NOT_ROOMS for init in top.rglob("__init__.py")]
    return sorted(".".join(["quorate", *folder.relative_to(ROOT).parts]) for folder in [ROOT, *found])


def files_of_rooms() -> set[str]:
    """Every file of every room, and those of the package itself, by its path in the wheel."""
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    files += [ROOT / "__init__.py", ROOT / "py.typed"]
    return {f"quorate/{path.relative_to(ROOT)}" for path in files if "__pycache__" not in path.parts}


def pins(lock: str) -> dict[str, set[str]]:
    """The pinned versions by package; a package may have one for each Python."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(
        r"^([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)", (ROOT / lock).read_text(), re.MULTILINE
    ):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


def run_python(*arguments: str, cwd: Path) -> str:
    """Run this Python in another process; its output, or a failure that shows what it said."""
    process = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_package_list_equals_the_folders() -> None:
    assert sorted(PACKAGES) == packages_in_folders()


@pytest.mark.parametrize("table", ["coverage", "mypy"])
def test_other_lists_of_rooms_are_complete(table: str) -> None:
    tool = PROJECT["tool"]
    names = tool["coverage"]["run"]["source"] if table == "coverage" else tool["mypy"]["packages"]
    assert sorted(name.removeprefix("quorate.") for name in names if name != "tests") == ROOMS


def test_the_package_is_typed_and_every_room_has_a_folder_of_tests() -> None:
    wanted = ["py.typed", *(f"tests/unit/{room}/__init__.py" for room in ROOMS)]
    assert not [path for path in wanted if not (ROOT / path).is_file()]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built of it."""
    folder = tmp_path_factory.mktemp("built")
    # Of a copy: setuptools puts what a stale build folder still holds into the wheel.
    tree = folder / "tree"
    for room in [*ROOMS, "tests"]:
        copytree(ROOT / room, tree / room, ignore=ignore_patterns("__pycache__"))
    for path in ROOT.glob("*.*"):
        if path.is_file():
            copy2(path, tree)
    copy2(ROOT / "LICENSE", tree)
    return build(tree, folder / "dist")


@pytest.fixture(scope="module")
def unpacked(built: tuple[Path, Path]) -> Path:
    """A folder with what the wheel holds."""
    folder = built[1].parent / "unpacked"
    with zipfile.ZipFile(built[1]) as wheel:
        wheel.extractall(folder)
    return folder


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_rooms_and_no_tests(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert held == files_of_rooms()


@pytest.mark.slow
def test_sdist_holds_what_the_wheel_is_built_of_and_no_tests(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        held = {each.name.partition("/")[2] for each in sdist.getmembers() if each.isfile()}
    made = {name for name in held if name.startswith("quorate.egg-info/")} | {"PKG-INFO", "setup.cfg"}
    beside = {"LICENSE", "README.md", "pyproject.toml"}
    assert held - made == {name.removeprefix("quorate/") for name in files_of_rooms()} | beside


@pytest.mark.slow
def test_metadata_has_readme_version_and_licence(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        [name] = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
        said = message_from_bytes(wheel.read(name))
    assert said["Version"] == __version__
    assert said["License-Expression"] == "Apache-2.0"
    assert said["Description-Content-Type"] == "text/markdown"
    assert said.get_payload() == (ROOT / "README.md").read_text()


INSTALLED_BY_PAGES = {"celery", "cli", "huey", "replica"}
"""Extras that pages install and use, as they are followed: `tests/docs/test_checkouts.py`."""


@pytest.mark.slow
@pytest.mark.parametrize("extra", sorted(asked_for().keys() - INSTALLED_BY_PAGES))
def test_wheel_with_an_extra_has_all_that_the_extra_is_for(
    extra: str, unpacked: Path, tmp_path: Path
) -> None:
    """With links to the packages of that extra, and to no others; `make release` has pip install them."""
    (tmp_path / "quorate").symlink_to(unpacked / "quorate")
    for each in needed(Requirement(line) for part in {CLIENT, extra} for line in asked_for()[part]):
        link(each, tmp_path)
    # Isolated, and without the packages of this environment.
    run_python(
        "-I", "-S", "-c", f"import sys; sys.path.append({str(tmp_path)!r}); {SERVES[extra]}", cwd=tmp_path
    )


def test_each_extra_has_a_program_that_tells_whether_it_is_whole() -> None:
    assert SERVES.keys() == asked_for().keys()


def test_remedies_name_extras_that_there_are_and_that_have_the_package() -> None:
    texts = [path.read_text() for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    texts += [path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]]
    named = {
        extra
        for text in texts
        for found in re.findall(r"(?:quorate|pip install '?\.)\\?\[([\w,]+)\\?\]", text)
        for extra in found.split(",")
    }
    assert named >= {"cli", "plan", "reports"}
    assert named <= PROJECT["project"]["optional-dependencies"].keys()
    components = pinned()
    for package, extra in EXTRAS.items():
        assert package in brought_by(asked_for()[extra], components)


def test_client_import_brings_in_nothing_of_a_server(tmp_path: Path) -> None:
    script = """
import importlib, pkgutil, sys
import quorate.client_sdk
for module in pkgutil.walk_packages(quorate.client_sdk.__path__, "quorate.client_sdk."):
    importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
    loaded = set(run_python("-c", script, cwd=tmp_path).split())
    assert "quorate" in loaded
    assert not loaded & {"fastapi", "pyspark", "sqlite3", "starlette", "typer", "uvicorn"}


def test_locks_pin_what_the_project_asks_for() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    lines = PROJECT["project"]["dependencies"] + [line for extra in extras.values() for line in extra]
    locked = pins("requirements.lock")
    wanted = [requirement for requirement in map(Requirement, lines) if requirement.name != "quorate"]
    unmet = [
        str(requirement)
        for requirement in wanted
        if not any(map(requirement.specifier.contains, locked.get(canonicalize_name(requirement.name), ())))
    ]
    assert not unmet, "write the lock files anew: make lock"


def test_lock_of_the_generators_pins_what_their_tests_ask_for() -> None:
    asked = pins("tests/generated_clients/requirements.txt")
    assert len(asked) == 3
    assert asked.items() <= pins("tests/generated_clients/requirements.lock").items()


def test_server_lock_agrees_with_the_whole_lock() -> None:
    assert pins("requirements-server.lock").items() <= pins("requirements.lock").items()


@pytest.mark.parametrize(
    "lock",
    ["requirements.lock", "requirements-server.lock", "tests/generated_clients/requirements.lock"],
)
def test_lock_names_no_registry_and_no_folder(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*(-e|-i|-f|--(?!hash=)|[./~]|[\w.-]+ @ )", text, re.MULTILINE)
    assert text.count("--hash=sha256:") > len(pins(lock))
