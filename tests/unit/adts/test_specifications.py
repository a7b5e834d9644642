"""The serial specifications: one step each, against a plain Python object that does the same."""

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Invocation, Response
from quorate.adts.types.catalogue import BadName, check_name, is_object_name, object_name
from quorate.adts.types.dictionary import Dictionary
from quorate.adts.types.queue import Queue
from quorate.adts.types.register import Register

VALUES = st.sampled_from(["a", "b", "c"])
OLD = st.none() | VALUES


def run(specification: Any, invocations: list[Invocation]) -> tuple[Any, list[Response]]:
    state, responses = specification.initial(), []
    for invocation in invocations:
        state, response = specification.step(state, invocation)
        responses.append(response)
    return state, responses


@given(
    st.lists(st.one_of(VALUES.map(lambda x: ("Enq", x)), st.sampled_from([("Deq",), ("Peek",), ("Size",)])))
)
def test_queue_is_first_in_first_out(words: list[tuple[str, ...]]) -> None:
    plain: deque[str] = deque()
    expected = []
    for word, *args in words:
        if word == "Enq":
            plain.append(args[0])
            expected.append(Response("Ok"))
        elif word == "Size":
            expected.append(Response("Ok", (len(plain),)))
        elif not plain:
            expected.append(Response("Empty"))
        else:
            expected.append(Response("Ok", (plain.popleft() if word == "Deq" else plain[0],)))
    state, responses = run(Queue(), [Invocation(word, tuple(args)) for word, *args in words])
    assert responses == expected
    assert state == tuple(plain)


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


@pytest.mark.parametrize("name", ["jobs", "a" * 200, "A.b_c~d@e=f:g+h-i", "x..", "1"])
def test_allowed_names_are_allowed(name: str) -> None:
    assert check_name(name) == name
    assert is_object_name(object_name("queue", name))
    assert is_object_name(object_name("dictionary", name, name))


def test_a_name_that_is_no_text_is_told_so() -> None:
    with pytest.raises(BadName, match="the name 5 is of type int: write it as a text"):
        check_name(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["", "a" * 201, ".", "..", ".hidden", "a/b", "a b", "ä", "a\n", "a%2f", "a\x00"]
)
def test_a_name_is_never_a_path_nor_too_long(name: str) -> None:
    with pytest.raises(BadName, match="is not allowed: use 1 to 200"):
        check_name(name)
    assert not is_object_name(f"queue/{name}")
    assert not is_object_name(f"dictionary/users/{name}")


@pytest.mark.parametrize(
    "name", ["queue", "stack/x", "queue/a/b", "dictionary/a", "dictionary/a/b/c", "register/"]
)
def test_other_shapes_name_no_object(name: str) -> None:
    assert not is_object_name(name)
