"""One step after another of a serial specification, as its tests run them."""

from collections import Counter as Multiset
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from quorate.adts.specification import Invocation, Response, SerialSpecification, outcomes_of
from quorate.adts.types.semiqueue import Semiqueue

Words = list[tuple[Any, ...]]
ITEMS = st.integers(1, 3)
OK = Response("Ok")


def responses(specification: SerialSpecification, words: Words) -> Iterator[tuple[tuple[Any, ...], Response]]:
    """Each word, and what the specification answers to it in its turn."""
    state = specification.initial()
    for word in words:
        state, response = specification.step(state, Invocation(word[0], word[1:]))
        yield word, response


def hold_against_a_multiset(
    specification: Semiqueue, words: Words, data: st.DataObject, *, may_miss: bool
) -> None:
    """A queue without order gives any item that waits, and Empty where none does, or (`may_miss`) at any time."""
    state: Any = specification.initial()
    plain: Multiset[int] = Multiset()
    for word, *args in words:
        invocation = Invocation(word, tuple(args))
        possible = list(outcomes_of(specification, state, invocation))
        assert specification.step(state, invocation) in possible
        assert len(possible) == len(set(possible))
        if word == "Deq":
            expected = {Response("Ok", (item,)) for item in plain.elements()}
            if may_miss or not expected:
                expected.add(Response("Empty"))
            assert {response for _, response in possible} == expected
        state, response = data.draw(st.sampled_from(possible))
        plain.update(args)
        plain.subtract(response.results)
        assert Multiset(state) == +plain
