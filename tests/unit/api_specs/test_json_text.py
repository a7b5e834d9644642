"""What JSON text means, and what is refused: a member that is given twice is found wherever it stands."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api_specs.json_text import BadJson, read_json

WORDS = st.text(alphabet='a:"\\{},é\n', max_size=4)
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_what_gives_each_member_once_is_read_as_it_is(value: Any, indent: int | None, is_ascii: bool) -> None:
    assert read_json(json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()) == value


@given(st.dictionaries(WORDS, VALUES, min_size=1, max_size=3), st.lists(VALUES, max_size=2), st.data())
def test_a_member_that_is_given_twice_is_refused(outer: dict[str, Any], beside: list[Any], data: Any) -> None:
    """Also where the values differ, deep within others, and beside strings with colons."""
    name = data.draw(st.sampled_from(sorted(outer)))
    doubled = json.dumps(outer)[:-1] + f", {json.dumps(name)}: 0}}"
    body = f"[{', '.join([*map(json.dumps, beside), doubled])}]"
    with pytest.raises(BadJson, match="gives a member of an object more than once"):
        read_json(body.encode())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "not JSON"),
        (b'{"item": x}', r"not JSON: invalid character \(byte 9\)"),
        (b"NaN", "not JSON"),
        (b"1e999", "not JSON"),
        (b'"\\ud800"', "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8"),
        ("1".encode("utf-16"), "not JSON"),
        (b"\xef\xbb\xbf1", "byte order mark"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_in_words(body: bytes, words: str) -> None:
    with pytest.raises(BadJson, match=words):
        read_json(body)
