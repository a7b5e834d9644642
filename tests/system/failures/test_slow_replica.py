"""Shows that a replica which stops answering holds nobody up for long, and is consistent when it answers again.

One of three replicas is stopped with SIGSTOP: its connections stay open, and nothing comes back. The SDK goes on with
the other two; the messages to the stopped one are counted, and are few beside those that are answered, for it is asked
again only now and then. The same holds for plain REST callers. After SIGCONT another replica is killed, so that every
quorum needs the one that slept: what was decided without it is there, and what was taken does not come back.
"""

import asyncio
import os
import signal
import time
from typing import Final

import httpx

from quorate.client_sdk.api.history import History
from tests.system.harness import Clusters, Watched, front_end, http
from tests.system.histories import Told

ROUNDS: Final = 60
OPERATIONS: Final = 5 * ROUNDS
DEADLINE_S: Final = 20.0
TOTAL_S: Final = 200.0
"""For all operations together, of which each alone may take DEADLINE_S: waiting for the stopped replica each time
(EXCHANGE_TIMEOUT_S, 2 s) would take 600 s."""
SHARE_MAX: Final = 0.1
"""Of the exchanges: those with the stopped replica, beside those with one that answers."""
PROBES_PER_S: Final = 2
"""And so many a second besides, for whether it is back is looked at by the clock."""


async def test_a_stopped_replica_is_not_waited_for_again_and_again(clusters: Clusters) -> None:
    cluster = clusters.start()
    watched = Watched(http(cluster.document))
    history = History(clusters.history)
    async with front_end(cluster.document, watched, history=history, deadline_s=DEADLINE_S) as client:
        queue, register, users = client.queue("jobs"), client.register("leader"), client.dictionary("users")
        await queue.enqueue("first")
        os.kill(cluster.pids["r3"], signal.SIGSTOP)
        watched.exchanges.clear()
        began_s = time.monotonic()
        for number in range(ROUNDS):
            await queue.enqueue(number)
            await queue.dequeue()
            await register.write(number)
            await users.put("ada", number)
            await register.read()
        took_s = time.monotonic() - began_s
        print(f"{OPERATIONS} operations in {took_s:.2f} s, exchanges {dict(watched.exchanges)}")
        assert took_s < TOTAL_S
        most = SHARE_MAX * watched.exchanges["r1"] + PROBES_PER_S * took_s
        assert watched.exchanges["r3"] <= most, watched.exchanges
        await _rest_goes_on(cluster.urls["r1"])

        os.kill(cluster.pids["r3"], signal.SIGCONT)
        await asyncio.to_thread(cluster.kill, "r1")
        assert await queue.dequeue() == ROUNDS - 1
        assert await queue.dequeue() is None
        assert await register.read() == ROUNDS - 1
        assert await users.get("ada") == ROUNDS - 1
    assert Told(clusters.history).check() == 0


async def _rest_goes_on(url: str) -> None:
    async with httpx.AsyncClient(timeout=DEADLINE_S, trust_env=False) as client:
        began_s = time.monotonic()
        for number in range(ROUNDS):
            put = await client.put(f"{url}/v1/registers/rest", json={"value": number})
            assert put.status_code == 204, put.text
        assert time.monotonic() - began_s < TOTAL_S
