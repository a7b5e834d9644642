"""Blind operations: when an entry is stored for good, and what is done about one that fences refused."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Summary, Value
from quorate.adts.times import digest_in
from quorate.api_specs.cluster import ChoiceRule, ClockSettings
from quorate.api_specs.limits import DEFAULTS
from quorate.api_specs.messages import (
    Append,
    Appended,
    Collect,
    Collected,
    Held,
    Refused,
    Reserve,
    Reserved,
    Status,
)
from quorate.client_sdk.protocol.core.answer_times import RESEND_S_FIRST
from quorate.client_sdk.protocol.core.values import Done, Failed, Send, Unanswered, Write
from quorate.client_sdk.protocol.decisions.idempotency import KEY_REUSED, KEY_TOO_OLD, NO_ROOM_YET
from quorate.client_sdk.protocol.decisions.transitions import Fate, RecoverCommand
from quorate.client_sdk.protocol.operations.blind import HEDGE_S, Blind, done_as, is_stuck
from quorate.timestamps.timestamp import ZERO
from tests.unit.client_sdk.protocol.stage import (
    DEADLINE_S,
    EXACT,
    REPLICAS,
    START_US,
    Stage,
    at,
    ballot,
    shown,
)

NAME = "queue/q"
X, Y = Value("1"), Value("2")
STORED, FENCED = Appended(Status(), (True,)), Appended(Status(fence=at(1_000_000)), (False,))
NOBODY_THERE = Unanswered("no connection", definite=True)


class Storing(Stage):
    """One blind operation."""

    def __init__(
        self,
        *values: Value,
        key: str = "",
        rule: ChoiceRule | None = None,
        clock: ClockSettings = EXACT,
        asked_first: Sequence[str] = (),
    ) -> None:
        super().__init__(*([] if rule is None else [rule]), clock=clock)
        self.asked_first = asked_first
        self.blind = Blind(NAME, self.task, self, key)
        self.play(self.blind.run(values or (X,), "Enq/Ok"))

    def append_at(self, replica: str) -> Append:
        """What this replica is asked to store."""
        request = self.open_to(replica)
        assert isinstance(request, Append)
        return request

    def entry_at(self, replica: str) -> Entry:
        """The only entry of it."""
        (only,) = self.append_at(replica).entries
        return only


def test_it_is_done_once_a_final_quorum_stores_it_and_its_time_is_over() -> None:
    storing = Storing()
    sent = storing.entry_at("r1")
    assert storing.append_at("r1").attempt == "first"
    storing.answer("r1", STORED)
    assert storing.complete == []
    storing.answer("r3", STORED)
    assert storing.complete == [(NAME, (sent.t,))]
    assert not storing.is_over, "another front end may stamp lower in the same microsecond"
    storing.sleep(0.001)
    assert storing.result == Done(None, "Enq/Ok", frozenset({"r1", "r3"}))


@pytest.mark.parametrize(("error_s", "outcome"), [(1.0, Done), (DEADLINE_S, Failed)])
def test_its_time_is_not_waited_for_beyond_the_deadline(error_s: float, outcome: type) -> None:
    """It is stored, and may be ordered before what somebody begins now: so it is unknown whether it is over."""
    storing = Storing(clock=ClockSettings(front_end_error_s=error_s, offset_max_s=3 * DEADLINE_S))
    storing.answer_all(STORED, "r1", "r3")
    storing.sleep(DEADLINE_S)
    assert isinstance(storing.result, outcome)
    if isinstance(storing.result, Failed):
        assert (storing.result.reason, storing.result.definite) == ("unknown", False)
        assert storing.result.answered == {"r1", "r3"}
        assert "check the clocks" in storing.result.detail


def test_several_values_are_one_append_in_order_and_each_needs_its_quorum() -> None:
    storing = Storing(X, Y)
    entries = storing.append_at("r1").entries
    assert [each.value for each in entries] == [X, Y]
    assert entries[0].t < entries[1].t
    storing.answer("r1", Appended(Status(), (True, True)))
    storing.answer("r2", Appended(Status(fence=entries[0].t), (False, True)))
    storing.answer("r3", Appended(Status(), (True, True)))
    storing.sleep(0.001)
    assert storing.result == Done(None, "Enq/Ok", frozenset(REPLICAS))


def test_who_was_not_asked_is_told_what_a_quorum_stores() -> None:
    storing = Storing(X, Y, asked_first=("r1", "r2"))
    entries = storing.append_at("r1").entries
    storing.answer_all(Appended(Status(), (True, True)), "r1", "r2")
    assert storing.complete == [(NAME, tuple(each.t for each in entries))]
    assert storing.lazies == [Send("r3", (Append(NAME, entries),), 0, lazy=True)]


def test_who_was_not_asked_is_asked_at_once_where_a_fence_refuses() -> None:
    storing = Storing(asked_first=("r1", "r2"))
    storing.answer("r1", FENCED)
    assert [send.replica for send in storing.sends] == ["r1", "r2", "r3"]
    storing.answer_all(STORED, "r2", "r3")
    assert storing.complete
    assert not storing.lazies


def test_entries_at_the_same_replicas_share_one_set_of_them() -> None:
    """The garbage collector would look at a set for each entry of a batch."""
    storing = Storing(X, Y)
    storing.answer_all(Appended(Status(), (True, True)), "r1", "r2")
    first, second = storing.blind._stored.values()
    assert first is second
    assert first == {"r1", "r2"}


def test_what_all_replicas_refuse_for_their_fences_is_stamped_anew() -> None:
    storing = Storing()
    before = storing.entry_at("r1")
    storing.answer_all(FENCED, *REPLICAS)
    anew = storing.entry_at("r1")
    assert (anew.id, anew.value) == (before.id, X)
    assert anew.t > FENCED.status.fence > before.t
    assert storing.append_at("r1").attempt == "again", "they have just shown that the clock is right"
    assert storing.commands == []


def recovering(fenced: int = 1) -> Storing:
    """Some replicas refused it, and the others have had their time."""
    storing = Storing()
    storing.answer_all(FENCED, *REPLICAS[:fenced])
    storing.answer_all(STORED, *REPLICAS[fenced:2])
    assert storing.commands == []
    storing.sleep(HEDGE_S)
    return storing


@pytest.mark.parametrize(("fenced", "may_be_complete"), [(1, True), (2, False)])
def test_what_only_some_refuse_is_recovered_once_the_silent_ones_have_had_their_time(
    fenced: int, may_be_complete: bool
) -> None:
    """The replica that is silent may hold it: with a new timestamp it would be there twice."""
    storing = recovering(fenced)
    entry = storing.entry_at("r3")
    assert [asked.command for asked in storing.commands] == [RecoverCommand(entry, may_be_complete)]


def test_a_recovered_entry_that_is_in_force_is_done() -> None:
    storing = recovering()
    before = len(storing.sends)
    storing.decide(Fate.IN_FORCE)
    storing.sleep(0.001)
    assert isinstance(storing.result, Done)
    assert len(storing.sends) == before


def test_a_void_entry_gets_a_new_timestamp() -> None:
    storing = recovering()
    before = storing.entry_at("r3")
    storing.decide(Fate.VOID)
    anew = storing.entry_at("r3")
    assert (anew.id, anew.t > before.t) == (before.id, True)


def test_an_entry_whose_fate_is_unknown_is_sent_again_as_it_is() -> None:
    storing = recovering()
    before = storing.entry_at("r3")
    sent = len(storing.sends)
    storing.decide(Fate.UNKNOWN)
    assert len(storing.sends) == sent
    storing.sleep(HEDGE_S)
    assert storing.entry_at("r1") == before
    assert storing.append_at("r1").attempt == "again"


@pytest.mark.parametrize(
    ("ahead_s", "sent_s", "attempt"),
    [(0.0, 0.1, "again"), (1.9, 0.1, "again"), (2.1, 0.1, "first"), (0.0, -0.1, "first")],
    ids=["right", "as far as clocks may differ", "wrong", "seen before it was stamped"],
)
def test_a_repeat_is_judged_by_its_replica_until_that_has_shown_that_the_clock_was_right(
    ahead_s: float, sent_s: float, attempt: str
) -> None:
    """It is old for good reason, which no replica can tell from a wrong clock."""
    storing = Storing()
    first = storing.append_at("r1")
    storing.sleep(RESEND_S_FIRST)
    assert (first.attempt, storing.append_at("r1")) == ("first", first)
    storing.note_clock("r1", START_US + int((sent_s + ahead_s) * 1e6), sent_s)
    storing.sleep(2 * RESEND_S_FIRST)
    assert storing.append_at("r1") == replace(first, attempt=attempt)


@pytest.mark.parametrize(
    ("answer", "reason", "definite"),
    [(NOBODY_THERE, "unavailable", True), (Unanswered("connection reset"), "unknown", False)],
)
def test_without_a_quorum_it_is_unknown_unless_certainly_nothing_arrived(
    answer: Unanswered, reason: str, definite: bool
) -> None:
    storing = Storing()
    storing.answer_all(answer, *REPLICAS)
    storing.task.deadline_s = 0.001
    storing.sleep(DEADLINE_S)
    assert isinstance(storing.result, Failed)
    assert (storing.result.reason, storing.result.definite) == (reason, definite)


def test_with_quorum_ordering_it_is_stamped_above_what_an_initial_quorum_shows() -> None:
    storing = Storing(rule=ChoiceRule("queue/*", {"Enq/Ok": (2, 2)}, "quorum"))
    assert isinstance(storing.open_to("r1"), Collect)
    storing.answer_all(Collected(Status(), latest=at(5_000)), "r1", "r2")
    assert storing.entry_at("r1").t > at(5_000)


def test_under_a_key_what_was_agreed_is_appended_whoever_repeats_it() -> None:
    storing = Storing(key="k")
    reserve = storing.open_to("r1")
    assert isinstance(reserve, Reserve)
    ((mine,),) = (each.entries for each in reserve.proposals)
    earlier = Entry(f"{at(-9)}/{digest_in(mine.id)}", at(-9))
    storing.answer_all(Reserved((Held("Enq k", ZERO, (earlier,), reserve.ballot),)), *REPLICAS)
    assert storing.append_at("r1") == Append(NAME, (Entry(earlier.id, earlier.t, X),), "again")
    assert storing.blind.is_sent, "who reserved it may have stored it"


def test_a_key_that_was_used_with_another_value_is_refused() -> None:
    storing = Storing(key="k")
    other = Entry(f"{at(-9)}/0123", at(-9))
    ballot = storing.open_to("r1").ballot
    storing.answer_all(Reserved((Held("Enq k", ZERO, (other,), ballot),)), *REPLICAS)
    assert storing.result == KEY_REUSED


def test_what_a_reader_writes_back_is_no_new_entry_and_fences_may_stand_in_its_way() -> None:
    for reply, stored in ((STORED, (at(-1),)), (FENCED, ())):
        stage = Stage()
        entry = Entry(at(-1), at(-1), X)
        stage.play(Blind(NAME, stage.task, stage).write_back(entry))
        assert stage.open_to("r1") == Append(NAME, (entry,), "repair")
        stage.answer_all(reply, "r1", "r2")
        stage.sleep(HEDGE_S)
        assert stage.result == stored
        assert stage.commands == []


FINAL = Stage().choice_of(NAME).final_of_kind(Stage().choice_of(NAME).specification.kinds["Enq"])


@pytest.mark.parametrize(
    ("stored", "fenced", "is_hedged", "is_it"),
    [
        ("", "", True, False),
        ("1", "2", False, False),
        ("1", "2", True, True),
        ("1", "23", False, True),
        ("", "12", False, False),
        ("", "12", True, True),
    ],
)
def test_an_entry_is_stuck_where_fences_keep_it_from_its_quorum_or_may_and_the_silent_had_their_time(
    stored: str, fenced: str, is_hedged: bool, is_it: bool
) -> None:
    def replicas(digits: str) -> set[str]:
        return {f"r{each}" for each in digits}

    assert is_stuck(FINAL, set(REPLICAS), replicas(stored), replicas(fenced), is_hedged=is_hedged) is is_it


def test_a_write_is_named_by_its_data_type_and_by_whether_it_deletes() -> None:
    cells = [Write("register/x", X), Write("dictionary/d/k", X), Write("dictionary/d/k", None)]
    assert [done_as(each) for each in cells] == ["Write/Ok", "Put/Ok", "Delete/Ok"]


LONG_AGO = -10_000 * 1_000_000


@pytest.mark.parametrize("is_passed", [True, False])
@pytest.mark.parametrize("fate", Fate)
def test_what_was_agreed_on_long_ago_is_put_in_force_or_nobody_can_tell(
    fate: Fate, *, is_passed: bool
) -> None:
    """An item that a replica relays after a long time without a quorum: others refuse it as too old, and a dequeue may have taken it, if the horizon has
    passed it. Else there was no room."""
    stage = Stage()
    horizon = at(LONG_AGO + (1 if is_passed else -1))
    decided = shown(decided=ballot(-5), horizon=horizon, summary=Summary(horizon=horizon))
    stage.cache_of(NAME).absorb("r1", "i", Collect(NAME), decided)
    stage.play(Blind(NAME, stage.task, stage, "k", may_be_old=True).run((X,), "Enq/Ok"))
    mine = stage.open_to("r1")
    assert isinstance(mine, Reserve)
    ((entry,),) = (each.entries for each in mine.proposals)
    old = at(LONG_AGO)
    held = Held("Enq k", ZERO, (Entry(f"{old}/{digest_in(entry.id)}", old),), mine.ballot)
    stage.answer_all(Reserved((held,)), *REPLICAS)
    (asked,) = stage.commands
    assert asked.command == RecoverCommand(Entry(held.entries[0].id, old, X), may_be_complete=True)
    stage.decide(fate)
    if fate is Fate.IN_FORCE:
        stage.sleep(0.001)
        assert isinstance(stage.result, Done)
    else:
        assert stage.result == (KEY_TOO_OLD if is_passed else NO_ROOM_YET)
    assert not any(isinstance(send.request, Append) for send in stage.sends)


NEW = ("r1", "r4", "r5")


def test_in_a_new_configuration_it_goes_on_with_its_entry_and_who_stores_it_counts() -> None:
    storing = Storing()
    sent = storing.entry_at("r1")
    storing.answer("r1", STORED)
    storing.reconfigure(*NEW)
    assert storing.waiting == {"r1", "r2", "r3", "r4", "r5"}
    assert storing.append_at("r4") == Append(NAME, (sent,), "first")
    assert storing.append_at("r1") == Append(NAME, (sent,), "again")
    storing.answer_all(STORED, "r2")
    assert storing.complete == [], "none of the new members but r1 has it"
    storing.answer_all(STORED, "r5")
    assert storing.complete == [(NAME, (sent.t,))]


def test_what_was_sent_in_the_configuration_before_gets_no_new_timestamp() -> None:
    storing = Storing()
    sent = storing.entry_at("r1")
    storing.reconfigure(*NEW)
    storing.answer_all(FENCED, "r1", "r2", "r3", "r4", "r5")
    (asked,) = storing.commands
    assert asked.command == RecoverCommand(sent, may_be_complete=True)


def test_an_entry_that_fences_of_new_members_keep_out_may_be_complete_at_old_ones() -> None:
    stage = Stage()
    stage.reconfigured(*NEW)
    stage.play(Blind(NAME, stage.task, stage).run((X,), "Enq/Ok"))
    sent = stage.open_to("r1").entries[0]
    stage.answer_all(FENCED, "r4", "r5")
    stage.sleep(HEDGE_S)
    (asked,) = stage.commands
    assert asked.command == RecoverCommand(sent, may_be_complete=True)


def test_what_was_agreed_under_a_key_meanwhile_is_sent_to_members_of_now() -> None:
    storing = Storing(key="k")
    storing.reconfigure(*NEW)
    assert isinstance(storing.open_to("r4"), Reserve)
    storing.answer_all(Reserved(), "r1", "r2", "r3", "r4", "r5")
    assert storing.waiting == {"r1", "r2", "r3", "r4", "r5"}
    assert storing.append_at("r4").attempt == "again"


def test_under_a_key_that_was_asked_for_in_the_configuration_before_nothing_is_certain() -> None:
    storing = Storing(key="k")
    storing.reconfigure(*NEW)
    for replica in ("r1", "r2", "r3", "r4", "r5"):
        storing.answer(replica, Unanswered("refused", refused=True, definite=True))
    assert isinstance(storing.result, Failed)
    assert not storing.result.definite


def test_the_order_is_learnt_in_the_new_configuration_where_it_has_changed_meanwhile() -> None:
    storing = Storing(rule=ChoiceRule("queue/*", ordering="quorum"))
    storing.answer("r1", shown())
    storing.reconfigure(*NEW)
    storing.answer_all(shown(), "r1", "r2")
    assert isinstance(storing.open_to("r4"), Collect), "no majority of the new members has answered"
    storing.answer("r4", shown())
    assert isinstance(storing.open_to("r1"), Append)


def test_what_was_sent_two_configurations_ago_is_decided_and_not_stored_by_members_of_now() -> None:
    """They may have no fence where a decision has passed it."""
    storing = Storing()
    sent = storing.entry_at("r1")
    storing.reconfigure(*NEW)
    storing.settle()
    assert storing.waiting == set()
    (asked,) = storing.commands
    assert asked.command == RecoverCommand(sent, may_be_complete=True)
    storing.decide(Fate.IN_FORCE)
    storing.sleep(0.001)
    assert isinstance(storing.result, Done)


def test_what_a_decision_has_put_in_force_may_have_been_done_though_it_was_sent_to_nobody() -> None:
    """Its caller met two changes before it had sent anything. Then its time was too far ahead: it was told that nothing was done (seed 7000004913)."""
    stage = Stage(clock=ClockSettings(front_end_error_s=DEADLINE_S, offset_max_s=3 * DEADLINE_S))
    stage.follow(replace(stage.document, epoch=2))
    stage.task.renew()
    stage.play(Blind(NAME, stage.task, stage).run((X,), "Enq/Ok"))
    assert not stage.sends
    stage.decide(Fate.IN_FORCE)
    assert isinstance(stage.result, Failed)
    assert (stage.result.reason, stage.result.definite) == ("unknown", False)


@pytest.mark.parametrize("fate", [Fate.UNKNOWN, Fate.VOID])
def test_what_a_decision_has_passed_meanwhile_is_unknown_at_once(fate: Fate) -> None:
    storing = Storing()
    sent = storing.entry_at("r1")
    storing.reconfigure(*NEW)
    storing.settle()
    storing.cache_of(NAME).summary = Summary(horizon=sent.t)
    storing.decide(fate)
    assert isinstance(storing.result, Failed)
    assert not storing.result.definite


def test_what_no_decision_has_room_for_yet_is_asked_for_again() -> None:
    storing = Storing()
    storing.reconfigure(*NEW)
    storing.settle()
    storing.decide(Fate.UNKNOWN)
    storing.sleep(2 * HEDGE_S)
    assert not storing.is_over
    assert len(storing.commands) == 1


def test_a_fate_that_was_asked_for_in_the_configuration_before_is_not_void_in_this_one() -> None:
    """That no final quorum may store it was said of quorums of before: those of now may, and it may have been taken."""
    storing = Storing()
    sent = storing.entry_at("r1")
    storing.answer_all(FENCED, "r1", "r2")
    storing.sleep(HEDGE_S)
    (asked,) = storing.commands
    assert asked.command == RecoverCommand(sent, may_be_complete=False)
    storing.follow(replace(storing.document, epoch=1))
    storing.decide(Fate.VOID)
    assert isinstance(storing.result, Failed)
    assert not storing.result.definite


def test_what_is_written_back_goes_in_messages_of_a_bounded_size() -> None:
    stage = Stage(limits=replace(DEFAULTS, page_bytes_max=DEFAULTS.value_bytes_max))
    large = Value('"' + "x" * (DEFAULTS.value_bytes_max * 2 // 3) + '"')
    entries = [Entry(at(us), at(us), large) for us in (1, 2, 3)]
    stage.play(Blind(NAME, stage.task, stage).write_back(*entries))
    for entry in entries:
        assert stage.open_to("r1").entries == (entry,)
        stage.answer_all(STORED, "r1", "r2")
    assert stage.result == (at(1), at(2), at(3))


def test_what_has_sent_nothing_counts_as_begun_in_the_configuration_of_now() -> None:
    """Both came while it learnt the order: its entry is sent, and gets a new timestamp where all refuse it."""
    storing = Storing(rule=ChoiceRule("queue/*", ordering="quorum"))
    storing.reconfigure(*NEW)
    storing.settle()
    storing.answer_all(shown(), "r1", "r4")
    sent = storing.entry_at("r1")
    storing.answer_all(FENCED, *NEW)
    assert not storing.commands
    assert storing.entry_at("r1").t > sent.t


def test_what_all_certainly_refused_counts_as_begun_in_the_configuration_of_now() -> None:
    storing = Storing()
    sent = storing.entry_at("r1")
    for replica in REPLICAS:
        storing.answer(replica, NOBODY_THERE)
    storing.reconfigure(*NEW, is_heard=False)
    storing.settle()
    assert storing.append_at("r4") == Append(NAME, (sent,), "first")
    assert not storing.commands


@pytest.mark.parametrize("is_certain", [True, False])
def test_what_was_stamped_while_clocks_were_wrong_begins_anew_only_where_certainly_nobody_stores_it(
    is_certain: bool,
) -> None:
    """All clocks were a minute ahead, and are right now. Of what was sent to r1 first nothing is known, or that it did not arrive."""
    storing = Storing(clock=ClockSettings())
    storing.show_clocks(60.0)
    storing.answer("r1", shown())  # It was asked for its clock.
    before = storing.entry_at("r1")
    storing.show_clocks(0.0)
    storing.answer("r1", Unanswered("no answer", definite=is_certain))
    refused = Refused("clock-ahead", "a minute ahead", 60_000_000)
    storing.answer_all(refused, "r2", "r3")
    storing.sleep(RESEND_S_FIRST)
    storing.answer("r1", refused)
    if is_certain:
        storing.answer_all(shown(), "r1", "r2")  # It looks for what was stored ahead of time first.
        anew = storing.entry_at("r1")
        assert (anew.value, storing.append_at("r1").attempt) == (X, "first")
        assert anew.t < before.t
        assert not storing.is_over
    else:
        assert isinstance(storing.result, Failed)
        assert (storing.result.reason, storing.result.definite) == ("unknown", False)
