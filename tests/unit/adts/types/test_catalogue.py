"""The types that are known, and the names that objects may have."""

import pytest

from quorate.adts.specification import Invocation
from quorate.adts.types.catalogue import (
    SPECIFICATIONS,
    BadName,
    adt_of,
    check_name,
    is_log,
    is_object_name,
    kept_as,
    known_types,
    may_delete,
    object_name,
    read_word,
    write_word,
)


def test_types_stand_under_their_names_those_of_the_service_first() -> None:
    assert [each.name for each in known_types().values()] == list(known_types())
    assert list(known_types())[:3] == list(SPECIFICATIONS) == ["queue", "register", "dictionary"]


@pytest.mark.parametrize("adt", known_types())
def test_every_table_speaks_of_operations_that_there_are(adt: str) -> None:
    specification = known_types()[adt]
    operations = set(specification.kinds)
    assert set(specification.arguments) == operations
    classes = set(specification.depends)
    assert {name.partition("/")[0] for name in classes} == operations
    assert (
        specification.changes | set(specification.results) | set().union(*specification.depends.values())
        <= classes
    )


@pytest.mark.parametrize("adt", known_types())
def test_an_unknown_operation_is_refused_with_those_there_are(adt: str) -> None:
    specification = known_types()[adt]
    with pytest.raises(ValueError, match="has no operation 'Fly': use") as caught:
        specification.step(specification.initial(), Invocation("Fly", ("k",)))
    assert all(operation in str(caught.value) for operation in specification.kinds)


@pytest.mark.parametrize("name", ["jobs", "a" * 200, "A.b_c~d@e=f:g+h-i", "x..", "1"])
def test_allowed_names_are_allowed(name: str) -> None:
    assert check_name(name) == name
    assert is_object_name(object_name("queue", name))
    assert is_object_name(object_name("dictionary", name, name))
    assert kept_as(object_name("dictionary", name, name)) == "dictionary"


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
    "name", ["queue", "Stack/x", "queue/a/b", "dictionary/a", "dictionary/a/b/c", "register/"]
)
def test_other_shapes_name_no_object(name: str) -> None:
    assert not is_object_name(name)


def test_the_type_of_an_object_stands_in_front_of_its_name() -> None:
    assert adt_of(object_name("dictionary", "users", "ann")) == "dictionary"


@pytest.mark.parametrize(
    ("adt", "log", "deletes", "words"),
    [
        ("queue", True, False, None),
        ("register", False, False, ("Read", "Write", "Write")),
        ("dictionary", False, True, ("Get", "Put", "Delete")),
        ("cart", False, False, None),
    ],
)
def test_what_the_protocol_asks_of_a_type_is_known_of_each(
    adt: str, log: bool, deletes: bool, words: tuple[str, str, str] | None
) -> None:
    assert (is_log(adt), may_delete(adt)) == (log, deletes)
    if words is not None:
        told = read_word(adt), write_word(adt, deletes=False), write_word(adt, deletes=True)
        assert told == words
        assert set(told) <= set(SPECIFICATIONS[adt].kinds)
