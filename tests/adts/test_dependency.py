"""The declared dependency tables against a search over all short histories.

p depends on q when inserting q can make p illegal: h1·h2·p and h1·q·h2 are legal, h1·q·h2·p is not (DESIGN section 8).
The search is meant to be slow and obvious: it knows nothing but `step`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any

import pytest

from quorate.adts.catalogue import SPECIFICATIONS
from quorate.adts.specification import EventClass, Invocation, Response, Specification, operation_of

INVOCATIONS = {
    "queue": [
        Invocation("Enq", ("a",)),
        Invocation("Enq", ("b",)),
        *map(Invocation, ("Deq", "Peek", "Size")),
    ],
    "register": [
        Invocation("Read"),
        *(Invocation("Write", (new,)) for new in ("a", "b")),
        *(Invocation("Cas", pair) for pair in product((None, "a", "b"), repeat=2)),
    ],
    "dictionary": [
        *map(Invocation, ("Items", "Size")),
        Invocation("Get", ("k",)),
        Invocation("Delete", ("k",)),
        *(Invocation(word, ("k", new)) for word in ("Put", "PutIfAbsent") for new in ("a", "b")),
        *(Invocation("Cas", ("k", *pair)) for pair in product((None, "a", "b"), repeat=2)),
    ],
}
LENGTH_MAX = {"queue": 3, "register": 2, "dictionary": 2}
"""Of h1 and h2 together."""


def event_class(invocation: Invocation, response: Response) -> EventClass:
    return f"{invocation.operation}/{response.term}"


def run(specification: Specification, history: Sequence[Invocation]) -> tuple[Any, list[Response]]:
    """The state after the history, and what a serial object answered."""
    state, responses = specification.initial(), []
    for invocation in history:
        state, response = specification.step(state, invocation)
        responses.append(response)
    return state, responses


def histories(adt: str) -> Iterator[tuple[list[Invocation], list[Invocation]]]:
    """All (h1, h2) of bounded length."""
    for length in range(LENGTH_MAX[adt] + 1):
        for history in product(INVOCATIONS[adt], repeat=length):
            for cut in range(length + 1):
                yield list(history[:cut]), list(history[cut:])


@cache
def found_dependencies(adt: str) -> frozenset[tuple[EventClass, EventClass]]:
    """All (class of p, class of q) of which the search finds an instance."""
    specification = SPECIFICATIONS[adt]
    found = set()
    for (h1, h2), q in product(histories(adt), INVOCATIONS[adt]):
        state, responses = run(specification, [*h1, *h2])
        state_inserted, responses_inserted = run(specification, [*h1, q, *h2])
        response_q = responses_inserted.pop(len(h1))
        if responses_inserted != responses:
            continue  # h1·q·h2 is not legal with the events that h1·h2 consists of.
        for p in INVOCATIONS[adt]:
            response = specification.step(state, p)[1]
            if specification.step(state_inserted, p)[1] != response:
                found.add((event_class(p, response), event_class(q, response_q)))
    return frozenset(found)


def declared_dependencies(adt: str) -> set[tuple[EventClass, EventClass]]:
    return {(p, q) for p, all_q in SPECIFICATIONS[adt].depends.items() for q in all_q}


@pytest.mark.parametrize("adt", SPECIFICATIONS)
def test_every_dependency_that_exists_is_declared(adt: str) -> None:
    assert found_dependencies(adt) <= declared_dependencies(adt)


@pytest.mark.parametrize("adt", SPECIFICATIONS)
def test_nothing_is_declared_that_does_not_exist(adt: str) -> None:
    assert declared_dependencies(adt) <= found_dependencies(adt)


@pytest.mark.parametrize("adt", SPECIFICATIONS)
def test_the_classes_and_the_changes_are_those_that_occur(adt: str) -> None:
    specification = SPECIFICATIONS[adt]
    classes, changes = set(), set()
    for length in range(LENGTH_MAX[adt] + 1):
        for history in product(INVOCATIONS[adt], repeat=length):
            state = specification.initial()
            for invocation in history:
                before = state
                state, response = specification.step(state, invocation)
                classes.add(event_class(invocation, response))
                if state != before:
                    changes.add(event_class(invocation, response))
    assert classes == set(specification.depends)
    assert changes == specification.changes
    assert {operation_of(name) for name in classes} == set(specification.kinds)


@pytest.mark.parametrize("adt", SPECIFICATIONS)
def test_kinds_follow_from_the_tables(adt: str) -> None:
    """Blind: depends on nothing. Observe: changes nothing. Decide: both depends and changes."""
    specification = SPECIFICATIONS[adt]
    for operation, kind in specification.kinds.items():
        outcomes = [name for name in specification.depends if operation_of(name) == operation]
        depends = any(specification.depends[name] for name in outcomes)
        changes = any(name in specification.changes for name in outcomes)
        assert (depends, changes) == {
            "blind": (False, True),
            "observe": (True, False),
            "decide": (True, True),
        }[kind.value]
