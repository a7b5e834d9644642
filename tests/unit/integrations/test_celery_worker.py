"""Real workers of Celery on live replicas: replicas and workers are killed under load, and every task is done.

What is shown: a task whose call returned is run, whatever dies; what a killed worker held is run by another one once its lease
is over; a worker that stops gives back at once what it had taken ahead; a task may last longer than a lease.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import pytest
from celery import Celery

import quorate.integrations.kombu_transport  # noqa: F401  # makes the broker URL known
from quorate.api_specs.limits import DEAD_MAX
from quorate.client_sdk import Queue, connect
from tests.system.harness import PATIENT, Clusters, until_now

ROOT: Final = Path(__file__).parents[3]
APP: Final = "tests.unit.integrations.celery_app"
TASKS: Final = 200
PREFETCHED: Final = 8
"""Four for each of two processes: Celery's own default."""
LEASE_S: Final = 8.0
SLOW_S: Final = 120.0
"""For a machine that is busy with other tests."""
LONG_LEASE_S: Final = 3600.0
"""None of these is over before a test."""

Worker: TypeAlias = "subprocess.Popen[bytes]"
Start = Callable[..., Worker]


@pytest.fixture
def ran(tmp_path: Path) -> Path:
    """The file in which tasks note what they did."""
    path = tmp_path / "ran"
    path.touch()
    return path


@pytest.fixture
def lease_s() -> float:
    return LEASE_S


class Caller:
    """Calls tasks by their names, as a program does that does not have them."""

    def __init__(self, broker: str) -> None:
        options = {"deadline_s": 20.0}
        self._app: Final = Celery(
            "caller", broker=broker, broker_transport_options=options, set_as_current=False
        )

    def call(
        self, task: str, *arguments: float, countdown: float | None = None, expires: float | None = None
    ) -> None:
        """Call one; it is on the replicas when this returns."""
        self._app.send_task(f"{APP}.{task}", arguments, countdown=countdown, expires=expires)

    def close(self) -> None:
        """Disconnect."""
        self._app.pool.force_close_all()
        self._app.close()


@pytest.fixture
def app(clusters: Clusters, ran: Path, lease_s: float, monkeypatch: pytest.MonkeyPatch) -> Iterator[Caller]:
    """The application, on a cluster of its own."""
    # Workers and replicas stand still for seconds where other work fills the machine: what they stamped is late then, and not wrong.
    broker = f"quorate://{clusters.start(settings=PATIENT).document_path}"
    monkeypatch.setenv("CELERY_BROKER", broker)
    monkeypatch.setenv("CELERY_RAN", str(ran))
    monkeypatch.setenv("CELERY_LEASE_S", str(lease_s))
    caller = Caller(broker)
    yield caller
    caller.close()


@pytest.fixture
def start(app: Caller, tmp_path: Path) -> Iterator[Start]:
    """Starts a worker as a user does."""
    started: list[Worker] = []

    def one(*words: str) -> Worker:
        number = len(started)
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            APP,
            "worker",
            "-n",
            f"w{number}@here",
            *words,
        ]
        with (tmp_path / f"worker-{number}.log").open("ab") as log:
            started.append(
                subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)
            )
        return started[-1]

    yield one
    for worker in started:
        kill(worker)


@pytest.fixture
def queue(app: Caller, clusters: Clusters) -> Iterator[Queue]:
    """A look at Celery's queue besides Celery."""
    (cluster,) = clusters.made
    with connect(cluster.document, deadline_s=20.0) as client:
        yield client.queue("celery")


def kill(worker: Worker) -> None:
    """End a worker and its processes, which are a session of their own, with SIGKILL."""
    if worker.poll() is None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait(30)


def stop(worker: Worker) -> None:
    """Ask a worker to stop, as Celery has it: what runs is run to its end."""
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SLOW_S) == 0


def lines(ran: Path) -> Counter[str]:
    """What tasks have noted, and how often."""
    return Counter(ran.read_text().split())


def until_noted(ran: Path, line: str, times: int = 1) -> None:
    until_now(lambda: lines(ran)[line] >= times, f"{line} is noted {times} times", deadline_s=SLOW_S)


def until_settled(queue: Queue) -> None:
    """Wait until no task is left: none waits, none is delivered."""

    def is_settled() -> bool:
        counts = queue.leases()
        return counts.held == counts.waiting == 0 and queue.size() == 0

    until_now(is_settled, "every task is acknowledged", deadline_s=SLOW_S)


