"""Dictionaries that REST callers list, whole or in pages: so many at a time, for each is held in memory until it is sent.

Owns whose turn it is. What a dictionary holds, the front end finds out; how large one may be, the cluster file says.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...adts.keys import by_key, name_key
from ...api_specs.limits import LISTINGS_MAX
from ...client_sdk.protocol.core.values import Done, Listed
from ..http.cancellation import ends_before_caller_goes
from ..http.fair_queue import Slots
from ..http.problems import Refusal
from .answers import json_response, labelled

List = Callable[[], Awaitable[Done]]


class Listing(Response):
    """The keys of a dictionary that begin with `prefix`, listed when there is one of `slots` for the caller, which it keeps until all is sent.

    `run` lists them, and maybe others, by name. Raises Refusal where `deadline_s` passes before there is one, and what `run` raises.
    """

    def __init__(
        self, slots: Slots, caller: Hashable, run: List, deadline_s: float, prefix: str = ""
    ) -> None:
        super().__init__()
        self._slots: Final = slots
        self._caller: Final = caller
        self._run: Final = run
        self._deadline_s: Final = deadline_s
        self._prefix: Final = prefix
        self._has_slot = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        listing = asyncio.ensure_future(self._listed())
        try:
            if await ends_before_caller_goes(listing, receive):
                await listing.result()(scope, receive, send)
        finally:
            if self._has_slot:
                self._slots.give(self._caller)

    async def _listed(self) -> Response:
        try:
            await self._slots.take(self._caller, self._deadline_s)
        except TimeoutError:
            detail = f"{LISTINGS_MAX} dictionaries are being listed at this replica already, or this caller has its share of them"
            raise Refusal("overloaded", detail) from None
        self._has_slot = True
        done = await self._run()
        return labelled(partial(_items, self._prefix), done)


def _items(prefix: str, found: Listed) -> Response:
    items = by_key(found.items, prefix)
    pairs = ",".join(f"{_quoted(key)}:{value}" for key, value in items.items())
    further = f',"next":{_quoted(name_key(found.next))}' if found.next else ""
    return json_response(f'{{"size":{len(items)},"items":{{{pairs}}}{further}}}')


def _quoted(key: str) -> str:
    return msgspec.json.encode(key).decode()
