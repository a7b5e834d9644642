"""The demo's short table."""

from quorate.api_specs.cluster import parse
from quorate.cli.cluster.document import new_document
from quorate.cli.demo.table import needed_votes, outcome_rows
from quorate.measurement.rows import Ending, OperationRow
from quorate.measurement.up_times import UpTimes

DOCUMENT = parse(new_document({f"r{number}": f"http://127.0.0.1:{8000 + number}" for number in (1, 2, 3)}))


def row(object: str, operation: str, start_s: float, outcome: Ending) -> OperationRow:
    """An operation that took 0.1 s; the choice has the name of the object."""
    adt, _, name = object.partition("/")
    return OperationRow(object, adt, operation, None, name, "f1", start_s, 0.1, outcome, ())


def test_table_tells_apart_what_was_begun_with_a_replica_down() -> None:
    up_times = UpTimes(["r1", "r2"], 0.0)
    up_times.mark("r2", 2.0, up=False)
    rows = [
        row("register/x", "Read", 0.6, "ok"),
        row("queue/jobs", "Deq", 0.5, "ok"),
        row("queue/jobs", "Deq", 2.5, "unavailable"),
        row("queue/jobs", "Deq", 2.6, "unknown"),
    ]
    objects = {"queue/jobs": "jobs", "register/x": "x"}
    deq, read = outcome_rows(rows, up_times.intervals(5.0), DOCUMENT, objects)
    assert (deq["choice"], deq["begun"], deq["unknown"]) == ("jobs", 3, 1)
    assert (deq["answered_all_up"], deq["answered_some_down"]) == (1.0, 0.0)
    assert deq["median_ms"] == 100
    assert (read["answered_all_up"], read["answered_some_down"]) == (1.0, None)


def test_votes_needed_are_those_of_the_normal_class() -> None:
    assert needed_votes(DOCUMENT, "queue/jobs", "Deq") == 2
    assert needed_votes(DOCUMENT, "queue/jobs", "Enq") == 2
