"""The background task that gets from the other replicas what this one missed.

Owns the rhythm: when it asks, how much at a time, how long it rests in between. What may be installed is the business of
`catch_up`. One task for each other replica, so that one that is down holds up no other; it outlives every failure.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from ...adts.log import Entry
from ...api_specs.messages import Batch, Changed, Collect, Collected, Reply, Request
from ...api_specs.values import text_bytes
from ...client_sdk.protocol.core.values import Unanswered
from ...client_sdk.transport.ports import Transport
from ...timestamps.clock import Now
from ..protocol import catch_up
from ..protocol.catch_up import Lack, Progress, install, resumed
from ..service.member import Lag, Member, StoreLost
from ..store.store import Store
from .background import Background, Silent

PASS_S: Final = 1.0
"""Between two passes; also how old a change is before it is looked at: younger ones are still on their way to all."""
ANSWER_S: Final = 5.0
PAGE: Final = 1000
"""Changes looked at in one question."""
FETCHED_MAX: Final = 16
"""Objects asked for in one message, but no further one once there are"""
ENTRIES_MAX: Final = 100
"""so many entries, which is also the most of one object: what answers has callers wait for no longer. Where an answer comes too late, half as much is asked
for."""
REST_BUSY: Final = 50
"""While callers are served and nothing is missing, a look that took a while rests so many times as long: two per cent."""
REST_BEHIND: Final = 3
"""After each message by which something is fetched, so many times as long as that took, but no longer than a pass: a quarter of the time is spent on it."""

_log = logging.getLogger(__name__)


class TakesUp(Protocol):
    """Who finds out whether entries are complete that nobody marks so any more."""

    @property
    def has_room(self) -> bool:
        """Whether it may be told of some."""

    def take_up(self, left: Mapping[str, Sequence[Entry]]) -> None:
        """Do so beside, for these of some objects."""


class CatchingUp(Background):
    """Works for one member until `stop`, or until it must not vote; `others` is the way to the other replicas. `repairing` hears of what nobody marks
    complete."""

    def __init__(self, member: Member, others: Transport, repairing: TakesUp) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._others: Final = others
        self._repairing: Final = repairing
        self._progress: Final[dict[str, tuple[str, Progress]]] = {}
        """By other replica: the store that was looked at, and how far;"""
        self._kept: Final[dict[str, tuple[str, int] | None]] = {}
        """and what the store keeps of it."""

        self._epochs: Final[dict[str, int]] = {}
        """By other replica: in which configuration the pass under way was begun."""
        self._at_once: Final[dict[str, int]] = {}
        """By other replica: how many entries are asked for in one message, about."""
        self._followed: Final = set[str]()
        """The other replicas that are followed."""

    def start(self) -> None:
        """Begin, on the running event loop; with members that come later, when they come."""
        self._follow_all()
        self._member.configured.followers.append(lambda _: self._follow_all())

    def _follow_all(self) -> None:
        for name in self._member.lags.keys() - self._followed:
            self._followed.add(name)
            self._begin(self._follow(name), f"quorate-catch-up-{name}")

    async def stop(self) -> None:
        """End at once; what is missing stays missing until the next start."""
        await super().stop()
        await self._others.aclose()

    async def _follow(self, other: str) -> None:
        with suppress(StoreLost):
            while other in self._member.lags:
                with suppress(Silent):  # The watch says who is down.
                    await self._outlived(self._round(other), "catching up waits", f"catching up with {other}")
                await asyncio.sleep(PASS_S)

    async def _round(self, other: str) -> None:
        if not self._member.why_not_ready():
            await self._pass(other)

    async def _pass(self, other: str) -> None:
        """Look at all changes of the other replica up to those that were the latest a pass ago."""
        self._epochs[other] = self._member.document.number
        await self._member.run(lambda store: self._resume(store, other), is_quick=True)
        self._progress[other][1].begin()
        while True:
            began_s, before = time.monotonic(), self._busyness()
            asked = self._progress[other][1].request(PAGE)
            (told,) = await self._ask(other, (asked,))
            if not isinstance(told, Changed):
                raise Silent
            is_quick = not (told.objects or self._progress[other][1].has_more_to_ask)
            lacking = await self._go_on(
                other, partial(Progress.hear, asked=asked, told=told), is_quick=is_quick
            )
            await self._fetch(other, lacking)
            self._tell_lag(other)
            if not told.more:
                await self._keep(other)
                if self._progress[other][1].is_level:
                    self._lag(other).level_s = time.monotonic()
                return
            if not lacking:
                is_busy = self._busyness() > before
                await asyncio.sleep((time.monotonic() - began_s) * REST_BUSY * is_busy)

    def _tell_lag(self, other: str) -> None:
        self._lag(other).changes = self._progress[other][1].lag

    def _lag(self, other: str) -> Lag:
        """Raises Silent where it is a member no more."""
        if (lag := self._member.lags.get(other)) is None:
            raise Silent
        return lag

    def _busyness(self) -> int:
        """Rises while this replica serves callers."""
        requests = self._member.requests.requests
        return sum(times for (kind, _), times in requests.items() if kind not in ("Changes", "Scan"))

    async def _go_on(
        self, other: str, step: Callable[..., list[Lack]], *, is_quick: bool = False
    ) -> list[Lack]:
        """A step of the progress, which reads or writes the store. It works on a copy: its transaction may be undone, and done
        once more, and what is not durable then was not got."""
        there, progress = self._progress[other]

        def work(store: Store) -> tuple[Progress, list[Lack]]:
            if self._member.document.number != self._epochs[other]:
                raise Silent  # It was asked for in an earlier configuration, of which nothing is taken in any more.
            copy = progress.copy()
            return copy, step(copy, log=store)

        copy, lacking = await self._member.run(work, is_quick=is_quick)
        self._progress[other] = there, copy
        return lacking

    def _resume(self, store: Store, other: str) -> None:
        """How far this replica has looked at the other one's store: from memory, or as was kept. All anew at another store."""
        known = store.others.witness(other)
        there = "" if known is None else f"{known.store}.{known.born}"
        if other not in self._progress or self._progress[other][0] != there:
            kept = self._kept[other] = store.others.progress(other)
            self._progress[other] = there, resumed(kept[1] if kept is not None and kept[0] == there else 0)

    async def _keep(self, other: str) -> None:
        """Have the store keep it, where it does not yet: a transaction for each pass would be most of what a replica does that nobody uses."""
        there, progress = self._progress[other]
        kept = there, progress.safe_since
        if there and kept != self._kept[other]:
            await self._member.run(lambda store: store.others.put_progress(other, *kept))
            self._kept[other] = kept

    async def _fetch(self, other: str, lacking: Sequence[Lack]) -> None:
        """Get what is missing, and install it, a little at a time, with rests in between."""
        waiting = list(lacking)
        for lack in waiting:
            self._progress[other][1].wait_for(lack)
        self._tell_lag(other)  # Also where nothing can be got now.
        while waiting:
            began_s, some = time.monotonic(), portion(waiting, self._entries_at_once(other))
            waiting = waiting[len(some) :] + await self._fetch_some(other, some)
            await asyncio.sleep(min((time.monotonic() - began_s) * REST_BEHIND, PASS_S))

    async def _fetch_some(self, other: str, some: Sequence[Lack]) -> list[Lack]:
        """Get and install these: what is still to be asked for."""
        asked = await self._member.run(partial(self._requests, other, some))
        asked_at = self._member.now()
        replies = await self._ask(other, asked)
        told = list(zip(some, replies, strict=False))
        step = partial(self._installed, other=other, told=told, asked_at=asked_at)
        left = await self._go_on(other, step)
        is_timely = self._is_timely(asked_at)
        self._pace(other, is_timely=is_timely)
        if is_timely and self._repairing.has_room:
            ended = catch_up.left_before(self._member.now().wall_us, self._member.document.limits)
            self._repairing.take_up(self._progress[other][1].overdue(told, ended))
        return [*some[len(replies) :], *left]

    def _entries_at_once(self, other: str) -> int:
        return self._at_once.get(other, ENTRIES_MAX)

    def _pace(self, other: str, *, is_timely: bool) -> None:
        """Ask for half as much after an answer that came too late to be taken in, and for twice as much after another one. Raises Silent where one for a
        single entry came too late: the next pass asks again."""
        number = self._entries_at_once(other)
        if not is_timely and number == 1:
            raise Silent
        self._at_once[other] = min(2 * number, ENTRIES_MAX) if is_timely else number // 2

    def _is_timely(self, asked_at: Now) -> bool:
        return catch_up.is_timely(asked_at, self._member.now(), self._member.document.limits)

    def _requests(self, other: str, lacking: Sequence[Lack], store: Store) -> list[Collect]:
        most = min(self._entries_at_once(other), self._member.document.limits.page_entries_max)
        return [lack.request(store, most) for lack in lacking]

    def _installed(
        self, progress: Progress, log: Store, *, other: str, told: Sequence[tuple[Lack, Reply]], asked_at: Now
    ) -> list[Lack]:
        """Install what was told; what is still to be asked for. A reply to a batch that asks for much is cut off. It may have waited for the store."""
        if not self._is_timely(asked_at):
            return [lack for lack, _ in told]
        left = []
        for lack, reply in told:
            if isinstance(reply, Collected):
                self._install(log, other, lack, reply)
                if (rest := progress.settle(lack, reply, log)) is not None:
                    left.append(rest)
        return left

    def _install(self, store: Store, other: str, lack: Lack, told: Collected) -> None:
        before = store.arrival()
        lag = self._lag(other)
        handle, room = partial(self._member.perform, store), partial(self._member.with_room, store)
        install(lack, told, store, handle, room, lambda _, effects: store.apply(effects))
        came = {t for _, t in store.arrived(lack.object, before, store.arrival(), PAGE)}
        lag.entries += len(came)
        lag.bytes += sum(_size(row.entry) for row in told.rows if row.entry.t in came)

    async def _ask(self, other: str, requests: Sequence[Request]) -> tuple[Reply, ...]:
        answer = await self._others.exchange(
            other, Batch(self._member.document.hash, tuple(requests)), ANSWER_S
        )
        if isinstance(answer, Unanswered):
            self._member.configured.meet(other, answer)
            raise Silent
        return answer.replies


def portion(waiting: Sequence[Lack], entries: int) -> Sequence[Lack]:
    """The first few of them: what is asked for in one message, of each object and together about so many entries."""
    count, room = 0, entries
    while room > 0 and count < min(FETCHED_MAX, len(waiting)):
        room -= len(waiting[count].entries)
        count += 1
    return waiting[:count]


def _size(entry: Entry) -> int:
    return text_bytes(entry.value) if isinstance(entry.value, str) else 0
