"""What JSON text means, and what is refused: a member that is given twice is found wherever it stands."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api_specs.json_text import BadJson, TooManyParts, has_few_parts, read_json
from quorate.api_specs.limits import BODY_VALUES_MAX, DEFAULTS

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
        (b'"\\ud800"', "not JSON: it is cut off, or a text in it ends with half of a surrogate pair"),
        (b'{"a": "\xff"}', "not UTF-8"),
        ("1".encode("utf-16"), "not JSON"),
        (b"\xef\xbb\xbf1", "byte order mark"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_in_words(body: bytes, words: str) -> None:
    with pytest.raises(BadJson, match=words):
        read_json(body)


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        (b"[1,2,3]", 3),
        (b"[[],[],[]]", 6),
        (b'{"a":{},"b":[]}', 10),
        (b'["a, b: [c] {d}","\\",[","]', 3),
        (b'["' + b"\\\\" * 9 + b'",[]]', 3),
        (b'"' + b",:[{" * 99 + b'"', 0),
    ],
)
def test_what_has_too_many_parts_is_not_parsed(body: bytes, parts: int) -> None:
    assert has_few_parts(body, parts)
    assert not has_few_parts(body, parts - 1)
    with pytest.raises(TooManyParts, match="has more than 2 values and names of members"):
        read_json(b"[[],[],[", 2)


@given(VALUES)
def test_text_of_many_strings_has_as_many_parts(value: Any) -> None:
    text = json.dumps(value).encode()
    signs = json.dumps(_without_strings(value)).encode()
    parts = sum(signs.count(each) for each in (b",", b"[", b"{")) + 3 * signs.count(b":")
    assert has_few_parts(text, parts)
    assert parts == 0 or not has_few_parts(text, parts - 1)


@pytest.mark.parametrize("smallest", [b"1,", b"[],", b'{"":' * 60 + b"1" + b"}" * 60 + b",", b'{"":1},'])
def test_no_value_has_too_many_parts(smallest: bytes) -> None:
    """However it is made up of what is shortest."""
    value = b"[" + smallest * ((DEFAULTS.value_bytes_max - 3) // len(smallest)) + b"1]"
    assert has_few_parts(value, BODY_VALUES_MAX)


def _without_strings(value: Any) -> Any:
    match value:
        case str():
            return ""
        case list():
            return [_without_strings(each) for each in value]
        case dict():
            return {str(place): _without_strings(each) for place, each in enumerate(value.values())}
    return value
