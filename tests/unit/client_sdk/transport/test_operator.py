"""An operator carries out the steps of a change: it tells and asks all members at once, and goes on without those that are silent."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo, from_json
from quorate.client_sdk.errors import RefusedByReplicas
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.client_sdk.protocol.core.values import Carry, Done
from quorate.client_sdk.protocol.reconfiguration import (
    Ask,
    CarryAll,
    Holding,
    Perform,
    Steps,
    Tell,
    Todo,
    Wait,
    change,
)
from quorate.client_sdk.transport import operator
from quorate.client_sdk.transport.driver import Driver
from quorate.client_sdk.transport.operator import Operator, Pace, Patience
from tests.support.in_process import in_process
from tests.unit.client_sdk.loopback import (
    Handler,
    PendingCommand,
    Server,
    problem,
    response,
    serving,
    silence,
)
from tests.unit.client_sdk.scripted import ScriptedMachine, ScriptedTransport, asking, changed, document_of

TOKEN = "of-an-administrator"
PATIENT_S = 60.0


class Cluster:
    """Three servers that answer as was said, and the operator of their cluster."""

    def __init__(self, servers: dict[str, Server]) -> None:
        self.servers = servers
        infos = tuple(ReplicaInfo(name, server.url + "/") for name, server in servers.items())
        self.document = replace(document_of("r1", "r2", "r3"), replicas=infos)
        self.both = changed(self.document)
        self.machine = ScriptedMachine()
        self.transport = ScriptedTransport()
        self.driver = Driver(
            self.document, transport=self.transport, site="test", seed=0, machine=self.machine
        )

    def operator(self, **options: Any) -> Operator:
        """One who may change the configuration."""
        return Operator(self.driver, token=TOKEN, **options)

    async def answer(self, todo: Todo) -> Any:
        """What comes of that step."""
        one = self.operator()
        try:
            return await one.run(only(todo))
        finally:
            await one.aclose()


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is left out because the machine is busy."""
    monkeypatch.setattr(operator, "ANSWER_S", PATIENT_S)
    monkeypatch.setattr(operator, "LATE_S", PATIENT_S)


@pytest.fixture
def servers() -> Iterator[dict[str, Server]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(serving(silence)) for name in ("r1", "r2", "r3")}


@pytest_asyncio.fixture
async def cluster(servers: dict[str, Server]) -> AsyncIterator[Cluster]:
    made = Cluster(servers)
    yield made
    await made.driver.aclose()


def always(answer: bytes) -> Handler:
    async def handle(_: PendingCommand) -> bytes:
        return answer

    return handle


def json(**told: Any) -> bytes:
    return response(200, msgspec.json.encode(told), "application/json")


def page(*objects: str, epoch: int = 1, more: bool = False, keys: int = 0) -> bytes:
    return json(epoch=epoch, objects=objects, more=more, keys=keys)


EMPTY = Holding(1, (), 0)


async def test_all_members_are_told_of_a_configuration_and_the_driver_goes_by_it(cluster: Cluster) -> None:
    for epoch, server in enumerate(cluster.servers.values(), 1):
        server.handler = always(json(epoch=epoch))
    assert await cluster.answer(Tell(cluster.both)) == {"r1": 1, "r2": 2, "r3": 3}
    for server in cluster.servers.values():
        [asked] = server.asked
        assert asked.line == "POST /v1/admin/configuration HTTP/1.1"
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"
        assert asked.headers["content-type"] == "application/json"
        assert from_json(msgspec.json.decode(asked.body)["document"]) == cluster.both
    assert cluster.driver.document == cluster.both


async def test_all_members_are_asked_what_they_hold_and_the_driver_stays_where_it_is(
    cluster: Cluster,
) -> None:
    for keys, server in enumerate(cluster.servers.values(), 1):
        server.handler = always(page("queue/a", "register/b", keys=keys))
    held = {f"r{keys}": Holding(1, ("queue/a", "register/b"), keys) for keys in (1, 2, 3)}
    assert await cluster.answer(Ask(cluster.both)) == held
    for server in cluster.servers.values():
        [asked] = server.asked
        assert asked.line == "GET /v1/admin/configuration HTTP/1.1"
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert cluster.driver.document == cluster.document


