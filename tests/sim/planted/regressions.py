"""Schedules by hand of mistakes that were made here, and found by chance at a seed that no longer meets them.

Each is told first and then played, as in `tests.sim.planted.schedules`.
"""

from quorate.adts.log import Value
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Accept, Append, Collect
from quorate.client_sdk.protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Enqueue,
    Items,
    PutIfAbsent,
    Read,
    Write,
)
from quorate.timestamps.clock_bound import DRIFT
from tests.sim.planted.played import QUEUE, Played

REGISTER, DICTIONARY, KEY = "register/r", "dictionary/d", "dictionary/d/k"
V, W, X, Y, Z = (Value(f'"{item}"') for item in "vwxyz")


def two_writes_in_one_microsecond() -> None:
    """(Seed 1007521.) All clocks are right, and stand still: f2 writes w at r1 and r2, and once that has returned f1
    writes v. Had w returned in the very microsecond of its timestamp, v would get a lower one, for f1 stands before f2."""
    hand = Played()
    hand.step_us = 0
    hand.start("f2", Write(REGISTER, W), "w")
    hand.carry("f2", "r1", "r2")
    while "w" not in hand.outcomes:
        hand.step_us = 1
        hand.sleep()
    hand.start("f1", Write(REGISTER, V), "v")
    hand.step_us = 1
    hand.settle()
    hand.ask("f3", Read(REGISTER))
    hand.judge()


