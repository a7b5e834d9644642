"""Schedules by hand in which a mistake shows for certain; played as shipped they end in peace.

Each is told first and then played. The checkers judge the history, so nothing is asserted of single answers.
"""

from quorate.adts.log import Value
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.messages import Accept, Append, Batch
from quorate.client_sdk.protocol.core.values import (
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Enqueue,
    Peek,
    PutIfAbsent,
    QueueSize,
    Read,
    Write,
)
from tests.sim.planted.played import QUEUE, Played

REGISTER, KEY = "register/r", "dictionary/d/k"
V, W, X, Y, Z = (Value(f'"{item}"') for item in "vwxyz")


def undecided_horizon() -> None:
    """Enq(x) has reached r2 only. f1 reads r2 and r3 and proposes to take x; r1 alone accepts, so that its horizon is at
    x, undecided. Now Enq(x) arrives at r1: complete. f1 vanishes. Enq(z), stamped before x, is fenced at r2 and r3,
    which adopt it in a recovery, over the horizon of old. Deqs at r1 and r3 must find x at r1, below the horizon that r1 had accepted."""
    hand = Played()
    hand.start("f2", Enqueue(QUEUE, (Z,)), "z")
    hand.start("fx", Enqueue(QUEUE, (X,)), "x")
    hand.carry("fx", "r2")
    hand.start("f1", Dequeue(QUEUE), "f1", is_noted=False)  # It takes nothing.
    hand.go_until(Accept, "f1", "r2", "r3")
    hand.packets = [
        each
        for each in hand.packets
        if each.front in ("fx", "f2") or (each.send.replica == "r1" and isinstance(each.send.request, Accept))
    ]
    hand.carry("f1", "r1")
    hand.vanish("f1")
    hand.carry("fx", "r1")
    hand.packets = [each for each in hand.packets if each.front == "f2"]
    while "z" not in hand.outcomes:
        hand.move("f2", "r2", "r3")
    hand.packets.clear()
    hand.at("f3", Dequeue(QUEUE), "r1", "r3")
    hand.at("f4", Dequeue(QUEUE), "r1", "r3")
    hand.settle()
    hand.judge()


def item_comes_while_another_goes() -> None:
    """w and x are at r1 and r2. f3 takes w there, and its term still stands. f1's Deq, with a higher term, reads the empty
    log of r3. Then y is stored at r1 and r3; and only then f3 is asked again, and takes x, decided at r1 and r2. Now f1
    reads r2: its summary says x is gone, its log has no y, and neither had r3's. But the queue was never empty."""
    hand = Played()
    hand.at("f0", Enqueue(QUEUE, (W,)), "r1", "r2")
    hand.at("f0", Enqueue(QUEUE, (X,)), "r1", "r2")
    hand.at("f3", Dequeue(QUEUE), "r1", "r2")
    hand.start("f1", Dequeue(QUEUE), "empty?")
    hand.carry("f1", "r3")
    hand.at("f2", Enqueue(QUEUE, (Y,)), "r1", "r3")
    hand.at("f3", Dequeue(QUEUE), "r1", "r2")
    hand.carry("f1", "r2")
    hand.settle()
    hand.judge()


def recovery_whose_answers_are_lost() -> None:
    """y is everywhere, and somebody has fenced r2 and r3 at it. Enq(x), stamped before, is refused there and lost on its
    way to r1. Its recovery is decided at r1 and r2, but no answer comes back; then r1 is fenced, too. Now x is fenced
    at all three replicas: no log holds it, and yet a summary does. (With a new timestamp as well, who takes the adopted
    x holds it for complete, for its copy is, and leaves no word for the copy.)"""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.everywhere("f2", Enqueue(QUEUE, (Y,)))
    hand.fence("r2", "r3")
    hand.carry("f1", "r2", "r3")
    hand.drop("f1")
    hand.go_until(Accept, "f1", "r1", "r2")
    hand.reach("f1", "r1", "r2")
    hand.drop("f1")
    hand.fence("r1")
    hand.settle()
    hand.judge()


def newest_value_at_one_replica() -> None:
    """v is everywhere; Write(w) has reached r1 only. A Read at r1 and r2, then one at r2 and r3."""
    hand = Played()
    hand.ask("f0", Write(REGISTER, V))
    hand.start("f1", Write(REGISTER, W), "w")
    hand.carry("f1", "r1")
    hand.at("f2", Read(REGISTER), "r1", "r2")
    hand.at("f3", Read(REGISTER), "r2", "r3")
    hand.settle()
    hand.judge()


