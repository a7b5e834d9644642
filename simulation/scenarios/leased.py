"""Worlds with leases: which seeds there are, and what their callers do with what they hold.

Owns the derivation from the seed, and the callers' habits: some leases are never settled, as when a holder dies, some are
settled twice, or under another token than the latest. It must not know what is right (`quorate.simulation.judging.lease_checkers`).
"""

import random
from collections import defaultdict
from typing import Any, Final

from msgspec.structs import replace

from ...adts.log import Value
from ...api_specs.cluster import checked
from ...client_sdk.protocol.core.values import (
    AT_ONCE,
    Acquire,
    ClearDeadLetters,
    Dequeue,
    Enqueue,
    Operation,
    Peek,
    QueueSize,
    ReadLeases,
    Settle,
    Spans,
)
from .scenario import Caller, Leasing, Scenario, scenario
from .varied import varied

QUEUE: Final = "queue/q"
TIMED: Final = "~t"
"""Ends the values of items that are due later, or expire."""
WORDS: Final = ("Enq", "Acquire", "Tend", "Deq", "Peek", "Size", "Book", "Requeue")
ENDINGS: Final = {"ack": 6, "release": 2, "reject": 1, "drop": 1, "renew": 2}


def leased(seed: int) -> Scenario:
    """The scenario of a seed: one queue, whose callers acquire and settle."""
    what = varied(seed)
    if what.is_forgetful:
        what = scenario(seed)
    rng = random.Random(f"leased {seed}")
    limits = what.document.limits
    if is_tight := rng.random() < 0.25:
        # Room for the payloads of some six items.
        limits = replace(limits, page_bytes_max=1000, value_bytes_max=1000, body_bytes_max=4000 + 120)
    what = replace(what, document=checked(replace(what.document, limits=limits)), objects=(QUEUE,))
    return with_leases(what, rng, is_tight=is_tight)


def with_leases(what: Scenario, rng: random.Random, *, is_tight: bool) -> Scenario:
    """The scenario, with callers that acquire from its queues."""
    leasing = Leasing(
        lease_s=rng.choice([0.02, 0.1, 0.5, 5.0]),
        deliveries_max=rng.choice([0, 0, 2, 3]),
        timed=rng.choice([0.0, 0.0, 0.4]),
        forgotten=rng.choice([0.0, 0.2, 0.5]),
        is_tight=is_tight,
    )
    words = {word: rng.choice([0, 0, 1]) for word in ("Deq", "Peek", "Size", "Book", "Requeue")}
    return replace(
        what,
        weights=what.weights | words | {"Enq": 4, "Acquire": 4, "Tend": 6},
        keyed=min(what.keyed, 0.3),
        leasing=leasing,
    )


def is_timed(value: Any) -> bool:
    """Whether the item is due later, or expires."""
    return str(value).endswith(f'{TIMED}"')


class LeaseCaller(Caller):
    """A caller that acquires and settles, with what it holds."""

    def __init__(self, what: Scenario, leasing: Leasing, who: str, rng: random.Random) -> None:
        super().__init__(what, who, rng)
        self._leasing: Final = leasing
        self._held: defaultdict[str, list[str]] = defaultdict(list)
        """The tokens of its leases, by queue."""

    def heard(self, operation: Operation, result: Any) -> None:
        """See Caller. Some leases are forgotten at once."""
        if isinstance(operation, Acquire):
            self._held[operation.object] += [
                each.token for each in result if self._rng.random() >= self._leasing.forgotten
            ]

    def _on_queue(self, name: str) -> Operation:
        return self._on(self._chosen(*WORDS), name)

    def _on(self, word: str, name: str) -> Operation:
        rng = self._rng
        match word:
            case "Enq":
                return self._enqueue(name, self._value())
            case "Tend" if self._held[name]:
                return self._settle_leases(name)
            case "Deq":
                return Dequeue(name, rng.choice([1, 1, 2]))
            case "Peek":
                return Peek(name)
            case "Size":
                return QueueSize(name)
            case "Book":
                return ReadLeases(name)
            case "Requeue":
                return ClearDeadLetters(name, (), is_requeued=True)
        wait_s = rng.choice([0.0, 0.0, 0.05])
        return Acquire(
            name, rng.choice([1, 1, 2, 5]), self._leasing.lease_s, wait_s, self._leasing.deliveries_max
        )

    def _enqueue(self, name: str, value: Value) -> Enqueue:
        if self._rng.random() >= self._leasing.timed:
            return Enqueue(name, (value,), spans=AT_ONCE)
        delay_s = self._rng.choice([0.0, 0.02, 0.3])
        expires_s = self._rng.choice([0.0, 0.05, 0.5])
        spans = Spans(delay_s, expires_s if expires_s > delay_s else 0.0)
        return Enqueue(name, (Value(f'{value[:-1]}{TIMED}"'),), spans=spans)

    def _settle_leases(self, name: str) -> Settle:
        rng = self._rng
        how: Any = rng.choices(list(ENDINGS), list(ENDINGS.values()))[0]
        held = self._held[name]
        some = rng.sample(held, min(len(held), rng.choice([1, 1, 2])))
        if how != "renew":
            # A few are kept, and settled again.
            self._held[name] = [token for token in held if token not in some or rng.random() < 0.1]
        span_s = {"renew": self._leasing.lease_s, "release": rng.choice([0.0, 0.05])}.get(how, 0.0)
        return Settle(name, how, tuple(some), span_s)
