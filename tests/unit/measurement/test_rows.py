"""Rows of operations."""

import pytest

from quorate.adts.log import Value
from quorate.client_sdk.protocol.core.values import (
    Acquire,
    Dequeue,
    Done,
    Failed,
    Items,
    Operation,
    Outcome,
    Read,
    Settle,
    Write,
)
from quorate.measurement.rows import OperationRow, object_of, operation_name, operation_row


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        (Read("register/x"), "Read"),
        (Read("dictionary/d/k"), "Get"),
        (Write("register/x", Value("1")), "Write"),
        (Write("dictionary/d/k", Value("1")), "Put"),
        (Write("dictionary/d/k", None), "Delete"),
        (Items("dictionary/d"), "Items"),
        (Acquire("queue/q", 1, 5.0), "Acquire"),
        (Settle("queue/q", "accept", ("1/x",)), "Accept"),
    ],
)
def test_operations_are_named_as_in_their_specification(operation: Operation, name: str) -> None:
    assert operation_name(operation) == name


def row(outcome: Outcome) -> OperationRow:
    """A dequeue that came to `outcome`."""
    return operation_row(
        Dequeue("queue/jobs"), outcome, choice="c", front_end="f1", start_s=5.0, latency_s=0.25
    )


def test_a_done_operation_has_its_event_class_and_who_answered_in_order() -> None:
    done = row(Done((), "Deq/Empty", frozenset({"r2", "r1"})))
    assert (done.outcome, done.operation, done.event_class) == ("ok", "Deq", "Deq/Empty")
    assert (done.object, done.adt, done.answered) == ("queue/jobs", "queue", ("r1", "r2"))


def test_rows_name_a_dictionary_rather_than_its_key() -> None:
    assert object_of(Read("dictionary/d/k")) == "dictionary/d"
    assert object_of(Read("register/x")) == "register/x"


def test_a_failed_operation_is_unavailable_only_if_it_certainly_did_not_happen() -> None:
    assert row(Failed("unavailable", "", definite=True)).outcome == "unavailable"
    unknown = row(Failed("unknown", "", definite=False, answered=frozenset({"r1"})))
    assert (unknown.outcome, unknown.event_class, unknown.answered) == ("unknown", None, ("r1",))
