"""What a front end sends stays within what a replica takes, also where much is left over from others."""

import msgspec
import pytest

from quorate.adts.log import Value
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Accept
from quorate.client_sdk.protocol.core.values import Dequeue, Enqueue, QueueSize
from tests.sim.schedules.hand import Hand
from tests.sim.schedules.test_directed import MAJORITIES, QUEUE

ITEMS = tuple(Value(str(number)) for number in range(7))


def test_payloads_are_asked_for_page_by_page() -> None:
    """An enqueue of seven items has reached r1 only, in a cluster whose replies hold two entries. A Size must store all
    of them elsewhere before it counts them, and knows none of their values: one request for all of them would be
    longer than replicas take, and every Size would fail."""
    hand = Hand(MAJORITIES, limits=Limits(page_entries_max=2))
    hand.start("f1", Enqueue(QUEUE, ITEMS), "items")
    hand.carry("f1", "r1")
    hand.drop("f1")
    hand.start("f2", QueueSize(QUEUE), "size")
    hand.carry_until("size", "f2", "r1", "r2")
    assert hand.result("size").size == len(ITEMS)


@pytest.mark.parametrize("collect", [True, False])
def test_what_many_take_at_once_goes_along_only_where_logs_keep_it(collect: bool) -> None:
    """Callers whose takes are decided together may get more than one message holds."""
    hand = Hand(MAJORITIES, collect=collect)
    large = Value('"' + 1000 * "x" + '"')
    for _ in range(9):
        hand.ask("f1", Enqueue(QUEUE, (large,)))
    for number in range(9):
        hand.start("f1", Dequeue(QUEUE), str(number))
    accepts: list[Accept] = []
    while not accepts:
        accepts = [each.send.request for each in hand.packets if isinstance(each.send.request, Accept)]
        hand.carry("f1", "r1", "r2")
    assert (len(msgspec.msgpack.encode(accepts[0])) > len(large)) is not collect
    hand.settle()
    assert all(hand.result(str(number)) == (large,) for number in range(9))
