"""Shows that members change while a cluster is used: nothing acknowledged is lost, doubled or out of order, whoever is killed meanwhile.

Front ends that were connected under the first configuration work on while replicas join and leave, until none of the first ones is left. Replicas are
ended with SIGKILL during changes, and so are operators. The whole history is held against the serial specifications.
"""

import asyncio
import json
import shutil
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import httpx
import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import History, connect
from tests.docs.pages import blocks_run_by
from tests.system.cluster.test_changing import epochs, operated
from tests.system.harness import Clusters, until, until_now
from tests.system.histories import Told
from tests.system.load import DEADLINE_S, MAJORITIES, Load, front_ends, goes_on
from tests.unit.cli.conftest import quorate, told_in_vain

FRONT_ENDS: Final = 3
STAGES: Final = ("Members", "Joint configuration", "Joint configuration", "to copy")
"""Words of what operators say on their way from beginning to end, for one after the other."""


def member(cluster: LocalCluster, *words: str) -> Any:
    """What `quorate member` answers."""
    done = quorate("member", *words, "--cluster", str(cluster.document_path), "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def members(cluster: LocalCluster) -> dict[str, dict[str, Any]]:
    """How each member is, by id."""
    return {each["id"]: each for each in member(cluster, "list")["members"]}


def trouble(cluster: LocalCluster, replica: str) -> str:
    """Why the replica is not ready."""
    answer = httpx.get(f"{cluster.urls[replica]}/v1/health/ready", trust_env=False)
    return "" if answer.status_code == 200 else str(answer.json()["detail"])


async def _under_load(
    clusters: Clusters,
    cluster: LocalCluster,
    changes: Callable[[Load], Coroutine[object, object, None]],
    queues: Sequence[str] = ("jobs",),
) -> None:
    load = Load(queues, deadline_s=DEADLINE_S)
    made = front_ends(
        cluster.document,
        clusters.history,
        count=FRONT_ENDS,
        deadline_s=DEADLINE_S,
        queues=queues,
        are_first_members_left=False,
    )
    async with made as connected, asyncio.TaskGroup() as group:
        for client in connected:
            for worker in load.workers(client):
                group.create_task(worker)
        try:
            await changes(load)
        finally:
            load.is_over = True


def judged(clusters: Clusters) -> None:
    """Raises AssertionError where the history breaks a promise."""
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(search=MAJORITIES) == 0, "a search was given up"


async def _replaced(cluster: LocalCluster, load: Load) -> None:
    """All members, one by one; one that stays is killed during every second change."""
    for number in (1, 2, 3):
        url = await asyncio.to_thread(cluster.join, f"r{number + 3}")
        change = asyncio.create_task(asyncio.to_thread(member, cluster, "replace", f"r{number}", url))
        if number % 2:
            await asyncio.to_thread(cluster.kill, f"r{number + 1}")
            await asyncio.to_thread(cluster.restart, f"r{number + 1}")
        assert (await change)["epoch"] == 2 * number
        await goes_on(load, MAJORITIES, f"without r{number}")
    for replica in cluster.document.urls:
        await asyncio.to_thread(cluster.kill, replica)
    await goes_on(load, MAJORITIES, "when none of the first replicas runs any more")


def test_all_members_are_replaced_one_by_one_under_load(clusters: Clusters) -> None:
    cluster = clusters.start()
    asyncio.run(_under_load(clusters, cluster, lambda load: _replaced(cluster, load)))
    judged(clusters)


@pytest.fixture
def single(clusters: Clusters) -> LocalCluster:
    """One replica alone."""
    cluster = clusters.make(replicas=1)
    cluster.start()
    cluster.ready()
    return cluster


async def _grows_and_shrinks(cluster: LocalCluster, load: Load) -> None:
    """From one to three to five, to three, and to one: another one than the first."""
    for joining in (("r2", "r3"), ("r4", "r5")):
        urls = [await asyncio.to_thread(cluster.join, each) for each in joining]
        await asyncio.to_thread(member, cluster, "add", *urls)
        await goes_on(load, MAJORITIES, f"with {joining}")
        for replica in joining:
            await until(partial(_votes, cluster, replica), f"{replica} votes")
    for leaving in (("r2", "r4"), ("r1", "r3")):
        await asyncio.to_thread(member, cluster, "remove", *leaving)
        await goes_on(load, MAJORITIES, f"without {leaving}")


def _votes(cluster: LocalCluster, replica: str) -> bool:
    return not trouble(cluster, replica)


def test_one_replica_grows_to_five_and_shrinks_to_another_one(
    clusters: Clusters, single: LocalCluster
) -> None:
    asyncio.run(_under_load(clusters, single, lambda load: _grows_and_shrinks(single, load)))
    judged(clusters)
    assert list(members(single)) == ["r5"]
    for replica in ("r1", "r2", "r3", "r4"):
        until_now(lambda: "is a member no more" in trouble(single, replica), f"{replica} knows")  # noqa: B023


async def _operators_die(cluster: LocalCluster, load: Load) -> None:
    """One wants another member, and one other votes, and they are killed, each time a little later."""
    url = await asyncio.to_thread(cluster.join, "r4")
    for kill, stage in enumerate(STAGES):
        words = ("replace", "r2", url) if kill % 2 == 0 else ("votes", "r1", str(1 + kill))
        await operated(cluster, stage, "member", *words)
        await goes_on(load, MAJORITIES, "after an operator was killed")
    assert max(epochs(cluster).values()) > 0, "none of them came far enough"
    found = await asyncio.to_thread(members, cluster)
    if "r2" in found:
        await asyncio.to_thread(member, cluster, "replace", "r2", url)
    both = (("votes", "r1", "2"), ("votes", "r3", "2"))
    await asyncio.gather(*(asyncio.to_thread(member, cluster, *words) for words in both))
    found = await asyncio.to_thread(members, cluster)
    assert {id: each["votes"] for id, each in found.items()} == {"r1": 2, "r3": 2, "r4": 1}
    await goes_on(load, MAJORITIES, "at the end")


def test_operators_who_are_killed_and_who_want_different_members_lose_nothing(clusters: Clusters) -> None:
    cluster = clusters.start()
    asyncio.run(_under_load(clusters, cluster, lambda load: _operators_die(cluster, load)))
    judged(clusters)


def test_a_lost_disk_is_replaced_while_the_others_serve(clusters: Clusters) -> None:
    cluster = clusters.start()
    with connect(cluster.document, deadline_s=DEADLINE_S) as client:
        client.queue("jobs").enqueue_many(["first", "second"])
        cluster.kill("r2")
        shutil.rmtree(cluster.data_folder("r2"))
        url = cluster.join("r4")
        member(cluster, "replace", "r2", url)
        assert client.queue("jobs").dequeue() == "first"
        cluster.kill("r1")
        assert client.queue("jobs").dequeue() == "second"
    cluster.restart("r1")
    found = members(cluster)
    assert [*found] == ["r1", "r3", "r4"]
    assert quorate("doctor", "--cluster", str(cluster.document_path)).returncode == 0


EAGER: Final = ChoiceRule("queue/eager", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})
"""An enqueue may be at one replica alone, so that nobody but the operator can say that one that is down is not needed."""