def decision_at_one_replica() -> None:
    """v is everywhere; a compare-and-set to w was accepted by r1 only. A Read at r1 and r2, then one at r2 and r3."""
    hand = Played()
    hand.ask("f0", Write(REGISTER, V))
    hand.start("f1", CompareAndSet(REGISTER, V, W), "w")
    hand.go_until(Accept, "f1", "r1", "r2")
    hand.carry("f1", "r1")
    hand.drop("f1")
    hand.at("f2", Read(REGISTER), "r1", "r2")
    hand.at("f3", Read(REGISTER), "r2", "r3")
    hand.settle()
    hand.judge()


def item_at_one_replica() -> None:
    """x has reached r1 only. A Size at r1 and r2, then one at r2 and r3."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.carry("f1", "r1")
    hand.drop("f1")
    hand.at("f2", QueueSize(QUEUE), "r1", "r2")
    hand.at("f3", QueueSize(QUEUE), "r2", "r3")
    hand.settle()
    hand.judge()


def decision_that_seemed_out() -> None:
    """x, y, z wait. f1's accept A (takes x) reaches r3 only; f2's accept B (takes x too), of a higher term, r2 only. f1
    turns to r1 and r2 and sees B, without A. f3, at r1 and r3, sees A and goes on from it: A is in force after all."""
    hand = Played()
    for value in (X, Y, Z):
        hand.ask("f0", Enqueue(QUEUE, (value,)))
    hand.packets.clear()
    hand.start("f1", Dequeue(QUEUE), "one")
    hand.carry("f1", "r1", "r2")
    hand.packets = [each for each in hand.packets if isinstance(each.send.request, Accept)]
    hand.carry("f1", "r3")
    hand.start("f2", Dequeue(QUEUE), "two")
    hand.carry("f2", "r1", "r2")
    hand.carry("f2", "r2")
    hand.carry("f1", "r1")
    hand.drop("f1")
    hand.wake("f1")
    hand.carry("f1", "r1", "r2")
    hand.start("f3", Dequeue(QUEUE), "three")
    hand.carry("f3", "r1", "r3")
    hand.carry_until("three", "f3", "r1", "r3")
    hand.settle()
    hand.judge()


def adopted_below_a_horizon() -> None:
    """Enq (0, 3), Deq (1, 3). f1 has agreed on x under a key; y, stamped later, is everywhere, and r2 and r3 are fenced
    at it. Enq(x) is refused there; its recovery A, which adopts x, reaches r2 and r3. f2 reads r1, and takes y: its
    accept B reaches r3 only. Another caller repeats Enq(x): r1 refuses it, its recovery reads r2, goes on from A, and its
    accept reaches r1. Now all three have met x in some summary. f4 reads r3 and goes on from B, which covers x: decided
    everywhere. A third caller repeats Enq(x)."""
    hand = Played({"Enq/Ok": (0, 3), "Deq/Ok": (1, 3)})
    enqueue = Enqueue(QUEUE, (X,), key="k")
    hand.start("f1", enqueue, "x")
    hand.drop("f1")
    hand.everywhere("f0", Enqueue(QUEUE, (Y,)))
    hand.fence("r2", "r3")
    hand.go_until(Append, "f1", "r1", "r2", "r3")
    hand.carry("f1", "r2", "r3")
    hand.drop("f1")
    hand.go_until(Accept, "f1", "r2")
    hand.reach("f1", "r2", "r3")
    hand.vanish("f1")
    hand.start("f2", Dequeue(QUEUE), "y")
    hand.go_until(Accept, "f2", "r1")
    hand.reach("f2", "r3")
    hand.drop("f2")
    hand.start("f5", enqueue, "x")
    hand.carry("f5", *hand.replicas)
    hand.carry("f5", "r1")
    hand.go_until(Accept, "f5", "r2")
    hand.carry("f5", "r1")
    hand.vanish("f5")
    hand.start("f4", Dequeue(QUEUE), "f4")
    hand.go_until(Accept, "f4", "r3")
    hand.settle()
    hand.start("f6", enqueue, "x")
    hand.settle()
    hand.judge()


def deletion_that_one_replica_slept_through() -> None:
    """A key is put everywhere and deleted at r1 and r2. When the deletion is collected, r3 still has the value."""
    hand = Played()
    hand.ask("f1", Write(KEY, V))
    hand.at("f2", Write(KEY, None), "r1", "r2")
    hand.packets.clear()
    hand.grow_old()
    hand.start("janitor", CollectTombstone(KEY), "decided", is_noted=False)
    hand.go_until(Accept, "janitor", *hand.replicas)
    hand.finish("decided", "janitor", "r1", "r2")
    hand.vanish("janitor")
    hand.start("other", CollectTombstone(KEY), "collected", is_noted=False)
    hand.settle()
    hand.at("f3", Read(KEY), "r2", "r3")
    hand.judge()


def deletion_that_is_young() -> None:
    """Put(v) has reached r1 only; a Read saw it there and wrote it back to r2. Then the key is deleted, and a janitor comes
    at once. The rest of Put(v) arrives now, is refused, and recovers: v must not come back."""
    hand = Played()
    hand.start("f1", Write(KEY, V), "put")
    hand.carry("f1", "r1")
    hand.at("f2", Read(KEY), "r1", "r2")
    hand.at("f3", Write(KEY, None), *hand.replicas)
    for _ in range(3):
        hand.at("janitor", CollectTombstone(KEY), *hand.replicas)
        hand.carry_commits("janitor", *hand.replicas)
    hand.settle()
    hand.ask("f4", Read(KEY))
    hand.judge()


def message_of_a_buried_life() -> None:
    """A key is set by a decision, deleted and collected. Then a copy of the decision's accept arrives everywhere."""
    hand = Played()
    hand.start("f1", PutIfAbsent(KEY, V), "set")
    hand.go_until(Accept, "f1", "r1", "r2", "r3")
    late = next(each.send.request for each in hand.packets if isinstance(each.send.request, Accept))
    hand.settle()
    hand.ask("f2", Write(KEY, None))
    hand.grow_old()
    hand.ripen(KEY)
    hand.bury(KEY)
    for replica in hand.replicas.values():
        replica.exchange(Batch(hand.document.hash, (late,)), hand._now().wall_us)
    hand.ask("f3", Read(KEY))
    hand.judge()


