"""Which reads and writes of cells go side by side."""

from quorate.api_specs.limits import Limits
from quorate.client_sdk.protocol.core.values import Operation, Peek, Read
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.client_sdk.protocol.operations.cell_parts import READS_TOGETHER_MAX, sorted_out
from tests.unit.client_sdk.scripted import document_of


def machine() -> FrontEnd:
    return FrontEnd(document_of("r1", "r2", "r3", limits=Limits()), site="s", seed=1)


def numbers(begun: list[Operation]) -> tuple[list[int], list[list[list[int]]]]:
    alone, rounds = sorted_out(enumerate(begun), machine())
    return [number for number, _ in alone], [[whose for _, whose in parts] for parts in rounds]


def test_reads_of_one_cell_are_one_and_what_is_no_cell_runs_alone() -> None:
    begun: list[Operation] = [Read("register/a"), Peek("queue/q"), Read("register/b"), Read("register/a")]
    assert numbers(begun) == ([1], [[[0, 3], [2]]])


def test_many_reads_go_in_rounds_that_end_one_after_another() -> None:
    begun: list[Operation] = [Read(f"register/{number}") for number in range(2 * READS_TOGETHER_MAX + 1)]
    alone, rounds = numbers(begun)
    assert alone == []
    assert [len(parts) for parts in rounds] == [READS_TOGETHER_MAX, READS_TOGETHER_MAX, 1]
    assert [whose for parts in rounds for whose in parts] == [[number] for number in range(len(begun))]
