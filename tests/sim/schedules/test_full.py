"""Replicas that have as much as they may: full of what others lack they do not stay."""

import pytest

from quorate.adts.log import Value
from quorate.adts.specification import Response
from quorate.api_specs.limits import Capacity
from quorate.api_specs.messages import Accept, Collect
from quorate.client_sdk.protocol.core.values import (
    Carry,
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Items,
    Operation,
    Outcome,
    Peek,
    PutIfAbsent,
    QueueSize,
    Read,
    Write,
)
from quorate.client_sdk.protocol.decisions import summary_builder
from quorate.simulation.memory.replica import UNBOUNDED
from tests.sim.planted.played import QUEUE, Played
from tests.sim.schedules.full import (
    BEYOND,
    LIVE,
    LONELY,
    OF_EACH_PAIR,
    OLD,
    ROOM,
    ROUNDS,
    UNDECIDED_ROUNDS,
    collect_all,
    fill_logs_beside,
    filled,
    filled_beside_an_old_entry,
    filled_by_catching_up,
    filled_with_undecided,
)
from tests.sim.schedules.test_what_a_plan_rests_on import call

NEW = Value('"new"')
KEY = "dictionary/d/new"
LOOKS_MAX = 8
"""So often one asks in twenty seconds who rests."""


def test_replicas_that_are_full_of_tombstones_which_others_lack_become_empty_again() -> None:
    """Each of them is full, and another one lacks each tombstone, so that none can be forgotten before it has heard of it. Told of them, the full ones raise
    their floors, and keep nothing."""
    hand = filled()
    stores = [replica.store for replica in hand.replicas.values()]
    assert [len(store.objects()) for store in stores] == [2 * OF_EACH_PAIR] * 3
    assert all(
        len(set(one.objects()) - set(other.objects())) == 3
        for one in stores
        for other in stores
        if one is not other
    )
    hand.start("f1", Write(KEY, NEW), "refused")
    hand.settle()
    refused = hand.outcomes["refused"]
    assert isinstance(refused, Failed)
    assert (refused.reason, refused.definite) == ("too-many-objects", True)
    floors = [store.floor() for store in stores]
    collect_all(hand)
    assert all(store.floor() > floor for store, floor in zip(stores, floors, strict=True))
    for _ in range(ROUNDS - 1):
        collect_all(hand)
    assert [store.objects() for store in stores] == [[], [], []]
    hand.ask("f1", Write(KEY, NEW))
    assert hand.ask("f2", Read(KEY)) == NEW
    hand.judge()


def test_a_full_replica_that_holds_up_forgetting_says_that_it_has_no_room() -> None:
    """The deletion is decided only now, and r3, which lacks it, is full: the janitor must know that r3 is not silent."""
    hand = Played()
    for key in "ab":
        hand.ask("f1", Write(f"dictionary/d/{key}", NEW))
    hand.at("f2", Write(KEY, None), "r1", "r2")
    hand.grow_old()
    hand.replicas["r3"].capacity = Capacity(objects_max=1)
    hand.start("janitor", CollectTombstone(KEY), "collect", is_noted=False)
    hand.settle()
    outcome = hand.outcomes["collect"]
    assert isinstance(outcome, Failed)
    assert outcome.reason == "too-many-objects"
    assert outcome.answered == {"r1", "r2"}


def test_replicas_that_are_full_of_undecided_deletions_which_others_lack_decide_and_forget_them() -> None:
    hand = filled_with_undecided()
    stores = [replica.store for replica in hand.replicas.values()]
    assert [len(store.objects()) for store in stores] == [ROOM + 1] * 3
    for _ in range(UNDECIDED_ROUNDS):
        collect_all(hand)
    assert [store.objects() for store in stores] == [[LIVE], [LIVE], [LIVE]]
    hand.ask("f1", Write(KEY, NEW))
    hand.judge()


