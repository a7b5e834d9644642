"""Asks the other replicas about this one's store before it votes, and keeps telling them how far it has come.

Owns the rhythm only; what an answer proves is `witness`'s business. It must not hold the start up for dead replicas: who
does not answer within ASK_S is asked again later, and a contradiction heard then still ends the voting at once. It
outlives every error, as the janitor does: without it nobody would ever contradict a store that was rolled back.
"""

import asyncio
import logging
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Protocol

from ...api_specs.messages import Announcement, Testimony
from ...client_sdk.protocol.core.values import Unanswered
from ..service.member import Member, Peer, StoreLost
from ..store.group_commit import Overloaded
from ..store.store import StorageFailed
from .background import Background

ASK_S: Final = 1.0
"""How long a starting replica waits for the others' word. All that run answer at once, even before they vote."""
RETRY_S: Final = 0.05
TELL_S: Final = 2.0
"""Between announcements: what was promised for so long may be rolled back unseen."""
MEET_S: Final = 10.0
"""Who has heard all is announced to again after so long: whether it runs, and how far its clock is off, must not get old."""

_log = logging.getLogger(__name__)


class Others(Protocol):
    """The way to the other replicas."""

    async def announce(
        self, replica: str, announcement: Announcement, timeout_s: float
    ) -> Testimony | Unanswered:
        """What `replica` knew of the sender's store."""

    async def aclose(self) -> None:
        """Give up all connections."""


