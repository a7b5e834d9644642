"""The relay: what a replica's outboxes keep goes to their queues. Pure: operations out, outcomes in.

Owns the steps, and which outbox is looked at when. An item is acquired, enqueued under its record's key, and accepted: whoever dies in between leaves
a lease that ends, and the repeat finds the key. So nothing is lost, and nothing is there twice unless its replica is away for longer than keys are
remembered.
"""

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from ...adts.log import Leased
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import SETTLE_TOKENS_MAX, Limits
from ...api_specs.messages import Append, Request
from ...api_specs.outboxes import MARK, BadRecord, Outbox, record_of
from ...client_sdk.protocol.core.values import (
    Acquire,
    Enqueue,
    Failed,
    Operation,
    Outcome,
    ReadLeases,
    Settle,
    Spans,
)
from ...client_sdk.protocol.decisions.idempotency import KEY_TOO_OLD
from ...gc.due_list import DueList

ITEMS_MAX: Final = 64
"""Relayed together."""
STEP_S_MAX: Final = 4.0
"""How long an operation may take."""
AGAIN_S: Final = 0.25
"""After how long what failed is tried again first; the time doubles."""
AGAIN_S_MAX: Final = 8.0
PARTS: Final = 4
"""An operation, and a pause, takes at most such a part of the retry window: a repeat comes before the key is forgotten."""
KEYS_MAX: Final = 4
"""Keys under which a record is enqueued at one go."""

Found = Literal["some", "empty", "failed"]
"""What a look at an outbox came to: its first items are in the queue, and there may be more; it holds nothing, not even under a lease; some could
not be relayed."""
Steps = Generator[Sequence[Operation], Sequence[Outcome], tuple[Found, str]]


def step_s(limits: Limits) -> float:
    """How long each operation of a relay may take."""
    return min(STEP_S_MAX, limits.deadline_s_max, limits.retry_window_s / PARTS)


def relay(outbox: Outbox, limits: Limits) -> Steps:
    """Relay the first items of an outbox: yields operations that run side by side, is sent their outcomes, and returns what was found, and in words
    what failed, if that is known."""
    items_max, lease_s = min(ITEMS_MAX, limits.batch_items_max), 3 * step_s(limits)
    (acquired,) = yield (Acquire(outbox.name, items_max, lease_s),)
    if isinstance(acquired, Failed):
        return "failed", acquired.detail
    if not acquired.result:
        return (yield from _leased(outbox))
    leases: Sequence[Leased] = acquired.result
    enqueues = {lease.token: _enqueue(outbox, lease) for lease in leases}
    sound = {token: operation for token, operation in enqueues.items() if operation is not None}
    outcomes = yield from _added(sound)
    failed = {token: each for token, each in outcomes.items() if _is_to_repeat(each)}
    settling: Sequence[tuple[Literal["accept", "reject", "release"], Sequence[str]]] = (
        ("accept", [token for token in outcomes if token not in failed]),
        ("reject", [token for token in enqueues if token not in sound]),
        ("release", list(failed)),
    )
    # What failed lets others pass.
    settled = yield [
        Settle(outbox.name, how, tuple(tokens), AGAIN_S if how == "release" else 0.0)
        for how, tokens in settling
        if tokens
    ]
    unsettled = [each for each in settled if isinstance(each, Failed)]
    why = next((each.detail for each in (*failed.values(), *unsettled) if isinstance(each, Failed)), "")
    return ("failed" if unsettled or len(failed) == len(leases) else "some"), why


def _added(
    enqueues: Mapping[str, Enqueue],
) -> Generator[Sequence[Operation], Sequence[Outcome], dict[str, Outcome]]:
    """What came of these. Where a key is too old to tell, as after a long time without a quorum, the item is enqueued under another one: it may be
    there twice then, and is not lost."""
    outcomes: dict[str, Outcome] = {}
    left = dict(enqueues)
    for number in range(KEYS_MAX):
        outcomes |= zip(left, (yield tuple(left.values())), strict=True)
        left = {
            token: replace(enqueues[token], key=f"{enqueues[token].key}~{number + 1}")
            for token in left
            if outcomes[token] == KEY_TOO_OLD
        }
        if not left:
            break
    return outcomes


