"""`quorate init`, `format` and `serve`, and what they refuse."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quorate import __version__
from quorate.cli.cluster.document import read_document
from tests.unit.cli.conftest import quorate, quorate_here
from tests.unit.replica.data_folder.test_replacement import room_for


def test_version_is_that_of_the_project() -> None:
    assert quorate("--version").stdout == f"quorate {__version__}\n"


def test_init_writes_a_document_and_formats_folders(tmp_path: Path) -> None:
    done = quorate(
        "init", "--ports", "8101,8102", "--replicas", "2", "--data-root", "data", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    document = read_document(tmp_path / "cluster.toml")
    assert json.loads(done.stdout)["hash"] == document.hash
    assert document.urls == {"r1": "http://127.0.0.1:8101", "r2": "http://127.0.0.1:8102"}
    for replica in document.replicas:
        identity = json.loads((tmp_path / "data" / replica.id / "identity.json").read_text())
        assert identity["store"] == replica.store


def test_init_and_format_overwrite_nothing(tmp_path: Path) -> None:
    (tmp_path / "data" / "r1").mkdir(parents=True)
    (tmp_path / "data" / "r1" / "mine").write_text("mine")
    refused = quorate("init", "--data-root", "data", cwd=tmp_path)
    assert refused.returncode == 2
    assert "data/r1 is not empty" in refused.stderr
    assert not (tmp_path / "cluster.toml").exists()
    assert quorate("init", cwd=tmp_path).returncode == 0
    assert quorate("init", cwd=tmp_path).returncode == 2
    words = ("format", "--cluster", "cluster.toml", "--id", "r2", "--data", "r2")
    assert quorate(*words, cwd=tmp_path).returncode == 0
    again = quorate(*words, cwd=tmp_path)
    assert again.returncode == 1
    assert "already holds a store" in again.stderr


def test_an_act_is_told_to_who_keeps_standard_error_and_not_at_a_terminal(tmp_path: Path) -> None:
    kept = quorate("init", "--data-root", "data", "--out", "kept.toml", cwd=tmp_path)
    assert [json.loads(line)["act"] for line in kept.stderr.splitlines()] == ["format"] * 3
    assert quorate("init", "--out", "c.toml", cwd=tmp_path).returncode == 0
    screen, terminal = os.openpty()
    words = ["format", "--cluster", "c.toml", "--id", "r1", "--data", "d"]
    with os.fdopen(screen, "rb", 0) as seen:
        with os.fdopen(terminal, "wb", 0) as end:
            command = [sys.executable, "-m", "quorate.cli.main", *words]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=end, cwd=tmp_path, timeout=60, check=True
            )
            end.write(b"nothing\n")
        assert seen.readline() == b"nothing\r\n"
    assert b"Formatted d for r1." in done.stdout


def test_init_that_fails_leaves_nothing_that_the_next_one_meets(tmp_path: Path) -> None:
    """It left the document, so that the corrected command was refused."""
    (tmp_path / "file").write_text("mine")
    for place in ("file", "file/below"):
        refused = quorate("init", "--data-root", place, cwd=tmp_path)
        told = "quorate: file cannot be used as a folder: it is a file; nothing was changed. Name another with --data-root.\n"
        assert (refused.returncode, refused.stderr) == (2, told)
    with room_for(1 << 14):
        full = quorate_here("init", "--out", str(tmp_path / "c.toml"), "--data-root", str(tmp_path / "data"))
    assert full.returncode == 1
    assert "no store could be made in" in full.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    (tmp_path / "c.toml").write_text("mine")
    (tmp_path / "data" / "r1").mkdir(parents=True)
    there = quorate("init", "--out", "c.toml", "--data-root", "data", cwd=tmp_path)
    assert (there.returncode, "c.toml exists already" in there.stderr) == (2, True)
    assert [each.name for each in (tmp_path / "data").iterdir()] == ["r1"], "which was there before"
    assert list((tmp_path / "data" / "r1").iterdir()) == []
    assert quorate("init", "--data-root", "data", cwd=tmp_path).returncode == 0


def test_replace_again_after_one_that_was_cut_off_tells_the_remedy_that_works(tmp_path: Path) -> None:
    """It said to start the replica on the store, which is refused."""
    assert quorate("init", "--data-root", ".", cwd=tmp_path).returncode == 0
    words = ("replace", "--cluster", "cluster.toml", "--id", "r2", "--from", "r1=r1", "--from", "r3=r3")
    own = quorate(*words, "--data", "r2", cwd=tmp_path)
    assert (own.returncode, "start the replica on it" in own.stderr) == (1, True)
    (tmp_path / "r2").rename(tmp_path / "kept")
    document = (tmp_path / "cluster.toml").read_text()
    assert quorate(*words, "--data", "r2", cwd=tmp_path).returncode == 0
    (tmp_path / "cluster.toml").write_text(document)  # As if it had been killed just before it was changed.
    again = quorate(*words, "--data", "r2", cwd=tmp_path)
    assert again.returncode == 1
    assert "r2 already holds a store, but not the one that the cluster file names for r2." in again.stderr
    assert "If a `quorate replace` that was cut off has left it, empty the folder and repeat" in again.stderr
    assert "start" not in again.stderr
    for each in (tmp_path / "r2").iterdir():
        each.unlink()
    assert quorate(*words, "--data", "r2", cwd=tmp_path).returncode == 0


def test_init_takes_named_replicas(tmp_path: Path) -> None:
    words = ("init", "--replica", "a=http://a:80", "--replica", "b=http://b:80")
    assert quorate(*words, cwd=tmp_path).returncode == 0
    assert read_document(tmp_path / "cluster.toml").urls == {"a": "http://a:80", "b": "http://b:80"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--ports", "8001"), "one port for each of the 3 replicas"),
        (("--ports", "a,b,c"), "port numbers with commas"),
        (("--base-port", "65535"), "must lie within"),
        (("--replica", "r1"), "write ID=URL"),
        (("--replica", "R1=http://a:80"), "lower-case"),
    ],
)
def test_init_names_what_is_wrong(tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    done = quorate("init", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert expected in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_serve_refuses_a_wrong_folder_a_wrong_id_and_an_open_door(tmp_path: Path) -> None:
    assert quorate("init", "--data-root", ".", cwd=tmp_path).returncode == 0
    for words, expected in [
        (("--id", "r9", "--data", "r1"), "has no replica 'r9'"),
        (("--id", "r1", "--data", "r2"), "belongs to replica 'r2'"),
        (("--id", "r1", "--data", "r1", "--host", "0.0.0.0"), "set a token"),
        (
            ("--id", "r1", "--data", "r1", "--endpoint", "r2"),
            "--endpoint 'r2' is not ID=URL, as --endpoint r2=",
        ),
        (("--id", "r1", "--data", "r1", "--endpoint", "r2=:9"), "is not ID=URL"),
        (
            ("--id", "r1", "--data", "r1", "--endpoint", "r1=http://h:9"),
            "no other replica 'r1'; they are r2, r3",
        ),
        (
            ("--id", "r1", "--data", "r1", "--probe-log", "p", "--probe-every", "10"),
            "--probe-every: '10' is no duration",
        ),
        (
            ("--id", "r1", "--data", "r1", "--probe-log", "p", "--probe-every", "2h"),
            "--probe-every 2h: give 0.1s to 1h",
        ),
        (
            ("--id", "r1", "--data", "r1", "--probe-log", "cluster.toml"),
            "cluster.toml cannot be used as a folder: it is a file. Name another with --probe-log.",
        ),
    ]:
        done = quorate("serve", "--cluster", "cluster.toml", *words, cwd=tmp_path)
        assert done.returncode in (1, 2)
        assert expected in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--port", "99999"),
        ("--port", "-1"),
        ("--clock-offset", "nan"),
        ("--clock-offset", "1e300"),
        ("--address-share", "0"),
        ("--address-share", "1.1"),
        ("--probe-days", "0"),
    ],
)
def test_serve_takes_no_number_that_it_cannot_use(tmp_path: Path, words: tuple[str, str]) -> None:
    """The system would listen on another port than 99999, and timestamps do not hold such a clock."""
    document, data = tmp_path / "cluster.toml", tmp_path / "r1"
    quorate("init", "--out", str(document), "--data-root", str(tmp_path))
    refused = quorate(
        "serve", "--cluster", str(document), "--id", "r1", "--data", str(data), *words, timeout_s=20
    )
    assert refused.returncode == 2
    assert f"Invalid value for '{words[0]}'" in refused.stderr


def test_up_waits_for_no_end_that_never_comes(tmp_path: Path) -> None:
    refused = quorate("up", "--data", str(tmp_path / "up"), "--deadline", "nan", timeout_s=20)
    assert refused.returncode == 2
    assert "Invalid value for '--deadline'" in refused.stderr
    refused = quorate("up", "--data", str(tmp_path / "up"), "--probe-every", "0s", timeout_s=20)
    assert refused.returncode == 2
    assert "--probe-every 0s: give 0.1s to 1h" in refused.stderr
    assert not (tmp_path / "up").exists()


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    up = quorate("up", "--data", str(file))
    assert (up.returncode, up.stderr) == (
        2,
        f"quorate: {file} cannot be used as a folder: it is a file. Name another with --data.\n",
    )
    below = quorate("up", "--data", str(file / "below"))
    assert (below.returncode, "Name another with --data" in below.stderr) == (2, True)
    init = quorate("init", "--out", str(file / "cluster.toml"))
    assert (init.returncode, f"{file} is no folder" in init.stderr) == (2, True)


def test_token_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for name, expected in [("empty", "is empty"), ("missing", "cannot be read")]:
        done = quorate(
            "queue", "q", "size", "--cluster", "http://127.0.0.1:9", cwd=tmp_path, QUORATE_TOKEN_FILE=name
        )
        assert done.returncode == 2
        assert expected in done.stderr


def test_missing_extra_is_told_in_a_sentence() -> None:
    script = "import sys; sys.modules['typer'] = None; from quorate.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'quorate[cli]'" in done.stderr
    assert "Traceback" not in done.stderr
