"""The background task that finishes decisions whose clients vanished before they told that they are made.

Owns the rhythm. Which decisions those are is `undecided`'s business, how one is finished the machine's (`ReadRepair`). It must never hold up
requests: a few at a time, each with a deadline.
"""

import asyncio
import logging
import time
from contextlib import suppress
from typing import Final

from ...client_sdk.protocol.core.values import ReadRepair
from ..protocol.undecided import Undecided, quorums_of
from ..service.member import Member, StoreLost
from .background import Background, FrontEnd

ROUND_S: Final = 1.0
ROUND_MAX: Final = 64
"""Decisions finished in a round."""
DEADLINE_S: Final = 2.0

_log = logging.getLogger(__name__)


class Repairing(Background):
    """Works for one member until `stop`."""

    def __init__(self, member: Member, front_end: FrontEnd[ReadRepair]) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._front_end: Final = front_end
        self._undecided: Final = Undecided(lambda name: quorums_of(member.document, name))

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._begin(self._rounds(), "quorate-read-repair")

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
