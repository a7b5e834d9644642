"""A counter adds."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Response
from quorate.adts.types.counter import Counter
from tests.unit.adts.types.steps import OK, Words, responses


@given(st.lists(st.tuples(st.just("Add"), st.integers(-3, 3)) | st.just(("Read",))))
def test_a_counter_adds(words: Words) -> None:
    total = 0
    for (word, *args), response in responses(Counter(), words):
        total += sum(args)
        assert response == (OK if word == "Add" else Response("Ok", (total,)))
