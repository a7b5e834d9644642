"""The replica machine over the simulated store: what is promised is kept, whatever comes in whatever order."""

from typing import Any

import pytest
from msgspec import UNSET

from quorate.adts.log import NOTHING, Decision, Entry, Settled, Summary, Value
from quorate.api_specs.messages import (
    Accept,
    Accepted,
    Append,
    Appended,
    Collect,
    Collected,
    Commit,
    Committed,
    Refused,
    Request,
    Scan,
    Scanned,
    Status,
    Window,
)
from quorate.gc.pruning import ANY_ARRIVAL
from quorate.replica.protocol.acceptor import handle, without_room
from quorate.replica.protocol.log import Forget, ObjectState, PutState
from quorate.replica.protocol.refusals import Bounds
from quorate.simulation.memory.store import MemoryStore
from quorate.timestamps.ballot import NO_BALLOT, Ballot, make_ballot
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp, make

NAME, CELL = "queue/q", "dictionary/d/k"
NOW_US = 1_000_000_000
LATER_US = NOW_US + 100
"""What `at` gives for numbers up to here has passed by then."""


def at(us: int, site: str = "c") -> Timestamp:
    return make(NOW_US + us, 0, site)


def entry(us: int, value: str | None = "") -> Entry:
    return Entry(at(us), at(us), Value(str(us)) if value == "" else None if value is None else Value(value))


def ballot(us: int, step: int = 1) -> Ballot:
    return make_ballot(at(us), step)


class Replica:
    """One replica without network: `handle` over a store."""

    def __init__(self, *, page: int = 100, page_bytes: int = 10_000) -> None:
        self.store = MemoryStore()
        self.bounds = Bounds(
            offset_max_s=2.0, repeats_s=30.0, page_entries_max=page, page_bytes_max=page_bytes
        )

    def ask(self, request: Request, *, now_us: int = NOW_US, keeps_events: bool = False) -> Any:
        reply, effects = handle(request, self.store, now_us, self.bounds, keeps_events)
        for effect in effects:
            self.store.apply(effect)
        self.store.commit()
        return reply

    def append(self, *entries: Entry, name: str = NAME) -> tuple[bool, ...]:
        reply = self.ask(Append(name, entries))
        assert isinstance(reply, Appended)
        return reply.stored

    def times(self, name: str = NAME) -> list[Timestamp]:
        """What a front end that knows nothing is shown."""
        reply = self.ask(Collect(name, window=Window(limit=100)))
        assert isinstance(reply, Collected)
        return [row.entry.t for row in reply.rows]


def test_a_fence_keeps_out_what_is_new_and_confirms_what_is_there() -> None:
    replica = Replica()
    replica.append(entry(1))
    assert replica.ask(Collect(NAME, fence=at(5))).status.fence == at(5)
    assert replica.append(entry(1), entry(3), entry(5), entry(6)) == (True, False, False, True)
    assert replica.times() == [at(1), at(6)]


def test_a_fence_never_falls() -> None:
    replica = Replica()
    replica.ask(Collect(NAME, fence=at(5)))
    assert replica.ask(Collect(NAME, fence=at(2))).status.fence == at(5)


def test_a_collect_shows_what_its_own_fence_closed() -> None:
    replica = Replica()
    replica.append(entry(3), entry(1), entry(2))
    reply = replica.ask(Collect(NAME, fence_next=2, window=Window(limit=9)))
    assert reply.status.fence == at(2)
    assert [row.entry.t for row in reply.rows] == [at(1), at(2), at(3)]


def test_a_promise_refuses_lower_turns_and_does_nothing_for_them() -> None:
    replica = Replica()
    replica.ask(Collect(NAME, ballot=ballot(5, 0)))
    lower = replica.ask(Collect(NAME, ballot=ballot(4, 0), fence=at(9), window=Window(limit=9)))
    assert lower.refused
    assert lower.status == Status(promised=at(5))
    assert replica.ask(Accept(NAME, ballot(4), Summary(at(1)))).refused
    assert not replica.ask(Accept(NAME, ballot(5), Summary(at(1)))).refused


def test_an_accept_that_was_overtaken_by_a_later_step_is_refused() -> None:
    replica = Replica()
    assert not replica.ask(Accept(NAME, ballot(5, 2), Summary(at(2)))).refused
    assert replica.ask(Accept(NAME, ballot(5, 1), Summary(at(1)))).refused
    assert not replica.ask(Accept(NAME, ballot(5, 2), Summary(at(2)))).refused
    assert replica.ask(Collect(NAME)).summary.horizon == at(2)


