"""Mistakes of handing commands over: what is served twice, what is decided twice, and what goes in circles."""

from collections.abc import Sequence

from msgspec.structs import replace

from quorate.api_specs.messages import ForwardedRequest
from quorate.client_sdk.protocol.core.values import Failed
from quorate.client_sdk.protocol.decisions.forwarding import Finish, ForwardingPolicy
from quorate.client_sdk.protocol.decisions.pending import CommandResult, PendingCommand
from quorate.replica.protocol.at_most_once import AtMostOnce
from tests.sim.planted.plant import Planting, patched


def serve_every_copy() -> Planting:
    """A host serves a forwarded request that it has met before, as if it were another one."""

    def problem(self: AtMostOnce, ask: ForwardedRequest, now_us: int) -> str | None:
        del now_us
        return None if ask.incarnation == self.incarnation else "the replica was restarted meanwhile"

    return patched(AtMostOnce, problem=problem)


def decide_here_after_a_lost_answer() -> Planting:
    """A front end that hears nothing of its forwarded request decides the command itself, though it carries no key."""
    right = ForwardingPolicy._lose

    def lose(self: ForwardingPolicy, asked: PendingCommand, failed: Failed, finish: Finish) -> None:
        right(self, asked, replace(failed, definite=True), finish)

    def leave_to(
        self: ForwardingPolicy, coordinator: str, token: int, batch: list[PendingCommand], finish: Finish
    ) -> None:
        del coordinator, token
        for asked in batch:
            right(self, asked, Failed("unavailable", "late", definite=True), finish)

    return patched(ForwardingPolicy, _lose=lose, _leave_to=leave_to)


def hand_over_what_was_proposed() -> Planting:
    """A front end that lost its term forwards a command while its own accept for it is in doubt."""
    right = ForwardingPolicy.choose

    def choose(
        self: ForwardingPolicy, batch: Sequence[PendingCommand], now_s: float
    ) -> tuple[str, list[PendingCommand]] | None:
        for asked in batch:
            asked.is_proposed = False
        return right(self, batch, now_s)

    return patched(ForwardingPolicy, choose=choose)


def lost_answers_did_nothing() -> Planting:
    """A caller whose forwarded request was lost is told that certainly nothing happened."""
    right = ForwardingPolicy._lose

    def lose(self: ForwardingPolicy, asked: PendingCommand, failed: Failed, finish: Finish) -> None:
        def tell(asked: PendingCommand, verdict: CommandResult) -> None:
            assert verdict.failed is not None
            nothing = replace(verdict.failed, reason="unavailable", definite=True)
            finish(asked, CommandResult(failed=nothing))

        right(self, asked, failed, tell)

    def leave_to(
        self: ForwardingPolicy, coordinator: str, token: int, batch: list[PendingCommand], finish: Finish
    ) -> None:
        del token
        for asked in batch:
            lose(self, asked, Failed("unknown", f"{coordinator} is late", definite=False), finish)

    return patched(ForwardingPolicy, _lose=lose, _leave_to=leave_to)


def hand_on_what_was_handed_over() -> Planting:
    """A host hands on to another one what it was asked to decide."""
    right = ForwardingPolicy.choose

    def choose(
        self: ForwardingPolicy, batch: Sequence[PendingCommand], now_s: float
    ) -> tuple[str, list[PendingCommand]] | None:
        for asked in batch:
            asked.is_here = False
        return right(self, batch, now_s)

    return patched(ForwardingPolicy, choose=choose)
