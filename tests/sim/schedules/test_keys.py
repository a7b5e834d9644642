"""Idempotency keys by hand: what is gone, what was asked differently, and clocks that are wrong by an hour."""

from typing import Any, Final

import pytest

from quorate.adts.log import NOTHING, Entry, Value
from quorate.api_specs.cluster import ClockSettings
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Accept, Append, Collect
from quorate.client_sdk.protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Done,
    Enqueue,
    Failed,
    Operation,
    PutIfAbsent,
    Read,
    Settle,
    Write,
)
from quorate.client_sdk.protocol.decisions.transitions import Fate, RecoverCommand, plan_queue
from quorate.gc.pruning import ANY_ARRIVAL, Pruning
from quorate.gc.tombstones import Tombstones
from quorate.timestamps.timestamp import INFINITY, ZERO
from tests.sim.planted.played import Played
from tests.sim.schedules.hand import Hand
from tests.unit.client_sdk.protocol.test_repeats_in_one_batch import CONTEXT, STAMPS

MAJORITIES = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
QUEUE, REGISTER, KEY = "queue/q", "register/r", "dictionary/d/k"
NULL = Value("null")
X, Y, Z = Value('"x"'), Value('"y"'), Value('"z"')
HOUR_US = 3_600_000_000
EVERYONE = ("r1", "r2", "r3")


def refusal(hand: Hand, front: str, operation: CompareAndSet | PutIfAbsent | Enqueue) -> tuple[str, bool]:
    name = f"{len(hand.outcomes)}: refused"
    hand.start(front, operation, name)
    hand.settle()
    outcome = hand.outcomes[name]
    assert isinstance(outcome, Failed)
    return outcome.reason, outcome.definite


def test_a_key_that_comes_back_with_other_arguments_is_refused_and_changes_nothing() -> None:
    """At another front end too: the summary tells. The first arguments still get the first answer."""
    hand = Hand(MAJORITIES)
    for first, other in (
        (CompareAndSet(REGISTER, None, X, "k"), CompareAndSet(REGISTER, X, Y, "k")),
        (CompareAndSet(REGISTER, X, Y, "l"), CompareAndSet(REGISTER, X, Z, "l")),
        (PutIfAbsent(KEY, X, "k"), PutIfAbsent(KEY, Y, "k")),
    ):
        assert hand.ask("f1", first) is True
        for front in ("f1", "f2"):
            assert refusal(hand, front, other) == ("key-reused", True)
            assert hand.ask(front, first) is True
    assert hand.ask("f2", CompareAndSet(REGISTER, Y, Z)) is True
    assert hand.ask("f2", CompareAndSet(KEY, X, Z)) is True


def test_a_repeat_whose_items_are_gone_fails_alone() -> None:
    """x was taken under a key long ago, and no log holds it any more. Its late repeat meets another consumer's dequeue in
    one decision, which must not be told that the replicas refused it."""
    hand = Hand(MAJORITIES)
    hand.ask("f1", Enqueue(QUEUE, (X,)))
    assert hand.ask("f1", Dequeue(QUEUE, key="k")) == (X,)
    hand.carry_commits("f1", *EVERYONE)
    for replica in hand.replicas.values():
        assert replica.store.delete_upto(QUEUE, INFINITY, 9, ANY_ARRIVAL) == (1, False)
    hand.ask("f1", Enqueue(QUEUE, (Y,)))
    hand.start("f2", Dequeue(QUEUE, 9), "occupies the proposer")
    hand.start("f2", Dequeue(QUEUE, key="k"), "repeat")
    hand.start("f2", Dequeue(QUEUE), "other")
    hand.ask("f1", Enqueue(QUEUE, (Z,)))
    hand.settle()
    repeat = hand.outcomes["repeat"]
    assert isinstance(repeat, Failed)
    assert (repeat.reason, repeat.definite) == ("unknown", False)
    assert hand.result("occupies the proposer") + hand.result("other") == (Y, Z)


