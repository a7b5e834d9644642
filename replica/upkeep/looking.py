"""The background task that finds out which configuration the cluster has chosen, when somebody goes by one that this replica does not know.

Whoever chose it may have ended before he told anybody, or only one replica that has ended since: front ends that go by it would find no quorum. So it is
read where it was chosen, in the cluster's own register. Owns the rhythm.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

import msgspec

from ...adts.types.catalogue import CONFIGURATION
from ...api_specs.cluster import from_json
from ...client_sdk.protocol.core.values import Done, Read
from ..service.member import Member, StoreLost
from .background import Background, FrontEnd

ROUND_S: Final = 1.0
REST_S: Final = 10.0
"""After a look: callers with an old cluster file, or with another cluster's, cost no more than that."""
DEADLINE_S: Final = 2.0

_log = logging.getLogger(__name__)


class Looking(Background):
    """Works for one member until `stop`."""

    def __init__(self, member: Member, front_end: FrontEnd[Read]) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._front_end: Final = front_end

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._begin(self._rounds(), "quorate-looking")

    async def _rounds(self) -> None:
        with suppress(StoreLost):
            while True:
                await asyncio.sleep(ROUND_S)
                configured = self._member.configured
                if configured.is_unknown_met and not self._member.why_not_ready():
                    await self._outlived(self._look(), "a look at the configuration waits", "that look")
                    configured.is_unknown_met = False
                    await asyncio.sleep(REST_S)

    async def _look(self) -> None:
        outcome = await self._front_end.run(Read(CONFIGURATION), DEADLINE_S)
        if isinstance(outcome, Done) and outcome.result is not None:
            await self._member.configured.follow(from_json(msgspec.json.decode(outcome.result)))
