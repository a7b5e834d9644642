"""Plans: what one decision makes of a summary, a view and the commands of a batch, in order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quorate.adts.log import NOTHING, Decision, Entry, Seen, Summary, Value
from quorate.adts.types import queue
from quorate.api_specs.commands import AcquireCommand, CompareAndSetCommand, DequeueCommand, PeekCommand
from quorate.api_specs.limits import ADOPTED_MAX, ENTRY_BYTES
from quorate.api_specs.messages import Aged
from quorate.client_sdk.protocol.decisions import summary_builder
from quorate.client_sdk.protocol.decisions.idempotency import TOO_MANY_KEYS, TOO_MANY_TAKEN
from quorate.client_sdk.protocol.decisions.summary_builder import TERMS_KEPT, TERMS_MAX, Context, is_included
from quorate.client_sdk.protocol.decisions.transitions import (
    Command,
    ConfirmCommand,
    Fate,
    FoldCommand,
    RecoverCommand,
    plan_cell,
    plan_queue,
    purpose_of,
)
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp, make

TURN = make(1000, 0, "f")
CONTEXT = Context(
    ballot=make_ballot(TURN, 1),
    take_bytes_max=1000,
    is_complete=lambda found: found.complete or len(found.holders) >= 2,
    recent_max=2,
    aged=(),
    terms_before=ZERO,
    callers=range(9),
    asker_of=lambda decision: decision.id,
    earliest_us=1000,
    latest_us=1000,
    leases_bytes_max=1000,
)


def at(us: int) -> Timestamp:
    return make(us, 0, "c")


def entry(us: int) -> Entry:
    return Entry(at(us), at(us), Value(str(us)))


def complete(*times: int) -> dict[str, Seen]:
    return {at(us): Seen(entry(us), {"r1", "r2"}) for us in times}


def doubtful(*times: int) -> dict[str, Seen]:
    return {at(us): Seen(entry(us), {"r1"}) for us in times}


def taken(result: Any) -> list[Any]:
    return [each.value for each in result]


def queue_plan(
    summary: Summary,
    seen: dict[str, Seen],
    *commands: Command,
    bound: Timestamp = INFINITY,
    context: Context = CONTEXT,
) -> Any:
    return plan_queue(summary, seen, bound, commands, context)


def test_takes_get_the_heads_in_the_order_of_the_commands() -> None:
    plan = queue_plan(NOTHING, complete(1, 2, 3), DequeueCommand(1), DequeueCommand(2), DequeueCommand(1))
    assert taken(plan.results[0]) == ["1"]
    assert taken(plan.results[1]) == ["2", "3"]
    assert 2 not in plan.results
    assert plan.summary.horizon == at(3)
    assert plan.summary.ambiguous == ()
    assert [each.value for each in plan.events] == ["1", "2", "3"]


def test_what_lies_above_the_bound_is_not_touched() -> None:
    """Above it, an older entry may still turn up."""
    plan = queue_plan(NOTHING, complete(1, 2), DequeueCommand(5), bound=at(1))
    assert taken(plan.results[0]) == ["1"]
    assert queue_plan(NOTHING, complete(2), DequeueCommand(1), PeekCommand(), bound=at(1)).results == {}


def test_an_entry_that_may_be_incomplete_is_taken_and_noted() -> None:
    plan = queue_plan(NOTHING, doubtful(1) | complete(2), DequeueCommand(2))
    assert plan.summary.ambiguous == ((at(1), CONTEXT.ballot),)


def test_what_may_be_incomplete_is_taken_only_as_far_as_its_ids_leave_room_in_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A summary that other replicas refuse would be written back again and again: nobody could take anything there any more."""
    monkeypatch.setattr(summary_builder, "AMBIGUOUS_BYTES_MAX", 3000)
    waiting = doubtful(*range(1, 41))
    first = queue_plan(NOTHING, waiting, DequeueCommand(40))
    count = len(first.results[0])
    assert 10 < count < 40
    assert sum(len(id) + ENTRY_BYTES for id, _ in first.summary.ambiguous) <= 3000
    rest = {id: each for id, each in waiting.items() if each.entry.t > first.summary.horizon}
    later = queue_plan(first.summary, rest, DequeueCommand(1), PeekCommand(), AcquireCommand(1, 9_000_000))
    assert (later.results[0], later.results[2]) == (TOO_MANY_TAKEN, TOO_MANY_TAKEN)
    assert taken(later.results[1]) == [str(count + 1)]
    aged = replace(CONTEXT, aged=(Aged(ambiguous=CONTEXT.ballot),))
    assert taken(queue_plan(first.summary, rest, DequeueCommand(1), context=aged).results[0]) == [
        str(count + 1)
    ]


