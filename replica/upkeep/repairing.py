"""The background tasks that finish what vanished clients left: decisions of which nobody told that they are made, and entries that nobody marked complete.

Owns the rhythm. Which decisions those are is `undecided`'s business, which entries is `catch_up`'s; how both are finished is the machine's (`ReadRepair`). They must
never hold up requests, nor each other: a few at a time, each with a deadline.
"""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from ...adts.log import Entry
from ...client_sdk.protocol.core.values import Failed, ReadRepair
from ..protocol.undecided import SameQuorums, Undecided, quorums_of
from ..service.member import Member, StoreLost
from .background import Background, FrontEnd

ROUND_S: Final = 1.0
ROUND_MAX: Final = 64
"""Decisions finished in a round."""
DEADLINE_S: Final = 2.0
LEFT_MAX: Final = 256
"""Objects with entries that were left which wait for their turn. Further ones are found again."""
LEFT_AT_ONCE: Final = 16
REST: Final = 3
"""After so many, so many times as long as they took, but no longer than a round: a quarter of the time is spent on it."""

_log = logging.getLogger(__name__)


class Repairing(Background):
    """Works for one member until `stop`."""

    def __init__(self, member: Member, front_end: FrontEnd[ReadRepair]) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._front_end: Final = front_end
        self._undecided: Final = Undecided(lambda name: quorums_of(member.document, name))
        self._left: Final[dict[str, Sequence[Entry]]] = {}
        self._is_any_left: Final = asyncio.Event()

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._begin(self._rounds(), "quorate-read-repair")
        self._begin(self._rounds_of_left(), "quorate-read-repair-of-entries")

    @property
    def has_room(self) -> bool:
        """Whether it may be told of entries that were left."""
        return len(self._left) < LEFT_MAX

    def take_up(self, left: Mapping[str, Sequence[Entry]]) -> None:
        """Find out whether these entries of some objects are complete, when their turn comes. Where too few replicas answer for that, they are forgotten."""
        self._left.update(left)
        if left:
            self._is_any_left.set()

    async def _rounds(self) -> None:
        with suppress(StoreLost):
            while True:
                await self._outlived(self._round(), "read repair waits", "read repair")
                await asyncio.sleep(ROUND_S)

    async def _round(self) -> None:
        if self._member.why_not_ready():
            return
        due = await self._member.run(lambda store: self._undecided.due(store, time.monotonic(), ROUND_MAX))
        await asyncio.gather(*(self._front_end.run(ReadRepair(name), DEADLINE_S) for name in due))

    async def _rounds_of_left(self) -> None:
        with suppress(StoreLost):
            while await self._is_any_left.wait():
                began_s = time.monotonic()
                await self._outlived(self._round_of_left(), "read repair waits", "read repair of entries")
                await asyncio.sleep(min((time.monotonic() - began_s) * REST, ROUND_S))

    async def _round_of_left(self) -> None:
        some = [ReadRepair(name, tuple(self._left.pop(name))) for name in list(self._left)[:LEFT_AT_ONCE]]
        if not self._left:
            self._is_any_left.clear()
        if self._member.why_not_ready():
            return
        outcomes = await asyncio.gather(*(self._front_end.run(each, DEADLINE_S) for each in some))
        unavailable = {
            self._quorums(repair.object)
            for repair, outcome in zip(some, outcomes, strict=True)
            if isinstance(outcome, Failed) and outcome.reason == "unavailable"
        }
        for name in [each for each in self._left if self._quorums(each) in unavailable]:
            del self._left[name]

    def _quorums(self, name: str) -> SameQuorums:
        return quorums_of(self._member.document, name)
