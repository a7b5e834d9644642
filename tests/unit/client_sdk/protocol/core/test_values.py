"""The values that go into the front-end machine and come out: what they say of themselves."""

from typing import get_args

import pytest
from msgspec.structs import fields

from quorate.adts.times import NO_TIMES, Times
from quorate.api_specs.messages import Collect, Scan
from quorate.client_sdk.protocol.core.values import (
    AT_ONCE,
    Acquire,
    Effects,
    Enqueue,
    Operation,
    Send,
    Spans,
)


def test_spans_are_counted_from_the_present_in_microseconds() -> None:
    assert Spans(1.5, 60.0).times(1_000) == Times(1_501_000, 60_001_000)


def test_spans_may_be_counted_from_a_moment_before() -> None:
    """A repeat then says the same, whenever it comes."""
    assert Spans(1.5, 60.0, since_us=500).times(1_000) == Times(1_500_500, 60_000_500)


@pytest.mark.parametrize(
    ("spans", "times"),
    [(Spans(delay_s=2.0), Times(2_000_007, 0)), (Spans(expires_s=2.0), Times(0, 2_000_007))],
)
def test_a_span_of_nought_is_no_time_at_all_whatever_the_other_is(spans: Spans, times: Times) -> None:
    assert spans.times(7) == times


def test_an_enqueue_is_due_at_once_and_never_expires_unless_it_says_so() -> None:
    assert Enqueue("queue/q", ()).spans == AT_ONCE
    assert AT_ONCE.times(1_000) == NO_TIMES


def test_a_send_of_several_requests_is_known_by_its_first() -> None:
    look, scan = Collect("queue/q"), Scan("dictionary/d/")
    assert Send("r1", (look, scan), 1).request is look


def test_a_send_wants_a_reply_and_repeats_nothing_unless_it_says_so() -> None:
    send = Send("r1", (Collect("queue/q"),), 1)
    assert (send.lazy, send.repeats) == (False, 0)
    assert Effects((send,), (), None).forwards == ()


@pytest.mark.parametrize("operation", get_args(Operation))
def test_every_operation_names_its_object_first_and_cannot_be_changed(operation: type[Operation]) -> None:
    assert fields(operation)[0].name == "object"
    assert operation.__struct_config__.frozen


def test_an_acquire_waits_for_nobody_and_delivers_without_end_unless_it_says_so() -> None:
    acquire = Acquire("queue/q", 1, 30.0)
    assert (acquire.wait_s, acquire.deliveries_max, acquire.holder) == (0.0, 0, "")
