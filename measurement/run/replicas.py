"""The replicas that a run starts: what it needs of them, and starting them all.

Owns the wait until all are ready, and what is said when one is not. Must not know how processes are started:
`quorate.cli.cluster.local_cluster` does.
"""

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from .prober import is_ready

READY_DEADLINE_S: Final = 60.0
READY_TIMEOUT_S: Final = 1.0
POLL_S: Final = 0.05
"""A replica that starts is asked so often whether it is ready."""


class NotStarted(Exception):
    """A replica could not be started, or was not ready in time; the sentence says which, and why."""


class Replicas(Protocol):
    """Replicas that can be killed and started: `quorate.cli.cluster.local_cluster.LocalCluster`."""

    @property
    def urls(self) -> Mapping[str, str]:
        """Base URL by replica id."""

    @property
    def pids(self) -> Mapping[str, int]:
        """Process id of each replica that runs."""

    def set_endpoints(self, replica_id: str, endpoints: Mapping[str, str]) -> None:
        """Where a replica finds others instead of at their URLs, from its next start on."""

    def kill(self, replica_id: str) -> None:
        """End a replica at once, and wait until it is gone."""

    def launch(self, replica_id: str) -> None:
        """Start a replica that does not run; do not wait until it is ready. Raises NotStarted."""

    def last_words(self, replica_id: str) -> str:
        """The last line that it wrote."""


async def find_any(urls: Mapping[str, str]) -> None:
    """See that some replica of a running cluster is ready. Raises NotStarted."""
    if not any(await asyncio.gather(*(is_ready(url, READY_TIMEOUT_S) for url in urls.values()))):
        places = ", ".join(f"{name} at {url}" for name, url in urls.items())
        raise NotStarted(
            f"No replica of the cluster is ready ({places}). Start them, or let the plan start its own: "
            "[cluster] with replicas or racks in the place of document."
        )


async def start_all(replicas: Replicas) -> None:
    """Start every replica, and wait until all are ready. Raises NotStarted."""
    for name in replicas.urls:
        replicas.launch(name)
    waiting = set(replicas.urls)
    try:
        async with asyncio.timeout(READY_DEADLINE_S):
            while waiting:
                waiting -= await _ready(replicas, waiting)
                if waiting:
                    await asyncio.sleep(POLL_S)
    except TimeoutError:
        first = min(waiting)
        raise NotStarted(
            f"Not ready after {READY_DEADLINE_S:g} s: {', '.join(sorted(waiting))}. The last line of {first}'s log: "
            f"{replicas.last_words(first)}"
        ) from None


async def _ready(replicas: Replicas, names: set[str]) -> set[str]:
    """Those that are ready by now; NotStarted when one has ended."""
    running = replicas.pids
    if ended := sorted(names - running.keys()):
        raise NotStarted(f"{ended[0]} ended while it started: {replicas.last_words(ended[0])}")
    asked = sorted(names)
    answers = await asyncio.gather(*(is_ready(replicas.urls[name], READY_TIMEOUT_S) for name in asked))
    return {name for name, answer in zip(asked, answers, strict=True) if answer}
