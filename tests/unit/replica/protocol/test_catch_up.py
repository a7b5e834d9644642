"""Catching up: what another replica holds may be installed here only where no decided view can lack it, and none is passed over."""

import pytest

from quorate.adts.log import NOTHING, Entry, Summary, Value
from quorate.api_specs.limits import Capacity, Limits
from quorate.api_specs.messages import (
    Accept,
    Append,
    Change,
    Changed,
    Changes,
    Collect,
    Collected,
    Commit,
    Reply,
    Request,
    Row,
    Status,
)
from quorate.replica.protocol import catch_up
from quorate.replica.protocol.capacity import with_room
from quorate.replica.protocol.catch_up import (
    OVERDUE_PASSES,
    Lack,
    Progress,
    install,
    is_timely,
    least,
    missing,
    resumed,
)
from quorate.replica.protocol.log import Effect, Forget, Log, MarkComplete, ObjectState, PutRows, PutState
from quorate.replica.protocol.room import handle_within
from quorate.timestamps.ballot import NO_BALLOT, Ballot
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import ZERO, make
from tests.unit.replica.protocol.test_acceptor import CELL, NAME, NOW_US, Replica, at, ballot, entry


class Behind(Replica):
    """A replica that catches up. `handled` are the requests that it does to itself, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.handled: list[Request] = []
        self.capacity = Capacity()

    def handle(self, request: Request) -> Reply:
        self.handled.append(request)
        reply, effects = handle_within(
            self.capacity, request, self.store, NOW_US, self.bounds, keeps_events=False
        )
        self.store.apply(*effects)
        return reply

    def room(self, request: Append) -> tuple[Entry, ...]:
        return with_room(request, self.store, self.capacity)

    def apply(self, name: str, effects: list[Effect]) -> None:
        for effect in effects:
            self.store.apply(effect)

    def install(
        self, lack: Lack, *rows: Row, status: Status | None = None, summary: Summary | None = None
    ) -> None:
        told = Collected(status or Status(), rows=rows, summary=summary)
        install(lack, told, self.store, self.handle, self.room, self.apply)

    def marked(self) -> dict[str, bool]:
        """The entries here, and which of them are complete."""
        return {row.entry.t: row.complete for row in self.store.rows(NAME, ZERO, 100)}


def lack(*times: int, is_behind: bool = False) -> Lack:
    return Lack(NAME, tuple(at(us) for us in times), is_behind)


def test_above_the_fence_an_entry_is_appended_as_a_repeat_would_be() -> None:
    replica = Behind()
    replica.ask(Collect(NAME, fence=at(5)))
    replica.install(lack(7), Row(entry(7)))
    assert replica.handled == [Append(NAME, (entry(7),), "repair")]
    assert replica.marked() == {at(7): False}


def test_at_or_below_the_fence_only_what_is_complete_is_installed() -> None:
    """A decided view may have been read without the other one."""
    replica = Behind()
    replica.ask(Collect(NAME, fence=at(5)))
    replica.install(lack(3, 4, 5), Row(entry(3)), Row(entry(4), complete=True), Row(entry(5)))
    assert replica.marked() == {at(4): True}
    asked = [each for each in replica.handled if isinstance(each, Append)]
    assert asked == [Append(NAME, (entry(4),), "repair")], "which asks for room, and stores nothing"


def test_at_or_below_the_committed_horizon_nothing_is_installed() -> None:
    replica = Behind()
    replica.ask(Commit(NAME, ballot(1), at(5), Summary(at(5))))
    replica.install(lack(4, 5, 6), *(Row(entry(us), complete=True) for us in (4, 5, 6)))
    assert replica.marked() == {at(6): True}


@pytest.mark.parametrize(("is_behind", "accepted"), [(True, 3), (False, 3), (True, 4)])
def test_a_decision_is_committed_if_it_is_the_summary_that_was_told(is_behind: bool, accepted: int) -> None:
    replica = Behind()
    status = Status(accepted=ballot(accepted), committed=ballot(3), horizon=at(5))
    summary = Summary(at(5))
    replica.install(
        lack(4, is_behind=is_behind), Row(entry(4), complete=True), status=status, summary=summary
    )
    assert replica.handled == (
        [Commit(NAME, ballot(3), at(5), summary)] if is_behind and accepted == 3 else []
    )
    assert replica.marked() == {}, "what is history there is not installed, whether its decision came or not"


def test_what_is_here_already_is_marked_complete_and_not_put_twice() -> None:
    replica = Behind()
    replica.append(entry(3))
    replica.ask(Collect(NAME, fence=at(5)))
    replica.install(lack(3), Row(entry(3), complete=True))
    assert replica.marked() == {at(3): True}


def test_an_object_that_is_not_known_here_goes_by_the_floor_of_the_store() -> None:
    replica = Behind()
    replica.store.apply(Forget(CELL, at(5)))
    status = Status(floor=at(1))
    replica.install(lack(3, 4), Row(entry(3)), Row(entry(4), complete=True), status=status)
    state = replica.store.state(NAME)
    assert state == ObjectState(NAME, fence=at(5), promised=at(5), floor=at(1)), "its life began there"
    assert replica.marked() == {at(4): True}


@pytest.mark.parametrize("name", [CELL, NAME])
def test_what_is_history_here_is_not_installed_and_the_floor_keeps_nothing_out(name: str) -> None:
    assert least(ObjectState(name, collected=at(1), horizon=at(2), floor=at(3))) == at(2)
    assert least(ObjectState(name, collected=at(4), horizon=at(2))) == at(4)


@pytest.mark.parametrize("name", [CELL, NAME])
@pytest.mark.parametrize("is_asked_before", [False, True])
def test_a_decision_below_the_floor_is_taken_from_who_holds_it(name: str, *, is_asked_before: bool) -> None:
    replica = Behind()
    replica.store.apply(Forget(CELL, at(9)))
    if is_asked_before:
        replica.ask(Collect(name, fence=at(10), ballot=ballot(10)))
    status = Status(accepted=ballot(3), committed=ballot(3), horizon=at(5), floor=at(2))
    told = Collected(status, summary=Summary(at(5), value=Value("1")))
    install(Lack(name, (), is_behind=True), told, replica.store, replica.handle, replica.room, replica.apply)
    state = replica.store.state(name)
    assert state is not None
    assert (state.committed, state.horizon, state.floor) == (ballot(3), at(5), at(2))
    promised = (at(10), at(10)) if is_asked_before else (at(9), at(9))
    assert (state.fence, state.promised) == promised, "a promise never falls"


def test_a_deletion_below_the_floor_is_left_alone_and_a_queues_state_without_a_value_is_none() -> None:
    status = Status(accepted=ballot(3), committed=ballot(3), horizon=at(5), floor=at(2))
    for name, committed in ((CELL, NO_BALLOT), (NAME, ballot(3))):
        replica = Behind()
        replica.store.apply(Forget(CELL, at(9)))
        told = Collected(status, summary=Summary(at(5)))
        install(
            Lack(name, (), is_behind=True), told, replica.store, replica.handle, replica.room, replica.apply
        )
        assert (replica.store.state(name) or ObjectState(name)).committed == committed


def test_what_there_is_no_room_for_is_not_let_in() -> None:
    replica = Behind()
    replica.capacity = Capacity(objects_max=0)
    replica.store.apply(Forget(CELL, at(9)))
    status = Status(accepted=ballot(3), committed=ballot(3), horizon=at(5), floor=at(2))
    replica.install(lack(is_behind=True), status=status, summary=Summary(at(5), value=Value("1")))
    assert replica.store.state(NAME) is None


def test_rows_below_the_floor_make_no_object_where_there_is_no_room() -> None:
    replica = Behind()
    replica.capacity = Capacity(objects_max=0)
    replica.store.apply(Forget(CELL, at(9)))
    replica.install(lack(3), Row(entry(3), complete=True))
    assert replica.store.state(NAME) is None
    assert replica.marked() == {}
    replica.capacity = Capacity()
    replica.install(lack(3), Row(entry(3), complete=True))
    assert replica.marked() == {at(3): True}


def test_a_full_log_takes_so_many_rows_below_the_fence_as_it_has_room_for_and_the_others_later() -> None:
    """All of a message were installed where one had room: a log of at most 50 entries had 139."""
    replica, times = Behind(), (2, 4, 5, 6, 7)
    replica.append(entry(1), entry(3))
    replica.ask(Collect(NAME, fence=at(9)))
    replica.capacity = Capacity(log_entries_max=3)
    rows = [Row(entry(us), complete=True) for us in times]
    for _ in range(2):
        replica.install(lack(*times), *rows, Row(entry(1), complete=True), Row(entry(10)))
        assert replica.marked() == {at(1): True, at(2): True, at(3): False, at(4): True}, "a quarter beyond"
    replica.capacity = Capacity()
    replica.install(lack(*times), *rows)
    assert replica.marked().keys() == {at(us) for us in (1, 3, *times)}


def test_what_is_refused_for_another_reason_than_room_is_not_installed_below_the_fence_either() -> None:
    """As an object of a type that this cluster does not have."""
    replica, name = Behind(), "tickets/t"
    replica.store.apply(Forget(CELL, at(9)))
    told = Collected(Status(), rows=(Row(entry(3), complete=True),), summary=None)
    install(Lack(name, (at(3),)), told, replica.store, replica.handle, replica.room, replica.apply)
    assert replica.handled == [Append(name, (entry(3),), "repair"), Commit(name, complete=(at(3),))]
    assert replica.store.state(name) is None
    assert replica.store.length(name) == 0


def test_who_has_forgotten_the_object_since_lowers_no_floor() -> None:
    replica = Behind()
    replica.store.apply(Forget(CELL, at(9)))
    replica.install(lack(is_behind=True), status=Status(floor=at(8)), summary=NOTHING)
    assert replica.handled == []
    assert replica.store.state(NAME) is None


def test_an_answer_counts_for_as_long_as_any_other_may_by_the_clock_that_says_more() -> None:
    limits = Limits(deadline_s_max=10.0)
    asked = Now(100.0, 100_000_000)
    assert is_timely(asked, Now(110.0, 110_000_000), limits)
    assert not is_timely(asked, Now(110.1, 100_000_000), limits)
    assert not is_timely(asked, Now(100.0, 110_100_000), limits), "its machine was suspended"


def test_missing_is_what_a_view_may_need_and_is_not_here_newest_first() -> None:
    replica = Behind()
    replica.append(entry(3))
    replica.ask(Commit(NAME, ballot(1), at(2), Summary(at(2))))
    assert missing(NAME, [at(us) for us in (1, 2, 3, 4, 5)], replica.store) == (at(5), at(4))


def test_a_summary_is_sent_only_where_another_one_was_accepted_here() -> None:
    replica = Behind()
    assert lack(4).request(replica.store, LIMIT) == Collect(NAME, wanted=(at(4),))
    replica.ask(Accept(NAME, ballot(3), Summary(at(1))))
    assert lack(4).request(replica.store, LIMIT).known == ballot(3)


def test_no_more_is_asked_for_at_once_than_a_replica_answers_and_the_newest_first() -> None:
    asked = lack(9, 8, 7, 6, 5, 4).request(Behind().store, LIMIT)
    assert asked.wanted == tuple(at(us) for us in (9, 8, 7, 6, 5))


LIMIT = 5


def changed(latest: int, *times: int, committed: Ballot = NO_BALLOT, **more: int) -> Changed:
    changes = (Change(NAME, committed, tuple(at(us) for us in times)),)
    return Changed(latest, changes, more.get("place", 0), more.get("below", 0), more=bool(more))


def heard(progress: Progress, told: Changed, replica: Replica) -> list[Lack]:
    """A pass's next question, and this answer."""
    return progress.hear(progress.request(LIMIT), told, replica.store)


