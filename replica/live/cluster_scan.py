"""What every replica of the cluster answers now, as this one sees it: what the live page is made of.

Owns the asking: all replicas at once, each with a short time limit, and the same question of several viewers answered once.
Must not know what is made of the answers. It reads alone: a scan promises nothing and changes nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from ... import __version__
from ...adts.types.catalogue import adt_of, may_delete
from ...api_specs.messages import Batch, BatchReply, Collected, Refused, Row, Scan, Scanned
from ...client_sdk.protocol.core.turns import Shares
from ...client_sdk.protocol.core.values import Unanswered
from ...client_sdk.transport.http_answer import HttpAnswer, HttpClient, message
from ...client_sdk.transport.http_transport import quick_client
from ...client_sdk.transport.ports import Transport
from ...client_sdk.transport.tls import SYSTEM_TRUST, ClientTls
from ...timestamps.timestamp import ZERO, Timestamp
from ..protocol.log import ObjectState
from ..protocol.pages import payloads_bytes
from ..service.embedded import EmbeddedTransport, to_others
from ..service.member import Member, StoreLost
from ..service.status import CatchUp, catch_up_of
from ..store.database import StorageFailed
from ..store.group_commit import Overloaded
from ..store.store import Store
from ..upkeep.probing import READY_BYTES_MAX, READY_PATH

ANSWER_S_MAX: Final = 1.0
HEALTH_S_MAX: Final = 0.5
"""For the question whether a replica that gave no answer runs at all."""
KEPT_S: Final = 0.5
"""How long an answer serves others who ask the same: a hundred viewers cost the replicas what one does."""
KEPT_MAX: Final = 16
"""Different questions under way, and answers kept, together: one answer may have a few megabytes of each replica."""
READ_MAX: Final = 1024 * 1024
"""Bytes of values that are read to see which keys are absent; one more value may come on top."""
_STATUS_PATH: Final = "/v1/status"
_STATUS_BYTES_MAX: Final = 64 * 1024

_Answer = TypeVar("_Answer")
State = Literal["ready", "not-voting", "down"]


class Seen(Struct, frozen=True):
    """One replica: its answer to a scan, or the words that say why there is none.

    `clock_offset_us` is how far its clock is ahead of this replica's, to within half of `took_s`.
    """

    state: State
    trouble: str = ""
    took_s: float = 0.0
    clock_offset_us: int = 0
    incarnation: str = ""
    objects: tuple[tuple[str, Collected], ...] = ()
    more: bool = False


NOT_SEEN: Final = Seen("down", "it is no member any more")


class Told(Struct, frozen=True):
    """What a replica says of itself in its status; the rest of that is left alone.

    `epoch` is the number of the configuration that it is in. `switch_waits` says why it does not switch a standing rule that is due.
    """

    catch_up: dict[str, CatchUp] = {}
    epoch: int = 0
    release: str = ""
    switch_waits: str = ""


_DECODE_TOLD: Final = msgspec.json.Decoder(Told).decode


class ClusterScan:
    """Asks all replicas for one of them, from the running event loop."""

    def __init__(self, member: Member, token: str | None, tls: ClientTls = SYSTEM_TRUST) -> None:
        self._member: Final = member
        self._replicas: Final[Transport] = EmbeddedTransport(member, to_others(member, token, tls))
        # Health is open to everyone, so the token stays here.
        self._health: Final[HttpClient] = quick_client(None, tls)
        self._status: Final[HttpClient] = quick_client(token, tls)
        self._kept: Final[dict[Hashable, asyncio.Task[Any]]] = {}
        self._under_way: Final = Shares(KEPT_MAX)
        """Of questions, by the caller that asked first: one viewer of many things leaves room for others."""

    async def look(self, scan: Scan) -> dict[str, Seen]:
        """What each replica answers to `scan`, in the order of the cluster file."""
        return await self._ask_all(lambda id, url: self._ask(id, url, scan))

    async def told(self) -> dict[str, Told | None]:
        """What each replica says of itself; None of those that do not tell."""
        return await self._ask_all(self._told)

    async def absent(self, seen: Mapping[str, Seen]) -> dict[str, Timestamp]:
        """The keys of dictionaries among what this replica answered that are absent as far as it knows, and since when: a scan without
        payloads does not tell. Empty where the store does not answer."""
        own = seen.get(self._member.id, NOT_SEEN)
        keys = [name for name, _ in own.objects if may_delete(adt_of(name))]
        if not keys:
            return {}
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                return await self._member.run(partial(_absent, keys), weight=len(keys), is_long=True)
        except (TimeoutError, StoreLost, StorageFailed, Overloaded):
            return {}

    async def once(
        self, question: Hashable, ask: Callable[[], Awaitable[_Answer]], caller: Hashable = None
    ) -> _Answer:
        """The answer to the question, which is asked unless it is under way, or was answered at most KEPT_S ago. Raises Overloaded, also
        where this caller has as many questions under way as are left for others."""
        if (asking := self._kept.get(question)) is None:
            self._make_room(caller)
            asking = self._kept[question] = asyncio.ensure_future(ask())
            self._under_way.take(caller)
            asking.add_done_callback(partial(self._answered, question, caller))
        # One viewer who goes away must not take the answer from the others.
        answer: _Answer = await asyncio.shield(asking)
        return answer

    async def aclose(self) -> None:
        """Stop asking, and give up all connections."""
        asking = list(self._kept.values())
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._replicas.aclose()
        await self._health.aclose()
        await self._status.aclose()

    def _answered(self, question: Hashable, caller: Hashable, asked: asyncio.Task[Any]) -> None:
        self._under_way.give(caller)
        asyncio.get_running_loop().call_later(KEPT_S, self._forget, question, asked)

    def _make_room(self, caller: Hashable) -> None:
        """For one more question: the oldest answer that is only kept gives way. Raises Overloaded where all are under way, or the
        caller has its share."""
        if not self._under_way.may_take(caller):
            raise Overloaded(
                "of the questions about the cluster that are under way, this caller has its share"
            )
        if len(self._kept) < KEPT_MAX:
            return
        answered = next((question for question, asking in self._kept.items() if asking.done()), None)
        if answered is None:
            raise Overloaded(f"{KEPT_MAX} different questions about the cluster are under way already")
        del self._kept[answered]

    def _forget(self, question: Hashable, asked: asyncio.Task[Any]) -> None:
        # An answer that gave way may have been asked for anew since, and that one is kept as long as any other.
        if self._kept.get(question) is asked:
            del self._kept[question]

    async def _ask_all(self, ask: Callable[[str, str], Awaitable[_Answer]]) -> dict[str, _Answer]:
        urls = self._member.urls
        answers = await asyncio.gather(*(ask(id, url.rstrip("/")) for id, url in urls.items()))
        # Members may have changed meanwhile.
        left = self._member.document.votes
        return {id: answer for id, answer in zip(urls, answers, strict=True) if id in left}

    async def _told(self, id: str, url: str) -> Told | None:
        if id == self._member.id:
            own = self._member
            return Told(catch_up_of(own), own.document.number, __version__, own.switches.waits)
        url += _STATUS_PATH
        answer = await self._status.request(id, url, timeout_s=ANSWER_S_MAX, bytes_max=_STATUS_BYTES_MAX)
        told = message(id, answer, _DECODE_TOLD) if isinstance(answer, HttpAnswer) else answer
        return told if isinstance(told, Told) else None

    async def _ask(self, id: str, url: str, scan: Scan) -> Seen:
        batch = Batch(self._member.document.hash, (scan,))
        began_s, began_us = time.monotonic(), self._member.wall_us()
        answer = await self._replicas.exchange(id, batch, ANSWER_S_MAX)
        took_s = time.monotonic() - began_s
        if isinstance(answer, Unanswered):
            return Seen(await self._state_without_answer(id, url), answer.detail.removeprefix(f"{id}: "))
        match answer.replies:
            case (Scanned(objects=objects, more=more),):
                return Seen(
                    "ready",
                    took_s=took_s,
                    clock_offset_us=self._offset_us(id, answer, began_us),
                    incarnation=answer.incarnation,
                    objects=objects,
                    more=more,
                )
            case (Refused(detail=detail),):
                return Seen("not-voting", detail)
        return Seen("not-voting", "its answer does not fit the question")

    def _offset_us(self, id: str, answer: BatchReply, began_us: int) -> int:
        return 0 if id == self._member.id else answer.now_us - (began_us + self._member.wall_us()) // 2

    async def _state_without_answer(self, id: str, url: str) -> State:
        if id == self._member.id:
            return "not-voting"
        url += READY_PATH
        health = await self._health.request(id, url, timeout_s=HEALTH_S_MAX, bytes_max=READY_BYTES_MAX)
        return "not-voting" if isinstance(health, HttpAnswer) else "down"


def _absent(keys: Iterable[str], store: Store) -> dict[str, Timestamp]:
    """The keys that are absent by their newest entry, or, where they have none, by the decision accepted last, with its timestamp; ZERO of one that never
    had a value. Values are read up to READ_MAX bytes together; of the keys behind nothing is told."""
    found: dict[str, Timestamp] = {}
    read = 0
    for key in keys:
        if read > READ_MAX or (state := store.state(key)) is None:
            continue
        rows = store.newest(key, state.horizon, 1)
        read += payloads_bytes(rows)
        if (at := _absent_since(state, rows)) is not None:
            found[key] = at
    return found


def _absent_since(state: ObjectState, rows: Sequence[Row]) -> Timestamp | None:
    if rows:
        return rows[-1].entry.t if rows[-1].entry.value is None else None
    return ZERO if state.horizon == ZERO else state.ended()
