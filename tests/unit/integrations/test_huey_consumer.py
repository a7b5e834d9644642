"""Real consumers of huey on a live cluster of three: replicas are killed under load, and a worker is.

What is shown: every task whose enqueue was acknowledged runs, once, while one replica after another is ended with SIGKILL;
tasks scheduled for later, and such as are tried again, among them; results come back. Two consumers, so two schedulers, one
with threads and one with processes. And what huey does not promise: a task that a killed worker had taken is not run again,
while all others are. What a caller sees of a result that is too large, and of a cluster that is wholly down.
"""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from huey.exceptions import ResultTimeout

from quorate.client_sdk import QuorateError, Unavailable
from quorate.integrations.huey_storage import QuorateStorage
from tests.system.harness import Clusters, until_now

ROOT: Final = Path(__file__).parents[3]
TASKS: Final = 72
PART: Final = 12
"""Tasks between one event and the next."""
SLOW_S: Final = 180.0
HASTY_S: Final = 2.0

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which tasks note that they ran."""
    path = tmp_path / "ran"
    path.touch()
    monkeypatch.setenv("HUEY_RAN", str(path))
    return path


@pytest.fixture
def app(clusters: Clusters, ran: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The application, on a cluster of its own."""
    document = str(clusters.start().document_path)
    monkeypatch.setenv("QUORATE_CLUSTER", document)
    made = importlib.import_module("tests.unit.integrations.huey_app")
    monkeypatch.setattr(made.huey, "storage", QuorateStorage("consumed", cluster=document, deadline_s=20.0))
    yield made
    made.huey.storage.close()


@pytest.fixture
def start(app: Any, tmp_path: Path) -> Iterator[Start]:
    """Starts huey's own consumer as a user does."""
    started: list[subprocess.Popen[bytes]] = []

    def one(kind: str, workers: int = 2) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "huey.bin.huey_consumer", f"{app.__name__}.huey"]
        words += ["-w", str(workers), "-k", kind, "-l", str(tmp_path / f"consumer-{len(started)}.log")]
        started.append(subprocess.Popen(words, cwd=ROOT, start_new_session=True))
        return started[-1]

    yield one
    for consumer in started:
        _kill(consumer)


def _kill(consumer: "subprocess.Popen[bytes]") -> None:
    """End a consumer and its worker processes, which are a session of their own, with SIGKILL."""
    if consumer.poll() is None:
        os.killpg(consumer.pid, signal.SIGKILL)
        consumer.wait(30)


def lines(ran: Path) -> Counter[str]:
    """What tasks have noted, and how often."""
    return Counter(ran.read_text().split())


class Producer:
    """Calls tasks, and knows which of them were acknowledged."""

    def __init__(self, app: Any) -> None:
        self._app: Final = app
        self.results: Final[dict[str, Any]] = {}
        self.unsure: Final[set[str]] = set()

    def call(self, count: int) -> None:
        """So many tasks more, every fifth for a moment later."""
        for _ in range(count):
            number = len(self.results) + len(self.unsure)
            try:
                if number % 5 == 4:
                    result = self._app.double.schedule((number,), delay=1)
                else:
                    result = self._app.double(number)
            except QuorateError as error:
                if error.definite:  # Two replicas of three are up, so that none is refused or unavailable.
                    raise
                self.unsure.add(str(number))
            else:
                self.results[str(number)] = result

    def until_ran(self, ran: Path, count: int) -> None:
        """Wait until so many of the acknowledged ones ran."""
        until_now(
            lambda: len(self.results.keys() & lines(ran).keys()) >= count, f"{count} ran", deadline_s=SLOW_S
        )


@pytest.mark.slow
def test_every_acknowledged_task_runs_once_while_replicas_are_killed(
    clusters: Clusters, app: Any, start: Start, ran: Path
) -> None:
    (cluster,) = clusters.made
    consumers = [start("thread"), start("process")]
    producer = Producer(app)
    producer.call(PART)
    app.second_time(7)
    producer.until_ran(ran, PART // 2)
    for replica in ("r2", "r1"):
        cluster.kill(replica)
        producer.call(PART)
        producer.until_ran(ran, len(producer.results) - PART // 2)
        cluster.restart(replica)
        producer.call(PART)
    producer.call(TASKS - 5 * PART)
    producer.until_ran(ran, len(producer.results))
    for number, result in producer.results.items():
        assert result.get(blocking=True, timeout=SLOW_S) == 2 * int(number)
    until_now(lambda: lines(ran)["tried-7"] == 2, "the second attempt", deadline_s=SLOW_S)
    for consumer in consumers:
        consumer.send_signal(signal.SIGINT)
        assert consumer.wait(SLOW_S) == 0, "it stops in an orderly way"
    noted = lines(ran)
    assert noted.pop("tried-7") == 2
    print(f"{len(producer.results)} acknowledged, {len(producer.unsure)} with an unknown outcome")
    assert producer.results.keys() <= noted.keys() <= producer.results.keys() | producer.unsure
    assert set(noted.values()) == {1}, "none ran twice"
    assert app.huey.pending_count() == app.huey.scheduled_count() == 0


@pytest.mark.slow
def test_a_killed_worker_loses_what_it_had_taken_and_nothing_else(app: Any, start: Start, ran: Path) -> None:
    first = start("thread", workers=1)
    app.stuck()
    until_now(lambda: lines(ran)["stuck"] == 1, "the worker is at it", deadline_s=SLOW_S)
    producer = Producer(app)
    producer.call(PART)
    _kill(first)
    start("thread")
    producer.until_ran(ran, PART)
    assert lines(ran) == Counter([*producer.results, "stuck"])
    assert app.huey.pending_count() == 0


@pytest.mark.slow
def test_who_waits_for_a_result_that_is_too_large_gets_a_timeout(
    app: Any, start: Start, ran: Path, tmp_path: Path
) -> None:
    start("thread", workers=1)
    large = app.long_text(1 << 20)
    log = tmp_path / "consumer-0.log"
    until_now(
        lambda: log.exists() and "BadInput" in log.read_text(), "the consumer says why", deadline_s=SLOW_S
    )
    assert lines(ran)["long"] == 1
    with pytest.raises(ResultTimeout):
        large.get(blocking=True, timeout=1)
    assert app.double(21).get(blocking=True, timeout=SLOW_S) == 42, "the worker goes on"


@pytest.mark.slow
def test_a_call_with_all_replicas_down_raises_after_the_deadline_and_adds_nothing(
    clusters: Clusters, app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cluster,) = clusters.made
    hasty = QuorateStorage("consumed", cluster=str(cluster.document_path), deadline_s=HASTY_S)
    patient = app.huey.storage
    app.double(1)
    for replica in ("r1", "r2", "r3"):
        cluster.kill(replica)
    with monkeypatch.context() as patched:
        patched.setattr(app.huey, "storage", hasty)
        begun = time.monotonic()
        with pytest.raises(Unavailable) as failure:
            app.double(2)
        assert time.monotonic() - begun >= HASTY_S, "a cluster that restarts has that long"
        assert failure.value.definite, "so it may be called again"
    hasty.close()
    for replica in ("r1", "r2", "r3"):
        cluster.restart(replica)
    assert app.huey.storage is patient
    assert app.huey.pending_count() == 1
