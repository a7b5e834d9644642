"""Burying a deleted key, against what a front end, a late message or a young deletion may still know of it."""

import pytest

from quorate.adts.log import Value
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Accept, Batch, Commit
from quorate.client_sdk.protocol.core.values import (
    CollectTombstone,
    CompareAndSet,
    Failed,
    Items,
    PutIfAbsent,
    Read,
    Write,
)
from tests.sim.schedules.hand import Hand

MAJORITIES = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
KEY = "dictionary/d/k"
OLD, NEW = Value('"old"'), Value('"new"')


def pass_time(hand: Hand, seconds: float) -> None:
    hand._now_us += int(seconds * 1e6)


def collect_tombstone(hand: Hand) -> None:
    pass_time(hand, hand.document.memory_s + 1)
    hand.ripen(KEY)
    hand.bury(KEY)


def deliver_commits(hand: Hand) -> None:
    for front in ("f1", "f2", "janitor"):
        hand.carry_commits(front, *hand.replicas)


@pytest.mark.parametrize("made_by", [Write(KEY, OLD), PutIfAbsent(KEY, OLD)], ids=["put", "decision"])
def test_a_front_end_that_knew_a_collected_key_does_not_answer_from_memory(
    made_by: Write | PutIfAbsent,
) -> None:
    """f1 knows the value; f2 deletes the key; it is collected. f1 hears nothing of the deletion, which is gone everywhere."""
    hand = Hand(MAJORITIES)
    hand.ask("f1", made_by)
    assert hand.ask("f1", Read(KEY)) == OLD
    deliver_commits(hand)
    hand.ask("f2", Write(KEY, None))
    deliver_commits(hand)
    collect_tombstone(hand)
    assert hand.ask("f1", Read(KEY)) is None
    assert hand.ask("f1", Items("dictionary/d")).items == {}
    assert hand.ask("f1", CompareAndSet(KEY, OLD, NEW)) is False
    assert hand.ask("f1", PutIfAbsent(KEY, NEW)) is True
    assert hand.ask("f2", Read(KEY)) == NEW


@pytest.mark.parametrize("first", ["put if absent", "compare and set"])
def test_a_decision_does_not_rest_on_a_collected_value(first: str) -> None:
    """As above, but the first that f1 does afterwards is a decision."""
    hand = Hand(MAJORITIES)
    hand.ask("f1", Write(KEY, OLD))
    assert hand.ask("f1", Read(KEY)) == OLD
    hand.ask("f2", Write(KEY, None))
    deliver_commits(hand)
    collect_tombstone(hand)
    if first == "put if absent":
        assert hand.ask("f1", PutIfAbsent(KEY, NEW)) is True
    else:
        assert hand.ask("f1", CompareAndSet(KEY, OLD, NEW)) is False


@pytest.mark.parametrize("kind", [Accept, Commit])
def test_a_late_message_of_a_decision_does_not_bring_a_collected_key_back(
    kind: type[Accept | Commit],
) -> None:
    """A copy of an accept, or of the mark that it is decided, arrives after the key was forgotten."""
    hand = Hand(MAJORITIES)
    hand.start("f1", PutIfAbsent(KEY, OLD), "set")
    while not any(isinstance(packet.send.request, Accept) for packet in hand.packets):
        hand.carry("f1", hand.packets[0].send.replica)
    accept = next(p.send.request for p in hand.packets if isinstance(p.send.request, Accept))
    hand.settle()
    hand.ask("f2", Write(KEY, None))
    collect_tombstone(hand)
    assert isinstance(accept, Accept)
    late = accept if kind is Accept else Commit(KEY, accept.ballot, accept.summary.horizon, accept.summary)
    for replica in hand.replicas.values():
        replica.exchange(Batch(hand.document.hash, (late,)), hand._now().wall_us)
    assert hand.ask("f3", Read(KEY)) is None


