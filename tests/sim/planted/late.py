"""Mistakes with what comes after its time: after the retry window at a replica, after the deadline at a front end."""

from typing import Final

from quorate.adts.log import Value
from quorate.api_specs.messages import Collect
from quorate.client_sdk.protocol.core.values import Dequeue, Enqueue
from quorate.client_sdk.protocol.front_end import FrontEnd
from tests.sim.planted import replicas, schedules
from tests.sim.planted.plant import Plant, Planting, patched
from tests.sim.planted.played import QUEUE, Played

X, Y = Value('"x"'), Value('"y"')


def hear_answers_however_late() -> Planting:
    """A front end takes in what replicas answer long after all who had asked have ended."""
    return patched(FrontEnd, _is_too_late=lambda *_: False)


def front_end_that_slept() -> None:
    """Enq(x) has reached r1 only, x is taken and noted as ambiguous, and r2 and r3 refuse Enq(x): f1 asks for its recovery, hears
    r2, and sleeps. When the retry window is over, all clocks step back by as much, so that f1's term is still the highest; x is
    forgotten when y is taken at r1 and r3. Only then f1 hears r3."""
    hand = Played()
    hand.start("f1", Enqueue(QUEUE, (X,)), "x")
    hand.reach("f1", "r1")
    hand.at("f2", Dequeue(QUEUE), *hand.replicas)
    hand.carry("f1", "r2", "r3")
    hand.drop("f1")
    hand.go_until(Collect, "f1")
    hand.carry("f1", "r2")
    slept_us = int((hand.document.memory_s + 1) * 1e6)
    hand.sleep(slept_us)
    for name in (*hand.replicas, "f1", "f3", "f4", "end"):
        hand.wall_errors_us[name] = -slept_us - 20_000
    hand.at("f3", Enqueue(QUEUE, (Y,)), "r1", "r3")
    hand.at("f4", Dequeue(QUEUE), "r1", "r3")
    hand.carry_commits("f4", "r1", "r3")
    hand.carry("f1", "r3")
    hand.settle()
    hand.judge()


PLANTED: Final = (
    Plant(
        "retry-window-ignored",
        replicas.too_old_is_taken,
        ("taken twice",),
        schedule=schedules.front_end_that_was_suspended,
    ),
    Plant(
        "heard-however-late",
        hear_answers_however_late,
        ("taken twice",),
        schedule=front_end_that_slept,
    ),
)
