"""Leases, and how much is delivered at once, by hand."""

import pytest

from quorate.adts.log import Value
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.limits import LEASE_S_MAX
from quorate.api_specs.messages import Accept, Collect
from quorate.api_specs.weights import carried_bytes
from quorate.client_sdk.protocol.core.values import Acquire, Dequeue, Enqueue, Operation
from tests.sim.schedules.hand import Hand

MAJORITIES = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
QUEUE = "queue/q"
X = Value('"x"')


def test_a_lease_of_the_longest_span_runs_for_all() -> None:
    """f1 has heard from slow replicas only, so that true time may be later than f2 knows that it can be."""
    hand = Hand(MAJORITIES, clock=ClockSettings())
    hand.ask("f2", Enqueue(QUEUE, (X,)))
    hand.start("f1", Acquire(QUEUE, 1, LEASE_S_MAX), "first")
    while "first" not in hand.outcomes:
        if isinstance(hand.packets[0].send.request, Collect):
            hand.sleep(150_000)
        hand.carry(
            "f1", *dict.fromkeys(packet.send.replica for packet in hand.packets if packet.front == "f1")
        )
    assert len(hand.result("first")) == 1
    assert hand.ask("f2", Acquire(QUEUE, 1, 30.0)) == ()


def test_a_dequeue_whose_payloads_are_elsewhere_gets_no_more_than_a_page() -> None:
    """The replica that is asked for payloads lacks the items: how heavy they are is known only once others were asked."""
    hand = Hand(MAJORITIES)
    heavy = Value(f'"{"x" * 900_000}"')
    for number in range(5):
        hand.start("f1", Enqueue(QUEUE, (heavy,)), f"{number}")
        hand.carry_until(f"{number}", "f1", "r2", "r3")
        hand.packets.clear()
    hand.lazies.clear()
    got = hand.ask("f2", Dequeue(QUEUE, 5))
    assert got
    assert sum(map(len, got)) <= hand.document.limits.page_bytes_max


def dequeue_what_one_replica_shows(hand: Hand, number: int, size: int, replica: str = "r1") -> int:
    """Under a key, while the enqueue has reached one replica only (payloads are asked of r1). How heavy the accept was."""
    hand.start("f1", Enqueue(QUEUE, (Value(f'"{number}{"x" * size}"'),)), f"{number} enqueued")
    hand.carry("f1", replica)
    hand.start("f2", Dequeue(QUEUE, key=f"{number}"), f"{number} dequeued")
    heaviest = 0
    while f"{number} dequeued" not in hand.outcomes:
        mine = [packet.send for packet in hand.packets if packet.front == "f2"]
        accepts = (send.request for send in mine if isinstance(send.request, Accept))
        heaviest = max([heaviest, *map(carried_bytes, accepts)])
        if mine:
            hand.carry("f2", mine[0].replica)
        else:
            hand.sleep()
    assert len(hand.result(f"{number} dequeued")) == 1
    hand.settle()
    hand.carry_commits("f1", "r1", "r2", "r3")
    hand.carry_commits("f2", "r1", "r2", "r3")
    return heaviest


@pytest.mark.parametrize("replica", ["r1", "r2"])
def test_a_keyed_consumer_that_is_as_quick_as_its_producer_finds_room_and_its_accepts_stay_light(
    replica: str,
) -> None:
    """What too few replicas have is remembered whole for the repeat, as far as there is room; beyond that by name."""
    hand = Hand(MAJORITIES)
    heaviest = max(dequeue_what_one_replica_shows(hand, number, 100_000, replica) for number in range(40))
    assert 100_000 < heaviest < 300_000


@pytest.mark.parametrize(("number", "size"), [(40, 200_000), (24, 900_000)])
def test_repeats_that_are_decided_together_make_no_heavy_accept(number: int, size: int) -> None:
    """What is remembered by name, for want of room, was filled in again for the repeat beside any decision: no replica took the message."""
    hand = Hand(MAJORITIES)
    for each in range(number):
        dequeue_what_one_replica_shows(hand, each, size)
    hand.ask("f1", Enqueue(QUEUE, (X,)))
    hand.carry_commits("f1", "r1", "r2", "r3")
    asked: dict[str, Operation] = {f"{each}": Dequeue(QUEUE, key=f"{each}") for each in range(number)}
    hand.start_all("f3", {"new": Dequeue(QUEUE)} | asked)
    heaviest = 0
    while "new" not in hand.outcomes:
        accepts = (each.send.request for each in hand.packets if isinstance(each.send.request, Accept))
        heaviest = max([heaviest, *map(carried_bytes, accepts)])
        if hand.packets:
            hand.carry("f3", hand.packets[0].send.replica)
        else:
            hand.sleep()
    assert hand.result("new") == (X,)
    assert 0 < heaviest < size + hand.document.limits.page_bytes_max // 8
