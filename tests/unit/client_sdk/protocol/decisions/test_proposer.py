"""Decisions on one object: terms and accepts, what a lost accept comes to, and when a queue may be called empty."""

import weakref
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.collector import collector_off
from quorate.adts.log import NOTHING, Decision, Entry, Summary, Value
from quorate.api_specs.cluster import ChoiceRule, ClockSettings
from quorate.api_specs.commands import AcquireCommand, CompareAndSetCommand, DequeueCommand, PeekCommand
from quorate.api_specs.limits import DEFAULTS, Limits
from quorate.api_specs.messages import Accept, Accepted, Collect, Collected, Refused, Row, Status
from quorate.client_sdk.protocol.core.answer_times import HEDGE_S
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.protocol.decisions.pending import PendingCommand
from quorate.client_sdk.protocol.decisions.proposer import (
    BACKOFF_S_FIRST,
    BACKOFF_S_MAX,
    BACKOFF_SHARE_MAX,
    Proposer,
)
from quorate.client_sdk.protocol.decisions.summary_builder import TERMS_MAX
from quorate.client_sdk.protocol.decisions.transitions import Command, ConfirmCommand
from quorate.timestamps.ballot import NO_BALLOT, make_ballot, step_of, term_of
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.unit.client_sdk.protocol.stage import (
    DEADLINE_S,
    EXACT,
    REPLICAS,
    START_US,
    Stage,
    at,
    ballot,
    complete,
    entry,
    shown,
)

QUEUE, CELL = "queue/q", "register/x"
ONE, TWO = entry(-20), entry(-10)
REFUSED = Accepted(Status(promised=at(60_000_000, "o")), refused=True)


class Deciding(Stage):
    """One proposer, whose runner goes on until nobody asks any more."""

    def __init__(
        self,
        name: str = QUEUE,
        clock: ClockSettings = EXACT,
        limits: Limits = DEFAULTS,
        rule: ChoiceRule | None = None,
    ) -> None:
        super().__init__(*([] if rule is None else [rule]), clock=clock, limits=limits)
        self.name = name
        self.cache = self.cache_of(name)
        self.proposer = Proposer(self.cache, self)

    def is_reconfigured(self, answer: Unanswered) -> bool:
        """See Machine."""
        return answer.epoch is not None

    def begin(self, *commands: Command) -> list[PendingCommand]:
        """Callers ask, and the proposer runs for them; it must not run yet."""
        asked = [PendingCommand(each, self.caller(2 + place)) for place, each in enumerate(commands)]
        self.proposer.asked.extend(asked)
        self.play(self.proposer.run(self.task))
        return asked

    def accept(self, *replicas: str, then: Collected | None = None) -> None:
        """These replicas accept what they were asked to."""
        for replica in replicas:
            accept = self.accept_at(replica)
            status = Status(accepted=accept.ballot)
            self.answer(replica, Accepted(status, then=then if accept.then is not None else None))

    def collect_at(self, replica: str) -> Collect:
        """What this replica is asked to show."""
        request = self.open_to(replica)
        assert isinstance(request, Collect)
        return request

    def accept_at(self, replica: str) -> Accept:
        """What this replica is asked to accept."""
        request = self.open_to(replica)
        assert isinstance(request, Accept)
        return request

    @property
    def results(self) -> list[Any]:
        """What callers were told, in order; of a failure its reason and whether it is definite."""
        verdicts = [verdict for _, verdict in self.told]
        return [
            each.result if each.failed is None else (each.failed.reason, each.failed.definite)
            for each in verdicts
        ]


def front(*entries: Entry, fence: Timestamp) -> Collected:
    """The log of a queue that was fenced there."""
    return shown(*complete(*entries), fence=fence)


def test_a_first_decision_takes_a_term_fences_what_it_takes_and_is_accepted_by_a_final_quorum() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    collect = deciding.collect_at("r1")
    assert collect.ballot is not None
    assert (step_of(collect.ballot), collect.fence_next) == (0, 1)
    deciding.answer_all(front(ONE, TWO, fence=ONE.t), "r1", "r2")
    accept = deciding.accept_at("r3")
    assert (term_of(accept.ballot), step_of(accept.ballot)) == (term_of(collect.ballot), 1)
    assert accept.summary.horizon == ONE.t
    deciding.accept("r1")
    assert deciding.told == []
    deciding.accept("r2")
    assert deciding.results == [(ONE,)]
    assert {send.replica: send.request.summary for send in deciding.lazies} == {  # type: ignore[union-attr]
        "r1": None,
        "r2": None,
        "r3": accept.summary,
    }