@pytest.mark.parametrize("step", [Tell, Ask])
async def test_all_are_asked_at_once(cluster: Cluster, step: type[Tell | Ask]) -> None:
    """Each waits for the others to be asked, too."""
    arrived: list[str] = []

    async def once_all_have_come(asked: PendingCommand) -> bytes:
        arrived.append(asked.line)
        for _ in range(20_000):
            if len(arrived) >= len(cluster.servers):
                return page()
            await asyncio.sleep(0.001)
        return problem(503, "overloaded")

    for server in cluster.servers.values():
        server.handler = once_all_have_come
    told = {"r1", "r2", "r3"}
    assert (await cluster.answer(step(cluster.both))).keys() == told


SILENT = {
    "down": None,
    "overloaded": problem(503, "overloaded", definite=True),
    "starting": problem(503, "starting"),
    "throttled": problem(429, "too-many-requests"),
    "broken": response(500, b"", "text/plain"),
    "malformed": response(200, b"<html>", "text/html"),
    "not of this kind": json(epoch="later"),
}


@pytest.mark.parametrize("answer", SILENT.values(), ids=SILENT.keys())
@pytest.mark.parametrize("step", [Tell, Ask])
async def test_who_is_silent_is_left_out(
    cluster: Cluster, step: type[Tell | Ask], answer: bytes | None
) -> None:
    for name in ("r1", "r3"):
        cluster.servers[name].handler = always(page())
    if answer is None:
        cluster.servers["r2"].stop()
    else:
        cluster.servers["r2"].handler = always(answer)
    told = 1 if step is Tell else EMPTY
    assert await cluster.answer(step(cluster.both)) == {"r1": told, "r3": told}


@pytest.mark.parametrize("step", [Tell, Ask])
async def test_who_does_not_answer_in_time_is_left_out(
    cluster: Cluster, step: type[Tell | Ask], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "ANSWER_S", 0.01)
    async with asyncio.timeout(30):
        assert await cluster.answer(step(cluster.both)) == {}


@pytest.mark.parametrize("step", [Tell, partial(Ask, names=False)])
async def test_one_that_hangs_does_not_cost_each_step_its_whole_time(
    cluster: Cluster, step: Callable[[ClusterDocument], Todo], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "LATE_S", 0.3)
    for name in ("r1", "r3"):
        cluster.servers[name].handler = always(page())
    async with asyncio.timeout(PATIENT_S / 2):
        assert {*await cluster.answer(step(cluster.both))} == {"r1", "r3"}


async def test_most_must_have_answered_before_others_are_given_up(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "LATE_S", 0.0)
    is_asked = asyncio.Event()

    async def late(_: PendingCommand) -> bytes:
        is_asked.set()
        await asyncio.sleep(0.05)
        return page()

    cluster.servers["r1"].handler = always(page())
    cluster.servers["r2"].handler = late
    assert {*await cluster.answer(Tell(cluster.both))} >= {"r1", "r2"}
    assert is_asked.is_set()


@pytest.mark.parametrize(
    "refused",
    [problem(401, "unauthorized", definite=True), problem(403, "forbidden", definite=True)],
    ids=["401", "403"],
)
@pytest.mark.parametrize("step", [Tell, Ask])
async def test_a_token_that_does_not_allow_it_is_told(
    cluster: Cluster, step: type[Tell | Ask], refused: bytes
) -> None:
    for server in cluster.servers.values():
        server.handler = always(refused)
    with pytest.raises(RefusedByReplicas, match="r1: advice on ") as caught:
        await cluster.answer(step(cluster.both))
    assert caught.value.definite
    cluster.servers["r2"].handler = always(page())
    with pytest.raises(RefusedByReplicas, match=r"r1: advice on .*; r3: advice on "):
        await cluster.answer(step(cluster.both))
    cluster.servers["r3"].handler = always(page())
    assert list(await cluster.answer(step(cluster.both))) == ["r2", "r3"], "two are enough"


