"""A front end's time at the present moment, by the limits of its cluster file. Pure.

Owns which moments of the past an operation goes by. What is known of true time is `timestamps.timekeeping`'s business.
"""

from typing import Final

from ....api_specs.cluster import ClockSettings, ClusterDocument
from ....api_specs.messages import Refused
from ....api_specs.tokens import TAG_CHARS
from ....timestamps.clock import Now
from ....timestamps.clock_bound import DRIFT
from ....timestamps.timekeeping import Timekeeping
from ....timestamps.timestamp import Timestamp, wall_us


class TimeNow:
    """A front end's time at the present moment, which its driver tells it. `is_in_replica`: it has the clock of the replica that it runs in."""

    def __init__(self, document: ClusterDocument, site: str, *, is_in_replica: bool = False) -> None:
        self.document = document
        self._time: Final = Timekeeping(
            site,
            replicas=len(document.votes),
            offset_max_s=document.clock.offset_max_s,
            replica_error_s=document.clock.replica_error_s,
            front_end_error_s=_declared_error_s(document.clock, is_in_replica=is_in_replica),
        )
        self._now = Now(0.0, 0)
        self._shown: Final[dict[str, tuple[int, float]]] = {}
        """By replica, where its clock stood when it answered last, and when that was sent which it answered."""
        self.holder: Final = holder_of(site)
        """Whose it is."""

    def follow(self, document: ClusterDocument) -> None:
        """The cluster has this configuration from now on. Its clock settings and limits are those of before (`quorate.client_sdk.protocol.configurations`)."""
        self.document = document
        self._time.follow(document.votes)
        for replica in self._shown.keys() - document.votes.keys():
            del self._shown[replica]

    @property
    def epoch(self) -> int:
        """Which configuration it goes by."""
        return self.document.number

    @property
    def now_s(self) -> float:
        """The monotonic time."""
        return self._now.mono_s

    def stamp(self) -> Timestamp:
        """A new timestamp, at or above the upper bound of the present true time."""
        return self._time.stamp(self._now)

    def is_any_ahead(self) -> bool:
        """Whether some replica's store holds timestamps so far ahead of time that clocks must have been wrong."""
        return self._time.is_any_ahead(self._now)

    def earliest_us(self) -> int:
        """True time is not before this, in microseconds since 1970."""
        return self._time.earliest_us(self._now)

    def latest_us(self) -> int:
        """True time is not after this."""
        return self._time.latest_us(self._now)

    def is_time_known(self) -> bool:
        """Whether this front end's clock has a bound that one wrong replica cannot have made."""
        return self._time.is_settled(self._now)

    def may_be_taken(self, refused: Refused, since_s: float) -> bool:
        """Whether a replica refused what was stamped at that moment though neither clock need be wrong, and may take it as it is when asked again. It is
        behind the replica's clock since it waited, or since the answer did; or ahead by what an upper bound of time may be that came of slow answers, and
        time gets there. Which of the two waited, and whether a clock is wrong all the same, is seen when it is asked again (`was_right`)."""
        if refused.reason == "clock-ahead":
            return 0 < refused.clock_offset_us <= self._time.storable_ahead_us
        behind_s = -refused.clock_offset_us / 1e6 - (self._now.mono_s - since_s)
        return refused.reason == "clock-behind" and behind_s <= self.document.clock.offset_max_s

    def note_clock(self, replica: str, theirs_us: int, sent_s: float) -> None:
        """The replica's clock stood there when it answered what was sent then."""
        self._shown[replica] = theirs_us, sent_s

    def was_right(self, stamp: Timestamp, given_s: float, replica: str) -> bool:
        """Whether this replica would have taken the stamp for a new one when it was given, as its clock shows that it has told of since. What is sent again
        is old for good reason, and no replica can tell that from a wrong clock.

        How long the answer was on its way explains nothing: who stands still before he reads that his clock is wrong would take it for right. Nor does what
        the clock showed before: a machine that was suspended since has a clock that is behind.
        """
        theirs_us, sent_s = self._shown.get(replica, (0, float("-inf")))
        if sent_s < given_s:
            return False
        behind_us = theirs_us - (sent_s - given_s) * 1e6 * (1 - DRIFT) - wall_us(stamp)
        return behind_us <= self.document.clock.offset_max_s * 1e6

    def is_far_behind(self, stamp: Timestamp) -> bool:
        """Whether it is so far behind the time that is known now that replicas may refuse it for that."""
        return self.latest_us() - wall_us(stamp) > self.document.clock.offset_max_s * 1e6 / 2

    def passed_s(self, stamp: Timestamp) -> float:
        """The monotonic time from which true time is certainly after the stamp (commit wait)."""
        return self._time.passed_s(stamp, self._now)

    def oldest_remembered(self) -> Timestamp:
        """What has a lower timestamp is beyond all retries, and may be forgotten."""
        return self._time.before(self.document.memory_s, self._now)

    def oldest_term(self) -> Timestamp:
        """A term with a lower timestamp is ended. Long before summaries forget it: its owner must be able to tell from a
        later one what became of its last accept."""
        return self._time.before(self.document.memory_s / 2, self._now)


def holder_of(site: str) -> str:
    """Whose front end the site is: the tag of its token; where it has none, nobody else's."""
    return site[:TAG_CHARS]


def _declared_error_s(clock: ClockSettings, *, is_in_replica: bool) -> float | None:
    """How far the front end's clock may be from true time; None where it is measured. What is declared of callers' clocks says nothing of a
    replica's, by which REST callers' operations are ordered: that may be as far off as replicas' may."""
    if clock.front_end_error_s is None or not is_in_replica:
        return clock.front_end_error_s
    return max(clock.front_end_error_s, clock.replica_error_s)