def test_others_are_asked_before_half_of_the_time_is_over_that_the_most_urgent_caller_has() -> None:
    """Its own batch may hold callers with more time, for whom a silent replica would be waited for longer."""
    deciding = Deciding()
    deciding.asked_first = ("r1", "r2")
    urgent = PendingCommand(DequeueCommand(1), deciding.caller(9, HEDGE_S[0]))
    deciding.proposer.asked.append(urgent)
    deciding.begin(DequeueCommand(1))
    deciding.answer("r1", front(ONE, TWO, fence=TWO.t))
    deciding.sleep(HEDGE_S[0] / 2)
    assert deciding.waiting == {"r2", "r3"}
    deciding.answer("r3", front(ONE, TWO, fence=TWO.t))
    deciding.accept("r1")
    deciding.sleep(HEDGE_S[0] / 4)
    assert "r3" in deciding.waiting
    deciding.accept("r3")
    assert deciding.results == [(ONE,), (TWO,)]


def test_who_is_to_accept_and_to_show_the_next_view_is_a_quorum_for_both() -> None:
    """Of a rule whose final quorum is one replica and whose initial quorum all three, the owner would have to look again after each accept."""
    deciding = Deciding(rule=ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}))
    deciding.begin(DequeueCommand(1))
    assert [deciding.is_enough(some) for some in SETS] == [False, False, True], "it looks"
    deciding.answer_all(front(ONE, TWO, fence=TWO.t), *REPLICAS)
    assert deciding.accept_at("r1").then is not None
    assert [deciding.is_enough(some) for some in SETS] == [False, False, True]


def test_a_cell_is_looked_at_afresh_so_that_a_final_quorum_is_enough_to_accept() -> None:
    deciding = Deciding(
        CELL, rule=ChoiceRule("register/*", {"Write/Ok": (0, 1), "Read/Ok": (3, 1), "Cas/Ok": (3, 1)})
    )
    deciding.begin(CompareAndSetCommand(None, Value("1")))
    deciding.answer_all(shown(fence=deciding.collect_at("r1").fence), *REPLICAS)
    assert deciding.accept_at("r1").then is None
    assert [deciding.is_enough(some) for some in SETS] == [True, True, True]


SETS = [frozenset(REPLICAS[:count]) for count in (1, 2, 3)]
CALLED = ("one", "two")
"""Who may call a front end that several call. Where it is nobody's but the SDK's, there is none."""


def asked_by(first: str | None, second: str | None) -> Any:
    """What the second caller is told of a dequeue under a key after the first had one, where one of each is remembered."""
    deciding = Deciding(limits=Limits(recent_decisions_max=2))
    first_asked, second_asked = (
        PendingCommand(DequeueCommand(1, f"Deq {place}"), deciding.caller(2 + place)) for place in range(2)
    )
    first_asked.task.turn, second_asked.task.turn = first, second
    deciding.proposer.asked.append(first_asked)
    deciding.play(deciding.proposer.run(deciding.task))
    deciding.answer_all(front(ONE, TWO, fence=ONE.t), "r1", "r2")
    decided = deciding.accept_at("r1").ballot
    deciding.accept("r1", "r2", then=Collected(Status(fence=TWO.t), summary=None, since=2))
    deciding.proposer.asked.append(second_asked)
    deciding.play(deciding.proposer.run(deciding.task))
    if isinstance(deciding.open_to("r1"), Collect):  # Who is refused is so by a fresh look.
        deciding.answer_all(
            shown(*complete(TWO), fence=TWO.t, decided=decided, horizon=ONE.t, summary=None), "r1", "r2"
        )
    deciding.accept("r1", "r2")
    assert deciding.results[0] == (ONE,)
    return deciding.results[1]


@pytest.mark.parametrize("caller", [*CALLED, None])
def test_who_asks_has_no_more_keys_remembered_than_a_share(caller: str | None) -> None:
    assert asked_by(caller, caller) == ("too-many-keys", True)
    for other in {*CALLED, None} - {caller}:
        assert asked_by(caller, other) == (TWO,)


