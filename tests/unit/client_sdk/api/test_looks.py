"""What an operation says at its deadline whose looks were to agree: that they did not, or which replicas kept it waiting."""

from types import SimpleNamespace
from typing import Any

import pytest

from quorate.client_sdk.protocol.core.rounds import Expired
from quorate.client_sdk.protocol.operations.observe import Looks
from quorate.timestamps.clock import Now


def expired(times_s: list[float], end_s: float, *, is_refused: bool = False) -> Expired:
    """What is raised by looks that ended at these times, and the last of which expires."""
    task: Any = SimpleNamespace(now=Now(0.0, 0))
    looks = Looks("queue/q", task)
    for time_s in times_s:
        with looks.under_way():
            task.now = Now(time_s, 0)
    try:
        with looks.under_way():
            task.now = Now(end_s, 0)
            raise Expired("did not: r2 (no answer)", {"r1"}, is_refused=is_refused)
    except Expired as told:
        return told


def test_looks_that_were_answered_and_never_agreed_name_no_replica() -> None:
    told = expired([0.5, 1.0, 1.5], 2.0)
    assert told.detail.startswith("queue/q changed during each of 3 looks at it")
    assert told.answered == {"r1"}


@pytest.mark.parametrize(("times_s", "end_s"), [([], 2.0), ([0.5], 2.0)])
def test_replicas_that_keep_a_look_waiting_are_named(times_s: list[float], end_s: float) -> None:
    assert expired(times_s, end_s).detail == "did not: r2 (no answer)"


def test_a_refusal_is_told_as_one() -> None:
    told = expired([0.5, 1.0, 1.5], 2.0, is_refused=True)
    assert told.is_refused
    assert told.detail == "did not: r2 (no answer)"
