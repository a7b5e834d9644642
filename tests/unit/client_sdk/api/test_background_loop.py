"""A blocking client works on either loop, with uvloop and without."""

import asyncio
import signal
import sys
from collections.abc import Iterator

import pytest
import uvloop

from quorate.client_sdk import connect
from quorate.client_sdk.api import background_loop, blocking
from tests.unit.client_sdk.loopback import LoopbackCluster, cluster_of
from tests.unit.client_sdk.scripted import document_of


@pytest.fixture
def cluster() -> Iterator[LoopbackCluster]:
    with cluster_of(document_of("r1", "r2", "r3")) as made:
        yield made


@pytest.mark.parametrize("is_there", [True, False])
def test_the_client_works_on_the_loop_that_there_is(
    is_there: bool, cluster: LoopbackCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_there:
        monkeypatch.setitem(sys.modules, "uvloop", None)  # as if it were not installed
    new_loop = background_loop._maker()
    made: list[asyncio.AbstractEventLoop] = []

    def noted() -> asyncio.AbstractEventLoop:
        made.append(new_loop())
        return made[-1]

    monkeypatch.setattr(blocking, "new_loop", noted)
    with connect(cluster.document) as client:
        client.queue("q").enqueue("an item")
        assert client.queue("q").dequeue() == "an item"
    assert [isinstance(loop, uvloop.Loop) for loop in made] == [is_there]
    assert made[0].is_closed()


def test_signals_are_left_to_the_threads_of_the_application(cluster: LoopbackCluster) -> None:
    """What ends the process must not come by the client's thread while the main one keeps it off."""
    seen: list[set[int]] = []
    with connect(cluster.document) as client:
        client.on_finished(lambda *_: seen.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))))
        client.queue("q").size()
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGALRM} <= seen[0]
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ()), "the main thread hears it"
