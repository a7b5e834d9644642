"""Calls about leases: what the methods mean, once for the asyncio and the blocking client. Pure.

As `quorate.client_sdk.api.calls`, which has the other methods of a queue.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from ...adts.log import Value, count_leases
from ...api_specs.checking import ID_CHARS_MAX
from ...api_specs.commands import SettleResult
from ...api_specs.limits import DELIVERIES_MAX, LEASE_S_MAX, SETTLE_TOKENS_MAX, Limits
from ...api_specs.values import to_value
from ..errors import BadInput, LeaseLost
from ..protocol.core.values import Acquire, ClearDeadLetters, LeaseBook, ReadLeases, Settle
from .calls import NULL, UNBOUNDED, Call, Told, full_name, spans
from .leases import DeadLetter, Lease, LeaseCounts, dead_letter_of, lease_of

LEASE_S: Final = 30.0
"""How long a lease lasts whose caller does not say."""

How = Literal["accept", "release", "reject", "drop", "renew"]


def acquire(
    name: str, items_max: int, lease_s: float, wait_s: float, max_deliveries: int | None, limits: Limits
) -> Call[list[Lease]]:
    """Have items delivered. A history shows each as a list of its value, its token and how often it was delivered."""
    if not 1 <= items_max <= limits.batch_items_max:
        raise BadInput(f"max_items is {items_max}: use 1 to {limits.batch_items_max} (batch_items_max)")
    if not 0 <= wait_s <= limits.wait_s_max:
        raise BadInput(f"wait_s is {wait_s}: use 0 to {limits.wait_s_max} seconds (wait_s_max)")
    if max_deliveries is not None and not 1 <= max_deliveries <= DELIVERIES_MAX:
        raise BadInput(
            f"max_deliveries is {max_deliveries}: use 1 to {DELIVERIES_MAX}, or leave it out for no maximum"
        )
    full = full_name("queue", name)
    operation = Acquire(full, items_max, _span("lease_s", lease_s), wait_s, max_deliveries or 0)

    def told(records: Sequence[Any]) -> Sequence[Value]:
        return [Value(f'[{each.entry.value},"{each.token}",{each.deliveries}]') for each in records] or [NULL]

    return Call(
        operation,
        (Told("acquire", full),) * items_max,
        lambda records: [lease_of(record) for record in records],
        told,
        wait_s,
    )


def settle(name: str, how: How, leases: Sequence[Lease | str], span_s: float = 0.0) -> Call[None]:
    """End leases; LeaseLost names those that were lost, and the others are ended."""
    return _settling(name, how, leases, span_s, lambda _: None)


def renew(name: str, leases: Sequence[Lease | str], lease_s: float) -> Call[float]:
    """Renew leases: their new deadline."""
    return _settling(name, "renew", leases, _span("lease_s", lease_s), lambda settled: settled.until_us / 1e6)


def release(name: str, leases: Sequence[Lease | str], delay_s: float) -> Call[None]:
    """Give leases back."""
    return settle(name, "release", leases, spans(delay_s, None).delay_s)


def _settling(
    name: str, how: How, leases: Sequence[Lease | str], span_s: float, result: Callable[[SettleResult], Any]
) -> Call[Any]:
    tokens = tuple(lease.token if isinstance(lease, Lease) else lease for lease in leases)
    if not 1 <= len(tokens) <= SETTLE_TOKENS_MAX:
        raise BadInput(f"{len(tokens)} leases: use 1 to {SETTLE_TOKENS_MAX} at once")
    for token in tokens:
        if not isinstance(token, str):
            kind = type(token).__name__
            raise BadInput(
                f"a {kind} is no lease: pass what acquire gave each by itself (*leases), or its token"
            )
        if not (1 <= len(token) <= ID_CHARS_MAX and token.isascii() and token.isprintable()):
            raise BadInput(f"{token!r} is no lease: pass what acquire gave, or its token")

    def checked(settled: SettleResult) -> Any:
        if settled.lost:
            raise LeaseLost(settled.lost)
        return result(settled)

    def told(settled: SettleResult) -> Sequence[Value]:
        return [Value("false" if token in settled.lost else "true") for token in tokens]

    full = full_name("queue", name)
    operation = Settle(full, how, tokens, span_s)
    return Call(
        operation,
        tuple(Told(how, full, value=to_value(token, UNBOUNDED)) for token in tokens),
        checked,
        told,
    )


def dead_letters(name: str) -> Call[list[DeadLetter]]:
    """List the dead letters."""

    def listed(book: LeaseBook) -> list[DeadLetter]:
        return [dead_letter_of(dead) for dead in book.dead]

    full = full_name("queue", name)
    told = (Told("dead_letters", full),)
    return Call(ReadLeases(full), told, listed, lambda book: [Value(str(len(book.dead)))])


def lease_counts(name: str) -> Call[LeaseCounts]:
    """Count what is delivered, what waits to be, and dead letters."""

    def counts(book: LeaseBook) -> LeaseCounts:
        return count_leases(book.leases, book.dead)

    full = full_name("queue", name)
    return Call(
        ReadLeases(full), (Told("leases", full),), counts, lambda book: [Value(str(len(book.leases)))]
    )


def clear_dead(name: str, ids: Sequence[DeadLetter | str] | None, *, is_requeued: bool) -> Call[int]:
    """Clear dead letters away, all where `ids` is None: how many."""
    if isinstance(ids, str | DeadLetter):
        raise BadInput("one dead letter in place of several: pass a list of it")
    named = tuple(each.id if isinstance(each, DeadLetter) else each for each in ids or ())
    if ids is not None and not named:
        raise BadInput("no dead letter is named: pass some, or leave them out for all")
    full = full_name("queue", name)
    told = (Told("requeue_dead" if is_requeued else "discard_dead", full),)
    return Call(ClearDeadLetters(full, named, is_requeued), told, int, lambda number: [Value(str(number))])


def _span(what: str, seconds: float) -> float:
    if not 0 < seconds <= LEASE_S_MAX:
        raise BadInput(f"{what} is {seconds}: use above 0 to {LEASE_S_MAX:.0f} seconds")
    return seconds
