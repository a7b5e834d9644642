"""The form of tokens, and what is stored of them."""

import secrets

import pytest

from quorate.api_specs.tokens import (
    IMPLIED,
    SCOPES,
    SECRET_BYTES,
    digest_of,
    is_scope,
    is_tag,
    make_token,
    tag_of,
    token_problem,
)


def test_token_tells_its_tag_and_fits_into_a_header() -> None:
    for _ in range(200):
        token = make_token("k7f2qa", secrets.token_urlsafe(SECRET_BYTES))
        assert tag_of(token) == "k7f2qa"
        assert is_tag(tag_of(token))
        assert token_problem(token) is None
        assert len(digest_of(token.encode())) == 32


@pytest.mark.parametrize(("tag", "secret"), [("short", "x" * 43), ("k7f2qa", "x" * 42), ("K7F2QA", "x" * 43)])
def test_token_of_another_form_is_not_made(tag: str, secret: str) -> None:
    with pytest.raises(ValueError, match="made of"):
        make_token(tag, secret)


@pytest.mark.parametrize("token", ["", "hunter2", "qt_k7f2qa_" + "x" * 42, "xqt_k7f2qa_" + "x" * 43])
def test_other_tokens_have_no_tag(token: str) -> None:
    assert tag_of(token) == ""


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("", "empty"),
        ("a\r\nX-Evil: 1", "more than one line"),
        ("a\nb", "more than one line"),
        ("ümlaut", "beyond ASCII"),
        ("a b", "blanks"),
        ("a\tb", "control"),
        ("a\x7f", "control"),
        ("x" * 1001, "1000 characters"),
    ],
)
def test_what_cannot_be_sent_is_told_without_being_quoted(token: str, words: str) -> None:
    problem = token_problem(token)
    assert problem is not None
    assert words in problem
    assert not token or token not in problem


def test_scopes_imply_themselves_and_reading() -> None:
    assert SCOPES == ("read", "write", "admin", "replica")
    for scope, implied in IMPLIED.items():
        assert {scope, "read"} <= implied
        assert is_scope(scope)
    assert "write" not in IMPLIED["admin"]
    assert not {"admin"} & IMPLIED["replica"]
    assert not is_scope("root")
