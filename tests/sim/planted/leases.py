"""Mistakes of leases: who may settle one, what is kept of it, when it comes back, and what there is room for."""

from typing import Any

from msgspec.structs import replace

from quorate.adts.log import DeadReason, Leased, Seen, Summary
from quorate.api_specs.commands import AcquireCommand, SettleCommand
from quorate.client_sdk.protocol.decisions import payloads, proposer
from quorate.client_sdk.protocol.decisions.lease_table import Context, Ledger
from quorate.client_sdk.protocol.decisions.summary_builder import SummaryBuilder
from tests.sim.planted.plant import Planting, patched


def settle_by_item() -> Planting:
    """An item is settled by whoever names it, though it was handed to another since."""
    right = Ledger.settle

    def settle(self: Ledger, command: SettleCommand) -> Any:
        now = {record.entry.id: record.token for record in self.leases}
        latest = (now.get(token.partition("/")[2], token) for token in command.tokens)
        return right(self, replace(command, tokens=tuple(latest)))

    return patched(Ledger, settle=settle)


def end_with_the_deadline() -> Planting:
    """A lease that is over cannot be settled, though the item was given to nobody else."""
    right = Ledger.settle

    def settle(self: Ledger, command: SettleCommand) -> Any:
        over = [record for record in self.leases if record.until_us < self._context.earliest_us]
        for record in over:
            self._put(replace(record, is_held=False))
        return right(self, command)

    return patched(Ledger, settle=settle)


def keep_what_is_accepted() -> Planting:
    """What was accepted is still delivered again."""
    right = Ledger._end

    def end(self: Ledger, record: Leased, command: SettleCommand, until_us: int) -> None:
        if command.how == "accept":
            self._put(replace(record, is_held=False))
        else:
            right(self, record, command, until_us)

    return patched(Ledger, _end=end)


def drop_what_expired() -> Planting:
    """An expired item is gone, though there is room for its dead letter."""
    right = Ledger._make_dead

    def make_dead(self: Ledger, record: Leased, reason: DeadReason) -> None:
        if reason == "expired":
            self._drop(record)
        else:
            right(self, record, reason)

    return patched(Ledger, _make_dead=make_dead)


def forget_how_leases_ended() -> Planting:
    """How leases ended is not remembered: a repeated accept is told that its lease was lost."""
    return patched(Ledger, settled_since=lambda *_: ())


def leave_released_ones_held() -> Planting:
    """Who released an item may still settle it."""
    right = Ledger._end

    def end(self: Ledger, record: Leased, command: SettleCommand, until_us: int) -> None:
        if command.how == "release":
            self._put(replace(record, until_us=0))
        else:
            right(self, record, command, until_us)

    return patched(Ledger, _end=end)


def hand_out_at_once() -> Planting:
    """An item is delivered again before its lease is over."""
    right = Ledger._acquire_again

    def acquire_again(self: Ledger, command: AcquireCommand) -> tuple[list[Leased], bool]:
        for record in self.leases:
            self._put(replace(record, until_us=0))
        return right(self, command)

    return patched(Ledger, _acquire_again=acquire_again)


def never_hand_out_again() -> Planting:
    """What a dead holder held does not come back."""
    return patched(Ledger, _acquire_again=lambda *_: ([], False))


def count_no_deliveries() -> Planting:
    """Each delivery counts as the first, so that two leases of an item have one name."""
    right = Ledger._deliver

    def hand_out(self: Ledger, record: Leased, command: AcquireCommand) -> Leased:
        return right(self, replace(record, deliveries=0), command)

    return patched(Ledger, _deliver=hand_out)


def hand_out_the_latest_first() -> Planting:
    """What comes back is delivered in the wrong order."""
    right = Ledger._acquire_again

    def acquire_again(self: Ledger, command: AcquireCommand) -> tuple[list[Leased], bool]:
        given, is_withheld = right(self, command)
        return given[::-1], is_withheld

    return patched(Ledger, _acquire_again=acquire_again)


def pass_incomplete_unnoted() -> Planting:
    """An entry that may be incomplete is delivered without being noted as ambiguous."""
    right = SummaryBuilder.pass_over

    def pass_over(self: SummaryBuilder, found: Seen) -> None:
        before = dict(self.ambiguous)
        right(self, found)
        self.ambiguous = before

    return patched(SummaryBuilder, pass_over=pass_over)


def keep_no_payload() -> Planting:
    """What is delivered is kept as it is known, though that be by name only."""
    right = payloads.missing_in

    def missing_in(summary: Summary, handed: Any) -> Any:
        return right(replace(summary, leases=(), dead=()), handed)

    return patched(proposer, missing_in=missing_in)


def have_room_for_all() -> Planting:
    """A queue takes in as many leases and dead letters as anybody asks for."""
    init = Ledger.__init__

    def without_bounds(ledger: Ledger, summary: Summary, context: Context) -> None:
        init(ledger, summary, replace(context, leases_bytes_max=1 << 60))

    return patched(Ledger, __init__=without_bounds)
