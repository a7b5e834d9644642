"""Views: what a summary and the entries over it mean, for a queue and for a cell."""

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts import cell
from quorate.adts.log import NOTHING, Entry, Seen, Summary, Value
from quorate.adts.types import queue
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import ZERO, Timestamp, make


def at(us: int) -> Timestamp:
    return make(us, 0, "c")


def entry(number: int, us: int | None = None) -> Entry:
    """An entry with the id of `number`, at `us` when it was stamped anew."""
    return Entry(at(number), at(number if us is None else us), Value(str(number)))


def seen(*entries: Entry) -> dict[str, Seen]:
    return {each.id: Seen(each, {"r1"}) for each in entries}


def shown(view: list[Seen]) -> list[str]:
    return [str(found.entry.value) for found in view]


def test_the_view_is_in_timestamp_order_however_the_replies_came() -> None:
    assert shown(queue.view(NOTHING, seen(entry(3), entry(1), entry(2)))) == ["1", "2", "3"]


def test_entries_at_or_below_the_horizon_are_consumed() -> None:
    assert shown(queue.view(Summary(horizon=at(2)), seen(entry(1), entry(2), entry(3)))) == ["3"]


def test_adopted_entries_wait_wherever_the_horizon_stands() -> None:
    summary = Summary(horizon=at(5), adopted=(entry(2),))
    assert shown(queue.view(summary, seen(entry(2), entry(6)))) == ["2", "6"]
    assert shown(queue.view(summary, {})) == ["2"]


def test_an_adopted_entry_is_not_there_twice_when_a_log_has_it_at_another_time() -> None:
    summary = Summary(horizon=at(5), adopted=(entry(2),))
    (found,) = queue.view(summary, seen(entry(2, 9)))
    assert found.entry == entry(2)
    assert found.holders == {"r1"}


def test_what_was_taken_while_incomplete_does_not_come_back_at_another_time() -> None:
    summary = Summary(horizon=at(5), ambiguous=((at(2), make_ballot(at(5), 1)),))
    assert queue.view(summary, seen(entry(2, 9))) == []


SUMMARIES = st.builds(
    lambda horizon, adopted, taken: Summary(
        horizon=at(horizon),
        adopted=tuple(entry(number) for number in sorted(adopted)),
        ambiguous=tuple((at(number), make_ballot(at(9), 1)) for number in sorted(taken - adopted)),
    ),
    st.integers(0, 9),
    st.frozensets(st.integers(1, 9), max_size=3),
    st.frozensets(st.integers(1, 9), max_size=3),
)


@given(SUMMARIES, st.dictionaries(st.integers(1, 9), st.integers(1, 12), max_size=6))
def test_each_item_waits_once_or_not_at_all(summary: Summary, logs: dict[int, int]) -> None:
    """A slow definition: every id counts once, adopted ones always, others when above the horizon and not taken."""
    view = queue.view(summary, seen(*(entry(number, us) for number, us in logs.items())))
    waiting = {each.id: each.t for each in summary.adopted}
    for number, us in logs.items():
        if at(us) > summary.horizon and at(number) not in dict(summary.ambiguous):
            waiting.setdefault(at(number), at(us))
    assert {found.entry.id: found.entry.t for found in view} == waiting
    assert [found.entry.t for found in view] == sorted(waiting.values())
    assert len(view) == len(waiting)


def test_the_current_value_is_the_newest_of_summary_and_entries() -> None:
    summary = Summary(horizon=at(5), value=Value("5"))
    assert cell.current(summary, seen(entry(3))) == (at(5), "5", None)
    timestamp, value, source = cell.current(summary, seen(entry(3), entry(7)))
    assert (timestamp, value) == (at(7), "7")
    assert source is not None


def test_a_deletion_is_a_value_like_others() -> None:
    deletion = Entry(at(7), at(7), None)
    timestamp, value, source = cell.current(Summary(horizon=at(5), value=Value("5")), seen(deletion))
    assert (timestamp, value) == (at(7), None)
    assert source is not None
    assert source.entry == deletion


def test_a_cell_nobody_wrote_is_absent_since_ever() -> None:
    assert cell.current(NOTHING, {}) == (ZERO, None, None)