def begun(since: int = 0, latest: int = 9) -> tuple[Progress, Replica]:
    """A pass that has heard how far the other one has come, and begins with that."""
    progress, replica = resumed(since), Replica()
    progress.begin()
    heard(progress, Changed(latest), replica)
    progress.begin()
    return progress, replica


def test_nobody_is_level_by_a_pass_that_began_before_the_other_one_told_how_far_it_has_come() -> None:
    """A new replica would count as level in its first second, and get a vote though it has nothing."""
    progress, replica = resumed(0), Replica()
    progress.begin()
    heard(progress, Changed(9), replica)
    assert not progress.is_level
    progress.begin()
    heard(progress, Changed(12), replica)
    assert progress.is_level
    heard(progress, Changed(3), replica)
    assert not progress.is_level, "its store is another one"
    progress.begin()
    heard(progress, Changed(3), replica)
    assert not progress.is_level


def test_who_missed_nothing_while_it_was_stopped_is_level_at_once() -> None:
    progress, replica = resumed(9), Replica()
    progress.begin()
    heard(progress, Changed(9), replica)
    assert progress.is_level


def test_a_pass_looks_up_to_what_was_the_latest_change_when_the_one_before_ended() -> None:
    """What all replicas are just being sent is no loss."""
    progress, replica = begun(since=4)
    assert (progress.since, progress.lag) == (4, 5)
    assert progress.request(LIMIT) == Changes(4, 9, limit=LIMIT)
    assert heard(progress, changed(20, 1), replica) == [lack(1)]
    assert (progress.since, progress.lag) == (9, 11)


