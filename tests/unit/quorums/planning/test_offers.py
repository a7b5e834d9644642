"""Targets as text, and what is none."""

import pytest

from quorate.quorums.planning.offers import Target, parse_target
from quorate.quorums.systems.systems import BadQuorums


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Enq >= 99.99%", Target("Enq", "availability", True, 0.9999)),
        ("Deq p50<=20ms", Target("Deq", "p50", False, 20)),
        ("Deq resilience >= 1", Target("Deq", "resilience", True, 1)),
        ("load <= 0.5", Target("", "load", False, 0.5)),
        (">= 0.9", Target("", "availability", True, 0.9)),
    ],
)
def test_targets_as_text(text: str, expected: Target) -> None:
    found = parse_target(text, ["Enq", "Deq"])
    assert (found.operation, found.figure, found.is_floor) == (
        expected.operation,
        expected.figure,
        expected.is_floor,
    )
    assert found.number == pytest.approx(expected.number)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Enq fast", "states no target: write it as 'Enq >= 99.99%'"),
        ("Enq >= 1e", "states no target"),
        ("Peek >= 99%", "the mix has no operation 'Peek'; it has Enq, Deq"),
        ("Enq speed >= 1", "no figure 'speed'; use availability, p50"),
        ("Enq load <= 1", "load is of the whole mix; leave Enq out"),
        ("p50 <= 3ms", "say of which operation"),
        ("load <= 3ms", "load is not given in ms; leave the unit out"),
        ("Enq p50 <= 3%", "p50 is not given in %"),
    ],
)
def test_what_is_no_target_is_refused_with_an_example(text: str, sentence: str) -> None:
    with pytest.raises(BadQuorums, match=sentence):
        parse_target(text, ["Enq", "Deq"])