def _leased(outbox: Outbox) -> Steps:
    """Whether nothing is left. A lease that runs is of a relay that died or was not heard, for there is one at a time: its item is given back at once."""
    (book,) = yield (ReadLeases(outbox.name),)
    if isinstance(book, Failed):
        return "failed", book.detail
    if not book.result.leases:
        return "empty", ""
    if held := tuple(lease.token for lease in book.result.leases if lease.is_held)[:SETTLE_TOKENS_MAX]:
        (released,) = yield (Settle(outbox.name, "release", held),)
        if not isinstance(released, Failed):
            return "some", ""
    return "failed", ""


def _enqueue(outbox: Outbox, lease: Leased) -> Enqueue | None:
    """What a record says is to be enqueued; None where it is none."""
    assert isinstance(lease.entry.value, str)
    try:
        record = record_of(lease.entry.value)
    except BadRecord:
        return None
    spans = Spans(record.delay_s, record.expires_s, record.since_us)
    return Enqueue(outbox.queue, (record.value,), record.key, spans, from_outbox=True)


def _is_to_repeat(outcome: Outcome) -> bool:
    """Whether it is not done. Where its key stands for another value, that one is the item."""
    return isinstance(outcome, Failed) and outcome.reason != "key-reused"


class _State(Struct):
    """Of an outbox in which something may wait."""

    moved_s: float
    """When an item of it was relayed last, or when it was opened."""
    is_noted: bool = False
    """Whether an item came since it was looked at last."""
    wait_s: float = AGAIN_S


class Open:
    """The outboxes of one replica in which something may wait, and when each is looked at next."""

    def __init__(self, document: ClusterDocument, replica: str) -> None:
        self._document: Final = document
        self._replica: Final = replica
        self._again_s_max: Final = min(AGAIN_S_MAX, document.limits.retry_window_s / PARTS)
        self._came: Final = deque[str]()
        """Noted where requests are handled, perhaps in another thread than that where outboxes are looked at."""
        self._due: Final = DueList()
        self._states: Final[dict[str, _State]] = {}

    def note(self, request: Request) -> None:
        """A request is about to be handled."""
        if isinstance(request, Append) and self.is_own(request.object):
            self._came.append(request.object)

    def stalled_s(self, now_s: float) -> list[float]:
        """Of each outbox in which something may wait, for how long nothing of it was relayed."""
        return [now_s - state.moved_s for state in list(self._states.values())]

    @property
    def is_any(self) -> bool:
        """Whether something may wait."""
        return bool(self._came or self._states)

    def is_own(self, name: str) -> bool:
        """Whether it is an outbox of this replica."""
        return name.endswith(MARK + self._replica) and self._document.outbox(name) is not None

    def find(self, names: Iterable[str], now_s: float) -> None:
        """Those of these objects that are its outboxes may hold what came before this process."""
        for name in filter(self.is_own, names):
            self._open(name, now_s)

    def due(self, now_s: float, limit: int) -> list[Outbox]:
        """At most `limit` outboxes to be looked at now: of each, `told` is to be called before it is due again."""
        while self._came:
            name = self._came.popleft()
            self._open(name, now_s)
            self._states[name].is_noted = True
        found: list[Outbox] = []
        while len(found) < limit and self._due.is_due(now_s):
            due = self._due.pop(now_s)
            if due is not None and (outbox := self._document.outbox(due)) is not None:
                self._states[due].is_noted = False
                found.append(outbox)
        return found

    def told(self, outbox: Outbox, found: Found, now_s: float) -> None:
        """What was found there."""
        state = self._states[outbox.name]
        if found == "failed":
            self._due.push(outbox.name, now_s + state.wait_s)
            state.wait_s = min(2 * state.wait_s, self._again_s_max)
            return
        state.wait_s, state.moved_s = AGAIN_S, now_s
        if found == "some" or state.is_noted:
            self._due.push(outbox.name, now_s)
        else:
            del self._states[outbox.name]

    def _open(self, name: str, now_s: float) -> None:
        if name not in self._states:
            self._states[name] = _State(now_s)
            self._due.push(name, now_s)
