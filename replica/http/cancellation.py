"""Work for a caller who may go away meanwhile."""

import asyncio
from typing import Any, Final

from starlette.types import Receive

_TURNS: Final = 10
"""Of the event loop: enough to accept a connection, read a request from it, and read that it was closed behind it."""


async def ends_before_caller_goes(work: "asyncio.Future[Any]", receive: Receive) -> bool:
    """Whether `work` ended, with whatever came of it, while the caller was there; else it is cancelled."""
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        work.cancel()
        gone.cancel()


async def has_gone(receive: Receive) -> bool:
    """Whether the caller went away before its request was begun: while this process was held up, or the network was. What
    has come of the connection by now is read first."""
    gone = asyncio.ensure_future(_gone(receive))
    try:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        return gone.done()
    finally:
        gone.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
