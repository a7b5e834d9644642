"""Calls on objects of one's own types, as one decision runs them."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.log import NOTHING, Decision, Entry, Seen, Summary, Value
from quorate.adts.plain_class import Json, PlainClass, call_text
from quorate.adts.specification import Response
from quorate.api_specs.limits import STATE_BYTES_MAX, Limits
from quorate.client_sdk.protocol.core.values import Failed
from quorate.client_sdk.protocol.decisions import summary_builder
from quorate.client_sdk.protocol.decisions.idempotency import KEY_REUSED, TOO_MANY_KEYS, TOO_MANY_TAKEN
from quorate.client_sdk.protocol.decisions.own_transitions import plan_own
from quorate.client_sdk.protocol.decisions.summary_builder import Context
from quorate.client_sdk.protocol.decisions.transitions import (
    Command,
    Fate,
    FoldCommand,
    InvokeCommand,
    Plan,
    RecoverCommand,
    RepairCommand,
)
from quorate.gc.collection import ended_at
from quorate.timestamps.ballot import make_ballot
from tests.support.own_types import Cart
from tests.unit.client_sdk.protocol.decisions.test_transitions import CONTEXT, TURN, at

CART = PlainClass(Cart)


def call(operation: str, *args: Any, key: str = "") -> InvokeCommand:
    return InvokeCommand(CART, CART.call(operation, *args), key)


def planned(
    summary: Summary, *commands: Command, log: Sequence[Seen] = (), context: Context = CONTEXT
) -> Plan:
    return plan_own(summary, {each.entry.id: each for each in log}, at(9), at(9), commands, context)


def stored(t: int, operation: str, *args: Any) -> Seen:
    """A call of a blind operation, in the log."""
    return Seen(Entry(f"e{t}", at(t), Value(call_text(CART.call(operation, *args)))), frozenset({"r1"}))


def holding(**items: int) -> Summary:
    state = ",".join(f'"{item}":{count}' for item, count in items.items())
    return replace(NOTHING, horizon=at(5), value=Value(f'{{"state":{{"items":{{{state}}}}},"version":1}}'))


def test_calls_run_one_after_another_on_the_state() -> None:
    plan = planned(holding(a=1), call("add", "b", 2), call("take", "a"), call("take", "a"), call("content"))
    assert plan.results == {
        0: Response("Ok"),
        1: Response("Ok", (1,)),
        2: Response("NotThere"),
        3: Response("Ok", (Json('{"b":2}'),)),
    }
    assert (plan.summary.horizon, plan.summary.value) == (at(9), holding(b=2).value)
    assert plan.events == ['add("b",2);Ok()', 'take("a");Ok(1)'], "what changed nothing is no event"


def test_calls_that_may_be_incomplete_run_only_as_far_as_their_ids_leave_room_in_a_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(summary_builder, "AMBIGUOUS_BYTES_MAX", 2200)
    log = [
        replace(each, entry=replace(each.entry, id=each.entry.id * 200))
        for each in (stored(t, "add", "a", 1) for t in range(6, 9))
    ]
    named = tuple((f"{t}" * 400, CONTEXT.ballot) for t in range(4))
    plan = planned(replace(NOTHING, ambiguous=named), call("content"), log=log)
    assert plan.results == {0: TOO_MANY_TAKEN}
    assert planned(NOTHING, call("content"), log=log).results[0].condition == "Ok"


def test_what_is_long_is_cut_in_the_events_that_logs_keep() -> None:
    """An event of 400 KB goes with every accept: a hundred calls failed, of objects whose logs keep them."""
    plan = planned(NOTHING, call("add", "x" * 300), call("add", 'a;"b'))
    assert plan.events == ["add(…);Ok()", 'add("a;\\"b",1);Ok()']


@pytest.mark.parametrize("summary", [NOTHING, holding(), holding(a=1)])
def test_calls_that_change_nothing_leave_the_summary_as_it_is(summary: Summary) -> None:
    plan = planned(summary, call("content"), call("take", "z"), call("add", "q", 1), call("take", "q"))
    assert plan.summary.value in (summary.value, None)
    looks = planned(summary, call("content"), call("take", "z"))
    assert looks.summary is summary


def test_an_object_that_is_as_new_again_has_come_to_nothing() -> None:
    """It filled objects_max for good."""
    plan = planned(holding(a=1), call("take", "a"))
    assert plan.summary.value is None
    assert ended_at("cart/ann", plan.summary, make_ballot(at(9), 1)) == plan.summary.horizon
    assert (
        ended_at("cart/ann", planned(holding(a=2), call("take", "b")).summary, make_ballot(at(9), 1)) is None
    )


def test_a_repeat_under_a_key_has_the_answer_of_the_first() -> None:
    first = planned(holding(a=1), call("take", "a", key="k"))
    assert first.summary.recent[0].result == '["Ok",1]'
    again = planned(first.summary, call("take", "a", key="k"), call("take", "b", key="k"))
    assert again.results == {0: Response("Ok", (1,)), 1: KEY_REUSED}
    assert again.summary is first.summary


def test_in_one_batch_a_repeat_is_no_other_call() -> None:
    plan = planned(holding(), call("add", "a", key="k"), call("add", "a", key="k"))
    assert plan.summary.value == holding(a=1).value


@pytest.mark.parametrize("before", [NOTHING, holding(), holding(a=1)])
def test_a_call_that_changed_nothing_is_not_run_again_by_its_repeat(before: Summary) -> None:
    """A lock's holder acquired it once more under a key, released it, and had it again by a late repeat of the second acquire."""
    first = planned(before, call("keep", "a", key="k"))
    assert first.results[0] == Response("Ok", ("a",))
    assert first.summary.value == before.value
    assert first.events == []
    later = planned(first.summary, call("add", "b", 2)).summary
    again = planned(later, call("keep", "a", key="k"), call("content", key="k"))
    assert again.results == {0: Response("Ok", ("a",)), 1: KEY_REUSED}
    assert again.summary is later


