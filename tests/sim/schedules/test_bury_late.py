"""Burying a deleted key while something of its life is under way: a catch-up, an old decision, an old answer; and clocks that step."""

from functools import partial

import pytest

from quorate.adts.log import Value
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.messages import Accept, Append, Batch, Changed, Collect, Collected, Commit
from quorate.client_sdk.protocol.core.values import (
    CollectTombstone,
    CompareAndSet,
    PutIfAbsent,
    Read,
    Write,
)
from quorate.replica.protocol import catch_up
from tests.sim.planted.played import PAGE, Played, _apply

KEY, OTHER = "dictionary/d/k", "dictionary/d/other"
NO, OLD = Value('"no"'), Value('"old"')
HOUR_US = 3_600_000_000


def test_what_a_catch_up_brings_below_a_fence_does_not_outlive_the_deletion() -> None:
    """k is put and deleted at r1 and r2, while r3 is away; that the put is complete is told, and of the deletion it is not. A compare-and-set
    that fails fences all. r3 asks r1 for what it lacks, and the answer is under way while the deletion is decided and told: the put is
    complete, so that it may be installed below the fence."""
    hand = Played()
    hand.at("f1", Write(KEY, OLD), "r1", "r2")
    hand.carry_commits("f1", "r1", "r2")
    hand.at("f2", Write(KEY, None), "r1", "r2")
    hand.lazies.clear()
    hand.grow_old()
    hand.start("f3", CompareAndSet(KEY, OLD, OLD), "compared")
    hand.carry("f3", "r1", "r2", "r3")
    hand.settle()
    assert hand.result("compared") is False

    here, progress = hand.replicas["r3"].store, catch_up.resumed(0)
    progress.latest = hand.replicas["r1"].store.arrival()
    progress.begin()
    asked = progress.request(PAGE)
    changed = hand._told("r1", asked)
    assert isinstance(changed, Changed)
    (lack,) = progress.hear(asked, changed, here)
    told = hand._told("r1", lack.request(here, PAGE))
    assert isinstance(told, Collected)

    hand.ripen(KEY)
    room = hand.replicas["r3"].with_room
    catch_up.install(lack, told, here, partial(hand._told, "r3"), room, partial(_apply, here))
    hand.bury(KEY)
    for replica in ("r1", "r2"):
        hand.at(f"reads{replica}", Read(KEY), replica, "r3")
    hand.judge()


@pytest.mark.parametrize("late", [Accept, Commit])
def test_a_decision_that_was_written_back_after_the_deletion_does_not_come_back(late: type) -> None:
    """k is set by a decision at r1 and r2, of which nobody hears that it is decided; and deleted everywhere. Much later a compare-and-set that
    fails meets it at r1 and r3, and writes it back under a term above the deletion. Its messages to r2 are slow, and come when the key
    is forgotten. A floor of the deletion's own time would let them in."""
    hand = Played()
    hand.at("f1", PutIfAbsent(KEY, OLD), "r1", "r2")
    hand.vanish("f1")
    hand.ask("f2", Write(KEY, None))
    hand.carry_commits("f2", *hand.replicas)
    hand.grow_old()
    hand.start("f3", CompareAndSet(KEY, NO, OLD), "compared")
    hand.finish("compared", "f3", "r1", "r3")
    assert hand.result("compared") is False
    slow = [each.send.request for each in (*hand.packets, *hand.lazies) if each.send.replica == "r2"]
    assert any(isinstance(request, late) for request in slow)
    hand.vanish("f3")
    hand.ripen(KEY)
    hand.bury(KEY)
    for request in slow:
        if isinstance(request, late):
            hand.replicas["r2"].exchange(Batch(hand.document.hash, (request,)), hand._now().wall_us)
    for replica in ("r1", "r3"):
        hand.at(f"reads{replica}", Read(KEY), replica, "r2")
    hand.judge()


