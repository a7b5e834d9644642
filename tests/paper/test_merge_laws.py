"""What is merged may be merged in any order, in any groups, and more than once: views, clocks, testimony of stores."""

from functools import reduce
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorate.adts import cell
from quorate.adts.log import Seen
from quorate.adts.types import queue
from quorate.api_specs.messages import Announcement
from quorate.replica.protocol.witness import Witness, seen
from quorate.timestamps.clock import HybridClock
from quorate.timestamps.timestamp import Timestamp, make
from tests.unit.adts.types.test_queue import SUMMARIES, entry
from tests.unit.timestamps.test_timestamp import PARTS

TIMES = st.lists(PARTS.map(lambda parts: make(*parts)), max_size=6)
# One id has one timestamp, as in logs: a new timestamp is taken only for an entry that nobody holds.
LOGS = st.lists(st.sets(st.integers(1, 9), max_size=4), max_size=4)


def merged(logs: list[set[int]], order: list[int]) -> dict[str, Seen]:
    found: dict[str, Seen] = {}
    for place in order:
        for number in sorted(logs[place]):
            each = entry(number)
            holding = found.setdefault(each.id, Seen(each))
            holding.holders |= {f"r{place}"}
    return found


@given(SUMMARIES, LOGS, st.randoms())
def test_a_view_is_the_same_however_the_logs_were_merged(
    summary: Any, logs: list[set[int]], random: Any
) -> None:
    straight = merged(logs, list(range(len(logs))))
    twice = [place for place in range(len(logs)) for _ in range(2)]
    random.shuffle(twice)
    other = merged(logs, twice)
    shuffled = list(other.items())
    random.shuffle(shuffled)
    assert queue.view(summary, straight) == queue.view(summary, dict(shuffled))
    assert cell.current(summary, straight) == cell.current(summary, dict(shuffled))


def clock_after(witnessed: list[Timestamp]) -> Timestamp:
    clock = HybridClock("me")
    for each in witnessed:
        clock.witness(each)
    return clock.last


@given(TIMES, TIMES, st.randoms())
def test_a_clock_witnesses_in_any_order_in_groups_and_again(
    some: list[Timestamp], others: list[Timestamp], random: Any
) -> None:
    shuffled = [*some, *others, *some]
    random.shuffle(shuffled)
    assert clock_after(some + others) == clock_after(shuffled)
    assert clock_after([clock_after(some), clock_after(others)]) == clock_after(some + others)


@given(TIMES.filter(bool), st.randoms())
def test_what_is_known_of_a_store_is_the_highest_it_said_whatever_came_first(
    clocks: list[Timestamp], random: Any
) -> None:
    said = [Announcement("c", "r2", "store", clock) for clock in clocks]
    again = [*said, random.choice(said)]
    random.shuffle(again)
    start: Witness | None = None
    assert reduce(seen, said, start) == reduce(seen, again, start) == Witness("store", max(clocks))