def test_a_call_that_ended_with_an_exception_runs_anew() -> None:
    first = planned(holding(), call("take", "a", key="k"))
    assert (first.results[0], first.summary) == (Response("NotThere"), holding())
    assert planned(holding(a=1), call("take", "a", key="k")).results[0] == Response("Ok", (1,))


def test_a_key_is_refused_where_no_more_can_be_remembered() -> None:
    full = planned(holding(), call("add", "a", key="k"), call("add", "b", key="l"), call("add", "c", key="m"))
    assert full.results[2] is TOO_MANY_KEYS
    assert full.summary.value == holding(a=1, b=1).value
    assert planned(full.summary, call("content", key="n")).results[0] is TOO_MANY_KEYS, "answers are kept"
    assert planned(full.summary, call("content"), call("take", "z", key="n")).results[0].condition == "Ok"
    long = "x" * 600
    heavy = planned(holding(**{long: 1}), call("keep", long, key="k"), call("add", "a", key="l"))
    assert heavy.results[0].condition == heavy.results[1].condition == "Ok"


def test_results_that_are_remembered_together_have_a_bound() -> None:
    """Bytes of results, as of the payloads that a dequeue's key remembers: every accept carries them."""
    wide = replace(CONTEXT, recent_max=9)
    items = {"x" * 400: 1, "y" * 400: 1, "z" * 400: 1}
    plan = planned(
        holding(**items), *(_listing(item, key=f"k{at}") for at, item in enumerate(items)), context=wide
    )
    assert [isinstance(plan.results[place], Failed) for place in range(3)] == [False, True, True]
    assert plan.results[1] is TOO_MANY_KEYS


class Lister(Cart):
    def drop(self, item: str) -> dict[str, int]:
        """Take an item out: what was there before."""
        before = dict(self.items)
        del self.items[item]
        return before


