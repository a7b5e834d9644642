"""Calls: what a caller asked an object, when, and what came back. Pure values."""

from typing import Final, NamedTuple

from ..specification import Event, Invocation, Response

NEVER: Final = 1 << 62
"""The moment at which a call returned whose outcome nobody learned."""


class Call(NamedTuple):
    """One call.

    It took effect once between `invoked` and `returned`, two moments on one clock, and was answered with one of `answers`
    (several where the history does not tell them apart). One that returned `NEVER`, without answers, has an unknown outcome:
    it took effect once after `invoked`, or not at all.
    """

    process: str
    object: str
    invocation: Invocation
    invoked: float
    returned: float = NEVER
    answers: tuple[Response, ...] = ()
    is_weak: bool = False
    """Whether it was answered as eventual consistency allows: no order need explain it."""

    @property
    def is_known(self) -> bool:
        """Whether it returned."""
        return self.returned < NEVER

    def until(self, moment: float) -> "Call":
        """What was known of it at a moment after it was invoked."""
        return self if self.returned <= moment else self._replace(returned=NEVER, answers=())

    def __str__(self) -> str:
        text = str(Event(self.invocation, self.answers[0] if self.answers else Response("?")))
        asked, _, got = text[1:-1].partition("; ")
        return f"{asked} → {got.removesuffix('()')}"
