"""A replica that is told to stop does so in good order: what is under way ends, and nobody is left in doubt who need not be.

All replicas are restarted one after the other while clients of both kinds go on: front ends of the SDK, whose consumers hand
their dequeues over to replicas, and plain HTTP callers who take the next replica when one refuses. No operation may have an
unknown outcome. Then what a single caller sees: who waits for items gets an answer, who asks on an open connection hears that
certainly nothing was done, and who waits for a quorum that is not there hears at the deadline that nothing is certain. A second
signal ends the process at once.
"""

import asyncio
import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Final, Self
from urllib.parse import urlsplit

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from quorate.api_specs.limits import DRAIN_S_MAX, STOP_S_MAX
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import is_ready
from quorate.client_sdk import AsyncClient, OutcomeUnknown, connect_async
from tests.system.harness import QUICK, Clusters, delete_all, stop, until, until_now
from tests.system.histories import Told
from tests.system.load import MAJORITIES, Load, Operation, front_ends, goes_on

FRONT_ENDS: Final = 3
CALLERS: Final = 4
WAITS_S: Final = 24.0
TRIES: Final = 5
STILL_S: Final = 1.0
"""Of a front end an answer is waited for twice as long, at least."""
APART: Final = 1_000_000
"""Between the values of two loads."""
PATIENCE_S: Final = 20.0
"""The deadline of operations: on a busy machine, front ends that decide for themselves while their host is away may take turns
from each other for some seconds, and who has proposed by its deadline does not know. That is not for a stop to end."""


class Noting(Load):
    """A load that keeps the words of every outcome that is not known."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._numbers = itertools.count(number * APART + 1)
        self.in_doubt: Final[list[str]] = []

    async def work(self, client: AsyncClient, name: str, operations: Iterator[Operation]) -> None:
        """See Load."""

        def noting(operation: Operation) -> Operation:
            async def run(client: AsyncClient, number: int) -> None:
                began = time.time()
                try:
                    await operation(client, number)
                except OutcomeUnknown as error:
                    self.in_doubt.append(f"{name} from {time.ctime(began)} to {time.ctime()}: {error}")
                    raise

            return run

        await super().work(client, name, map(noting, operations))


class Caller:
    """A program that knows HTTP alone, keeps its connections, and goes to the next replica when one refuses for certain."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._urls: Final = list(cluster.urls.values())
        self.done = 0
        self.refused = 0
        self.in_doubt: list[str] = []

    async def work(self, load: Load) -> None:
        """Enqueue and dequeue in turn until the load is over."""
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
            number = 0
            while not load.is_over:
                number += 1
                body = {"item": number} if number % 2 else {"max": 1}
                await self._call(client, "items" if number % 2 else "dequeue", body)
                await asyncio.sleep(0.01)

    async def _call(self, client: httpx.AsyncClient, path: str, body: dict[str, int]) -> None:
        try:
            answer = await client.post(f"{self._urls[0]}/v1/queues/plain/{path}", json=body)
        except httpx.ConnectError:
            self._next()  # Nothing was sent.
        except httpx.TransportError as error:
            self.in_doubt.append(repr(error))
        else:
            if answer.is_success:
                self.done += 1
            elif answer.json()["definite"]:
                self._next()
            else:
                self.in_doubt.append(answer.text)

    def _next(self) -> None:
        self.refused += 1
        self._urls.append(self._urls.pop(0))