def _listing(item: str, key: str) -> InvokeCommand:
    found = PlainClass(Lister)
    return InvokeCommand(found, found.call("drop", item), key)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (call("slip"), "slip() in the state {"),
        (call("quit"), "quit() in the state {"),
        (call("end", "GeneratorExit"), "raised GeneratorExit: \\ud800"),
        (call("loop"), "or holds itself"),
        (call("odd"), "something that cannot be shown, of type Odd"),
        (call("fill", STATE_BYTES_MAX), f"of {STATE_BYTES_MAX} at most: keep less in one object"),
    ],
)
def test_a_call_that_cannot_be_run_changes_nothing_and_stops_no_other(
    command: InvokeCommand, words: str
) -> None:
    plan = planned(holding(a=1), command, call("take", "a"))
    assert plan.results[0] == Failed("refused", plan.results[0].detail, definite=True)
    assert words in plan.results[0].detail
    assert len(plan.results[0].detail) < 400
    assert plan.results[1] == Response("Ok", (1,))


def test_a_result_beyond_the_documents_limits_is_refused_and_changes_nothing() -> None:
    """Nine megabytes were answered: a hundred such calls, and others waited for seconds."""
    tight = replace(CONTEXT, limits=Limits(value_bytes_max=100))
    long = "x" * 60
    plan = planned(holding(**{long: 1}, y=1), call("content"), call("take", long), context=tight)
    assert isinstance(plan.results[0], Response)
    wide = planned(holding(**{long: 1, "y" * 60: 1}), call("content"), call("take", long), context=tight)
    assert "the result has 131 bytes, of 100 (value_bytes_max) at most" in wide.results[0].detail
    assert wide.results[1] == Response("Ok", (1,))


def test_a_state_beyond_the_documents_limits_is_refused() -> None:
    tight = replace(CONTEXT, limits=Limits(value_bytes_max=100))
    plan = planned(NOTHING, call("fill", 100), context=tight)
    assert "value_bytes_max" in plan.results[0].detail


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("17", "what the object holds is no state of a Cart"),
        ('{"state":[1],"version":1}', "no state of a Cart: the attributes are [1]"),
        ('{"state":null,"version":1}', "no state of a Cart: the attributes are null"),
        (
            '{"state":{"items":{}},"version":2}',
            "of version 2, and the Cart that runs here is of version 1: give it the newer class, and restart",
        ),
    ],
)
def test_a_state_that_the_class_does_not_know_is_told(value: str, words: str) -> None:
    plan = planned(replace(NOTHING, horizon=at(5), value=Value(value)), call("content"))
    assert words in plan.results[0].detail
    assert plan.summary.value == value


class Newer(Cart):
    version = 2

    @staticmethod
    def upgrade(version: int, state: dict[str, Any]) -> dict[str, Any]:
        """The first version counted nothing."""
        return {"items": dict.fromkeys(state["items"], version)}


def test_a_newer_class_reads_what_it_says_how_to_read() -> None:
    found = PlainClass(Newer)
    look, add = (InvokeCommand(found, found.call(*each), "") for each in (("content",), ("add", "b")))
    seen = planned(holding(a=7), look)
    assert seen.results[0] == Response("Ok", (Json('{"a":1}'),))
    assert seen.summary.value == holding(a=7).value, "a look rewrites nothing"
    plan = planned(holding(a=7), add)
    assert plan.summary.value == '{"state":{"items":{"a":1,"b":1}},"version":2}'
    assert (
        "of version 2, and the Cart that runs here is of version 1"
        in planned(plan.summary, call("content")).results[0].detail
    )


class Forgetful(Cart):
    version = 2


def test_an_older_state_is_refused_where_the_class_does_not_say_how_to_read_it() -> None:
    found = PlainClass(Forgetful)
    plan = planned(holding(a=7), InvokeCommand(found, found.call("content")))
    assert (
        "of version 1, and Forgetful is of version 2: give it a static method upgrade"
        in plan.results[0].detail
    )


class Rash(Cart):
    version = 2

    @staticmethod
    def upgrade(version: int, state: dict[str, Any]) -> Any:
        """Not a dictionary."""
        return [version, state]


def test_an_upgrade_to_what_is_no_state_is_told() -> None:
    found = PlainClass(Rash)
    plan = planned(holding(a=7), InvokeCommand(found, found.call("content")))
    assert "returned [1, {'items': {'a': 7}}]: a state is a dictionary" in plan.results[0].detail


def test_the_ballot_of_a_change_is_noted() -> None:
    plan = planned(holding(), call("add", "a"))
    assert plan.summary.terms == (make_ballot(TURN, 1),)