def test_what_another_front_end_decided_counts_for_whose_front_end_that_is() -> None:
    def told(site: str) -> Any:
        newest = make_ballot(make(START_US - 40, 0, site), 1)
        held = Summary(at(-50), recent=(Decision("Deq other", newest),), terms=(newest,))
        deciding = Deciding(limits=Limits(recent_decisions_max=2))
        deciding.begin(DequeueCommand(1, "Deq mine"))
        shows = shown(*complete(ONE), fence=ONE.t, decided=newest, horizon=held.horizon, summary=held)
        deciding.answer_all(shows, "r1", "r2")
        deciding.accept("r1", "r2")
        return deciding.results

    assert told("other") == [(ONE,)]
    assert told("s") == [("too-many-keys", True)], "the same token's: sites begin with its tag"


def steady() -> Deciding:
    """An owner that has decided once, and has its next view from the accept."""
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    deciding.answer_all(front(ONE, TWO, fence=ONE.t), "r1", "r2")
    then = deciding.accept_at("r1").then
    assert then is not None
    assert then.fence == TWO.t
    deciding.accept("r1", "r2", then=Collected(Status(fence=TWO.t), summary=None, since=2))
    return deciding


def test_a_steady_owner_decides_with_one_accept_on_which_the_next_collect_rides() -> None:
    deciding = steady()
    before = len(deciding.sends)
    deciding.begin(DequeueCommand(1))
    deciding.accept("r2", "r3")
    assert deciding.results == [(ONE,), (TWO,)]
    requests = [send.request for send in deciding.sends[before:]]
    assert [type(each) for each in requests] == [Accept] * len(REPLICAS)
    assert all(isinstance(each, Accept) and step_of(each.ballot) == 2 and each.then for each in requests)


def peeking() -> Deciding:
    """An owner that peeks by an older view, at an item that may not be complete, and fetches its value."""
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    bare = Row(Entry(TWO.id, TWO.t))
    deciding.answer_all(shown(*complete(ONE), bare, fence=TWO.t), "r1", "r2")
    deciding.accept("r1", "r2", then=Collected(Status(fence=TWO.t), summary=None, since=2))
    deciding.begin(PeekCommand())
    assert deciding.collect_at("r1").wanted == (TWO.t,)
    return deciding


def test_an_older_view_is_proved_by_an_accept_though_another_has_changed_it_in_the_same_way_meanwhile() -> (
    None
):
    """That one may have taken the item since: the replica that sends the value need not know."""
    alone = peeking()
    alone.answer("r1", shown(Row(TWO), fence=TWO.t, summary=None))
    same = alone.accept_at("r1").summary
    beside = peeking()
    theirs = ballot(70_000_000)
    shows = shown(Row(TWO), fence=TWO.t, decided=theirs, horizon=same.horizon, summary=same)
    beside.cache.absorb("r1", "i", beside.collect_at("r1"), shows)
    beside.answer("r1", shows)
    assert beside.cache.summary == same
    assert beside.cache.is_decided
    beside.accept_at("r2")
    assert beside.results == [(ONE,)]
    beside.answer("r2", REFUSED)
    assert beside.counted["terms lost"] == 1


def test_an_owner_that_has_rested_for_as_long_as_summaries_remember_looks_before_it_takes() -> None:
    """Its term may be over, and an accept that is refused was never done: nobody could tell it that any more."""
    deciding = steady()
    deciding.sleep_alone(TERMS_MAX * BACKOFF_S_FIRST * 1.01)
    deciding.begin(DequeueCommand(1))
    term = deciding.collect_at("r1").ballot
    deciding.answer("r1", Collected(Status(), refused=True))
    assert deciding.counted["terms lost"] == 1
    deciding.sleep(BACKOFF_S_MAX)
    assert deciding.collect_at("r1").ballot != term
    far = ballot(70_000_000)
    summary = Summary(ONE.t, terms=(far,), terms_floor=far)
    deciding.answer_all(
        shown(*complete(TWO), decided=far, fence=TWO.t, horizon=ONE.t, summary=summary), "r1", "r2"
    )
    deciding.accept("r1", "r2")
    assert deciding.results == [(ONE,), (TWO,)]