def test_a_long_answer_is_gone_on_with_where_it_ended_and_nothing_is_passed_before_its_end() -> None:
    progress, replica = begun()
    assert heard(progress, changed(9, 2, place=7, below=3), replica) == [lack(2)]
    assert progress.request(LIMIT) == Changes(0, 9, 7, 3, LIMIT)
    assert progress.since == 0
    heard(progress, changed(9, 1), replica)
    assert progress.since == 9


def test_an_answer_to_an_earlier_question_says_nothing() -> None:
    progress, replica = begun()
    earlier = progress.request(LIMIT)
    heard(progress, changed(9, 2, place=7, below=3), replica)
    assert progress.hear(earlier, changed(9, 1), replica.store) == []
    assert progress.since == 0


def test_a_store_that_was_replaced_is_looked_at_from_its_beginning() -> None:
    progress, replica = begun(since=4)
    assert heard(progress, changed(3, 1), replica) == []
    assert (progress.since, progress.latest) == (0, 0)
    assert progress.request(LIMIT) == Changes(0, 0, limit=LIMIT)


def test_a_decision_that_was_not_behind_at_the_look_before_is_not_fetched() -> None:
    """One that is under way reaches all replicas by itself."""
    progress, replica = begun()
    assert heard(progress, changed(12, committed=ballot(3)), replica) == []


