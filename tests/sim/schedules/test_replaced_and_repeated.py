"""An enqueue under a key, whose entry one replica holds below a decided horizon, is repeated after another replica was replaced."""

import copy

import pytest

from quorate.adts.log import Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument
from quorate.api_specs.messages import Accept, Append, Collect
from quorate.client_sdk.protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    QueueSize,
    Read,
    Write,
)
from quorate.replica.data_folder.replacement import agreed, union
from quorate.replica.protocol.log import PutReservation
from quorate.simulation.memory.replica import InMemoryReplica
from tests.sim.planted.played import QUEUE, Played, _apply
from tests.sim.schedules import hand as hands

X, Y, Z = Value('"x"'), Value('"y"'), Value('"z"')
REGISTER = "register/r"


def test_a_replaced_replica_does_not_answer_that_it_stored_what_its_store_had_refused() -> None:
    """Enq(x) under a key has reached r1 only, when its caller vanishes. y, later, is stored at r2 and r3, and taken there: both are fenced above x, and
    the horizon has passed it. r3's disk is lost, and a store takes its place that is made from the others': it has x from r1. Then the key is
    repeated, and all is dequeued."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.reach("f1", "r1")
    hand.vanish("f1")
    hand.at("f2", Enqueue(QUEUE, (Y,)), "r2", "r3")
    hand.at("f3", Dequeue(QUEUE), "r2", "r3")
    hand.lazies.clear()

    hand.replace("r3")
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "x")
    hand.settle()
    hand.judge()


def test_a_replaced_replica_holds_nothing_under_a_key_where_nothing_was_agreed() -> None:
    """Enq(x) under a key has reached r1 only: it certainly did nothing. y is enqueued. r3's new store is made from the others': what r1 alone held must
    not be what a repeat goes on from, for then x would come out before y."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "first")
    hand.reach("f1", "r1")
    while "first" not in hand.outcomes:
        while hand.packets:
            hand.fail("f1", definite=True)
        hand.sleep()
    hand.ask("f2", Enqueue(QUEUE, (Y,)))
    hand.replace("r3")
    hand.ask("f4", Enqueue(QUEUE, (X,), "k"))
    hand.judge()


def test_what_was_complete_at_the_lost_replica_and_was_taken_is_not_stored_anew() -> None:
    """x, under a key, is stored at r1 and r2, as its taker knows, and is taken at r1 and r3. r1's store is replaced, and the key repeated."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.reach("f1", "r1", "r2")
    hand.vanish("f1")
    hand.at("f3", QueueSize(QUEUE), "r1", "r2")
    hand.at("f3", Dequeue(QUEUE), "r1", "r3")
    hand.lazies.clear()
    hand.replace("r1")
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "x")
    hand.settle()
    hand.judge()


def test_a_repeat_learns_what_is_decided_where_the_new_store_cannot_say() -> None:
    """x has reached r1 only when it is taken, which the decision notes. r2 is fenced, r3 replaced: all have answered the repeat, and none stores x."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.reach("f1", "r1")
    hand.vanish("f1")
    hand.at("f2", Enqueue(QUEUE, (Y,)), *hand.replicas)
    hand.at("f3", Dequeue(QUEUE), "r1", "r3")
    hand.fence("r2")
    hand.lazies.clear()
    hand.replace("r3")
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "x")
    hand.settle()
    hand.must_be_known("x")
    hand.judge()


def agreed_on_and_stored_nowhere(hand: Played) -> None:
    """All hold x under its key, and none has it; y is waiting."""
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.vanish("f1")
    hand.at("f2", Enqueue(QUEUE, (Y,)), *hand.replicas)


def take_by_fences_of(hand: Played, *replicas: str) -> None:
    """y is taken, and these alone were asked to fence."""
    hand.start("f3", Dequeue(QUEUE), "y")
    while any(
        isinstance(each.send.request, Collect) and each.send.replica in replicas for each in hand.of("f3")
    ):
        hand.move("f3", *replicas)
    hand.lose(Collect)
    hand.finish("y", "f3", *hand.replicas)
    assert hand.result("y") == (Y,)


def test_a_new_store_takes_nothing_below_a_horizon_for_which_the_lost_one_alone_was_fenced() -> None:
    """Where one replica's fence is enough: x, repeated, was stored by all below the horizon, and never seen again."""
    hand = Played({"Enq/Ok": (0, 3), "Deq/Ok": (1, 3)})
    agreed_on_and_stored_nowhere(hand)
    take_by_fences_of(hand, "r3")
    hand.lazies.clear()
    hand.replace("r3")
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "x")
    hand.settle()
    hand.judge()


