"""Standard interfaces over the handles: `dict`, `queue.Queue`, `asyncio.Queue`."""
