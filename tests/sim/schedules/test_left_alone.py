"""One replica that is enough is left, after all clocks were ahead and its own was set right: front ends that knew the others go by it."""

from typing import Final

from quorate.adts.log import Value
from quorate.api_specs.cluster import ChoiceRule, ClockSettings
from quorate.client_sdk.protocol.core.values import Done, Outcome, Write
from quorate.timestamps.clock_bound import AWAY_S
from tests.sim.schedules.hand import STEPS_MAX, Hand

CHOICE: Final = {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}
ALONE: Final = ChoiceRule("register/one", reads="r1", writes="r1")
AHEAD_US: Final = 60_000_000


class Left(Hand):
    """Where r1 alone answers; to the others no connection can be made."""

    def write(self, name: str) -> Outcome:
        """What comes of a write within a second."""
        self.start_all("a", {name: Write("register/one", Value(f'"{name}"'))}, within_s=1.0)
        for _ in range(STEPS_MAX):
            if name in self.outcomes:
                return self.outcomes[name]
            mine = [packet for packet in self.packets if packet.send.replica == "r1"]
            self.packets = [packet for packet in self.packets if packet not in mine]
            self.fail("a", definite=True)
            self.packets += mine
            if mine:
                self.carry("a", "r1")
            elif name not in self.outcomes:
                self.sleep()
        raise AssertionError(f"{name} has no outcome")


def test_a_front_end_that_knew_the_others_is_not_refused_for_as_long_as_they_were_ahead() -> None:
    hand = Left(CHOICE, clock=ClockSettings(), rules=(ALONE,))
    hand.wall_errors_us = dict.fromkeys(hand.replicas, AHEAD_US)
    hand.ask("a", Write("register/one", Value('"first"')))
    hand.wall_errors_us["r1"] = 0
    begun_us, done = hand.now_us, list[str]()
    while hand.now_us < begun_us + 20_000_000:
        name = f"after {len(done)}"
        done.append("done" if isinstance(hand.write(name), Done) else "failed")
        hand.sleep(1_000_000)
    assert done[0] == "failed", "most of the replicas said so"
    first = done.index("done")
    assert first <= AWAY_S + 1
    assert set(done[first:]) == {"done"}