def test_an_accept_is_a_promise_to_its_turn() -> None:
    replica = Replica()
    replica.ask(Accept(NAME, ballot(5), Summary(at(1))))
    assert replica.ask(Collect(NAME, ballot=ballot(4, 0))).refused


def test_the_collect_that_rides_on_an_accept_is_done_only_with_it() -> None:
    replica = Replica()
    replica.append(entry(1), entry(2))
    then = Collect(NAME, fence=at(2), window=Window(limit=9))
    answer = replica.ask(Accept(NAME, ballot(5), Summary(at(1)), then=then))
    assert isinstance(answer, Accepted)
    assert answer.then is not None
    assert answer.then.status.fence == at(2)
    refused = replica.ask(Accept(NAME, ballot(4), Summary(at(1)), then=Collect(NAME, fence=at(9))))
    assert (refused.refused, refused.then, refused.status.fence) == (True, None, at(2))


def test_accepting_collects_nothing_and_committing_does() -> None:
    replica = Replica()
    replica.append(entry(1), entry(2))
    replica.ask(Accept(NAME, ballot(5), Summary(at(1))))
    assert replica.times() == [at(1), at(2)]
    replica.ask(Commit(NAME, ballot(5), at(1)))
    assert replica.times() == [at(2)]


def test_a_commit_without_its_summary_means_nothing_where_it_was_not_accepted() -> None:
    replica = Replica()
    replica.append(entry(1))
    assert replica.ask(Commit(NAME, ballot(5), at(1))).status.committed == NO_BALLOT
    assert replica.times() == [at(1)]
    assert replica.ask(Commit(NAME, ballot(5), at(1), Summary(at(1)))).status.committed == ballot(5)
    assert replica.times() == []
    assert replica.ask(Collect(NAME)).summary == Summary(at(1))


def test_a_commit_that_comes_late_changes_nothing() -> None:
    replica = Replica()
    replica.ask(Commit(NAME, ballot(5), at(5), Summary(at(5))))
    late = replica.ask(Commit(NAME, ballot(4), at(4), Summary(at(4))))
    assert (late.status.committed, late.status.horizon) == (ballot(5), at(5))


def test_a_decided_summary_is_known_to_the_store_even_to_a_promise_of_a_higher_turn() -> None:
    replica = Replica()
    replica.ask(Collect(NAME, ballot=ballot(9, 0)))
    reply = replica.ask(Commit(NAME, ballot(5), at(5), Summary(at(5))))
    assert (reply.status.promised, reply.status.accepted) == (at(9), ballot(5))


def test_a_log_that_keeps_events_is_never_collected() -> None:
    replica = Replica()
    replica.append(entry(1))
    replica.ask(Accept(NAME, ballot(5), Summary(at(1)), event="Deq();Ok(1)"), keeps_events=True)
    replica.ask(Commit(NAME, ballot(5), at(1)), keeps_events=True)
    assert replica.times() == [at(1)]
    assert replica.store.events(NAME) == [(at(5), "Deq();Ok(1)")]


def test_a_complete_value_of_a_cell_collects_the_older_ones_but_not_itself() -> None:
    replica = Replica()
    replica.append(entry(1), entry(2), entry(3), name=CELL)
    replica.ask(Commit(CELL, complete=(at(2),)))
    assert replica.times(CELL) == [at(2), at(3)]
    replica.append(entry(1), entry(2))
    replica.ask(Commit(NAME, complete=(at(2),)))
    assert replica.times() == [at(1), at(2)]


def test_a_mark_of_an_entry_that_is_not_here_collects_nothing() -> None:
    """The replica may hold the older value alone: it is all that a reader of it can see."""
    replica = Replica()
    replica.append(entry(1), name=CELL)
    replica.ask(Commit(CELL, complete=(at(2),)))
    assert replica.times(CELL) == [at(1)]


def test_a_delta_holds_what_arrived_since_and_what_lies_above() -> None:
    replica = Replica()
    replica.append(entry(1), entry(4), entry(8))
    first = replica.ask(Collect(NAME, window=Window(limit=2)))
    assert ([row.entry.t for row in first.rows], first.upto, first.more) == ([at(1), at(4)], at(4), False)
    replica.append(entry(2), entry(9))
    delta = replica.ask(Collect(NAME, window=Window(upto=at(4), since=first.since, limit=9)))
    assert [row.entry.t for row in delta.rows] == [at(2), at(8), at(9)]
    assert delta.upto == INFINITY
    quiet = replica.ask(Collect(NAME, window=Window(upto=INFINITY, since=delta.since, limit=9)))
    assert quiet.rows == ()