def test_a_deletion_is_not_old_for_a_clock_that_steps_ahead() -> None:
    """A put of before the deletion may still be under way, and would come back."""
    hand = Played(clock=ClockSettings())
    hand.ask("f1", Write(KEY, OLD))
    hand.ask("f1", Write(KEY, None))
    hand.wall_errors_us |= dict.fromkeys((*hand.replicas, "janitor"), HOUR_US)
    for _ in range(3):
        assert hand.ask("janitor", CollectTombstone(KEY)) is False
        hand.carry_commits("janitor", *hand.replicas)
        hand.sleep(1_000_000)


def test_a_floor_between_a_deletions_term_and_its_horizon_does_not_stand_for_it() -> None:
    """r1 never knew k, and its floor, another key's, lies above the term of k's deletion and below its horizon: what a reader once wrote back
    to r1 would still be taken there."""
    hand = Played()
    hand.ask("f1", Write(OTHER, OLD))
    hand.ask("f1", Write(OTHER, None))
    hand.carry_commits("f1", *hand.replicas)
    hand.grow_old()
    hand.ripen(OTHER)
    hand.start("f3", CompareAndSet(KEY, OLD, None), "deleted")  # It has its term; its packets are slow.
    hand.start("f4", CompareAndSet(OTHER, NO, OLD), "compared", is_noted=False)
    hand.reach("f4", "r1")
    hand.vanish("f4")
    hand.start("f5", Write(KEY, OLD), "put")
    hand.reach("f5", "r2")
    hand.vanish("f5")
    hand.start("f6", Read(KEY), "read")
    hand.carry("f6", "r1", "r2")
    of_reader = [packet for packet in hand.of("f6") if isinstance(packet.send.request, Append)]
    hand.packets = [packet for packet in hand.packets if packet.front != "f6"] + of_reader
    hand.finish("read", "f6", "r2", "r3")
    assert hand.result("read") == OLD
    (slow,) = [packet for packet in hand.of("f6") if packet.send.replica == "r1"]
    hand.drop("f6")
    hand.lazies.clear()
    hand.finish("deleted", "f3", "r2", "r3")
    assert hand.result("deleted") is True
    hand.drop("f3")
    hand.carry_commits("f3", "r2", "r3")
    hand.grow_old()
    hand.bury(OTHER)
    assert hand.replicas["r1"].store.state(KEY) is None
    hand.ripen(KEY)
    hand.bury(KEY)
    hand.replicas["r1"].exchange(Batch(hand.document.hash, slow.send.requests), hand._now().wall_us)
    hand.at("reads", Read(KEY), "r1", "r2")
    hand.judge()


def test_a_recovery_that_comes_to_its_turn_after_the_burial_brings_nothing_back() -> None:
    """Put(k) has reached r1, a failed compare-and-set has it decided and fences all, and its front end asks for its recovery when it is deposed, and
    stopped. The key is deleted and forgotten. The front end goes on, and begins a newer operation, whose batch carries the recovery along:
    above a forgotten key the entry would be in force."""
    hand = Played()
    hand.start("f1", Write(KEY, OLD), "put")
    hand.reach("f1", "r1")
    hand.at("f2", CompareAndSet(KEY, NO, OLD), *hand.replicas)
    hand.carry_commits("f2", *hand.replicas)
    hand.carry("f1", "r2", "r3")
    hand.drop("f1")
    hand.go_until(Collect, "f1")
    hand.start("f9", CompareAndSet(KEY, NO, OLD), "other", is_noted=False)
    hand.reach("f9", "r2", "r3")
    hand.vanish("f9")
    hand.carry("f1", "r2")
    under_way, hand.packets = hand.packets, []
    hand.at("f5", Read(KEY), *hand.replicas)  # It took effect.
    hand.at("f3", Write(KEY, None), *hand.replicas)
    hand.carry_commits("f3", *hand.replicas)
    with hand.stopped("f1"):
        hand.grow_old()
        hand.ripen(KEY)
        hand.bury(KEY)
    hand.packets = under_way
    hand.start("f1", CompareAndSet(KEY, NO, NO), "new")
    hand.carry("f1", "r3")
    hand.settle()
    hand.at("f6", Read(KEY), *hand.replicas)
    hand.judge()
