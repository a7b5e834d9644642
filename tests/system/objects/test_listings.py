"""Whole dictionaries over REST take bounded memory, however many ask for them, and one that is too large is refused."""

import asyncio
from pathlib import Path

import httpx
import pytest

from quorate.api_specs.cluster import ClusterDocument
from quorate.client_sdk import Dictionary, LimitReached, connect, connect_async
from tests.system.harness import Clusters, until_now

VALUE = "x" * 1_000_000
KEYS = 24
CALLERS = 12
MORE_BYTES_MAX = 600_000_000
"""Each listing holds what three replicas show and what they showed before, the answer as text and as bytes."""


SMALL = """[limits]
listing_bytes_max = 100_000
retry_window_s = 8.0
deadline_s_max = 7.0
wait_s_max = 5.0
consumed_lag_s = 1.0
"""
"""What is deleted is forgotten within some seconds."""


def peak_bytes(pid: int) -> int:
    """The most memory that a process has had resident."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


async def fill(document: ClusterDocument) -> None:
    """A dictionary of 24 MB."""
    client = await connect_async(document, deadline_s=20.0)
    try:
        users = client.dictionary("users")
        for number in range(KEYS):
            await users.put(f"key-{number}", VALUE)
    finally:
        await client.aclose()


async def list_all(url: str) -> list[tuple[int, int]]:
    """Status and length of each answer, all asked for at once; status 0 where it was cut off."""
    async with httpx.AsyncClient(timeout=60.0, trust_env=False) as client:

        async def ask() -> tuple[int, int]:
            try:
                answer = await client.get(f"{url}/v1/dictionaries/users?deadline_s=25")
            except httpx.RemoteProtocolError:
                # On a busy machine this one process reads the others too slowly for one of them.
                return 0, 0
            return answer.status_code, len(answer.content)

        return await asyncio.gather(*(ask() for _ in range(CALLERS)))


@pytest.mark.slow
def test_many_who_list_a_large_dictionary_take_bounded_memory(clusters: Clusters) -> None:
    cluster = clusters.start()
    asyncio.run(fill(cluster.document))
    before = peak_bytes(cluster.pids["r1"])
    answers = asyncio.run(list_all(cluster.urls["r1"]))
    assert {status for status, _ in answers} <= {0, 200, 503}, answers
    whole = [length for status, length in answers if status == 200]
    assert min(whole, default=0) > KEYS * len(VALUE), answers
    more = peak_bytes(cluster.pids["r1"]) - before
    print(f"{len(whole)} of {CALLERS} were answered; the replica took {more / 1e6:.0f} MB more")
    assert more < MORE_BYTES_MAX, more


def keys_of(users: Dictionary) -> set[str]:
    """Those of a listing; none while it is refused."""
    try:
        return set(users.items())
    except LimitReached:
        return set()


@pytest.mark.slow
def test_a_dictionary_beyond_the_bound_is_refused_and_its_keys_are_read(clusters: Clusters) -> None:
    cluster = clusters.start(settings=SMALL)
    with connect(cluster.document) as client:
        users = client.dictionary("users")
        for number in range(3):
            users.put(f"key-{number}", "x" * 40_000)
        with pytest.raises(LimitReached, match="listing_bytes_max") as refused:
            users.items()
        assert refused.value.limit == "listing-too-large"
        answer = httpx.get(f"{cluster.urls['r1']}/v1/dictionaries/users", trust_env=False)
        assert answer.status_code == 429
        assert answer.json()["type"] == "/problems/listing-too-large"
        assert users.get("key-2") == "x" * 40_000
        users.delete("key-0")
        until_now(lambda: keys_of(users) == {"key-1", "key-2"}, "it is listed once the value is forgotten")
