"""Mistakes on the way of an item through an outbox."""

from collections.abc import Generator

from msgspec.structs import replace

from quorate.adts.log import Leased
from quorate.api_specs.outboxes import Outbox
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.rounds import Event
from quorate.client_sdk.protocol.core.values import Enqueue, Outcome
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.client_sdk.protocol.operations import outboxes
from quorate.client_sdk.protocol.operations.blind import Attempt, Blind
from quorate.replica.protocol import relay
from quorate.replica.protocol.relay import Open, Steps
from tests.sim.planted.plant import Planting, patched


def relay_without_a_key() -> Planting:
    """What an outbox keeps is relayed without an idempotency key."""
    right = relay._enqueue

    def enqueue(outbox: Outbox, lease: Leased) -> Enqueue | None:
        found = right(outbox, lease)
        return None if found is None else replace(found, key="")

    return patched(relay, _enqueue=enqueue)


def count_times_anew() -> Planting:
    """When a relayed item is due is counted from when it is relayed, so that a repeat says something else."""
    right = relay._enqueue

    def enqueue(outbox: Outbox, lease: Leased) -> Enqueue | None:
        found = right(outbox, lease)
        return (
            None
            if found is None
            else replace(found, spans=replace(found.spans, since_us=0, delay_s=lease.deliveries / 1000))
        )

    return patched(relay, _enqueue=enqueue)


def accept_what_failed() -> Planting:
    """An item of an outbox is accepted though its enqueue failed, or may have."""

    def is_to_repeat(outcome: Outcome) -> bool:
        del outcome
        return False

    return patched(relay, _is_to_repeat=is_to_repeat)


def forget_leases() -> Planting:
    """An outbox counts as empty though an item is under a lease of a front end that has died."""

    def leased(outbox: Outbox) -> Steps:
        del outbox
        yield from ()
        return "empty", ""

    return patched(relay, _leased=leased)


def find_nothing_from_before() -> Planting:
    """A replica that starts does not look for what its outboxes kept before."""

    def find(self: Open, names: object, now_s: float) -> None:
        del self, names, now_s

    return patched(Open, find=find)


def repeat_old_keys() -> Planting:
    """What was agreed on under a record's key is sent to the replicas again, however long ago that was."""

    def settle_old(self: Blind, attempts: list[Attempt]) -> Generator[float, Event, None]:
        del self, attempts
        yield from ()

    return patched(Blind, _settle_old=settle_old)


def insist_on_one_key() -> Planting:
    """An item whose key is too old to tell is tried again under the same one."""
    return patched(relay, KEYS_MAX=1)


def ask_no_outbox() -> Planting:
    """A queue counts as empty though items may wait in its outboxes."""
    return patched(FrontEnd, has_exact_empty=lambda _self, _name: False)


def look_at_outboxes_only_afterwards() -> Planting:
    """A queue counts as empty if a look after that decision finds its outboxes empty, though an item may have passed through one meanwhile."""
    return patched(outboxes, _agree=lambda _, after: not after.others)


def look_at_outboxes_only_before() -> Planting:
    """A queue counts as empty if a look before that decision found its outboxes empty, though an item may have come to one meanwhile."""
    return patched(outboxes, _agree=lambda before, _: len(before.empty) == len(before.horizons) > 0)


def overlook_what_is_being_relayed() -> Planting:
    """An outbox counts as empty though its relay is at work on an item."""

    def is_empty(outbox: LogCache) -> bool:
        return not (outbox.has_entries or outbox.summary.adopted)

    return patched(outboxes, _is_empty=is_empty)
