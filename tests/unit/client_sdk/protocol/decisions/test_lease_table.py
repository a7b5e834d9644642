"""What decisions make of leases: who is handed what, when it comes back, how it ends, and what there is room for."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from quorate.adts.log import NOTHING, Dead, DeadReason, Entry, Leased, Seen, Settled, Summary, Value
from quorate.adts.times import NO_TIMES, Times, digest_in, entry_id
from quorate.api_specs.commands import AcquireCommand, DequeueCommand, SettleCommand, SettleResult
from quorate.api_specs.limits import DEAD_MAX, DEFAULTS, DELIVERIES_MAX, LEASE_S_MAX, LEASES_MAX, SETTLED_MAX
from quorate.api_specs.messages import Aged
from quorate.client_sdk.protocol.decisions.lease_table import (
    DIFFER_S_MAX,
    TOO_MANY_DEAD,
    TOO_MANY_LEASES,
    ClearCommand,
    PurgeDelayedCommand,
    is_too_heavy,
)
from quorate.client_sdk.protocol.decisions.summary_builder import Context
from quorate.client_sdk.protocol.decisions.transitions import Command, Plan, RepairCommand, plan_queue
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import INFINITY, ZERO, Timestamp, make

NOW = 1_000_000
LEASE = 500
DAY_US = 86_400_000_000
CONTEXT = Context(
    ballot=make_ballot(make(1000, 0, "f"), 1),
    take_bytes_max=10_000,
    is_complete=lambda found: len(found.holders) >= 2,
    recent_max=2,
    aged=(),
    terms_before=ZERO,
    callers=range(9),
    asker_of=lambda decision: decision.id,
    earliest_us=NOW,
    latest_us=NOW + 10,
    leases_bytes_max=1000,
)


def at(us: int) -> Timestamp:
    return make(us, 0, "c")


def entry(us: int, times: Times = NO_TIMES, value: str | None = None) -> Entry:
    return Entry(entry_id(at(us), "", times), at(us), Value(str(us) if value is None else value))


def seen(*entries: Entry, holders: int = 2) -> dict[str, Seen]:
    return {each.id: Seen(each, {f"r{n}" for n in range(holders)}) for each in entries}


def planned(
    summary: Summary, view: dict[str, Seen], *commands: Command, now: int = NOW, **context: Any
) -> Plan:
    known = replace(CONTEXT, earliest_us=now, latest_us=now + 10, **context)
    above = {i: found for i, found in view.items() if found.entry.t > summary.horizon}
    return plan_queue(summary, above, INFINITY, commands, known)


def lent(plan: Plan, place: int = 0) -> list[tuple[str, int]]:
    return [(str(each.entry.value), each.deliveries) for each in plan.results[place]]


def first(*entries: Entry, **command: Any) -> Summary:
    """The summary once all these were delivered."""
    return planned(NOTHING, seen(*entries), AcquireCommand(len(entries), LEASE, **command)).summary


def tokens(summary: Summary) -> tuple[str, ...]:
    return tuple(record.token for record in summary.leases)


def test_what_is_delivered_leaves_the_front_and_is_kept_with_its_payload() -> None:
    plan = planned(NOTHING, seen(entry(1), entry(2), entry(3)), AcquireCommand(2, LEASE))
    assert lent(plan) == [("1", 1), ("2", 1)]
    assert plan.summary.horizon == at(2)
    assert [each.value for each in plan.summary.kept()] == ["1", "2"]
    assert all(record.until_us == NOW + 10 + LEASE for record in plan.summary.leases)
    assert plan.summary.terms == (CONTEXT.ballot,)
    assert plan.summary.ambiguous == ()


def test_what_may_be_incomplete_is_noted_when_it_is_delivered() -> None:
    plan = planned(NOTHING, seen(entry(1), holders=1), AcquireCommand(1, LEASE))
    assert plan.summary.ambiguous == ((at(1), CONTEXT.ballot),)


def test_an_adopted_entry_is_delivered_and_no_longer_adopted() -> None:
    plan = planned(Summary(horizon=at(9), adopted=(entry(1),)), {}, AcquireCommand(1, LEASE))
    assert lent(plan) == [("1", 1)]
    assert plan.summary.adopted == ()
    assert plan.summary.horizon == at(9)


def test_takes_and_lends_of_a_batch_share_the_front() -> None:
    plan = planned(
        NOTHING,
        seen(entry(1), entry(2), entry(3)),
        DequeueCommand(1),
        AcquireCommand(1, LEASE),
        DequeueCommand(5),
    )
    assert [each.value for each in plan.results[0]] == ["1"]
    assert lent(plan, 1) == [("2", 1)]
    assert [each.value for each in plan.results[2]] == ["3"]


def test_a_lease_that_is_over_is_delivered_before_the_front_in_the_order_of_enqueue() -> None:
    summary = first(entry(1), entry(2))
    swapped = replace(summary, leases=summary.leases[::-1])
    early = planned(swapped, seen(entry(3)), AcquireCommand(9, LEASE), now=NOW + 10 + LEASE)
    assert lent(early) == [("3", 1)], "at the deadline itself it may still be running"
    late = planned(swapped, seen(entry(3)), AcquireCommand(9, LEASE), now=NOW + 11 + LEASE)
    assert lent(late) == [("1", 2), ("2", 2), ("3", 1)]


def test_a_lease_given_while_clocks_were_far_ahead_is_over_once_they_are_right() -> None:
    longest_us, differ_us = int(LEASE_S_MAX * 1e6), int(DIFFER_S_MAX * 1e6)
    for ahead_us, delivered in ((differ_us, []), (differ_us + 1, [("1", 2)]), (300 * DAY_US, [("1", 2)])):
        given = planned(NOTHING, seen(entry(1)), AcquireCommand(1, longest_us), now=NOW + ahead_us).summary
        plan = planned(given, {}, AcquireCommand(1, LEASE))
        assert (lent(plan) if plan.results else []) == delivered
        ended = planned(plan.summary, {}, SettleCommand("accept", tokens(given)))
        assert ended.results[0].lost == (tokens(given) if delivered else ())


def test_nothing_to_deliver_gives_no_result_and_changes_nothing() -> None:
    summary = first(entry(1))
    plan = planned(summary, {}, AcquireCommand(1, LEASE))
    assert plan.results == {}
    assert plan.summary is summary


@pytest.mark.parametrize(("how", "ending"), [("accept", "accept"), ("drop", "drop"), ("reject", "reject")])
def test_an_ended_lease_is_gone_and_a_repeat_hears_the_same(how: Any, ending: str) -> None:
    summary = first(entry(1), entry(2))
    token = tokens(summary)[0]
    plan = planned(summary, {}, SettleCommand(how, (token,)))
    assert plan.results[0].lost == ()
    assert tokens(plan.summary) == tokens(summary)[1:]
    assert [each.how for each in plan.summary.settled] == [ending]
    assert [dead.reason for dead in plan.summary.dead] == (["rejected"] if how == "reject" else [])
    again = planned(plan.summary, {}, SettleCommand(how, (token,)))
    assert again.results[0].lost == ()
    assert again.summary is plan.summary


def test_a_lease_ends_in_one_way_only() -> None:
    summary = first(entry(1))
    (token,) = tokens(summary)
    released = planned(summary, {}, SettleCommand("release", (token,))).summary
    for how in ("accept", "reject", "drop", "renew"):
        plan = planned(released, {}, SettleCommand(how, (token,)))
        assert plan.results[0].lost == (token,)
        assert plan.summary is released


def test_a_lease_that_was_handed_to_another_is_lost_and_the_new_one_counts() -> None:
    summary = first(entry(1))
    (old,) = tokens(summary)
    again = planned(summary, {}, AcquireCommand(1, LEASE), now=NOW + 11 + LEASE).summary
    (new,) = tokens(again)
    both = planned(again, {}, SettleCommand("accept", (old, new)))
    assert both.results[0].lost == (old,)
    assert both.summary.leases == ()


def test_of_two_renewals_the_later_sets_the_deadline() -> None:
    summary = first(entry(1))
    for span_us in (9 * LEASE, LEASE // 2, LEASE // 2):
        summary = planned(summary, {}, SettleCommand("renew", tokens(summary), span_us)).summary
        assert [record.until_us for record in summary.leases] == [NOW + 10 + span_us]


def test_an_expired_lease_that_nobody_else_was_given_may_be_accepted_or_renewed() -> None:
    summary = first(entry(1))
    late = NOW + 50 * LEASE
    renewed = planned(summary, {}, SettleCommand("renew", tokens(summary), LEASE), now=late)
    assert renewed.results[0] == SettleResult(until_us=late + 10 + LEASE)
    assert lent(planned(renewed.summary, seen(entry(2)), AcquireCommand(9, LEASE), now=late)) == [("2", 1)]
    assert planned(summary, {}, SettleCommand("accept", tokens(summary)), now=late).results[0].lost == ()


def test_what_is_released_waits_for_its_delay_and_keeps_its_count() -> None:
    summary = first(entry(1))
    released = planned(summary, {}, SettleCommand("release", tokens(summary), 100)).summary
    assert planned(released, {}, AcquireCommand(1, LEASE), now=NOW + 110).results == {}
    assert lent(planned(released, {}, AcquireCommand(1, LEASE), now=NOW + 111)) == [("1", 2)]
    at_once = planned(summary, {}, SettleCommand("release", tokens(summary))).summary
    assert lent(planned(at_once, {}, AcquireCommand(1, LEASE))) == [("1", 2)]


def test_what_was_delivered_too_often_is_a_dead_letter_and_starts_afresh_when_it_is_requeued() -> None:
    summary = first(entry(1))
    late = NOW + 11 + LEASE
    spared = planned(summary, {}, AcquireCommand(1, LEASE, 2), now=late)
    assert lent(spared) == [("1", 2)]
    dead = planned(summary, {}, AcquireCommand(1, LEASE, 1), now=late)
    assert dead.results == {}
    assert dead.summary.dead == (Dead(entry(1), "deliveries", 1),)
    assert dead.summary.leases == ()
    back = planned(dead.summary, {}, ClearCommand((), is_requeued=True), AcquireCommand(1, LEASE, 1))
    assert back.results[0] == 1
    assert lent(back, 1) == [("1", 2)]
    assert back.summary.dead == ()


def test_dead_letters_are_cleared_by_id_or_all() -> None:
    summary = Summary(dead=tuple(Dead(entry(n), "rejected", 1) for n in (1, 2, 3)))
    some = planned(summary, {}, ClearCommand((at(2), at(9)), is_requeued=False))
    assert some.results[0] == 1
    assert [dead.entry.value for dead in some.summary.dead] == ["1", "3"]
    assert planned(summary, {}, ClearCommand((), is_requeued=False)).results[0] == 3


def test_a_delayed_item_is_set_aside_until_it_is_due() -> None:
    delayed = entry(1, Times(due_us=NOW + 100))
    plan = planned(NOTHING, seen(delayed, entry(2)), AcquireCommand(1, LEASE))
    assert lent(plan) == [("2", 1)]
    assert plan.summary.leases[0] == Leased(delayed, NOW + 100)
    assert planned(plan.summary, {}, AcquireCommand(1, LEASE), now=NOW + 100).results == {}
    assert lent(planned(plan.summary, {}, AcquireCommand(1, LEASE), now=NOW + 101)) == [("1", 1)]
    alone = planned(NOTHING, seen(delayed), AcquireCommand(1, LEASE))
    assert alone.results == {}
    assert alone.summary.horizon == at(1)


def test_delayed_items_that_fill_a_queue_can_be_purged() -> None:
    late = tuple(Leased(entry(n, value="1"), NOW + DAY_US) for n in range(1, LEASES_MAX + 1))
    summary = Summary(horizon=at(LEASES_MAX), leases=late)
    waiting = seen(entry(6000))
    refused = planned(summary, waiting, AcquireCommand(1, LEASE), leases_bytes_max=9999)
    assert refused.results[0] is TOO_MANY_LEASES
    plan = planned(summary, waiting, PurgeDelayedCommand(0), AcquireCommand(1, LEASE), leases_bytes_max=9999)
    assert plan.results[0] == LEASES_MAX
    assert lent(plan, 1) == [("6000", 1)]
    heavy = Summary(horizon=at(1), leases=(Leased(sized(1, 1000), NOW + DAY_US),))
    assert planned(heavy, waiting, AcquireCommand(1, LEASE)).results[0] is TOO_MANY_LEASES
    assert lent(planned(heavy, waiting, PurgeDelayedCommand(0), AcquireCommand(1, LEASE)), 1) == [("6000", 1)]


def test_of_items_that_wait_only_those_that_are_due_so_late_are_purged() -> None:
    held = first(entry(1)).leases
    due = (Leased(entry(2), NOW - 1), Leased(entry(3), deliveries=2, excused=2))
    late = (Leased(entry(4), NOW, 1), Leased(entry(5), NOW + 99), Leased(entry(6), NOW + 100))
    summary = Summary(horizon=at(9), leases=(*held, *due, *late), dead=(Dead(entry(7), "rejected", 1),))
    some = planned(summary, {}, PurgeDelayedCommand(100))
    assert (some.results[0], some.summary.leases) == (1, (*held, *due, *late[:2]))
    every = planned(summary, {}, PurgeDelayedCommand(0))
    assert (every.results[0], every.summary.leases, every.summary.dead) == (3, (*held, *due), summary.dead)
    again = planned(every.summary, {}, PurgeDelayedCommand(0))
    assert (again.results[0], again.summary) == (0, every.summary)


def test_an_expired_item_is_a_dead_letter_unless_somebody_holds_it() -> None:
    short = entry(1, Times(expires_us=NOW + 100))
    assert planned(NOTHING, seen(short), AcquireCommand(1, LEASE), now=NOW + 101).summary.dead == (
        Dead(short, "expired"),
    )
    held = first(short)
    assert planned(held, {}, AcquireCommand(1, LEASE), now=NOW + 101).summary is held
    over = planned(held, {}, AcquireCommand(1, LEASE), now=NOW + 11 + LEASE)
    assert over.summary.dead == (Dead(short, "expired", 1),)
    waiting = planned(held, {}, SettleCommand("release", tokens(held), 1000)).summary
    assert planned(waiting, {}, AcquireCommand(1, LEASE), now=NOW + 101).summary.dead == (
        Dead(short, "expired", 1),
    )
    requeued = planned(
        over.summary, {}, ClearCommand((), is_requeued=True), AcquireCommand(1, LEASE), now=NOW + 999
    )
    assert lent(requeued, 1) == [("1", 2)]


def full(number: int = LEASES_MAX) -> Summary:
    held = tuple(Leased(entry(n, value="1"), NOW + LEASE, 1, is_held=True) for n in range(1, number + 1))
    return Summary(horizon=at(number), leases=held)


def test_there_is_room_for_so_many_leases() -> None:
    some = planned(
        full(LEASES_MAX - 1), seen(entry(5001), entry(5002)), AcquireCommand(2, LEASE), leases_bytes_max=9999
    )
    assert lent(some) == [("5001", 1)]
    none = planned(full(), seen(entry(5001)), AcquireCommand(2, LEASE), leases_bytes_max=9999)
    assert none.results[0] is TOO_MANY_LEASES
    assert none.summary == full()
    over = planned(
        full(), seen(entry(5001)), AcquireCommand(3, LEASE), now=NOW + LEASE + 1, leases_bytes_max=9999
    )
    assert [count for _, count in lent(over)] == [2, 2, 2], "delivery anew needs no room"


def test_there_is_room_for_so_many_bytes_and_for_a_single_item_of_any_size() -> None:
    large = [entry(n, value='"' + "x" * 600 + '"') for n in (1, 2)]
    plan = planned(NOTHING, seen(*large), AcquireCommand(2, LEASE))
    assert [each.entry.t for each in plan.results[0]] == [at(1)]
    assert planned(plan.summary, seen(*large), AcquireCommand(1, LEASE)).results[0] is TOO_MANY_LEASES
    huge = entry(1, value='"' + "x" * 5000 + '"')
    assert len(planned(NOTHING, seen(huge), AcquireCommand(1, LEASE)).results[0]) == 1
    kept = tuple(Leased(each) for each in large)
    assert is_too_heavy(Summary(leases=kept), 1000)
    assert not is_too_heavy(Summary(leases=kept[:1]), 1000)
    assert is_too_heavy(Summary(dead=tuple(Dead(each, "expired") for each in large)), 1000)


def test_there_is_room_for_so_many_dead_letters_and_what_finds_none_stays() -> None:
    letters = tuple(Dead(entry(5000 + n, value="1"), "rejected", 1) for n in range(DEAD_MAX))
    summary = replace(first(entry(1)), dead=letters)
    rejected = planned(summary, {}, SettleCommand("reject", tokens(summary)))
    assert rejected.results[0] is TOO_MANY_DEAD
    assert rejected.summary is summary
    assert planned(summary, {}, SettleCommand("drop", tokens(summary))).results[0].lost == ()
    worn = planned(summary, {}, AcquireCommand(1, LEASE, 1), now=NOW + 11 + LEASE)
    assert worn.results == {}
    assert worn.summary is summary
    assert planned(full(), {}, ClearCommand((), is_requeued=True)).results[0] == 0
    no_room = replace(full(), dead=letters)
    assert planned(no_room, {}, ClearCommand((), is_requeued=True)).results[0] is TOO_MANY_LEASES


EXPIRED = Times(expires_us=5)


def letters(reason: DeadReason) -> tuple[Dead, ...]:
    """As many as there is room for."""
    return tuple(Dead(entry(5000 + n, value="1"), reason, 1) for n in range(DEAD_MAX))


def test_of_dead_letters_that_expired_the_oldest_gives_way_to_what_becomes_one() -> None:
    full_of_expired = replace(first(entry(1)), dead=letters("expired"))
    late = entry(2, EXPIRED)
    plan = planned(full_of_expired, seen(late), AcquireCommand(1, LEASE))
    assert plan.summary.dead == (*full_of_expired.dead[1:], Dead(late, "expired"))
    rejected = planned(full_of_expired, {}, SettleCommand("reject", tokens(full_of_expired)))
    assert rejected.results[0].lost == ()
    assert rejected.summary.dead == (*full_of_expired.dead[1:], Dead(entry(1), "rejected", 1))
    worn = planned(full_of_expired, {}, AcquireCommand(1, LEASE, 1), now=NOW + 11 + LEASE)
    assert worn.summary.dead[-1].reason == "deliveries"


def test_where_other_letters_leave_no_room_an_expired_item_is_gone() -> None:
    """Two messages of 6 KB stopped a queue for good: the expired items took all places that others left (an attack)."""
    summary = replace(first(entry(1)), dead=letters("rejected"))
    late = [entry(n, EXPIRED) for n in range(2, LEASES_MAX + 2)]
    plan = planned(summary, seen(*late, entry(7000)), AcquireCommand(1, LEASE), leases_bytes_max=99_999)
    assert lent(plan) == [("7000", 1)]
    assert plan.summary.dead == summary.dead
    assert [record.entry for record in plan.summary.leases] == [entry(1), entry(7000)]


def test_expired_items_that_were_met_before_leave_their_places() -> None:
    """As summaries of earlier releases have them."""
    expired = tuple(Leased(entry(n, value="1"), expires_us=5) for n in range(1, LEASES_MAX + 1))
    summary = Summary(horizon=at(6000), leases=expired, dead=letters("rejected"))
    plan = planned(summary, seen(entry(7000)), AcquireCommand(1, LEASE), leases_bytes_max=9999)
    assert (lent(plan), plan.summary.dead) == ([("7000", 1)], summary.dead)


def test_a_requeue_takes_the_places_of_expired_items_as_far_as_it_needs_them() -> None:
    expired = tuple(Leased(entry(n, value="1"), expires_us=5) for n in range(1, LEASES_MAX + 1))
    summary = Summary(horizon=at(6000), leases=expired, dead=letters("rejected"))
    named = summary.dead[3]
    one = planned(summary, {}, ClearCommand((named.entry.id,), is_requeued=True), leases_bytes_max=9999)
    assert one.results[0] == 1
    assert one.summary.dead == (*summary.dead[:3], *summary.dead[4:])
    assert one.summary.leases == (*expired[1:], Leased(named.entry, deliveries=1, excused=1))
    everything = planned(summary, {}, ClearCommand((), is_requeued=True), leases_bytes_max=9999)
    assert (everything.results[0], everything.summary.dead) == (DEAD_MAX, ())
    held = tuple(replace(each, until_us=NOW, is_held=True) for each in expired)
    running = planned(
        replace(summary, leases=held), {}, ClearCommand((), is_requeued=True), leases_bytes_max=9999
    )
    assert running.results[0] is TOO_MANY_LEASES, "whose lease runs is left to its holder, expired or not"


def test_a_letter_that_finds_no_room_does_not_keep_others_from_theirs() -> None:
    held = Leased(sized(1, 600), NOW + LEASE, 1, is_held=True)
    dead = tuple(Dead(sized(n, size), "rejected", 1) for n, size in ((101, 450), (102, 50)))
    plan = planned(
        Summary(horizon=at(900), leases=(held,), dead=dead), {}, ClearCommand((), is_requeued=True)
    )
    assert plan.results[0] == 1
    assert plan.summary.dead == dead[:1]
    assert [record.entry for record in plan.summary.leases] == [held.entry, dead[1].entry]


def test_an_item_that_was_delivered_as_often_as_can_be_counted_is_a_dead_letter() -> None:
    spent = Leased(entry(1), deliveries=DELIVERIES_MAX, excused=DELIVERIES_MAX)
    last = replace(spent, entry=entry(2), deliveries=DELIVERIES_MAX - 1, excused=0)
    plan = planned(Summary(horizon=at(9), leases=(spent, last)), {}, AcquireCommand(5, LEASE))
    assert lent(plan) == [("2", DELIVERIES_MAX)]
    assert plan.summary.dead == (Dead(entry(1), "deliveries", DELIVERIES_MAX),)


def test_a_repair_is_a_decision_that_others_of_its_batch_go_on_from() -> None:
    wrong = Leased(entry(1), deliveries=DELIVERIES_MAX + 5)
    plan = planned(
        Summary(horizon=at(9), leases=(wrong,)), {}, RepairCommand(DEFAULTS), AcquireCommand(5, LEASE)
    )
    assert len(plan.results[0]) == 1
    assert plan.summary.dead == (Dead(entry(1), "deliveries", DELIVERIES_MAX),)
    assert plan.summary.terms == (CONTEXT.ballot,)
    sound = planned(Summary(horizon=at(9)), {}, RepairCommand(DEFAULTS))
    assert sound.results == {0: ()}
    assert sound.summary == Summary(horizon=at(9))


def sized(number: int, size: int) -> Entry:
    return entry(number, value='"' + "x" * (size - 2) + '"')


@given(
    leases=st.lists(st.tuples(st.integers(2, 500), st.booleans(), st.booleans()), max_size=6),
    dead=st.lists(st.integers(2, 300), max_size=6),
    asked=st.sets(st.integers(0, 5)),
    is_requeued=st.booleans(),
)
def test_clearing_loses_nothing_and_keeps_to_the_bounds(
    leases: list[tuple[int, bool, bool]], dead: list[int], asked: set[int], *, is_requeued: bool
) -> None:
    records = tuple(
        Leased(sized(n, size), NOW if is_held else 0, 1, is_held=is_held, expires_us=5 if is_expired else 0)
        for n, (size, is_held, is_expired) in enumerate(leases, 1)
    )
    letters = tuple(Dead(sized(n, size), "rejected", 1) for n, size in enumerate(dead, 101))
    summary = Summary(horizon=at(900), leases=records, dead=letters)
    assume(not is_too_heavy(summary, 1000))
    ids = tuple(letter.entry.id for place, letter in enumerate(letters) if place in asked)
    plan = planned(summary, {}, ClearCommand(ids, is_requeued=is_requeued))
    after = plan.summary
    gone = {dead.entry.id for dead in letters} - {dead.entry.id for dead in after.dead}
    assert gone <= set(ids or gone)
    assert plan.results[0] == len(gone) or (plan.results[0] is TOO_MANY_LEASES and after is summary)
    before_ids = [entry.id for entry in summary.kept()]
    assert len(before_ids) == len(set(before_ids))
    may_be_gone = {record.entry.id for record in records if record.expires_us and not record.is_held}
    left_out = set(before_ids) - {entry.id for entry in after.kept()}
    assert left_out <= may_be_gone if is_requeued else left_out == gone
    assert not is_too_heavy(after, 1000)
    left = {record.entry.id: record for record in after.leases}
    for record in records:
        assert left.get(record.entry.id) == record or (
            is_requeued and record.expires_us and not record.is_held
        )


def test_how_leases_ended_is_forgotten_when_it_is_old_or_there_are_too_many() -> None:
    summary = replace(
        first(entry(1)),
        settled=(
            Settled(make_ballot(at(5), 1), "accept", ("a",)),
            Settled(make_ballot(at(7), 1), "accept", ("b",) * (SETTLED_MAX - 1)),
        ),
    )
    accept = SettleCommand("accept", tokens(summary))
    kept = planned(summary, {}, accept, aged=(Aged(settled=make_ballot(at(5), 1)),)).summary.settled
    assert [len(each.tokens) for each in kept] == [SETTLED_MAX - 1, 1]
    assert [len(each.tokens) for each in planned(summary, {}, accept).summary.settled] == [SETTLED_MAX - 1, 1]
    assert len(planned(replace(summary, settled=summary.settled[:1]), {}, accept).summary.settled) == 2


@given(st.text("0123456789abcdef.", max_size=40), st.integers(0, 10**16), st.integers(0, 10**16))
def test_an_id_tells_digest_and_times(stamp: str, due_us: int, expires_us: int) -> None:
    times = Times(due_us, expires_us)
    assert Times.of(entry_id(stamp, "", times)) == times
    assert Times.of(entry_id(stamp, "ab12", times)) == times
    assert digest_in(entry_id(stamp, "ab12", times)) == "ab12"
    assert digest_in(entry_id(stamp, "", NO_TIMES)) == ""
    assert Times.of(entry_id(stamp, "ab12", NO_TIMES)) == NO_TIMES
