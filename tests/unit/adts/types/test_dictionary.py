"""A dictionary, against one of Python."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Invocation, Response
from quorate.adts.types.dictionary import Dictionary

VALUES = st.sampled_from(["a", "b", "c"])
OLD = st.none() | VALUES
CELL = st.one_of(
    st.tuples(st.just("Cas"), OLD, OLD),
    st.tuples(st.sampled_from(["Put", "PutIfAbsent"]), VALUES),
    st.just(("Get",)),
    st.just(("Delete",)),
)


@given(st.lists(st.tuples(st.sampled_from(["j", "k"]), CELL)))
def test_dictionary_does_what_a_dict_does(words: list[tuple[str, tuple[Any, ...]]]) -> None:
    plain: dict[str, Any] = {}
    specification, state = Dictionary(), Dictionary().initial()
    for key, (word, *args) in words:
        before = plain.get(key)
        expected = Response("Ok")
        match word, args:
            case "Get", []:
                expected = Response("Ok", (before,))
            case "Put", [value]:
                plain[key] = value
            case "Delete", []:
                plain.pop(key, None)
            case "PutIfAbsent", [value]:
                expected = Response("Ok" if before is None else "Present")
                plain.setdefault(key, value)
            case "Cas", [old, new]:
                expected = Response("Ok" if before == old else "Fail")
                plain |= {key: new} if before == old else {}
        plain = {name: value for name, value in plain.items() if value is not None}
        state, response = specification.step(state, Invocation(word, (key, *args)))
        assert response == expected
        assert dict(state) == plain
    assert specification.step(state, Invocation("Items"))[1] == Response("Ok", (frozenset(plain.items()),))
    assert specification.step(state, Invocation("Size"))[1] == Response("Ok", (len(plain),))
