"""Shows that a client killed between its two phases leaves nothing that the next client cannot finish or supersede.

The dead client is a process of its own; it is ended with SIGKILL right after an initial quorum answered its collect, or
when its accept, or its append, has reached one replica only. The next client goes on at once (its messages are counted:
there is no waiting for the dead one), nothing is lost or doubled, and a repeat with the dead one's idempotency key gets
one answer. In half of the cases the one replica that holds the dead client's message is itself killed, and comes back
only after the next client has been at work: then the message is superseded, for nobody else ever saw it.
"""

import asyncio
import signal
import subprocess
import sys
from typing import Any, Final

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk.protocol.core.answer_times import AnswerTimes
from tests.system.dying_client import HOLDER, KEY
from tests.system.harness import ROOT, WAIT_S, Watched, drained, front_end, http

MESSAGES_MAX: Final = 12
"""Of one operation to each replica: a few rounds, and their lazy marks. Waiting would show as an error: nothing is sent again
here only because time has passed, which on a busy machine happens to anybody."""
OPERATION_S: Final = 20.0
NEVER_S: Final = 3600.0

WHENS: Final = ("collected", "accepted", "accepted, and the holder is down")


@pytest.fixture(autouse=True)
def _no_resending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AnswerTimes, "resend_s", lambda *_: NEVER_S)


def die(cluster: LocalCluster, when: str, what: str, name: str) -> None:
    """Run the client that kills itself."""
    command = [sys.executable, "-m", "tests.system.dying_client", str(cluster.document_path)]
    command += [when.partition(",")[0], what, name]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


async def _with_client(cluster: LocalCluster, operation: Any) -> Any:
    """The result of one operation of a fresh front end, which needs few messages."""
    watched = Watched(http(cluster.document))
    async with front_end(cluster.document, watched, deadline_s=OPERATION_S) as client:
        result = await operation(client)
    assert max(watched.exchanges.values()) <= MESSAGES_MAX, watched.exchanges
    return result


def run(cluster: LocalCluster, operation: Any) -> Any:
    """As `_with_client`, from a test that is not async."""
    return asyncio.run(_with_client(cluster, operation))


def named(case: str) -> str:
    """The objects' name in a case of its own."""
    return "it-" + "-".join(case.replace(",", "").split())


@pytest.mark.parametrize("when", WHENS)
def test_a_dequeue_that_died_is_finished_or_superseded(shared_cluster: LocalCluster, when: str) -> None:
    cluster, name = shared_cluster, named(when)
    items = ["a", "b", "c", "d"]
    run(cluster, lambda client: client.queue(name).enqueue_many(items))
    die(cluster, when, "dequeue", name)
    if when.endswith("down"):
        cluster.kill(HOLDER)
    first = run(cluster, lambda client: client.queue(name).dequeue())
    if when.endswith("down"):
        cluster.restart(HOLDER)
    of_the_dead = run(cluster, lambda client: client.queue(name).dequeue(idempotency_key=KEY))
    again = run(cluster, lambda client: client.queue(name).dequeue(idempotency_key=KEY))
    rest = run(cluster, lambda client: drained(client.queue(name), max_items=10))
    assert of_the_dead == again
    assert sorted([first, of_the_dead, *rest]) == items
    assert first == ("b" if of_the_dead == "a" else "a"), (
        "either the dead one's accept is in force, or it never was"
    )
    if when != "accepted":
        assert of_the_dead == "b", "nobody accepted it, or nobody who lived: it is superseded"


@pytest.mark.parametrize("holder_is_down", [False, True])
def test_an_enqueue_that_died_is_there_once_or_not_at_all(
    shared_cluster: LocalCluster, holder_is_down: bool
) -> None:
    cluster, name = shared_cluster, named(str(holder_is_down))
    run(cluster, lambda client: client.queue(name).enqueue("before"))
    die(cluster, "appended", "enqueue", name)
    if holder_is_down:
        cluster.kill(HOLDER)
    run(cluster, lambda client: client.queue(name).enqueue("after"))
    found = run(cluster, lambda client: drained(client.queue(name), max_items=10))
    if holder_is_down:
        assert found == ["before", "after"], "nobody who lived has seen it"
        cluster.restart(HOLDER)
        run(cluster, lambda client: client.queue(name).enqueue("last"))
        # Its timestamp is below the horizon now: it never was complete and never will be.
        assert run(cluster, lambda client: drained(client.queue(name), max_items=10)) == ["last"]
    else:
        assert found in (["before", "of the dead", "after"], ["before", "after"])
    assert run(cluster, lambda client: client.queue(name).size()) == 0


@pytest.mark.parametrize("when", WHENS)
def test_a_compare_and_set_that_died_is_finished_or_superseded(
    shared_cluster: LocalCluster, when: str
) -> None:
    cluster, name = shared_cluster, named(when)
    run(cluster, lambda client: client.register(name).write("before"))
    die(cluster, when, "cas", name)
    if when.endswith("down"):
        cluster.kill(HOLDER)
    mine = run(cluster, lambda client: client.register(name).compare_and_set("before", "mine"))
    if when.endswith("down"):
        cluster.restart(HOLDER)
    seen = [run(cluster, lambda client: client.register(name).read()) for _ in range(3)]
    assert seen == ["mine" if mine else "of the dead"] * 3
    if when != "accepted":
        assert mine
    repeated = run(
        cluster,
        lambda client: client.register(name).compare_and_set("before", "of the dead", idempotency_key=KEY),
    )
    assert repeated is not mine, "exactly one of the two has set it"


@pytest.mark.parametrize("when", WHENS)
def test_a_put_if_absent_that_died_is_finished_or_superseded(shared_cluster: LocalCluster, when: str) -> None:
    cluster, name = shared_cluster, named(when)
    die(cluster, when, "put-if-absent", name)
    if when.endswith("down"):
        cluster.kill(HOLDER)
    mine = run(cluster, lambda client: client.dictionary(name).put_if_absent("key", "mine"))
    if when.endswith("down"):
        cluster.restart(HOLDER)
    for _ in range(2):
        items = run(cluster, lambda client: client.dictionary(name).items())
        assert items == {"key": "mine" if mine else "of the dead"}
    if when != "accepted":
        assert mine
