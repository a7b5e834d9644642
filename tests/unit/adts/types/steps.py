"""One step after another of a serial specification, as its tests run them."""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from quorate.adts.specification import Invocation, Response, SerialSpecification

Words = list[tuple[Any, ...]]
ITEMS = st.integers(1, 3)
OK = Response("Ok")


def responses(specification: SerialSpecification, words: Words) -> Iterator[tuple[tuple[Any, ...], Response]]:
    """Each word, and what the specification answers to it in its turn."""
    state = specification.initial()
    for word in words:
        state, response = specification.step(state, Invocation(word[0], word[1:]))
        yield word, response