def test_calls_in_the_log_run_first_in_the_order_of_their_timestamps() -> None:
    """Whether they are known to be complete or not; of those that are not, the summary leaves word."""
    late, early = stored(7, "take", "a"), replace_(stored(6, "add", "b"), complete=True)
    plan = planned(holding(a=1), call("add", "c"), call("content"), log=[late, early])
    assert plan.results[1] == Response("Ok", (Json('{"b":1,"c":1}'),))
    assert plan.summary == replace(
        holding(b=1, c=1), horizon=at(9), ambiguous=(("e7", CONTEXT.ballot),), terms=(CONTEXT.ballot,)
    )
    assert plan.events == ['add("b",1);Ok()', 'take("a");Ok(1)', 'add("c",1);Ok()']


def replace_(seen: Seen, *, complete: bool) -> Seen:
    return Seen(seen.entry, seen.holders, complete)


def test_a_look_at_calls_in_the_log_is_decided_with_them() -> None:
    plan = planned(holding(a=1), call("content"), log=[stored(6, "add", "a")])
    assert plan.results[0] == Response("Ok", (Json('{"a":2}'),))
    assert (plan.summary.value, plan.summary.horizon) == (holding(a=2).value, at(6))


def test_nobody_is_answered_before_all_has_run() -> None:
    """A decision runs as many as a page has; the next one goes on."""
    narrow = replace(CONTEXT, limits=Limits(page_entries_max=2))
    log = [stored(t, "add", "a") for t in (6, 7, 8)]
    first = planned(holding(), call("content"), FoldCommand(CART), context=narrow, log=log)
    assert (first.results, first.summary.horizon) == ({}, at(7))
    second = planned(first.summary, call("content"), FoldCommand(CART), context=narrow, log=log)
    assert second.results == {0: Response("Ok", (Json('{"a":3}'),)), 1: None}


def test_what_is_seen_of_a_long_log_is_run_and_nobody_is_answered_before_the_rest_is_seen() -> None:
    log = {each.entry.id: each for each in (stored(6, "add", "a"), stored(7, "add", "a"))}
    plan = plan_own(holding(), log, at(6), at(9), [call("content"), FoldCommand(CART)], CONTEXT)
    assert (plan.results, plan.summary.value, plan.summary.horizon) == ({}, holding(a=1).value, at(6))
    assert plan_own(holding(), {}, at(6), at(9), [call("content")], CONTEXT).results == {}


def test_what_lies_above_the_stamp_is_not_run_and_keeps_callers_waiting() -> None:
    """The log can still grow below it."""
    adopted = stored(10, "add", "a").entry
    plan = planned(replace(holding(), adopted=(adopted,)), call("content"))
    assert (plan.results, plan.summary.adopted) == ({}, (adopted,))


def test_of_large_states_one_decision_runs_fewer_calls() -> None:
    large = replace(holding(**{"x" * 250_000: 1}), horizon=at(1))
    log = [stored(t, "add", "a") for t in range(2, 9)]
    plan = planned(large, call("content"), log=log)
    assert (plan.results, plan.summary.horizon) == ({}, at(6)), "five, for these are a megabyte"
    nested = Value('{"state":{"items":{},"kept":[' + ",".join(["[]"] * 20_000) + ']},"version":1}')
    plan = planned(replace(large, value=nested), call("content"), log=log)
    assert (plan.results, plan.summary.horizon) == ({}, at(4)), "three, for arrays count 16 bytes more"


def test_a_call_in_the_log_is_recovered_without_the_code() -> None:
    """It is adopted: a later decision of a front end that has the code runs it, once."""
    entry = stored(6, "add", "a").entry
    first = planned(holding(), RecoverCommand(entry, may_be_complete=True))
    assert first.results == {0: Fate.IN_FORCE}
    assert (first.summary.adopted, first.summary.value) == ((entry,), holding().value)
    second = planned(first.summary, call("content"), log=[stored(6, "add", "a")])
    assert second.results[0] == Response("Ok", (Json('{"a":1}'),))
    again = planned(
        second.summary,
        RecoverCommand(entry, may_be_complete=True),
        call("content"),
        log=[stored(6, "add", "a")],
    )
    assert again.results == {0: Fate.IN_FORCE, 1: Response("Ok", (Json('{"a":1}'),))}


