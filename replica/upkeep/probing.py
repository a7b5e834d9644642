"""The background task that notes, for reports, which replicas this one reached, and whether it voted itself.

Owns the rhythm, and what counts as reached. All replicas look at the same moments, whole steps since 1970, so that what one missed another
may have seen. What the watch heard a moment ago counts; who did not bear witness then is asked for its health.
"""

import asyncio
import logging
import time
from http import HTTPStatus
from math import floor
from typing import Final

from msgspec import Struct

from ...api_specs.messages import ProbeRow
from ...client_sdk.transport.http_answer import HttpAnswer, HttpClient
from ..logs.probe_log import ProbeLog
from ..service.member import Member
from ..store.store import StorageFailed
from .background import Background

READY_PATH: Final = "/v1/health/ready"
READY_BYTES_MAX: Final = 64 * 1024
ANSWER_S_MAX: Final = 1.0
"""An answer is waited for as long as a step, and no longer than that."""
FRESH_SHARE: Final = 0.2
"""What the watch heard so large a share of a step ago counts: with the usual step of 10 s its busy rhythm, TELL_S."""
EARLY_SHARE: Final = 0.1
STOOD_STILL_WAITS: Final = 2
"""A look that took so many times as long as its longest wait did not wait for the others alone."""

_log = logging.getLogger(__name__)


class Probes(Struct, frozen=True):
    """Where a replica notes what it sees, and every how many seconds."""

    log: ProbeLog
    every_s: float


class Probing(Background):
    """Works for one member until `stop`; `client` asks for health, and needs no token."""

    def __init__(self, member: Member, probes: Probes, client: HttpClient) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._probes: Final = probes
        self._client: Final = client
        self._wait_s: Final = min(probes.every_s, ANSWER_S_MAX)

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._begin(self._rounds(), "quorate-probing")

    async def stop(self) -> None:
        """End at once."""
        await super().stop()
        await self._client.aclose()

    async def _rounds(self) -> None:
        every_s = self._probes.every_s
        while True:
            now_s = self._member.wall_us() / 1e6
            # Who wakes a little early must not look twice at one moment.
            moment_s = (floor(now_s / every_s + EARLY_SHARE) + 1) * every_s
            await asyncio.sleep(moment_s - now_s)
            await self._outlived(
                self._round(moment_s), "samples are missing in the probe log", "the probe log"
            )

    async def _round(self, moment_s: float) -> None:
        """Note one moment, if this replica is a member: nobody asks one that is none."""
        member, began_s = self._member, time.monotonic()
        if not member.is_member:
            return
        # While it changes, quorums are those of both: it begins to be in force once that is over.
        in_force = None if member.document.former is not None else member.document
        own = ProbeRow(member.id, moment_s, 0 if member.trouble else 1, None)
        urls = {name: url for name, url in member.urls.items() if name in member.lags}
        others = await asyncio.gather(*(self._seen(*each, moment_s) for each in urls.items()))
        if time.monotonic() - began_s > STOOD_STILL_WAITS * self._wait_s:
            return  # This process stood still: that it heard nothing says nothing of the others.
        try:
            await asyncio.to_thread(self._probes.log.write, moment_s, [own, *others], in_force)
        except OSError as error:
            raise StorageFailed(f"{self._probes.log.folder}: {error.strerror or error}") from error

    async def _seen(self, name: str, url: str, moment_s: float) -> ProbeRow:
        """What is to be said of another replica."""
        peer, now_s = self._member.peers.get(name), time.monotonic()
        if peer is not None and peer.votes and now_s - peer.met_s <= FRESH_SHARE * self._probes.every_s:
            return ProbeRow(name, moment_s, 1, 2 * peer.error_us / 1e6)
        place = url.rstrip("/") + READY_PATH
        answer = await self._client.request(name, place, timeout_s=self._wait_s, bytes_max=READY_BYTES_MAX)
        if isinstance(answer, HttpAnswer) and answer.status == HTTPStatus.OK:
            return ProbeRow(name, moment_s, 1, time.monotonic() - now_s)
        return ProbeRow(name, moment_s, 0, None)
