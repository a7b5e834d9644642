"""`quorate types check`, run as a user runs it."""

import json
from pathlib import Path

import pytest

from quorate.cli.failure import Usage
from quorate.cli.types import walked
from quorate.cli.types.walked import walked_apart
from tests.unit.adts.types_page import OWN_TYPE, PLAIN_TYPE
from tests.unit.cli.conftest import quorate


def test_a_class_is_checked_and_its_choices_are_told(tmp_path: Path) -> None:
    (tmp_path / "cart.py").write_text(PLAIN_TYPE)
    shown = quorate("types", "check", "cart.py:Cart", "--seeds", "2", cwd=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    text = " ".join(shown.stdout.split())
    for words in (
        "The same in two processes: 4,000 steps",
        "Cart add(item, count) blind Ok",
        "remove/NotThere add/Ok item = item'",
        "(0, 1) 99.99990 % (3, 1) 97.03 % (3, 0) 97.03 %",
    ):
        assert words in text
    answer = json.loads(
        quorate(
            "types", "check", "cart.py:Cart", "--seeds", "0", "-n", "5", "--p", "0.9", "--json", cwd=tmp_path
        ).stdout
    )
    assert answer["kinds"] == {"add": "blind", "remove": "decide", "content": "observe"}
    assert [each["classes"]["add/Ok"] for each in answer["choices"]] == [[0, votes] for votes in range(1, 6)]
    assert answer["choices"][0]["availability"]["add"] == pytest.approx(1 - 0.1**5)


CHANCE = """
import random, time
class Chance:
    def __init__(self): self.tags = []
    def roll(self): return random.random()
"""
TAGS = """
class Tags:
    def __init__(self): self.tags = []
    def add(self, tag: str) -> None: self.tags = list({*self.tags, tag, tag + "x"})
"""
DAYS = """
import time
class Days:
    def today(self): return time.localtime().tm_hour
"""


@pytest.mark.parametrize("text", [CHANCE, TAGS, DAYS])
def test_a_class_that_answers_otherwise_elsewhere_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(text)
    name = text.partition("class ")[2].partition(":")[0]
    done = quorate("types", "check", f"own.py:{name}", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"own.py:{name} is not deterministic. " in done.stderr
    assert "in one process" in done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("class Own:\n    def op(self): {}['a']", "op() in the state {}: raised KeyError: 'a'"),
        ("class Own:\n    def op(self): raise SystemExit", "raised SystemExit"),
        ("class Own:\n    def op(self): raise GeneratorExit('\\ud800')", "raised GeneratorExit: \\ud800"),
        ("raise GeneratorExit('\\ud800')", "cannot be read: GeneratorExit: \\ud800"),
        ("import os\nclass Own:\n    def op(self): os._exit(0)", "own.py:Own ended its process"),
        (OWN_TYPE.replace("Seats", "Own"), "is for plain classes"),
        ("class Other: pass", "has no data type 'Own'"),
    ],
)
def test_a_class_that_is_no_type_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(text)
    done = quorate("types", "check", "own.py:Own", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "names no class: write FILE.py:CLASS" in quorate("types", "check", "own.py").stderr


def test_a_method_that_does_not_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.py").write_text("class Own:\n    def op(self):\n        while True: pass")
    monkeypatch.setattr(walked, "WALK_S_MAX", 0.5)
    with pytest.raises(Usage, match="does a method loop without end"):
        walked_apart(tmp_path / "own.py", "Own")


def test_what_a_class_prints_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("print('read')\nclass Own:\n    def op(self): print('done')")
    here, there = walked_apart(tmp_path / "own.py", "Own")
    assert [step.call for step in here] == [step.call for step in there] == ["Own()", "op()"]


BLIND = """
class Full(Exception): pass
class Own:
    blind = ("take",)
    def __init__(self): self.n = 0
    def take(self, by: int) -> None:
        if self.n > 2: raise Full
        self.n += by
    def give(self, by: int) -> None: self.n -= by
    def look(self) -> int: return self.n
"""


def test_an_operation_that_is_called_blind_and_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(BLIND)
    done = quorate("types", "check", "own.py:Own", "--seeds", "0", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Own.blind names take, which ends with Ok, Full, by the state" in done.stderr


def test_an_operation_that_could_be_blind_is_told(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(BLIND.replace('"take",', '"give",'))
    done = quorate("types", "check", "own.py:Own", "--seeds", "5", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No answer of" not in done.stdout
    (tmp_path / "own.py").write_text(BLIND.replace('blind = ("take",)', "pass"))
    done = quorate("types", "check", "own.py:Own", "--seeds", "5", cwd=tmp_path)
    assert "No answer of give depends on the state. Where it returns None, blind = ('give',)" in " ".join(
        done.stdout.split()
    )


def test_a_blind_operation_that_changes_nothing_is_told(tmp_path: Path) -> None:
    text = BLIND.replace('"take",', '"pass_by",').replace(
        "    def give", "    def pass_by(self) -> None: pass\n    def give"
    )
    (tmp_path / "own.py").write_text(text)
    done = quorate("types", "check", "own.py:Own", "--seeds", "0", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Own.blind names pass_by, which changes nothing" in done.stderr


def test_an_observing_operation_that_changes_something_is_told(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(BLIND.replace('blind = ("take",)', 'observing = ("take",)'))
    done = quorate("types", "check", "own.py:Own", "--seeds", "0", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Own.observing names take, which may change something" in done.stderr
