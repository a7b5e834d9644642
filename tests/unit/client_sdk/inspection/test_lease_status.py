"""How items of a queue stand with acquire, from a summary, a log and a moment; and how that is told."""

import pytest

from quorate.adts.log import Dead, Entry, Leased, Summary, Value
from quorate.adts.times import Times, entry_id
from quorate.api_specs.messages import Row
from quorate.client_sdk.inspection.lease_status import LeaseStatus, lease_statuses_of
from quorate.timestamps.timestamp import make

NOW_US = 1_700_000_000_000_000  # 2023-11-14 22:13:20 UTC
SECOND = 1_000_000
T = [make(NOW_US - 100 + number, 0, "s") for number in range(5)]


def entry(number: int, times: Times | None = None) -> Entry:
    id = T[number] if times is None else entry_id(T[number], "", times)
    return Entry(id, T[number], Value('"x"'))


def record(until_us: int = 0, deliveries: int = 1, expires_us: int = 0, *, is_held: bool = False) -> Leased:
    return Leased(entry(1), until_us, deliveries, is_held, expires_us)


def only(summary: Summary, *rows: Entry) -> LeaseStatus | None:
    found = lease_statuses_of(summary, tuple(map(Row, rows)), NOW_US)
    assert len(found) <= 1
    return found.get(T[1])


@pytest.mark.parametrize(
    ("kept", "state", "words"),
    [
        (record(NOW_US + 1, is_held=True), "held", "held until 22:13:21 UTC, delivery 1"),
        (record(NOW_US, 3, is_held=True), "over", "lease over since 22:13:20 UTC, delivery 3"),
        (record(NOW_US + 90 * SECOND, 2), "delayed", "delayed until 22:14:50 UTC, delivered twice"),
        (record(NOW_US + 90 * SECOND, 0), "delayed", "delayed until 22:14:50 UTC"),
        (record(NOW_US + 86_400 * SECOND, 0), "delayed", "delayed until 2023-11-15 22:13:20 UTC"),
        (record(), "due", "waits again, delivered once"),
        (record(NOW_US, 0), "due", "waits"),
        (record(0, 5, NOW_US + SECOND), "due", "waits again, delivered 5 times, expires 22:13:21 UTC"),
        (record(0, 1, NOW_US), "expired", "expired 22:13:20 UTC, delivered once"),
        (
            record(NOW_US + SECOND, 1, NOW_US, is_held=True),
            "held",
            "held until 22:13:21 UTC, delivery 1, expires 22:13:20 UTC",
        ),
    ],
)
def test_what_an_acquire_has_met(kept: Leased, state: str, words: str) -> None:
    status = only(Summary(horizon=T[1], leases=(kept,)))
    assert status is not None
    assert (status.state, status.words(NOW_US)) == (state, words)


@pytest.mark.parametrize(
    ("dead", "words"),
    [
        (Dead(entry(1), "rejected", 1), "dead letter: rejected, delivered once"),
        (Dead(entry(1), "deliveries", 4), "dead letter: too many deliveries, delivered 4 times"),
        (Dead(entry(1), "expired", 0), "dead letter: expired, never delivered"),
    ],
)
def test_dead_letters(dead: Dead, words: str) -> None:
    status = only(Summary(horizon=T[1], dead=(dead,)))
    assert status is not None
    assert (status.state, status.words(NOW_US)) == ("dead", words)


def test_an_entry_of_the_log_stands_by_its_own_times_until_it_is_consumed() -> None:
    delayed = entry(1, Times(due_us=NOW_US + 1))
    assert only(Summary(), entry(1)) is None
    assert only(Summary(), delayed) == LeaseStatus("delayed", NOW_US + 1)
    assert only(Summary(), entry(1, Times(due_us=NOW_US))) == LeaseStatus("due", NOW_US)
    assert only(Summary(), entry(1, Times(expires_us=NOW_US))) == LeaseStatus("expired", expires_us=NOW_US)
    assert only(Summary(horizon=T[1]), delayed) is None, "a dequeue has taken it"


def test_the_summary_counts_where_the_log_still_has_the_entry() -> None:
    kept = Leased(entry(1), NOW_US + 1, 1, is_held=True)
    assert only(Summary(leases=(kept,)), entry(1, Times(due_us=NOW_US - 5))) == LeaseStatus(
        "held", NOW_US + 1, 1
    )