def test_a_wall_clock_that_is_an_hour_ahead_forgets_no_keys() -> None:
    """Such a front end measures its clock, stamps rightly, and is accepted; so it must not judge by the wall clock what
    nobody will repeat any more."""
    hand = Hand(MAJORITIES, clock=ClockSettings())
    hand.ask("f2", Write(REGISTER, X))  # f2 was right once, and knows the clocks.
    assert hand.ask("f1", CompareAndSet(REGISTER, X, Y, "k")) is True
    hand.wall_errors_us["f2"] = HOUR_US
    assert hand.ask("f2", CompareAndSet(REGISTER, Y, X)) is True
    assert hand.ask("f1", CompareAndSet(REGISTER, X, Y, "k")) is True
    assert hand.ask("f3", CompareAndSet(REGISTER, X, Z)) is True, "the repeat did nothing"


def test_a_new_front_end_whose_clock_is_an_hour_ahead_may_begin_with_a_decision() -> None:
    hand = Hand(MAJORITIES, clock=ClockSettings())
    hand.wall_errors_us["f1"] = HOUR_US
    assert hand.ask("f1", CompareAndSet(REGISTER, None, X)) is True


def test_an_owner_that_was_idle_for_long_can_tell_what_became_of_its_accept() -> None:
    """f1 owned the queue a while ago; summaries have dropped such old terms since. Its next accept is refused: that it
    did not take effect must be told from the summary, and so the operation goes on."""
    hand = Hand(MAJORITIES)
    hand.ask("f1", Enqueue(QUEUE, (X,), "k1"))
    hand.ask("f2", Enqueue(QUEUE, (Y,), "k2"))
    hand.sleep(int(hand.document.memory_s * 1e6) + 1)
    hand.ask("f2", Enqueue(QUEUE, (Z,), "k3"))
    hand.ask("f1", Enqueue(QUEUE, (X,), "k4"))
    assert hand.ask("f3", Dequeue(QUEUE, 9)) == (X, Y, Z, X)


def test_recoveries_leave_a_summary_small_enough_to_be_sent() -> None:
    """The first recovered entry is adopted whatever its size; one for which there is no room is asked for again later."""
    entries = [
        Entry(t, t, Value('"' + "x" * size + '"')) for t, size in zip(STAMPS, (2000, 10, 10), strict=False)
    ]
    commands = [RecoverCommand(entry, True) for entry in entries]
    plan = plan_queue(NOTHING, {}, ZERO, commands, CONTEXT)
    fates = [plan.results[place] for place in range(3)]
    assert fates == [Fate.IN_FORCE, Fate.UNKNOWN, Fate.UNKNOWN]
    assert plan.summary.adopted == (entries[0],)
    plan = plan_queue(NOTHING, {}, ZERO, commands[1:], CONTEXT)
    assert [plan.results[place] for place in range(2)] == [Fate.IN_FORCE] * 2


class Kept:
    """Three replicas in time, each with its janitor, which does nothing while it is stopped."""

    def __init__(self) -> None:
        self.hand = Hand(MAJORITIES, clock=ClockSettings())
        document = self.hand.document
        self.window_s: Final = document.limits.retry_window_s
        self._janitors: Final = {
            name: Pruning(Tombstones(), lag_s=document.limits.payloads_s, window_s=document.memory_s)
            for name in self.hand.replicas
        }
        self.stopped: set[str] = set()

    def until(self, seconds: float) -> None:
        """Time passes until so much is over."""
        while self.hand.now_us < seconds * 1e6:
            self.hand.sleep(int(min(1e6, seconds * 1e6 - self.hand.now_us)))
            for name in self.hand.replicas.keys() - self.stopped:
                store: Any = self.hand.replicas[name].store
                while self._janitors[name].round(store, self.hand._now()):
                    pass
                store.commit()

    def left(self) -> tuple[Value, ...]:
        """All that still waits in the queue."""
        found: tuple[Value, ...] = self.hand.ask("last", Dequeue(QUEUE, 9))
        return found


def test_an_enqueue_repeated_in_the_window_is_done_once_though_replicas_stand_still_beyond_it() -> None:
    """Seen on live replicas: r2 and r3 were stopped a moment before the repeat, for six seconds; when they went on they had forgotten the
    key, the repeat was told that it was done, and the item was there twice."""
    kept = Kept()
    hand = kept.hand
    hand.ask("f1", Enqueue(QUEUE, (X,), "k"))
    kept.until(kept.window_s - 0.3)
    kept.stopped = {"r2", "r3"}
    hand.start("f2", Enqueue(QUEUE, (X,), "k"), "repeat")
    hand.carry("f2", "r1")
    kept.until(hand.document.clock.offset_max_s * 2 + kept.window_s + 2)
    kept.stopped = set()
    kept.until(hand.now_us / 1e6 + 0.1)
    hand.settle()
    assert isinstance(hand.outcomes["repeat"], Done)
    assert kept.left() == (X,)


