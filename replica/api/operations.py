"""Runs the operations that plain REST callers ask for, by the replica's embedded front end.

Owns whose turn it is, how long an operation may take, and what happens when its caller goes away. Must not know paths.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Header, Path, Query
from starlette.requests import Request

from ...adts.log import Value
from ...adts.types.catalogue import NAME_PATTERN
from ...api_specs.commands import IDEMPOTENCY_KEY_PATTERN
from ...api_specs.limits import (
    AHEAD_BYTES_MAX,
    COUNTS_MAX,
    DEFAULTS,
    LISTINGS_MAX,
    NAME_CHARS_MAX,
    PLACES_MAX,
    Limits,
)
from ...api_specs.values import BadValue, json_to_value
from ...client_sdk.protocol.core.counters import Counts
from ...client_sdk.protocol.core.values import (
    Acquire,
    Dequeue,
    Done,
    Enqueue,
    Invoke,
    Operation,
    Outcome,
    Peek,
    QueueSize,
    Read,
    ReadLeases,
    Write,
)
from ...client_sdk.protocol.decisions.pending import ITEMS_AT_A_PLACE
from ...client_sdk.transport.driver import Driver
from ..http.cancellation import ends_before_caller_goes, has_gone
from ..http.fair_queue import FairQueue, Slots
from ..http.large_bodies import CLOCK, asked_at, is_unheard, turn
from ..http.problems import Refusal, refusal_of
from ..http.routers import AS_DIGITS, of_application
from .answers import length_of

DEADLINE_S: Final = 5.0
"""Of an operation whose caller names none; a dequeue's waiting comes on top."""
BYTES_AT_A_PLACE: Final = 64 * 1024
"""Of values that are stored, and looked at by nobody but to check them."""
BRACKETS_AT_A_PLACE: Final = 1024
"""Arrays and objects in such values: to check them takes the more time."""
PLACES_OF_READS: Final = 4
"""Nobody knows before how large the value is: with a megabyte three replicas and a front end have ten milliseconds of work."""
PLACES_OF_LEASES: Final = 16
"""Hundreds of items and their payloads may be told."""

_NAME_RULE: Final = "1 to 200 of `A-Z a-z 0-9 . _ ~ @ = : + -`, no dot in front"
_NAME_FORM: Final[dict[str, Any]] = {"pattern": f"^{NAME_PATTERN}$"}
Name = Annotated[
    str,
    Path(description=f"The object's name: {_NAME_RULE}", examples=["example"], json_schema_extra=_NAME_FORM),
]
_KEY_FORM: Final[dict[str, Any]] = {"minLength": 1, "maxLength": NAME_CHARS_MAX}
Key = Annotated[
    str,
    Path(
        description="The key: any text that takes 200 characters at most, of which those of names take one each, and others three for each byte of UTF-8; "
        "percent-encoded, `/` too",
        examples=["ada"],
        json_schema_extra=_KEY_FORM,
    ),
]
_PART_FORM: Final[dict[str, Any]] = {"maxLength": NAME_CHARS_MAX}
KeyPrefix = Annotated[
    str,
    Query(description="Keys that begin with this", examples=["shop."], json_schema_extra=_PART_FORM),
]
AfterKey = Annotated[
    str,
    Query(
        description="Keys that come after this one, in order: the `next` of the page before",
        examples=["shop.42"],
        json_schema_extra=_PART_FORM,
    ),
]
KeysMax = Annotated[
    int | None,
    Query(
        ge=1,
        description=f"A page of at most so many keys (limit: {DEFAULTS.page_entries_max}); left out: all of them at one moment",
        examples=[100],
    ),
    AS_DIGITS,
]
DeadlineS = Annotated[
    float | None,
    Query(
        gt=0,
        allow_inf_nan=False,
        description=f"Seconds that the operation may take (left out: {DEADLINE_S:g}, and what it waits)",
        examples=[DEADLINE_S],
    ),
    AS_DIGITS,
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=f"^{IDEMPOTENCY_KEY_PATTERN}$",
        examples=["order-4711"],
        description="A repeat with the same key, within the retry window, is not done again: what took effect is answered again",
    ),
]


@dataclass
class Asked:
    """How an operation is asked for that may be repeated under a key."""

    request: Request
    deadline_s: DeadlineS = None
    idempotency_key: IdempotencyKey = None

    @property
    def key(self) -> str:
        """Empty for none."""
        return self.idempotency_key or ""


Keyed = Annotated[Asked, Depends(Asked)]


