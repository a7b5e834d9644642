"""Each module of a pure floor has a unit test of its own name, in the folder that mirrors its own or in the one above."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PURE = (
    "adts",
    "client_sdk/inspection",
    "client_sdk/protocol",
    "gc",
    "quorums",
    "replica/protocol",
    "timestamps",
)


def untested() -> Iterator[str]:
    """The modules of pure floors without a test of their own name."""
    for floor in PURE:
        for module in sorted((ROOT / floor).rglob("*.py")):
            path = module.relative_to(ROOT)
            tests = ROOT / "tests" / "unit" / path.parent
            name = f"test_{path.name}"
            if path.name != "__init__.py" and not any((at / name).exists() for at in (tests, tests.parent)):
                yield str(path)


def test_modules_of_pure_floors_have_unit_tests_of_their_own_name() -> None:
    assert list(untested()) == []