def test_nothing_taken_is_the_same_summary() -> None:
    summary = Summary(horizon=at(5), ambiguous=((at(1), CONTEXT.ballot),))
    assert queue_plan(summary, {}, DequeueCommand(1), PeekCommand(), ConfirmCommand()).summary is summary


def test_an_answer_is_bounded_in_bytes_but_holds_at_least_one_item() -> None:
    small = replace(CONTEXT, take_bytes_max=2)
    assert taken(queue_plan(NOTHING, complete(1, 2, 3), DequeueCommand(3), context=small).results[0]) == [
        "1",
        "2",
    ]
    assert taken(queue_plan(NOTHING, complete(111, 112), DequeueCommand(2), context=small).results[0]) == [
        "111"
    ]


def test_the_settled_front_is_adopted_and_stays_the_front() -> None:
    plan = queue_plan(NOTHING, complete(2), PeekCommand(), bound=at(2))
    assert plan.results[0] == (entry(2),)
    assert plan.summary == replace(NOTHING, horizon=at(2), adopted=(entry(2),))
    again = queue_plan(plan.summary, complete(2), PeekCommand(), bound=ZERO)
    assert again.results[0] == (entry(2),)
    assert again.summary is plan.summary
    # An older one, seen only now, can no longer come before it.
    assert [found.entry for found in queue.view(plan.summary, doubtful(1))] == [entry(2)]


def test_a_repeat_under_a_key_gets_the_first_answer() -> None:
    first = queue_plan(NOTHING, complete(1, 2), DequeueCommand(1, "k"))
    again = queue_plan(first.summary, complete(2), DequeueCommand(1, "k"))
    assert [each.id for each in again.results[0]] == [at(1)]
    assert again.summary is first.summary


def test_a_key_is_remembered_until_a_replica_calls_its_decision_old() -> None:
    """That it calls another ballot old says nothing, though it be a higher one: it may have lost."""
    first = queue_plan(NOTHING, complete(1, 2, 3), DequeueCommand(1, "k"))
    within = replace(CONTEXT, aged=(Aged(make_ballot(at(4), 1)),))
    other = queue_plan(first.summary, complete(2, 3), DequeueCommand(1), context=within)
    again = queue_plan(other.summary, complete(3), DequeueCommand(1, "k"), context=within)
    assert [each.id for each in again.results[0]] == [at(1)]
    beyond = replace(CONTEXT, aged=(Aged(), Aged(CONTEXT.ballot)))
    assert queue_plan(other.summary, complete(3), DequeueCommand(1), context=beyond).summary.recent == ()


def test_a_new_key_is_refused_while_there_is_no_room_and_takes_nothing() -> None:
    kept = (Decision(f"k{n}", make_ballot(at(n + 1), 1)) for n in range(2))
    full = replace(NOTHING, recent=tuple(kept))
    plan = queue_plan(full, complete(5), DequeueCommand(1, "new"))
    assert plan.results == {0: TOO_MANY_KEYS}
    assert plan.summary is full
    later = replace(CONTEXT, aged=(Aged(make_ballot(at(2), 1)),))
    assert taken(queue_plan(full, complete(5), DequeueCommand(1, "new"), context=later).results[0]) == ["5"]


def test_ambiguous_ids_go_when_old_unless_a_log_still_shows_the_entry() -> None:
    summary = Summary(
        horizon=at(9), ambiguous=((at(1), make_ballot(at(3), 1)), (at(2), make_ballot(at(3), 1)))
    )
    context = replace(CONTEXT, aged=(Aged(ambiguous=make_ballot(at(3), 1)),))
    restamped = {at(2): Seen(Entry(at(2), at(20), Value("2")), {"r1"})}
    plan = queue_plan(summary, restamped | complete(12), DequeueCommand(1), context=context)
    assert taken(plan.results[0]) == ["12"]
    assert plan.summary.ambiguous == ((at(2), make_ballot(at(3), 1)),)


def fate(summary: Summary, *, may_be_complete: bool, us: int = 5) -> tuple[Fate, Summary]:
    plan = queue_plan(summary, {}, RecoverCommand(entry(us), may_be_complete))
    return plan.results[0], plan.summary


def test_an_entry_above_the_horizon_is_adopted() -> None:
    assert fate(NOTHING, may_be_complete=False) == (Fate.IN_FORCE, replace(NOTHING, adopted=(entry(5),)))


def test_an_entry_that_was_taken_took_effect() -> None:
    summary = Summary(horizon=at(9), ambiguous=((at(5), CONTEXT.ballot),))
    assert fate(summary, may_be_complete=False) == (Fate.IN_FORCE, summary)
    adopted = Summary(horizon=at(9), adopted=(entry(5),))
    assert fate(adopted, may_be_complete=False) == (Fate.IN_FORCE, adopted)


