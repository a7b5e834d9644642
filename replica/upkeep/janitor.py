"""The janitor: deletes history that is due, and collects what came to nothing long ago, as deleted keys do.

Owns the rhythm, nothing else: what is due is `pruning`'s business, what may be forgotten the machine's. It must never
hold up requests, so it works in small transactions, and it outlives every failure of the store and of other replicas.
"""

import asyncio
import logging
import time
import zlib
from contextlib import suppress
from functools import partial
from typing import Final

from ...api_specs.problems import LIMITS
from ...client_sdk.protocol.core.values import YOUNG, CollectTombstone, Done, Failed, Outcome
from ...client_sdk.protocol.front_end import NOT_BEGUN
from ...client_sdk.protocol.operations.context import NO_TURN
from ...gc.pruning import AGAIN, SOON, Pruning
from ..logs.throttle import Troubles
from ..protocol.capacity import alarm, shares
from ..service.member import Member, StoreLost
from ..store.store import Store
from .background import Background, FrontEnd

ROUND_S: Final = 1.0
PAUSE_PER: Final = 2.0
"""Seconds for others per second of deleting."""
BURYING_S: Final = 2.0
"""How long a round begins to collect further ones."""
BATCH_FIRST: Final = 8
BATCH_MAX: Final = 128
"""Deletions of a batch: other work of the store waits while it looks at them."""
COLLECT_DEADLINE_S: Final = 2.0

_NOT_ASKED: Final = (NOT_BEGUN, NO_TURN)
"""How a collection ends that says nothing of other replicas."""

_log = logging.getLogger(__name__)


class Janitor(Background):
    """Works for one member until `stop`."""

    def __init__(self, member: Member, front_end: FrontEnd[CollectTombstone]) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._front_end: Final = front_end
        self._pruning: Final = Pruning(
            member.tombstones,
            lag_s=member.document.limits.payloads_s,
            window_s=member.document.memory_s,
            is_kept=member.configured.keeps_events,
        )
        self._room: Final = Troubles(_log, logging.WARNING)
        self._is_short_of_room = False
        """Whether this replica is full, or others were for what it offered."""

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._begin(self._rounds(), "quorate-janitor")

    async def _rounds(self) -> None:
        with suppress(StoreLost):
            while True:
                if not await self._outlived(self._round(), "the janitor waits", "the janitor"):
                    self._pruning.walk_again()
                await asyncio.sleep(ROUND_S)

    async def _round(self) -> bool:
        await self._try_to_write()
        await self._prune()
        await self._look_at_room()
        await self._collect_tombstone()
        return True

    async def _try_to_write(self) -> None:
        """While nothing could be written, try: else a replica whose disk has room again would wait for a client to find
        out, and none asks one that is not ready."""
        if self._member.why_not_ready():
            await self._member.run(Store.touch)

    async def _prune(self) -> None:
        """Delete what is due, in a third of the time: after many items were taken at once, others still have the store."""
        is_more = True
        while is_more:
            is_more, took_s = await self._member.run(self._pruned)
            await asyncio.sleep(PAUSE_PER * took_s if is_more else 0)
        await self._member.run(Store.give_back_space)

    def _pruned(self, store: Store) -> tuple[bool, float]:
        """Whether more is due, and the seconds that it took, without those that it waited for the store."""
        began_s = time.monotonic()
        is_more = self._pruning.round(store, self._member.now())
        return is_more, time.monotonic() - began_s

    async def _look_at_room(self) -> None:
        used, lack_room = await self._member.run(
            lambda store: (shares(store.use(), self._member.capacity), self._member.tombstones.lack_room)
        )
        self._is_short_of_room = lack_room or max(used.values()) >= 1
        if words := alarm(used):
            self._room.meet(words)
        else:
            self._room.end()

    async def _collect_tombstone(self) -> None:
        """Collect what is due, for as long as a round may take, in batches that grow while all replicas answer: as many go as
        come, and one that is silent keeps only few waiting, and once a round."""
        until_s, size = time.monotonic() + BURYING_S, BATCH_FIRST
        silent = frozenset[str]()
        while not silent and time.monotonic() < until_s:
            due, is_more = await self._member.run(partial(self._due, size))
            turn = self._until_next_turn()
            mine = [name for name in due if self._is_mine(name)]
            outcomes = await self._outcomes(mine)
            # One that has no room did answer: it holds up that object alone.
            silent = frozenset[str]().union(
                *(self._unanswered(each) for each in outcomes.values() if not _met_bound(each))
            )
            waits = dict.fromkeys(due, turn) | {name: _wait(each) for name, each in outcomes.items()}
            # Whether they were collected shows when they are looked at again.
            await self._member.run(partial(self._again, waits, outcomes, silent))
            if not is_more:
                return
            size = min(2 * size, BATCH_MAX)

    def _due(self, limit: int, store: Store) -> tuple[list[str], bool]:
        now_s = time.monotonic()
        return self._pruning.ended(store, now_s, limit), self._pruning.is_due(now_s)

    async def _outcomes(self, names: list[str]) -> dict[str, Outcome]:
        """What came of collecting these. Their messages go together."""
        collecting = (self._front_end.run(CollectTombstone(name), COLLECT_DEADLINE_S) for name in names)
        return dict(zip(names, await asyncio.gather(*collecting), strict=True))

    def _unanswered(self, outcome: Outcome) -> frozenset[str]:
        """The replicas that gave no useful answer, of those that were asked."""
        if not isinstance(outcome, Failed) or outcome in _NOT_ASKED:
            return frozenset()
        return frozenset(self._member.document.votes) - outcome.answered

    def _again(
        self, waits: dict[str, float], outcomes: dict[str, Outcome], silent: frozenset[str], store: Store
    ) -> None:
        now_s = time.monotonic()
        for name, windows in waits.items():
            self._pruning.again(store, name, now_s, windows)
        tombstones = self._member.tombstones
        asked = {name: outcome for name, outcome in outcomes.items() if outcome not in _NOT_ASKED}
        if asked:
            tombstones.asked(silent)
        for name, outcome in asked.items():
            if isinstance(outcome, Done):
                tombstones.offered(name, frozenset())
            elif _met_bound(outcome):
                tombstones.offered(name, self._unanswered(outcome))

    def _turns(self) -> float:
        """Of a window each, by the wall clock, which replicas share as far as they accept each other's timestamps."""
        return self._member.wall_us() / 1e6 / self._member.document.memory_s

    def _until_next_turn(self) -> float:
        """Windows until what others have not collected in theirs may be this one's."""
        return 1 - self._turns() % 1

    def _is_mine(self, name: str) -> bool:
        """One replica collects an object, else they would all try at the same time (highest random weight). The turn
        goes round, for it may fall to one that never got the deletion; where two think it theirs, both collect, which does no harm.

        Where replicas have no room, one collects all of them: of several that fill what room is left at the same time, each would find it at other replicas,
        and none at all of them."""
        turn, members = int(self._turns()), sorted(self._member.document.votes)
        if self._is_short_of_room:
            return members[turn % len(members)] == self._member.id
        ranked = max(members, key=lambda replica: zlib.crc32(f"{replica} {name} {turn}".encode()))
        return ranked == self._member.id


def _met_bound(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.reason in LIMITS


def _wait(outcome: Outcome) -> float:
    """Windows until the deletion is tried again."""
    return SOON if isinstance(outcome, Done) and outcome.event_class == YOUNG else AGAIN
