"""Shows that calls on objects of a type of one's own are linearizable while one replica after another is killed.

Three front ends call one object, on replicas that keep it without its code, while every replica in turn is ended with SIGKILL and started
again. Afterwards the command `quorate check` holds what they recorded against the class.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from quorate.adts import library
from quorate.api_specs.cluster import parse
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, LimitReached, OutcomeUnknown, Unavailable, connect_async
from quorate.client_sdk.api.history import History
from tests.sim import own
from tests.sim.own import Refused, Trail
from tests.system.harness import Clusters
from tests.unit.cli.conftest import quorate_here

FRONT_ENDS: Final = 3
CALLS_A_STEP: Final = 12
"""Of each front end, before something else happens."""
DEADLINE_S: Final = 20.0


async def _some_calls(client: AsyncClient, who: str, step: int) -> int:
    """How many calls had an answer."""
    trail = client.object(Trail, "x")
    acts: list[Callable[[int], Awaitable[Any]]] = [
        lambda number: trail.put(f"{who}.{step}.{number}"),
        lambda number: trail.add(f"{who}.{step}.{number}"),
        lambda _: trail.take(),
        lambda _: trail.look(),
    ]
    answered = 0
    for number in range(CALLS_A_STEP):
        try:
            await acts[number % len(acts)](number)
        except Refused:
            pass
        except (OutcomeUnknown, Unavailable):
            continue
        answered += 1
    return answered


async def _all_call(clients: list[AsyncClient], step: int) -> None:
    answered = await asyncio.gather(*(_some_calls(each, f"f{at}", step) for at, each in enumerate(clients)))
    assert min(answered) > CALLS_A_STEP / 2, "with a majority up most calls are answered"


@asynccontextmanager
async def _connected(document: Path, history: Path) -> AsyncIterator[list[AsyncClient]]:
    """Front ends that record what they do in one history."""
    async with AsyncExitStack() as open_ones:
        cluster_document = parse(document.read_text())
        yield [
            await open_ones.enter_async_context(
                connect_async(cluster_document, deadline_s=DEADLINE_S, history=History(history))
            )
            for _ in range(FRONT_ENDS)
        ]


async def _run(cluster: LocalCluster, document: Path, history: Path) -> None:
    async with _connected(document, history) as clients:
        await _all_call(clients, 0)
        for step, replica in enumerate(cluster.urls, 1):
            await asyncio.to_thread(cluster.kill, replica)
            await _all_call(clients, step)
            await asyncio.to_thread(cluster.restart, replica)
        await _all_call(clients, 9)


def test_calls_are_linearizable_while_replicas_are_killed_in_turn(clusters: Clusters) -> None:
    cluster = clusters.make()
    document = cluster.document_path
    document.write_text(f'{document.read_text()}\n[types]\nown = "somewhere.else:Trail"\n')
    cluster.start()
    cluster.ready()
    asyncio.run(_run(cluster, document, clusters.history))
    told = quorate_here("check", str(clusters.history), "--type", f"{own.__file__}:Trail", "--json")
    assert told.returncode == 0, told.stdout + told.stderr
    found = json.loads(told.stdout)
    assert found["right"] is True
    assert found["calls"] == FRONT_ENDS * CALLS_A_STEP * 5


LIBRARY: Final[dict[str, tuple[type, list[tuple[str, tuple[Any, ...]]]]]] = {
    "visits": (library.Counter, [("add", (1,)), ("add", (-2,)), ("value", ())]),
    "quota": (library.BoundedCounter, [("take", (60,)), ("give_back", (60,)), ("taken", ())]),
    "money": (library.Account, [("credit", (2,)), ("debit", (3,)), ("balance", ())]),
    "tags": (library.Set, [("add", ("a",)), ("remove", ("a",)), ("contains", ("a",)), ("elements", ())]),
    "pile": (library.Stack, [("push", ("x",)), ("push", ({"y": 1},)), ("pop", ()), ("top", ())]),
    "ranked": (library.PriorityQueue, [("put", ("x", 2)), ("put", ("y", 1)), ("take", ()), ("first", ())]),
    "phones": (library.Directory, [("insert", ("ann", 1)), ("delete", ("ann",)), ("lookup", ("ann",))]),
    "minutes": (library.Journal, [("append", ("x",)), ("read", (0, 50)), ("length", ())]),
    "leader": (library.Lock, [("acquire", ("WHO", 1.0, 5.0)), ("release", (1,)), ("holder", ())]),
}
"""Each bundled type, by the name that the cluster has for it, and what each front end calls."""
OUTCOMES: Final = tuple(
    each for name in library.__all__ if issubclass(each := getattr(library, name), Exception)
)


async def _call_all(client: AsyncClient, who: str) -> int:
    """How many calls had an answer."""
    answered = 0
    for number in range(max(len(calls) for _, calls in LIBRARY.values())):
        for name, (found, calls) in LIBRARY.items():
            operation, args = calls[number % len(calls)]
            given = [who if each == "WHO" else each for each in args]
            try:
                await getattr(client.object(found, "x", type_name=name), operation)(*given)
            except OUTCOMES:
                pass
            except (OutcomeUnknown, Unavailable):
                continue
            answered += 1
    return answered


async def _run_library(cluster: LocalCluster, document: Path, history: Path) -> None:
    async with _connected(document, history) as clients:
        for replica in [None, *cluster.urls]:
            if replica is not None:
                await asyncio.to_thread(cluster.kill, replica)
            answered = await asyncio.gather(*(_call_all(each, f"f{at}") for at, each in enumerate(clients)))
            assert min(answered) > 2 * len(LIBRARY), "with a majority up most calls are answered"
            if replica is not None:
                await asyncio.to_thread(cluster.restart, replica)


def test_bundled_types_are_linearizable_while_replicas_are_killed_in_turn(clusters: Clusters) -> None:
    cluster = clusters.make()
    document = cluster.document_path
    named = "\n".join(
        f'{name} = "quorate.adts.library:{found.__name__}"' for name, (found, _) in LIBRARY.items()
    )
    document.write_text(f"{document.read_text()}\n[types]\n{named}\n")
    assert {found for found, _ in LIBRARY.values()} == set(own.BUNDLED)
    cluster.start()
    cluster.ready()
    asyncio.run(_run_library(cluster, document, clusters.history))
    told = quorate_here("check", str(clusters.history), "--cluster", str(document), "--json")
    assert told.returncode == 0, told.stdout + told.stderr
    assert (found := json.loads(told.stdout))["right"] is True
    assert found["objects"] == len(LIBRARY)


def test_a_history_that_the_class_does_not_allow_is_found_out(clusters: Clusters) -> None:
    """What the check above would say."""
    lines = [
        {
            "type": "invoke",
            "time": 0,
            "id": "1",
            "process": "a",
            "f": "put",
            "object": "own/x",
            "value": ["v"],
        },
        {
            "type": "ok",
            "time": 1,
            "id": "1",
            "process": "a",
            "f": "put",
            "object": "own/x",
            "value": ["v"],
            "result": ["Ok", 2],
        },
    ]
    clusters.folder.mkdir(exist_ok=True)
    clusters.history.write_text("".join(json.dumps(each) + "\n" for each in lines))
    told = quorate_here("check", str(clusters.history), "--type", f"{own.__file__}:Trail")
    assert told.returncode == 1, told.stdout + told.stderr
    assert "own/x is not linearizable" in told.stdout


LARGE: Final = "x" * 4000
AT_ONCE: Final = 24
"""Calls of 4 KB: twice as many as replicas of this cluster store before they run."""


async def _fill(document: Path) -> tuple[int, list[Exception]]:
    """How many calls are stored, and how the others end."""
    async with connect_async(parse(document.read_text()), deadline_s=DEADLINE_S) as client:
        trail = client.object(Trail, "x")
        ends = await asyncio.gather(
            *(trail.add(f"{number}{LARGE}") for number in range(AT_ONCE)), return_exceptions=True
        )
        again = await asyncio.gather(trail.add(f"again{LARGE}"), return_exceptions=True)
    failed = [each for each in (*ends, *again) if isinstance(each, Exception)]
    return len(ends) + len(again) - len(failed), failed


async def _look(document: Path) -> list[str]:
    async with connect_async(parse(document.read_text()), deadline_s=DEADLINE_S) as client:
        trail = client.object(Trail, "x")
        shown: list[str] = await trail.look()
        await trail.add("there is room again")
        return shown


def test_an_object_goes_on_by_itself_once_a_replica_is_back_without_which_no_call_ran(
    clusters: Clusters,
) -> None:
    """330 calls of 4 KiB stopped it for good."""
    cluster = clusters.make(settings="[limits]\nvalue_bytes_max = 262144\n")
    document = cluster.document_path
    rule = """
[types]
own = "somewhere.else:Trail"

[[choices]]
objects = "own/*"
classes = { "Blind/Ok" = [0, 1], "Call/Ok" = [3, 1] }
"""
    document.write_text(f"{document.read_text()}\n{rule}")
    cluster.start()
    cluster.ready()
    cluster.kill("r3")
    stored, failed = asyncio.run(_fill(document))
    assert 0 < stored < AT_ONCE
    # Which of the two is told is a matter of time: two replicas have no room, and the third is down. Both are certain.
    assert any(isinstance(each, LimitReached | Unavailable) for each in failed)
    cluster.restart("r3")
    shown = asyncio.run(_look(document))
    unknown = sum(isinstance(each, OutcomeUnknown) for each in failed)
    assert stored <= len(shown) <= stored + unknown