def test_a_decision_that_is_behind_is_asked_for_once_in_a_pass() -> None:
    progress, replica = begun()
    heard(progress, changed(12, committed=ballot(3)), replica)
    progress.begin()
    assert heard(progress, changed(12, committed=ballot(3)), replica) == [lack(is_behind=True)]


def test_a_decision_that_is_behind_is_asked_for_in_every_pass_until_it_is_here() -> None:
    """Its object may never change again."""
    progress, replica = begun()
    heard(progress, changed(12, committed=ballot(3)), replica)
    for _ in range(2):
        progress.begin()
        assert heard(progress, Changed(12), replica) == [lack(is_behind=True)]
        assert progress.safe_since == 0
    replica.ask(Commit(NAME, ballot(3), summary=NOTHING))
    progress.begin()
    assert heard(progress, Changed(12), replica) == []
    assert progress.safe_since == 12


def test_a_decision_that_the_other_one_has_forgotten_is_asked_for_no_longer() -> None:
    """Of a deleted key, which was forgotten here as well: nobody will ever commit it here."""
    progress, replica = begun()
    heard(progress, changed(12, committed=ballot(3)), replica)
    progress.begin()
    (asked,) = heard(progress, Changed(12), replica)
    progress.settle(asked, Collected(Status(committed=ballot(3))), replica.store)
    progress.begin()
    assert heard(progress, Changed(12), replica) == [asked], "it has it still"
    progress.settle(asked, Collected(Status()), replica.store)
    progress.begin()
    assert heard(progress, Changed(12), replica) == []
    assert progress.safe_since == 12


