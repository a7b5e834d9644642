"""How the items of a queue stand with acquire: delivered, kept until they are due, or dead letters. Pure.

Owns the states and their words, for `quorate trace` and the live page. An acquire lets the horizon pass what it delivers, so
a log shows such an item as consumed, or not at all; what became of it stands in the summary.
"""

from datetime import UTC, datetime
from typing import Final, Literal

from msgspec import Struct

from ...adts.log import DeadReason, Leased, Summary
from ...adts.times import NO_TIMES, Times
from ...api_specs.messages import Row
from ...timestamps.timestamp import Timestamp

State = Literal["held", "over", "delayed", "due", "expired", "dead"]

REASONS: Final[dict[DeadReason, str]] = {
    "rejected": "rejected",
    "deliveries": "too many deliveries",
    "expired": "expired",
}


class LeaseStatus(Struct, frozen=True):
    """One item's state at a moment. Times in microseconds since 1970; 0 stands for none.

    * "held": delivered until `until_us`. "over": that has passed; the next acquire delivers it again, unless its holder is
      first. `deliveries` counts how often it was delivered, this time included.
    * "delayed": not delivered before `until_us`. "due": it waits to be delivered. "expired": the next acquire makes it a
      dead letter.
    * "dead": a dead letter, for `reason`.
    """

    state: State
    until_us: int = 0
    deliveries: int = 0
    expires_us: int = 0
    reason: DeadReason | None = None

    def words(self, now_us: int) -> str:
        """The same for people, with times in UTC: with the day where it is not that of `now_us`."""
        until, delivered = _time(self.until_us, now_us), _delivered(self.deliveries)
        if self.reason is not None:
            return f"dead letter: {REASONS[self.reason]}, {delivered}"
        before = f", {delivered}" if self.deliveries else ""
        told = {
            "held": f"held until {until}, delivery {self.deliveries}",
            "over": f"lease over since {until}, delivery {self.deliveries}",
            "delayed": f"delayed until {until}{before}",
            "due": f"waits again{before}" if self.deliveries else "waits",
            "expired": f"expired {_time(self.expires_us, now_us)}{before}",
        }[self.state]
        if self.state == "expired":
            return told
        return told + (f", expires {_time(self.expires_us, now_us)}" if self.expires_us else "")


def lease_statuses_of(summary: Summary, rows: tuple[Row, ...], now_us: int) -> dict[Timestamp, LeaseStatus]:
    """How items stand at `now_us` as one replica knows it: those that its summary keeps, and the entries of its log that wait
    and have times of their own. An entry without an answer here simply waits, or was consumed."""
    found = {
        row.entry.t: _status(Leased(row.entry, times.due_us, expires_us=times.expires_us), now_us)
        for row in rows
        if row.entry.t > summary.horizon and (times := Times.of(row.entry.id)) != NO_TIMES
    }
    found |= {record.entry.t: _status(record, now_us) for record in summary.leases}
    found |= {dead.entry.t: LeaseStatus("dead", 0, dead.deliveries, 0, dead.reason) for dead in summary.dead}
    return found


def _status(record: Leased, now_us: int) -> LeaseStatus:
    state: State
    if record.is_held:
        state = "held" if record.until_us > now_us else "over"
    elif 0 < record.expires_us <= now_us:
        state = "expired"
    else:
        state = "delayed" if record.until_us > now_us else "due"
    return LeaseStatus(state, record.until_us, record.deliveries, record.expires_us)


def _delivered(number: int) -> str:
    few = ("never delivered", "delivered once", "delivered twice")
    return few[number] if number < len(few) else f"delivered {number} times"


def _time(time_us: int, now_us: int) -> str:
    """To the second, rounded up: before a deadline that is shown nothing has happened yet."""
    time, now = (datetime.fromtimestamp(-(-us // 1_000_000), UTC) for us in (time_us, now_us))
    return time.strftime("%H:%M:%S" if time.date() == now.date() else "%Y-%m-%d %H:%M:%S") + " UTC"
