"""The value of a cell is the newest of summary and entries."""

from quorate.adts.cell import current
from quorate.adts.log import NOTHING, Entry, Seen, Summary, Value
from quorate.timestamps.timestamp import ZERO, make


def seen(number: int, value: Value | None) -> Seen:
    t = make(number, 0, "a")
    return Seen(Entry(t, t, value), {"r1"})


def test_the_newest_entry_counts_also_where_it_is_a_deletion() -> None:
    older, newer = seen(1, Value("1")), seen(2, None)
    assert current(NOTHING, {"x": newer, "y": older}) == (newer.entry.t, None, newer)


def test_a_summary_counts_unless_an_entry_is_newer() -> None:
    summary = Summary(horizon=make(2, 0, "a"), value=Value("9"))
    assert current(summary, {"x": seen(2, Value("1"))}) == (summary.horizon, "9", None)
    assert current(summary, {"x": seen(3, Value("1"))})[1] == "1"


def test_nothing_written_is_no_value() -> None:
    assert current(NOTHING, {}) == (ZERO, None, None)
