"""Shows that a POST with an Idempotency-Key takes effect once, wherever and however often it is repeated.

The same request goes to another replica after the first answer, to all replicas at the same time, and to another replica
after the first was killed with the request under way. All answers are the same, and the state shows one effect: for
items, dequeue, compare-and-set and put-if-absent.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from tests.system.harness import Clusters

TIMEOUT_S: Final = 60.0
DEADLINE_S: Final = 20.0
REPEATS: Final = 6

POSTS: Final[dict[str, tuple[str, Any]]] = {
    "items": ("/v1/queues/{name}/items", {"items": [1, 2, 3]}),
    "dequeue": ("/v1/queues/{name}/dequeue", {"max": 2}),
    "register": ("/v1/registers/{name}/compare-and-set", {"old": "before", "new": "after"}),
    "key": ("/v1/dictionaries/{name}/entries/k/compare-and-set", {"old": "before", "new": "after"}),
    "put-if-absent": ("/v1/dictionaries/{name}/entries/new/put-if-absent", {"value": "mine"}),
}
ANSWERS: Final[dict[str, Any]] = {
    "items": {"enqueued": 3},
    "dequeue": {"items": ["a", "b"]},
    "register": {"swapped": True},
    "key": {"swapped": True},
    "put-if-absent": {"stored": True},
}


class Rest:
    """A plain HTTP client of a cluster."""

    def __init__(self, cluster: LocalCluster, client: httpx.AsyncClient) -> None:
        self.cluster: Final = cluster
        self._client: Final = client

    async def send(
        self, replica: str, method: str, path: str, body: Any = None, key: str | None = None
    ) -> Any:
        """The JSON of the answer, which must be 2xx."""
        headers = {} if key is None else {"Idempotency-Key": key}
        url = self.cluster.urls[replica] + path
        response = await self._client.request(
            method, url, json=body, headers=headers, params={"deadline_s": DEADLINE_S}
        )
        assert response.is_success, f"{response.status_code} {response.text}"
        return response.json() if response.content else None

    async def prepare(self, name: str) -> None:
        """Give every object of this name a state to act on."""
        await self.send("r3", "POST", f"/v1/queues/{name}/items", {"items": ["a", "b", "c", "d", "e"]})
        await self.send("r3", "PUT", f"/v1/registers/{name}", {"value": "before"})
        await self.send("r3", "PUT", f"/v1/dictionaries/{name}/entries/k", {"value": "before"})

    async def post(self, replica: str, what: str, name: str) -> Any:
        """The keyed request; its key is the same each time."""
        path, body = POSTS[what]
        return await self.send(replica, "POST", path.format(name=name), body, key=f"key-{what}-{name}")

    async def undo(self, what: str, name: str) -> None:
        """Change back what a compare-and-set changed: a repeat that took effect again would show."""
        if what == "register":
            await self.send("r3", "PUT", f"/v1/registers/{name}", {"value": "before"})
        elif what == "key":
            await self.send("r3", "PUT", f"/v1/dictionaries/{name}/entries/k", {"value": "before"})
        elif what == "put-if-absent":
            await self.send("r3", "DELETE", f"/v1/dictionaries/{name}/entries/new")

    async def state(self, what: str, name: str) -> Any:
        """What the request acts on; taking it is the end of the queue."""
        if what in ("items", "dequeue"):
            taken = await self.send("r3", "POST", f"/v1/queues/{name}/dequeue", {"max": 100})
            return taken["items"]
        if what == "register":
            return (await self.send("r3", "GET", f"/v1/registers/{name}"))["value"]
        return (await self.send("r3", "GET", f"/v1/dictionaries/{name}"))["items"]


ONCE: Final[dict[str, Any]] = {
    "items": ["a", "b", "c", "d", "e", 1, 2, 3],
    "dequeue": ["c", "d", "e"],
    "register": "after",
    "key": {"k": "after"},
    "put-if-absent": {"k": "before", "new": "mine"},
}
UNDONE: Final[dict[str, Any]] = ONCE | {
    "register": "before",
    "key": {"k": "before"},
    "put-if-absent": {"k": "before"},
}


@asynccontextmanager
async def rest(cluster: LocalCluster) -> AsyncIterator[Rest]:
    async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
        yield Rest(cluster, client)


@pytest.mark.parametrize("what", POSTS)
async def test_a_repeat_at_another_replica_gets_the_first_answer(
    shared_cluster: LocalCluster, what: str
) -> None:
    async with rest(shared_cluster) as service:
        name = f"repeat-{what}"
        await service.prepare(name)
        assert await service.post("r1", what, name) == ANSWERS[what]
        await service.undo(what, name)
        for replica in ("r2", "r1", "r3"):
            assert await service.post(replica, what, name) == ANSWERS[what]
        assert await service.state(what, name) == UNDONE[what]


@pytest.mark.parametrize("what", POSTS)
async def test_repeats_at_the_same_time_take_effect_once(shared_cluster: LocalCluster, what: str) -> None:
    async with rest(shared_cluster) as service:
        name = f"together-{what}"
        await service.prepare(name)
        replicas = [f"r{1 + number % 3}" for number in range(REPEATS)]
        answers = await asyncio.gather(*(service.post(replica, what, name) for replica in replicas))
        assert answers == [ANSWERS[what]] * REPEATS
        assert await service.state(what, name) == ONCE[what]


async def test_a_repeat_after_the_replica_was_killed_takes_effect_once(clusters: Clusters) -> None:
    cluster = clusters.start()
    async with rest(cluster) as service:
        for round_ in range(2):
            for what in POSTS:
                await service.prepare(f"killed-{round_}-{what}")
            if round_ == 0:  # killed after it has answered; in the second round with the requests under way
                for what in POSTS:
                    assert await service.post("r1", what, f"killed-{round_}-{what}") == ANSWERS[what]
            under_way = [
                asyncio.create_task(service.post("r1", what, f"killed-{round_}-{what}")) for what in POSTS
            ]
            await asyncio.sleep(0.002 * round_)  # no luck needed: any moment is a right one to be killed at
            await asyncio.to_thread(cluster.kill, "r1")
            await asyncio.wait(under_way, timeout=TIMEOUT_S)
            for answered in under_way:
                assert answered.exception() is not None or answered.result() in ANSWERS.values()
            for what in POSTS:
                assert await service.post("r2", what, f"killed-{round_}-{what}") == ANSWERS[what]
            await asyncio.to_thread(cluster.restart, "r1")
            for what in POSTS:
                assert await service.post("r1", what, f"killed-{round_}-{what}") == ANSWERS[what]
                assert await service.state(what, f"killed-{round_}-{what}") == ONCE[what]
