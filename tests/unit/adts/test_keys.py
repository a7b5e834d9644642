"""Keys of any text and the names under which they are kept: pairs, one of each."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quorate.adts.keys import as_kept, as_written, by_key, key_name, name_key, prefix_name
from quorate.adts.types.catalogue import NAME_PATTERN, BadName, check_name, is_object_name

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=7)
ESCAPES = st.lists(
    st.sampled_from(["=", "=3D", "=3", "D", "=C3=A9", "=20", "=2E", "=FF", ".", "é", "a", "/"])
)
KEYS = TEXTS | ESCAPES.map("".join).filter(lambda key: 0 < len(key) <= 12)
NAMES = st.from_regex(re.compile(NAME_PATTERN), fullmatch=True) | KEYS.filter(
    lambda key: bool(re.fullmatch(NAME_PATTERN, key))
)


@given(key=KEYS)
@example(key="=3D20")
@example(key="..")
def test_a_key_has_an_allowed_name_which_stands_for_it(key: str) -> None:
    assert name_key(check_name(key_name(key))) == key


@given(name=NAMES)
@example(name="=3D41")
@example(name="=20=FF")
@example(name="=2e")
@example(name="=3D" * 66)
def test_a_name_stands_for_a_key_that_has_it(name: str) -> None:
    assert key_name(name_key(name)) == name


@given(name=NAMES)
def test_a_name_that_is_no_escape_stands_for_itself(name: str) -> None:
    key = name_key(name)
    assert key == name or re.search("=[0-9A-F]{2}", name)


@given(one=KEYS, other=KEYS)
def test_two_keys_never_share_a_name(one: str, other: str) -> None:
    assert (key_name(one) == key_name(other)) == (one == other)


@given(prefix=KEYS, rest=KEYS, others=st.lists(KEYS))
@example(prefix="=", rest="20", others=["=C3=A9", "é"])
@example(prefix="a=4", rest="1", others=["a=4", "a=3D41", "aA"])
@example(prefix=" ", rest="x", others=["=20=FF", "=20"])
def test_names_of_keys_that_begin_so_begin_with_the_prefix_name(
    prefix: str, rest: str, others: list[str]
) -> None:
    assert key_name(prefix + rest).startswith(prefix_name(prefix))
    assert key_name(prefix).startswith(prefix_name(prefix))
    keys = {prefix + rest, *others}
    found = {key_name(key): key for key in keys if key_name(key).startswith(prefix_name(prefix))}
    wanted = {key for key in keys if key.startswith(prefix)}
    assert by_key(found, prefix) == {key: key for key in wanted}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("user.42~x@y=z:1+1-_", "user.42~x@y=z:1+1-_"),
        ("a b/c", "a=20b=2Fc"),
        ("é", "=C3=A9"),
        (".hidden.one", "=2Ehidden.one"),
        ("=", "="),
        ("=20", "=3D20"),
        ("=2", "=2"),
        ("=41", "=41"),  # No key's escape: `A` is its own name.
        ("=ff", "=ff"),
        ("a b=", "a=20b="),
        ("a b=41", "a=20b=3D41"),
        ("k" * 200, "k" * 200),
        ("\N{GRINNING FACE}" * 16 + "k" * 8, "=F0=9F=98=80" * 16 + "k" * 8),
    ],
)
def test_names_can_be_read(key: str, name: str) -> None:
    assert (key_name(key), name_key(name)) == (name, key)


def test_text_is_taken_as_it_is() -> None:
    composed, decomposed = "\u00e9", unicodedata.normalize("NFD", "\u00e9")
    assert key_name(composed) != key_name(decomposed)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "the key is empty"),
        (
            "k" * 201,
            r"takes 201 of 200 characters: A-Z a-z 0-9 . _ ~ @ = : \+ - take one each, and others three",
        ),
        ("é" * 34, "takes 204 of 200 characters"),
        ("a\ud800", r" 'a\\ud800' has half a surrogate pair"),
        (3, " 3 is of type int: write it as a text"),
    ],
)
def test_what_is_no_key_is_refused_in_words(key: str, words: str) -> None:
    with pytest.raises(BadName, match=words):
        key_name(key)
    if key != "":
        with pytest.raises(BadName, match=words):
            prefix_name(key)


def test_any_prefix_is_none() -> None:
    assert prefix_name("") == ""


@given(key=KEYS)
def test_a_full_name_is_kept_by_name_and_written_by_key(key: str) -> None:
    kept = as_kept(f"dictionary/users/{key}")
    assert is_object_name(kept)
    assert as_written(kept) == f"dictionary/users/{key}"


@pytest.mark.parametrize(
    "full", ["queue/a=20b", "dictionary/users", "dictionary", "", "cart/=20/=20", "register/a"]
)
def test_other_names_stay_as_they_are(full: str) -> None:
    assert as_kept(full) == full == as_written(full)
