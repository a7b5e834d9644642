"""Where a page of a log ends."""

from quorate.adts.log import Entry, Value
from quorate.api_specs.messages import Row
from quorate.replica.protocol.pages import page_of, payloads_bytes, read_until_full, value_in
from quorate.timestamps.timestamp import make


def row(number: int, size: int = 10) -> Row:
    t = make(number, 0, "a")
    return Row(Entry(t, t, Value("1" * size)))


ROWS = [row(number) for number in range(5)]


def test_a_page_holds_what_there_is_room_for_but_at_least_one() -> None:
    assert page_of(ROWS, 29) == ROWS[:2]
    assert page_of(ROWS, 30) == ROWS[:3]
    assert page_of(ROWS, 50) == ROWS
    assert page_of(ROWS, 1) == ROWS[:1]


def test_reading_stops_at_the_first_row_without_room() -> None:
    rows = iter(ROWS)
    assert read_until_full(rows, value_in, 25) == ROWS[:3]
    assert list(rows) == ROWS[3:], "further ones were not looked at"
    assert read_until_full(ROWS, value_in, None) == ROWS
    assert read_until_full(ROWS, value_in, 1) == ROWS[:2], "the first always has room"


def test_rows_without_payload_weigh_nothing() -> None:
    t = make(9, 0, "a")
    assert len(page_of([Row(Entry(t, t))] * 9, 1)) == 9


def test_payloads_are_measured_in_bytes() -> None:
    t = make(9, 0, "a")
    rows = [Row(Entry(t, t, Value('"äöü€"')))] * 5  # Of 11 bytes each.
    assert [len(page_of(rows, 11 * count)) for count in (1, 2, 3)] == [1, 2, 3]
    assert len(page_of(rows, 32)) == 2
    assert payloads_bytes(rows) == 55
