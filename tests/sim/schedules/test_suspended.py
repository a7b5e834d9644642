"""A front end whose machine is suspended, or gone for long: its monotonic clock stands still meanwhile, and others' do not."""

import copy

import pytest

from quorate.adts.log import Value
from quorate.api_specs.messages import Batch
from quorate.client_sdk.protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Enqueue,
    PutIfAbsent,
    QueueSize,
    Read,
    Write,
)
from quorate.replica.data_folder.replacement import _is_forgotten, union
from quorate.simulation.world.in_memory import InMemoryReplica
from quorate.timestamps.clock import Now
from tests.sim.planted.played import QUEUE, Played, _apply

KEY = "dictionary/d/k"
X, Y = Value('"x"'), Value('"y"')


@pytest.mark.parametrize("is_dequeued", [True, False])
def test_an_old_entry_of_one_log_is_counted(is_dequeued: bool) -> None:
    """Its front end is gone, and two replicas are fenced above it: a count has its fate decided, however old it is."""
    hand = Played()
    if is_dequeued:
        hand.ask("f0", Enqueue(QUEUE, (Y,)))
        hand.ask("f0", Dequeue(QUEUE))
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.reach("f1", "r1")
    hand.vanish("f1")
    hand.at("f3", Enqueue(QUEUE, (Y,)), "r2", "r3")
    hand.fence("r2", "r3")
    hand.grow_old()
    hand.start("f2", QueueSize(QUEUE), "size")
    hand.carry_until("size", "f2", *hand.replicas)
    hand.must_be_known("size")


class Suspended(Played):
    """A world in which the monotonic clock of f4 stood still for so long."""

    stood_still_s = 0.0

    def _now(self, front: str = "") -> Now:
        now = super()._now(front)
        return Now(now.mono_s - self.stood_still_s, now.wall_us) if front == "f4" else now


def test_an_answer_from_before_a_burial_is_none_for_a_machine_that_was_suspended() -> None:
    hand = Suspended()
    hand.ask("f1", Write(KEY, X))
    hand.carry_commits("f1", *hand.replicas)
    hand.at("f2", Write(KEY, None), "r2", "r3")
    hand.carry_commits("f2", "r2", "r3")
    hand.packets.clear()
    hand.grow_old()
    hand.start("f4", Read(KEY), "asked", is_noted=False)
    (slow,) = [packet for packet in hand.of("f4") if packet.send.replica == "r1"]
    batch = Batch(hand.document.hash, slow.send.requests)
    answer = hand.replicas["r1"].exchange(batch, hand._now("r1").wall_us)
    hand.drop("f4")
    begun_us = hand.now_us
    with hand.stopped("f4"):
        hand.ripen(KEY)
        hand.bury(KEY)
        hand.stood_still_s = (hand.now_us - begun_us) / 1e6
    hand.at("f4", Read(KEY), "r2", "r3")
    tokens = [slow.send.token for _ in slow.send.requests]
    hand._obey("f4", hand._fronts["f4"].deliver("r1", tokens, answer, slow.sent, hand._now("f4")))
    hand.at("f4", Read(KEY), "r2", "r3")
    hand.judge()


def test_a_backup_brings_no_forgotten_key_back_though_somebody_has_asked_for_it_since() -> None:
    """A compare-and-set that fails leaves the key known, with promises, and without a value."""
    hand = Played()
    hand.ask("f1", PutIfAbsent(KEY, X))
    hand.carry_commits("f1", *hand.replicas)
    backup = copy.deepcopy(hand.replicas["r1"].store)
    hand.ask("f2", Write(KEY, None))
    hand.carry_commits("f2", *hand.replicas)
    hand.grow_old()
    hand.ripen(KEY)
    hand.bury(KEY)
    assert hand.ask("f3", CompareAndSet(KEY, Y, X)) is False
    hand.carry_commits("f3", *hand.replicas)
    sources = {"r1": backup, "r2": hand.replicas["r2"].store, "r3": hand.replicas["r3"].store}
    made = InMemoryReplica(hand.document, "r1")
    made.store._floor = max(each.floor() for each in sources.values())
    if not _is_forgotten(KEY, sources, hand.document):  # type: ignore[arg-type]
        _apply(made.store, KEY, union(KEY, sources.values()))
    hand.replicas["r1"] = made
    for other in ("r2", "r3"):
        hand.at(f"reads{other}", Read(KEY), "r1", other)
    hand.judge()
