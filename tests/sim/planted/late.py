"""Mistakes with what comes after its time: after the retry window at a replica, after the deadline at a front end."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from quorate.adts.log import Value
from quorate.api_specs.messages import Batch, Collect
from quorate.client_sdk.protocol.core.values import Dequeue, Enqueue, Read, Write
from quorate.client_sdk.protocol.decisions import transitions
from quorate.client_sdk.protocol.decisions.proposer import Proposer
from quorate.timestamps.clock import Now
from tests.sim.planted import replicas, schedules
from tests.sim.planted.plant import Plant, patched
from tests.sim.planted.played import QUEUE, Played

KEY = "dictionary/d/k"
X, Y = Value('"x"'), Value('"y"')


@contextmanager
def decide_after_the_deadline() -> Iterator[None]:
    """What became of an entry is decided together with a newer operation, however late for its own, and however old it is."""
    with patched(Proposer, _late=lambda *_: []), patched(transitions, _is_old=lambda *_: False):
        yield


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
    (slow,) = [packet for packet in hand.of("f4") if packet.send.replica == "r1"]
    batch = Batch(hand.document.hash, slow.send.requests)
    answer = hand.replicas["r1"].exchange(batch, hand._now("r1").wall_us)
    hand.drop("f4")
    hand.ripen(KEY)
    hand.bury(KEY)
    hand.at("f4", Read(KEY), "r2", "r3")  # It knows now how high their floors are.
    tokens = [slow.send.token for _ in slow.send.requests]
    hand._obey("f4", hand._fronts["f4"].deliver("r1", tokens, answer, slow.sent, hand._now("f4")))
    hand.at("f4", Read(KEY), "r2", "r3")
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
)
