"""Every planted mistake is caught, by a check that it should be caught by, and by none where it is not planted.

Each is caught soon, or the scenario or the checker is too weak to prove that the rule is kept.
"""

import re
from pathlib import Path

import pytest

from quorate.simulation.violation import Violation
from tests.sim.planted.catalogue import NEEDLESS, PLANTS
from tests.sim.planted.plant import CHECKS, Plant, check_of, hunt, patched, table

ROOT = Path(__file__).parents[3]
NEEDLESS_SEEDS = 12


def named(plant: Plant) -> str:
    return plant.name


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant.seeds], ids=named)
def test_is_caught_within_its_seeds(plant: Plant) -> None:
    caught = hunt(plant, plant.looked_at)
    assert caught is not None, f"no check noticed it in seeds {plant.looked_at}"
    print(f"{plant.name}: seed {caught.seed}, {caught.check}")
    assert caught.check in plant.checks, caught.said
    plant.run(caught.seed, planted=False)


@pytest.mark.parametrize("plant", [plant for plant in PLANTS if plant.schedule], ids=named)
def test_is_caught_in_its_schedule(plant: Plant) -> None:
    plant.play(planted=False)
    with pytest.raises(Violation) as found:
        plant.play(planted=True)
    assert check_of(found.value) in plant.checks, found.value


@pytest.mark.parametrize("plant", NEEDLESS, ids=named)
def test_rule_that_is_needless_for_safety_may_be_dropped(plant: Plant) -> None:
    """Each with its argument in the catalogue; a seed that contradicts one would show that the argument is wrong."""
    for seed in range(1, 1 + NEEDLESS_SEEDS):
        plant.run(seed, planted=True)


def test_every_mistake_of_the_design_and_at_least_ten_others_are_planted() -> None:
    origins = [plant.origin for plant in PLANTS]
    assert {f"DESIGN 6.{number}" for number in range(1, 12)} <= set(origins)
    assert origins.count("own") >= 10
    assert len({plant.name for plant in (*PLANTS, *NEEDLESS)}) == len(PLANTS) + len(NEEDLESS)
    assert {check for plant in PLANTS for check in plant.checks} <= set(CHECKS)
    assert all(
        plant.mistake and plant.checks and bool(plant.seeds) != bool(plant.schedule) for plant in PLANTS
    )


def test_what_was_patched_is_as_before_even_after_a_failure() -> None:
    class Owner:
        rule = "kept"

    def fail() -> None:
        with patched(Owner, rule="dropped"):
            assert Owner.rule == "dropped"
            raise Violation

    with pytest.raises(Violation):
        fail()
    assert Owner.rule == "kept"


def test_table_in_the_documentation_is_current() -> None:
    text = (ROOT / "docs" / "internals" / "planted-mistakes.md").read_text()
    assert table(PLANTS) in text, "put in what `python -m tests.sim.planted` prints"


ROOMS = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name != "tests"]


def test_nothing_that_is_shipped_leads_to_a_planted_mistake() -> None:
    """The wheel holds the rooms only (tests/project/test_packaging.py). None of them imports or names the tests or a mistake, so
    that no variable, option or setting of the installed package can plant one."""
    assert ROOMS
    names = "|".join(re.escape(plant.name) for plant in (*PLANTS, *NEEDLESS))
    traces = re.compile(
        rf"^\s*(?:from|import)\s+tests\b|tests\.sim|\bplanted\b|[\"'](?:{names})[\"']", re.MULTILINE
    )
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for room in ROOMS
        for path in room.rglob("*.py")
        for match in traces.finditer(path.read_text())
    ]
    assert not found