def decision_of_a_buried_life() -> None:
    """A key is set by a decision at r1 and r2, and deleted everywhere. A compare-and-set that fails meets the decision at r1 and r3, and writes it
    back under a term above the deletion; its accept to r2 comes when the key is forgotten."""
    hand = Played()
    hand.at("f1", PutIfAbsent(KEY, V), "r1", "r2")
    hand.vanish("f1")
    hand.ask("f2", Write(KEY, None))
    hand.carry_commits("f2", *hand.replicas)
    hand.grow_old()
    hand.start("f3", CompareAndSet(KEY, W, V), "compared")
    hand.finish("compared", "f3", "r1", "r3")
    late = next(each.send.request for each in hand.of("f3") if isinstance(each.send.request, Accept))
    hand.vanish("f3")
    for _ in range(3):
        hand.start("janitor", CollectTombstone(KEY), f"{len(hand.outcomes)}: collected", is_noted=False)
        hand.settle()
        hand.carry_commits("janitor", *hand.replicas)
        hand.grow_old()
    hand.replicas["r2"].exchange(Batch(hand.document.hash, (late,)), hand._now().wall_us)
    hand.at("f4", Read(KEY), "r1", "r2")
    hand.at("f5", Read(KEY), "r2", "r3")
    hand.judge()


