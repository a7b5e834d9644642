"""Idempotency keys by hand: what is gone, what was asked differently, and clocks that are wrong by an hour."""

from quorate.adts.log import NOTHING, Entry, Value
from quorate.api_specs.cluster import ClockSettings
from quorate.client_sdk.protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Enqueue,
    Failed,
    PutIfAbsent,
    Write,
)
from quorate.client_sdk.protocol.decisions.transitions import Fate, RecoverCommand, plan_queue
from quorate.gc.pruning import ANY_ARRIVAL
from quorate.timestamps.timestamp import INFINITY, ZERO
from tests.sim.schedules.hand import Hand
from tests.unit.client_sdk.protocol.test_repeats_in_one_batch import CONTEXT, STAMPS

MAJORITIES = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
QUEUE, REGISTER, KEY = "queue/q", "register/r", "dictionary/d/k"
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