def test_a_long_delta_is_cut_off_and_goes_on_where_it_was() -> None:
    replica = Replica(page=2)
    first = replica.ask(Collect(NAME, window=Window(limit=2)))
    assert first.upto == INFINITY
    replica.append(*(entry(us) for us in (5, 3, 4)))
    page = replica.ask(Collect(NAME, window=Window(upto=INFINITY, since=first.since)))
    assert ([row.entry.t for row in page.rows], page.more) == ([at(5), at(3)], True)
    rest = replica.ask(Collect(NAME, window=Window(upto=INFINITY, since=page.since)))
    assert ([row.entry.t for row in rest.rows], rest.more) == ([at(4)], False)


def test_a_summary_that_the_front_end_has_is_not_sent_again() -> None:
    replica = Replica()
    replica.ask(Accept(NAME, ballot(5), Summary(at(1))))
    assert replica.ask(Collect(NAME, known=ballot(5))).summary is None
    assert replica.ask(Collect(NAME, known=ballot(4))).summary == Summary(at(1))
    assert replica.ask(Collect(NAME)).summary == Summary(at(1))


def test_payloads_are_sent_only_where_wanted() -> None:
    replica = Replica()
    replica.append(entry(1), entry(2))
    reply = replica.ask(Collect(NAME, window=Window(limit=9, payload=False), wanted=(at(2), at(7))))
    assert [(row.entry.t, row.entry.value) for row in reply.rows] == [
        (at(2), "2"),
        (at(1), UNSET),
        (at(2), UNSET),
    ]


def test_payloads_of_taken_entries_are_there_while_they_last() -> None:
    replica = Replica()
    replica.append(entry(1))
    replica.ask(Commit(NAME, ballot(5), at(1), Summary(at(1))))
    assert [row.entry.value for row in replica.ask(Collect(NAME, wanted=(at(1),))).rows] == ["1"]
    assert replica.store.delete_upto(NAME, at(1), 9, ANY_ARRIVAL) == (1, False)
    assert replica.ask(Collect(NAME, wanted=(at(1),))).rows == ()


def test_a_scan_names_objects_in_order_and_says_when_there_are_more() -> None:
    replica = Replica()
    for name in ("dictionary/d/b", "dictionary/d/a", "dictionary/e/a", "queue/q"):
        replica.append(entry(1), entry(2), name=name)
    page = replica.ask(Scan("dictionary/d/", limit=1))
    assert isinstance(page, Scanned)
    assert ([name for name, _ in page.objects], page.more) == (["dictionary/d/a"], True)
    rest = replica.ask(Scan("dictionary/d/", after="dictionary/d/a", limit=9))
    assert ([name for name, _ in rest.objects], rest.more) == (["dictionary/d/b"], False)
    assert [row.entry.t for row in rest.objects[0][1].rows] == [at(1), at(2)]


def test_a_scan_of_the_newest_entries_alone_is_short() -> None:
    replica = Replica()
    replica.append(entry(1), entry(2), entry(3))
    for number in (4, 5):
        replica.ask(
            Accept(NAME, ballot(number), Summary(at(1)), event=f"Deq();Ok({number})"), keeps_events=True
        )
    ((_, found),) = replica.ask(Scan(NAME, newest=2)).objects
    assert [(row.entry.t, row.entry.value) for row in found.rows] == [(at(2), "2"), (at(3), "3")]
    assert found.summary == Summary(at(1))
    ((_, found),) = replica.ask(Scan(NAME, newest=1, payload=False)).objects
    assert [row.entry for row in found.rows] == [Entry(entry(3).id, at(3))]
    assert [t for t, _ in found.events] == [at(5)]
    assert found.summary is None
    ((_, found),) = replica.ask(Scan(NAME, newest=0)).objects
    assert (found.rows, found.events) == ((), ())


