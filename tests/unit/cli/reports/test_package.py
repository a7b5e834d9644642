"""What `spark-submit` takes: an archive that holds every file of every room, and can be imported from."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from quorate.cli.reports import package
from tests.project.test_packaging import ROOMS, files_of_rooms


def test_every_room_is_named() -> None:
    assert sorted(package.ROOMS) == ROOMS


def test_the_archive_holds_every_file_and_python_imports_from_it(tmp_path: Path) -> None:
    archive, script = package.write_package(tmp_path / "made")
    with zipfile.ZipFile(archive) as held:
        assert {name for name in held.namelist() if not name.endswith("/")} == files_of_rooms()
    code = "import quorate.spark_reports.page as s, importlib.resources as r; print(s.__file__, *r.files(s.__name__).iterdir())"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env=os.environ | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert str(archive) in done.stdout
    assert "report.html.jinja" in done.stdout
    compile(script.read_text(encoding="utf-8"), str(script), "exec")


def test_the_command_says_what_it_wrote_or_what_it_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["package", str(tmp_path)])
    assert package.main() == 0
    assert capsys.readouterr().out.split() == [
        str(tmp_path / "quorate.zip"),
        str(tmp_path / "quorate_report.py"),
    ]
    monkeypatch.setattr(sys, "argv", ["package"])
    assert package.main() == 2
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "argv", ["package", str(tmp_path / "file")])
    assert package.main() == 1
    assert "give another folder" in capsys.readouterr().err
