"""Goes on to a later configuration of the cluster, as soon as a replica is met that is in one.

Owns when it is fetched: from one replica at a time, and not at once again where that came to nothing. Must not know what is done with it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final

from ...api_specs.cluster import ClusterDocument
from ..errors import BadCluster
from ..protocol.core.values import Unanswered

FETCH_S: Final = 2.0
ASK_S: Final = 0.5
"""Where no replica answers, nothing is sent under any configuration anyway."""
SOON_S: Final = 0.05
"""After one that brought a configuration: what was sent before is refused still."""
PAUSE_S: Final = 0.5
"""After a fetch that came to nothing."""

_log = logging.getLogger(__name__)

Fetch = Callable[[str, float], Awaitable[ClusterDocument | Unanswered]]
"""The configuration that a replica is in, told within so many seconds. Raises BadCluster."""


class NotNow(Exception):
    """The configuration cannot be gone on to just now; the sentence says why."""


class Following:
    """Follows the configurations of the cluster `name`: fetches them with `fetch`, and hands them to `follow`, which raises BadCluster for one that
    is none of this cluster's; of who told that, `disbelieve` hears. Lives on one event loop."""

    def __init__(
        self,
        name: str,
        fetch: Fetch,
        follow: Callable[[ClusterDocument], Awaitable[None] | None],
        disbelieve: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._name: Final = name
        self._fetch: Final = fetch
        self._follow: Final = follow
        self._disbelieve: Final = disbelieve
        self._heard: Final[dict[str, None]] = {}
        """Replicas in a later configuration that were not asked yet, first the one that was heard of first."""
        self._fetching: asyncio.Task[None] | None = None

    def hear(self, replica: str) -> None:
        """This replica is in a later configuration."""
        self._heard[replica] = None
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.get_running_loop().create_task(self._go_on())

    async def ask(self, replicas: Collection[str]) -> None:
        """Learn which configuration is in force, before anything is sent, from the first of these replicas that answers. An operation that has sent something
        under one that was followed by two others may have to be decided."""
        asked = [asyncio.ensure_future(self._fetch(replica, ASK_S)) for replica in replicas]
        try:
            for answered in asyncio.as_completed(asked):
                with suppress(BadCluster):
                    told = await answered
                    if isinstance(told, ClusterDocument) and told.name == self._name:
                        await self._followed(told)
                        return
        finally:
            for each in asked:
                each.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    async def aclose(self) -> None:
        """Fetch nothing any more."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.gather(self._fetching, return_exceptions=True)

    async def _followed(self, document: ClusterDocument) -> None:
        if (following := self._follow(document)) is not None:
            await following

    async def _go_on(self) -> None:
        """Ask one after another, until one has brought something."""
        while self._heard:
            replica = next(iter(self._heard))
            del self._heard[replica]
            if (why := await self._brought(replica)) is None:
                await asyncio.sleep(SOON_S)
                self._heard.clear()
                return
            _log.warning("%s is in a later configuration, which cannot be gone on to: %s", replica, why)
            await asyncio.sleep(PAUSE_S)

    async def _brought(self, replica: str) -> str | None:
        """None where its configuration was followed, else why not. Who cannot tell it is asked again; who tells one of another cluster is not believed."""
        try:
            told = await self._fetch(replica, FETCH_S)
        except BadCluster as error:
            return str(error)
        except Exception:  # noqa: BLE001 - any mistake of ours: the next answer of that replica brings us here again
            _log.exception("a later configuration could not be fetched")
            return "an error of our own"
        if isinstance(told, Unanswered):
            return told.detail
        try:
            if told.name != self._name:
                raise BadCluster(f"it is of cluster {told.name!r}")
            await self._followed(told)
        except BadCluster as error:
            self._disbelieve(replica)
            return str(error)
        except NotNow as error:
            return str(error)
        except Exception:  # noqa: BLE001 - as above
            _log.exception("a later configuration could not be followed")
            return "an error of our own"
        return None