@pytest.mark.parametrize(
    "operation", [Dequeue(QUEUE, key="k"), CompareAndSet(REGISTER, None, X, "k")], ids=["dequeue", "swap"]
)
@pytest.mark.parametrize("age_s", [0.0, 70.0], ids=["new", "old"])
def test_a_decision_repeated_in_the_window_is_done_once_though_its_front_end_stands_still_beyond_it(
    operation: Dequeue | CompareAndSet, age_s: float
) -> None:
    """Others go on meanwhile, and their decisions drop what is old. The items may be old, too: their payloads must be there all the same."""
    kept = Kept()
    hand = kept.hand
    for value in (X, Y, Z, X, Y):
        hand.ask("f0", Enqueue(QUEUE, (value,)))
    hand.carry_commits("f0", *EVERYONE)
    kept.until(age_s)
    first = hand.ask("f1", operation)
    hand.carry_commits("f1", *EVERYONE)
    kept.until(age_s + kept.window_s - 0.3)
    hand.ask("f2", Read(KEY))  # It knows the clocks.
    hand.start("f2", operation, "repeat")
    for seconds in (1.0, 5.0, 6.0):
        kept.until(age_s + kept.window_s + seconds)
        for other in (Dequeue(QUEUE), CompareAndSet(REGISTER, X if seconds == 1.0 else NULL, NULL)):
            hand.start("f3", other, f"{seconds} {other}")
            hand.carry_until(f"{seconds} {other}", "f3", *EVERYONE)
    hand.settle()
    assert hand.result("repeat") == first
    assert kept.left() == ((X, Y) if isinstance(operation, CompareAndSet) else (Y,))
    assert hand.ask("last", Read(REGISTER)) in (None, NULL)


def test_what_a_keyed_dequeue_takes_that_was_recovered_with_it_is_kept_for_its_repeat() -> None:
    """No log may hold an item that is only adopted. Adopted and taken in one decision, it was remembered by its name alone: the repeat was
    told that the outcome is unknown, and nobody got the item."""
    hand = Hand(MAJORITIES)
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    appends, hand.packets = hand.packets, []
    hand.start("f2", Enqueue(QUEUE, (Y,)), "y")
    hand.carry("f2", *EVERYONE)
    hand.start("f2", Dequeue(QUEUE), "gone")
    hand.carry("f2", "r1", "r2")  # They are fenced at y, and f2 is heard of no more.
    hand.start("f1", Settle(QUEUE, "ack", ("1/none",)), "has its turn before")
    collects = [packet for packet in hand.packets if packet.front == "f1"]
    hand.packets = appends
    hand.carry("f1", "r1", "r2")  # Both refuse x; what was sent to r3 is lost.
    hand.drop("f1")
    hand.start("f1", Dequeue(QUEUE, key="k"), "taken")
    while "recoveries" not in hand.counters("f1"):
        hand.sleep()
    hand.packets = collects
    while not {"x", "taken"} <= hand.outcomes.keys():
        hand.wake("f1")
        hand.packets = [
            packet
            for packet in hand.packets
            if packet.send.replica != "r3" and not isinstance(packet.send.request, Append)
        ]
        hand.arrive("f1")
    assert isinstance(hand.outcomes["x"], Done)
    assert hand.result("taken") == (X,)
    hand.packets.clear()
    assert hand.ask("f3", Dequeue(QUEUE, key="k")) == (X,)