def _declared_dead(cluster: LocalCluster, url: str) -> str:
    """Have r3 replaced while it does not answer: what is said. At first the operator does not know that it is off for good."""
    [block] = blocks_run_by("tests/system/cluster/test_members.py")
    told = block.text.replace("r2", "r3").replace("http://127.0.0.1:8005", url).split()[1:]
    words = (*told, "--cluster", str(cluster.document_path))
    told_in_vain(1, "--declare-dead ID", *words[:4], *words[-2:], "--deadline", "3")
    done = quorate(*words)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_member_that_was_declared_dead_is_not_waited_for(clusters: Clusters) -> None:
    cluster = clusters.start(rules=[EAGER])
    words = ("replace", "r3", cluster.join("r4"), "--declare-dead", "r3")
    assert "r3 answers at" in _refused(cluster, words)

    async def changes(load: Load) -> None:
        said = await asyncio.to_thread(_declared_dead, cluster, cluster.urls["r4"])
        assert "What r3 alone stored is lost" in said
        assert "Enq/Ok of queue/eager (final quorum 1)" in said
        await goes_on(load, ("queue/eager",), "without r3")

    with connect(cluster.document, deadline_s=DEADLINE_S, history=History(clusters.history)) as client:
        for number in range(8):
            client.queue("eager").enqueue(f"before {number}")
    until_now(lambda: all(each["missing"] == 0 for each in members(cluster).values()), "all have all")
    cluster.kill("r3")
    shutil.rmtree(cluster.data_folder("r3"))
    asyncio.run(_under_load(clusters, cluster, changes, queues=("jobs", "eager")))
    judged(clusters)
    assert list(members(cluster)) == ["r1", "r2", "r4"]


def test_a_replica_that_was_removed_while_it_was_down_says_so_when_it_returns(clusters: Clusters) -> None:
    cluster = clusters.start()
    cluster.kill("r3")
    member(cluster, "remove", "r3")
    cluster.launch("r3")
    until_now(lambda: "r3" in cluster.pids and _says(cluster, "r3", "is a member no more"), "it says so")
    cluster.kill("r3")
    cluster.launch("r3")
    until_now(lambda: "r3" not in cluster.pids, "it does not start again")
    assert "is a member no more" in cluster.last_words("r3")


