"""Parsing JSON text: far numbers by Python, and no search for garbage meanwhile."""

import importlib

import pytest

from quorate.adts import parsing
from quorate.adts.collector import collector_off
from quorate.adts.parsing import parsed
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
