"""Mistakes of handing wishes over: what is served twice, what is decided twice, and what goes in circles."""

from collections.abc import Sequence

from msgspec.structs import replace

from quorate.api_specs.messages import Ask
from quorate.client_sdk.protocol.decisions.forwarding import Finish, Handing
from quorate.client_sdk.protocol.decisions.pending import Asked, Verdict
from quorate.replica.protocol.at_most_once import Asks
from tests.sim.planted.plant import Planting, patched


def serve_every_copy() -> Planting:
    """A host serves an ask that it has met before, as if it were another one."""

    def problem(self: Asks, ask: Ask, now_us: int) -> str | None:
        del now_us
        return None if ask.incarnation == self.incarnation else "the replica was restarted meanwhile"

    return patched(Asks, problem=problem)


def decide_here_after_a_lost_answer() -> Planting:
    """A front end that hears nothing of its ask decides the wish itself, though it carries no key."""
    right = Handing._leave

    def leave(self: Handing, asked: Asked, detail: str, finish: Finish, *, definite: bool) -> None:
        del definite
        right(self, asked, detail, finish, definite=True)

    return patched(Handing, _leave=leave)


def hand_over_what_was_proposed() -> Planting:
    """A front end that lost its turn hands a wish over while its own accept for it is in doubt."""
    right = Handing.choose

    def choose(self: Handing, batch: Sequence[Asked], now_s: float) -> tuple[str, list[Asked]] | None:
        for asked in batch:
            asked.is_proposed = False
        return right(self, batch, now_s)

    return patched(Handing, choose=choose)


def lost_answers_did_nothing() -> Planting:
    """A caller whose ask was lost is told that certainly nothing happened."""
    right = Handing._leave

    def leave(self: Handing, asked: Asked, detail: str, finish: Finish, *, definite: bool) -> None:
        def tell(asked: Asked, verdict: object) -> None:
            failed = getattr(verdict, "failed", None)
            if failed is not None:
                failed = replace(failed, reason="unavailable", definite=True)
            finish(asked, Verdict(failed=failed))

        right(self, asked, detail, tell, definite=definite)

    return patched(Handing, _leave=leave)


def hand_on_what_was_handed_over() -> Planting:
    """A host hands on to another one what it was asked to decide."""
    right = Handing.choose

    def choose(self: Handing, batch: Sequence[Asked], now_s: float) -> tuple[str, list[Asked]] | None:
        for asked in batch:
            asked.is_here = False
        return right(self, batch, now_s)

    return patched(Handing, choose=choose)
