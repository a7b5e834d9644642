"""Mistakes with what comes after its time: after the retry window at a replica, after the deadline at a front end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec.structs import replace

from quorate.adts.log import Value
from quorate.api_specs.messages import Accept, Collect, Commit
from quorate.client_sdk.protocol.core.values import (
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Enqueue,
    PutIfAbsent,
    Read,
    Write,
)
from quorate.client_sdk.protocol.decisions import transitions
from quorate.client_sdk.protocol.decisions.proposer import Proposer
from quorate.replica.protocol import acceptor
from quorate.replica.protocol.log import Log, ObjectState
from quorate.simulation.violation import Violation
from quorate.timestamps.clock import Now
from tests.sim.planted import replicas, schedules
from tests.sim.planted.plant import Plant, Planting, patched
from tests.sim.planted.played import QUEUE, Played

KEY = "dictionary/d/k"
X, Y = Value('"x"'), Value('"y"')


@contextmanager
def decide_after_the_deadline() -> Iterator[None]:
    """What became of an entry is decided together with a newer operation, however late for its own, and however old it is."""
    with patched(Proposer, _late=lambda *_: []), patched(transitions, _is_old=lambda *_: False):
        yield


def held_since_its_horizon() -> Planting:
    """A replica counts from when it heard of the deletion, whatever was decided since."""
    right = acceptor._decided

    def decided(request: Commit, state: ObjectState, log: Log) -> ObjectState:
        after = right(request, state, log)
        return replace(after, decided_by=state.decided_by) if after.horizon == state.horizon else after

    return patched(acceptor, _decided=decided)


def forget_what_is_nothing() -> Planting:
    """A replica is told that a deletion is old, and forgets it, whatever decision has made it."""
    return patched(acceptor, may_forget=lambda decided, accepted, ended, **_: ended is not None)


@contextmanager
def hear_answers_however_late() -> Iterator[None]:
    """A front end takes in what replicas answer long after all who had asked have ended."""
    with patched(Now, since_s=lambda *_: 0.0), replicas.monotonic_alone():
        yield


def recovery_that_a_newer_operation_carries_along() -> None:
    """Enq(x) has reached r1 only, x is taken, and r2 and r3 refuse Enq(x). f1 asks for its recovery, is deposed, and stopped. When the retry window
    is over, x is forgotten, as y is taken at r1 and r3. f1 goes on, and begins a Deq: the recovery is decided together with that, on
    fresh answers, before the Enq hears of the time."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.reach("f1", "r1")
    hand.at("f2", Dequeue(QUEUE), *hand.replicas)
    hand.carry_commits("f2", *hand.replicas)
    hand.carry("f1", "r2", "r3")
    hand.drop("f1")
    hand.go_until(Collect, "f1")
    hand.start("f9", Dequeue(QUEUE), "other", is_noted=False)
    hand.reach("f9", "r2", "r3")
    hand.vanish("f9")
    hand.carry("f1", "r2")
    hand.grow_old()
    hand.at("f3", Enqueue(QUEUE, (Y,)), "r1", "r3")
    hand.at("f4", Dequeue(QUEUE), "r1", "r3")
    hand.carry_commits("f4", "r1", "r3")
    hand.start("f1", Dequeue(QUEUE), "new")
    hand.carry("f1", "r3")
    for _ in range(6):
        for replica in ("r1", "r3"):
            if any(packet.send.replica == replica for packet in hand.of("f1")):
                hand.carry("f1", replica)
    hand.settle()
    hand.judge()