def test_full_replicas_decide_on_an_entry_that_they_take_in_no_more_for_who_reads_it() -> None:
    hand = filled_beside_an_old_entry()
    stores = [replica.store for replica in hand.replicas.values()]
    assert [len(store.objects()) for store in stores] == [ROOM + 1] * 3
    hand.start("f3", Write(KEY, NEW), "refused")
    hand.settle()
    assert isinstance(hand.outcomes["refused"], Failed)
    assert hand.ask("f3", Read(LONELY)) == OLD
    hand.start("f4", Items("dictionary/d"), "items")
    hand.settle()
    items = hand.outcomes["items"]
    assert isinstance(items, Done)
    assert len(items.result.items) == ROOM + 2
    hand.judge()


@pytest.mark.parametrize("look", [QueueSize(QUEUE), Peek(QUEUE)])
def test_full_replicas_decide_on_an_item_that_they_take_in_no_more_for_who_looks(look: Operation) -> None:
    hand = filled_beside_an_old_entry(Enqueue(QUEUE, (OLD,)))
    hand.start("f3", look, "look")
    hand.settle()
    assert isinstance(hand.outcomes["look"], Done)
    hand.judge()


def test_full_replicas_decide_on_a_stored_call_that_they_take_in_no_more_for_who_looks() -> None:
    """A call that changes nothing is not known for one before it is decided; where that has no room, what is stored is settled, and looked at."""
    hand = filled_beside_an_old_entry(call("add", "a"), {"cart": "x:Notes"})
    hand.start("f3", call("show"), "show", is_noted=False)
    hand.start("f4", call("add", "b", key="k"), "refused", is_noted=False)
    hand.settle()
    shown, refused = hand.outcomes["show"], hand.outcomes["refused"]
    assert isinstance(shown, Done)
    assert shown.result == Response("Ok", ("a",))
    assert isinstance(refused, Failed)
    assert refused.reason == "too-many-objects"


@pytest.mark.parametrize(("line", "objects"), [("b", ROOM + 2), ("b" * 5000, ROOM + 1)])
def test_a_call_that_changes_something_is_refused_though_what_is_stored_is_settled(
    line: str, objects: int
) -> None:
    """Whether it does shows in a look at what is settled; a large one is not looked for."""
    hand = filled_beside_an_old_entry(call("add", "a"), {"cart": "x:Notes"})
    hand.start("f3", call("mark", line), "mark", is_noted=False)
    hand.settle()
    refused = hand.outcomes["mark"]
    assert isinstance(refused, Failed)
    assert (refused.reason, refused.definite) == ("too-many-objects", True)
    assert len(hand.replicas["r3"].store.objects()) == objects


def test_a_full_replica_accepts_what_it_has_not_promised_for_who_reads() -> None:
    """The promises are those of r1 and r2; then r1 is cut off, and r3 is met in its place."""
    hand = filled_beside_an_old_entry()
    hand.start("f3", Read(LONELY), "read")
    hand.go_until(Accept, "f3", "r1", "r2")
    for packet in hand.of("f3"):
        if not isinstance(packet.send.request, Accept):
            hand.packets.remove(packet)
    hand.finish("read", "f3", "r2", "r3")
    assert hand.outcomes["read"] == Done(OLD, "Get/Ok", frozenset({"r2", "r3"}))
    assert hand.replicas["r3"].store.state(LONELY) is not None
    hand.judge()


@pytest.mark.parametrize("down", [[], ["r3"]])
def test_callers_who_try_again_and_again_keep_no_reader_from_an_answer_where_replicas_are_full(
    down: list[str],
) -> None:
    """What they want has no room, and waits for who is down; what the reader needs has, and is decided first."""
    hand = filled_beside_an_old_entry()
    hand.down.update(down)
    refused, begun_us = CompareAndSet(LONELY, NEW, OLD), hand.now_us
    assert hand.beside("busy", Read(LONELY), "read", others=refused) == Done(
        OLD, "Get/Ok", frozenset({"r1", "r2"})
    )
    assert hand.now_us - begun_us < 1_000_000


