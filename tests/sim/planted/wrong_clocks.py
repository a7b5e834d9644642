"""Mistakes with what is sent again by a front end whose clock is declared right, and is not."""

from typing import Final

from quorate.client_sdk.protocol.core.time_now import TimeNow
from quorate.client_sdk.protocol.core.values import Read, Write
from quorate.timestamps.timestamp import Timestamp, wall_us
from tests.sim.planted.plant import Plant, Planting, patched
from tests.sim.planted.played import Played
from tests.sim.planted.schedules import REGISTER, V, W

BEHIND_US: Final = 4_000_000
"""By twice the offset."""


def take_repeats_for_right() -> Planting:
    """What is sent again is old for good reason: no replica judges it."""

    def was_right(self: TimeNow, stamp: Timestamp, given_s: float, replica: str) -> bool:
        del self, stamp, given_s, replica
        return True

    return patched(TimeNow, was_right=was_right)


def explain_by_the_time_of_the_answer() -> Planting:
    """A stamp is held to be behind its replica's clock for as long as the answer was on its way, too."""

    def was_right(self: TimeNow, stamp: Timestamp, given_s: float, replica: str) -> bool:
        theirs_us, sent_s = self._shown.get(replica, (0, float("-inf")))
        behind_us = theirs_us - (self._now.mono_s - given_s) * 1e6 - wall_us(stamp)
        return sent_s >= given_s and behind_us <= self.document.clock.offset_max_s * 1e6

    return patched(TimeNow, was_right=was_right)


def go_by_what_the_clock_showed_before() -> Planting:
    """What a replica's clock showed before the stamp was given counts, too."""

    def was_right(self: TimeNow, stamp: Timestamp, given_s: float, replica: str) -> bool:
        theirs_us, sent_s = self._shown.get(replica, (0, float("-inf")))
        behind_us = theirs_us + (given_s - sent_s) * 1e6 - wall_us(stamp)
        return sent_s > float("-inf") and behind_us <= self.document.clock.offset_max_s * 1e6

    return patched(TimeNow, was_right=was_right)


def _written_behind(hand: Played) -> None:
    """w, by the wrong clock, is repeated until it has its outcome; then somebody reads."""
    for _ in range(100):
        if "w" in hand.outcomes:
            break
        hand.wake("f1")
        hand.arrive("f1")
    hand.ask("f3", Read(REGISTER))
    hand.judge()


def write_behind_that_is_lost_at_first() -> None:
    """f1's clock is 4 s behind. After v was written, f1 writes w, and its first messages are lost."""
    hand = Played()
    hand.wall_errors_us["f1"] = -BEHIND_US
    hand.ask("f2", Write(REGISTER, V))
    hand.start("f1", Write(REGISTER, W), "w")
    hand.drop("f1")
    _written_behind(hand)


def write_behind_whose_refusal_is_read_late() -> None:
    """f1's clock is 4 s behind. After v was written, f1 writes w, and stands still for 3.8 s before it reads that all replicas refuse it. What it
    sends meanwhile is lost."""
    hand = Played()
    hand.wall_errors_us["f1"] = -BEHIND_US
    hand.ask("f2", Write(REGISTER, V))
    hand.start("f1", Write(REGISTER, W), "w")
    arrivals = [hand.answered(packet) for packet in hand.of("f1")]
    with hand.stopped("f1"):
        hand.sleep(3_800_000)
    for arrive in arrivals:
        arrive()
    hand.drop("f1")
    _written_behind(hand)


def write_after_the_machine_was_suspended() -> None:
    """f1 has read while its clock was right. Its machine is suspended for 4 s, and its clocks stand still. v is written; f1 writes w, and its first
    messages are lost."""
    hand = Played()
    hand.ask("f1", Read(REGISTER))
    hand.stand_still("f1", BEHIND_US)
    hand.wall_errors_us["f1"] = -BEHIND_US
    hand.ask("f2", Write(REGISTER, V))
    hand.start("f1", Write(REGISTER, W), "w")
    hand.drop("f1")
    _written_behind(hand)


PLANTED: Final = tuple(
    Plant(name, plant, ("linearizable",), schedule=schedule)
    for name, plant, schedule in (
        ("repeats-taken-for-right", take_repeats_for_right, write_behind_that_is_lost_at_first),
        (
            "late-answer-explains",
            explain_by_the_time_of_the_answer,
            write_behind_whose_refusal_is_read_late,
        ),
        (
            "clock-of-before-counts",
            go_by_what_the_clock_showed_before,
            write_after_the_machine_was_suspended,
        ),
    )
)