@pytest.mark.slow
def test_every_task_is_done_though_a_replica_and_a_worker_are_killed(
    clusters: Clusters, app: Caller, start: Start, queue: Queue, ran: Path, tmp_path: Path
) -> None:
    (cluster,) = clusters.made
    doomed, survivor = start("-c", "2"), start("-c", "2")

    def done() -> int:
        return len(lines(ran))

    with ThreadPoolExecutor(4) as callers:
        called = [callers.submit(app.call, "one", number) for number in range(TASKS)]
        until_now(lambda: done() > TASKS // 5, "a fifth is done", deadline_s=SLOW_S)
        cluster.kill("r2")
        until_now(lambda: done() > TASKS // 2, "half is done", deadline_s=SLOW_S)
        kill(doomed)
        for call in called:
            call.result(SLOW_S)
    until_now(lambda: done() == TASKS, "all is done", deadline_s=SLOW_S)
    until_settled(queue)
    stop(survivor)
    noted = lines(ran)
    assert noted.keys() == {str(number) for number in range(TASKS)}
    twice = sum(noted.values()) - TASKS
    print(f"{twice} were done twice")
    assert twice <= PREFETCHED, "at most what the killed worker had been delivered"
    assert queue.leases().dead == 0
    assert "Traceback" not in (tmp_path / "worker-1.log").read_text()


@pytest.mark.slow
def test_a_task_that_a_killed_worker_was_at_is_run_by_another(
    app: Caller, start: Start, queue: Queue, ran: Path
) -> None:
    first = start("-c", "1", "--prefetch-multiplier", "1")
    app.call("stuck")
    until_noted(ran, "stuck")
    second = start("-c", "1", "--pool", "threads")
    app.call("one", 1)
    until_noted(ran, "1")
    assert lines(ran)["stuck"] == 1
    kill(first)
    until_noted(ran, "stuck", times=2)
    until_settled(queue)
    stop(second)
    assert lines(ran)["stuck"] == 2


@pytest.mark.slow
def test_a_long_task_is_run_once(app: Caller, start: Start, queue: Queue, ran: Path) -> None:
    one_each = ("-c", "1", "--prefetch-multiplier", "1")
    workers = [start(*one_each), start(*one_each, "--pool", "solo")]
    app.call("until_free", 1, 1.5 * LEASE_S)
    app.call("until_free", 2, 1.5 * LEASE_S)
    until_noted(ran, "ended-1")
    until_noted(ran, "ended-2")
    until_settled(queue)
    for worker in workers:
        stop(worker)
    assert set(lines(ran).values()) == {1}


@pytest.mark.slow
def test_what_becomes_of_a_task_is_told_to_the_replicas(
    app: Caller, start: Start, queue: Queue, ran: Path
) -> None:
    worker = start("-c", "1")
    app.call("asks_for_another_turn")
    app.call("is_rejected")
    app.call("kills_its_process")
    until_noted(ran, "again", times=2)
    until_noted(ran, "killer", times=2)
    until_noted(ran, "rejected")
    until_settled(queue)
    stop(worker)
    assert lines(ran) == Counter({"again": 2, "killer": 2, "rejected": 1})
    (letter,) = queue.dead_letters()
    assert letter.value["headers"]["task"].endswith("is_rejected")


@pytest.mark.slow
@pytest.mark.parametrize("lease_s", [LONG_LEASE_S])
def test_a_worker_that_stops_gives_back_what_it_had_taken_ahead(
    app: Caller, start: Start, queue: Queue, ran: Path, lease_s: float
) -> None:
    first = start("-c", "1")
    app.call("until_free", 0, 3.0)
    app.call("one", 1, countdown=1000)
    for number in range(2, 10):
        app.call("one", number)
    until_noted(ran, "began-0")
    until_now(lambda: queue.leases().held >= 4, "tasks are taken ahead", deadline_s=SLOW_S)
    stop(first)
    assert lines(ran)["ended-0"] == 1, "what ran is run to its end"
    assert queue.leases().held == 0
    left = 9 - len(lines(ran) - Counter(["began-0", "ended-0"]))
    assert queue.size() + queue.leases().waiting == left
    second = start("-c", "1")
    until_now(lambda: len(lines(ran)) == 10, "the others are done", deadline_s=SLOW_S)
    stop(second)
    assert set(lines(ran).values()) == {1}
    assert queue.leases().waiting == 1, "the task for later waits on the replicas"


@pytest.mark.slow
def test_a_task_for_later_is_run_then_and_survives_its_worker(
    app: Caller, start: Start, queue: Queue, ran: Path
) -> None:
    first = start("-c", "1")
    app.call("one", 1, countdown=1.5 * LEASE_S)
    until_now(lambda: queue.leases().held == 1, "the worker keeps it", deadline_s=SLOW_S)
    kill(first)
    second = start("-c", "1")
    until_noted(ran, "1")
    until_settled(queue)
    stop(second)
    assert lines(ran) == Counter(["1"])


@pytest.mark.slow
@pytest.mark.parametrize("lease_s", [LONG_LEASE_S])
def test_tasks_that_expired_while_no_worker_ran_leave_room_for_others(
    app: Caller, start: Start, queue: Queue, ran: Path, lease_s: float
) -> None:
    """More of them than a queue keeps dead letters; as such they would take room for ever, and at last stop the queue."""
    for number in range(DEAD_MAX + 1):
        app.call("one", number, expires=0.01)
    app.call("one", -1)
    worker = start("-c", "1")
    until_noted(ran, "-1")
    until_settled(queue)
    stop(worker)
    assert lines(ran) == Counter(["-1"])
    assert queue.dead_letters() == []


@pytest.mark.slow
@pytest.mark.parametrize("lease_s", [LONG_LEASE_S])
def test_tasks_call_tasks_from_processes_that_were_forked_late(
    app: Caller, start: Start, queue: Queue, ran: Path, lease_s: float
) -> None:
    """Each process runs one task; the next is forked from a worker that is connected, whose threads it has not."""
    worker = start("-c", "2", "--max-tasks-per-child", "1")
    for number in range(6):
        app.call("calls_another", number)
    until_now(lambda: len(lines(ran)) == 12, "all are done", deadline_s=SLOW_S)
    until_settled(queue)
    stop(worker)
    assert set(lines(ran).values()) == {1}


@pytest.mark.slow
def test_a_worker_that_slept_beyond_its_leases_says_so_and_takes_nothing_from_others(
    app: Caller, start: Start, queue: Queue, ran: Path, tmp_path: Path
) -> None:
    sleeper = start("-c", "1")
    app.call("until_free", 1, 1.0)
    until_noted(ran, "began-1")
    os.killpg(sleeper.pid, signal.SIGSTOP)
    other = start("-c", "1")
    until_noted(ran, "ended-1")
    until_settled(queue)
    os.killpg(sleeper.pid, signal.SIGCONT)
    until_noted(ran, "ended-1", times=2)
    log = tmp_path / "worker-0.log"
    until_now(
        lambda: "were over before they were acknowledged" in log.read_text(), "it says so", deadline_s=SLOW_S
    )
    app.call("one", 2)
    until_noted(ran, "2")
    until_settled(queue)
    for worker in (sleeper, other):
        stop(worker)
    assert lines(ran)["2"] == 1


@pytest.mark.slow
def test_a_worker_outlives_a_time_without_a_quorum(
    clusters: Clusters, app: Caller, start: Start, queue: Queue, ran: Path, tmp_path: Path
) -> None:
    (cluster,) = clusters.made
    worker = start("-c", "1")
    app.call("until_free", 1, 3.0)
    app.call("one", 2)
    until_noted(ran, "began-1")
    until_now(lambda: queue.leases().held == 2, "both are delivered", deadline_s=SLOW_S)
    for replica in ("r1", "r2"):
        cluster.kill(replica)
    until_noted(ran, "ended-1")
    until_noted(ran, "2")
    log = tmp_path / "worker-0.log"
    until_now(lambda: "trying again" in log.read_text(), "it says what it cannot do", deadline_s=SLOW_S)
    for replica in ("r1", "r2"):
        cluster.restart(replica)
    app.call("one", 3)
    until_noted(ran, "3")
    until_settled(queue)
    stop(worker)
    assert lines(ran) == Counter({"began-1": 1, "ended-1": 1, "2": 1, "3": 1})


@pytest.mark.slow
def test_a_worker_with_a_wrong_url_ends_and_says_what_to_write(
    app: Caller, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_BROKER", "quorate+ftp://127.0.0.1")
    assert start("-c", "1").wait(SLOW_S) != 0
    assert "quorate+ftp://127.0.0.1: use quorate+http://HOST:PORT" in (tmp_path / "worker-0.log").read_text()