def test_what_lies_above_the_fences_is_collected_anew_by_a_steady_owner_too() -> None:
    deciding = steady()
    for replica in REPLICAS:
        deciding.cache.absorb(replica, "i", Collect(QUEUE), Collected(Status(), rows=(Row(entry(-5)),)))
    deciding.begin(DequeueCommand(2))
    assert deciding.collect_at("r1").fence == at(-5)


def refused() -> Deciding:
    """An owner whose accept was refused, and which has taken a new term."""
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    deciding.answer_all(front(ONE, fence=ONE.t), "r1", "r2")
    deciding.answer("r1", REFUSED)
    assert deciding.counted["terms lost"] == 1
    deciding.sleep(BACKOFF_S_MAX)
    collect = deciding.collect_at("r1")
    assert collect.ballot is not None
    assert term_of(collect.ballot) > REFUSED.status.promised
    return deciding


def test_a_refused_accept_loses_the_term_and_the_batch_is_decided_under_a_new_one() -> None:
    """The old accept may be at a replica still: only a decision without it, under a higher ballot, puts it out."""
    deciding = refused()
    deciding.answer_all(front(ONE, fence=ONE.t), "r1", "r3")
    assert deciding.accept_at("r1").summary == NOTHING
    deciding.accept("r1", "r3")
    assert deciding.told == []
    assert deciding.accept_at("r1").summary.horizon == ONE.t
    deciding.accept("r1", "r3")
    assert deciding.results == [(ONE,)]


def test_after_a_lost_term_it_leaves_the_other_owner_time_and_more_with_each_loss() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    for delay_s in (2 * BACKOFF_S_FIRST, 3 * BACKOFF_S_FIRST):
        deciding.answer("r1", Collected(Status(), refused=True))
        before = len(deciding.sends)
        deciding.sleep(0.99 * delay_s)
        assert len(deciding.sends) == before
        deciding.sleep(0.02 * delay_s)
        assert len(deciding.sends) == before + len(REPLICAS)


def test_who_has_little_time_left_waits_for_no_more_than_a_share_of_it() -> None:
    deciding = Deciding()
    (asked,) = deciding.begin(DequeueCommand(1))
    asked.task.deadline_s = left_s = BACKOFF_S_FIRST / 2
    deciding.answer("r1", Collected(Status(), refused=True))
    before = len(deciding.sends)
    deciding.sleep(BACKOFF_SHARE_MAX * left_s)
    assert len(deciding.sends) == before + len(REPLICAS)


def test_a_lost_accept_that_is_found_decided_is_told_and_not_repeated() -> None:
    deciding = refused()
    mine = next(send.request for send in deciding.sends if isinstance(send.request, Accept))
    status = Status(accepted=mine.ballot, committed=mine.ballot, horizon=ONE.t)
    deciding.answer_all(Collected(status, summary=mine.summary), "r1", "r2")
    assert deciding.results == [(ONE,)]
    assert deciding.is_over
    assert deciding.counted["lost accepts found decided"] == 1


def test_a_lost_accept_that_nobody_remembers_any_more_has_an_unknown_outcome() -> None:
    deciding = refused()
    far = ballot(70_000_000)
    summary = Summary(at(-15), terms=(far,), terms_floor=far)
    deciding.answer_all(shown(decided=far, horizon=at(-15), summary=summary), "r1", "r2")
    assert deciding.results == [("unknown", False)]


EARLIER = ballot(-5)
TAKEN = Summary(ONE.t, terms=(EARLIER,))
"""ONE was taken by another front end."""


def test_an_untouched_queue_is_empty_by_one_look() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1), PeekCommand())
    deciding.answer_all(shown(), "r1", "r2")
    assert deciding.results == [(), ()]


@pytest.mark.parametrize(
    "is_known", [False, True], ids=["first seen in the look", "known, but not as decided"]
)
def test_empty_is_said_only_after_a_look_that_began_when_the_summary_was_known_to_be_decided(
    is_known: bool,
) -> None:
    deciding = Deciding()
    if is_known:
        accepted = Collected(Status(accepted=EARLIER), summary=TAKEN)
        deciding.cache.absorb("r1", "i", Collect(QUEUE), accepted)
    deciding.begin(DequeueCommand(1))
    empty = shown(decided=EARLIER, horizon=ONE.t, summary=TAKEN)
    deciding.answer_all(empty, "r1", "r2")
    assert deciding.told == []
    deciding.answer_all(replace(empty, summary=None), "r1", "r3")
    assert deciding.results == [()]


