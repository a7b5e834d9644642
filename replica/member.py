"""One member of a cluster: a data folder, its committer, and the machine that answers batches from it.

Owns the way of a batch from checked requests to a durable reply, and what health means. Must not know HTTP.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Final, NamedTuple, TypeVar

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import Announcement, BatchReply, Reply, Request, Scan, Testimony
from quorate.replica.committer import Committer
from quorate.replica.identity import Folder
from quorate.replica.machine import Bounds, handle
from quorate.replica.store import StorageFailed, Store
from quorate.replica.tombstones import Tombstones, Waiting
from quorate.replica.witness import contradiction, seen
from quorate.timestamps.timestamp import ZERO, Timestamp

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
NAMES_CACHED: Final = 10_000


class StoreLost(Exception):
    """The replica has voted before from a store that it no longer has; it must not vote."""


class Starting(Exception):
    """The replica has not yet asked the others whether its store is the newest that they saw; nothing was done."""


class Vitals(NamedTuple):
    """What the store says of itself."""

    objects: int
    clock: Timestamp
    file_bytes: dict[str, int]
    tombstones: Waiting


class Member:
    """Answers for one replica. `wall_us` reads the physical clock, in microseconds since 1970; `endpoints` maps ids of
    other replicas to URLs that override the document's."""

    def __init__(
        self,
        document: ClusterDocument,
        replica_id: str,
        folder: Folder,
        *,
        wall_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        self.document: Final = document
        self.id: Final = replica_id
        self.urls: Final = document.urls | dict(endpoints or {})
        """Where it finds each replica."""
        self.folder: Final = folder
        self.wall_us: Final = wall_us
        self.tombstones: Final = Tombstones()
        self._bounds: Final = Bounds.of(document)
        self._keeps_events: Final = lru_cache(NAMES_CACHED)(lambda name: not document.rule_of(name).collect)
        self.lost: str | None = folder.lost
        """Why this replica must not vote; None when nothing speaks against it."""
        self.is_vouched_for = len(document.replicas) == 1
        """Whether the other replicas, if any, were asked about its store; before, it does not vote."""
        self._committer: Committer | None = None
        self.began = ZERO
        """Where the clock of the store stood when it was opened, before this process wrote to it."""
        if folder.database is not None:
            store = Store(folder.database)
            self.began = store.clock
            self._committer = Committer(store)
            self._committer.start()

    async def answer(self, requests: Sequence[Request]) -> BatchReply:
        """The reply to checked requests, once all it promises is on disk.

        Raises StoreLost, Starting, Overloaded (nothing was done) or StorageFailed (not known).
        """
        if not self.is_vouched_for and self.lost is None:
            raise Starting("the replica asks the others how far they saw its store; it votes in a moment")
        return await self.run(lambda store: self._handle(store, requests), weight=len(requests))

    async def run(self, work: Callable[[Store], _Result], weight: int = 1) -> _Result:
        """What `work` returns, in a transaction on the store. Raises as `answer` does."""
        if self._committer is None or self.lost is not None:
            raise StoreLost(self.lost)
        return await self._committer.submit(work, weight)

    def _handle(self, store: Store, requests: Sequence[Request]) -> BatchReply:
        replies: list[Reply] = []
        now_us = self.wall_us()
        for request in requests:
            keeps = not isinstance(request, Scan) and self._keeps_events(request.object)
            reply, effects = handle(request, store, now_us, self._bounds, keeps)
            if effects:
                store.apply(effects)
            replies.append(reply)
        incarnation = self.folder.incarnation
        return BatchReply(self.id, incarnation, store.clock, self.wall_us(), tuple(replies), self.began)

    async def testify(self, announcement: Announcement) -> Testimony:
        """What was known of the sender's store; from now on, what it says as well, unless it cannot be written. A replica
        that does not vote may still testify, if it has a store at all. Raises as `run` does."""
        if self._committer is None:
            raise StoreLost(self.lost)

        def work(store: Store, *, notes: bool) -> Testimony:
            known = store.witness(announcement.replica)
            now = seen(known, announcement)
            if notes and now != known:
                store.put_witness(announcement.replica, now)
            return Testimony(
                "" if known is None else known.store, ZERO if known is None else known.clock, notes
            )

        try:
            return await self._committer.submit(partial(work, notes=True))
        except StorageFailed:  # Its disk is full, say: what it knows, it can still tell.
            return await self._committer.submit(partial(work, notes=False))

    async def announcement(self, *, is_first: bool = False) -> Announcement:
        """How far this replica's store has come, as is on disk; `is_first`: how far it had come when it was opened."""
        clock = await self.run(lambda store: self.began if is_first else store.clock)
        store = self.folder.identity.store
        is_named = any(each.id == self.id and each.store for each in self.document.replicas)
        return Announcement(self.document.hash, self.id, store, clock, is_named)

    def hear(self, witness: str, told: Announcement, testimony: Testimony) -> None:
        """Take what replica `witness` answered to `told`: this one stops voting when it contradicts its store."""
        if (sentence := contradiction(told, witness, testimony)) is not None:
            self.lost = sentence
            _log.error("%s", sentence)

    async def vitals(self) -> Vitals | None:
        """Figures of the store; None without one."""
        if self._committer is None:
            return None
        return await self.run(
            lambda store: Vitals(store.count(), store.clock, store.sizes(), self.tombstones.waiting())
        )

    def why_not_ready(self) -> list[str]:
        """The reasons why this replica cannot vote now; empty when it can."""
        asking = (
            None if self.is_vouched_for else "it still asks the other replicas how far they saw its store"
        )
        reasons = [self.lost or asking, None if self._committer is None else self._committer.problem]
        return [reason for reason in reasons if reason is not None]

    def close(self) -> None:
        """Answer what waits, close the store and unlock the folder. Blocks."""
        if self._committer is not None:
            self._committer.stop()
        self.folder.close()
