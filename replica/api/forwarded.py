"""Serving forwarded requests: the replica's front end decides the commands of other front ends, which others wait for as well.

Owns the way of a forwarded request from checked message to answer. Must not know HTTP.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import Final

from ...api_specs.commands import ForwardableCommand
from ...api_specs.messages import Denied, ForwardedReply, ForwardedRequest, Granted
from ...client_sdk.errors import Closed
from ...client_sdk.protocol.core.values import Serve
from ...client_sdk.transport.driver import Driver
from ...timestamps.clock import Now
from ...timestamps.timestamp import site
from ..protocol.at_most_once import AtMostOnce, result_of
from ..service.member import Member, StoreLost
from ..store.group_commit import Overloaded
from ..store.store import StorageFailed


class Serving:
    """Serves forwarded requests at `member`, with the front end that `front_end` gives once there is one."""

    def __init__(self, member: Member, front_end: Callable[[], Driver | None]) -> None:
        self.member: Final = member
        self._front_end: Final = front_end
        self.outcomes: Final = {"granted": 0, "denied": 0}
        """How many commands ended how."""
        self._at_most_once: Final = AtMostOnce(member.document.clock.offset_max_s)

    async def serve(self, request: ForwardedRequest) -> ForwardedReply:
        """The answer to a checked forwarded request."""
        if not request.commands:
            return self._answer(())
        asked = self.member.now()
        if self._at_most_once.is_stuck(self.member.folder.incarnation, self.member.wall_us()):
            with suppress(StoreLost, Overloaded, StorageFailed):  # The next forwarded request tries again.
                await self.member.take_another_incarnation()
        incarnation = self.member.folder.incarnation
        if (problem := self._at_most_once.problem(request, incarnation, self.member.wall_us())) is not None:
            return self._answer((Denied(problem),) * len(request.commands))
        is_shared = self._at_most_once.is_shared(request, time.monotonic())
        front_end, reasons = self._front_end(), self.member.why_not_ready()
        if front_end is None or reasons:
            return self._denied(request, "; ".join(reasons) or "the replica is starting")
        if not self._at_most_once.begin(len(request.commands)):
            return self._denied(request, "too many commands of other front ends wait here")
        try:
            traces = self.member.traces
            with nullcontext() if traces is None else traces.below(request.trace):
                commands = [
                    asyncio.create_task(self._one(front_end, request, command, asked))
                    for command in request.commands
                ]
            return self._answer(tuple(await asyncio.gather(*commands)), is_shared=is_shared)
        finally:
            self._at_most_once.end(len(request.commands))

    async def _one(
        self, front_end: Driver, request: ForwardedRequest, command: ForwardableCommand, asked: Now
    ) -> Granted | Denied:
        try:
            serve, sender = Serve(request.object, command), site(request.id)
            return result_of(await front_end.run(serve, request.deadline_s, turn=sender, asked=asked))
        except Closed as error:
            return Denied("the replica is stopping", error.definite)

    def _denied(self, request: ForwardedRequest, detail: str) -> ForwardedReply:
        """Certainly not served: the forwarded request was met, so that no copy of it will be."""
        return self._answer((Denied(detail, definite=True),) * len(request.commands))

    def _answer(self, results: tuple[Granted | Denied, ...], *, is_shared: bool = False) -> ForwardedReply:
        granted = sum(isinstance(result, Granted) for result in results)
        self.outcomes["granted"] += granted
        self.outcomes["denied"] += len(results) - granted
        return ForwardedReply(self.member.id, self.member.folder.incarnation, results, is_shared)
