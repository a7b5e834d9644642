"""A bounded counter keeps between zero and its limit."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Response
from quorate.adts.types.bounded_counter import BoundedCounter
from tests.unit.adts.types.steps import Words, responses


@given(st.lists(st.sampled_from([("Inc",), ("Dec",), ("Read",)])))
def test_a_bounded_counter_keeps_between_zero_and_its_limit(words: Words) -> None:
    taken = 0
    for (word,), response in responses(BoundedCounter(), words):
        command = taken + {"Inc": 1, "Dec": -1, "Read": 0}[word]
        refused = {3: "Full", -1: "Empty"}.get(command)
        taken = taken if refused else command
        assert response == Response(refused or "Ok", (taken,) if word == "Read" else ())