def test_stores_made_from_backups_of_several_moments_take_nothing_below_the_horizon() -> None:
    """Of r2 and r3 before a dequeue fenced them, of r1 after it was accepted there."""
    hand = Played()
    agreed_on_and_stored_nowhere(hand)
    stores = {name: copy.deepcopy(hand.replicas[name].store) for name in ("r2", "r3")}
    take_by_fences_of(hand, "r2", "r3")
    hand.carry_commits("f3", "r1")
    stores["r1"] = copy.deepcopy(hand.replicas["r1"].store)
    held = [stores[name].reservation(QUEUE, at) for name in stores for _, at in stores["r1"].reserved()]
    for name in sorted(stores):
        made = hand.replicas[name] = InMemoryReplica(hand.document, name)
        _apply(made.store, QUEUE, union(QUEUE, stores.values()))
        for of, key in stores["r1"].reserved():
            made.store.apply(PutReservation(of, key, agreed(held, ())))
        made.store.commit()
    hand.packets.clear()
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "x")
    hand.settle()
    hand.judge()


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_register_that_is_read_at_one_replica_can_be_read_after_another_was_replaced(
    monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    """A compare-and-set was accepted at r2 alone when its front end died, a write stored at r1 alone."""
    rule = ChoiceRule("register/*", {"Write/Ok": (0, 3), "Read/Ok": (1, 0)})
    monkeypatch.setattr(hands, "_rules", lambda *_, **__: (rule,))
    hand = Played()
    hand.ask("f0", Write(REGISTER, X))
    hand.carry_commits("f0", *hand.replicas)
    hand.start("f1", Write(REGISTER, Y), "y")
    hand.reach("f1", "r1")
    hand.vanish("f1")
    hand.start("f2", CompareAndSet(REGISTER, X, Z), "z")
    hand.go_until(Accept, "f2", "r2", "r3")
    hand.reach("f2", "r2")
    hand.vanish("f2")
    hand.lazies.clear()
    if is_replaced:
        hand.replace("r3")
    hand.start("f4", Read(REGISTER), "read")
    hand.settle()
    hand.must_be_known("read")
    hand.judge()


def test_what_reached_one_of_two_replicas_is_not_certainly_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one's new store is made from the first alone, which cannot tell whether the lost one held the same: a repeat is done in the first
    attempt's place, before what was enqueued in between."""
    monkeypatch.setattr(
        hands, "ClusterDocument", lambda name, all_, *rest: ClusterDocument(name, all_[:2], *rest)
    )
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "first")
    hand.reach("f1", "r1")
    while "first" not in hand.outcomes:
        while hand.packets:
            hand.fail("f1", definite=True)
        hand.sleep()
    first = hand.outcomes["first"]
    assert not isinstance(first, Done)
    assert not first.definite


def test_a_backup_of_the_lost_store_tells_nothing_of_what_was_agreed_since() -> None:
    """Enq(x) under a key has reached r1 only: it certainly did nothing. y is enqueued. r3's new store is made from the others' and from a backup of its own,
    of before. The key is repeated: x comes after y."""
    hand = Played()
    hand.ask("f0", Enqueue(QUEUE, (Z,)))
    backup = copy.deepcopy(hand.replicas["r3"].store)
    hand.start("f1", Enqueue(QUEUE, (X,), "k"), "first")
    hand.reach("f1", "r1")
    while "first" not in hand.outcomes:
        while hand.packets:
            hand.fail("f1", definite=True)
        hand.sleep()
    hand.ask("f2", Enqueue(QUEUE, (Y,)))
    current = [hand.replicas[name].store for name in ("r1", "r2")]
    made = InMemoryReplica(hand.document, "r3")
    _apply(made.store, QUEUE, union(QUEUE, [*current, backup]))
    for name, key in {held for store in (*current, backup) for held in store.reserved()}:
        now = [store.reservation(name, key) for store in current]
        made.store.apply(PutReservation(name, key, agreed([*now, backup.reservation(name, key)], now)))
    made.store.commit()
    hand.replicas["r3"] = made
    hand.packets.clear()
    hand.ask("f4", Enqueue(QUEUE, (X,), "k"))
    hand.judge()