@pytest.mark.parametrize(
    "request_",
    [
        Append(NAME, (entry(2_000_001),)),
        Collect(NAME, fence=at(2_000_001)),
        Collect(NAME, ballot=ballot(2_000_001, 0)),
        Accept(NAME, ballot(2_000_001), NOTHING),
        Accept(NAME, ballot(1), Summary(at(2_000_001))),
        Accept(NAME, ballot(1), NOTHING, then=Collect(NAME, fence=at(2_000_001))),
        Accept(NAME, ballot(1), NOTHING, then=Collect(NAME, ballot(2_000_001, 0))),
        Accept(NAME, ballot(1), Summary(terms=(ballot(2_000_001),))),
        Accept(NAME, ballot(1), Summary(terms_floor=ballot(2_000_001))),
        Accept(NAME, ballot(1), Summary(recent=(Decision("k", ballot(2_000_001)),))),
        Accept(NAME, ballot(1), Summary(recent=(Decision("k", ballot(1), (entry(2_000_001),)),))),
        Accept(NAME, ballot(1), Summary(settled=(Settled(ballot(2_000_001), "accept", ("t",)),))),
        Commit(NAME, ballot(2_000_001)),
        Accept(NAME, ballot(1), Summary(adopted=(entry(2_000_001),))),
        Accept(NAME, ballot(1), Summary(ambiguous=(("id", ballot(2_000_001)),))),
        Commit(NAME, horizon=at(2_000_001)),
        Commit(NAME, ballot(1), at(1), Summary(horizon=at(2_000_001))),
        Commit(NAME, ballot(1), at(1), Summary(adopted=(entry(2_000_001),))),
        Commit(NAME, tombstone=at(2_000_001)),
    ],
    ids=str,
)
def test_a_timestamp_too_far_ahead_is_refused_and_leaves_no_trace(request_: Request) -> None:
    """It would drag every clock along."""
    replica = Replica()
    reply = replica.ask(request_)
    assert isinstance(reply, Refused)
    assert (reply.reason, reply.clock_offset_us) == ("clock-ahead", 2_000_001)
    assert replica.store.objects() == []
    assert not isinstance(replica.ask(request_, now_us=NOW_US + 1), Refused)


def test_a_first_attempt_far_behind_is_told_of_its_clock_and_a_late_repeat_is_too_old() -> None:
    replica = Replica()
    old = entry(-2_000_001)
    assert replica.ask(Append(NAME, (old,), "first")).reason == "clock-behind"
    assert isinstance(replica.ask(Append(NAME, (old,), "again")), Appended)
    older = entry(-30_000_001)
    assert replica.ask(Append(NAME, (older,), "again")).reason == "too-old"
    assert isinstance(replica.ask(Append(NAME, (older,), "repair")), Appended)


def test_of_what_a_lost_store_may_have_held_it_is_said_neither_that_it_is_stored_nor_that_it_is_not() -> None:
    """A store made from others (`replace`) has their rows, of which the lost one may have refused some."""
    replica = Replica()
    replica.append(entry(1), entry(2))
    replica.ask(Commit(NAME, complete=(at(2),)))
    replica.store.apply(PutState(ObjectState(NAME, fence=at(5), made_upto=at(4))))
    replica.store.commit()

    for attempt in ("first", "again"):
        refused = replica.ask(Append(NAME, (entry(1), entry(6)), attempt))
        assert isinstance(refused, Refused)
        assert refused.reason == "too-old"
    assert replica.times() == [at(1), at(2)], "what came with it is not stored"
    repaired = replica.ask(Append(NAME, (entry(1), entry(2), entry(3), entry(6)), "repair"))
    assert repaired.stored == (False, True, False, True)
    assert replica.append(entry(2), entry(3)) == (True, False)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (Collect("queue/../x"), "name"),
        (Append(NAME, (Entry(at(1), at(1)),)), "without its value"),
        (Append(NAME, (entry(1, None),)), "only a dictionary"),
    ],
)
def test_what_makes_no_sense_is_refused(request_: Request, sentence: str) -> None:
    reply = Replica().ask(request_)
    assert isinstance(reply, Refused)
    assert reply.reason == "bad-request"
    assert sentence in reply.detail


def test_a_collected_key_is_forgotten_and_late_messages_meet_the_floor() -> None:
    replica = Replica()
    replica.append(entry(1), entry(5, None), name=CELL)
    replica.ask(Commit(CELL, ballot(7), at(5), tombstone=at(5)), now_us=LATER_US)
    assert replica.times(CELL) == [at(1), at(5)], "it is not decided"
    replica.ask(Commit(CELL, ballot(7), at(5), Summary(at(5))))
    told = replica.ask(Commit(CELL, ballot(7), at(5), tombstone=at(5)), now_us=LATER_US)
    assert told == Committed(Status(fence=at(7), promised=at(7), floor=at(7))), (
        "as of one that was never known"
    )
    assert replica.store.objects() == []
    assert replica.append(entry(1), entry(5, None), entry(7), entry(8), name=CELL) == (
        False,
        False,
        False,
        True,
    )


