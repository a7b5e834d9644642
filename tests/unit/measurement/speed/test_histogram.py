"""Times as percentiles and classes, and the classes drawn in letters."""

import pytest

from quorate.measurement.speed.histogram import Class, classes, drawn, percentiles


def test_a_percentile_is_the_time_that_so_many_were_below() -> None:
    each_s = [number / 1000 for number in range(1000, 0, -1)]
    assert percentiles(each_s) == {"p50": 501.0, "p90": 901.0, "p99": 991.0, "p99.9": 1000.0}


def test_a_percentile_that_so_few_times_cannot_tell_is_left_out() -> None:
    assert percentiles([]) == {}
    assert list(percentiles([0.1])) == []
    assert list(percentiles([0.1] * 2)) == ["p50"]
    assert list(percentiles([0.1] * 99)) == ["p50", "p90"]
    assert list(percentiles([0.1] * 100)) == ["p50", "p90", "p99"]


def test_classes_reach_from_the_first_that_holds_a_time_to_the_last() -> None:
    assert classes([0.0012, 0.0015, 0.0021, 0.0045]) == [
        Class(1.0, 1.5, 2),
        Class(1.5, 2.0, 0),
        Class(2.0, 3.0, 1),
        Class(3.0, 5.0, 1),
    ]
    assert classes([]) == []


def test_times_beyond_all_classes_count_in_the_outermost() -> None:
    assert classes([0.0]) == [Class(0.0, 0.001, 1)]
    assert classes([1e6]) == [Class(500_000.0, 700_000.0, 1)]


def test_a_drawing_shows_each_class_with_its_count() -> None:
    found = [Class(1.0, 1.5, 1), Class(1.5, 2.0, 0), Class(2.0, 3.0, 2000)]
    assert drawn(found, 40, is_ascii=True) == [
        "1 to 1.5 ms     1 |#",
        "1.5 to 2 ms     0 |",
        "  2 to 3 ms 2,000 |" + "#" * 21,
    ]
    assert drawn(found, 40, is_ascii=False)[0] == "1 to 1.5 ms     1 |▏"
    assert drawn([Class(1.0, 1.5, 3), Class(1.5, 2.0, 8)], 23, is_ascii=False)[0].endswith("|███")


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_drawing_keeps_to_its_columns(is_ascii: bool) -> None:
    found = classes([10**power / 1e6 for power in range(9)] * 1000)
    lines = drawn(found, 78, is_ascii=is_ascii)
    assert max(map(len, lines)) == 78
    assert all(line.isascii() for line in lines) == is_ascii
    assert drawn([], 78, is_ascii=is_ascii) == []
