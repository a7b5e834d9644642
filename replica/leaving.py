"""Work for a caller who may go away meanwhile."""

import asyncio
from typing import Any

from starlette.types import Receive


async def ends_before_caller_goes(work: "asyncio.Future[Any]", receive: Receive) -> bool:
    """Whether `work` ended, with whatever came of it, while the caller was there; else it is cancelled."""
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        work.cancel()
        gone.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