class Pulse:
    """Which replicas stood still though nobody had told them to stop, or this process did: what was asked then may have an unknown outcome."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.stood_still: list[str] = []
        self.stopping = ""
        self._urls: Final = cluster.urls

    async def watch(self, load: Load) -> None:
        """Feel each until the load is over."""
        async with httpx.AsyncClient(trust_env=False, timeout=60) as client, asyncio.TaskGroup() as group:
            for replica in self._urls:
                group.create_task(self._feel(client, replica, load))

    async def _feel(self, client: httpx.AsyncClient, replica: str, load: Load) -> None:
        felt_s = time.monotonic()
        while not load.is_over:
            told = self.stopping
            await asyncio.sleep(0.1)
            with contextlib.suppress(httpx.TransportError):
                await client.get(f"{self._urls[replica]}/v1/health/live")
            before_s, felt_s = felt_s, time.monotonic()
            if felt_s - before_s > STILL_S and replica not in (told, self.stopping):
                self.stood_still.append(replica)


async def _restart_in_turn(
    cluster: LocalCluster, load: Load, callers: list[Caller], pulse: Pulse
) -> list[int]:
    codes = []
    await goes_on(load, MAJORITIES, "before the first stop")
    for replica in cluster.urls:
        pulse.stopping = replica
        codes.append(await asyncio.to_thread(stop, cluster, replica))
        pulse.stopping = ""
        await goes_on(load, MAJORITIES, f"while {replica} is down")
        await asyncio.to_thread(cluster.restart, replica)
        await goes_on(load, MAJORITIES, f"when {replica} is back")
        counts = [caller.done for caller in callers]
        await until(
            lambda before=counts: all(  # type: ignore[misc]
                caller.done > count for caller, count in zip(callers, before, strict=True)
            ),
            "plain callers go on",
        )
    load.is_over = True
    return codes


async def _roll(
    clusters: Clusters, cluster: LocalCluster, load: Load, callers: list[Caller], pulse: Pulse
) -> list[int]:
    made = front_ends(cluster.document, clusters.history, count=FRONT_ENDS, deadline_s=PATIENCE_S)
    async with made as connected, asyncio.TaskGroup() as group:
        for client in connected:
            for worker in load.workers(client):
                group.create_task(worker)
        for caller in callers:
            group.create_task(caller.work(load))
        group.create_task(pulse.watch(load))
        restarting = group.create_task(_restart_in_turn(cluster, load, callers, pulse))
    return restarting.result()


@pytest.mark.slow
def test_rolling_restart_leaves_no_outcome_unknown(clusters: Clusters) -> None:
    """Where a replica stood still by itself, they are restarted once more."""
    cluster = clusters.start()
    for number in range(TRIES):
        callers = [Caller(cluster) for _ in range(CALLERS)]
        load, pulse = Noting(number), Pulse(cluster)
        codes = asyncio.run(_roll(clusters, cluster, load, callers, pulse))
        print([(caller.done, caller.refused) for caller in callers], pulse.stood_still)
        assert codes == [0, 0, 0]
        assert sum(caller.refused for caller in callers) > 0, "somebody met a replica that stopped"
        in_doubt = load.in_doubt + [each for caller in callers for each in caller.in_doubt]
        if not (in_doubt and pulse.stood_still):
            assert not in_doubt, "\n".join(in_doubt)
            break
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(search=MAJORITIES) == 0, "a search was given up"
    unknown = {name: told.unknown(name) for name in MAJORITIES}
    assert number or unknown == dict.fromkeys(MAJORITIES, 0)


class Open:
    """A connection to a replica that stays open, and a request on it in the background."""

    def __init__(self, cluster: LocalCluster, replica: str) -> None:
        parts = urlsplit(cluster.urls[replica])
        self._connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
        self.answer: tuple[int, dict[str, Any], str] | None = None
        self.took_s = self.ended_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, Any], str]:
        """The answer: status, JSON, and what it says of the connection."""
        began_s = time.monotonic()
        headers = {"Content-Type": "application/json"}
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        found = self._connection.getresponse()
        self.answer = found.status, json.loads(found.read()), found.headers.get("Connection", "")
        self.ended_s = time.monotonic()
        self.took_s = self.ended_s - began_s
        return self.answer

    def begin(self, path: str, body: object) -> threading.Thread:
        """Post in a thread."""

        def ask() -> None:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.ask("POST", path, body)

        thread = threading.Thread(target=ask)
        thread.start()
        return thread


ROUNDS: Final = "quorate_round_duration_seconds_count"


def told(cluster: LocalCluster, replica: str, name: str, **labels: str) -> float:
    """What a replica's metrics say of one figure; 0 where they say nothing."""
    text = httpx.get(cluster.urls[replica] + "/metrics", timeout=PATIENCE_S, trust_env=False).text
    samples = [each for family in text_string_to_metric_families(text) for each in family.samples]
    return sum(each.value for each in samples if (each.name, each.labels) == (name, labels))


def test_who_waits_gets_an_answer_and_who_asks_is_refused_for_certain(clusters: Clusters) -> None:
    """A replica that stops leaves its callers half a second to ask: where this process is held up for longer, another try is made."""
    cluster = clusters.start()
    for _ in range(TRIES):
        with Open(cluster, "r1") as waiting, Open(cluster, "r1") as asking, Open(cluster, "r1") as looking:
            try:
                check_what_callers_hear(cluster, waiting, asking, looking)
            except (ConnectionError, TimeoutError):
                until_now(lambda: "r1" not in cluster.pids, "it has ended")
                assert [id for id, _ in cluster.died()] == ["r1"]
                cluster.restart("r1")
            else:
                return
    pytest.fail("nobody hears that it stops")


def check_what_callers_hear(cluster: LocalCluster, waiting: Open, asking: Open, looking: Open) -> None:
    """ConnectionError or TimeoutError where this came too late."""
    for each in (asking, looking):
        assert each.ask("GET", "/v1/health/ready")[0] == 200
    thread = waiting.begin("/v1/queues/q/dequeue", {"wait_s": 20})
    # It must have looked at least once, or it is refused as a new one.
    until_now(lambda: told(cluster, "r1", ROUNDS, request="Collect") > 0, "it waits")
    os.kill(cluster.pids["r1"], signal.SIGTERM)
    stopped_s = time.monotonic()
    try:
        until_now(lambda: looking.ask("GET", "/v1/health/ready")[0] == 503, "it says that it is not ready")
        assert looking.answer is not None
        assert looking.answer[1]["type"] == "/problems/stopping"
        status, problem, connection = asking.ask("POST", "/v1/queues/q/items", {"item": 1})
        assert (status, problem["type"], problem["definite"]) == (503, "/problems/stopping", True)
        assert connection == "close"
    finally:
        thread.join(STOP_S_MAX)
    assert waiting.answer is not None
    assert waiting.answer[:2] == (200, {"items": []})
    if waiting.ended_s - stopped_s >= DRAIN_S_MAX:
        raise TimeoutError("not at once, but when all else is over")
    until_now(lambda: "r1" not in cluster.pids, "it has ended")
    assert dict(cluster.died()) == {"r1": 0}