def write_by_a_clock_that_runs_fast() -> None:
    """(No seed.) Replicas' clocks may be a second off. They are ahead when f1, whose clock runs as fast as a clock may, enqueues x,
    stored at r1, and waits two seconds; then they are behind, and f2 enqueues y at r2. Had f1 returned 0.4 ms early, y
    would get the lower timestamp."""
    hand = Played({"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}, clock=ClockSettings(replica_error_s=1.0))
    hand.drifts["f1"] = -DRIFT
    hand.wall_errors_us = dict.fromkeys(hand.replicas, 1_000_000)
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.finish("x", "f1", "r1")
    hand.drop("f1")
    hand.wall_errors_us = dict.fromkeys(hand.replicas, -1_000_000)
    hand.at("f2", Enqueue(QUEUE, (Y,)), "r2", "r3")
    hand.judge()


def clocks_that_were_set_back() -> None:
    """(No seed.) x is enqueued, and a value written and a key put, while the replicas' clocks are 300 days ahead. They are set
    right. A new front end enqueues y, writes another value and deletes the key, with `ordering = "quorum"`: none of it may be
    refused, nor come before what was there."""
    hand = Played({"Enq/Ok": (2, 2), "Deq/Ok": (2, 2)}, clock=ClockSettings(), ordering="quorum")
    hand.wall_errors_us = dict.fromkeys(hand.replicas, 300 * 86_400_000_000)
    for operation in (Enqueue(QUEUE, (X,)), Write(REGISTER, X), Write(KEY, X)):
        hand.forward_known("f1", operation)
    hand.wall_errors_us = {}
    for operation in (Enqueue(QUEUE, (Y,)), Write(REGISTER, Y), Write(KEY, None)):
        hand.forward_known("f2", operation)
    for question in (Dequeue(QUEUE), Read(REGISTER), Read(KEY), CompareAndSet(REGISTER, Y, Z)):
        hand.forward_known("f3", question)
    hand.judge()


def stored_at_r1_while_clocks_are_ahead() -> Played:
    """x is enqueued at r1 alone, where one replica is enough; the replicas' clocks are a minute ahead."""
    hand = Played({"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}, clock=ClockSettings())
    hand.wall_errors_us = dict.fromkeys(hand.replicas, 60_000_000)
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.finish("x", "f1", "r1")
    hand.drop("f1")
    return hand


def clocks_that_were_set_back_without_reading() -> None:
    """(No seed.) x is enqueued at r1, while the replicas' clocks are a minute ahead; a value is written at r1 and r2, and a key put.
    The clocks are set right. A front end that knows of it from another object only enqueues y at r2, having looked where x
    may be, and writes and deletes: none of it may come before what was there, nor wait for a minute."""
    hand = stored_at_r1_while_clocks_are_ahead()
    for operation in (Write(REGISTER, X), Write(KEY, X)):
        hand.forward_known("f1", operation)
    hand.wall_errors_us = {}
    begun_us = hand.now_us
    hand.forward_known("f2", Read("register/other"))
    hand.start("f2", Enqueue(QUEUE, (Y,)), "y")
    hand.go_until(Append, "f2", *hand.replicas)
    hand.finish("y", "f2", "r2")
    for operation in (Write(REGISTER, Y), Write(KEY, None)):
        hand.forward_known("f2", operation)
    for question in (Read(REGISTER), Read(KEY)):
        hand.forward_known("f3", question)
    hand.must_have_taken(begun_us, 5_000_000)
    hand.judge()


def clocks_set_right_beside_a_front_end_that_stays() -> None:
    """(No seed.) f1 enqueues x, writes and puts while the replicas' clocks are a minute ahead. They are set right, and f1, whose last timestamps
    were refused, goes on: from then on nothing may be refused, on those objects and on others, nor come before what was there."""
    hand = Played({"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}, clock=ClockSettings())
    hand.wall_errors_us = dict.fromkeys(hand.replicas, 60_000_000)
    for operation in (Enqueue(QUEUE, (X,)), Write(REGISTER, X), Write(KEY, X)):
        hand.forward_known("f1", operation)
    hand.wall_errors_us = {}
    hand.sleep(1_000_000)
    for refused in (Enqueue(QUEUE, (V,)), Write(REGISTER, V), Write("register/new", V)):
        hand.start("f1", refused, f"perhaps {refused.object}")
        hand.settle()
    begun_us = hand.now_us
    for operation in (Enqueue(QUEUE, (Y,)), Write(REGISTER, Y), Write(KEY, None), Write("register/new", Y)):
        hand.forward_known("f1", operation)
    for decision in (CompareAndSet(REGISTER, Y, Z), Dequeue(QUEUE)):
        hand.forward_known("f1", decision)
    for question in (Read(REGISTER), Read(KEY), Read("register/new")):
        hand.forward_known("f2", question)
    hand.must_have_taken(begun_us, 5_000_000)
    hand.judge()


def clock_set_back_below_what_it_stored() -> None:
    """(No seed.) Clocks are 1.5 s ahead, which is no more than they may be, when f1 enqueues x at r1. They are a minute ahead, and what f1
    stamps then is lost. They are set right; f1 hears that of r2 and r3, has forgotten the queue among many others, and enqueues z at r2."""
    hand = Played({"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}, clock=ClockSettings())
    hand.wall_errors_us = dict.fromkeys(hand.replicas, 1_500_000)
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.finish("x", "f1", "r1")
    hand.drop("f1")
    hand.wall_errors_us = dict.fromkeys(hand.replicas, 60_000_000)
    hand.forward_known("f1", Read(REGISTER))
    hand.start("f1", Enqueue("queue/other", (Y,)), "y", is_noted=False)
    hand.drop("f1")
    hand.cancel("f1", "y")
    hand.wall_errors_us = {}
    hand.at("f1", Read(REGISTER), "r2", "r3")
    hand.forget("f1", QUEUE)
    hand.start("f1", Enqueue(QUEUE, (Z,)), "z")
    hand.go_until(Append, "f1", *hand.replicas)
    hand.finish("z", "f1", "r2")
    hand.drop("f1")
    hand.judge()


def just_before_time_comes_to_what_was_ahead() -> None:
    """(No seed.) x is enqueued while clocks are a minute ahead. They are set right, and f2 reads a register. 58.5 s later it enqueues z: x is 1.5 s
    ahead by then, as what others still wait for may be."""
    hand = Played(clock=ClockSettings())
    hand.wall_errors_us = dict.fromkeys(hand.replicas, 60_000_000)
    hand.forward_known("f1", Enqueue(QUEUE, (X,)))
    hand.wall_errors_us = {}
    hand.forward_known("f2", Read(REGISTER))
    hand.sleep(58_500_000)
    hand.forward_known("f2", Read(REGISTER))
    hand.forward_known("f2", Enqueue(QUEUE, (Z,)))
    hand.judge()


def told_late_of_what_was_ahead() -> None:
    """(No seed.) x is enqueued at r1, and a value written, while clocks are a minute ahead. They are set right, and f2 reads a register. f3
    begins 58.5 s later: x is 1.5 s ahead when it hears of it first. It enqueues y at r2, and writes."""
    hand = stored_at_r1_while_clocks_are_ahead()
    hand.forward_known("f1", Write(REGISTER, X))
    hand.wall_errors_us = {}
    hand.forward_known("f2", Read("register/other"))
    hand.sleep(58_500_000)
    hand.forward_known("f3", Read("register/other"))
    hand.start("f3", Enqueue(QUEUE, (Y,)), "y")
    hand.go_until(Append, "f3", *hand.replicas)
    hand.finish("y", "f3", "r2")
    hand.forward_known("f3", Write(REGISTER, Y))
    hand.forward_known("f4", Read(REGISTER))
    hand.judge()


def look_whose_reason_is_over() -> None:
    """(No seed.) x is enqueued at r1 while clocks are a minute ahead. They are set right. 58.5 s later r3 is down; f3 hears of x, and enqueues y. To
    look for x it would need r3, but in 2 s time has come to x."""
    hand = stored_at_r1_while_clocks_are_ahead()
    hand.wall_errors_us = {}
    hand.forward_known("f2", Read("register/other"))
    hand.sleep(58_500_000)
    hand.at("f3", Read("register/other"), "r1", "r2")
    begun_us = hand.now_us
    hand.start("f3", Enqueue(QUEUE, (Y,)), "y")
    hand.finish("y", "f3", "r1", "r2")
    hand.must_have_taken(begun_us, 5_000_000)
    hand.drop("f3")
    hand.judge()


def swap_at_one_replica_during_a_whole_read() -> None:
    """(Seed 1002738.) Put(v) has reached r1 only. An Items at r1 and r2 finds it there and writes it back. Meanwhile a swap
    to w, of the same front end, is accepted by r1 alone, so that what the front end knows of the key is newer than what
    was settled. Items ends; then the key is read at r2 and r3."""
    hand = Played()
    hand.start("f0", Write(KEY, V), "put")
    hand.carry("f0", "r1")
    hand.vanish("f0")
    hand.start("f1", Items(DICTIONARY), "items")
    hand.carry("f1", "r1", "r2")  # The scan.
    hand.carry("f1", "r1", "r2")  # A closer look, and then the write-back.
    hand.start("f1", CompareAndSet(KEY, V, W), "swap")
    hand.carry_only(Collect, "f1", "r1", "r3")
    hand.carry_only(Accept, "f1", "r1")
    hand.lose(Accept)
    hand.carry_only(Append, "f1", "r2")
    hand.finish("items", "f1", "r1", "r2")
    hand.packets.clear()
    hand.at("f2", Read(KEY), "r2", "r3")
    hand.judge()


def live_key_under_the_floor_of_a_burial() -> None:
    """(Seed 42237.) Put(v) is at r1 and r2. Another key is put, deleted and collected, which raises the floor of every replica
    above v. Then r3 comes to know the live key, under that floor, by a decision that changes nothing; an Items at r1 and
    r3."""
    hand = Played()
    hand.start("f1", Write(KEY, V), "put")
    hand.carry("f1", "r1", "r2")
    hand.carry_commits("f1", "r1", "r2")
    hand.drop("f1")
    hand.ask("f2", Write(f"{DICTIONARY}/other", W))
    hand.ask("f2", Write(f"{DICTIONARY}/other", None))
    hand.grow_old()
    hand.ripen(f"{DICTIONARY}/other")
    hand.bury(f"{DICTIONARY}/other")
    hand.at("f3", PutIfAbsent(KEY, W), "r1", "r3")
    hand.at("f4", Items(DICTIONARY), "r1", "r3")
    hand.judge()


def owner_deposed_after_a_long_turn() -> None:
    """(Seed 31860.) f1 owns the queue for nearly half of the memory. Its last accept, which takes y, is decided at r1 and
    r2, but no answer comes back; and when f2 takes z, f1's term began longer ago than the memory reaches. Nothing is
    lost from then on, so f1 must learn that it has y."""
    # A memory that is shorter than two deadlines, as no cluster has.
    hand = Played(limits=Limits(retry_window_s=16.0, deadline_s_max=14.0, wait_s_max=9.0, consumed_lag_s=9.0))
    for value in (X, Y, Z):
        hand.ask("f0", Enqueue(QUEUE, (value,)))
    memory_us = int(hand.document.memory_s * 1e6)
    hand.ask("f1", Dequeue(QUEUE))
    hand.packets.clear()
    hand.sleep(int(0.47 * memory_us))
    hand.start("f1", Dequeue(QUEUE), "y")
    hand.go_until(Accept, "f1", "r1", "r2")  # After so long a rest it looks first.
    hand.reach("f1", "r1", "r2")
    hand.drop("f1")
    hand.sleep(int(0.55 * memory_us))
    hand.at("f2", Dequeue(QUEUE), "r1", "r2")
    hand.settle()
    hand.must_be_known("y")
    hand.judge()


def caller_that_was_told_meanwhile() -> None:
    """(No seed.) f1's Deqs a and b ask for a decision together, b five seconds later. Their collect finds nothing at first,
    and is lost from then on, until a was told that nothing came of it. Now y and z are there: a must not be given y."""
    hand = Played()
    hand.everywhere("f0", Enqueue(QUEUE, (X,)))
    hand.start("f1", Dequeue(QUEUE), "first")
    hand.start("f1", Dequeue(QUEUE), "a")
    hand.sleep(5_000_000)
    hand.start("f1", Dequeue(QUEUE), "b")
    hand.finish("first", "f1", "r1", "r2")
    for value in (Y, Z):
        hand.everywhere("f0", Enqueue(QUEUE, (value,)))
    while "a" not in hand.outcomes:
        hand.drop("f1")
        hand.wake("f1")
    hand.settle()
    hand.judge()
