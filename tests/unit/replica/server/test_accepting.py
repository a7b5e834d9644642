"""Many connections at once: all are taken in a few turns of the event loop, so that who comes last need not wait for what those
before want."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
import uvloop

from quorate.replica.server.accepting import ACCEPTS_MAX
from quorate.replica.server.shutdown import Server

CALLERS = 600
TURNS_MAX = 20


async def never(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("nobody asks")


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Server, Any]]:
    """A server that listens, and where."""
    config = uvicorn.Config(
        never, port=0, loop="uvloop", lifespan="off", log_config=None, backlog=2 * CALLERS
    )
    config.load()
    server = Server(config, None)  # type: ignore[arg-type]  # nothing is drained
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server, server.servers[0].sockets[0].getsockname()
    finally:
        server.stop_accepting()


def test_all_that_wait_are_accepted_in_a_few_turns() -> None:
    async def turns() -> int:
        async with serving() as (server, address):
            callers = [socket.create_connection(address) for _ in range(CALLERS)]
            turns = 0
            while len(server.server_state.connections) < CALLERS:
                turns += 1
                assert turns < 10 * CALLERS, "they are not accepted"
                await asyncio.sleep(0)
            for caller in callers:
                caller.close()
            while server.server_state.connections:
                await asyncio.sleep(0)
            return turns

    assert uvloop.run(turns()) <= CALLERS // ACCEPTS_MAX + TURNS_MAX


def test_nobody_is_accepted_after_the_end() -> None:
    async def tried_late() -> int:
        async with serving() as (server, address):
            server.stop_accepting()
            await asyncio.sleep(0)
            with socket.socket() as caller:
                return caller.connect_ex(address)

    assert uvloop.run(tried_late()) != 0, "its place is still held"