class Operations:
    """Runs the operations of one application, whose front end lives as long as its event loop."""

    def __init__(self, limits: Limits, lost: Callable[[], Refusal | None]) -> None:
        self.limits: Final = limits
        self._lost: Final = lost
        self.front_end: Driver | None = None
        self._answers: Final = FairQueue()
        """What many callers are told in one round is not made for all of them in one turn."""
        self._places: Final = Slots(PLACES_MAX)
        """For what is under way and waits for nothing: of what one caller asks at a time, others wait for so much at most."""
        self._counts: Final = Slots(COUNTS_MAX)
        self.listings: Final = Slots(LISTINGS_MAX)

    def counts(self) -> Counts | None:
        """What the front end has counted, once there is one."""
        return None if self.front_end is None else self.front_end.counts

    async def run(self, operation: Operation, deadline_s: float | None, wait_s: float = 0.0) -> Done:
        """How `operation` ended. Raises Refusal when it did not end well."""
        if (lost := self._lost()) is not None:
            raise lost
        if self.front_end is None:
            raise Refusal("unavailable", "the replica is starting", definite=True)
        most_s = self.deadline(deadline_s, wait_s)
        if isinstance(operation, QueueSize):
            outcome = await _in_turn(self._counts, 1, self.front_end, operation, most_s)
        elif size := _places_of(operation):
            outcome = await _in_turn(self._places, size, self.front_end, operation, most_s)
        else:
            outcome = await _outcome(self.front_end, operation, most_s)
        size = length_of(outcome.result) if isinstance(outcome, Done) else 0
        if not self._answers.may_begin(size):
            await self._answers.wait(turn(), size)
        if isinstance(outcome, Done):
            return outcome
        raise refusal_of(outcome)

    async def take(self, asked: Asked, operation: Dequeue | Acquire) -> Done:
        """As `run`, but one that waits is cancelled when the client goes away: an item taken for nobody would be lost."""
        if operation.items_max > self.limits.batch_items_max:
            raise Refusal("malformed", f"max: at most {self.limits.batch_items_max}")
        if operation.wait_s > self.limits.wait_s_max:
            raise Refusal("malformed", f"wait_s: at most {self.limits.wait_s_max:g} seconds")
        if asked.key or operation.wait_s == 0:
            return await self.decide(asked, operation, operation.wait_s)
        return await self._run_while_asked(asked, operation, operation.wait_s)

    async def decide(self, asked: Asked, operation: Operation, wait_s: float = 0.0) -> Done:
        """As `run`; under a key, only while the client is there: a repeat of one that left may hear that there was nothing
        to do, which nobody remembers."""
        if not asked.key:
            return await self.run(operation, asked.deadline_s, wait_s)
        await self.be_asked(asked)
        return await self._run_while_asked(asked, operation, wait_s)

    async def be_asked(self, asked: Asked) -> None:
        """Raises Refusal where a request under a key comes late, from a client that has gone: its repeat may be forgotten."""
        if asked.key and is_unheard():
            detail = f"more than {AHEAD_BYTES_MAX} bytes have come behind a request under a key: send it again when it is answered"
            raise Refusal("overloaded", detail)
        if asked.key and await has_gone(asked.request.receive):
            raise Refusal("unavailable", "the client went away", definite=True)

    async def _run_while_asked(self, asked: Asked, operation: Operation, wait_s: float) -> Done:
        running = asyncio.ensure_future(self.run(operation, asked.deadline_s, wait_s))
        if not await ends_before_caller_goes(running, asked.request.receive):
            raise Refusal("unavailable", "the client went away", definite=False)
        return running.result()

    def value(self, data: Any) -> Value:
        """`data` as canonical text; raises BadValue."""
        return json_to_value(data, self.limits)

    def values(self, items: list[Any]) -> tuple[Value, ...]:
        """Each of the items as canonical text; raises BadValue, which names the item among several."""
        found: list[Value] = []
        for place, item in enumerate(items):
            try:
                found.append(self.value(item))
            except BadValue as error:
                raise BadValue(str(error) if len(items) == 1 else f"items[{place}]: {error}") from None
        return tuple(found)

    def deadline(self, deadline_s: float | None, wait_s: float = 0.0) -> float:
        """How long an operation may take, in seconds. Raises Refusal."""
        most = self.limits.deadline_s_max
        if deadline_s is None:
            return min(DEADLINE_S + wait_s, most)
        if deadline_s > most:
            raise Refusal("malformed", f"deadline_s: at most {most:g} seconds")
        if deadline_s < wait_s:
            raise Refusal("malformed", "deadline_s: must not be below wait_s")
        return deadline_s


def _places_of(operation: Operation) -> int:
    """How many places it takes, by its work, of a millisecond each. None where it may wait, or is decided: it takes places of the front end's
    own, while it asks for a decision."""
    match operation:
        case Invoke(invocation=call):
            return 1 + _places_of_values(tuple(map(str, call.args)))
        case Read() | Peek():
            return PLACES_OF_READS
        case Write(value=value):
            return 1 + _places_of_values((value or "",))
        case Enqueue(values=values):
            return 1 + len(values) // ITEMS_AT_A_PLACE + _places_of_values(values)
        case ReadLeases():
            return PLACES_OF_LEASES
    return 0


def _places_of_values(values: Sequence[str]) -> int:
    brackets = sum(value.count("[") + value.count("{") for value in values)
    return sum(map(len, values)) // BYTES_AT_A_PLACE + brackets // BRACKETS_AT_A_PLACE


async def _in_turn(
    slots: Slots, size: int, front_end: Driver, operation: Operation, most_s: float
) -> Outcome:
    """As `_outcome`, once one of these is free for the caller, who has so many then."""
    caller = turn()
    try:
        await slots.take(caller, most_s - _waited_s(), size)
    except TimeoutError:
        raise _waited_too_long() from None
    try:
        return await _outcome(front_end, operation, most_s)
    finally:
        slots.give(caller, size)


async def _outcome(front_end: Driver, operation: Operation, most_s: float) -> Outcome:
    """What comes of it in so much time since the request came, its waits included. The front end may go by another clock. That is read first: were
    this process stopped in between, the request would have waited for longer."""
    now = front_end.now()
    waited_s = _waited_s()
    if waited_s >= most_s:
        raise _waited_too_long()
    return await front_end.run(operation, most_s, turn=turn(), asked=now.before(waited_s))


def _waited_s() -> float:
    return CLOCK.now().since_s(asked_at())


def _waited_too_long() -> Refusal:
    detail = "its deadline passed while the request waited for its turn, and nothing was done"
    return Refusal("overloaded", detail)


Served = Annotated[Operations, of_application("operations")]
"""Of the application that was asked."""
