"""Shows that quorum choices and votes change while a cluster is used: nothing acknowledged is lost, doubled or out of order, whoever is killed meanwhile.

Front ends that were connected under the first configuration work on through many changes, one after another, while each replica in turn is ended with
SIGKILL and started again. The operator is killed, too: whoever repeats the command goes on. The whole history is held against the serial specifications.
"""

import asyncio
import itertools
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Final

import httpx
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, checked, parse
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from quorate.client_sdk.api.connect import Recipe
from quorate.client_sdk.protocol.reconfiguration import Steps, change
from tests.support import forked
from tests.system.harness import WAIT_S, Clusters, until_now
from tests.system.histories import Told
from tests.system.load import DEADLINE_S, MAJORITIES, Load, front_ends, goes_on
from tests.unit.cli.conftest import quorate

FRONT_ENDS: Final = 3
CHANGES: Final = 20
EAGER: Final = ChoiceRule("queue/jobs", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})
THRIFTY: Final = ChoiceRule("queue/jobs", {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3), "Deq/Empty": (1, 0)})


def with_rule(document: ClusterDocument, *rules: ChoiceRule) -> ClusterDocument:
    """The first document with these rules in front of its own."""
    return checked(replace(document, choices=(*rules, *document.choices)))


def with_votes(document: ClusterDocument, **votes: int) -> ClusterDocument:
    """Majorities of other votes."""
    members = tuple(replace(each, votes=votes.get(each.id, 1)) for each in document.replicas)
    return checked(replace(document, replicas=members, choices=()))


def toml(document: ClusterDocument, path: Path, rules: str = "") -> Path:
    """A cluster file of these members, with these rules."""
    members = "".join(
        f'[[replicas]]\nid = "{each.id}"\nurl = "{each.url}"\nvotes = {each.votes}\nstore = "{each.store}"\n'
        for each in document.replicas
    )
    path.write_text(
        f'name = "{document.name}"\n{members}{rules}\n[clock]\nreplica_error_s = 0.0\nfront_end_error_s = 0.0\n'
    )
    return path


def epochs(cluster: LocalCluster) -> dict[str, int]:
    """In which configuration each replica that answers is."""
    found: dict[str, int] = {}
    for replica, url in cluster.urls.items():
        try:
            found[replica] = (
                httpx.get(f"{url}/v1/cluster", trust_env=False).json()["document"].get("epoch", 0)
            )
        except httpx.TransportError:
            continue
    return found


async def _changed(cluster: LocalCluster, wanted: ClusterDocument) -> ClusterDocument:
    def steps(at: ClusterDocument) -> Steps:
        return change(at, lambda _: wanted)

    async with asyncio.timeout(WAIT_S):
        return await Recipe(cluster.document, {}, None, None).operate(steps)


async def _changes(cluster: LocalCluster, load: Load) -> None:
    """One after another. A replica is down during each, and is back before its end where it is needed for that."""
    first = cluster.document
    wanted = itertools.cycle(
        [with_rule(first, EAGER), with_votes(first, r1=3, r2=2, r3=2), with_rule(first, THRIFTY), first]
    )
    for number, replica in zip(range(CHANGES), itertools.cycle(cluster.urls), strict=False):
        changing = asyncio.create_task(_changed(cluster, next(wanted)))
        if number % 2:
            await asyncio.to_thread(cluster.kill, replica)
            await asyncio.to_thread(cluster.restart, replica)
        document = await changing
        assert document.number == 2 * (number + 1)
        await goes_on(load, MAJORITIES, f"in configuration {document.number}")
    load.is_over = True


async def _run(
    clusters: Clusters, cluster: LocalCluster, changes: Callable[[Load], Coroutine[object, object, None]]
) -> None:
    load = Load(deadline_s=DEADLINE_S)
    made = front_ends(cluster.document, clusters.history, count=FRONT_ENDS, deadline_s=DEADLINE_S)
    async with made as connected, asyncio.TaskGroup() as group:
        for client in connected:
            for worker in load.workers(client):
                group.create_task(worker)
        await changes(load)
        assert min(client.document.number for client in connected) > 0


def test_twenty_changes_in_a_row_under_load_lose_and_double_nothing(clusters: Clusters) -> None:
    cluster = clusters.start()
    asyncio.run(_run(clusters, cluster, lambda load: _changes(cluster, load)))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(search=MAJORITIES) == 0, "a search was given up"


STAGES: Final = ("", "Members", "queue/jobs", "Joint configuration", "to copy", "in force")
"""Words of what an operator says on his way from beginning to end."""


async def operated(cluster: LocalCluster, stage: str, *words: str) -> None:
    """An operator in a process of his own, killed as soon as he says this; if he does not, he comes to his end."""
    command = (*words, "--cluster", str(cluster.document_path))
    operator = forked.started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert operator.stdout is not None
    try:
        async with asyncio.timeout(WAIT_S):
            said = "-"
            while said and stage not in said:
                said = await asyncio.to_thread(operator.stdout.readline)
                print(said, end="")
    finally:
        operator.kill()
        await asyncio.to_thread(operator.communicate)


async def _operators_die(cluster: LocalCluster, load: Load, files: Sequence[Path]) -> None:
    """Two operators want different things, and are killed, each time a little later."""
    for stage, file in itertools.product(STAGES, files):
        await operated(cluster, stage, "change", str(file))
        await goes_on(load, MAJORITIES, "after an operator was killed")
    assert max(epochs(cluster).values()) > 2, "none of them came far enough"
    both = [_changed(cluster, parse(file.read_text())) for file in files]
    ends = await asyncio.gather(*both)
    await goes_on(load, MAJORITIES, "after two operators at once")
    last = await _changed(cluster, cluster.document)
    assert last.number > max(each.number for each in ends)
    load.is_over = True


def test_operators_who_are_killed_and_who_want_different_things_lose_nothing(
    clusters: Clusters, tmp_path: Path
) -> None:
    cluster = clusters.start()
    eager = '[[choices]]\nobjects = "queue/jobs"\n[choices.classes]\n"Enq/Ok" = [0, 1]\n"Deq/Ok" = [3, 1]\n'
    files = [
        toml(cluster.document, tmp_path / "eager.toml", eager),
        toml(cluster.document, tmp_path / "plain.toml"),
    ]
    asyncio.run(_run(clusters, cluster, lambda load: _operators_die(cluster, load, files)))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(search=MAJORITIES) == 0, "a search was given up"
    until_now(lambda: len(set(epochs(cluster).values())) == 1, "all replicas are in one configuration")


def test_a_replica_that_slept_through_two_changes_goes_on_by_itself(clusters: Clusters) -> None:
    cluster = clusters.start()
    first = cluster.document
    cluster.kill("r3")
    for wanted in (with_votes(first, r1=3, r2=2, r3=2), first):
        asyncio.run(_changed(cluster, wanted))
    assert epochs(cluster) == {"r1": 4, "r2": 4}
    with connect(first) as client:
        client.queue("jobs").enqueue("while r3 was down")
    cluster.restart("r3")
    until_now(lambda: epochs(cluster).get("r3") == 4, "r3 goes on")
    cluster.kill("r2")
    with connect(first, deadline_s=DEADLINE_S) as client:
        assert client.document.number == 4
        assert client.queue("jobs").dequeue() == "while r3 was down"
    cluster.restart("r2")
    cluster.ready()
    assert quorate("doctor", "--cluster", str(cluster.document_path)).returncode == 0