class Watch(Background):
    """Works for one member until `stop`, or until it must not vote."""

    def __init__(self, member: Member, others: Others) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._others: Final = others
        self._went_on: Final = asyncio.Event()
        """The replica is in another configuration than it was."""
        member.configured.followers.append(lambda _: self._went_on.set())
        self._told: Final[dict[str, Announcement]] = {}
        """What each was told last, of those that have answered since this process began."""
        self._said: Final[dict[str, str]] = {}
        """Why each that did not answer when it was asked last has not."""
        self._asked_s: Final[dict[str, float]] = {}
        """When each was asked last."""

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._begin(self._work(), "quorate-watch")

    async def stop(self) -> None:
        """End at once."""
        await super().stop()
        await self._others.aclose()

    async def _work(self) -> None:
        with suppress(StoreLost):
            await self._ask()
            while True:
                await asyncio.sleep(TELL_S)
                await self._tell()

    async def _ask(self) -> None:
        """Have the store vouched for; then vote, unless one has contradicted."""
        await (self._be_noted() if self._member.is_new else self._ask_briefly())
        while not self._member.is_vouched_for:
            try:
                await self._member.admit()
            except (Overloaded, StorageFailed) as error:
                self._troubles.meet(f"the first vote waits: {error}")
                await asyncio.sleep(RETRY_S)

    async def _be_noted(self) -> None:
        """A new store: ask for as long as it takes, until every other replica has noted it, and this one is a member. Those need not that leave the
        cluster, as one that is replaced, nor those that come with it."""
        member, pause_s = self._member, RETRY_S
        before = member.folder.before or member.document.former
        while True:
            if member.is_member:
                await self._heard([name for name in member.others if not self._has_noted(name)], ASK_S)
            else:  # All of them: it hears of a change of the configuration from them.
                before = member.document
                self._asked_s.clear()
                await self._heard(member.others, ASK_S)
            waiting = {name: self._said.get(name, "") for name in member.others if not self._has_noted(name)}
            member.awaited = waiting
            staying = member.document.own_votes.keys() & (before or member.document).own_votes.keys()
            if member.is_member and not waiting.keys() & staying:
                return
            self._went_on.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._went_on.wait(), pause_s)
            pause_s = min(2 * pause_s, ASK_S)

    def _has_noted(self, name: str) -> bool:
        """Whether it remembers this store: whoever goes on to another configuration forgets those of others than its members."""
        told, document = self._told.get(name), self._member.document
        # One that became a member with this configuration is remembered from the one before.
        before = document.former.hash if document.former is not None and self._member.is_member else None
        return told is not None and told.cluster in (document.hash, before)

    async def _ask_briefly(self) -> None:
        """Until all have answered, for at most ASK_S: one that is down must not keep another from coming back. One that is in another configuration is
        not down: it answers once both are in one, and before that nobody has vouched for the store. A later one is waited for without end, since this
        one goes there, and then asks all again; an earlier one for MEET_S, since it hears of this one's configuration when it announces itself."""
        configured = self._member.configured
        answered, late_s, epoch = set[str](), time.monotonic() + ASK_S, configured.document.number
        while waiting := set(self._member.others) - answered:
            if configured.document.number > epoch:
                late_s, epoch = time.monotonic() + ASK_S, configured.document.number
            over_s = time.monotonic() - late_s
            if over_s >= 0 and not configured.is_behind and not (configured.is_ahead and over_s < MEET_S):
                break
            answered |= await self._heard(waiting, max(RETRY_S, late_s - time.monotonic()))
            if not answered.issuperset(self._member.others):
                await asyncio.sleep(RETRY_S)
        if waiting:
            _log.warning("votes without the word of %s on its store", ", ".join(sorted(waiting)))

    async def _tell(self) -> None:
        """Tell the others how far the store has come, if it has."""
        await self._heard(self._member.others, TELL_S)

    async def _heard(self, names: Iterable[str], timeout_s: float) -> set[str]:
        """As `_round`; a store that cannot be read just now is announced later."""
        waits = "the others were not told of the store"
        return await self._outlived(self._round(names, timeout_s), waits, "the watch") or set()

    async def _word_of(self, name: str, told: Announcement, timeout_s: float) -> Testimony | Unanswered:
        """What one replica says. An error of ours on the way to it must not keep the words of the others from us."""
        self._asked_s[name] = time.monotonic()
        sent_us = self._member.wall_us()
        try:
            answer = await self._others.announce(name, told, timeout_s)
        except Exception:  # noqa: BLE001 - any mistake of ours
            _log.exception("the watch met an error of its own on the way to %s", name)
            return Unanswered("an error of our own")
        self._member.configured.meet(name, answer)
        self._said[name] = answer.detail if isinstance(answer, Unanswered) else "its disk is full"
        met = _met(answer, sent_us, self._member.wall_us())
        if name in self._member.lags:  # It may have left the cluster meanwhile.
            self._member.peers[name] = met._replace(
                votes=isinstance(answer, Testimony) and not answer.refuses, met_s=self._asked_s[name]
            )
        return answer

    def _is_due(self, name: str, now: Announcement) -> bool:
        """Whether there is something to tell, or nothing was heard for long."""
        # Who switches quorums by who is live must know that soon.
        is_standing = bool(self._member.document.standing_rules)
        long_ago_s = time.monotonic() - (TELL_S if is_standing else MEET_S)
        return self._told.get(name) != now or self._asked_s.get(name, long_ago_s) <= long_ago_s

    async def _round(self, names: Iterable[str], timeout_s: float) -> set[str]:
        """Announce to each that does not know yet; who answered. Raises StoreLost once one has contradicted.

        Whoever has not answered yet is told where the store stood when it was opened: what was written since stands above
        all that was ever seen of it, and would hide that it was rolled back.
        """
        first, now = await self._member.announcement(is_first=True), await self._member.announcement()
        due = {name: now if name in self._told else first for name in names if self._is_due(name, now)}
        answers = await asyncio.gather(*(self._word_of(name, told, timeout_s) for name, told in due.items()))
        answered = set()
        for (name, told), answer in zip(due.items(), answers, strict=True):
            if isinstance(answer, Testimony):
                answered.add(name)
                if answer.noted:
                    self._told[name] = told
                self._member.hear(name, told, answer)
        if self._member.lost is not None:
            raise self._member.lost_error()
        return answered


def _met(answer: Testimony | Unanswered, sent_us: int, received_us: int) -> Peer:
    """The other clock was read between sending and receiving (Cristian 1989)."""
    if isinstance(answer, Unanswered):
        return Peer(is_up=answer.refused)
    if answer.now_us == 0:  # A replica of an earlier version does not tell its clock.
        return Peer(is_up=True)
    return Peer(True, answer.now_us - (sent_us + received_us) // 2, (received_us - sent_us + 1) // 2)