def test_a_summary_adopts_no_more_than_can_be_sent_and_still_settles_a_front() -> None:
    """Who finds no room asks again: the others are taken meanwhile."""
    many = tuple(entry(number) for number in range(1, ADOPTED_MAX))
    context = replace(CONTEXT, take_bytes_max=1_000_000)
    full = Summary(adopted=many)
    recover = RecoverCommand(entry(6000), may_be_complete=False)
    plan = queue_plan(full, complete(5000), recover, context=context)
    assert plan.results == {0: Fate.UNKNOWN}
    assert plan.summary is full
    with_room = replace(full, adopted=many[1:])
    assert queue_plan(with_room, {}, recover, context=context).results == {0: Fate.IN_FORCE}
    front = queue_plan(full, {at(0): Seen(entry(0), {"r1", "r2"})}, PeekCommand(), context=context)
    assert len(front.summary.adopted) == ADOPTED_MAX


def test_what_a_summary_adopts_is_counted_in_bytes_of_the_message() -> None:
    """A character may take four."""
    wide = Entry(at(1), at(1), Value('"\U0001f40c"'))
    small = replace(CONTEXT, take_bytes_max=8)
    plan = queue_plan(
        Summary(adopted=(wide,)), {}, RecoverCommand(entry(333), may_be_complete=False), context=small
    )
    assert plan.results == {0: Fate.UNKNOWN}
    small = replace(CONTEXT, take_bytes_max=9)
    plan = queue_plan(
        Summary(adopted=(wide,)), {}, RecoverCommand(entry(333), may_be_complete=False), context=small
    )
    assert plan.results == {0: Fate.IN_FORCE}


def test_keys_are_refused_when_what_they_took_weighs_too_much_to_be_sent() -> None:
    """An entry that was adopted is remembered with its payload, for no log need have it; the first one has room."""
    small = replace(CONTEXT, take_bytes_max=5, recent_max=9)
    summary = Summary(adopted=(entry(111_111), entry(222_222)))
    first = queue_plan(summary, {}, DequeueCommand(1, "k"), context=small)
    assert taken(first.results[0]) == ["111111"]
    second = queue_plan(first.summary, {}, DequeueCommand(1, "l"), context=small)
    assert second.results == {0: TOO_MANY_KEYS}
    assert taken(queue_plan(first.summary, {}, DequeueCommand(1), context=small).results[0]) == ["222222"]
    assert taken(queue_plan(first.summary, {}, DequeueCommand(1, "k"), context=small).results[0]) == [
        "111111"
    ]


def test_a_passed_entry_is_void_only_when_too_few_replicas_can_hold_it() -> None:
    """Holders that are no final quorum prove that it was never complete; a quorum of possible ones proves nothing."""
    summary = Summary(horizon=at(9))
    assert fate(summary, may_be_complete=False) == (Fate.VOID, summary)
    assert fate(summary, may_be_complete=True) == (Fate.UNKNOWN, summary)


@given(
    st.lists(
        st.sampled_from([DequeueCommand(1), DequeueCommand(2), DequeueCommand(9), PeekCommand()]), max_size=5
    ),
    st.sets(st.integers(1, 9)),
)
def test_a_batch_is_as_good_as_one_command_after_another(commands: list[Command], times: set[int]) -> None:
    together = queue_plan(NOTHING, complete(*times), *commands)
    summary = NOTHING
    results: dict[int, Any] = {}
    for place, command in enumerate(commands):
        waiting = {i: found for i, found in complete(*times).items() if found.entry.t > summary.horizon}
        plan = queue_plan(summary, waiting, command)
        summary = plan.summary
        results |= {place: plan.results[0]} if 0 in plan.results else {}
    assert all(
        together.results[place] == result
        for place, result in results.items()
        if isinstance(commands[place], DequeueCommand)
    )
    remaining = [found.entry for found in queue.view(together.summary, complete(*times))]
    assert remaining == [found.entry for found in queue.view(summary, complete(*times))]


def cell_plan(summary: Summary, seen: dict[str, Seen], *commands: Command, context: Context = CONTEXT) -> Any:
    return plan_cell(summary, seen, at(100), commands, context)


def test_swaps_of_a_batch_see_each_other() -> None:
    plan = cell_plan(
        NOTHING,
        complete(1),
        CompareAndSetCommand(Value("1"), Value("2")),
        CompareAndSetCommand(Value("1"), Value("3")),
        ConfirmCommand(),
    )
    assert plan.results == {0: True, 1: False, 2: "2"}
    assert (plan.summary.horizon, plan.summary.value) == (at(100), "2")