def answer_from_before_the_deletion() -> None:
    """A key is put everywhere, and deleted at r2 and r3. A reader asks, and is stopped; r1, which lacks the deletion, has answered. The key is
    forgotten by all. The reader goes on, and hears of r1's answer; then it reads again, at r2 and r3."""
    hand = Played()
    hand.ask("f1", Write(KEY, X))
    hand.carry_commits("f1", *hand.replicas)
    hand.at("f2", Write(KEY, None), "r2", "r3")
    hand.carry_commits("f2", "r2", "r3")
    hand.packets.clear()
    hand.grow_old()
    hand.start("f4", Read(KEY), "stopped")
    arrive = hand.answer_late("f4", "r1")
    hand.ripen(KEY)
    hand.bury(KEY)
    hand.at("f4", Read(KEY), "r2", "r3")  # It knows now how high their floors are.
    arrive()
    hand.at("f4", Read(KEY), "r2", "r3")
    hand.judge()


def answer_that_shows_what_a_decision_ended() -> None:
    """A deletion is old, and held by all for a window. PutIfAbsent(x) finds the key absent; r1 alone accepts, and shows it to a reader, whose answer
    is slow. A compare-and-set under a key fails at r2 and r3: by its decision x never took effect. All hold the deletion under that
    decision, for a moment only, when a janitor comes. The reader hears of x, and must not go on from it."""
    hand = Played()
    hand.ask("f1", Write(KEY, None))
    hand.carry_commits("f1", *hand.replicas)
    hand.grow_old()
    hand.ripen(KEY)
    hand.start("f2", PutIfAbsent(KEY, X), "set")
    hand.go_until(Accept, "f2", "r1", "r2")
    hand.reach("f2", "r1")
    hand.vanish("f2")
    hand.start("f3", Read(KEY), "slow")
    arrive = hand.answer_late("f3", "r1")
    hand.at("f4", CompareAndSet(KEY, X, Y, key="k"), "r2", "r3")
    hand.carry_commits("f4", *hand.replicas)
    with hand.stopped("f3"):
        hand.ask("janitor", CollectTombstone(KEY))
        hand.carry_commits("janitor", *hand.replicas)
    hand.at("f3", Read(KEY), "r2", "r3")  # It knows now how high their floors are.
    arrive()
    hand.finish("slow", "f3", "r2", "r3")
    # Linearizable all the same, for nobody was told what became of the put.
    if hand.result("slow") is not None:
        raise Violation("what a decision had ended took effect")
    hand.judge()


def decision_between_the_look_and_the_tombstone() -> None:
    """A deletion is old, and held by all for a window. A janitor looks; r1's answer takes long. Put(x) reaches r1 only. A compare-and-set under a key
    finds it there, and r1 alone accepts y in its place. It is repeated under its key at r2 and r3, and fails: that is decided, under a
    ballot above. Now the janitor hears of r1, and has the deletion forgotten. y must not show."""
    hand = Played()
    hand.ask("f1", Write(KEY, None))
    hand.carry_commits("f1", *hand.replicas)
    hand.grow_old()
    hand.ripen(KEY)
    hand.start("janitor", CollectTombstone(KEY), "collected", is_noted=False)
    hand.carry("janitor", "r2", "r3")
    arrive = hand.answer_late("janitor", "r1")
    hand.compare_in_vain_again(KEY, X, Y)
    hand.vanish("repeat")
    arrive()
    hand.finish("collected", "janitor", *hand.replicas)
    hand.at("f5", Read(KEY), "r1", "r2")
    hand.judge()


PLANTED: Final = (
    Plant(
        "retry-window-ignored",
        replicas.too_old_is_taken,
        ("taken twice",),
        schedule=schedules.front_end_that_was_suspended,
    ),
    Plant(
        "decided-after-the-deadline",
        decide_after_the_deadline,
        ("taken twice",),
        schedule=recovery_that_a_newer_operation_carries_along,
    ),
    Plant(
        "heard-however-late",
        hear_answers_however_late,
        ("linearizable",),
        schedule=answer_from_before_the_deletion,
    ),
    Plant(
        "held-since-its-horizon",
        held_since_its_horizon,
        ("ended by a decision",),
        schedule=answer_that_shows_what_a_decision_ended,
    ),
    Plant(
        "forgotten-by-any-decision",
        forget_what_is_nothing,
        ("linearizable",),
        schedule=decision_between_the_look_and_the_tombstone,
    ),
)
