"""What a log's values say of themselves, and how they are written on disk and between machines."""

import msgspec

from quorate.adts.log import NOTHING, Dead, Decision, Entry, LeaseCounts, Leased, Summary, Value, count_leases
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import make

FIRST, SECOND = (Entry(t, t, Value(f'"{t[-1]}"')) for t in (make(1, 0, "a"), make(2, 0, "b")))
BALLOT = make_ballot(make(9, 0, "c"), 1)


def test_each_delivery_of_an_item_is_a_lease_of_its_own() -> None:
    once, twice = (Leased(FIRST, deliveries=number, is_held=True) for number in (1, 2))
    other = Leased(SECOND, deliveries=1, is_held=True)
    assert len({once.token, twice.token, other.token}) == 3
    assert once.token == Leased(FIRST, until_us=5, deliveries=1).token


def test_items_that_an_acquire_has_met_are_counted_by_where_they_are() -> None:
    leases = (Leased(FIRST, is_held=True), Leased(SECOND), Leased(SECOND))
    assert count_leases(leases, (Dead(FIRST, "expired"),)) == LeaseCounts(held=1, waiting=2, dead=1)
    assert count_leases((), ()) == LeaseCounts()


def test_a_summary_keeps_the_entries_of_leases_and_dead_letters() -> None:
    summary = Summary(leases=(Leased(SECOND),), dead=(Dead(FIRST, "rejected"),), adopted=(FIRST,))
    assert summary.kept() == (SECOND, FIRST)


def test_a_decision_is_found_by_its_id() -> None:
    first, second = Decision("Deq a", BALLOT), Decision("Deq b", BALLOT, (FIRST,))
    summary = Summary(recent=(first, second))
    assert summary.decision("Deq b") is second
    assert summary.decision("Deq c") is None


def test_what_is_as_usual_is_not_written_and_old_names_stay_on_disk() -> None:
    assert msgspec.json.encode(NOTHING) == b"{}"
    written = msgspec.json.encode(Summary(terms=(BALLOT,), terms_floor=BALLOT))
    assert set(msgspec.json.decode(written)) == {"turns", "turns_floor"}
    assert msgspec.json.decode(written, type=Summary) == Summary(terms=(BALLOT,), terms_floor=BALLOT)


def test_a_deletion_and_a_payload_left_out_are_two_things() -> None:
    deletion, unfilled = Entry(FIRST.id, FIRST.t, None), Entry(FIRST.id, FIRST.t)
    again = [msgspec.json.decode(msgspec.json.encode(each), type=Entry) for each in (deletion, unfilled)]
    assert again == [deletion, unfilled]
    assert again[0] != again[1]
