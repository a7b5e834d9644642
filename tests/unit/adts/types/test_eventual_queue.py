"""An eventual queue, against a multiset; and what it buys: enqueues at one replica of three beside dequeues at two."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.types.eventual_queue import EventualQueue
from quorate.adts.types.queue import Queue
from quorate.quorums.choices.choice import Sizes
from quorate.quorums.choices.choices import constraints_of, minimal_choices
from tests.unit.adts.types.steps import ITEMS, Words, hold_against_a_multiset

THREE = {"r1": 1, "r2": 1, "r3": 1}


@given(st.lists(st.tuples(st.just("Enq"), ITEMS) | st.just(("Deq",))), st.data())
def test_it_may_give_any_item_that_waits_or_none(words: Words, data: st.DataObject) -> None:
    hold_against_a_multiset(EventualQueue(), words, data, may_miss=True)


def test_it_needs_fewer_replicas_than_a_queue() -> None:
    def pairs(specification: Any) -> set[tuple[Sizes, Sizes]]:
        choices = minimal_choices(constraints_of(specification, ("Enq", "Deq")), THREE)
        return {(each.classes["Enq/Ok"], each.classes["Deq/Ok"]) for each in choices}

    assert ((0, 1), (2, 2)) in pairs(EventualQueue())
    assert ((0, 1), (2, 2)) not in pairs(Queue())
    assert ((0, 1), (3, 1)) in pairs(Queue())
