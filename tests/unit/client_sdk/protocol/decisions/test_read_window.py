"""How far a proposer looks into a queue: by what is wanted, further where all was set aside, and whole for a cell."""

from quorate.adts.log import NOTHING
from quorate.api_specs.commands import DequeueCommand
from quorate.api_specs.messages import Collect, Collected, Row, Status, Window
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.decisions.read_window import (
    ASIDE_MAX,
    CACHED_MIN,
    CELL_ROWS,
    WINDOW_MIN,
    ReadWindows,
)
from quorate.timestamps.timestamp import INFINITY, ZERO
from tests.unit.client_sdk.protocol.stage import entry


def windows(*, is_queue: bool = True) -> ReadWindows:
    return ReadWindows(LogCache("queue/q" if is_queue else "register/x", ["r1", "r2"]), is_queue=is_queue)


def test_what_was_all_set_aside_doubles_the_next_look_up_to_a_bound() -> None:
    ours, wanted = windows(), list[int]()
    for _ in range(7):
        ours.note_aside(is_all=True)
        wanted.append(ours.wanted([DequeueCommand(1)]))
    assert wanted[:2] == [WINDOW_MIN // 2, WINDOW_MIN]
    assert wanted[-1] == ASIDE_MAX
    ours.note_aside(is_all=False)
    assert ours.wanted([DequeueCommand(1)]) == 1


def test_a_small_command_is_asked_for_with_some_ahead_a_large_one_twice() -> None:
    ours = windows()
    assert ours.at("r1", 1, ZERO, "r1").limit == WINDOW_MIN
    assert ours.at("r1", 100, ZERO, "r1").limit == 200


def test_payloads_of_a_queue_come_from_one_replica_those_of_a_cell_from_all() -> None:
    assert [windows().at(replica, 1, ZERO, "r2").payload for replica in ("r1", "r2")] == [False, True]
    cell = windows(is_queue=False).at("r1", 1, ZERO, "r2")
    assert (cell.payload, cell.limit) == (True, CELL_ROWS)


def test_a_decision_looks_at_the_front_alone_where_all_of_a_long_queue_is_kept_in_mind() -> None:
    """As while its size is counted; else each decision would take as long as to look through it."""
    ours, long = windows(), 3 * CACHED_MIN
    rows = tuple(Row(entry(number)) for number in range(long, 0, -1))
    ours._cache.pins += 1
    ours._cache.absorb("r1", "i", Collect("queue/q"), Collected(Status(), rows=rows))
    ours.trim(1)
    front, upto = ours.front(1)
    assert list(front) == [entry(number).id for number in range(1, CACHED_MIN + 1)]
    assert upto == entry(CACHED_MIN).t
    assert ours.last_of(NOTHING, 3) == entry(3).t
    front, upto = ours.front(long)
    assert (len(front), upto) == (len(ours._cache.seen), INFINITY) == (long, INFINITY)


def test_few_entries_ahead_are_few_however_many_lie_elsewhere() -> None:
    ours = windows()
    rows = tuple(Row(entry(number)) for number in range(1, WINDOW_MIN + 1))
    shown = Collected(Status(), rows=rows, since=WINDOW_MIN, upto=entry(WINDOW_MIN).t)
    ours._cache.absorb("r1", "i", Collect("queue/q", window=Window(limit=WINDOW_MIN)), shown)
    needed = 1 + WINDOW_MIN // 2
    assert ours.at("r1", 1, entry(WINDOW_MIN - needed).t, "r1").limit == 0
    assert ours.at("r1", 1, entry(WINDOW_MIN - needed + 1).t, "r1").limit == WINDOW_MIN
