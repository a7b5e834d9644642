"""Mistakes of the front end with time: what it stamps, and how long it waits."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from quorate.api_specs.cluster import ClockSettings
from quorate.client_sdk.protocol.core import time_now
from quorate.client_sdk.protocol.core.time_now import TimeNow
from quorate.client_sdk.protocol.operations import blind
from quorate.client_sdk.protocol.operations.context import read_clocks
from quorate.replica.protocol.ahead import Ahead
from quorate.simulation.world.nodes import FrontNode
from quorate.timestamps import timekeeping
from quorate.timestamps.clock import HybridClock, Now
from quorate.timestamps.timekeeping import Timekeeping
from quorate.timestamps.timestamp import ZERO, Timestamp, wall_us
from tests.sim.planted.plant import Planting, patched


def no_commit_wait() -> Planting:
    """A blind operation returns though its timestamp may still be ahead of true time."""

    def passed_s(self: Timekeeping, stamp: Timestamp, now: Now) -> float:
        del self, stamp
        return now.mono_s

    return patched(Timekeeping, passed_s=passed_s)


def return_within_the_microsecond() -> Planting:
    """A blind operation returns in the very microsecond of its timestamp."""

    def passed_s(self: Timekeeping, stamp: Timestamp, now: Now) -> float:
        return self._bound.reached_s(wall_us(stamp), now)

    return patched(Timekeeping, passed_s=passed_s)


def wait_short_by_the_drift() -> Planting:
    """A blind operation waits as if its front end's clock could not run fast while it waits."""

    def passed_s(self: Timekeeping, stamp: Timestamp, now: Now) -> float:
        return now.mono_s + max(0, wall_us(stamp) + 1 - self._bound.lower_us(now)) / 1e6

    return patched(Timekeeping, passed_s=passed_s)


def clock_without_bound() -> Planting:
    """A front end stamps with its own wall clock, whatever error was declared or measured."""

    def stamp(self: Timekeeping, now: Now, shown: Timestamp = ZERO, given: Timestamp = ZERO) -> Timestamp:
        return self._clock.above(max(shown, given), now.wall_us)

    return patched(Timekeeping, stamp=stamp)


def go_by_callers_clocks_in_replicas() -> Planting:
    """A replica's own front end trusts its clock as far as callers' are declared to be right."""

    def declared(clock: ClockSettings, *, is_in_replica: bool) -> float | None:
        del is_in_replica
        return clock.front_end_error_s

    return patched(time_now, _declared_error_s=declared)


class _Repeating(HybridClock):
    """Gives the same timestamp again when one that was seen has forced it ahead of the wall clock."""

    def above(self, least: Timestamp, now_us: int) -> Timestamp:
        if now_us > wall_us(max(least, self._last)):
            return super().above(least, now_us)
        return max(least, self._last)


def clock_repeats() -> Planting:
    """A front end's clock repeats a timestamp after a new one was forced on it."""
    return patched(timekeeping, HybridClock=_Repeating)


def stamp_below_what_is_seen() -> Planting:
    """A front end stamps by its clock, and takes no notice of the timestamps that an object shows."""

    def stamp(self: Timekeeping, now: Now, shown: Timestamp = ZERO, given: Timestamp = ZERO) -> Timestamp:
        del shown, given
        return self._clock.next(self.latest_us(now))

    return patched(Timekeeping, stamp=stamp)


def never_look_for_what_is_ahead() -> Planting:
    """A blind operation that goes by the clock does not look first where timestamps are stored that are far ahead of it."""
    return patched(TimeNow, is_any_ahead=lambda self: False)


def wait_for_what_is_ahead() -> Planting:
    """An operation waits until time has come to its timestamp, however far ahead that is."""

    def passed_s(self: Timekeeping, stamp: Timestamp, now: Now) -> float:
        return self._bound.reached_s(wall_us(stamp) + 1, now)

    return patched(Timekeeping, passed_s=passed_s)


def pass_over_what_is_far_ahead() -> Planting:
    """A front end takes no notice of what an object shows that is further ahead of time than replicas accept."""
    right = Timekeeping.stamp

    def stamp(self: Timekeeping, now: Now, shown: Timestamp = ZERO, given: Timestamp = ZERO) -> Timestamp:
        return right(self, now, ZERO if self.is_ahead(shown, now) else shown, given)

    return patched(Timekeeping, stamp=stamp)


def never_set_back() -> Planting:
    """A front end's clock goes on from the highest timestamp that it gave, though clocks were ahead then and are set right."""
    return patched(HybridClock, set_back=lambda self, now_us: None)


def given_ahead_stays() -> Planting:
    """What a front end stamps for an object is above all that it gave to it, though clocks were ahead then and are set right."""
    right = Timekeeping.stamp

    def stamp(self: Timekeeping, now: Now, shown: Timestamp = ZERO, given: Timestamp = ZERO) -> Timestamp:
        return right(self, now, max(shown, given))

    return patched(Timekeeping, stamp=stamp)


def look_only_for_what_is_far_ahead() -> Planting:
    """A front end looks first only while a store is known to hold what is far ahead: not for what it stamped itself before its clock was set
    back, nor in the last seconds before time comes there."""

    def is_any_ahead(self: Timekeeping, now: Now) -> bool:
        return self._is_beyond(self._highest_us, self.latest_us(now))

    return patched(Timekeeping, is_any_ahead=is_any_ahead)


def told_only_while_it_is_far() -> Planting:
    """A replica does not say what its store held far ahead of time once that is nearer: who hears of it then cannot tell."""
    return patched(Ahead, told=lambda self, now_us: ZERO)


def look_though_time_has_come() -> Planting:
    """A blind operation goes on looking for what was far ahead of time though time has come there meanwhile."""
    return patched(blind, look_for_what_is_ahead=read_clocks)


class _Recalled(HybridClock):
    """Keeps what it gave, and gives `again` first."""

    def __init__(self, site: str, again: Sequence[Timestamp] = ()) -> None:
        super().__init__(site)
        self.first_site = site
        self.given: list[Timestamp] = []
        self._again = list(again)

    def next(self, now_us: int) -> Timestamp:
        self.given.append(self._again.pop(0) if self._again else super().next(now_us))
        return self.given[-1]


def restarted_clock_repeats() -> Planting:
    """A front end restarts from a snapshot: it keeps its site id, and its clock gives the same timestamps again."""
    right = FrontNode.crash
    crashed: list[_Recalled] = []

    def crash(self: FrontNode) -> None:
        right(self)
        clock = self.machine._time._clock
        assert isinstance(clock, _Recalled)
        crashed.append(clock)

    def clock_of(site: str) -> _Recalled:
        """The clock of the next front end to come: that of the one that crashed last."""
        if not crashed:
            return _Recalled(site)
        before = crashed.pop()
        return _Recalled(before.first_site, before.given)

    @contextmanager
    def both() -> Iterator[None]:
        with patched(FrontNode, crash=crash), patched(timekeeping, HybridClock=clock_of):
            yield

    return both()
