"""Which calls weak answers about a dictionary are judged by: those about the same key, or all of them."""

from typing import Any

import pytest

from quorate.adts.histories.calls import Call
from quorate.adts.specification import Invocation, Response
from quorate.adts.types.catalogue import known_types
from quorate.cli.check.weak_answers import sentence_of, typed, weak_answers

TYPES = {"d": typed(known_types()["dictionary"])}


def call(at: int, operation: str, *args: Any, results: tuple[Any, ...] = (), weak: bool = False) -> Call:
    return Call("p", "d", Invocation(operation, args), at, at + 5, (Response("Ok", results),), weak)


PUTS = [call(10, "Put", "a", "1"), call(20, "Put", "b", "2")]
OLD = call(30, "Get", "a", results=(None,), weak=True)
NOW = call(30, "Get", "b", results=("2",), weak=True)
EMPTY = call(40, "Items", results=(frozenset(),), weak=True)
BOTH = call(40, "Items", results=(frozenset({("a", "1"), ("b", "2")}),), weak=True)


@pytest.mark.parametrize(
    ("weak", "missed"), [([OLD, NOW, BOTH], [OLD]), ([NOW, EMPTY], [EMPTY]), ([OLD, EMPTY], [OLD, EMPTY])]
)
def test_keys_are_judged_alone_and_whole_answers_by_all_keys(weak: list[Call], missed: list[Call]) -> None:
    [found] = weak_answers(TYPES, [*PUTS, *weak])
    assert (found.weak, found.judged, list(found.missed)) == (len(weak), len(weak), missed)


def test_beside_a_whole_read_of_atomic_consistency_keys_are_not_judged_alone() -> None:
    """It shows a without b: so whoever saw the one and not the other in the other order fits no order."""
    together = [
        call(10, "Put", "a", "1")._replace(returned=99),
        call(10, "Put", "b", "2")._replace(returned=99),
    ]
    snapshot = call(20, "Items", results=(frozenset({("a", "1")}),))
    seen = [
        call(11, "Get", "b", results=("2",), weak=True)._replace(returned=13),
        call(14, "Get", "a", results=("1",), weak=True)._replace(returned=16),
    ]
    [found] = weak_answers(TYPES, [*together, snapshot, *seen])
    assert list(found.missed) == seen[:1]
    assert sentence_of(found).startswith("d: 1 of 2 answers")


@pytest.mark.parametrize("weak", [[], [NOW]])
def test_where_a_key_is_not_linearizable_nothing_is_counted(weak: list[Call]) -> None:
    wrong = call(50, "Get", "a", results=("9",))
    assert list(weak_answers(TYPES, [*PUTS, wrong, *weak])) == []