def front_end_that_was_suspended() -> None:
    """Enq(x) has reached r1 only when its machine is suspended; its monotonic clock stands still. x is taken, noted as
    ambiguous, and forgotten when the retry window has passed and y was taken at r2 and r3. Then the machine wakes."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.carry("f1", "r1")
    hand.drop("f1")
    hand.at("f2", Dequeue(QUEUE), "r1", "r2")
    hand.slept_us = int((hand.document.memory_s + 1) * 1e6)
    hand.at("f2", Enqueue(QUEUE, (Y,)), "r2", "r3")
    hand.at("f3", Dequeue(QUEUE), "r2", "r3")
    hand.settle()
    hand.judge()


def key_after_a_step_of_clocks() -> None:
    """x, y and z wait. x is dequeued under a key, whose caller does not hear of it. All clocks step ahead by an hour, y is dequeued,
    and the key is repeated; then all is dequeued."""
    hand = Played(clock=ClockSettings())
    for number, value in enumerate((X, Y, Z), 1):
        hand.ask(f"f{number}", Enqueue(QUEUE, (value,)))
    keyed = Dequeue(QUEUE, key="k")
    hand.start("f4", keyed, "x")
    hand.go_until(Accept, "f4", *hand.replicas)
    hand.reach("f4", *hand.replicas)
    hand.vanish("f4")
    for name in hand.replicas:
        hand.wall_errors_us[name] = 3_600_000_000
    hand.ask("f5", Dequeue(QUEUE))
    hand.ask("f6", Dequeue(QUEUE))
    hand.start("f7", keyed, "x")
    hand.settle()
    hand.judge()


def key_that_was_decided_last() -> None:
    """x is dequeued under a key a retry window after w was under another. At once others are dequeued, and the key is repeated."""
    hand = Played(clock=ClockSettings())
    for number, value in enumerate((W, X, Y, Z), 1):
        hand.ask(f"f{number}", Enqueue(QUEUE, (value,)))
    hand.ask("f5", Dequeue(QUEUE, key="w"))
    hand.slept_us = int((hand.document.memory_s + 1) * 1e6)
    keyed = Dequeue(QUEUE, key="k")
    hand.start("f6", keyed, "x")
    hand.go_until(Accept, "f6", *hand.replicas)
    hand.reach("f6", *hand.replicas)
    hand.vanish("f6")
    hand.ask("f7", Dequeue(QUEUE))
    hand.start("f8", keyed, "x")
    hand.settle()
    hand.judge()


def one_of_two_writes_is_fenced() -> None:
    """A swap by a clock that is ahead has fenced a register everywhere. Of two writes that begin at one moment, one is to
    that register: all replicas refuse it, and store the other."""
    hand = Played()
    hand.wall_errors_us["fx"] = 10_000
    hand.ask("fx", CompareAndSet(REGISTER, None, Z))
    hand.start_together("f1", {"x": Write(REGISTER, X), "y": Write(KEY, Y)})
    hand.settle()
    hand.ask("f2", Read(REGISTER))
    hand.ask("f2", Read(KEY))
    hand.judge()


def value_from_the_future() -> None:
    """f1 has measured its clock on a slow link only, and stamps w well ahead of time, stored at r1 and r2. A Read sees w;
    then v is written by a front end that measured a better clock before, at r1 and r3."""
    hand = Played(clock=ClockSettings())
    hand.at("f3", Read(REGISTER), "r3", "r1")
    hand.start("f1", Write(REGISTER, W), "w")
    hand.sleep(100_000)
    hand.carry("f1", "r3", "r1")
    hand.carry("f1", "r1", "r2")
    hand.at("f2", Read(REGISTER), "r1", "r2")
    hand.start("f3", Write(REGISTER, V), "v")
    hand.carry("f3", "r3", "r1")
    hand.settle()
    hand.ask("f4", Read(REGISTER))
    hand.judge()


def write_from_the_future() -> None:
    """f1 has measured its clock on a slow link only, and stamps w well ahead of time, stored at r1 and r2. When it has
    returned, v is written by a front end that measured a better clock before, at r3 and r1; then somebody reads."""
    hand = Played(clock=ClockSettings())
    hand.at("f3", Read(REGISTER), "r3", "r1")
    hand.start("f1", Write(REGISTER, W), "w")
    hand.sleep(100_000)
    hand.carry("f1", "r3", "r1")
    hand.carry("f1", "r1", "r2")
    while "w" not in hand.outcomes:
        hand.sleep()
    hand.start("f3", Write(REGISTER, V), "v")
    hand.carry("f3", "r3", "r1")
    hand.settle()
    hand.ask("f4", Read(REGISTER))
    hand.judge()


def peek_while_an_older_entry_travels() -> None:
    """Enq(x) reaches r1 only. Enq(y), later, reaches r2 and r3. A Peek at r2 and r3 answers y. Now the rest of Enq(x)
    arrives; where it is fenced it is recovered. Then all is dequeued."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.carry("f1", "r1")
    hand.at("f2", Enqueue(QUEUE, (Y,)), "r2", "r3")
    hand.at("f3", Peek(QUEUE), "r2", "r3")
    hand.settle()
    hand.judge()


def peek_at_what_a_decision_adopted() -> None:
    """Enq(x) has reached r1 only. A Peek at r1 and r2 adopts it in a decision and answers x. Then a new front end peeks at r2 and
    r3: their logs are empty, and x is in the summary of r2 only."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.carry("f1", "r1")
    hand.drop("f1")
    hand.at("f2", Peek(QUEUE), "r1", "r2")
    hand.at("f3", Peek(QUEUE), "r2", "r3")
    hand.settle()
    hand.judge()


def peek_at_the_replica_that_missed_it() -> None:
    """x is stored at r1 and r2, and has returned. A new front end peeks; r3 answers first."""
    hand = Played()
    hand.at("f1", Enqueue(QUEUE, (X,)), "r1", "r2")
    hand.packets.clear()
    hand.start("f2", Peek(QUEUE), "peek")
    hand.carry("f2", "r3")
    hand.settle()
    hand.judge()


def key_at_two_front_ends() -> None:
    """x is reserved under a key; y, stamped later, is everywhere, and all replicas are fenced at it. Enq(x) is refused by
    all. What f1 does next reaches all replicas, but it crashes before it hears of it. All that waits is taken; then the
    caller repeats Enq(x) at f2."""
    hand = Played()
    enqueue = Enqueue(QUEUE, (X,), key="k")
    hand.start("f1", enqueue, "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.everywhere("f0", Enqueue(QUEUE, (Y,)))
    hand.fence(*hand.replicas)
    hand.carry("f1", *hand.replicas)
    hand.reach("f1", *hand.replicas)
    hand.vanish("f1")
    hand.at("f3", Dequeue(QUEUE, 9), *hand.replicas)
    hand.start("f2", enqueue, "x")
    hand.settle()
    hand.judge()
