"""Makes what `spark-submit` takes: `quorate.zip`, the package, and `quorate_report.py`, which runs `quorate report`.

    python -m quorate.cli.reports.package DIR

The wheel will not do as a zip: it has no entries for folders, and without them Python does not find a namespace package
in an archive.
"""

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from shutil import copy, copytree, ignore_patterns, make_archive
from typing import Final

from ..failure import Failure

ROOMS: Final = (
    "adts",
    "api_specs",
    "cli",
    "client_sdk",
    "gc",
    "integrations",
    "measurement",
    "quorums",
    "replica",
    "simulation",
    "spark_reports",
    "timestamps",
)

SCRIPT: Final = '''\
"""Runs `quorate report` with the session that spark-submit sets up; arguments as there."""

import sys

from quorate.cli.main import main
from quorate.spark_reports.spark.session import submitted_session

submitted_session()
sys.argv[1:1] = ["report", "--engine", "spark"]
main()
'''


def write_package(folder: Path) -> tuple[Path, Path]:
    """Write both files into a folder, which is made if missing; give their paths.

    Raises:
        Failure: the folder cannot be written, or the package lies where its files cannot be copied from.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="quorate-package-") as scratch:
            for room in ROOMS:
                copytree(
                    _place_of(room), Path(scratch, "quorate", room), ignore=ignore_patterns("__pycache__")
                )
            for name in ("__init__.py", "py.typed"):
                copy(_place_of("timestamps").with_name(name), Path(scratch, "quorate", name))
            archive = make_archive(str(folder / "quorate"), "zip", root_dir=scratch)
        script = folder / "quorate_report.py"
        script.write_text(SCRIPT, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{folder} cannot be filled ({error}); give another folder") from error
    return Path(archive), script


def _place_of(room: str) -> Path:
    spec = find_spec(f"quorate.{room}")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places or not Path(places[0]).is_dir():
        raise Failure(
            f"the files of quorate.{room} are not found; install quorate with pip, not as an archive"
        )
    return Path(places[0])


def main() -> int:
    """Write the package into the folder that the only argument names."""
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: python -m quorate.cli.reports.package DIR", file=sys.stderr)
        return 2
    try:
        archive, script = write_package(Path(sys.argv[1]))
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    print(archive, script, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
