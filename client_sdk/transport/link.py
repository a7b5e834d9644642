"""The way to one replica: an outbox, few batches in flight, and patience that a dead replica uses up only once.

Owns what is sent when to one replica, and when that replica counts as down. Must not know operations or quorums: a
send has a token, and its answer goes back under that token. Runs on one event loop and never blocks it.
"""

import asyncio
import logging
import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import Batch, BatchReply, Reply, Request, Scan
from ...timestamps.clock import Now
from ...timestamps.timestamp import ZERO
from ..protocol.core.values import Answer, Send, Unanswered
from .ports import Clock, GiveUp, Transport

IN_FLIGHT_MAX: Final = 2
"""Batches under way to one replica: with one alone, a send that just missed a batch would wait for its whole reply."""

EXCHANGE_TIMEOUT_S: Final = 2.0
LAZY_WAIT_S: Final = 0.02
OUTBOX_SENDS_MAX: Final = 10_000
OUTBOX_BODIES_MAX: Final = 4
"""The outbox of long sends holds at most so many messages of the largest size."""
SHORT_BYTES: Final = 16 * 1024
"""Shorter sends wait for no longer ones: objects with large states would else have those of all others wait, and be declined."""
LONG_BATCH_BYTES: Final = 1024 * 1024
"""Long sends share a batch of so many bytes: what comes while that is read, stored and answered waits for no more of them."""
LAZY_SENDS_MAX: Final = 1000
BACKOFF_FIRST_S: Final = 0.05
BACKOFF_MAX_S: Final = 1.0
ENVELOPE_BYTES: Final = 200
"""What a batch weighs besides its requests: the cluster's hash and the headers of its lists."""

_log = logging.getLogger(__name__)

Deliver = Callable[[str, Sequence[int], Answer, Now, Now], None]
HearOfLater = Callable[[str], None]
"""Hears of a replica that is in a later configuration than the message that it refused."""


class _Waiting(Struct, frozen=True):
    """A send in an outbox and the bytes it will take; with what was answered of it before a reply was cut off."""

    send: Send
    size: int
    replies: tuple[Reply, ...] = ()
    incarnation: str = ""
    """Of the replica that gave these."""
    asked: Now = Now(0.0, 0)
    """When the first of these was asked for."""

    @property
    def requests(self) -> tuple[Request, ...]:
        """Those that are not answered yet."""
        return self.send.requests[len(self.replies) :] if self.replies else self.send.requests


class _Outbox:
    """Sends that wait, oldest first, and what they weigh together."""

    def __init__(self) -> None:
        self.sends: Final[deque[_Waiting]] = deque()
        self.tokens: Final[set[int]] = set()
        self.bytes = 0

    def push(self, waiting: _Waiting) -> None:
        """Add one at the end."""
        self.sends.append(waiting)
        self.tokens.add(waiting.send.token)
        self.bytes += waiting.size

    def put_back(self, waiting: Sequence[_Waiting]) -> None:
        """Add these at the front, in their order."""
        self.sends.extendleft(reversed(waiting))
        self.tokens.update(each.send.token for each in waiting)
        self.bytes += sum(each.size for each in waiting)

    def clear(self) -> None:
        """Drop all."""
        self.sends.clear()
        self.tokens.clear()
        self.bytes = 0

    def pop(self) -> _Waiting:
        """Take the oldest."""
        waiting = self.sends.popleft()
        self.tokens.discard(waiting.send.token)
        self.bytes -= waiting.size
        return waiting


class _Line:
    """Sends of one kind, which wait for none of another; lazy ones of their kind, and what else of those goes `along`."""

    def __init__(
        self, in_flight_max: int, batch_bytes_max: float = math.inf, along: Sequence[_Outbox] = ()
    ) -> None:
        self.asked: Final = _Outbox()
        self.lazy: Final = _Outbox()
        self.is_lazy_due = False
        """Whether lazy ones have waited for long enough."""
        self._is_lazy_next = False
        """Whether the last batch had room for none of them."""
        self._in_flight_max: Final = in_flight_max
        self._batch_bytes_max: Final = batch_bytes_max
        self._along: Final = (*along, self.lazy)
        self.under_way = 0
        """Batches that are not answered yet."""

    @property
    def is_due(self) -> bool:
        """Whether a batch is to go now."""
        waits = self.asked.sends or (self.lazy.sends and self.is_lazy_due)
        return bool(waits) and self.under_way < self._in_flight_max

    def take(self, room: float, places: int) -> list[_Waiting]:
        """The sends of the next batch, one at least: those that ask, in order, then lazy ones, as far as the limits go; a lazy one first where the
        last batch had none. They stand at its front, for they tell what is done: a replica that has room for one more must take
        what others have stored, and refuse what is new as they do, or nobody knows what comes of that."""
        room = min(room, self._batch_bytes_max)
        told: list[_Waiting] = [self.lazy.pop()] if self._is_lazy_next and self.lazy.sends else []
        asked: list[_Waiting] = []
        room -= sum(each.size for each in told)
        places -= sum(len(each.requests) for each in told)
        for outbox in (self.asked, *self._along):
            taken = asked if outbox is self.asked else told
            while outbox.sends and (
                not (told or asked)
                or (outbox.sends[0].size <= room and len(outbox.sends[0].requests) <= places)
            ):
                taken.append(outbox.pop())
                room -= taken[-1].size
                places -= len(taken[-1].requests)
        self._is_lazy_next = bool(self.lazy.sends) and not told
        self.is_lazy_due = self.is_lazy_due and bool(self.lazy.sends)
        return told + asked


