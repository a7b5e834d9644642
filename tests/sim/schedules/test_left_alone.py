"""A front end is left with one replica that contradicts what the others showed before: it goes by that one, and by most again as soon as another is back."""

from typing import Any, Final

from quorate.adts.log import Value
from quorate.api_specs.cluster import ChoiceRule, ClockSettings
from quorate.client_sdk.protocol.core.values import Dequeue, Done, Enqueue, Operation, Outcome, Read, Write
from quorate.timestamps.clock_bound import AWAY_S
from tests.sim.schedules.hand import STEPS_MAX, Hand

CHOICE: Final = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
ALONE: Final = ChoiceRule("register/one", reads="r1", writes="r1")
AHEAD_US: Final = 60_000_000


class Parted(Hand):
    """Where a front end can make no connection to the replicas that are `gone` to it."""

    def __init__(self, choice: dict[str, tuple[int, int]], **settings: Any) -> None:
        super().__init__(choice, clock=ClockSettings(), **settings)
        self.gone: dict[str, set[str]] = {}

    def try_out(self, front: str, operation: Operation, within_s: float = 1.0) -> Outcome:
        """What comes of an operation within so long."""
        name = f"{front}: {operation} at {self.now_us}"
        self.start_all(front, {name: operation}, within_s)
        for _ in range(STEPS_MAX):
            if name in self.outcomes:
                return self.outcomes[name]
            mine = [packet for packet in self.packets if packet.front == front]
            lost = [packet for packet in mine if packet.send.replica in self.gone.get(front, ())]
            if lost:
                others = [packet for packet in self.packets if packet not in lost]
                self.packets = lost
                self.fail(front, definite=True)
                self.packets = others + self.packets
            elif mine:
                self.carry(front, mine[0].send.replica)
            else:
                self.sleep()
        raise AssertionError(f"{name} has no outcome")


def test_a_front_end_that_knew_the_others_is_not_refused_for_as_long_as_they_were_ahead() -> None:
    hand = Parted(CHOICE, rules=(ALONE,))
    hand.wall_errors_us = dict.fromkeys(hand.replicas, AHEAD_US)
    hand.ask("a", Write("register/one", Value('"first"')))
    hand.wall_errors_us["r1"] = 0
    hand.gone["a"] = {"r2", "r3"}
    begun_us, done = hand.now_us, list[str]()
    while hand.now_us < begun_us + 20_000_000:
        outcome = hand.try_out("a", Write("register/one", Value(f'"after {len(done)}"')))
        done.append("done" if isinstance(outcome, Done) else "failed")
        hand.sleep(1_000_000)
    assert done[0] == "failed", "most of the replicas said so"
    first = done.index("done")
    assert first <= AWAY_S + 1
    assert set(done[first:]) == {"done"}


def test_one_wrong_clock_that_it_was_left_with_costs_no_order_once_another_replica_is_back() -> None:
    """The clock of r1 is a minute behind, and x reaches nobody else for a while. When r2 is back, y, which has always told the right time, adds Y by r2;
    then x adds X. The third, r3, stays away from x."""
    hand = Parted({"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})
    hand.wall_errors_us["r1"] = -AHEAD_US
    for front in ("x", "y"):
        hand.ask(front, Read("register/r"))
    other = Enqueue("queue/other", (Value("0"),))
    hand.ask("x", other)
    hand.gone["x"] = {"r2", "r3"}
    while hand.now_us < (AWAY_S + 4) * 1e6:
        hand.try_out("x", other)
        hand.sleep(500_000)
    hand.sleep(AHEAD_US)  # Time has come, by r1, to what x gave before.
    assert isinstance(hand.try_out("x", other), Done), "it goes by r1"
    hand.gone = {"x": {"r3"}, "y": {"r1"}}
    assert isinstance(hand.try_out("x", other), Done), "it hears r2"
    for front, text in (("y", '"Y"'), ("x", '"X"')):
        assert isinstance(hand.try_out(front, Enqueue("queue/q", (Value(text),)), within_s=20.0), Done)
    hand.wall_errors_us["r1"] = 0
    assert [hand.ask("z", Dequeue("queue/q")) for _ in range(2)] == [('"Y"',), ('"X"',)]
