"""The relay: what a replica's outboxes keep goes to their queues. Pure: operations out, outcomes in.

Owns the steps, and which outbox is looked at when. An item is acquired, enqueued under its record's key, and accepted: whoever dies in between leaves
a lease, which the next one ends, and the repeat finds the key. So nothing is lost. An item comes once more each time its replica is down, or cut off, for
longer than keys are remembered, before it could note that the item was relayed.
"""

from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Final, Literal, TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from ...adts.log import Leased, Summary
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import SETTLE_TOKENS_MAX, Limits
from ...api_specs.messages import Accept, Append, Commit, Request
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
"""After how long it is tried again at the latest."""
LOOK_S_MAX: Final = 1.0
"""After how long an outbox is looked at again at the latest: what failed waits for longer, so that others are met."""
PARTS: Final = 4
"""An operation, and a pause, takes at most such a part of the retry window: a repeat comes before the key is forgotten."""
KEYS_MAX: Final = 16
"""Keys under which a record is enqueued at one go: one more each time that its relay was interrupted right after it agreed on a key, for longer than keys
are remembered."""

Found = Literal["some", "empty", "waiting", "failed"]
"""What a look at an outbox came to: items of it are in the queue, and there may be more; it holds nothing, not even under a lease; what it holds failed
before, and is not tried yet; nothing could be relayed."""
Steps = Generator[Sequence[Operation], Sequence[Outcome], tuple[Found, str]]


def step_s(limits: Limits) -> float:
    """How long each operation of a relay may take."""
    return min(STEP_S_MAX, limits.deadline_s_max, limits.retry_window_s / PARTS)


def again_s_max(limits: Limits) -> float:
    """After how long what failed is tried again at the latest."""
    return min(AGAIN_S_MAX, limits.retry_window_s / PARTS)


def relay(outbox: Outbox, limits: Limits) -> Steps:
    """Relay the first items of an outbox: yields operations that run side by side, is sent their outcomes, and returns what was found, and in words
    what failed, if that is known."""
    items_max, lease_s = min(ITEMS_MAX, limits.batch_items_max), 3 * step_s(limits)
    (acquired,) = yield (Acquire(outbox.name, items_max, lease_s, by_relay=True),)
    if isinstance(acquired, Failed):
        # What somebody else has under a lease may be all that there is room for.
        freed, _ = yield from _leased(outbox)
        return ("some", "") if freed == "some" else ("failed", acquired.detail)
    if not acquired.result:
        return (yield from _leased(outbox))
    leases: Mapping[str, Leased] = {lease.token: lease for lease in acquired.result}
    enqueues = {token: _enqueue(outbox, lease) for token, lease in leases.items()}
    sound = left = {token: enqueue for token, enqueue in enqueues.items() if enqueue is not None}
    bad, moved, whys = sorted(enqueues.keys() - sound.keys()), 0, list[str]()
    for number in range(1, KEYS_MAX + 1):
        outcomes = dict(zip(left, (yield tuple(left.values())), strict=True))
        # It may be there twice under another key, and is not lost.
        old = [token for token, each in outcomes.items() if each == KEY_TOO_OLD and number < KEYS_MAX]
        done = [token for token, each in outcomes.items() if not _is_to_repeat(each)]
        failed = {token: each for token, each in outcomes.items() if token not in {*old, *done}}
        settling = _settling(outbox, done, bad, [leases[token] for token in failed], limits)
        settled = yield settling
        whys += [each.detail for each in (*failed.values(), *settled) if isinstance(each, Failed)]
        moved += sum(
            len(each.tokens)
            for each, outcome in zip(settling, settled, strict=True)
            if each.how != "release" and not isinstance(outcome, Failed)
        )
        left, bad = {token: _under_another_key(sound[token], number, token) for token in old}, []
        if not left:
            break
    return ("some" if moved else "failed"), next(iter(whys), "")


def _settling(
    outbox: Outbox, done: Sequence[str], bad: Sequence[str], failed: Sequence[Leased], limits: Limits
) -> list[Settle]:
    """What becomes of items. Those that failed let others pass, for longer each time."""
    found = [Settle(outbox.name, "ack", tuple(done))] if done else []
    found += [Settle(outbox.name, "reject", tuple(bad))] if bad else []
    by_span: dict[float, list[str]] = {}
    for lease in failed:
        span_s = min(AGAIN_S * 2 ** min(lease.deliveries - 1, 9), again_s_max(limits))
        by_span.setdefault(span_s, []).append(lease.token)
    return found + [
        Settle(outbox.name, "release", tuple(tokens), span_s) for span_s, tokens in by_span.items()
    ]


def _under_another_key(enqueue: Enqueue, number: int, token: str) -> Enqueue:
    """The last one is of this delivery alone: nobody can have used it."""
    return replace(enqueue, key=f"{enqueue.key}~{number if number < KEYS_MAX - 1 else token}")


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
    return "waiting", ""


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


def _may_bring(request: Request) -> TypeGuard[Append | Accept | Commit]:
    if isinstance(request, Accept | Commit) and isinstance(request.summary, Summary):
        return bool(request.summary.leases or request.summary.adopted)
    return isinstance(request, Append)


class _State(Struct):
    """Of an outbox in which something may wait."""

    moved_s: float
    """When all that was looked at was relayed last, or when it was opened."""
    is_noted: bool = False
    """Whether an item came since it was looked at last."""
    wait_s: float = AGAIN_S


class Open:
    """The outboxes of one replica in which something may wait, and when each is looked at next."""

    def __init__(self, document: ClusterDocument, replica: str) -> None:
        self._document: Final = document
        self._replica: Final = replica
        self._look_s_max: Final = min(LOOK_S_MAX, again_s_max(document.limits))
        self._came: Final = deque[str]()
        """Noted where requests are handled, perhaps in another thread than that where outboxes are looked at."""
        self._due: Final = DueList()
        self._states: Final[dict[str, _State]] = {}

    def note(self, request: Request) -> None:
        """A request is about to be handled. What comes back from dead letters, and what catch-up brings, comes with a summary."""
        if _may_bring(request) and self.is_own(request.object):
            self._came.append(request.object)

    def stalled_s(self, now_s: float) -> dict[str, float]:
        """By outbox in which something may wait, for how long something of it could not be relayed."""
        return {name: now_s - state.moved_s for name, state in list(self._states.items())}

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

    def told(self, outbox: Outbox, found: Found, why: str, now_s: float) -> None:
        """What was found there, and in words what failed, if something did."""
        state = self._states[outbox.name]
        if found in ("failed", "waiting"):
            self._due.push(outbox.name, now_s + (state.wait_s if found == "failed" else AGAIN_S))
            state.wait_s = min(2 * state.wait_s, self._look_s_max) if found == "failed" else AGAIN_S
            return
        state.wait_s = AGAIN_S
        if not why:
            state.moved_s = now_s
        if found == "some" or state.is_noted:
            self._due.push(outbox.name, now_s)
        else:
            del self._states[outbox.name]

    def _open(self, name: str, now_s: float) -> None:
        if name not in self._states:
            self._states[name] = _State(now_s)
            self._due.push(name, now_s)