def test_a_key_that_keeps_its_events_is_not_forgotten() -> None:
    replica = Replica()
    replica.ask(Accept(CELL, ballot(7), Summary(at(5)), event="Cas(1, null);Ok()"), keeps_events=True)
    replica.ask(Commit(CELL, ballot(7), at(5)), keeps_events=True)
    replica.ask(Commit(CELL, ballot(7), at(5), tombstone=at(5)), now_us=LATER_US, keeps_events=True)
    assert len(replica.store.events(CELL)) == 1
    replica.ask(Commit(CELL, ballot(7), at(5), tombstone=at(5)), now_us=LATER_US)
    assert replica.store.objects() == []


def test_a_deletion_that_was_decided_again_since_is_not_forgotten_for_the_older_decision() -> None:
    """The newer one has ended what another replica may have accepted in between, and was not held for long."""
    replica = Replica()
    replica.ask(Commit(CELL, ballot(7), at(5), Summary(at(5))))
    replica.ask(Accept(CELL, ballot(8), Summary(at(5))))
    told = replica.ask(Commit(CELL, ballot(7), at(5), tombstone=at(5)), now_us=LATER_US)
    assert told.status.accepted == ballot(8)
    replica.ask(Commit(CELL, tombstone=at(5)), now_us=LATER_US)
    assert replica.store.state(CELL) is not None, "it is of a release that named no decision"
    replica.ask(Commit(CELL, ballot(8), at(5), tombstone=at(5)), now_us=LATER_US)
    assert replica.store.state(CELL) is None


def test_a_decision_that_rests_on_more_than_the_floor_is_of_no_forgotten_life() -> None:
    """Another key's floor lies between its term and its horizon."""
    replica = Replica()
    replica.ask(Commit("dictionary/d/other", ballot(7), at(5), Summary(at(5))))
    replica.ask(Commit("dictionary/d/other", ballot(7), at(5), tombstone=at(5)), now_us=LATER_US)
    replica.ask(Commit(CELL, ballot(6), at(6), Summary(at(6))))
    assert replica.store.state(CELL) is None
    replica.ask(Commit(CELL, ballot(6), at(8), Summary(at(8))))
    state = replica.store.state(CELL)
    assert state is not None
    assert (state.committed, state.horizon) == (ballot(6), at(8))


def test_a_deletion_that_something_newer_follows_is_not_collected() -> None:
    replica = Replica()
    replica.append(entry(5, None), entry(6), name=CELL)
    replica.ask(Commit(CELL, ballot(7), at(5), Summary(at(5))))
    replica.ask(Commit(CELL, ballot(7), at(5), tombstone=at(5)), now_us=LATER_US)
    assert replica.times(CELL) == [at(6)]


@pytest.mark.parametrize("name", [NAME, CELL])
def test_what_was_decided_on_nothing_is_forgotten_with_what_it_refuses(name: str) -> None:
    """An operation under an idempotency key found nothing: its ballot ends what was accepted below."""
    replica = Replica()
    replica.ask(Accept(name, ballot(5), NOTHING))
    replica.ask(Commit(name, ballot(5)))
    replica.ask(Commit(name, ballot(4), tombstone=at(4)), now_us=LATER_US)
    assert replica.store.state(name) is not None, "it is another one"
    replica.ask(Commit(name, ballot(5), tombstone=at(5)), now_us=LATER_US)
    assert replica.store.state(name) is None
    assert replica.ask(Accept(name, ballot(5, 9), Summary(at(3)))).refused
    assert replica.append(entry(5), entry(6), name=name) == (False, True)


def test_history_of_a_life_before_does_not_keep_what_was_decided_on_nothing() -> None:
    """The others had forgotten the key when an operation under a key found nothing there."""
    replica = Replica()
    replica.append(entry(1), entry(5, None), name=CELL)
    replica.ask(Commit(CELL, ballot(7), at(5), Summary(at(5))))
    replica.ask(Commit(CELL, ballot(9), ZERO, NOTHING))
    replica.ask(Commit(CELL, ballot(9), tombstone=at(9)), now_us=LATER_US)
    assert replica.store.objects() == []


