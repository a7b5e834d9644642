"""A client that was made with the first document works on while its cluster goes on to other configurations, and says which one it goes by."""

import asyncio
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.client_sdk import AsyncClient, Client, OutcomeUnknown, RefusedByReplicas, connect, connect_async
from quorate.client_sdk.api.connect import Recipe
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.client_sdk.protocol.reconfiguration import change
from quorate.simulation.memory.replica import InMemoryReplica
from tests.support.in_process import DEADLINE_S, InProcessCluster, in_process
from tests.unit.client_sdk.loopback import PendingCommand, cluster_of, problem, replica_handler

EAGER = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[InProcessCluster]:
    with in_process(tmp_path) as made:
        yield made


def both_of(cluster: InProcessCluster) -> ClusterDocument:
    """The first one and another one together."""
    return joint(cluster.document, replace(cluster.document, choices=(EAGER,)))


def goes_on(cluster: InProcessCluster, document: ClusterDocument, *replicas: str) -> None:
    """These replicas, or all, are in that configuration from now on."""
    for replica in replicas or cluster.up:
        cluster.run(cluster.member(replica).configured.follow(document))


def followed(client: Client) -> int:
    """How many configurations it has gone on to."""
    return client.counters().events.get("configurations followed", 0)


def test_a_client_works_on_in_each_configuration_and_says_which_it_is(cluster: InProcessCluster) -> None:
    both = both_of(cluster)
    with connect(cluster.document, deadline_s=DEADLINE_S) as client:
        queue, register, users = client.queue("q"), client.register("r"), client.dictionary("d")
        assert client.document == cluster.document
        for number, document in enumerate((cluster.document, both, settled(both))):
            goes_on(cluster, document)
            queue.enqueue(number)
            register.write(number)
            users.put("k", number)
            assert client.document == document
            assert (queue.dequeue(), register.read(), users.get("k")) == (number, number, number)
            assert queue.dequeue() is None
            assert followed(client) == number


def test_a_closed_client_says_which_configuration_it_went_by_last(cluster: InProcessCluster) -> None:
    both = both_of(cluster)
    client = connect(cluster.document, deadline_s=DEADLINE_S)
    goes_on(cluster, both)
    client.queue("q").enqueue(1)
    client.close()
    assert client.document == both


@pytest.mark.parametrize("call", ["enqueue", "read"])
def test_the_asyncio_client_has_the_same(cluster: InProcessCluster, call: str) -> None:
    """The first call under each configuration finds it."""
    both = both_of(cluster)

    async def made() -> AsyncClient:
        return await connect_async(cluster.document, deadline_s=DEADLINE_S)

    async def first(client: AsyncClient, number: int) -> object:
        if call == "enqueue":
            await client.queue("q").enqueue(number)
            return None
        return await client.register("r").read()

    client = cluster.run(made())
    for number, document in enumerate((both, settled(both))):
        goes_on(cluster, document)
        assert cluster.run(first(client, number)) is None
        assert client.document == document
    cluster.run(client.aclose())
    assert client.document == settled(both)


def test_many_callers_go_on_while_replicas_do_one_after_another(cluster: InProcessCluster) -> None:
    """To that in which both are in force: what it stores, the first one's quorums have, too. Nothing is lost or doubled, and none meets an exception; but where
    the machine is so busy that a decision passes an item between two tries of its enqueue, that has an unknown outcome (three of 160 runs, ten at a time)."""
    both = both_of(cluster)
    is_over = False

    in_doubt = set[str]()

    def work(client: Client, caller: int) -> tuple[list[str], list[str]]:
        put: list[str] = []
        taken: list[str] = []
        queue = client.queue("q")
        while not is_over or not put:
            put.append(f"{caller}-{len(put)}")
            try:
                queue.enqueue(put[-1])
            except OutcomeUnknown as unknown:
                if "a decision has passed what was stored" not in str(unknown):
                    raise
                in_doubt.add(put[-1])
            taken += queue.dequeue(max_items=2)
        return put, taken

    with (
        connect(cluster.document, deadline_s=DEADLINE_S) as one,
        connect(cluster.document, deadline_s=DEADLINE_S, forward=False) as other,
        ThreadPoolExecutor(6) as pool,
    ):
        works = [pool.submit(work, (one, other)[caller % 2], caller) for caller in range(6)]
        try:
            for replica in cluster.up:
                goes_on(cluster, both, replica)
            one.queue("another").enqueue(1)
        finally:
            is_over = True
        done = [each.result(60) for each in works]
        rest = one.queue("q").dequeue(max_items=1000)
        given = [*(item for _, taken in done for item in taken), *rest]
        put = {item for some, _ in done for item in some}
        assert put - set(given) <= in_doubt
        assert set(given) <= put
        assert len(given) == len(set(given))
        assert len(given) > len(in_doubt)
        assert one.queue("another").dequeue(max_items=9) == [1]
        assert one.document == other.document == both


def use_in_child(client: Client, pipe: Any) -> None:
    """What a forked child does with its parent's client."""
    known = client.document.number
    client.queue("q").enqueue("of the child")
    pipe.send((known, client.document.number, followed(client)))
    client.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_begins_where_its_parent_is(cluster: InProcessCluster) -> None:
    both = both_of(cluster)
    client = connect(cluster.document, deadline_s=DEADLINE_S)
    goes_on(cluster, both)
    client.queue("q").enqueue("of the parent")
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=use_in_child, args=(client, there))
    child.start()
    assert here.poll(60)
    assert here.recv() == (1, 1, 0)
    child.join(60)
    assert child.exitcode == 0
    assert client.queue("q").dequeue(max_items=3) == ["of the parent", "of the child"]
    client.close()
    here.close()
    there.close()


def test_a_later_configuration_of_another_cluster_is_not_gone_on_to() -> None:
    """Two clusters may have the same name, and the same names of replicas: a wrong endpoint must not lead a client from one to the other."""
    infos = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}", 1, f"store{n}") for n in (1, 2, 3))
    file = ClusterDocument("local", infos)
    with cluster_of(file) as served:
        named = replace(
            served.document,
            replicas=tuple(
                replace(each, store=f"store{n}") for n, each in enumerate(served.document.replicas, 1)
            ),
        )
        stranger = replace(
            named, epoch=6, replicas=tuple(replace(each, store="another") for each in named.replicas)
        )
        later = replace(named, epoch=6)
        for told, expected in ((stranger, 0), (later, 6)):
            for id, server in served.servers.items():
                server.handler = replica_handler(InMemoryReplica(told, id), told)
            with connect(named) as client:
                assert client.document.number == expected


async def test_an_operator_whom_all_refuse_hears_it_at_once() -> None:
    """As without a token: to ask again would wait for the whole deadline, and say that no quorum answers."""

    async def refuses(_: PendingCommand) -> bytes:
        return problem(401, "unauthorized", definite=True)

    infos = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}") for n in (1, 2, 3))
    with cluster_of(ClusterDocument("local", infos)) as served:
        for server in served.servers.values():
            server.handler = refuses
        recipe = Recipe(served.document, {}, None, None)
        with pytest.raises(RefusedByReplicas, match="advice on unauthorized"):
            async with asyncio.timeout(DEADLINE_S):
                await recipe.operate(lambda at: change(at, lambda _: at))