NAMES = ("queue/a", "queue/a+b", "queue/a=c", "queue/d@e", "register/~")


def in_pages(names: tuple[str, ...], size: int, *epochs: int) -> Handler:
    """They come so many at a time, as of a replica that is in the next of these epochs each time; keys: how many pages there were."""
    told: list[int] = []

    async def handle(asked: PendingCommand) -> bytes:
        query = parse_qs(urlsplit(asked.line.split(" ")[1]).query)
        after = query.get("after", [""])[0]
        if len(told) > len(names):
            return problem(500, "asked-too-often")
        rest = [name for name in names if name > after]
        told.append(epochs[min(len(told), len(epochs) - 1)])
        return page(*rest[:size], epoch=told[-1], more=len(rest) > size, keys=len(told))

    return handle


async def test_pages_are_put_together(cluster: Cluster) -> None:
    for size, server in enumerate(cluster.servers.values(), 1):
        server.handler = in_pages(NAMES, size, 1)
    assert await cluster.answer(Ask(cluster.both)) == {
        "r1": Holding(1, NAMES, 5),
        "r2": Holding(1, NAMES, 3),
        "r3": Holding(1, NAMES, 2),
    }


async def test_pages_of_different_configurations_are_no_answer(cluster: Cluster) -> None:
    """Under the earlier one it may have got objects above those that were listed already, or below."""
    cluster.servers["r1"].handler = in_pages(NAMES, 2, 0, 1)
    cluster.servers["r2"].handler = in_pages(NAMES, 2, 1, 1, 2)
    cluster.servers["r3"].handler = in_pages(NAMES, 2, 0)
    assert await cluster.answer(Ask(cluster.both)) == {"r3": Holding(0, NAMES, 3)}


async def test_a_later_page_that_is_refused_or_lost_is_as_the_first(cluster: Cluster) -> None:
    broken = problem(503, "overloaded")
    first = in_pages(NAMES, 2, 1)

    async def half(asked: PendingCommand) -> bytes:
        return broken if "after=" in asked.line else await first(asked)

    for name, server in cluster.servers.items():
        server.handler = half if name == "r1" else always(page())
    assert await cluster.answer(Ask(cluster.both)) == {"r2": EMPTY, "r3": EMPTY}
    broken = problem(403, "forbidden")
    assert await cluster.answer(Ask(cluster.both)) == {"r2": EMPTY, "r3": EMPTY}


async def test_urls_that_the_caller_gives_go_before_those_of_the_document(cluster: Cluster) -> None:
    for server in cluster.servers.values():
        server.handler = always(page())
    with serving(always(page(epoch=7))) as proxy:
        one = cluster.operator(urls={"r1": proxy.url + "/"})

        def steps() -> Steps:
            return [(yield Tell(cluster.both)), (yield Ask(cluster.both))]

        told, held = cast(Any, await one.run(steps()))
        await one.aclose()
        assert len(proxy.asked) == 2
    assert told == {"r1": 7, "r2": 1, "r3": 1}
    assert held["r1"] == Holding(7, (), 0)
    assert cluster.servers["r1"].asked == []


async def test_a_member_whose_release_knows_of_no_changes_is_named_before_anything_is_done(
    cluster: Cluster,
) -> None:
    cluster.servers["r1"].handler = always(page())
    cluster.servers["r2"].handler = always(problem(503, "starting"))
    cluster.servers["r3"].stop()
    one = cluster.operator()
    await one.check_releases()  # Who is silent may be of any release.
    cluster.servers["r2"].handler = always(problem(404, "no-such-path"))
    with pytest.raises(
        RefusedByReplicas, match=r"^r2: .* version 1 .* with version 2: update it first"
    ) as caught:
        await one.check_releases()
    assert caught.value.definite
    cluster.servers["r2"].handler = always(response(404, b"<h1>nobody serves this host</h1>", "text/html"))
    await one.check_releases()  # So says a proxy before a member that is down.
    await one.aclose()
    assert {asked.line.split()[0] for server in cluster.servers.values() for asked in server.asked} == {"GET"}