def test_callers_who_try_again_and_again_keep_no_deletion_from_being_decided_where_replicas_are_full() -> (
    None
):
    hand, key = filled_with_undecided(), "dictionary/d/r1n0"
    kept = hand.beside("busy", CollectTombstone(key), "collect", others=PutIfAbsent(key, NEW))
    assert isinstance(kept, Done)


def test_what_was_caught_up_on_leaves_room_to_decide_on_deletions_of_which_each_replica_lacks_some() -> None:
    hand = filled_by_catching_up()
    stores = [replica.store for replica in hand.replicas.values()]
    assert [len(store.objects()) for store in stores] == [ROOM + 3] * 5
    for _ in range(UNDECIDED_ROUNDS):
        collect_all(hand)
    assert [store.objects() for store in stores] == [[]] * 5


def test_a_full_replica_owes_no_decision_on_what_it_has_no_room_for_until_it_has_some() -> None:
    """Decisions on what it lacks go a tenth beyond its bound, whoever brings them; more of them would take the room of readers."""
    hand = Played(capacity=Capacity(objects_max=ROOM))
    for number in range(ROOM + 1):
        hand.ask("f1", PutIfAbsent(f"dictionary/d/{number}", OLD))
        hand.carry_commits("f1", *hand.replicas)
    for replica in ("r1", "r2"):
        hand.replicas[replica].capacity = UNBOUNDED
    hand.at("f2", PutIfAbsent(KEY, OLD), "r1", "r2")
    hand.carry_commits("f2", *hand.replicas)
    hand.catch_up("r3", "r1")
    assert hand.replicas["r3"].store.state(KEY) is None
    hand.be_level()
    hand.replicas["r3"].capacity = UNBOUNDED
    hand.catch_up("r3", "r1")
    assert hand.replicas["r3"].store.state(KEY) is not None
    hand.be_level()


def test_who_looks_goes_a_quarter_beyond_a_bound_and_no_further() -> None:
    hand = filled_beside_an_old_entry(Enqueue(QUEUE, (OLD,)))
    for replica in ("r2", "r3"):
        hand.replicas[replica].capacity = Capacity(objects_max=8)
    hand.start("f3", Peek(QUEUE), "peek")
    hand.settle()
    peek = hand.outcomes["peek"]
    assert isinstance(peek, Failed)
    assert peek.reason == "too-many-objects"


@pytest.mark.parametrize(
    ("first", "then", "ends"), [(Dequeue(QUEUE), Peek(QUEUE), Done), (Peek(QUEUE), Dequeue(QUEUE), Failed)]
)
def test_what_an_owner_asks_for_counts_and_not_what_it_asked_for_before(
    first: Operation, then: Operation, ends: type[Outcome]
) -> None:
    """It accepts without another look. r3, which lacks the queue, has room for what a reader needs, and for nothing else."""
    hand = Played()
    for number in range(ROOM + 1):
        hand.ask("f0", PutIfAbsent(f"dictionary/d/{number}", OLD))
        hand.carry_commits("f0", *hand.replicas)
    hand.at("f1", Enqueue(QUEUE, (OLD,) * 20), "r1", "r2")
    hand.replicas["r3"].capacity = Capacity(objects_max=ROOM)
    for number in range(3):
        hand.start("f2", first, f"first {number}")
        hand.finish(f"first {number}", "f2", "r1", "r2")
    hand.drop("f2")
    hand.lazies.clear()
    hand.start("f2", then, "then")
    hand.finish("then", "f2", "r1", "r3")
    outcome = hand.outcomes["then"]
    assert isinstance(outcome, ends)
    assert not isinstance(outcome, Failed) or "11 objects, of 11 that it may have" in outcome.detail