@pytest.mark.parametrize(("name", "summary"), [(CELL, Summary(at(5))), (CELL, NOTHING), (NAME, NOTHING)])
def test_what_came_to_nothing_below_the_floor_is_asked_for_once(name: str, summary: Summary) -> None:
    """It stays at the other one until every replica has held it for a window: were it asked for until it is here, what is missed would find no place."""
    progress, replica = begun()
    replica.store.apply(Forget("dictionary/d/other", at(9)))
    told = Changed(12, (Change(name, ballot(3), ()),))
    heard(progress, told, replica)
    progress.begin()
    (asked,) = heard(progress, Changed(12), replica)
    assert asked == Lack(name, (), is_behind=True)
    status = Status(accepted=ballot(3), committed=ballot(3), horizon=summary.horizon)
    progress.settle(asked, Collected(status, summary=summary), replica.store)
    progress.begin()
    assert heard(progress, Changed(12), replica) == []
    assert progress.safe_since == 12


def test_what_is_history_at_the_other_one_is_not_waited_for() -> None:
    progress, replica = begun()
    progress.wait_for(lack(3, 6))
    told = Collected(Status(horizon=at(5)), rows=(Row(entry(3)), Row(entry(6))))
    progress.settle(lack(3, 6), told, replica.store)
    progress.begin()
    assert heard(progress, Changed(9), replica) == [lack(6)]


def test_what_waits_is_asked_for_again_until_it_is_here_or_the_other_one_has_it_no_more() -> None:
    progress, replica = begun()
    progress.wait_for(lack(3, 4))
    assert not progress.is_level
    progress.begin()
    assert heard(progress, Changed(9), replica) == [lack(4, 3)]
    progress.wait_for(lack(3, 4))
    replica.append(entry(4))
    told = Collected(Status(), rows=(Row(entry(4)),))
    assert progress.settle(lack(3, 4), told, replica.store) == lack(3)
    assert not progress.is_level
    assert progress.settle(lack(3), Collected(Status()), replica.store) is None
    assert progress.is_level


def test_what_came_here_by_another_way_is_waited_for_no_longer() -> None:
    progress, replica = begun()
    progress.wait_for(lack(3))
    replica.append(entry(3))
    progress.begin()
    assert heard(progress, Changed(9), replica) == []
    assert progress.is_level


@pytest.mark.parametrize("is_committed", [True, False])
def test_what_a_decision_here_has_taken_up_is_not_waited_for(is_committed: bool) -> None:
    """Of a queue it is in no log, and its horizon stands below it: what a read repair had put in force was asked for and repaired for ever."""
    progress, replica = begun()
    replica.ask(Collect(NAME, fence=at(5)))
    progress.wait_for(lack(3, 4))
    decided = ballot(6)
    taken_up = ObjectState(
        NAME,
        fence=at(5),
        accepted=decided,
        committed=decided if is_committed else NO_BALLOT,
        summary=Summary(adopted=(entry(3),)),
    )
    replica.store.apply(PutState(taken_up))
    progress.begin()
    assert heard(progress, Changed(9), replica) == [lack(4) if is_committed else lack(4, 3)]