async def test_a_change_under_way_is_ended_though_a_member_came_back_whose_release_knows_of_none(
    cluster: Cluster,
) -> None:
    cluster.servers["r2"].handler = always(problem(404, "no-such-path"))
    cluster.driver.reconfigure(cluster.both)
    one = cluster.operator()
    await one.check_releases()
    await one.aclose()
    assert [server.asked for server in cluster.servers.values()] == [[]] * len(cluster.servers)


def test_who_is_later_than_most_is_waited_for_longer_where_a_step_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    patience = Patience()
    waited = [patience.late_s]
    for _ in range(4):
        patience.repeated()
        waited.append(patience.late_s)
    assert waited == [0.3, 0.6, 1.2, 2.0, 2.0]
    patience.went_on()
    assert patience.late_s == waited[0]


async def test_one_that_is_far_away_is_heard_in_the_end(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator, "LATE_S", 0.001)

    async def far_away(_: PendingCommand) -> bytes:
        await asyncio.sleep(1)
        return page()

    for name, handler in (("r1", always(page())), ("r2", far_away), ("r3", always(page()))):
        cluster.servers[name].handler = handler
    rounds: list[set[str]] = []

    def steps() -> Steps:
        while len(rounds) < 2 or ("r2" not in rounds[-2] & rounds[-1] and len(rounds) < 100):
            rounds.append({*(yield Tell(cluster.both))})
            rounds.append({*(yield Ask(cluster.both, names=False))})
            yield Wait(0.0)
        return cluster.both

    one = cluster.operator()
    await one.run(steps())
    await one.aclose()
    assert "r2" in rounds[-2] & rounds[-1]


async def test_steps_are_done_to_their_result(cluster: Cluster) -> None:
    for server in cluster.servers.values():
        server.handler = always(page())
    todos: list[Todo] = [Perform(asking("r1", "r2")), Tell(cluster.both), Ask(cluster.both), Wait(0.0)]
    answers: list[Any] = []

    def steps() -> Steps:
        for todo in todos:
            answer = yield todo
            answers.append(answer)
        return cluster.both

    one = cluster.operator()
    assert await one.run(steps()) == cluster.both
    await one.aclose()
    assert isinstance(answers[0], Done)
    assert answers[1:] == [dict.fromkeys(cluster.servers, 1), dict.fromkeys(cluster.servers, EMPTY), None]
    assert [name for name, _ in cluster.transport.batches] == ["r1", "r2"]


def test_places_are_so_far_apart_and_lateness_is_not_made_up_for() -> None:
    pace = Pace(4)
    assert [pace.wait_s(10.0, count) for count in (1, 2, 1)] == [0.0, 0.25, 0.75]
    assert pace.wait_s(10.5, 1) == 0.5
    assert [pace.wait_s(60.0, 1) for _ in range(2)] == [0.0, 0.25]
    hurried = Pace(None)
    assert [hurried.wait_s(now_s, 8) for now_s in (10.0, 10.0, 60.0)] == [0.0] * 3


async def test_objects_are_carried_at_the_pace_that_was_asked_for(cluster: Cluster) -> None:
    def steps() -> Steps:
        for names in ("abcd", "e"):
            yield CarryAll(tuple(Carry(f"queue/{name}") for name in names))
        return cluster.document

    one = cluster.operator(rate=20)
    began_s = time.monotonic()
    await one.run(steps())
    await one.aclose()
    assert time.monotonic() - began_s >= 4 / 20, "the first ones at once"