def test_a_summary_adopts_no_more_calls_than_wait_elsewhere_unless_others_are_to_be_settled() -> None:
    """Hundreds that fences had kept from their quorums were adopted on a large state: each look at it took half a minute."""
    large = replace(holding(), value=Value('{"state":{"items":{},"kept":[' + "[]," * 80_000 + "[]]}}"))
    calls = [stored(6, "add", f"{number}").entry for number in range(9)]
    calls = [replace(each, id=f"e{number}") for number, each in enumerate(calls)]
    plan = planned(large, *(RecoverCommand(each, may_be_complete=True, is_to_run=True) for each in calls))
    fates = list(plan.results.values())
    room = fates.count(Fate.IN_FORCE)
    assert 0 < room < len(calls)
    assert fates == [Fate.IN_FORCE] * room + [Fate.UNKNOWN] * (len(calls) - room)
    assert plan.summary.adopted == tuple(calls[:room])
    plan = planned(plan.summary, RecoverCommand(calls[-1], may_be_complete=True))
    assert plan.results == {0: Fate.IN_FORCE}, "it is settled by who looks, and keeps nobody waiting"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('["shine",[]]', "Cart has no operation 'shine'"),
        ('["add",[7,{}]]', "add(7, {}) in the state"),
        ('["end",["CancelledError"]]', "raised CancelledError: \\ud800"),
        ("17", "is no call"),
        (f'["fill",[{2 * 1024 * 1024}]]', "(value_bytes_max)"),
    ],
)
def test_a_call_in_the_log_that_cannot_be_run_is_told_and_hidden_from_nobody(text: str, words: str) -> None:
    """An answer without it would deny what its caller was told. What lies before it has run."""
    wrong = Seen(Entry("e7", at(7), Value(text)), frozenset({"r1"}))
    plan = planned(holding(), call("content"), call("add", "z"), log=[stored(6, "add", "a"), wrong])
    assert all(isinstance(plan.results[place], Failed) and plan.results[place].definite for place in (0, 1))
    assert words in plan.results[0].detail
    assert "lies in the object's log" in plan.results[0].detail
    assert (plan.summary.value, plan.summary.horizon) == (holding(a=1).value, at(6))


def test_a_repair_takes_out_of_the_log_what_cannot_be_run_and_tells_it() -> None:
    log = [
        stored(6, "add", "a"),
        Seen(Entry("e7", at(7), Value('["shine",[]]')), frozenset({"r1"})),
        stored(8, "add", "a"),
    ]
    plan = planned(holding(), RepairCommand(Limits(), CART), call("content"), log=log)
    assert [str(each).partition(" (")[0] for each in plan.results[0]] == [
        'taken out of the log: ["shine",[]]'
    ]
    assert plan.results[1] == Response("Ok", (Json('{"a":2}'),))
    again = planned(plan.summary, RepairCommand(Limits(), CART), log=log)
    assert again.results == {0: ()}
    without_code = planned(holding(), RepairCommand(Limits()), log=log)
    assert (without_code.results, without_code.summary) == ({0: ()}, holding())


