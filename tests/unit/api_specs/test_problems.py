"""The table of problems: each row makes a document that says what to do, and survives the wire."""

import msgspec
import pytest

from quorate.api_specs.problems import KINDS, TYPE_PREFIX, as_json, parse, problem


@pytest.mark.parametrize("name", KINDS)
def test_problem_survives_the_wire(name: str) -> None:
    document = problem(name, "a detail", definite=KINDS[name].definite is not False)
    assert parse(msgspec.json.encode(document)) == document
    assert document.name == name
    assert document.type == TYPE_PREFIX + name
    assert as_json(document)["advice"].endswith(".")
    assert 400 <= document.status <= 507


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.definite is None])
def test_problem_that_depends_must_be_told_whether_it_is_definite(name: str) -> None:
    with pytest.raises(AssertionError, match="definite"):
        problem(name, "a detail")


def test_outcome_unknown_and_failures_of_the_store_are_never_definite_by_themselves() -> None:
    assert [name for name, kind in KINDS.items() if kind.definite is False] == [
        "internal",
        "storage-failed",
        "outcome-unknown",
    ]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>", b'{"type": 1}'])
def test_other_bodies_are_no_problem_documents(body: bytes) -> None:
    assert parse(body) is None