def test_a_summary_that_may_not_be_decided_is_written_back_before_a_queue_is_called_empty() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    deciding.answer("r1", Collected(Status(accepted=EARLIER), summary=TAKEN))
    deciding.answer("r2", shown())
    assert deciding.accept_at("r3").summary == TAKEN
    deciding.accept("r2", "r3")
    assert deciding.told == []
    deciding.answer_all(Collected(Status(), summary=None), "r2", "r3")
    assert deciding.results == [()]


def test_a_queue_whose_logs_are_shown_in_part_is_not_empty() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    deciding.answer_all(shown(upto=at(-5)), "r1", "r2")
    assert deciding.told == []
    deciding.answer_all(shown(), "r1", "r2")
    assert deciding.results == [()]


def test_nothing_is_granted_to_a_caller_that_has_given_up() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    deciding.proposer.asked.clear()
    deciding.answer_all(front(ONE, fence=ONE.t), "r1", "r2")
    assert deciding.is_over
    assert deciding.told == []
    assert not any(isinstance(send.request, Accept) for send in deciding.sends)


def test_for_a_caller_that_has_given_up_nobody_looks_again() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    deciding.proposer.asked.clear()
    deciding.answer_all(shown(decided=EARLIER, horizon=ONE.t, summary=TAKEN), "r1", "r2")
    assert deciding.is_over
    assert len(deciding.sends) == len(REPLICAS)


def test_nothing_is_proposed_for_a_caller_that_gives_up_while_payloads_are_fetched() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    deciding.answer_all(front(Entry(ONE.id, ONE.t), fence=ONE.t), "r1", "r2")
    assert deciding.collect_at("r3").wanted == (ONE.t,)
    deciding.proposer.asked.clear()
    deciding.answer("r3", shown(Row(ONE)))
    assert deciding.is_over
    assert not any(isinstance(send.request, Accept) for send in deciding.sends)


def test_a_share_of_leases_holds_for_payloads_that_were_not_at_hand_when_the_plan_was_made() -> None:
    deciding = Deciding()
    deciding.begin(AcquireCommand(10, 1_000_000, holder="one"))
    heavy = [entry(us, f'"{"x" * 100_000}"') for us in range(-20, -10)]
    bare = [Entry(each.id, each.t) for each in heavy]
    deciding.answer_all(front(*bare, fence=heavy[-1].t), "r1", "r2")
    assert deciding.collect_at("r3").wanted == tuple(each.t for each in heavy)
    deciding.answer("r3", shown(*map(Row, heavy)))
    for replica in ("r1", "r2"):
        assert deciding.collect_at(replica).wanted == (), "planned anew, on a look of its own"
        deciding.answer(replica, front(*bare, fence=heavy[-1].t))
    leased = deciding.accept_at("r1").summary.leases
    assert [record.entry for record in leased] == heavy[:5], "half of a mebibyte"


def test_what_is_proposed_says_what_its_caller_would_be_told() -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    (asked,) = deciding.proposer.asked
    deciding.answer_all(front(ONE, fence=ONE.t), "r1", "r2")
    assert asked.is_proposed
    assert asked.would_be == (ONE,)


@pytest.mark.parametrize(
    ("is_proposed", "outcome"), [(False, ("unavailable", True)), (True, ("unknown", False))]
)
def test_without_a_quorum_all_callers_fail_and_only_what_was_proposed_is_unknown(
    is_proposed: bool, outcome: tuple[str, bool]
) -> None:
    deciding = Deciding()
    deciding.begin(DequeueCommand(1))
    if is_proposed:
        deciding.answer_all(front(ONE, fence=ONE.t), "r1", "r2")
        deciding.answer("r1", Unanswered("connection reset"))
    deciding.sleep(DEADLINE_S)
    assert deciding.results == [outcome]
    assert deciding.is_over