def _says(cluster: LocalCluster, replica: str, words: str) -> bool:
    try:
        return words in trouble(cluster, replica)
    except httpx.TransportError:
        return False


def test_a_learner_gets_copies_and_its_vote_later(clusters: Clusters) -> None:
    cluster = clusters.start()
    with connect(cluster.document, deadline_s=DEADLINE_S) as client:
        client.queue("jobs").enqueue_many(list(range(100)))
        url = cluster.join("r4")
        member(cluster, "add", url, "--votes", "0")
        assert members(cluster)["r4"]["role"] == "learner"
        until_now(lambda: members(cluster)["r4"]["missing"] == 0, "it misses nothing")
        member(cluster, "votes", "r4", "1")
        assert members(cluster)["r4"]["role"] == "voter"
        cluster.kill("r1")
        assert client.queue("jobs").dequeue(max_items=100) == list(range(100))


def test_a_member_that_joined_starts_again_with_the_first_cluster_file(clusters: Clusters) -> None:
    cluster = clusters.start()
    url = cluster.join("r4")
    member(cluster, "add", url)
    cluster.serve_options["r4"] = []
    cluster.kill("r4")
    cluster.restart("r4")
    cluster.kill("r1")
    with connect(cluster.document, deadline_s=DEADLINE_S) as client:
        client.register("leader").write("r4")
        assert client.register("leader").read() == "r4"


@pytest.mark.parametrize("store", ["another", "none"])
def test_a_member_that_lost_its_store_before_or_after_its_first_vote_does_not_vote(
    clusters: Clusters, store: str
) -> None:
    cluster = clusters.start()
    member(cluster, "add", cluster.join("r4"))
    cluster.kill("r4")
    shutil.rmtree(cluster.data_folder("r4"))
    if store == "none":
        cluster.serve_options["r4"] = []
    cluster.launch("r4")
    if store == "none":
        until_now(lambda: "r4" not in cluster.pids, "it does not start")
        assert "has no replica 'r4'" in cluster.last_words("r4")
    else:
        until_now(lambda: _says(cluster, "r4", "became a member with store"), "it does not vote")
    assert list(members(cluster)) == ["r1", "r2", "r3", "r4"]


def _refused(cluster: LocalCluster, words: Sequence[str]) -> str:
    done = quorate("member", *words, "--cluster", str(cluster.document_path))
    assert done.returncode != 0
    return " ".join(done.stderr.split())


def test_what_cannot_be_done_is_said_before_anything_is(clusters: Clusters) -> None:
    cluster = clusters.start()
    for words, sentence in {
        ("add", "somewhere"): "must be a replica's URL",
        ("add", "http://127.0.0.1:1"): "A new one is started by: quorate serve --cluster FILE",
        ("remove", "r9"): "The cluster has no member 'r9': they are r1, r2, r3",
        ("remove", "r1", "r2", "r3"): "No member would be left",
    }.items():
        assert sentence in _refused(cluster, words)
    assert member(cluster, "list")["epoch"] == 0


@pytest.mark.parametrize("ends", ["stopped", "killed"])
def test_up_starts_the_members_of_now_by_the_first_cluster_file(clusters: Clusters, ends: str) -> None:
    cluster = clusters.start()
    member(cluster, "replace", "r3", cluster.join("r4"))
    url = cluster.urls["r4"]
    for replica in list(cluster.pids) if ends == "killed" else []:
        cluster.kill(replica)
    cluster.stop()
    again = LocalCluster(cluster.root)
    clusters.made.append(again)
    assert again.go_on() == ({"r3"}, set())
    assert (list(again.urls), again.urls["r4"]) == (["r1", "r2", "r4"], url)
    again.start()
    again.ready()
    assert all(each["is_ready"] for each in members(again).values())


def test_up_makes_no_new_stores_and_starts_no_former_members_where_all_of_the_file_have_left(
    clusters: Clusters, single: LocalCluster
) -> None:
    """The first one never heard of the last change, since it was down."""
    member(single, "replace", "r1", single.join("r2"))
    single.kill("r1")
    words = ("member", "replace", "r2", single.join("r3"), "--cluster", single.urls["r2"])
    assert quorate(*words).returncode == 0
    single.stop()
    for gone in ((), ("r1", "r2")):
        for replica in gone:
            shutil.rmtree(single.data_folder(replica))
        again = LocalCluster(single.root)
        clusters.made.append(again)
        again.format_missing()
        assert again.go_on() == ({"r1"}, set())
        assert list(again.urls) == ["r3"]
        assert not gone or not again.data_folder("r1").exists()
