"""A stack, against a list."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Response
from quorate.adts.types.stack import Stack
from tests.unit.adts.types.steps import ITEMS, OK, Words, responses


@given(st.lists(st.tuples(st.just("Push"), ITEMS) | st.sampled_from([("Pop",), ("Top",)])))
def test_a_stack_is_last_in_first_out(words: Words) -> None:
    plain: list[int] = []
    for (word, *args), response in responses(Stack(), words):
        if word == "Push":
            plain.append(args[0])
            assert response == OK
        elif not plain:
            assert response == Response("Empty")
        else:
            assert response == Response("Ok", (plain.pop() if word == "Pop" else plain[-1],))