def test_what_was_told_and_may_not_be_installed_is_waited_for() -> None:
    progress, replica = begun()
    heard(progress, Changed(9), replica)
    assert progress.safe_since == 9
    replica.ask(Collect(NAME, fence=at(5)))
    progress.wait_for(lack(3))
    told = Collected(Status(), rows=(Row(entry(3)),))
    assert progress.settle(lack(3), told, replica.store) is None
    assert not progress.is_level
    assert progress.safe_since == 0


@pytest.mark.parametrize(("name", "waits"), [(CELL, False), (NAME, True)])
def test_what_a_complete_entry_overtakes_in_a_cell_is_not_waited_for(name: str, *, waits: bool) -> None:
    """With `collect = false` it becomes history nowhere."""
    progress, replica = begun()
    for effect in (PutRows(name, (entry(5), entry(7), entry(9))), MarkComplete(name, (at(7),))):
        replica.store.apply(effect)
    replica.ask(Collect(name, fence=at(9)))
    missed = Lack(name, (at(8), at(6)))
    progress.wait_for(missed)
    told = Collected(Status(), rows=(Row(entry(6)), Row(entry(8))))
    assert progress.settle(missed, told, replica.store) is None
    progress.begin()
    assert heard(progress, Changed(9), replica) == [missed if waits else Lack(name, (at(8),))]


def test_what_waits_for_its_mark_is_overdue_after_a_while_and_then_less_and_less_often() -> None:
    progress, replica = begun()
    replica.ask(Collect(NAME, fence=at(5)))
    (lacking,) = heard(progress, changed(9, 3), replica)
    told = Collected(Status(), rows=(Row(entry(3)),))
    overdue: list[int] = []
    for number in range(100):
        progress.wait_for(lacking)
        progress.settle(lacking, told, replica.store)
        if progress.overdue([(lacking, told)], ZERO):
            overdue.append(number)
        progress.begin()
    assert overdue == [4, 8, 16, 32, 64, 96]


def test_what_was_left_long_ago_is_overdue_at_once_and_then_as_seldom_as_others() -> None:
    """27,000 entries left at one replica alone were repaired after four passes of minutes each."""
    progress, replica = begun()
    replica.ask(Collect(NAME, fence=at(5)))
    (lacking,) = heard(progress, changed(9, 4, 3), replica)
    told = Collected(Status(), rows=(Row(entry(3)), Row(entry(4))))
    progress.wait_for(lacking)
    assert progress.overdue([(lacking, told)], left_before=at(4)) == {NAME: [entry(3)]}
    assert progress.overdue([(lacking, told)], left_before=at(4)) == {}


def test_who_stamped_before_twice_the_longest_deadline_has_ended() -> None:
    limits = Limits(deadline_s_max=30.0)
    assert catch_up.left_before(100_000_000, limits) == make(40_000_000, 0, "0")
    assert catch_up.left_before(1, limits) == make(0, 0, "0")


