"""Serving asks: the replica's front end decides the wishes of other front ends, which others wait for as well.

Owns the way of an ask from checked message to answer. Must not know HTTP.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Final

from ...api_specs.messages import Ask, Denied, Granted, Served
from ...api_specs.wishes import WishOver
from ...client_sdk.errors import Closed
from ...client_sdk.protocol.core.values import Serve
from ..protocol.at_most_once import Asks, result_of
from ..service.member import Member
from .object_api import FrontEnd


class Serving:
    """Serves asks at `member`, with the front end that `front_end` gives once there is one."""

    def __init__(self, member: Member, front_end: Callable[[], FrontEnd | None]) -> None:
        self.member: Final = member
        self._front_end: Final = front_end
        self.outcomes: Final = {"granted": 0, "denied": 0}
        """How many wishes ended how."""
        self._asks: Final = Asks(member.folder.incarnation, member.document.clock.offset_max_s)

    async def serve(self, ask: Ask) -> Served:
        """The answer to a checked ask."""
        if not ask.wishes:
            return self._answer(())
        if (problem := self._asks.problem(ask, self.member.wall_us())) is not None:
            return self._answer((Denied(problem),) * len(ask.wishes))
        is_shared = self._asks.is_shared(ask, time.monotonic())
        front_end, reasons = self._front_end(), self.member.why_not_ready()
        if front_end is None or reasons:
            return self._denied(ask, "; ".join(reasons) or "the replica is starting")
        if not self._asks.begin(len(ask.wishes)):
            return self._denied(ask, "too many wishes of other front ends wait here")
        try:
            traces = self.member.traces
            with nullcontext() if traces is None else traces.below(ask.trace):
                wishes = [asyncio.create_task(self._one(front_end, ask, wish)) for wish in ask.wishes]
            return self._answer(tuple(await asyncio.gather(*wishes)), is_shared=is_shared)
        finally:
            self._asks.end(len(ask.wishes))

    async def _one(self, front_end: FrontEnd, ask: Ask, wish: WishOver) -> Granted | Denied:
        try:
            return result_of(await front_end.run(Serve(ask.object, wish), ask.deadline_s))
        except Closed as error:
            return Denied("the replica is stopping", error.definite)

    def _denied(self, ask: Ask, detail: str) -> Served:
        """Certainly not served: the ask was met, so that no copy of it will be."""
        return self._answer((Denied(detail, definite=True),) * len(ask.wishes))

    def _answer(self, results: tuple[Granted | Denied, ...], *, is_shared: bool = False) -> Served:
        granted = sum(isinstance(result, Granted) for result in results)
        self.outcomes["granted"] += granted
        self.outcomes["denied"] += len(results) - granted
        return Served(self.member.id, self._asks.incarnation, results, is_shared)
