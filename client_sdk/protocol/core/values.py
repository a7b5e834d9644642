"""What goes into the front-end machine and what comes out: operations, outcomes, sends, times. Pure values."""

from typing import Any, Final, Literal

from msgspec import Struct

from ....adts.log import Dead, Entry, Leased, Value
from ....adts.plain_class import PlainClass
from ....adts.specification import EventClass, Invocation
from ....adts.times import Times
from ....api_specs.commands import ForwardableCommand
from ....api_specs.messages import BatchReply, ForwardedRequest, Request
from ....api_specs.problems import Limit
from ....timestamps.timestamp import Timestamp


class Spans(Struct, frozen=True):
    """After how many seconds an item is due, and expires; 0 stands for at once, and for never. Counted `since_us` (0: from when it is enqueued)."""

    delay_s: float = 0.0
    expires_s: float = 0.0
    since_us: int = 0

    def times(self, now_us: int) -> Times:
        """When that is, counted from `now_us` if from nothing before."""
        since_us = self.since_us or now_us
        ends = (since_us + int(seconds * 1e6) if seconds else 0 for seconds in (self.delay_s, self.expires_s))
        return Times(*ends)


AT_ONCE: Final = Spans()


class Enqueue(Struct, frozen=True):
    """Add `values` at the end of a queue; in order, unless a concurrent dequeue fences the batch midway.

    With a `key`, a repeat by anyone adds them once. Only what is acquired keeps to `spans`. Where the queue has outboxes, they are added through
    one of these, unless they are `from_outbox`.
    """

    object: str
    values: tuple[Value, ...]
    key: str = ""
    spans: Spans = AT_ONCE
    from_outbox: bool = False


class Dequeue(Struct, frozen=True):
    """Take up to `items_max` items from the front; when there are none, wait up to `wait_s` for one.

    Result: a tuple of values, empty for an empty queue. With a `key`, a repeat gets what the first took.
    """

    object: str
    items_max: int = 1
    wait_s: float = 0.0
    key: str = ""


class Acquire(Struct, frozen=True):
    """Have up to `items_max` items of a queue delivered under leases of `lease_s`; when there are none, wait up to `wait_s`.

    Result: a tuple of `Leased`. What was delivered `deliveries_max` times (0: no maximum) becomes a dead letter. `holder`
    names the caller, where that is not who owns this front end. Only the relay has items of an outbox delivered (`by_relay`).
    """

    object: str
    items_max: int
    lease_s: float
    wait_s: float = 0.0
    deliveries_max: int = 0
    holder: str = ""
    by_relay: bool = False


How = Literal["ack", "release", "reject", "drop", "renew"]
"""What becomes of items under leases: they are done with; wait to be delivered again; are dead letters; are gone; stay longer."""


class Settle(Struct, frozen=True):
    """End leases, or renew them; what was meant for later comes after `span_s`. Result: a SettleResult.

    A repeat changes nothing, and has the same result; but a repeated renewal counts from the repeat.
    """

    object: str
    how: How
    tokens: tuple[str, ...]
    span_s: float = 0.0


class ClearDeadLetters(Struct, frozen=True):
    """Clear dead letters of a queue away (none named: all), for good or to be delivered again. Result: how many."""

    object: str
    ids: tuple[str, ...]
    is_requeued: bool


class PurgeDelayed(Struct, frozen=True):
    """Purge the items of a queue that acquires have set aside, or callers gave back, and that are due in `due_after_s` or later.
    Result: how many."""

    object: str
    due_after_s: float


class LeaseBook(Struct, frozen=True):
    """Result of ReadLeases: what is delivered, or waits to be after an acquire has met it; and dead letters, oldest first."""

    leases: tuple[Leased, ...]
    dead: tuple[Dead, ...]


class ReadLeases(Struct, frozen=True):
    """What an acquire has met and is not done with. Result: LeaseBook."""

    object: str


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


class Invoke(Struct, frozen=True):
    """A call on an object of one's own type. Result: the Response. With a `key`, a repeat of one that ended "Ok" gets that
    one's."""

    object: str
    type: PlainClass
    invocation: Invocation
    key: str = ""


class Items(Struct, frozen=True):
    """Keys and values of a dictionary at one moment: all, or those of the keys that begin with `prefix` and come after `after` in order, a page of at most
    `most` of them (0: no page), and fewer where keys were deleted lately or values are large. `object` is `dictionary/NAME`. Result: Listed."""

    object: str
    prefix: str = ""
    after: str = ""
    most: int = 0