def test_what_waits_of_many_objects_is_asked_for_again_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever left entries of 27,000 objects at one replica alone had each pass ask for 10,000 of them again: what was stored since waited for minutes."""
    monkeypatch.setattr(catch_up, "AGAIN_OBJECTS_MAX", 4)
    progress, replica = begun()
    names = [f"queue/{number}" for number in range(12)]
    for name in names:
        progress.wait_for(Lack(name, (at(3),)))
    asked: list[list[str]] = []
    for _ in range(6):
        progress.begin()
        asked.append([each.object for each in heard(progress, Changed(9), replica)])
    assert [sorted(each) for each in asked] == [sorted(names[at : at + 4]) for at in (0, 4, 8, 0, 4, 8)]


def test_what_waits_of_few_objects_is_asked_for_in_every_pass_however_long_it_has_waited() -> None:
    """It may be marked at any time. Asked for as seldom as repaired, it was not there when all had settled (seed 6900001490)."""
    progress, replica = begun()
    progress.wait_for(lack(3))
    told = Collected(Status(), rows=(Row(entry(3)),))
    for _ in range(50):
        progress.begin()
        assert heard(progress, Changed(9), replica) == [lack(3)]
        progress.overdue([(lack(3), told)], ZERO)


@pytest.mark.parametrize("per_object", [1, 3])
def test_of_more_than_are_remembered_each_is_overdue_in_its_turn(
    per_object: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stored 10,000 entries at one replica that never become complete kept all others from being repaired."""
    monkeypatch.setattr(catch_up, "WAITING_MAX", 6)
    progress, replica = begun()
    names = [f"queue/{number}" for number in range(24 // per_object)]
    times = tuple(map(at, range(1, 1 + per_object)))
    told = Changed(9, tuple(Change(name, NO_BALLOT, times) for name in names))
    rows = Collected(Status(), rows=tuple(Row(Entry(str(t), t, Value("1"))) for t in times))
    overdue: list[tuple[int, str]] = []
    for number in range(60):
        for each in progress.hear(progress.request(LIMIT), told, replica.store):
            progress.wait_for(each)
            progress.settle(each, rows, replica.store)
            overdue += [(number, name) for name in progress.overdue([(each, rows)], ZERO)]
        assert len(progress._waiting.held) <= 6
        progress.begin()
    first = [next(number for number, each in overdue if each == name) for name in names]
    assert max(first) <= 4 * (OVERDUE_PASSES + 3), "four times six are 24"
    last = [max(number for number, each in overdue if each == name) for name in names]
    assert min(last) > 30, "and again"


def test_of_more_decisions_than_are_remembered_each_is_asked_for_in_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Some cannot be told: the other replica has accepted another one since, which may not be decided for long. They kept the first places for good
    (small seed 6000200058)."""
    monkeypatch.setattr(catch_up, "WAITING_MAX", 2)
    progress, replica = begun()
    names = [f"queue/{number}" for number in range(7)]
    told = Changed(9, tuple(Change(name, ballot(1), ()) for name in names))
    untold = Collected(Status(accepted=ballot(2), committed=ballot(1)))
    asked: list[tuple[int, str]] = []
    for number in range(60):
        for each in progress.hear(progress.request(LIMIT), told, replica.store):
            progress.wait_for(each)
            assert progress.settle(each, untold, replica.store) is None
            asked.append((number, each.object))
        assert len(progress._behind.held) <= 2
        progress.begin()
    first = [next(number for number, each in asked if each == name) for name in names]
    assert max(first) <= 8, "four times two are eight, and two passes each"
    assert min(max(number for number, each in asked if each == name) for name in names) > 45, "and again"


def test_what_made_room_for_others_is_found_again_where_it_was_found_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catch_up, "WAITING_MAX", 1)
    progress, replica = begun()
    told = Collected(Status(), rows=(Row(entry(3)),))
    for _ in range(OVERDUE_PASSES + 1):
        for each in heard(progress, changed(9, 3) if progress.since == 0 else Changed(9), replica):
            progress.wait_for(each)
            progress.overdue([(each, told)], ZERO)
        progress.begin()
    assert progress.since == 9
    progress.wait_for(Lack("queue/other", (at(4),)))
    progress.begin()
    assert progress.request(LIMIT).since == 0, "the changes that told of it are asked for again"


def test_what_no_answer_has_room_for_waits_since_it_was_first_missed() -> None:
    """Values that never become complete may fill each answer: what is behind them is asked for in the same pass, and is overdue as they are."""
    progress, replica = begun()
    replica.ask(Collect(NAME, fence=at(5)))
    (lacking,) = heard(progress, changed(9, 3, 4), replica)
    progress.wait_for(lacking)
    rest = lack(3)
    for _ in range(OVERDUE_PASSES):
        progress.begin()
        assert progress.settle(lacking, Collected(Status(), rows=(Row(entry(4)),)), replica.store) == rest
        assert progress.settle(rest, Collected(Status(), rows=(Row(entry(3)),)), replica.store) is None
    told = [(each, Collected(Status(), rows=(Row(entry(us)),))) for each, us in ((lacking, 4), (rest, 3))]
    assert progress.overdue(told, ZERO) == {NAME: [entry(4), entry(3)]}
    assert progress.overdue(told, ZERO) == {}, "each is given out once"


def test_what_is_marked_or_waits_no_more_is_not_overdue() -> None:
    progress, replica = begun()
    replica.ask(Collect(NAME, fence=at(5)))
    (lacking,) = heard(progress, changed(9, 3, 4), replica)
    progress.wait_for(lacking)
    for _ in range(OVERDUE_PASSES):
        progress.begin()
    replica.store.apply(PutRows(NAME, (entry(4),)))
    told = Collected(Status(), rows=(Row(entry(3), complete=True), Row(entry(4))))
    progress.settle(lacking, told, replica.store)
    assert progress.overdue([(lacking, told)], ZERO) == {}


def test_a_copy_goes_on_by_itself() -> None:
    progress, _ = begun()
    copy = progress.copy()
    copy.wait_for(lack(3))
    copy.since = 7
    assert (progress.is_level, progress.since) == (True, 0)
    assert (copy.is_level, copy.latest) == (False, progress.latest)


def looked(progress: Progress, told: Changed, log: Log) -> list[Lack]:
    """A pass whose only answer is this."""
    progress.begin()
    lacking = progress.hear(progress.request(5), told, log)
    for lack in lacking:
        progress.wait_for(lack)
    return lacking


@pytest.mark.parametrize("most", [3, 10_000])
def test_what_waits_has_a_bound_and_none_of_it_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Where more may not be installed yet than is remembered, the same changes are looked at again."""
    monkeypatch.setattr(catch_up, "WAITING_MAX", most)
    progress, replica = Progress(), Replica()
    entries = tuple(entry(number) for number in range(1, 6))
    told = Changed(9, (Change(NAME, arrived=tuple(each.t for each in entries)),))
    looked(progress, Changed(9), replica.store)
    for _ in range(3):
        lacking = looked(progress, told if progress.since == 0 else Changed(9), replica.store)
        assert {t for lack in lacking for t in lack.entries} == {each.t for each in entries}
    assert progress.since == (0 if most == 3 else 9)
    assert progress.lag == (9 if most == 3 else 0) + min(most, 5)
    assert progress.safe_since == 0
    replica.ask(Append(NAME, entries))
    assert looked(progress, told if progress.since == 0 else Changed(9), replica.store) == []
    assert (progress.since, progress.lag, progress.safe_since) == (9, 0, 9)


def test_decisions_that_are_behind_have_a_bound_and_none_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that came meanwhile make room for others, also of objects that never change again."""
    monkeypatch.setattr(catch_up, "WAITING_MAX", 3)
    progress, replica = Progress(), Replica()
    looked(progress, Changed(9), replica.store)
    left, arrived = {f"queue/{number}" for number in range(8)}, 9
    for _ in range(10):
        changes = tuple(Change(name, ballot(1)) for name in sorted(left)) if progress.since < 9 else ()
        for lack in looked(progress, Changed(arrived, changes), replica.store):
            assert lack.is_behind
            replica.ask(Commit(lack.object, ballot(1), summary=Summary()))
            left.discard(lack.object)
    assert left == set()
    assert (progress.since, progress.safe_since) == (9, 9)


def test_a_decision_that_was_seen_once_is_seen_again_after_a_restart() -> None:
    """It is fetched at the second look only, and the object may never change again."""
    progress, replica = Progress(), Replica()
    looked(progress, Changed(9), replica.store)
    looked(progress, Changed(12, (Change(NAME, ballot(1)),)), replica.store)
    assert (progress.since, progress.safe_since) == (9, 0)
    (lack,) = looked(progress, Changed(12), replica.store)
    assert lack == Lack(NAME, (), is_behind=True)
    replica.ask(Commit(NAME, ballot(1), summary=Summary()))
    assert looked(progress, Changed(12), replica.store) == []
    assert progress.safe_since == 12
