"""How far a proposer looks into a queue: by what is wanted, further where all was set aside, and whole for a cell."""

from quorate.api_specs.commands import DequeueCommand
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.decisions.read_window import ASIDE_MAX, CELL_ROWS, WINDOW_MIN, ReadWindows
from quorate.timestamps.timestamp import ZERO


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