@contextlib.contextmanager
def blocked(cluster: LocalCluster) -> Iterator[tuple[Open, threading.Thread]]:
    """An enqueue at r1 that finds no quorum, and would wait for WAITS_S."""
    for other in ("r2", "r3"):
        cluster.kill(other)
    before = told(cluster, "r1", "quorate_entries_stored_total")
    with Open(cluster, "r1") as caller:
        thread = caller.begin(f"/v1/queues/q/items?deadline_s={WAITS_S:g}", {"item": 1})
        until_now(lambda: told(cluster, "r1", "quorate_entries_stored_total") > before, "r1 has stored it")
        yield caller, thread
        thread.join(STOP_S_MAX)


def test_what_cannot_end_is_told_at_the_deadline_that_nothing_is_certain(clusters: Clusters) -> None:
    cluster = clusters.start()
    with blocked(cluster) as (caller, thread):
        assert stop(cluster, "r1") == 0
        thread.join(STOP_S_MAX)
        assert caller.answer is not None
        status, problem, _ = caller.answer
        assert (status, problem["type"], problem["definite"]) == (503, "/problems/unavailable", False)
        assert DRAIN_S_MAX - 1 < caller.took_s < WAITS_S - 1, "no sooner, and not only at its own deadline"


def test_whose_body_has_not_come_whole_hears_that_nothing_was_done(clusters: Clusters) -> None:
    """They heard a bare 500, and each left an error with a traceback in the log."""
    cluster = clusters.start()
    parts = urlsplit(cluster.urls["r1"])
    with contextlib.ExitStack() as slow:
        callers = [
            slow.enter_context(socket.create_connection((parts.hostname, parts.port))) for _ in range(3)
        ]
        for each in callers:
            each.settimeout(STOP_S_MAX)
            each.sendall(
                b"POST /v1/queues/q/items HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b'Content-Length: 1000\r\n\r\n{"item":'
            )
        until_now(
            lambda: told(cluster, "r1", "quorate_http_requests_under_way") >= len(callers), "they have begun"
        )
        assert stop(cluster, "r1") == 0
        for each in callers:
            answer = http.client.HTTPResponse(each)
            answer.begin()
            problem = json.loads(answer.read())
            assert (answer.status, problem["type"], problem["definite"]) == (503, "/problems/stopping", True)
    log = cluster.log_file("r1").read_text()
    assert "Traceback" not in log
    assert "their outcome is unknown" not in log


def ended_by_two_signals(cluster: LocalCluster) -> tuple[int, object]:
    """r1's exit code, and what it answered to a caller who waits in vain; all replicas run again afterwards."""
    with blocked(cluster) as (caller, thread):
        pid = cluster.pids["r1"]
        os.kill(pid, signal.SIGTERM)
        until_now(lambda: not is_ready(cluster.urls["r1"]), "it has heard the first")
        os.kill(pid, signal.SIGTERM)
        until_now(lambda: "r1" not in cluster.pids, "it has ended")
        thread.join(STOP_S_MAX)
    (code,) = (code for _, code in cluster.died())
    cluster.start()
    cluster.ready()
    return code, caller.answer


def test_second_signal_ends_it_at_once_and_loses_nothing(clusters: Clusters) -> None:
    cluster = clusters.start()
    with httpx.Client(base_url=cluster.urls["r1"], timeout=PATIENCE_S, trust_env=False) as client:
        assert client.post("/v1/queues/q/items", json={"item": "kept"}).is_success
    ends = (ended_by_two_signals(cluster) for _ in range(TRIES))
    # With 0 it had ended when the second one was sent.
    assert next((end for end in ends if end[0] != 0), None) == (1, None), "it has not waited for the caller"
    with httpx.Client(base_url=cluster.urls["r1"], timeout=PATIENCE_S, trust_env=False) as client:
        taken = client.post("/v1/queues/q/dequeue", json={"max": 9}).json()["items"]
    assert taken[0] == "kept"
    assert {*taken[1:]} <= {1}


def test_stop_while_deleted_keys_are_forgotten_logs_no_error(clusters: Clusters) -> None:
    """The janitor collects through the front end, which must not be closed before the janitor has stopped."""
    cluster = clusters.start(settings=QUICK)
    asyncio.run(_delete(cluster, 1000))
    until_now(lambda: told(cluster, "r1", "quorate_tombstones_waiting") > 100, "their retry window is over")
    for replica in cluster.urls:
        assert stop(cluster, replica) == 0
    for replica in cluster.urls:
        assert "Traceback" not in cluster.log_file(replica).read_text()


async def _delete(cluster: LocalCluster, keys: int) -> None:
    client = await connect_async(cluster.document, deadline_s=1.9)
    try:
        await delete_all(client.dictionary("users"), [f"key-{number}" for number in range(keys)])
    finally:
        await client.aclose()