async def test_what_steps_raise_reaches_the_caller(cluster: Cluster) -> None:
    def steps() -> Steps:
        yield Wait(0.0)
        raise ZeroDivisionError

    one = cluster.operator()
    with pytest.raises(ZeroDivisionError):
        await one.run(steps())
    await one.aclose()


@pytest.mark.parametrize("seconds", [0.05, 2.0])
async def test_it_waits_up_to_half_as_long_again(cluster: Cluster, seconds: float) -> None:
    """By chance: others may wait for the same."""
    waited: list[float] = []

    async def noting(delay_s: float) -> None:
        waited.append(delay_s)

    one = cluster.operator()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "sleep", noting)
        for _ in range(50):
            await one.run(only(Wait(seconds)))
    await one.aclose()
    assert all(seconds <= each <= 1.5 * seconds for each in waited)
    assert len(set(waited)) == 50


def only(todo: Todo) -> Steps:
    """One step alone."""
    return (yield todo)


async def operated(driver: Driver, steps: Steps, token: str | None = None) -> Any:
    """What comes of these steps, done by an operator from that front end."""
    one = Operator(driver, token=token)
    try:
        return await one.run(steps)
    finally:
        await one.aclose()


def eager(document: ClusterDocument) -> ClusterDocument:
    """The same with other quorums for queues."""
    rule = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})
    return replace(document, choices=(rule,))


def test_shipped_replicas_are_told_and_say_what_they_hold(tmp_path: Path) -> None:
    with in_process(tmp_path) as replicas:
        both = joint(replicas.document, eager(replicas.document))
        front_end = replicas.front_end()
        queues = [front_end.client.queue(name) for name in "abc"]
        for queue in queues:
            replicas.run(queue.enqueue(1))

        def steps() -> Steps:
            before = yield Ask(replicas.document)
            told = yield Tell(both)
            return before, told, (yield Ask(both))

        before, told, after = replicas.run(operated(front_end.driver, steps()))
        assert told == {"r1": 1, "r2": 1, "r3": 1}
        assert before.keys() == after.keys() == {"r1", "r2", "r3"}
        assert {each.epoch for each in before.values()} == {0}
        assert {each.epoch for each in after.values()} == {1}
        assert {name for each in after.values() for name in each.objects} == {
            "queue/a",
            "queue/b",
            "queue/c",
        }
        assert [replicas.run(queue.dequeue()) for queue in queues] == [1, 1, 1]


def test_a_whole_change_of_shipped_replicas_comes_to_its_end(tmp_path: Path) -> None:
    with in_process(tmp_path) as replicas:
        front_end = replicas.front_end()
        queue = front_end.client.queue("jobs")
        replicas.run(queue.enqueue_many([1, 2]))
        wanted = eager(replicas.document)
        document = replicas.run(operated(front_end.driver, change(replicas.document, lambda _: wanted)))
        assert document == settled(joint(replicas.document, wanted))
        assert front_end.client.document == document
        assert [replicas.member(name).document for name in replicas.up] == [document] * 3
        assert replicas.run(queue.dequeue(max_items=3)) == [1, 2]


def test_shipped_replicas_refuse_another_token(tmp_path: Path) -> None:
    with in_process(tmp_path, token="right") as replicas:
        front_end = replicas.front_end()
        both = joint(replicas.document, eager(replicas.document))
        for step in (Ask(both), Tell(both)):
            with pytest.raises(RefusedByReplicas):
                replicas.run(operated(front_end.driver, only(step), "wrong"))
        assert [replicas.member(name).document.number for name in replicas.up] == [0] * 3


async def test_who_answers_at_the_url_of_another_replica_counts_for_nobody(cluster: Cluster) -> None:
    """It would count twice."""
    for server in cluster.servers.values():
        server.handler = always(json(epoch=1, replica="r1", objects=[], more=False, keys=0))
    assert await cluster.answer(Tell(cluster.both)) == {"r1": 1}
    assert await cluster.answer(Ask(cluster.both)) == {"r1": EMPTY}