def test_a_swap_that_fails_on_a_known_value_changes_nothing() -> None:
    plan = cell_plan(NOTHING, complete(1), CompareAndSetCommand(Value("9"), Value("2")))
    assert plan.results == {0: False}
    assert plan.summary is NOTHING


def test_a_swap_finds_its_old_value_however_the_log_has_it_written() -> None:
    """Who appends by the replica protocol may write ` 1 `, and a read shows 1."""
    there = Summary(horizon=at(1), value=Value(' {"b":1E0,"a":"\\u0061"} '))
    old, other = Value('{"a":"a","b":1}'), Value('{"a":"a","b":true}')
    assert cell_plan(there, {}, CompareAndSetCommand(other, Value("2"))).results == {0: False}
    plan = cell_plan(there, {}, CompareAndSetCommand(old, Value("2")))
    assert (plan.results, plan.summary.value) == ({0: True}, "2")


def test_a_swap_that_fails_on_an_incomplete_value_writes_it_back() -> None:
    """Else a later reader might not see what this answer rests on."""
    plan = cell_plan(NOTHING, doubtful(1), CompareAndSetCommand(Value("9"), Value("2")))
    assert plan.results == {0: False}
    assert (plan.summary.horizon, plan.summary.value) == (at(1), "1")
    assert plan.summary.ambiguous == ((at(1), CONTEXT.ballot),)


def test_absent_and_null_match_each_other_but_only_absent_is_absent() -> None:
    null = Value("null")
    assert cell_plan(NOTHING, {}, CompareAndSetCommand(null, Value("1"))).results == {0: True}
    assert cell_plan(
        Summary(horizon=at(1), value=null), {}, CompareAndSetCommand(None, Value("1"))
    ).results == {0: True}
    assert cell_plan(NOTHING, {}, CompareAndSetCommand(None, Value("1"), only_absent=True)).results == {
        0: True
    }
    there = Summary(horizon=at(1), value=null)
    assert cell_plan(there, {}, CompareAndSetCommand(None, Value("1"), only_absent=True)).results == {
        0: False
    }


def test_a_swap_under_a_key_is_done_once() -> None:
    first = cell_plan(NOTHING, {}, CompareAndSetCommand(None, Value("1"), key="k"))
    again = cell_plan(first.summary, {}, CompareAndSetCommand(None, Value("1"), key="k"))
    assert again.results == {0: True}
    assert again.summary is first.summary


def test_a_recovered_value_counts_for_the_swap_that_follows() -> None:
    plan = cell_plan(
        NOTHING, {}, RecoverCommand(entry(5), False), CompareAndSetCommand(Value("5"), Value("6"))
    )
    assert plan.results[0] is Fate.IN_FORCE
    assert plan.results[1] is True
    assert at(5) in dict(plan.summary.ambiguous)


def test_a_summary_remembers_whose_decisions_led_to_it_as_long_as_it_can() -> None:
    summary, ballots = NOTHING, [make_ballot(make(n, 0, "f"), 1) for n in range(1, TERMS_MAX + 3)]
    for number, ballot in enumerate(ballots, 1):
        plan = queue_plan(
            summary, complete(number), DequeueCommand(1), context=replace(CONTEXT, ballot=ballot)
        )
        summary = plan.summary
    assert [is_included(summary, ballot) for ballot in ballots] == [None, None] + [True] * TERMS_MAX
    assert is_included(summary, make_ballot(make(TERMS_MAX, 5, "g"), 1)) is False
    assert is_included(summary, make_ballot(make(TERMS_MAX, 0, "f"), 2)) is False


def test_the_latest_turns_are_remembered_however_long_ago_they_began() -> None:
    """A steady owner keeps its turn for hours; deposed right after an accept, it must learn whether that one counts."""
    summary = NOTHING
    ballots = [make_ballot(make(term, 0, "f"), 1) for term in range(1, TERMS_KEPT + 3)]
    for number, ballot in enumerate(ballots, 1):
        context = replace(CONTEXT, ballot=ballot, terms_before=at(1_000_000))
        summary = queue_plan(summary, complete(number), DequeueCommand(1), context=context).summary
    assert [is_included(summary, ballot) for ballot in ballots] == [None, None] + [True] * TERMS_KEPT


@pytest.mark.parametrize(
    ("commands", "purpose"),
    [
        ([], "change"),
        ([ConfirmCommand(forgets=True), FoldCommand(forgets=True)], "forget"),
        ([ConfirmCommand(forgets=True), PeekCommand()], "settle"),
        ([ConfirmCommand(), FoldCommand()], "settle"),
        ([ConfirmCommand(), DequeueCommand(1)], "change"),
    ],
)
def test_a_decision_is_for_what_its_callers_want_together(commands: list[Command], purpose: str) -> None:
    assert purpose_of(commands) == purpose
