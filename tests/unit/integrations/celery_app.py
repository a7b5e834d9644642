"""Tasks for a real worker: `celery -A tests.unit.integrations.celery_app worker`. Each notes what it did, in one file.

`CELERY_BROKER` is the broker URL, `CELERY_RAN` the file, `CELERY_LEASE_S` for how long leases are given.
"""

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Final

from celery import Celery, Task
from celery.exceptions import Reject

import quorate.integrations.kombu_transport  # noqa: F401  # makes the broker URL known

RAN: Final = "CELERY_RAN"
STUCK_S: Final = 120.0

app: Final = Celery("tested", broker=os.environ["CELERY_BROKER"])
app.conf.update(
    broker_transport_options={"lease_s": float(os.environ["CELERY_LEASE_S"]), "deadline_s": 20.0},
    broker_connection_retry_on_startup=True,
    task_acks_late=True,
    task_ignore_result=True,
    task_reject_on_worker_lost=True,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_hijack_root_logger=False,
    worker_lost_wait=0.5,
)


def ran() -> Counter[str]:
    """What was noted, and how often."""
    return Counter(Path(os.environ[RAN]).read_text().split())


def note(line: str) -> int:
    """Note a line by one write, so that those of several processes stay whole; how often it stands there."""
    with open(os.environ[RAN], "ab", buffering=0) as file:
        file.write(f"{line}\n".encode())
    return ran()[line]


@app.task  # type: ignore[untyped-decorator]
def one(number: int) -> None:
    """Note the number."""
    note(str(number))


@app.task  # type: ignore[untyped-decorator]
def until_free(number: int, seconds: float) -> None:
    """Note that it began, and, after so long, that it ended."""
    note(f"began-{number}")
    time.sleep(seconds)
    note(f"ended-{number}")


@app.task  # type: ignore[untyped-decorator]
def stuck() -> None:
    """Notes that it began; the second time it is done at once, the first time it is not before the test."""
    if note("stuck") == 1:
        time.sleep(STUCK_S)


@app.task  # type: ignore[untyped-decorator]
def kills_its_process() -> None:
    """Ends the process that runs it, the first time."""
    if note("killer") == 1:
        os.kill(os.getpid(), signal.SIGKILL)


@app.task  # type: ignore[untyped-decorator]
def asks_for_another_turn() -> None:
    """Goes back to the queue, the first time."""
    if note("again") == 1:
        raise Reject("once more", requeue=True)


@app.task  # type: ignore[untyped-decorator]
def calls_another(number: int) -> None:
    """Calls a task from within one, in whatever process it runs."""
    note(f"calls-{number}")
    one.delay(number)


@app.task(bind=True)  # type: ignore[untyped-decorator]
def is_rejected(task: Task) -> None:
    """Is no use."""
    note("rejected")
    raise Reject("no use", requeue=False)