def test_a_young_deletion_is_not_collected() -> None:
    """Its retry window has not passed: a put that was overtaken by the deletion may still travel, and would come back."""
    hand = Hand(MAJORITIES)
    hand.ask("f1", Write(KEY, OLD))
    hand.ask("f1", Write(KEY, None))
    assert hand.ask("janitor", CollectTombstone(KEY)) is False
    collect_tombstone(hand)


def test_burying_that_fails_names_the_replica_that_did_not_confirm() -> None:
    """r3 lacks the decided deletion, answers the look, and falls silent when it is brought; the others were not asked again."""
    hand = Hand(MAJORITIES)
    hand.ask("f1", Write(KEY, None))
    pass_time(hand, hand.document.memory_s + 1)
    hand.start("janitor", CollectTombstone(KEY), "decided")
    hand.carry("janitor", "r1", "r2", "r3")
    hand.carry_until("decided", "janitor", "r1", "r2")
    hand.carry_commits("janitor", "r1", "r2")
    hand.packets.clear()
    hand.start("janitor", CollectTombstone(KEY), "collect")
    hand.carry("janitor", "r1", "r2", "r3")
    assert {packet.send.replica for packet in hand.packets} == {"r3"}
    while "collect" not in hand.outcomes:
        hand.drop("janitor")
        hand.sleep()
    outcome = hand.outcomes["collect"]
    assert isinstance(outcome, Failed)
    assert outcome.answered == {"r1", "r2"}


def test_burying_one_key_does_not_hide_another_from_a_whole_read() -> None:
    """k is at r1 and r2. Another key is collected, which raises the floor of every replica above k; then r3 comes to know k,
    under that floor, by a decision that changes nothing. A reader of r1 and r3 must not take the floor for k's end."""
    hand = Hand(MAJORITIES)
    hand.start("f1", Write(KEY, OLD), "put")
    hand.carry("f1", "r1", "r2")
    hand.carry_commits("f1", "r1", "r2")
    hand.drop("f1")
    hand.ask("f2", Write("dictionary/d/other", NEW))
    hand.ask("f2", Write("dictionary/d/other", None))
    pass_time(hand, hand.document.memory_s + 1)
    hand.ripen("dictionary/d/other")
    hand.bury("dictionary/d/other")
    hand.start("f3", PutIfAbsent(KEY, NEW), "present")
    hand.carry_until("present", "f3", "r1", "r3")
    assert hand.result("present") is False
    hand.drop("f3")
    hand.start("f4", Items("dictionary/d"), "items")
    hand.carry_until("items", "f4", "r1", "r3")
    assert hand.result("items").items == {"k": OLD}


@pytest.mark.parametrize(("size", "times"), [(900_000, 4), (10, 1001)], ids=["of large values", "of many"])
def test_a_deleted_key_whose_log_is_longer_than_a_page_is_forgotten(size: int, times: int) -> None:
    """Nobody told what is complete, so that all of it is there, and the newest is on another page."""
    hand = Hand(MAJORITIES)
    for number in range(times):
        hand.ask("f1", Write(KEY, Value(f'"{number}{"x" * size}"')))
    hand.ask("f1", Write(KEY, None))
    hand.lazies.clear()
    pass_time(hand, hand.document.memory_s + 1)
    hand.ripen(KEY)
    hand.bury(KEY)


def test_a_deletion_is_forgotten_of_which_nobody_heard_that_it_is_decided_though_the_log_is_longer_than_a_page() -> (
    None
):
    """Seed 5 of `full`: who decided it vanished before it told anybody. There was nothing to decide any more, and so nothing was told."""
    hand = Hand(MAJORITIES, limits=Limits(page_entries_max=2))
    for value in (OLD, NEW, OLD):
        hand.ask("f1", Write(KEY, value))
    assert hand.ask("f1", CompareAndSet(KEY, OLD, None)) is True
    hand.lazies.clear()
    pass_time(hand, hand.document.memory_s + 1)
    assert hand.ask("janitor", CollectTombstone(KEY)) is False
    hand.lazies.clear()
    hand.ripen(KEY)
    hand.bury(KEY)
