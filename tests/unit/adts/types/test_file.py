"""A file holds what was written last."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Response
from quorate.adts.types.file import File
from tests.unit.adts.types.steps import ITEMS, OK, Words, responses


@given(st.lists(st.tuples(st.just("Write"), ITEMS) | st.just(("Read",))))
def test_a_file_holds_what_was_written_last(words: Words) -> None:
    value = None
    for (word, *args), response in responses(File(), words):
        value = args[0] if word == "Write" else value
        assert response == (OK if word == "Write" else Response("Ok", (value,)))
