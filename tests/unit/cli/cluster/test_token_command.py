"""`quorate token`: what it makes, and what it refuses."""

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import quorate


def test_a_token_may_go_to_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    made = quorate(
        "token", "new", "--scope", "write", "--add", "list", "--out", "mine", "--json", cwd=tmp_path
    )
    told = json.loads(made.stdout)
    token = (tmp_path / "mine").read_text()
    assert token.startswith(f"qt_{told['tag']}_")
    assert token.strip() not in made.stdout + made.stderr
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o600
    assert told["line"] in (tmp_path / "list").read_text()


def test_a_file_that_is_there_is_kept_and_the_list_too(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("something else")
    refused = quorate("token", "new", "--scope", "write", "--add", "list", "--out", "mine", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--out" in refused.stderr
    assert (tmp_path / "mine").read_text() == "something else"
    assert not (tmp_path / "list").exists()


def test_without_a_file_it_is_shown_once(tmp_path: Path) -> None:
    told = json.loads(quorate("token", "new", "--scope", "read", "--json", cwd=tmp_path).stdout)
    assert told["token"].startswith(f"qt_{told['tag']}_")


@pytest.mark.parametrize("option", ["--name", "--objects"])
def test_a_value_of_two_words_is_refused(option: str) -> None:
    """The second one would be read as a part of the line, such as its rate."""
    refused = quorate("token", "new", "--scope", "read", option, "queue/shop rate=9", "--json")
    assert refused.returncode == 2
    assert f"{option} 'queue/shop rate=9': write it as one word" in json.loads(refused.stdout)["error"]


def test_a_token_may_be_for_some_objects_alone(tmp_path: Path) -> None:
    objects = ["queue/shop.*", "dictionary/carts"]
    options = [word for each in objects for word in ("--objects", each)]
    made = quorate("token", "new", "--scope", "write", *options, "--add", "list", "--json", cwd=tmp_path)
    assert json.loads(made.stdout)["line"].endswith(" objects=queue/shop.*,dictionary/carts")
    quorate("token", "new", "--scope", "read", "--add", "list", cwd=tmp_path)
    told = json.loads(quorate("token", "list", "list", "--json", cwd=tmp_path).stdout)["tokens"]
    assert [each["objects"] for each in told] == [objects, []]
    shown = quorate("token", "list", "list", cwd=tmp_path).stdout.splitlines()
    assert [line.partition("/s  ")[2] for line in shown] == ["queue/shop.*, dictionary/carts", "all objects"]
    made = quorate("token", "new", "--scope", "write", "--http-only", "--add", "list", "--json", cwd=tmp_path)
    assert json.loads(made.stdout)["line"].endswith(" via=http")
    told_last = quorate("token", "list", "list", cwd=tmp_path).stdout.splitlines()[-1]
    assert told_last.endswith("all objects, HTTP API alone")
    refused = quorate("token", "new", "--scope", "write", "--objects", "shop", "--add", "list", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--objects, line 1: objects= must name" in refused.stderr
