"""A figure: what is counted, and how it reads."""

from quorate.measurement.speed.figures import COLUMNS, figure_of, lines_of, table


def test_a_batch_counts_for_its_items_and_a_failure_for_none() -> None:
    found = figure_of("batches", "batch enqueue", 4, 500, [0.1, 0.2, 0.1], 0.3, {"Unavailable": 2})
    assert (found.count, found.items_per_s, found.failed) == (3, 5000.0, {"Unavailable": 2})
    assert list(lines_of(found, is_ascii=True)) == [
        "batch enqueue, 4 in flight: 5,000 items a second",
        "  3 operations of 500 items in 0.3 s; failed: 2 Unavailable",
        "  p50 100 ms",
        "   70 to 100 ms 2 |" + "#" * 61,
        "  100 to 150 ms 0 |",
        "  150 to 200 ms 1 |" + "#" * 30,
    ]


def test_a_figure_of_nothing_but_failures_is_told_as_such() -> None:
    found = figure_of("queue", "enqueue", 1, 1, [], 0.0, {"LimitReached": 3, "Closed": 1})
    assert list(lines_of(found, is_ascii=False)) == [
        "enqueue, 1 in flight: 0 a second",
        "  0 operations in 0 s; failed: 1 Closed, 3 LimitReached",
    ]


def test_the_table_has_a_line_for_each_figure_and_keeps_to_the_columns() -> None:
    few = figure_of("keyed", "keyed enqueue", 1, 1, [0.001, 0.001], 0.5, {})
    many = figure_of("dictionary", "compare-and-set", 1024, 1, [123.4567] * 1000, 0.001234, {})
    head, first, second = table([few, many])
    assert head.replace(" ms", "").split()[-4:] == ["p50", "p90", "p99", "p99.9"]
    assert first.split() == ["keyed", "enqueue", "1", "4", "1"]
    assert second.split() == ["compare-and-set", "1024", "810,400", *["123,500"] * 4]
    assert max(map(len, (head, first, second))) <= COLUMNS
