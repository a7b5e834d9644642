"""Mistakes of handing commands over: what is served twice, what is decided twice, and what goes in circles."""

from collections.abc import Sequence

from msgspec.structs import replace

from quorate.api_specs.messages import ForwardedRequest
from quorate.client_sdk.protocol.decisions.forwarding import Finish, ForwardingPolicy
from quorate.client_sdk.protocol.decisions.pending import CommandResult, PendingCommand
from quorate.replica.protocol.at_most_once import AtMostOnce
from tests.sim.planted.plant import Planting, patched


def serve_every_copy() -> Planting:
    """A host serves a forwarded request that it has met before, as if it were another one."""

    def problem(self: AtMostOnce, ask: ForwardedRequest, incarnation: str, now_us: int) -> str | None:
        del self, now_us
        return None if ask.incarnation == incarnation else "the replica was restarted meanwhile"

    return patched(AtMostOnce, problem=problem)


def decide_here_after_a_lost_answer() -> Planting:
    """A front end that hears nothing of its forwarded request decides the command itself, though it carries no key."""
    right = ForwardingPolicy._leave

    def leave(
        self: ForwardingPolicy, asked: PendingCommand, detail: str, finish: Finish, *, definite: bool
    ) -> None:
        del definite
        right(self, asked, detail, finish, definite=True)

    return patched(ForwardingPolicy, _leave=leave)


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
    right = ForwardingPolicy._leave

    def leave(
        self: ForwardingPolicy, asked: PendingCommand, detail: str, finish: Finish, *, definite: bool
    ) -> None:
        def tell(asked: PendingCommand, verdict: object) -> None:
            failed = getattr(verdict, "failed", None)
            if failed is not None:
                failed = replace(failed, reason="unavailable", definite=True)
            finish(asked, CommandResult(failed=failed))

        right(self, asked, detail, tell, definite=definite)

    return patched(ForwardingPolicy, _leave=leave)


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
