"""Any text as a dictionary's key: allowed, the same each time, and different for different keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.keys import key_name
from quorate.adts.types.catalogue import check_name
from quorate.integrations.result_keys import library_key

KEYS = st.text(st.characters(exclude_categories=["Cs"])) | st.text("a=.:é/", max_size=250)


@given(key=KEYS)
def test_every_text_is_a_key(key: str) -> None:
    assert library_key(key) == library_key(key.encode())
    assert check_name(key_name(library_key(key)))


@given(one=KEYS, other=KEYS)
def test_different_keys_stay_different(one: str, other: str) -> None:
    assert (library_key(one) == library_key(other)) == (one == other)


def test_keys_stay_as_they_are_where_they_can() -> None:
    assert library_key("my lock/é") == "my lock/é"
    assert library_key("/" * 66) == "/" * 66
    for named_by_digest in ("", "/" * 67, library_key(""), library_key("/" * 67)):
        assert library_key(named_by_digest).startswith("=sha256=")
        assert library_key(named_by_digest) != named_by_digest


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        library_key(b"\xff")