class Link:
    """Sends to one replica and reports each answer through `deliver`, never from within `put`."""

    def __init__(
        self,
        replica: str,
        document: ClusterDocument,
        transport: Transport,
        clock: Clock,
        deliver: Deliver,
        hear_of_later: HearOfLater,
    ) -> None:
        self.replica: Final = replica
        self._document = document
        self._hear_of_later: Final = hear_of_later
        self._transport: Final = transport
        self._clock: Final = clock
        self._deliver: Final = deliver
        self._jitter: Final = random.Random()  # spreads retries; no decision rests on it
        self._short: Final = _Line(IN_FLIGHT_MAX)
        self._long: Final = _Line(IN_FLIGHT_MAX, LONG_BATCH_BYTES, (self._short.lazy,))
        self._pages: Final = _Line(1, 0)
        self._lines: Final = self._short, self._long, self._pages
        """What is long goes in batches of its own, and so does what asks for a page of a listing, one at a time: in a few bytes, and is answered with
        thousands of times as many. What shared a batch with these, or waited for one of them to be answered, would wait until megabytes were
        read, stored and sent, at each step of an operation."""
        self._lazy_timer: asyncio.TimerHandle | None = None
        self._flush_soon: asyncio.Handle | None = None
        self._declined: list[_Waiting] = []
        self._in_vain: list[_Waiting] = []
        """Repeats of what waits itself, because what went before is not answered."""
        self._under_way: Final[dict[int, GiveUp]] = {}
        """Batches that are not answered yet, by number, and how to give each up."""
        self._last_batch = 0
        self._all_answered: asyncio.Event | None = None
        """While the link is being closed."""
        self._places = document.limits.requests_max
        """Requests in the next batch, at most: twice as many as a reply that was cut off had answers to."""
        self._incarnation = ""
        self._former = ""
        """The incarnation before: its words may still arrive late, and count for no more than lost."""
        self._highest = ZERO
        self._failures = 0
        self._retry_at_s = 0.0
        self._last_failure = ""
        self._is_closed = False
        self.is_traced = False
        """Whether sends may have places in traces, which go along."""

    def put(self, send: Send, *, is_last: bool = False) -> None:
        """Take over a send; one that cannot go now is answered in the next turn of the loop. It goes then, with all others of this turn,
        or when `flush` is called, which is to be done where it `is_last`."""
        if self._is_closed:
            return
        waiting = _Waiting(send, len(msgspec.msgpack.encode(send.requests)))
        if send.lazy:
            self._put_lazy(waiting)
        else:
            # Lazy ones, token 0, are among those that wait where a reply was cut off.
            outbox = self._line_of(waiting).asked
            if send.repeats > 0 and any(send.repeats in each.asked.tokens for each in self._lines):
                self._in_vain.append(waiting)
            elif self._takes(waiting.size, outbox):
                outbox.push(waiting)
            else:
                self._declined.append(waiting)
            if not is_last and self._flush_soon is None:
                self._flush_soon = asyncio.get_running_loop().call_soon(self.flush)

    def follow(self, document: ClusterDocument) -> None:
        """The cluster has this configuration from now on. What waits is dropped, and nobody hears of it, nor of what is under way: a message belongs
        to the configuration under which it was made."""
        self._document = document
        for line in self._lines:
            line.asked.clear()
            line.lazy.clear()
        self._declined.clear()
        self._in_vain.clear()

    async def aclose(self, timeout_s: float) -> None:
        """Send the lazy ones that wait, unless the replica is down, and end within `timeout_s`."""
        if self._failures == 0:
            for line in self._lines:
                line.asked.clear()  # Whoever waits for that has heard that all ends.
                while line.lazy.sends:
                    self._send(line)
        self._is_closed = True
        for timer in (self._lazy_timer, self._flush_soon):
            if timer is not None:
                timer.cancel()
        if self._under_way:
            self._all_answered = asyncio.Event()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._all_answered.wait()
            except TimeoutError:
                for give_up in self._under_way.values():
                    give_up()
                await asyncio.sleep(0)

    def _put_lazy(self, waiting: _Waiting) -> None:
        lazy = self._line_of(waiting).lazy
        lazy.push(waiting)
        while len(lazy.sends) > LAZY_SENDS_MAX or lazy.bytes > self._document.limits.message_bytes_max:
            lazy.pop()
        if self._lazy_timer is None and lazy.sends:
            wait_s = max(LAZY_WAIT_S, self._retry_at_s - self._clock.now().mono_s if self._failures else 0.0)
            self._lazy_timer = asyncio.get_running_loop().call_later(wait_s, self._lazy_now)

    def _lazy_now(self) -> None:
        self._lazy_timer = None
        for line in self._lines:
            line.is_lazy_due = True
        self.flush()

    def _line_of(self, waiting: _Waiting) -> _Line:
        if Scan in map(type, waiting.send.requests):
            return self._pages
        return self._short if waiting.size <= SHORT_BYTES else self._long

    def _takes(self, size: int, outbox: _Outbox) -> bool:
        """Whether the outbox takes a send: there is room, and the replica is up or due for one probe."""
        bytes_max = OUTBOX_BODIES_MAX * self._document.limits.message_bytes_max
        if len(outbox.sends) >= OUTBOX_SENDS_MAX or outbox.bytes + size > bytes_max:
            return False
        return self._failures == 0 or (not self._under_way and self._clock.now().mono_s >= self._retry_at_s)

    def flush(self) -> None:
        """What was put goes now, as far as that many may be under way."""
        if self._flush_soon is not None:
            self._flush_soon.cancel()
            self._flush_soon = None
        if self._declined or self._in_vain:
            self._answer_declined()
        for line in self._lines:
            while line.is_due and (self._failures == 0 or not self._under_way):
                self._send(line)

    def _answer_declined(self) -> None:
        declined, self._declined = self._declined, []
        in_vain, self._in_vain = self._in_vain, []
        down = f"{self._last_failure}; tried again soon" if self._failures else ""
        now = self._clock.now()
        for sends, why in ((declined, "too much waits to be sent"), (in_vain, "no answer in time")):
            if sends:
                self._report(sends, Unanswered(f"{self.replica}: {down or why}", definite=True), now, now)

    def _send(self, line: _Line) -> None:
        sent_now = line.take(self._document.limits.message_bytes_max - ENVELOPE_BYTES, self._places)
        trace = [each.send.trace for each in sent_now for _ in each.requests] if self.is_traced else ()
        requests = [request for each in sent_now for request in each.requests]
        batch = Batch(self._document.hash, tuple(requests), tuple(trace))
        self._last_batch += 1
        done = partial(self._answered, self._last_batch, line, sent_now, batch, self._clock.now())
        try:
            give_up = self._transport.post(self.replica, batch, EXCHANGE_TIMEOUT_S, done)
        except Exception:  # noqa: BLE001 - a mistake of the transport's: whoever waits for the answer must hear of it
            _log.exception("a batch could not be sent")
            give_up = asyncio.get_running_loop().call_soon(done, Unanswered("the transport failed")).cancel
        self._under_way[self._last_batch] = give_up
        line.under_way += 1

    def _answered(
        self,
        number: int,
        line: _Line,
        sent_now: Sequence[_Waiting],
        batch: Batch,
        sent: Now,
        answer: Answer,
    ) -> None:
        del self._under_way[number]
        line.under_way -= 1
        if self._is_closed:
            if not self._under_way and self._all_answered is not None:
                self._all_answered.set()
            return
        answer = self._checked(batch, answer)
        self._note(answer)
        if batch.cluster != self._document.hash:
            self.flush()
            return
        now = self._clock.now()
        if isinstance(answer, BatchReply):
            self._pace(len(answer.replies), len(batch.requests))
            if len(answer.replies) < len(batch.requests) or [each for each in sent_now if each.replies]:
                sent_now, answer = self._whole(sent_now, answer, sent, now)
        self._report(sent_now, answer, sent, now)
        self.flush()

    def _report(self, over: Sequence[_Waiting], answer: Answer, sent: Now, now: Now) -> None:
        """Deliver what came of sends. Of those that were answered in part before, it is not certain that nothing was done."""
        if isinstance(answer, Unanswered) and answer.definite:
            begun = [each for each in over if each.replies]
            if begun:
                over = [each for each in over if not each.replies]
                self._report(begun, replace(answer, definite=False), sent, now)
        tokens = [each.send.token for each in over for _ in each.send.requests]
        self._deliver(self.replica, tokens, answer, sent, now)

    def _whole(
        self, sent_now: Sequence[_Waiting], answer: BatchReply, sent: Now, now: Now
    ) -> tuple[Sequence[_Waiting], BatchReply]:
        """Those sends whose last requests were answered now, and all replies to them. The others go with the next batch, and what was
        answered of them counts. Where the replica has restarted since, or that is so old that it would be no answer by itself, the send is
        lost: nobody would know that a part was done, were it asked again under its token and certainly refused."""
        given = list(answer.replies)
        whole: list[_Waiting] = []
        replies: list[Reply] = []
        rest: list[_Waiting] = []
        lost: list[_Waiting] = []
        for each in sent_now:
            taken, given = given[: len(each.requests)], given[len(each.requests) :]
            known = (*each.replies, *taken)
            first = each.asked if each.replies else sent
            is_old = now.since_s(first) > self._document.limits.deadline_s_max
            if each.replies and (each.incarnation != answer.incarnation or is_old):
                lost.append(each)
            elif len(known) < len(each.send.requests):
                rest.append(replace(each, replies=known, incarnation=answer.incarnation, asked=first))
            else:
                whole.append(each)
                replies += known
        for line in self._lines:
            line.asked.put_back([each for each in rest if self._line_of(each) is line])
        if lost:
            why = f"{self.replica}: it restarted, or time has passed, before it had answered all"
            self._report(lost, Unanswered(why, definite=False), sent, now)
        return whole, replace(answer, replies=tuple(replies))

    def _pace(self, answered: int, asked: int) -> None:
        """Send less at a time while replies are large: what is in a batch is beyond recall, and goes again if it is not answered."""
        if answered < asked:
            self._places = 2 * answered
        else:
            self._places = min(self._document.limits.requests_max, 2 * self._places)

    def _checked(self, batch: Batch, answer: Answer) -> Answer:
        """`answer`, unless it is of another replica (two ids that reach one replica would count it twice) or short. Who is in another configuration
        counts as silent, not as refusing: it may come into ours, or we into its."""
        if isinstance(answer, Unanswered) and answer.epoch not in (None, self._document.number):
            if answer.epoch > self._document.number:
                self._hear_of_later(self.replica)
            return replace(answer, refused=False)
        if isinstance(answer, BatchReply):
            if answer.replica != self.replica:
                detail = f"{self.replica}: its URL reaches replica {answer.replica}: correct the endpoints"
                return Unanswered(detail, refused=True)
            if not 0 < len(answer.replies) <= len(batch.requests):
                return Unanswered(
                    f"{self.replica}: {len(answer.replies)} replies to {len(batch.requests)} requests"
                )
            if self._former and answer.incarnation == self._former:
                # Not refused: what was asked is to be asked again, of the replica as it is now.
                return Unanswered(f"{self.replica}: its answer from before its restart came too late")
            if self._is_older(answer):
                detail = (
                    f"{self.replica}: its store is older than it was: restart it, and it will say what to do"
                )
                return Unanswered(detail, refused=True)
        return answer

    def _is_older(self, reply: BatchReply) -> bool:
        """Whether a restarted replica began below what this front end saw of it: its store was rolled back, and it has
        forgotten promises (DESIGN section 4). Where it stands now proves nothing: it rises with the first message that it
        takes. None of a rolled-back one becomes known."""
        if reply.incarnation != self._incarnation:
            if reply.began < self._highest:
                return True
            self._former, self._incarnation = self._incarnation, reply.incarnation
        self._highest = max(self._highest, reply.clock)
        return False

    def _note(self, answer: Answer) -> None:
        """Back off after a failure, with what waits answered at once; be patient again after an answer."""
        if isinstance(answer, BatchReply) or answer.refused or answer.epoch is not None:
            self._failures = 0
            return
        self._failures += 1
        self._last_failure = answer.detail
        longest_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(self._failures - 1, 10))
        self._retry_at_s = self._clock.now().mono_s + longest_s * self._jitter.uniform(0.5, 1.0)
        for line in self._lines:
            while line.asked.sends:
                self._declined.append(line.asked.pop())
        if self._declined and self._flush_soon is None:
            self._flush_soon = asyncio.get_running_loop().call_soon(self.flush)
