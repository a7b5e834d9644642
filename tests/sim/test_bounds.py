"""What a front end sends stays within what a replica takes, also where much is left over from others."""

from quorate.adts.log import Value
from quorate.api_specs.limits import Limits
from quorate.client_sdk.effects import Enqueue, QueueSize
from tests.sim.hand import Hand
from tests.sim.test_directed import MAJORITIES, QUEUE

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
