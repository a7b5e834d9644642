"""Shows that a request under a key which a replica reads late, when its caller has gone and been answered elsewhere, does
nothing.

A replica is stopped with SIGSTOP while a request waits in its socket; the caller gives up, closes, and repeats it with the same
key at another replica, which answers that there was nothing to do: an empty queue, a value that is not the old one. That
answer is remembered nowhere, so the request must not take effect once the replica goes on, when there is something to do.
"""

import os
import signal
from typing import Any, Final

import httpx
import pytest

from tests.system.harness import Clusters

DEADLINE_S: Final = 20.0
PATIENCE_S: Final = 0.3
ROUNDS: Final = 4

# By what is asked: path, body, the answer that nothing was done; then what makes it possible, and what must be there afterwards.
CASES: Final[dict[str, tuple[str, Any, Any, tuple[str, str, Any], tuple[str, Any]]]] = {
    "dequeue": (
        "/v1/queues/{name}/dequeue",
        {"max": 1},
        {"items": []},
        ("POST", "/v1/queues/{name}/items", {"item": "x"}),
        ("/v1/queues/{name}/peek", {"items": ["x"]}),
    ),
    "compare-and-set": (
        "/v1/registers/{name}/compare-and-set",
        {"old": "free", "new": "mine"},
        {"swapped": False},
        ("PUT", "/v1/registers/{name}", {"value": "free"}),
        ("/v1/registers/{name}", {"value": "free"}),
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_late_request_of_a_caller_who_has_gone_does_nothing(clusters: Clusters, what: str) -> None:
    path, body, nothing, (method, makes, value), (looks, there) = CASES[what]
    cluster = clusters.start()
    with httpx.Client(timeout=DEADLINE_S) as client:
        for number in range(ROUNDS):
            name, headers = f"late-{number}", {"Idempotency-Key": f"late-{what}-{number}"}
            os.kill(cluster.pids["r2"], signal.SIGSTOP)
            try:
                first, second = (cluster.urls[id] + path.format(name=name) for id in ("r2", "r1"))
                with pytest.raises(httpx.TimeoutException):
                    httpx.post(first, json=body, headers=headers, timeout=PATIENCE_S)
                answered = client.post(second, json=body, headers=headers)
                assert answered.json() == nothing, answered.text
                made = client.request(method, cluster.urls["r1"] + makes.format(name=name), json=value)
                assert made.is_success, made.text
            finally:
                os.kill(cluster.pids["r2"], signal.SIGCONT)
            for _ in range(10):  # Answered by r2 itself: it has read what came before.
                found = client.get(cluster.urls["r2"] + looks.format(name=name))
                assert found.json() == there, found.text
