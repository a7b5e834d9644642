"""When marks of completeness are said, and which of them need not be."""

from itertools import pairwise

import msgspec
import pytest

from quorate.api_specs.checking import check_batch
from quorate.api_specs.limits import BATCH_ENTRIES_MAX, DEFAULTS, Limits
from quorate.api_specs.messages import Batch, Commit
from quorate.client_sdk.protocol import completion_notices
from quorate.client_sdk.protocol.completion_notices import CELL_WAIT_S, CompletionNotices
from quorate.client_sdk.protocol.core.values import Send
from quorate.timestamps.timestamp import COUNTER_MAX, WALL_US_MAX, Timestamp, make

QUEUE, CELL, OTHER = "queue/q", "register/r", "dictionary/d/k"


def at(number: int) -> Timestamp:
    """A timestamp."""
    return make(number, 0, "a")


def mark(name: str, *numbers: int, replica: str = "r1") -> Send:
    """What the replica is to be sent."""
    return Send(replica, (Commit(name, complete=tuple(map(at, numbers))),), 0, lazy=True)


@pytest.mark.parametrize("name", [QUEUE, "cart/ann"])
def test_marks_of_what_is_taken_or_run_go_at_once_and_together(name: str) -> None:
    waiting = CompletionNotices(("r1", "r2"), DEFAULTS)
    waiting.add(name, [at(1)], 0.0)
    waiting.add(name, [at(3), at(2)], 0.0)
    assert waiting.take(0.0) == [mark(name, 1, 3, 2), mark(name, 1, 3, 2, replica="r2")]
    assert waiting.take(99.0) == []
    assert waiting.due_s == float("inf")


def test_of_more_than_a_replica_takes_in_one_request_the_rest_goes_in_another() -> None:
    waiting = CompletionNotices(("r1",), DEFAULTS)
    waiting.add(QUEUE, map(at, range(2 * BATCH_ENTRIES_MAX + 1)), 0.0)
    sends = waiting.take(0.0)
    cut = (0, BATCH_ENTRIES_MAX, 2 * BATCH_ENTRIES_MAX, 2 * BATCH_ENTRIES_MAX + 1)
    assert sends == [mark(QUEUE, *range(*each)) for each in pairwise(cut)]
    for send in sends:
        check_batch(Batch("c", send.requests), DEFAULTS)


def test_of_a_cell_only_the_newest_goes_when_the_first_is_due() -> None:
    waiting = CompletionNotices(("r1", "r2"), DEFAULTS)
    for second, number in enumerate((1, 3, 2)):
        waiting.add(CELL, [at(number)], 10.0 + second / 100)
    waiting.add(OTHER, [at(7)], 10.03)
    assert waiting.due_s == 10.0 + CELL_WAIT_S
    assert waiting.take(waiting.due_s - 0.01) == []
    assert waiting.take(waiting.due_s) == [mark(CELL, 3), mark(CELL, 3, replica="r2")]
    assert waiting.due_s == 10.03 + CELL_WAIT_S
    assert waiting.take(float("inf")) == [mark(OTHER, 7), mark(OTHER, 7, replica="r2")]


def test_marks_of_several_cells_go_in_one_send() -> None:
    waiting = CompletionNotices(("r1",), DEFAULTS)
    for name in (CELL, OTHER):
        waiting.add(name, [at(1)], 0.0)
    requests = mark(CELL, 1).requests + mark(OTHER, 1).requests
    assert waiting.take(CELL_WAIT_S) == [Send("r1", requests, 0, lazy=True)]


@pytest.mark.parametrize(
    "limits", [Limits(requests_max=2), Limits(body_bytes_max=5 * completion_notices.MARK_BYTES)]
)
def test_no_more_marks_go_in_one_send_than_a_message_holds(limits: Limits) -> None:
    waiting = CompletionNotices(("r1",), limits)
    for number in range(5):
        waiting.add(f"register/r{number}", [at(number)], 0.0)
    assert [len(send.requests) for send in waiting.take(CELL_WAIT_S)] == [2, 2, 1]


def test_the_largest_mark_weighs_no_more_than_is_reckoned() -> None:
    name = f"dictionary/{200 * 'd'}/{200 * 'k'}"
    longest = Commit(name, complete=(make(WALL_US_MAX, COUNTER_MAX, 32 * "z"),))
    assert len(msgspec.json.encode(longest)) <= completion_notices.MARK_BYTES


def test_more_than_may_wait_go_before_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion_notices, "CELLS_MAX", 2)
    waiting = CompletionNotices(("r1",), DEFAULTS)
    for number in range(5):
        waiting.add(f"register/r{number}", [at(number)], 0.0)
    requests = tuple(mark(f"register/r{number}", number).request for number in range(3))
    assert waiting.take(0.0) == [Send("r1", requests, 0, lazy=True)]


def test_what_was_forgotten_is_not_said() -> None:
    waiting = CompletionNotices(("r1",), DEFAULTS)
    waiting.add(QUEUE, [at(1)], 0.0)
    waiting.add(CELL, [at(1)], 0.0)
    waiting.clear()
    assert waiting.take(float("inf")) == []
