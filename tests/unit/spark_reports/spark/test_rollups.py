"""The tables of operations from groups, cells and stretches, in whatever order Spark brings them."""

from quorate.spark_reports.model import aggregates as tables
from quorate.spark_reports.reference.seen_outages import Stretch
from quorate.spark_reports.spark import rollups
from quorate.spark_reports.spark.rollups import Aside, Cell, Group

KEYS = "enq-1", "Enq"


def test_classes_and_latencies_come_of_the_same_groups() -> None:
    group = Group(*KEYS, "Enq/Ok", "ok", 5, 0.1, 0.2, 0.3, 0.4, 10, 20)
    assert list(rollups.classes([group])) == [tables.ClassCount(*KEYS, "ok", "Enq/Ok", 5)]
    assert list(rollups.latencies([group])) == [tables.Latency(*KEYS, "Enq/Ok", "ok", 5, 0.1, 0.2, 0.3, 0.4)]


def test_rows_kept_aside_of_two_kinds_may_lie_in_files_of_one_name() -> None:
    aside = [
        Aside("operations", "part-0.parquet", "bad latency", 2, "b"),
        Aside("probes", "part-0.parquet", "bad latency", 3, "a"),
        Aside("probes", "part-1.parquet", "bad latency", 4, "c"),
    ]
    assert rollups.kinds(aside) == {"operations": 2, "probes": 7}
    assert list(rollups.rejected(aside)) == [
        tables.Rejected("part-0.parquet", "bad latency", 5, "a"),
        tables.Rejected("part-1.parquet", "bad latency", 4, "c"),
    ]


def test_cells_of_time_and_cells_of_state_are_told_apart() -> None:
    """Bin 7 lies on two days; an up-set may be unknown, a nearness never is."""
    cells = [
        Cell(*KEYS, "ok", 7, 0, None, None, 5),
        Cell(*KEYS, "unknown", 7, 1, None, None, 2),
        Cell(*KEYS, "ok", 7, 1, None, None, 3),
        Cell(*KEYS, "ok", None, None, None, False, 6),
        Cell(*KEYS, "ok", None, None, 3, True, 2),
    ]
    assert list(rollups.bins(cells)) == [tables.BinCount(*KEYS, 7, 8, 0, 2)]
    assert sorted(rollups.days(cells)) == [tables.DayCount(*KEYS, 0, 5, 5), tables.DayCount(*KEYS, 1, 5, 3)]
    assert list(rollups.starts(cells)) == [
        tables.StartCount(*KEYS, "ok", None, False, 6),
        tables.StartCount(*KEYS, "ok", 3, True, 2),
    ]


def test_stretches_are_joined_in_the_order_of_their_numbers_each_pair_by_itself() -> None:
    found = rollups.seen(
        [
            (*KEYS, 10, Stretch(answered_us=100)),
            ("enq-1", "Deq", 9, Stretch(leading_us=90, open_us=90, ended_us=95)),
            (*KEYS, 2, Stretch(answered_us=20, open_us=25, ended_us=26)),
        ]
    )
    assert list(found) == [
        tables.SeenOutage("enq-1", "Deq", 1, 5, 5),
        tables.SeenOutage(*KEYS, 1, 75, 75),
    ]
