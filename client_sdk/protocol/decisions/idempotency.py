"""Idempotency keys: how a summary remembers them, and what they are refused for. Pure.

A key is remembered with the decision that it took effect by. Whoever repeats it must repeat the arguments, too (the HTTP
API working group's draft "The Idempotency-Key HTTP Header Field", section 2.7): a digest tells.
"""

from collections.abc import Hashable, Iterator, Sequence
from hashlib import sha256
from typing import Final

from ....adts.log import Decision, Entry, Value
from ....api_specs.limits import KEYED_ENTRIES_MAX
from ....api_specs.values import payload_bytes, text_bytes
from ..core.turns import Shares
from ..core.values import Failed

DIGEST_CHARS: Final = 16
"""Hexadecimal digits: 64 bits, against mistakes, not against malice."""

TOO_MANY_KEYS: Final = Failed(
    "too-many-keys",
    "as many operations with an idempotency key on this object are remembered as may be, of all callers, or of this one as are left for others",
    definite=True,
)

TOO_MANY_TAKEN: Final = Failed(
    "too-many-keys",
    "too much was taken of late that may not be stored by a quorum yet, and is remembered for those who stored it",
    definite=True,
)

KEY_REUSED: Final = Failed(
    "key-reused", "the idempotency key was used with other arguments: use a new key", definite=True
)


KEY_TOO_OLD: Final = Failed(
    "unknown",
    "what was agreed on under the idempotency key is older than any repeat may be: nobody can tell any more whether it was done",
    definite=False,
)


NO_ROOM_YET: Final = Failed(
    "unknown", "it was agreed on long ago, and the queue has no room to put it in force", definite=False
)


class Memory:
    """Room for what an object remembers of decisions under keys, in shares of the callers who asked for them."""

    def __init__(self, decisions_max: int, bytes_max: int) -> None:
        self._bytes_max: Final = bytes_max
        self._decisions: Final = Shares(decisions_max)
        self._entries: Final = Shares(KEYED_ENTRIES_MAX)
        self._bytes: Final = Shares(bytes_max)

    def add(self, caller: Hashable, decision: Decision) -> None:
        """It is remembered."""
        for room, size in self._takes(decision.taken, decision.result):
            room.take(caller, size)

    def has_room(self, caller: Hashable, entries: Sequence[Entry], result: Value | None) -> bool:
        """Whether another decision of that caller can be remembered, with what it names. A single one can, whatever it weighs."""
        return all(room.may_take(caller, size) for room, size in self._takes(entries, result))

    def _takes(self, entries: Sequence[Entry], result: Value | None) -> Iterator[tuple[Shares, int]]:
        """What a decision takes, and of which room; what it takes nothing of does not bound it."""
        yield self._decisions, 1
        if entries:
            yield self._entries, len(entries)
        if size := payload_bytes(entries) + text_bytes(result or ""):
            yield self._bytes, min(size, self._bytes_max)


def decision_id(operation: str, key: str) -> str:
    """How a summary remembers the idempotency key: for one kind of operation, since an enqueue and a dequeue that share
    a key are two."""
    return f"{operation} {key}" if key else ""


def digest(*values: str | None) -> str:
    """Arguments in short: values as `comparable` text, so that equal ones have equal digests; None is none of them."""
    text = "\n".join("" if value is None else value for value in values)
    return sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
