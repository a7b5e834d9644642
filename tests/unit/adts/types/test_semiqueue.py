"""A semiqueue, against a multiset."""

from collections import Counter as Multiset
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Invocation, Response, outcomes_of
from quorate.adts.types.semiqueue import Semiqueue
from tests.unit.adts.types.steps import ITEMS, Words


@given(st.lists(st.tuples(st.just("Enq"), ITEMS) | st.just(("Deq",))), st.data())
def test_a_semiqueue_may_give_any_item_that_waits(words: Words, data: st.DataObject) -> None:
    specification = Semiqueue()
    state: Any = specification.initial()
    plain: Multiset[int] = Multiset()
    for word, *args in words:
        invocation = Invocation(word, tuple(args))
        possible = list(outcomes_of(specification, state, invocation))
        assert specification.step(state, invocation) in possible
        if word == "Deq":
            expected = {Response("Ok", (item,)) for item in plain.elements()} or {Response("Empty")}
            assert {response for _, response in possible} == expected
        state, response = data.draw(st.sampled_from(possible))
        plain.update(args)
        plain.subtract(response.results)
        assert Multiset(state) == +plain
