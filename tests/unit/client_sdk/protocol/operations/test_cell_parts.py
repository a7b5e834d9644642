"""Which reads and writes of cells go side by side."""

import pytest
from msgspec.structs import replace

from quorate.adts.log import Summary, Value
from quorate.adts.plain_class import PlainClass
from quorate.api_specs.cluster import ChoiceRule, ClockSettings
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Append, Appended, Collect, Refused, Row, Status
from quorate.client_sdk.protocol.core.rounds import Expired
from quorate.client_sdk.protocol.core.values import Done, Failed, Invoke, Operation, Peek, Read, Write
from quorate.client_sdk.protocol.front_end import FrontEnd
from quorate.client_sdk.protocol.operations.cell_parts import READS_TOGETHER_MAX, part_of, sorted_out
from quorate.client_sdk.protocol.operations.shared_round import Alone
from tests.support.own_types import Basket
from tests.unit.client_sdk.protocol.stage import DEADLINE_S, Stage, ballot, entry, shown
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
    alone = part.end(stage.task.now.mono_s, is_hedged=False, is_at_large=True, is_heard_out=False)
    assert isinstance(alone, Alone)
    stage.play(alone.steps(stage.task))
    stage.sleep(DEADLINE_S)
    assert isinstance(stage.result, outcome)
    if isinstance(stage.result, Failed):
        assert (stage.result.reason, stage.result.answered) == ("unknown", frozenset({"r1", "r2"}))


def test_what_a_quorum_stores_others_are_told_and_nothing_before() -> None:
    stage = Stage()
    part = part_of(Write("register/x", Value("1")), stage)
    assert part is not None
    part.take("r1", Appended(Status(), (True,)))
    part.take("r2", Appended(Status(), (False,)))
    assert part.end(stage.task.now.mono_s, is_hedged=False, is_at_large=True, is_heard_out=False) is None
    assert part.to_tell is None
    part.take("r3", Appended(Status(), (True,)))
    assert part.end(stage.task.now.mono_s, is_hedged=False, is_at_large=True, is_heard_out=False) is not None
    first = part.request_to("r2", is_repeat=False)
    assert isinstance(first, Append)
    assert part.to_tell == replace(first, attempt="again")


@pytest.mark.parametrize("is_at_large", [True, False])
def test_a_stamp_that_replicas_found_far_behind_is_given_anew_only_where_nobody_may_have_it(
    *, is_at_large: bool
) -> None:
    stage = Stage()
    part = part_of(Write("register/x", Value("1")), stage)
    assert part is not None
    for replica in ("r1", "r2"):
        part.take(replica, Refused("clock-behind", "one of the two is wrong"))
    stage.sleep_alone(stage.document.clock.offset_max_s)
    expired = Expired("r1, r2 (one of the two is wrong)", is_refused=True, is_by_clock=True)
    end = part.failed(expired, is_at_large=is_at_large)
    assert stage.counted["begun again since clocks were wrong"] == (not is_at_large)
    if is_at_large:
        assert end == Failed("unknown", expired.detail, definite=False)
        return
    assert isinstance(end, Alone)
    stage.play(end.steps(stage.task))
    sent = stage.open_to("r3")
    assert isinstance(sent, Append)
    first = part.request_to("r3", is_repeat=False)
    assert isinstance(first, Append)
    assert sent.entries[0].t > first.entries[0].t


@pytest.mark.parametrize("is_late", [True, False])
def test_who_has_no_room_for_what_others_store_is_asked_again_unless_it_is_too_late(*, is_late: bool) -> None:
    """Then the caller is told who said what."""
    stage = Stage()
    part = part_of(Write("register/x", Value("1")), stage)
    assert part is not None
    part.take("r2", Appended(Status(), (True,)))
    part.take("r3", Refused("disk-full", "no room"))
    end = part.failed(Expired("r3 (no room)", is_refused=not is_late, limit="disk-full"), is_at_large=True)
    if is_late:
        assert end == Failed("unknown", "r3 (no room)", definite=False)
        return
    assert isinstance(end, Alone)
    stage.play(end.steps(stage.task))
    assert stage.open_to("r3") == part.request_to("r3", is_repeat=True)


@pytest.mark.parametrize("is_at_large", [True, False])
def test_a_call_without_room_begins_anew_only_where_nobody_may_store_it(*, is_at_large: bool) -> None:
    """Else it is sent again as it is, under the same timestamp."""
    stage, basket = Stage(), PlainClass(Basket)
    call = Invoke("queue/q", basket, basket.call("add", "a"))
    stage.cache_of("queue/q").absorb("r1", "i", Collect("queue/q"), shown())
    part = part_of(call, stage)
    assert part is not None
    for replica in ("r1", "r2"):
        part.take(replica, Refused("log-full", "no room"))
    end = part.end(stage.task.now.mono_s, is_hedged=True, is_at_large=is_at_large, is_heard_out=False)
    assert isinstance(end, Alone)
    stage.play(end.steps(stage.task))
    if is_at_large:
        assert stage.open_to("r3") == part.request_to("r3", is_repeat=True)
    else:
        assert isinstance(stage.open_to("r3"), Collect), "those that wait are to run first"


def test_what_has_ended_stores_nothing_and_brings_nothing_back() -> None:
    stage = Stage()
    stage.cache_of("register/x").absorb(
        "r1", "i", Collect("register/x"), shown(decided=ballot(-1), summary=Summary(value=Value("1")))
    )
    write, read = (part_of(each, stage) for each in (Write("register/x", Value("1")), Read("register/x")))
    assert write is not None
    assert read is not None
    assert write.placeholder == Append("register/x", ())
    assert read.placeholder == Collect("register/x", known=ballot(-1))


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
    ended = part.end(stage.task.now.mono_s, is_hedged=False, is_at_large=True, is_heard_out=False)
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
    assert isinstance(
        part.end(stage.task.now.mono_s, is_hedged=False, is_at_large=True, is_heard_out=False), Alone
    )


@pytest.mark.parametrize("is_heard_out", [False, True])
def test_a_value_that_one_replica_shows_alone_is_looked_for_at_others_before_it_is_written_back(
    *, is_heard_out: bool
) -> None:
    stage = Stage()
    part = part_of(Read("register/x"), stage)
    assert part is not None
    alone = entry(-1)
    for replica, reply in {"r1": shown(Row(alone)), "r2": shown()}.items():
        stage.cache_of("register/x").absorb(replica, "i", part.request_to(replica, is_repeat=False), reply)
        part.take(replica, reply)
    now_s = stage.task.now.mono_s
    end = part.end(now_s, is_hedged=False, is_at_large=True, is_heard_out=is_heard_out)
    assert isinstance(end, Alone) == is_heard_out
    stage.cache_of("register/x").absorb("r3", "i", part.request_to("r3", is_repeat=False), shown(Row(alone)))
    part.take("r3", shown(Row(alone)))
    end = part.end(now_s, is_hedged=False, is_at_large=True, is_heard_out=True)
    assert isinstance(end, Done)
    assert end.result == alone.value
