"""A semiqueue, against a multiset."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.types.semiqueue import Semiqueue
from tests.unit.adts.types.steps import ITEMS, Words, hold_against_a_multiset


@given(st.lists(st.tuples(st.just("Enq"), ITEMS) | st.just(("Deq",))), st.data())
def test_a_semiqueue_may_give_any_item_that_waits(words: Words, data: st.DataObject) -> None:
    hold_against_a_multiset(Semiqueue(), words, data, may_miss=False)