class Listed(Struct, frozen=True):
    """The values of keys, in their order. `next`: where the page ended before the last key; what comes after it is on the next one."""

    items: dict[str, Value]
    next: str = ""


class CollectTombstone(Struct, frozen=True):
    """Forget an object that came to nothing at every replica, if all of them answer and it is nothing still. Result: whether it was forgotten."""

    object: str


class ReadRepair(Struct, frozen=True):
    """See to it that all replicas come to hold what is done of an object, and what some of them do not know to be done: these `entries`, or,
    without any, what was accepted last. Result: how many of these are done."""

    object: str
    entries: tuple[Entry, ...] = ()


class Carry(Struct, frozen=True):
    """See to it that quorums of the configuration at hand hold what is in force of an object: those of the one before may alone. Result: how many
    dequeues may be repeated under their keys. `beside_others`: the front end carries other objects meanwhile, so that nothing is done with one whose log is
    long (LONG)."""

    object: str
    beside_others: bool = False


LONG: Final = "Carry/Long"
"""The event class of what was not carried, and is to be carried alone."""

YOUNG: Final = "Collect/Young"
"""The event class of what came to nothing and was kept because not all replicas have held it for the retry window yet."""


class Repair(Struct, frozen=True):
    """Make an object go on that no decision can go on from. Result: a sentence for each change of its decided state, and, of one's own
    `type`, for each call that lies in the log and cannot be run. With `is_anew`, an object of one's own type begins with the state of a new one;
    calls that lie in the log run on it."""

    object: str
    type: PlainClass | None = None
    is_anew: bool = False


class Serve(Struct, frozen=True):
    """Decide a command that another front end forwarded. Result: that of the command."""

    object: str
    command: ForwardableCommand


Operation = (
    Enqueue
    | Dequeue
    | Acquire
    | Settle
    | ClearDeadLetters
    | PurgeDelayed
    | ReadLeases
    | Peek
    | QueueSize
    | Read
    | Write
    | CompareAndSet
    | PutIfAbsent
    | Invoke
    | Items
    | CollectTombstone
    | ReadRepair
    | Carry
    | Repair
    | Serve
)


class Done(Struct, frozen=True):
    """The operation took effect. `answered` are the replicas that its answer rests on."""

    result: Any
    event_class: EventClass
    answered: frozenset[str]
    is_weak: bool = False
    """Whether it may miss changes that had ended when it began: the object is of eventual consistency."""


class Failed(Struct, frozen=True):
    """The operation gave no answer.

    * "unavailable": no quorum answered in time;
    * "unknown": it may or may not have taken effect (never `definite`);
    * "refused": the replicas will not do it (wrong clock, other cluster file, no credentials …);
    * "key-reused": its idempotency key was used before, with other arguments;
    * a bound was met (`quorate.api_specs.problems.Limit`): it may be repeated when there is room again.
    `definite`: it is certain that it did not and will not take effect.
    """

    reason: Literal["unavailable", "unknown", "refused", "key-reused"] | Limit
    detail: str
    definite: bool
    answered: frozenset[str] = frozenset()


Outcome = Done | Failed


class Unanswered(Struct, frozen=True, gc=False):
    """What a driver delivers when a batch got no reply. `refused`: the replica answered, with an error for all of it.

    `definite`: certainly nothing of the batch was or will be done (as when no connection could be made). `limit`: the bound that
    it was refused for, if it was one.
    """

    detail: str
    refused: bool = False
    definite: bool = False
    limit: Limit | None = None
    epoch: int | None = None
    """Which configuration the replica is in, where it refused a message of another one."""


Answer = BatchReply | Unanswered


class Send(Struct, frozen=True, gc=False):
    """Send `requests` to `replica`, in one batch; deliver the replies under `token`, which stands for each of them.

    `lazy` ones (token 0) want no reply and may wait for the next message to that replica, or be lost. `trace` is its place in
    a trace, where there is one. It `repeats` what was sent under that token (0: nothing): while that waits to be sent, it is in vain.
    """

    replica: str
    requests: tuple[Request, ...]
    token: int
    lazy: bool = False
    trace: str = ""
    repeats: int = 0

    @property
    def request(self) -> Request:
        """The first; most have no other."""
        return self.requests[0]


class SendForwarded(Struct, frozen=True):
    """Send `request` to `replica`, once; `FrontEnd.take_forwarded_reply` wants what comes of it, under `token`, within `timeout_s`."""

    replica: str
    request: ForwardedRequest
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
    forwards: tuple[SendForwarded, ...] = ()
