"""What code of a user's own leaves behind, in words that can be sent."""

import asyncio
from collections.abc import Callable

import pytest

from quorate.adts.users_code import encodable, shown, told


class Text(str):
    """What `str` and `repr` may return."""

    __slots__ = ()

    def __len__(self) -> int:
        raise GeneratorExit

    __getitem__ = __len__  # type: ignore[assignment]


class Says:
    def __init__(self, say: Callable[[], str]) -> None:
        self._say = say

    def __repr__(self) -> str:
        return self._say()


def fail() -> str:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (lambda: "fine: é", "fine: é"),
        (lambda: "\ud800", "\\ud800"),
        (lambda: Text("own"), "own"),
        (fail, "something that cannot be shown"),
        (lambda: 1, "something that cannot be shown"),
    ],
)
def test_whatever_a_value_says_of_itself_can_be_sent(say: Callable[[], str], words: str) -> None:
    found = shown(Says(say))
    assert (found, type(found)) == (words, str)


def test_half_a_pair_is_written_out_and_a_whole_one_stays() -> None:
    assert encodable("a\ud800b \U0001f600") == "a\\ud800b \U0001f600"


def test_an_exception_is_told_with_its_class() -> None:
    assert told(ValueError("\udfff")) == "ValueError: \\udfff"
    assert told(GeneratorExit()) == "GeneratorExit"
    assert told(KeyError(Says(fail))) == "KeyError: something that cannot be shown"
