"""Any text as a dictionary's key: allowed, the same each time, and different for different keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.types.catalogue import check_name
from quorate.integrations.result_keys import key_name

KEYS = st.text(st.characters(exclude_categories=["Cs"])) | st.text("a=.:é/", max_size=250)


@given(key=KEYS)
def test_every_text_has_an_allowed_name(key: str) -> None:
    assert check_name(key_name(key)) == key_name(key.encode())


@given(one=KEYS, other=KEYS)
def test_different_keys_have_different_names(one: str, other: str) -> None:
    assert (key_name(one) == key_name(other)) == (one == other)


def test_names_can_be_read() -> None:
    assert key_name("r:1b4e28ba-2fa1") == "r:1b4e28ba-2fa1"
    assert key_name("my lock/é") == "my=20lock=2F=C3=A9"
    assert key_name(".hidden.one") == "=2Ehidden.one"
    assert key_name("=empty") != key_name("") == "=empty"
    assert key_name("/" * 66) == "=2F" * 66
    assert key_name("/" * 67).startswith("=sha256=")


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(UnicodeDecodeError):
        key_name(b"\xff")
