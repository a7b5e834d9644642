"""The data types that the calculus knows beyond the service: one step each, against a plain Python object."""

import heapq
from collections import Counter as Multiset
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.specification import Event, Invocation, Response, outcomes_of
from quorate.adts.types.catalogue import known_types

Words = list[tuple[Any, ...]]
ITEMS = st.integers(1, 3)
AMOUNTS = st.integers(1, 4)
OK = Response("Ok")


def responses(adt: str, words: Words) -> Iterator[tuple[tuple[Any, ...], Response]]:
    """Each word, and what the specification answers to it in its turn."""
    specification = known_types()[adt]
    state = specification.initial()
    for word in words:
        state, response = specification.step(state, Invocation(word[0], word[1:]))
        yield word, response


@given(st.lists(st.tuples(st.just("Write"), ITEMS) | st.just(("Read",))))
def test_a_file_holds_what_was_written_last(words: Words) -> None:
    value = None
    for (word, *args), response in responses("file", words):
        value = args[0] if word == "Write" else value
        assert response == (OK if word == "Write" else Response("Ok", (value,)))


@given(st.lists(st.tuples(st.just("Add"), st.integers(-3, 3)) | st.just(("Read",))))
def test_a_counter_adds(words: Words) -> None:
    total = 0
    for (word, *args), response in responses("counter", words):
        total += sum(args)
        assert response == (OK if word == "Add" else Response("Ok", (total,)))


@given(st.lists(st.sampled_from([("Inc",), ("Dec",), ("Read",)])))
def test_a_bounded_counter_keeps_between_zero_and_its_limit(words: Words) -> None:
    taken = 0
    for (word,), response in responses("bounded-counter", words):
        command = taken + {"Inc": 1, "Dec": -1, "Read": 0}[word]
        refused = {3: "Full", -1: "Empty"}.get(command)
        taken = taken if refused else command
        assert response == Response(refused or "Ok", (taken,) if word == "Read" else ())


@given(st.lists(st.tuples(st.sampled_from(["Credit", "Debit"]), AMOUNTS) | st.just(("Balance",))))
def test_an_account_is_never_overdrawn(words: Words) -> None:
    balance = 0
    for (word, *args), response in responses("account", words):
        if word == "Credit":
            balance += args[0]
        elif word == "Debit" and args[0] <= balance:
            balance -= args[0]
        elif word == "Debit":
            assert response == Response("Overdraft")
            continue
        assert response == (Response("Ok", (balance,)) if word == "Balance" else OK)


@given(st.lists(st.tuples(st.sampled_from(["Insert", "Remove", "Member"]), ITEMS) | st.just(("Size",))))
def test_a_set_does_what_a_set_does(words: Words) -> None:
    plain: set[int] = set()
    for (word, *args), response in responses("set", words):
        match word:
            case "Insert":
                plain.add(args[0])
            case "Remove":
                plain.discard(args[0])
            case "Member":
                assert response == Response("True" if args[0] in plain else "False")
                continue
        assert response == (Response("Ok", (len(plain),)) if word == "Size" else OK)


@given(
    st.lists(
        st.tuples(st.sampled_from(["Put", "Insert", "Update"]), st.sampled_from("jk"), ITEMS)
        | st.tuples(st.sampled_from(["Delete", "Lookup"]), st.sampled_from("jk"))
        | st.just(("Size",))
    )
)
def test_a_directory_says_whether_the_key_was_there(words: Words) -> None:
    plain: dict[str, int] = {}
    for (word, *args), response in responses("directory", words):
        was_there = bool(args) and args[0] in plain
        expected = OK
        match word:
            case "Size":
                expected = Response("Ok", (len(plain),))
            case "Insert" if was_there:
                expected = Response("Present")
            case "Put" | "Insert":
                plain[args[0]] = args[1]
            case _ if not was_there:
                expected = Response("Absent")
            case "Update":
                plain[args[0]] = args[1]
            case "Delete":
                del plain[args[0]]
            case "Lookup":
                expected = Response("Ok", (plain[args[0]],))
        assert response == expected


@given(st.lists(st.tuples(st.just("Push"), ITEMS) | st.sampled_from([("Pop",), ("Top",)])))
def test_a_stack_is_last_in_first_out(words: Words) -> None:
    plain: list[int] = []
    for (word, *args), response in responses("stack", words):
        if word == "Push":
            plain.append(args[0])
            assert response == OK
        elif not plain:
            assert response == Response("Empty")
        else:
            assert response == Response("Ok", (plain.pop() if word == "Pop" else plain[-1],))


@given(st.lists(st.tuples(st.just("Enq"), ITEMS) | st.sampled_from([("Deq",), ("Peek",)])))
def test_a_priority_queue_gives_the_least(words: Words) -> None:
    plain: list[int] = []
    for (word, *args), response in responses("priority-queue", words):
        if word == "Enq":
            heapq.heappush(plain, args[0])
            assert response == OK
        elif not plain:
            assert response == Response("Empty")
        else:
            assert response == Response("Ok", (heapq.heappop(plain) if word == "Deq" else plain[0],))


@given(st.lists(st.tuples(st.just("Enq"), ITEMS) | st.just(("Deq",))), st.data())
def test_a_semiqueue_may_give_any_item_that_waits(words: Words, data: st.DataObject) -> None:
    specification = known_types()["semiqueue"]
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


@pytest.mark.parametrize("adt", known_types())
def test_an_unknown_operation_is_refused_with_those_there_are(adt: str) -> None:
    specification = known_types()[adt]
    with pytest.raises(ValueError, match="has no operation 'Fly': use") as caught:
        specification.step(specification.initial(), Invocation("Fly", ("k",)))
    assert all(operation in str(caught.value) for operation in specification.kinds)


def test_an_event_is_written_as_the_paper_writes_it() -> None:
    event = Event(Invocation("Cas", ("k", None, 1)), Response("Ok", (frozenset({("k", 1), ("j", 2)}), ())))
    assert str(event) == "[Cas(k, null, 1); Ok({(j, 2), (k, 1)}, ())]"
    assert event.event_class == "Cas/Ok"
