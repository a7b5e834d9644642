"""What goes into the front-end machine and what comes out: operations, outcomes, sends, times. Pure values."""

from typing import Any, Literal

from msgspec import Struct

from quorate.adts.log import Value
from quorate.adts.specification import EventClass
from quorate.api_specs.messages import Ask, BatchReply, Request
from quorate.api_specs.wishes import Front, Swap, Take
from quorate.timestamps.timestamp import Timestamp


class Now(Struct, frozen=True):
    """One reading of both clocks: `mono_s` never steps and times waits; `wall_us` feeds timestamps."""

    mono_s: float
    wall_us: int


class Enqueue(Struct, frozen=True):
    """Add `values` at the end of a queue; in order, unless a concurrent dequeue fences the batch midway.

    With a `key`, a repeat by anyone adds them once.
    """

    object: str
    values: tuple[Value, ...]
    key: str = ""


class Dequeue(Struct, frozen=True):
    """Take up to `items_max` items from the front; when there are none, wait up to `wait_s` for one.

    Result: a tuple of values, empty for an empty queue. With a `key`, a repeat gets what the first took.
    """

    object: str
    items_max: int = 1
    wait_s: float = 0.0
    key: str = ""


class Peek(Struct, frozen=True):
    """The item at the front of a queue, which stays. Result: a tuple of none or one value."""

    object: str


class QueueInfo(Struct, frozen=True):
    """Result of QueueSize: waiting items, the horizon up to which the queue is consumed, and the first items if asked for."""

    size: int
    horizon: Timestamp
    first: tuple[Value, ...] = ()


class QueueSize(Struct, frozen=True):
    """How many items wait, and what the first `items_max` of them are. Result: QueueInfo."""

    object: str
    items_max: int = 0


class Read(Struct, frozen=True):
    """The value of a register or of a dictionary's key. Result: a value, or None when absent."""

    object: str


class Write(Struct, frozen=True):
    """Set the value of a register or of a dictionary's key; None deletes the key."""

    object: str
    value: Value | None


class CompareAndSet(Struct, frozen=True):
    """Set `new` if the value is `old` (None and JSON null both match an absent value). Result: whether it was."""

    object: str
    old: Value | None
    new: Value | None
    key: str = ""


class PutIfAbsent(Struct, frozen=True):
    """Set `value` if the key is absent. Result: whether it was."""

    object: str
    value: Value
    key: str = ""


class Items(Struct, frozen=True):
    """All keys and values of a dictionary at one moment. `object` is `dictionary/NAME`. Result: dict of values."""

    object: str


class Bury(Struct, frozen=True):
    """Forget a deleted key at every replica, if all of them answer and it is still deleted. Result: whether it was."""

    object: str


class Serve(Struct, frozen=True):
    """Decide a wish that another front end handed over. Result: that of the wish."""

    object: str
    wish: Take | Front | Swap


Operation = (
    Enqueue | Dequeue | Peek | QueueSize | Read | Write | CompareAndSet | PutIfAbsent | Items | Bury | Serve
)


class Done(Struct, frozen=True):
    """The operation took effect. `answered` are the replicas that its answer rests on."""

    result: Any
    event_class: EventClass
    answered: frozenset[str]


class Failed(Struct, frozen=True):
    """The operation gave no answer.

    * "unavailable": no quorum answered in time;
    * "unknown": it may or may not have taken effect (never `definite`);
    * "refused": the replicas will not do it (wrong clock, other cluster document, no credentials …);
    * "key-reused": its idempotency key was used before, with other arguments.
    `definite`: it is certain that it did not and will not take effect.
    """

    reason: Literal["unavailable", "unknown", "refused", "key-reused"]
    detail: str
    definite: bool
    answered: frozenset[str] = frozenset()


Outcome = Done | Failed


class Unanswered(Struct, frozen=True):
    """What a driver delivers when a batch got no reply. `refused`: the replica answered, with an error for all of it.

    `definite`: certainly nothing of the batch was or will be done (as when no connection could be made).
    """

    detail: str
    refused: bool = False
    definite: bool = False


Answer = BatchReply | Unanswered


class Send(Struct, frozen=True):
    """Send `request` to `replica`; deliver its reply under `token`.

    `lazy` ones (token 0) want no reply and may wait for the next message to that replica, or be lost.
    """

    replica: str
    request: Request
    token: int
    lazy: bool = False


class SendAsk(Struct, frozen=True):
    """Send `ask` to `replica`, once; `FrontEnd.take_served` wants what comes of it, under `token`, within `timeout_s`."""

    replica: str
    ask: Ask
    token: int
    timeout_s: float


class Finish(Struct, frozen=True):
    """The operation started under this number has ended."""

    number: int
    outcome: Outcome


class Effects(Struct, frozen=True):
    """What the driver must do after a call of the machine: send, report, and call `tick` at `wake_at_s` (monotonic)."""

    sends: tuple[Send, ...]
    finished: tuple[Finish, ...]
    wake_at_s: float | None
    asks: tuple[SendAsk, ...] = ()
