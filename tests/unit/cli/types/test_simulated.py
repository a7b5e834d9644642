"""`quorate types check` on simulated clusters: a class that is right, one that is wrong where front ends meet, and code that goes wrong."""

import json
from pathlib import Path

import pytest

from quorate.cli.failure import Usage
from quorate.cli.types import simulated as border
from quorate.cli.types.simulated import Broken, Simulated, simulated
from quorate.cli.types.simulation_words import words_of
from tests.unit.adts.types_page import PLAIN_TYPE
from tests.unit.cli.conftest import quorate

REMEMBERS = """
class Board:
    known = None
    def __init__(self):
        self.top = 0
    def score(self, points: int) -> None:
        self.top = max(self.top, points)
    def best(self) -> int:
        if Board.known is None:
            Board.known = self.top
        return Board.known
"""
"""The two processes agree: each is asked for the best of a new object first, and answers that ever after."""


@pytest.fixture
def cart(tmp_path: Path) -> Path:
    (tmp_path / "my-cart.py").write_text(PLAIN_TYPE)
    return tmp_path / "my-cart.py"


def test_a_right_class_is_told_with_what_was_run(cart: Path) -> None:
    shown = quorate("types", "check", f"{cart}:Cart", "--seeds", "3")
    came = simulated(cart, "Cart", 1, 3)
    assert (came.clusters, came.given_up, came.broken) == (3, 0, None)
    assert came.calls > 100
    assert came.faults > 3
    assert shown.returncode == 0
    assert shown.stdout.splitlines()[1] == (
        f"Simulated: 3 clusters, {came.calls} calls, {came.faults:,} faults: all linearizable."
    )
    told = json.loads(quorate("types", "check", f"{cart}:Cart", "--seeds", "3", "--json").stdout)
    assert told["simulated"] == came.for_json()
    assert told["choices"]


def test_a_seed_is_the_same_by_itself(cart: Path) -> None:
    alone = [simulated(cart, "Cart", seed, 1) for seed in (4, 5, 6)]
    assert simulated(cart, "Cart", 4, 3) == alone[0].with_one(alone[1]).with_one(alone[2])


def test_without_seeds_nothing_is_simulated(cart: Path) -> None:
    shown = quorate("types", "check", f"{cart}:Cart", "--seeds", "0")
    assert shown.returncode == 0
    assert "Simulated" not in shown.stdout
    assert "simulated" not in json.loads(
        quorate("types", "check", f"{cart}:Cart", "--seeds", "0", "--json").stdout
    )


HISTORY = """\
The same in two processes: 10 steps, from 3 states.
Simulated: in the cluster of seed 1, Board's calls are not linearizable.
Of its 53 calls these show it:

  f1a  score(1) → Ok   ├───────┤
  f3a  score(1) → Ok     ├─┤
  f2a  score(2) → Ok         ├─────┤
  f1a  score(1) → Ok             ├─────┤
  f2a  score(2) → Ok                 ├───┤
  f1a  score(1) → Ok                       ├───────────┤
  f2a  score(2) → Ok                         ├─┤
  f2a  score(2) → Ok                             ├─┤
  f2a  score(1) → Ok                                 ├───┤
  f2a  best() → Ok(1)                                      ├─┤

  The longest order that fits: … then score(2) → Ok; score(1) → Ok; score(1) → Ok.
  Board is then {"top":2}, and none of these can come next:
    best() → Ok(1)

Let what an operation does follow from the state and its arguments alone: what is kept in the class or in its module is another one \
in each process. `--first 1 --seeds 1` runs this cluster again.
"""


def test_a_class_that_answers_from_what_its_process_keeps_is_shown_by_a_few_calls(tmp_path: Path) -> None:
    (tmp_path / "board.py").write_text(REMEMBERS)
    found = quorate("types", "check", "board.py:Board", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout == HISTORY
    assert quorate("types", "check", "board.py:Board", "--seeds", "0", cwd=tmp_path).returncode == 0
    answer = quorate(
        "types", "check", "board.py:Board", "--first", "1", "--seeds", "1", "--json", cwd=tmp_path
    )
    assert answer.returncode == 1
    broken = json.loads(answer.stdout)["simulated"]["broken"]
    assert (broken["seed"], broken["promise"]) == (1, "")
    assert broken["shown"][-1] == "best() → Ok(1)"


DEEP = """
import os
class Own:
    def __init__(self):
        self.items = []
    def put(self, item: str, much: int, more: int) -> None:
        self.items.append(item)
        if len(self.items) > 9:
            {does}
"""
"""So many calls away that the walk does not come there."""


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("[].pop()", r"put\([ab], [12], [12]\) in the state .*: raised IndexError"),
        ("os._exit(0)", "own.py:Own ended its process"),
    ],
)
def test_code_that_goes_wrong_far_from_the_first_state_is_told(does: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(DEEP.format(does=does))
    with pytest.raises(Usage, match=words):
        simulated(tmp_path / "own.py", "Own", 1, 20)


def test_it_ends_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.py").write_text(DEEP.format(does="while True: pass"))
    monkeypatch.setattr(border, "SIMULATED_S_MAX", 3.0)
    came = simulated(tmp_path / "own.py", "Own", 1, 20)
    assert came.clusters < 20
    assert came.broken is None


def test_what_was_not_judged_is_told() -> None:
    assert list(words_of(Simulated(37, 1934, 1204, 2), "Own", 200)) == [
        "Simulated: 37 clusters, 1,934 calls, 1,204 faults: all linearizable.",
        "Of 2 of them this is not known, for too many calls overlap.",
        "Not simulated: 163 clusters, for 60 s were over.",
    ]
    assert list(words_of(Simulated(), "Own", 200)) == ["Not simulated: 200 clusters, for 60 s were over."]
    promise = Simulated(1, broken=Broken(7, 0, promise="r1 fell"))
    assert list(words_of(promise, "Own", 200)) == [
        "Simulated: the cluster of seed 7 broke a promise: r1 fell"
    ]
    unshown = "\n".join(words_of(Simulated(1, broken=Broken(7, 50)), "Own", 200))
    assert "The few calls that show it were not found." in unshown
