"""In which configuration of its cluster a replica is: it takes messages of that one alone, and goes on to later ones only.

Owns when it goes on: durably first, and in the store's turn, so that what was handled before is in the store when the next message comes
(docs/explanation/changing-configurations.md). Must not know how later ones are found out.
"""

import asyncio
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, Protocol

from ...api_specs.cluster import ClusterDocument
from ...api_specs.configuration import check_same_cluster, in_force
from ...api_specs.messages import FOLLOWING, SPOKEN, Protocols
from ...client_sdk.protocol.core.values import Unanswered
from ..logs.audit import audit
from ..store.store import Store

NAMES_CACHED: Final = 10_000
_CHANGED: Final = Protocols(FOLLOWING, SPOKEN.newest)
"""Spoken where the configuration has changed."""


class WrongCluster(Exception):
    """The sender goes by another configuration than this replica, or by another cluster file; nothing was done."""

    def __init__(self, given: str, document: ClusterDocument) -> None:
        shown = given[:64] if given.isascii() and given.isalnum() else "of no valid form"
        super().__init__(
            f"the sender's cluster file has hash {shown}, this replica's has {document.hash}, configuration {document.number}"
        )
        self.epoch: Final = document.number


class Held(NamedTuple):
    """What a replica holds: its configuration and the hash of that, names of objects, whether there are more of these, and how many idempotency keys
    of before it came to that configuration."""

    epoch: int
    cluster: str
    objects: tuple[str, ...]
    more: bool
    keys: int


class Runner(Protocol):
    """Runs work in the store's turn: see `Member.run`."""

    async def __call__(self, work: Callable[[Store], Any]) -> Any:
        """What it returns, once all that it wrote is on disk."""


class Configured:
    """The configuration of one replica, which is in that of `document` at first."""

    def __init__(
        self,
        document: ClusterDocument,
        run: Runner,
        own: str,
        check: Callable[[ClusterDocument], None] = lambda _: None,
        mark: Callable[[], None] = lambda: None,
    ) -> None:
        """Of replica `own`. `check` raises BadCluster for a configuration that is not for this replica; `mark` is called in the store's turn where the
        store comes to hold a later configuration."""
        self.document = document
        """The cluster's, with the configuration that the replica is in."""
        self.keeps_events: Final = lru_cache(NAMES_CACHED)(
            lambda name: not self.document.rule_of(name).collect
        )
        """Whether the object keeps its events (`collect = false`)."""
        self.followers: Final[list[Callable[[ClusterDocument], None]]] = []
        """They hear on the event loop of each configuration that it goes on to."""
        self.hear_of_later: Callable[[str], None] = lambda _: None
        """Hears of other replicas that are in a later configuration."""
        self.is_unknown_met = False
        """Whether somebody goes by a configuration that this replica does not know."""
        self._heard: Final[dict[str, int]] = {}
        """Of other replicas, the configuration that each said last that it is in, where it refused a message of this one's."""
        self._strangers: Final[set[str]] = set()
        """Other replicas whose configuration is none that this one could go on to."""
        self._told = document.number
        """Which one followers heard of last."""
        self._run: Final = run
        self._own: Final = own
        self._check: Final = check
        self._mark: Final = mark
        self.turn: Final = asyncio.Lock()
        """Held while it goes on: what is on disk is ahead of this document then."""
        self._keys_before = frozenset[bytes]()
        """Of the idempotency keys that were held when it came to this configuration, those that are held still, by digest."""
        self._since_s = time.monotonic()
        """When it came there."""

    def begin(self, store: Store) -> None:
        """The store was opened. Which of its keys are of before is not noted: all are taken for those."""
        self._keep_keys(store)

    def _keep_keys(self, store: Store) -> None:
        self._keys_before, self._since_s = store.held.digests(), time.monotonic()

    def check(self, given: str) -> None:
        """Raises WrongCluster unless this is the hash of the document that the replica goes by."""
        if given != self.document.hash:
            if self.document.former is None or given != self.document.former.hash:
                self.is_unknown_met = True
            raise WrongCluster(given, self.document)

    @property
    def protocols(self) -> Protocols:
        """The versions of the protocol that the replica speaks in this configuration."""
        return _CHANGED if self.document.number else SPOKEN

    async def follow(self, told: ClusterDocument) -> None:
        """The cluster has chosen this configuration, or a later one. Where it is later than the replica's, that is in it from now on, durably.
        Raises BadCluster, and as `Member.run` does."""
        check_same_cluster(self.document, told)
        self._check(told)
        # Whoever told it may go away in the middle.
        await asyncio.shield(asyncio.ensure_future(self._follow(in_force(self.document, told))))

    async def _follow(self, later: ClusterDocument) -> None:
        async with self.turn:
            try:
                if later.number > self.document.number:
                    await self._run(partial(self._note, later))
                    await self._run(partial(self._go_on_to, later))
                    audit("configuration", epoch=later.number, hash=later.hash)
            finally:  # It may have gone on though other work of that transaction failed, or nobody waits for it any more.
                if self.document.number > self._told:
                    self._told = self.document.number
                    for hear in self.followers:
                        hear(self.document)

    def _note(self, later: ClusterDocument, store: Store) -> None:
        self._mark()
        store.follow_configuration(later)
        admitted = later.votes.keys() - self.document.votes.keys()
        if self._own in admitted:
            store.note_before(self.document)
        store.others.keep(later.votes, {name: later.stores[name] for name in admitted})

    def _go_on_to(self, later: ClusterDocument, store: Store) -> None:
        self.document = later
        self.keeps_events.cache_clear()
        self._keep_keys(store)

    def meet(self, other: str, answer: object) -> None:
        """Another replica answered, or did not: where it is in a later configuration, that is fetched and followed."""
        epoch = answer.epoch if isinstance(answer, Unanswered) else None
        if epoch is None:
            self._heard.pop(other, None)
            if not isinstance(answer, Unanswered):
                self._strangers.discard(other)
            return
        self._heard[other] = epoch
        if epoch > self.document.number:
            self.hear_of_later(other)

    def disbelieve(self, other: str) -> None:
        """What this replica is in is of another cluster, or of files that differ: it says nothing of this one's place until it answers."""
        self._strangers.add(other)

    @property
    def is_behind(self) -> bool:
        """Whether another replica said last that it is in a later configuration."""
        return any(epoch > self.document.number for epoch in self._others())

    @property
    def is_ahead(self) -> bool:
        """Whether another replica said last that it is in an earlier configuration."""
        return any(epoch < self.document.number for epoch in self._others())

    def _others(self) -> list[int]:
        return [epoch for other, epoch in self._heard.items() if other not in self._strangers]

    async def holding(self, after: str, limit: int) -> Held:
        """In which configuration it is, and what it holds, as is on disk: names of objects above `after`, in order. Raises as `Member.run` does."""
        held: Held = await self._run(lambda store: self._held(store, after, limit))
        return held

    def _held(self, store: Store, after: str, limit: int) -> Held:
        # After so long no repeat under one of them can be in time any more, however often it is tried.
        if time.monotonic() >= self._since_s + self.document.memory_s:
            self._keys_before = frozenset()
        self._keys_before = store.held.held_still(self._keys_before)
        names = store.names("", after, limit + 1)
        here = self.document
        return Held(here.number, here.hash, tuple(names[:limit]), len(names) > limit, len(self._keys_before))
