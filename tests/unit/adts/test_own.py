"""Types of one's own: what a search completes."""

import pytest

from quorate.adts.own import Computed
from quorate.adts.specification import (
    Invocation,
    Response,
    Specification,
    outcomes_of,
)
from quorate.adts.types.catalogue import known_types
from tests.unit.adts.brute_force import (
    Narrowed,
    legal_histories,
    next_events,
)


@pytest.mark.parametrize("adt", known_types())
def test_a_type_of_ones_own_is_completed_by_the_search(adt: str) -> None:
    declared = known_types()[adt]
    own: Specification = Computed(Narrowed(declared))
    assert (own.name, own.kinds, own.changes) == (adt, declared.kinds, declared.changes)
    assert own.depends == declared.depends
    for history in legal_histories(declared, 1):
        assert next_events(own, history) == next_events(declared, history)


def test_a_type_of_ones_own_may_answer_in_several_ways() -> None:
    own = Computed(Narrowed(known_types()["semiqueue"]))
    assert list(outcomes_of(own, ("a", "b"), Invocation("Deq"))) == [
        (("b",), Response("Ok", ("a",))),
        (("a",), Response("Ok", ("b",))),
    ]