@pytest.mark.parametrize("is_shared", [False, True], ids=["alone", "in a shared round"])
@pytest.mark.parametrize("is_agreed", [False, True], ids=["its entries are asked for", "they are agreed"])
def test_an_enqueue_is_not_undone_for_certain_where_its_key_stands_for_a_timestamp(
    is_shared: bool, is_agreed: bool
) -> None:
    """A repeat is done at the timestamp that the replicas hold under the key, before what was enqueued since. So the first call is not
    known to have done nothing: else the items would be in a wrong order."""
    hand = Hand(MAJORITIES)
    begun: dict[str, Operation] = {"first": Enqueue(QUEUE, (X,), "k")}
    if is_shared:
        begun["beside"] = Enqueue(QUEUE, (Z,), "l")
    hand.start_all("f1", begun)
    if is_agreed:
        hand.carry("f1", *EVERYONE)
    else:
        hand.arrive("f1", is_heard=False)
    while "first" not in hand.outcomes:
        while hand.packets:
            hand.fail("f1", definite=True)
        hand.sleep()
    hand.packets.clear()
    hand.ask("f2", Enqueue(QUEUE, (Y,)))
    hand.ask("f3", Enqueue(QUEUE, (X,), "k"))
    assert hand.ask("f4", Dequeue(QUEUE, 2)) == (X, Y)
    first = hand.outcomes["first"]
    assert isinstance(first, Failed)
    assert (first.reason, first.definite) == ("unknown", False)


def test_what_a_keyed_dequeue_took_from_one_log_alone_outlives_that_replica() -> None:
    """x is at r3 alone; a keyed dequeue at r3's front end takes it, and r3 stops before its caller is told. The enqueue of x is done by what remains:
    a recovery finds that it was taken. The repeat of the dequeue must get it, though no log has it that can be asked."""
    hand = Hand(MAJORITIES)
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.carry("f1", "r3")
    hand.drop("f1")
    hand.start("f3", Dequeue(QUEUE, key="k"), "taken")
    while "taken" not in hand.outcomes:
        under_way = {packet.send.replica for packet in hand.packets if packet.front == "f3"}
        hand.carry("f3", *sorted(under_way, reverse=True))
    assert hand.result("taken") == (X,)
    hand.packets.clear()
    hand.carry_until("x", "f1", "r1", "r2")
    assert isinstance(hand.outcomes["x"], Done)
    hand.packets.clear()
    hand.start("f4", Dequeue(QUEUE, key="k"), "repeat")
    hand.carry_until("repeat", "f4", "r1", "r2")
    assert hand.result("repeat") == (X,)


def test_an_enqueue_that_leaves_a_shared_round_is_not_undone_for_certain() -> None:
    """f1's enqueue is asked for in a round beside another one; f2's, under the same key, has reached r3 first, which refuses. It goes on alone, and nobody
    can be reached any more: r1 and r2 hold what the round had asked for."""
    hand = Hand(MAJORITIES)
    hand.start_all("f1", {"first": Enqueue(QUEUE, (X,), "k"), "beside": Enqueue(QUEUE, (Z,), "l")})
    of_first, hand.packets = hand.packets, []
    hand.start("f2", Enqueue(QUEUE, (X,), "k"), "other")
    hand.packets = [packet for packet in hand.packets if packet.send.replica == "r3"]
    hand.arrive("f2", is_heard=False)
    hand.packets = of_first
    hand.carry("f1", *EVERYONE)
    while not {"first", "other"} <= hand.outcomes.keys():
        while hand.packets:
            hand.fail(hand.packets[0].front, definite=True)
        hand.sleep()
    hand.ask("f4", Enqueue(QUEUE, (Y,)))
    hand.start("f4", Enqueue(QUEUE, (X,), "k"), "again")
    hand.carry_until("again", "f4", "r1", "r2")
    hand.packets.clear()
    assert hand.ask("f5", Dequeue(QUEUE, 5))[0] == X, "it took its place before"
    first = hand.outcomes["first"]
    assert isinstance(first, Failed)
    assert not first.definite


def test_a_repeat_is_answered_beside_what_is_kept_whole_though_that_is_larger_than_a_page() -> None:
    """The first dequeue's item is remembered by its name, the second one's, which too few logs had, as it is. The payload of the first is fetched
    for its repeat: that makes the summary no heavier, and a plan made again would know no more."""
    hand = Hand(MAJORITIES, limits=Limits(page_bytes_max=1000, value_bytes_max=2000, body_bytes_max=6120))
    hand.ask("f1", Enqueue(QUEUE, (X,)))
    hand.carry_commits("f1", *EVERYONE)
    assert hand.ask("f2", Dequeue(QUEUE, key="first")) == (X,)
    large = Value(f'"{"y" * 1500}"')
    hand.start("f1", Enqueue(QUEUE, (large,)), "large")
    hand.carry("f1", "r1")
    hand.start("f2", Dequeue(QUEUE, key="second"), "second")
    hand.carry_until("second", "f2", "r1", "r3")
    assert hand.result("second") == (large,)
    hand.packets = [packet for packet in hand.packets if packet.front == "f1"]
    hand.settle()
    hand.ask("f1", Enqueue(QUEUE, (Z,)))
    hand.carry_commits("f1", *EVERYONE)
    hand.start_all("f3", {"again": Dequeue(QUEUE, key="first"), "plain": Dequeue(QUEUE)})
    hand.settle()
    assert (hand.result("again"), hand.result("plain")) == ((X,), (Z,))
    assert hand.counters("f3")["payloads fetched"] <= 2


