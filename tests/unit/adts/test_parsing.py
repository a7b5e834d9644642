"""JSON text: far numbers are parsed by Python, no garbage is looked for meanwhile, and names are put in order however many there are."""

import importlib
import random
from typing import Any

import msgspec
import pytest

from quorate.adts import parsing
from quorate.adts.collector import collector_off
from quorate.adts.parsing import FEW_NAMES, canonical, parsed
from tests.support.calls import calls


def test_no_garbage_is_looked_for_while_many_arrays_are_read() -> None:
    """With it, 8 MB of empty arrays would hold up the replica for a second."""
    collector, begun = importlib.import_module("gc"), list[str]()
    text = f"[{','.join(['[]'] * 100_000)}]"
    collector.callbacks.append(lambda phase, _: begun.append(phase))
    try:
        found = parsed(text.encode())
        assert begun.count("start") <= 1  # What was put off until after it.
    finally:
        del collector.callbacks[-1]
    assert len(found) == 100_000
    assert collector.isenabled()


def test_what_was_parsed_is_not_among_what_is_looked_at_next() -> None:
    collector = importlib.import_module("gc")
    found = parsed(f"[{','.join(['[]'] * 100_000)}]".encode())
    assert len(found) == 100_000
    assert sum(len(collector.get_objects(generation)) for generation in (0, 1)) < 10_000


def test_only_what_has_many_arrays_makes_everything_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else may: what is garbage then stays for long, and with it the values in it."""
    aged: list[int] = []
    monkeypatch.setattr(parsing, "_age_all", lambda: aged.append(1))
    many = f"[{','.join(['[]'] * 30_000)}]"
    parsed(f'"{"x" * 1_000_000}"'.encode())
    with collector_off():
        parsed(many.encode())
    assert aged == []
    parsed(many.encode())
    assert aged == [1]


@pytest.mark.parametrize("far", ["1e300", "-1E-308", "5e+0299", "1.5e-323", "1e23", "-8E+023"])
def test_numbers_that_the_parser_takes_long_for_are_read_by_python(far: str) -> None:
    """For each the parser takes 30 microseconds: 8 MB of them held up the replica for half a minute."""
    text = f"[{','.join([far] * 1000)}]"
    assert calls(lambda: parsed(text.encode()))["_double"] == 1000
    assert parsed(text.encode()) == [float(far)] * 1000
    assert calls(lambda: parsed(b'[1.5,"e",1e99]'))["_double"] == 0


@pytest.mark.parametrize("count", [0, 1, 2, FEW_NAMES, FEW_NAMES + 1, 500])
def test_names_are_in_order_however_many_there_are(count: int) -> None:
    rng = random.Random(count)
    letters = ["a", "B", "\u00e9", "\uffff", "\U0001f600", '"', "\\", "\n", "0"]
    names = ["".join(rng.choices(letters, k=8)) for _ in range(count)]
    values: list[Any] = [
        None,
        True,
        1,
        -1.5,
        1e300,
        1e23,
        0.1,
        2**64 - 1,
        -(2**63),
        "x",
        [{"b": 1, "a": []}],
        {},
    ]
    value = {name: rng.choice(values) for name in names}
    assert canonical(value) == msgspec.json.encode(value, order="deterministic")
    assert canonical([value, {"z": value}]) == msgspec.json.encode(
        [value, {"z": value}], order="deterministic"
    )


def test_a_name_that_comes_behind_those_in_order_is_put_in_its_place_before_msgspec_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A new key of a state comes so. With 32,000 names it took 0.4 s, and four times as long for each twice as many."""
    encode, asked = msgspec.json.encode, list[tuple[str | None, Any]]()

    def watched(value: Any, *, order: Any = None, **named: Any) -> bytes:
        asked.append((order, value))
        return encode(value, order=order, **named)

    monkeypatch.setattr(msgspec.json, "encode", watched)
    value = {f"{number:05}": 1 for number in range(2_000) if number != 700} | {"00700": 1}
    assert list(parsed(canonical(value))) == sorted(value)
    assert [order for order, _ in asked] == [None, "deterministic"]
    assert list(asked[1][1]) == sorted(value), "it is in order when msgspec puts it in order"
