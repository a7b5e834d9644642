"""A register keeps the last write, and swaps only what is there."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Invocation, Response
from quorate.adts.types.register import Register

VALUES = st.sampled_from(["a", "b", "c"])
OLD = st.none() | VALUES


@given(st.lists(st.one_of(VALUES.map(lambda x: ("Write", x)), st.tuples(st.just("Cas"), OLD, OLD))))
def test_register_keeps_the_last_write_and_swaps_only_what_is_there(words: list[tuple[Any, ...]]) -> None:
    specification, state = Register(), Register().initial()
    value: Any = None
    for word, *args in words:
        state, response = specification.step(state, Invocation(word, tuple(args)))
        if word == "Write":
            value, expected = args[0], "Ok"
        elif value == args[0]:
            value, expected = args[1], "Ok"
        else:
            expected = "Fail"
        assert response == Response(expected)
        assert specification.step(state, Invocation("Read")) == (value, Response("Ok", (value,)))
