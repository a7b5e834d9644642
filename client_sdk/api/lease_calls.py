"""The calls about leases that are more than a line: to be delivered items, and to say what becomes of them. Pure."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ...adts.log import Value
from ...api_specs.checking import LEASE_TOKEN_CHARS_MAX
from ...api_specs.commands import SettleResult
from ...api_specs.limits import DELIVERIES_MAX, LEASE_S_MAX, SETTLE_TOKENS_MAX, Limits
from ...api_specs.values import to_value
from ..errors import BadInput, LeaseLost
from ..protocol.core.values import Acquire, ClearDeadLetters, How, PurgeDelayed, Settle
from .calls import (
    UNBOUNDED,
    Call,
    Result,
    Told,
    check_seconds,
    check_taking,
    check_whole,
    single,
    some_or_null,
    spans,
)
from .leases import DeadLetter, Lease, lease_of

LEASE_S: Final = 30.0
"""How long a lease lasts whose caller does not say."""


def acquire(
    full: str, items_max: int, lease_s: float, wait_s: float, max_deliveries: int | None, limits: Limits
) -> Call[list[Lease]]:
    """Have items delivered. A history shows each as a list of its value, its token and how often it was delivered."""
    check_taking(items_max, wait_s, limits)
    if max_deliveries is not None:
        check_whole("max_deliveries", max_deliveries)
        if not 1 <= max_deliveries <= DELIVERIES_MAX:
            raise BadInput(
                f"max_deliveries is {max_deliveries}: use 1 to {DELIVERIES_MAX}, or leave it out for no maximum"
            )

    def told(records: Sequence[Any]) -> Sequence[Value]:
        return some_or_null(
            [Value(f'[{each.entry.value},"{each.token}",{each.deliveries}]') for each in records]
        )

    return Call(
        Acquire(full, items_max, checked_lease(lease_s), wait_s, max_deliveries or 0),
        (Told("acquire", full),) * items_max,
        lambda records: [lease_of(record) for record in records],
        told,
        wait_s,
    )


def settle(
    full: str,
    how: How,
    leases: Sequence[Lease | str],
    result: Callable[[SettleResult], Result],
    span_s: float = 0.0,
) -> Call[Result]:
    """End leases, or renew them; LeaseLost names those that were lost, and the others are settled."""
    tokens = tuple(lease.token if isinstance(lease, Lease) else lease for lease in leases)
    _check_tokens(tokens)

    def checked(settled: SettleResult) -> Result:
        if settled.lost:
            raise LeaseLost(settled.lost)
        return result(settled)

    def told(settled: SettleResult) -> Sequence[Value]:
        return [Value("false" if token in settled.lost else "true") for token in tokens]

    named = tuple(Told(how, full, value=to_value(token, UNBOUNDED)) for token in tokens)
    return Call(Settle(full, how, tokens, span_s), named, checked, told)


def _check_tokens(tokens: Sequence[Any]) -> None:
    if not 1 <= len(tokens) <= SETTLE_TOKENS_MAX:
        raise BadInput(f"{len(tokens)} leases: use 1 to {SETTLE_TOKENS_MAX} at once")
    for token in tokens:
        if not isinstance(token, str):
            kind = type(token).__name__
            raise BadInput(
                f"a {kind} is no lease: pass what acquire gave each by itself (*leases), or its token"
            )
        if not (1 <= len(token) <= LEASE_TOKEN_CHARS_MAX and token.isascii() and token.isprintable()):
            raise BadInput(f"{token!r} is no lease: pass what acquire gave, or its token")


def clear_dead(full: str, ids: Sequence[DeadLetter | str] | None, *, is_requeued: bool) -> Call[int]:
    """Clear dead letters away, all where `ids` is None: how many."""
    if ids is not None and (isinstance(ids, str | DeadLetter) or not isinstance(ids, Iterable)):
        raise BadInput("one dead letter in place of several: pass a list of it")
    named = tuple(each.id if isinstance(each, DeadLetter) else each for each in ids or ())
    if ids is not None and not named:
        raise BadInput("no dead letter is named: pass some, or leave them out for all")
    for each in named:
        if not isinstance(each, str):
            raise BadInput(
                f"a {type(each).__name__} is no dead letter: pass what dead_letters gave, or its id"
            )
    told = Told("requeue_dead" if is_requeued else "purge_dead", full)
    return single(told, ClearDeadLetters(full, named, is_requeued), int)


def purge_delayed(full: str, due_after_s: float) -> Call[int]:
    """Purge items that are due in so long or later: how many."""
    due_after_s = spans(due_after_s, None, "due_after_s").delay_s
    return single(Told("purge_delayed", full), PurgeDelayed(full, due_after_s), int)


def checked_lease(lease_s: float) -> float:
    """`lease_s` itself; BadInput when a lease may not last so long."""
    check_seconds("lease_s", lease_s)
    if not 0 < lease_s <= LEASE_S_MAX:
        raise BadInput(f"lease_s is {lease_s}: use above 0 to {LEASE_S_MAX:.0f} seconds")
    return lease_s
