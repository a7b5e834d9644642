"""The background task that relays what waits in the outboxes of a replica.

Owns the rhythm. What is done in which order is `quorate.replica.protocol.relay`'s business.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ...api_specs.outboxes import Outbox
from ...client_sdk.protocol.core.values import Operation
from ..logs.throttle import Troubles
from ..protocol.relay import Found, Open, Steps, relay, step_s
from ..service.member import Member, StoreLost
from .background import Background, FrontEnd

ROUND_S: Final = 0.02
"""How long an item waits before it is looked for."""
READY_S: Final = 0.1
"""How often one that must not vote yet looks whether it may."""
AT_ONCE_MAX: Final = 64
"""Outboxes that are emptied side by side."""
LOOKS_MAX: Final = 16
"""At one outbox, before others have their turn."""
PAGE: Final = 1000
"""Names of objects read at once, when the outboxes are looked for that hold something since before the start."""

_log = logging.getLogger(__name__)


class Relaying(Background):
    """Works for one member until `stop`; does nothing where no queue has outboxes."""

    def __init__(self, member: Member, front_end: FrontEnd[Operation]) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._front_end: Final = front_end
        self._step_s: Final = step_s(member.document.limits)
        self._stalled: Final[dict[str, str]] = {}
        """Why nothing more of an outbox could be relayed."""
        self._waits: Final = Troubles(_log, logging.WARNING)

    def start(self) -> None:
        """Begin, on the running event loop."""
        if self._member.outboxes is not None:
            self._begin(self._rounds(self._member.outboxes), "quorate-relaying")

    async def _rounds(self, outboxes: Open) -> None:
        with suppress(StoreLost):
            while not await self._outlived(self._find(outboxes), "relaying waits", "relaying"):
                await asyncio.sleep(READY_S)
            running = set[asyncio.Task[None]]()
            try:
                while True:
                    running = {each for each in running if not each.done()}
                    for outbox in outboxes.due(time.monotonic(), AT_ONCE_MAX - len(running)):
                        running.add(asyncio.create_task(self._relay(outboxes, outbox)))
                    await asyncio.sleep(ROUND_S)
            finally:
                for each in running:
                    each.cancel()

    async def _find(self, outboxes: Open) -> bool:
        """Look through the names of all queues, once; False while this replica must not vote."""
        if self._member.why_not_ready():
            return False
        after = ""
        while names := await self._member.run(lambda store: store.names("queue/", after, PAGE)):  # noqa: B023 - it is run at once
            outboxes.find(names, time.monotonic())
            after = names[-1]
        return True

    async def _relay(self, outboxes: Open, outbox: Outbox) -> None:
        found: Found = "some"
        why = ""
        try:
            for _ in range(LOOKS_MAX):
                steps = relay(outbox, self._member.document.limits)
                told = await self._outlived(self._run(steps), "relaying waits", "relaying")
                found, why = told or ("failed", "")
                self._note(outbox.name, found, why)
                if found != "some" or why:
                    break
        except StoreLost:
            return
        outboxes.told(outbox, found, why, time.monotonic())

    def _note(self, name: str, found: Found, why: str) -> None:
        """Log what keeps items in outboxes; of several, of one."""
        if why:
            self._stalled[name] = why
        elif found == "empty":
            self._stalled.pop(name, None)
        if self._stalled:
            first = min(self._stalled)
            self._waits.meet(f"items wait in outboxes, as in {first}: {self._stalled[first]}")
        else:
            self._waits.end()

    async def _run(self, steps: Steps) -> tuple[Found, str]:
        """What a generator of operations comes to."""
        operations: Sequence[Operation] = next(steps)
        while True:
            outcomes = await asyncio.gather(*(self._front_end.run(each, self._step_s) for each in operations))
            try:
                operations = steps.send(outcomes)
            except StopIteration as stop:
                result: tuple[Found, str] = stop.value
                return result
