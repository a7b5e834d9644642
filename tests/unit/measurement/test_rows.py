"""Rows of operations."""

import pytest

from quorate.adts.library import Account, Counter
from quorate.adts.log import Value
from quorate.adts.plain_class import PlainClass
from quorate.adts.specification import Invocation
from quorate.client_sdk.protocol.core.values import (
    Acquire,
    Dequeue,
    Done,
    Failed,
    Invoke,
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
        (Settle("queue/q", "ack", ("1/x",)), "Ack"),
    ],
)
def test_operations_are_named_as_in_their_specification(operation: Operation, name: str) -> None:
    assert operation_name(operation) == name


@pytest.mark.parametrize(
    ("call", "ended", "event_class"),
    [
        (("Counter", "add"), "add/Ok", "Blind/Ok"),
        (("Counter", "value"), "value/Ok", "Call/Ok"),
        (("Account", "debit"), "debit/Overdraft", "Call/Ok"),
    ],
)
def test_a_call_of_ones_own_type_is_what_quorums_know_it_as(
    call: tuple[str, str], ended: str, event_class: str
) -> None:
    name, method = call
    found = PlainClass({"Counter": Counter, "Account": Account}[name])
    operation = Invoke(f"{name.lower()}/x", found, Invocation(method, ()))
    for outcome in (Done(None, ended, frozenset()), Failed("unavailable", "", definite=True)):
        made = operation_row(
            operation, outcome, adt=name.lower(), choice="c", front_end="f1", start_s=5.0, latency_s=0.25
        )
        assert made.operation == event_class.partition("/")[0]
        assert made.event_class == (event_class if outcome.__class__ is Done else None)


def row(outcome: Outcome) -> OperationRow:
    """A dequeue that came to `outcome`."""
    return operation_row(
        Dequeue("queue/jobs"), outcome, adt="queue", choice="c", front_end="f1", start_s=5.0, latency_s=0.25
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
