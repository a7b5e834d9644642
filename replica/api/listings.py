"""Whole dictionaries that REST callers ask for: so many at a time, for each is held in memory until it is sent.

Owns whose turn it is. What a dictionary holds, the front end finds out; how large one may be, the cluster document says.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...adts.log import Value
from ...api_specs.limits import LISTINGS_MAX
from ..http.cancellation import ends_before_caller_goes
from ..http.problems import Refusal

List = Callable[[float], Awaitable[Mapping[str, Value]]]


class Listing(Response):
    """A dictionary, listed when there is one of `turns`, which it keeps until all is sent.

    `run` lists it within so many seconds. Raises Refusal where `deadline_s` passes first, and what `run` raises.
    """

    def __init__(self, turns: asyncio.Semaphore, run: List, deadline_s: float) -> None:
        super().__init__()
        self._turns: Final = turns
        self._run: Final = run
        self._deadline_s: Final = deadline_s
        self._has_turn = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See starlette.responses.Response."""
        listing = asyncio.ensure_future(self._listed())
        try:
            if await ends_before_caller_goes(listing, receive):
                await listing.result()(scope, receive, send)
        finally:
            if self._has_turn:
                self._turns.release()

    async def _listed(self) -> Response:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._deadline_s
        try:
            async with asyncio.timeout_at(until_s):
                self._has_turn = await self._turns.acquire()
        except TimeoutError:
            detail = f"{LISTINGS_MAX} dictionaries are being listed at this replica already"
            raise Refusal("overloaded", detail) from None
        found = await self._run(min(self._deadline_s, until_s - loop.time()))
        pairs = ",".join(f'"{key}":{value}' for key, value in sorted(found.items()))
        return Response(f'{{"size":{len(found)},"items":{{{pairs}}}}}', media_type="application/json")