def test_one_full_replica_has_nobody_go_first_while_the_others_make_a_quorum() -> None:
    """Its refusal comes before their answers."""
    hand = Played()
    hand.at("f0", Enqueue(QUEUE, (OLD, NEW)), "r2", "r3")
    hand.replicas["r1"].capacity = Capacity(objects_max=0)
    hand.start("f1", Dequeue(QUEUE), "dequeue")
    hand.start("f1", Peek(QUEUE), "peek")
    hand.settle()
    assert [hand.outcomes[name] for name in ("dequeue", "peek")] == [
        Done((OLD,), "Deq/Ok", frozenset({"r2", "r3"})),
        Done((NEW,), "Peek/Ok", frozenset({"r2", "r3"})),
    ]
    assert "decisions put off for want of room" not in hand.counters("f1")


def test_who_reads_goes_first_where_what_was_proposed_finds_no_room() -> None:
    """r1 promised and is down, r2 has accepted, and r3 has no room for it: so it cannot be decided, and the reader cannot go on without that."""
    hand = Played()
    for number in range(ROOM + 1):
        hand.ask("f0", PutIfAbsent(f"dictionary/d/{number}", OLD))
        hand.carry_commits("f0", *hand.replicas)
    hand.at("f1", PutIfAbsent(KEY, OLD), "r1", "r2")
    hand.replicas["r3"].capacity = Capacity(objects_max=ROOM)
    hand.start("f2", CompareAndSet(KEY, OLD, NEW), "swap")
    hand.go_until(Accept, "f2", "r1", "r2")
    hand.lose(Collect)
    hand.carry_only(Accept, "f2", "r2", "r3")
    hand.start("f2", Read(KEY), "read")
    hand.finish("read", "f2", "r2", "r3")
    assert hand.outcomes["read"] == Done(NEW, "Get/Ok", frozenset({"r2", "r3"}))
    assert hand.counters("f2")["decisions put off for want of room"] == 1
    hand.finish("swap", "f2", "r2", "r3")
    assert isinstance(hand.outcomes["swap"], Done)
    hand.judge()


@pytest.mark.parametrize("look", [Read("dictionary/d/x"), Items("dictionary/d")], ids=["get", "listing"])
def test_a_value_that_full_logs_take_in_no_more_is_decided_for_who_reads(look: Operation) -> None:
    """It had no answer while deletions made no room: 20 seconds and more."""
    hand = Played()
    fill_logs_beside(hand, "dictionary/d/x", lambda number: Write("dictionary/d/x", Value(f"{number}")))
    hand.forward_known("f3", look)
    hand.judge()


@pytest.mark.parametrize("look", [QueueSize("queue/q"), Peek("queue/q")], ids=["size", "peek"])
def test_an_item_that_full_logs_take_in_no_more_is_decided_for_who_looks(look: Operation) -> None:
    hand = Played()
    fill_logs_beside(hand, "queue/q", lambda number: Enqueue("queue/q", (Value(f"{number}"),)))
    hand.forward_known("f3", look)
    hand.judge()


@pytest.mark.parametrize("look", [QueueSize(QUEUE), Carry(QUEUE)], ids=["size", "carry"])
def test_who_finds_more_than_full_logs_and_a_decision_take_up_asks_seldom_and_says_so(
    look: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look sends all payloads to all replicas. Two gigabytes went out until the deadline; once items are taken, the rest has room."""
    monkeypatch.setattr(summary_builder, "ADOPTED_MAX", 3)
    hand = Played()
    fill_logs_beside(hand, QUEUE, lambda number: Enqueue(QUEUE, (Value(f"{number}"),)), alone=4)
    hand.start("f3", look, "look", is_noted=False)
    hand.settle()
    outcome = hand.outcomes["look"]
    assert isinstance(outcome, Failed)
    assert outcome.definite
    assert f"{BEYOND} entries at this replica, of {BEYOND} that it may have" in outcome.detail
    assert hand.counters("f3")["entries written back"] <= LOOKS_MAX * 4
    for _ in range(BEYOND + 2):
        hand.ask("f4", Dequeue(QUEUE))
    hand.start("f3", look, "then", is_noted=False)
    hand.settle()
    assert isinstance(hand.outcomes["then"], Done)
    hand.judge()
