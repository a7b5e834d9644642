"""The problem table: each row says what went wrong, what to do, and whether anything may have happened."""

import msgspec
import pytest

from quorate.api_specs.problems import KINDS, TYPE_PREFIX, Problem, as_json, parse, problem


@pytest.mark.parametrize("name", KINDS)
def test_every_problem_has_a_status_a_title_and_advice_that_are_sentences(name: str) -> None:
    kind = KINDS[name]
    assert 400 <= kind.status <= 599
    assert kind.title[0].isupper()
    assert not kind.title.endswith(".")
    assert kind.advice.endswith(".")
    assert "/" not in name


@pytest.mark.parametrize(
    "name", [name for name, kind in KINDS.items() if kind.status < 500 and kind.definite is None]
)
def test_refusals_that_leave_it_open_are_those_that_may_come_after_sending(name: str) -> None:
    assert name in ("refused", "too-old")


def test_what_may_have_happened_is_never_called_definite() -> None:
    open_ones = {name for name, kind in KINDS.items() if kind.definite is False}
    assert open_ones == {"internal", "storage-failed", "outcome-unknown"}


@pytest.mark.parametrize("name", KINDS)
def test_a_document_comes_back_from_its_body(name: str) -> None:
    document = problem(name, "about this case", definite=KINDS[name].definite or False)
    body = msgspec.json.encode(as_json(document))
    assert parse(body) == document
    assert document.name == name
    assert document.type == TYPE_PREFIX + name
    assert msgspec.json.decode(body)["status"] == KINDS[name].status


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.definite is None])
def test_where_the_table_leaves_it_open_the_caller_must_say(name: str) -> None:
    with pytest.raises(AssertionError, match="say whether this"):
        problem(name, "")
    assert problem(name, "", definite=True).definite


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}", b'{"type": 1}', b"\xff"])
def test_what_is_no_problem_document_is_none(body: bytes) -> None:
    assert parse(body) is None


def test_a_document_may_say_more_than_is_known_here() -> None:
    document = problem("not-found", "x")
    assert parse(msgspec.json.encode(as_json(document) | {"instance": "/y"})) == document
    assert isinstance(document, Problem)