def test_what_a_suspended_machine_had_begun_is_not_done_anew() -> None:
    """Enq(x) has reached r1 only, and is taken; r2 and r3 refuse it, and its front end asks for its recovery. Its machine is suspended, with its
    monotonic clock, until x is forgotten. Then it looks like an entry that nobody ever had."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.reach("f1", "r1")
    hand.at("f2", Dequeue(QUEUE), *hand.replicas)
    hand.carry_commits("f2", *hand.replicas)
    hand.carry("f1", "r2", "r3")
    hand.drop("f1")
    hand.go_until(Collect, "f1")
    hand.drop("f1")
    with hand.stopped("f1"):
        hand.slept_us = int((hand.document.memory_s + 1) * 1e6)
        hand.at("f3", Enqueue(QUEUE, (Y,)), *hand.replicas)
        hand.at("f4", Dequeue(QUEUE), *hand.replicas)
        hand.carry_commits("f4", *hand.replicas)
    while "x" not in hand.outcomes:
        hand.arrive("f1")
        hand.sleep()
    outcome = hand.outcomes["x"]
    assert isinstance(outcome, Failed)
    assert not outcome.definite
    hand.judge()


def test_nothing_to_dequeue_is_final_though_an_accept_of_the_first_attempt_lies_at_one_replica() -> None:
    """Enq(x) and the dequeue that met it have reached r2 alone. The repeat, at r1 and r3, finds the queue empty. Then Enq(x) is repeated, at r1 and r2, where
    the accept was gone on from: x counted as taken, and nobody ever got it."""
    hand = Played()
    hand.ask("f0", Enqueue(QUEUE, (Y,)))
    hand.ask("f0", Dequeue(QUEUE))
    hand.carry_commits("f0", *EVERYONE)
    hand.start("f1", Enqueue(QUEUE, (X,), "e"), "x")
    hand.go_until(Append, "f1", *EVERYONE)
    hand.reach("f1", "r2")
    hand.vanish("f1")
    hand.start("f2", Dequeue(QUEUE, key="k"), "taken")
    hand.go_until(Accept, "f2", "r1", "r2")
    hand.reach("f2", "r2")
    hand.vanish("f2")
    hand.lazies.clear()
    hand.sleep(27_000_000)
    hand.start("f3", Dequeue(QUEUE, key="k"), "taken")
    hand.carry_until("taken", "f3", "r1", "r3")
    hand.drop("f3")
    hand.lazies.clear()
    hand.start("f4", Enqueue(QUEUE, (X,), "e"), "x")
    hand.carry_until("x", "f4", "r1", "r2")
    hand.drop("f4")
    hand.judge()


def test_a_value_that_was_not_swapped_stays_so_though_an_accept_of_the_first_attempt_lies_at_one_replica() -> (
    None
):
    hand = Played()
    hand.ask("f0", Write(REGISTER, X))
    hand.carry_commits("f0", *EVERYONE)
    hand.start("f1", Write(REGISTER, Y), "y")
    hand.reach("f1", "r2")
    hand.vanish("f1")
    hand.start("f2", CompareAndSet(REGISTER, Y, Z, "k"), "z")
    hand.go_until(Accept, "f2", "r1", "r2")
    hand.reach("f2", "r2")
    hand.vanish("f2")
    hand.lazies.clear()
    hand.sleep(27_000_000)
    hand.start("f3", CompareAndSet(REGISTER, Y, Z, "k"), "z")
    hand.carry_until("z", "f3", "r1", "r3")
    hand.drop("f3")
    hand.lazies.clear()
    hand.start("f4", Read(REGISTER), "read")
    hand.carry_until("read", "f4", "r1", "r2")
    hand.judge()
