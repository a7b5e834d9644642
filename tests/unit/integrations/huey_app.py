"""Tasks for a real consumer: `huey_consumer tests.unit.integrations.huey_app.huey`. Each notes that it ran, in one file.

`QUORATE_CLUSTER` names the cluster file, `HUEY_RAN` the file.
"""

import os
import time
from typing import Final

from quorate.integrations.huey_storage import QuorateHuey

RAN: Final = "HUEY_RAN"
STUCK_S: Final = 600.0

huey: Final = QuorateHuey("consumed", cluster=os.environ["QUORATE_CLUSTER"], deadline_s=20.0)


def _note(line: str) -> None:
    """One write, so that lines of several processes stay whole."""
    with open(os.environ[RAN], "ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


@huey.task()  # type: ignore[untyped-decorator]
def double(number: int) -> int:
    """Note the number; its double is the result."""
    _note(str(number))
    return 2 * number


@huey.task(retries=1)  # type: ignore[untyped-decorator]
def second_time(number: int) -> None:
    """Fails once for each number, and is run again."""
    _note(f"tried-{number}")
    with open(os.environ[RAN], "rb") as file:
        if file.read().split(b"\n").count(b"tried-%d" % number) == 1:
            raise ValueError("the first time")


@huey.task()  # type: ignore[untyped-decorator]
def stuck() -> None:
    """Notes that it began, and does not end before the test."""
    _note("stuck")
    time.sleep(STUCK_S)


@huey.task()  # type: ignore[untyped-decorator]
def long_text(chars: int) -> str:
    """Notes that it ran; so many characters are the result."""
    _note("long")
    return "x" * chars