@pytest.mark.parametrize(
    ("told", "floor"),
    [
        (Commit(CELL, ballot(7), summary=NOTHING), at(7)),
        (Commit(CELL, ballot(7), at(9), Summary(at(9))), at(9)),
        (Commit(CELL, ballot(7), at(5), Summary(at(5), Value("1"))), None),
        (Commit(NAME, ballot(7), at(5), Summary(at(5))), None),
        (Commit(CELL, ballot(7), complete=(at(5),)), None),
        (Commit(CELL, ballot(2_000), summary=NOTHING), None),
        (Accept(CELL, ballot(7), NOTHING), None),
    ],
    ids=[
        "nothing",
        "deleted",
        "is something",
        "was something",
        "no decision",
        "ahead of time",
        "not decided",
    ],
)
def test_without_room_a_replica_takes_nothing_older_of_what_came_to_nothing(
    told: Request, floor: Timestamp | None
) -> None:
    replica = Replica()
    long_since_us = LATER_US + replica.bounds.repeats_us
    assert without_room(told, replica.store, LATER_US, replica.bounds) is None, "it is young"
    handled = without_room(told, replica.store, long_since_us, replica.bounds)
    if floor is None:
        assert handled is None
        return
    assert handled == (Committed(Status(fence=floor, promised=floor, floor=floor)), [Forget(CELL, floor)])
    replica.ask(Accept(CELL, ballot(3), Summary(at(3), Value("1"))))
    assert without_room(told, replica.store, long_since_us, replica.bounds) is None, "it knows the object"


@pytest.mark.parametrize("is_floor_ahead", [True, False])
@pytest.mark.parametrize("ahead_us", [1_000, 3600 * 1_000_000])
def test_what_was_promised_ahead_of_time_is_not_forgotten_before_lest_the_floor_be_ahead(
    ahead_us: int, *, is_floor_ahead: bool
) -> None:
    """A term of a front end whose clock was ahead for a moment, as this replica's was; or a little ahead, as every caller may ask. Where the floor is
    ahead already, nothing more is lost."""
    replica = Replica()
    replica.ask(Commit(CELL, ballot(7), at(5), Summary(at(5))))
    replica.ask(Collect(CELL, ballot=ballot(ahead_us, 0)), now_us=NOW_US + ahead_us)
    if is_floor_ahead:
        replica.ask(Append("queue/other", (entry(1),)))
        replica.store.apply(Forget("queue/other", at(ahead_us)))
    assert replica.store.state(CELL) is not None
    tombstone = Commit(CELL, ballot(7), at(5), tombstone=at(5))
    replica.ask(tombstone, now_us=LATER_US)
    assert (replica.store.state(CELL) is None) is is_floor_ahead
    replica.ask(tombstone, now_us=NOW_US + ahead_us)
    assert replica.store.state(CELL) is None
    assert replica.store.floor() == at(ahead_us)


def test_what_was_decided_on_nothing_stays_where_an_item_came_since() -> None:
    replica = Replica()
    replica.ask(Accept(NAME, ballot(5), NOTHING))
    replica.append(entry(3))
    replica.ask(Commit(NAME, ballot(5), tombstone=at(5)), now_us=LATER_US)
    assert replica.times() == [at(3)]


@pytest.mark.parametrize("kind", [Accept, Commit])
def test_a_summary_whose_adopted_entry_lacks_its_value_is_refused(kind: type[Accept | Commit]) -> None:
    """Nobody else may have it."""
    replica = Replica()
    summary = Summary(adopted=(Entry(at(1), at(1)),))
    request = Accept(NAME, ballot(1), summary) if kind is Accept else Commit(NAME, ballot(1), summary=summary)
    reply = replica.ask(request)
    assert isinstance(reply, Refused)
    assert reply.reason == "bad-request"
    assert replica.store.state(NAME) is None


@pytest.mark.parametrize("kind", [Accept, Commit])
def test_a_queues_summary_with_a_deletion_is_refused(kind: type[Accept | Commit]) -> None:
    """A queue's items are values; the front end that handed it out could say nothing in its place."""
    deletion = Entry(at(1), at(1), None)
    for summary in (Summary(adopted=(deletion,)), Summary(recent=(Decision("k", ballot(1), (deletion,)),))):
        replica = Replica()
        made = (
            Accept(NAME, ballot(1), summary) if kind is Accept else Commit(NAME, ballot(1), summary=summary)
        )
        assert isinstance(replica.ask(made), Refused)
