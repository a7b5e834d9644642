"""What `python3 -m venv` and `pip install '.[extras]'` give, or `make`, of links to what is installed here, with nothing to unpack or compile.

`python linked_environment.py venv FOLDER` makes an environment whose `pip` is this program: `... pip FOLDER install WORDS`. It
holds the packages that these extras need, directly or by what they need in turn, and no others: what a page leaves out, it has
not. That pip takes such words for the same, `test_newcomer_can_follow` sees with pip itself. `... make FOLDER` gives a checkout the environment
for which `make` has nothing to install; what `make` itself installs, all tests run in.
"""

import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, EntryPoint, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

ROOT: Final = Path(__file__).parents[2]
PACKAGE: Final = "quorate"
_THIS: Final = re.compile(r"\.\[([\w,]+)\]")
_PYTHON3: Final = """#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then exec '{python}' '{program}' venv "$3"; fi
exec '{python}' "$@"
"""
_PIP: Final = """#!/bin/sh
exec '{python}' '{program}' pip '{folder}' "$@"
"""
_SCRIPT: Final = """#!{python}
import sys
from {module} import {name}
sys.exit({name}())
"""


def put_into(folder: Path) -> None:
    """Put a `python3` there that makes such environments."""
    _write_program(folder / "python3", _PYTHON3.format(python=sys.executable, program=__file__))


def make_environment(folder: Path) -> None:
    """As `python3 -m venv`, with a `pip` of ours."""
    python = Path(sys.base_prefix) / "bin" / "python3"
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    text = _PIP.format(python=sys.executable, program=__file__, folder=folder.resolve())
    _write_program(folder / "bin" / "pip", text)


def equip(checkout: Path) -> None:
    """As `make` does before all else: with every extra, and what tests need."""
    folder = checkout / ".venv"
    make_environment(folder)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    install(folder, [f".[{','.join(extras - {'all'})}]"], checkout)
    for each in (".installed", ".compiled"):
        (folder / each).touch()


def install(folder: Path, words: Iterable[str], package: Path = ROOT) -> None:
    """As `pip install` of the package in this folder with extras; ValueError where the words say anything else."""
    extras = set[str]()
    for word in words:
        if (found := _THIS.fullmatch(word)) is None:
            raise ValueError(f"only '.[extras]' can be installed here, not {word!r}")
        extras.update(found[1].split(","))
    [site] = folder.glob("lib/python*/site-packages")
    (site / PACKAGE).symlink_to(package.resolve())
    # By its place: the checkout in which tests run may have metadata of another time.
    [metadata] = Path(sysconfig.get_path("purelib")).glob(f"{PACKAGE}-*.dist-info")
    (site / metadata.name).symlink_to(metadata)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    scripts = [EntryPoint(name, place, "console_scripts") for name, place in project["scripts"].items()]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    for each in needed(map(Requirement, wanted)):
        link(each, site)
        scripts += each.entry_points.select(group="console_scripts")
    for script in scripts:
        text = _SCRIPT.format(python=folder / "bin" / "python", module=script.module, name=script.attr)
        _write_program(folder / "bin" / script.name, text)


def needed(requirements: Iterable[Requirement]) -> list[Distribution]:
    """The packages that are asked for, with those that they need in turn."""
    found: dict[str, Distribution] = {}
    asked, seen = list(requirements), set[tuple[str, str]]()
    while asked:
        each = asked.pop()
        for extra in ["", *each.extras]:
            if (each.name, extra) in seen:
                continue
            seen.add((each.name, extra))
            package = found.setdefault(each.name.lower(), distribution(each.name))
            inner = map(Requirement, package.requires or ())
            asked += [one for one in inner if one.marker is None or one.marker.evaluate({"extra": extra})]
    return list(found.values())


def link(package: Distribution, site: Path) -> None:
    """Lay links to all of a package into a folder."""
    for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        if not (site / name).exists():
            (site / name).symlink_to(Path(str(package.locate_file(name))))


def _write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["venv", folder]:
            make_environment(Path(folder))
        case ["pip", folder, "install", *words]:
            install(Path(folder), words)
        case ["make", folder]:
            equip(Path(folder))
        case others:
            sys.exit(f"no such words are known here: {others}")
