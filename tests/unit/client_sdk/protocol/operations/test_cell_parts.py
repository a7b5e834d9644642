"""Which reads and writes of cells go side by side."""

import pytest
from msgspec.structs import replace

from quorate.adts.log import Value
from quorate.api_specs.cluster import ChoiceRule, ClockSettings
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Appended, Row, Status
from quorate.client_sdk.protocol.core.values import Done, Failed, Operation, Peek, Read, Write
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.client_sdk.protocol.operations.cell_parts import READS_TOGETHER_MAX, part_of, sorted_out
from quorate.client_sdk.protocol.operations.shared_round import Alone
from tests.unit.client_sdk.protocol.stage import DEADLINE_S, Stage, entry, shown
from tests.unit.client_sdk.scripted import document_of


def machine() -> FrontEnd:
    return FrontEnd(document_of("r1", "r2", "r3", limits=Limits()), site="s", seed=1)


@pytest.mark.parametrize(("error_s", "outcome"), [(1.0, Done), (DEADLINE_S, Failed)])
def test_the_time_of_a_write_is_not_waited_for_beyond_the_deadline(error_s: float, outcome: type) -> None:
    stage = Stage(clock=ClockSettings(front_end_error_s=error_s, offset_max_s=3 * DEADLINE_S))
    part = part_of(Write("register/x", Value("1")), stage)
    assert part is not None
    for replica in ("r1", "r2"):
        part.take(replica, Appended(Status(), (True,)))
    alone = part.end(stage.task.now.mono_s, is_hedged=False, is_at_large=True)
    assert isinstance(alone, Alone)
    stage.play(alone.steps(stage.task))
    stage.sleep(DEADLINE_S)
    assert isinstance(stage.result, outcome)
    if isinstance(stage.result, Failed):
        assert (stage.result.reason, stage.result.answered) == ("unknown", frozenset({"r1", "r2"}))


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


def test_with_eventual_consistency_a_read_ends_with_the_first_replica_that_answers() -> None:
    stage = Stage(ChoiceRule("register/*", consistency="eventual"))
    part = part_of(Read("register/x"), stage)
    assert part is not None
    reply = shown(Row(entry(-1)))
    stage.cache_of("register/x").absorb("r2", "i", part.request_to("r2", is_repeat=False), reply)
    part.take("r2", reply)
    ended = part.end(stage.task.now.mono_s, is_hedged=False, is_at_large=True)
    assert ended == Done("-1", "Read/Ok", frozenset({"r2"}), is_weak=True)


@pytest.mark.parametrize("is_cut_off", [True, False])
def test_with_eventual_consistency_what_is_not_all_that_a_replica_has_is_asked_for_again(
    *, is_cut_off: bool
) -> None:
    """A log that was cut off, or of which something was thrown away meanwhile, may show an older value than the replica has."""
    stage = Stage(ChoiceRule("register/*", consistency="eventual"))
    part = part_of(Read("register/x"), stage)
    assert part is not None
    part.take("r2", replace(shown(Row(entry(-1))), more=is_cut_off))
    stage.cache_of("register/x").lives += not is_cut_off
    assert isinstance(part.end(stage.task.now.mono_s, is_hedged=False, is_at_large=True), Alone)
