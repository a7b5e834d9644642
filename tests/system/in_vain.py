"""How operations end that cannot succeed, within a short deadline.

A busy machine may hold one up for longer than that lasts: then nothing was sent, or no answer heard. So each is tried until it tells
what it must; the tries before may have an unknown outcome, and each stores a value of its own.
"""

import re
import time
from collections.abc import Awaitable, Callable

import pytest

from quorate.client_sdk import QuorateError
from tests.system.harness import WAIT_S


class _Expected:
    """The end that is waited for: one of these errors, with these words."""

    def __init__(self, kinds: tuple[type[QuorateError], ...], words: str) -> None:
        self._kinds = kinds
        self._words = words
        self._late_s = time.monotonic() + WAIT_S

    def is_it(self, error: QuorateError) -> bool:
        """AssertionError where no other try is left."""
        if isinstance(error, self._kinds) and re.search(self._words, str(error)):
            return True
        assert time.monotonic() < self._late_s, repr(error)
        return False


def failure_of(call: Callable[[], object], *kinds: type[QuorateError], words: str = "") -> QuorateError:
    """How the call ends."""
    expected = _Expected(kinds, words)
    while True:
        with pytest.raises(QuorateError) as caught:
            call()
        if expected.is_it(caught.value):
            return caught.value


async def failure_in(
    call: Callable[[], Awaitable[object]], *kinds: type[QuorateError], words: str = ""
) -> QuorateError:
    """The same of an awaitable."""
    expected = _Expected(kinds, words)
    while True:
        with pytest.raises(QuorateError) as caught:
            await call()
        if expected.is_it(caught.value):
            return caught.value