def test_a_cell_is_fenced_at_the_stamp_that_its_new_value_gets() -> None:
    deciding = Deciding(CELL)
    deciding.begin(CompareAndSetCommand(None, Value("1")), CompareAndSetCommand(None, Value("2")))
    collect = deciding.collect_at("r1")
    assert collect.fence > ZERO
    deciding.answer_all(shown(fence=collect.fence), "r1", "r2")
    accept = deciding.accept_at("r1")
    assert (accept.summary.horizon, accept.summary.value) == (collect.fence, "1")
    assert accept.then is None
    deciding.accept("r1", "r2")
    assert deciding.results == [True, False]


def test_a_cell_that_holds_something_above_the_stamp_is_collected_again() -> None:
    """What was written there after the fence was chosen must be seen before the value is compared."""
    deciding = Deciding(CELL)
    deciding.begin(CompareAndSetCommand(None, Value("1")))
    first = deciding.collect_at("r1").fence
    later = entry(1_000_000, "9")
    deciding.answer("r1", shown(*complete(later), fence=first))
    deciding.answer("r2", shown(fence=first))
    assert deciding.collect_at("r1").fence > later.t > first
    assert deciding.cache.ballot == NO_BALLOT


@pytest.mark.parametrize(
    "is_cut_off", [False, True], ids=["decided above the stamp", "cut off below the stamp"]
)
def test_a_cell_is_not_decided_by_a_view_that_does_not_end_at_the_stamp(is_cut_off: bool) -> None:
    deciding = Deciding(CELL)
    deciding.begin(CompareAndSetCommand(None, Value("1")))
    first = deciding.collect_at("r1").fence
    above = at(1_000_000)
    decided = shown(decided=EARLIER, horizon=above, summary=Summary(above, Value("9")), fence=first)
    deciding.answer_all(shown(fence=first, upto=ONE.t) if is_cut_off else decided, "r1", "r2")
    assert deciding.collect_at("r1").fence > (first if is_cut_off else above)
    assert deciding.told == []


def test_an_idle_proposer_that_is_forgotten_is_freed_at_once_with_the_values_that_it_decided_on() -> None:
    deciding = steady()
    forgotten = weakref.ref(deciding.proposer)
    with collector_off():
        del deciding.proposer
        assert forgotten() is None


def carried(*, fence: Timestamp) -> Collected:
    """Of a replica that holds a summary which has passed ONE, with its fence there."""
    status = Status(fence=fence, accepted=ballot(-30), committed=ballot(-30), horizon=ONE.t)
    return Collected(status, summary=Summary(horizon=ONE.t))


def test_what_is_carried_is_accepted_once_a_quorum_takes_nothing_more_that_the_summary_has_passed() -> None:
    """A new member has no fence of before: it would store what nobody sees (seed 4380104867 of `queues`)."""
    deciding = Deciding()
    deciding.begin(ConfirmCommand(carries=True))
    deciding.answer_all(carried(fence=ZERO), "r1", "r2")
    assert deciding.collect_at("r1").fence == ONE.t
    deciding.answer_all(carried(fence=ONE.t), "r1", "r2")
    assert deciding.accept_at("r3").summary == Summary(horizon=ONE.t)
    deciding.accept("r1", "r2")
    assert deciding.results == [None]


@pytest.mark.parametrize("is_set_right", [True, False])
def test_a_term_that_all_refuse_for_its_time_is_followed_by_another_only_where_time_is_known_better(
    is_set_right: bool,
) -> None:
    """All clocks were a minute ahead. The front end hears that they are right now, or nothing: another stamp would be above the first one."""
    deciding = Deciding(CELL, ClockSettings())
    deciding.show_clocks(60.0)
    deciding.begin(CompareAndSetCommand(None, Value("1")))
    before = deciding.collect_at("r1").ballot
    assert before is not None
    if is_set_right:
        deciding.show_clocks(0.0)
    deciding.answer_all(Refused("clock-ahead", "a minute ahead", 60_000_000), *REPLICAS)
    if is_set_right:
        deciding.sleep(BACKOFF_S_MAX)
        assert term_of(deciding.collect_at("r1").ballot or before) < term_of(before)
        assert deciding.results == []
    else:
        assert deciding.results == [("refused", True)]
        assert not deciding.waiting