def test_a_repair_tells_what_it_took_out_before_there_was_no_room_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was told that nothing was done; the call was gone, and no later repair told of it."""
    monkeypatch.setattr(summary_builder, "AMBIGUOUS_BYTES_MAX", 2200)
    wrong = Seen(Entry("e6", at(6), Value("17")), frozenset({"r1"}))
    log = [wrong, stored(7, "add", "a"), stored(8, "add", "a")]
    log = [replace(each, entry=replace(each.entry, id=f"{each.entry.t}" * 20)) for each in log]
    named = tuple((f"{t}" * 400, CONTEXT.ballot) for t in range(3))
    full = replace(NOTHING, ambiguous=named)
    plan = planned(full, RepairCommand(Limits(), CART), call("content"), log=log)
    assert [str(each).partition(" (")[0] for each in plan.results[0]] == ["taken out of the log: 17"]
    assert plan.results[1] == TOO_MANY_TAKEN
    assert plan.summary.horizon == at(6)
    assert planned(plan.summary, RepairCommand(Limits(), CART), log=log).results == {0: TOO_MANY_TAKEN}


def test_a_repair_goes_on_until_it_has_something_to_tell_or_all_has_run() -> None:
    narrow = replace(CONTEXT, limits=Limits(page_entries_max=2))
    log = [stored(t, "add", "a") for t in (6, 7, 8)]
    first = planned(holding(), RepairCommand(Limits(), CART), log=log, context=narrow)
    assert (first.results, first.summary.horizon) == ({}, at(7))
    assert planned(first.summary, RepairCommand(Limits(), CART), log=log, context=narrow).results == {0: ()}


@pytest.mark.parametrize(
    "held", ["17", '{"state":{"items":{}},"version":2}', '{"state":{"items":3},"version":1}']
)
def test_an_object_begins_anew_whatever_it_held_and_what_lies_in_its_log_runs(held: str) -> None:
    log = [stored(6, "add", "a"), stored(8, "add", "a")]
    plan = planned(
        replace(holding(), value=Value(held)),
        RepairCommand(Limits(), CART, is_anew=True),
        call("content"),
        log=log,
    )
    assert plan.results == {
        0: (f"the state of a new object, in place of {held}",),
        1: Response("Ok", (Json('{"a":2}'),)),
    }
    assert (plan.summary.value, plan.summary.horizon) == (holding(a=2).value, at(8))


def test_an_object_that_begins_anew_holds_what_a_new_one_holds() -> None:
    plan = planned(holding(a=1), RepairCommand(Limits(), CART, is_anew=True))
    assert (plan.summary.value, plan.summary.terms != ()) == (None, True)


def test_who_begins_anew_is_answered_by_the_decision_that_does_it() -> None:
    """A second one would forget the calls that the first one ran."""
    narrow = replace(CONTEXT, limits=Limits(page_entries_max=2))
    log = [stored(t, "add", "a") for t in (6, 7, 8)]
    plan = planned(NOTHING, RepairCommand(Limits(), CART, is_anew=True), log=log, context=narrow)
    assert plan.results == {0: ("the state of a new object, in place of the same",)}


def test_stored_calls_may_make_a_state_too_large_and_others_make_it_smaller() -> None:
    """Whoever stored them was told that they are done."""
    log = [stored(6, "fill", STATE_BYTES_MAX)]
    plan = planned(holding(a=1), call("take", "a"), call("add", "b"), log=log)
    assert plan.results[0] == Response("Ok", (1,))
    assert "keep less in one object" in plan.results[1].detail
    assert plan.summary.value is not None
    assert len(plan.summary.value) > STATE_BYTES_MAX


def test_where_the_log_cannot_be_run_a_repeat_is_told_its_first_answer() -> None:
    first = planned(holding(a=1), call("take", "a", key="k"))
    wrong = Seen(Entry("e10", at(10), Value("17")), frozenset({"r1"}))
    plan = plan_own(
        first.summary, {"e10": wrong}, at(11), at(11), [call("take", "a", key="k"), call("content")], CONTEXT
    )
    assert plan.results[0] == Response("Ok", (1,))
    assert isinstance(plan.results[1], Failed)


def test_a_class_that_cannot_read_the_state_takes_nothing_out() -> None:
    """A repair by an older class took out all calls that the log had."""
    newer = replace(holding(a=1), value=Value('{"state":{"items":{}},"version":2}'))
    plan = planned(newer, RepairCommand(Limits(), CART), call("content"), log=[stored(6, "add", "a")])
    assert all(isinstance(result, Failed) for result in plan.results.values())
    assert "give it the newer class" in plan.results[0].detail
    assert plan.summary == newer


def test_what_a_repair_mended_is_told_though_the_class_cannot_read_the_state() -> None:
    wrong = Decision("x" * 5000, CONTEXT.ballot)
    newer = replace(holding(), value=Value('{"state":{"items":{}},"version":2}'), recent=(wrong,))
    plan = planned(newer, RepairCommand(Limits(), CART))
    assert [str(each)[:20] for each in plan.results[0]] == ["taken out of recent:"]
    assert plan.summary.recent == ()
