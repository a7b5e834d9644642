"""How far ahead timestamps may be: the replica's clock, and what stores hold already; and who pushes them gets nowhere."""

from pathlib import Path

import pytest

from quorate.adts.log import Decision, Entry, Summary, Value
from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import (
    Accept,
    Accepted,
    Announcement,
    Append,
    Appended,
    Collect,
    Refused,
    Request,
)
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.member import Member
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import COUNTER_MAX, make, wall_us
from tests.support.asking import answer_of
from tests.unit.replica.protocol.test_acceptor import NAME, NOW_US, Replica, at, ballot, entry


def test_after_clocks_were_set_back_objects_go_on_where_they_stand() -> None:
    """What the store holds, and what another replica has said that it holds, bounds new timestamps as the clock does."""
    replica = Replica()
    assert isinstance(replica.ask(Append(NAME, (entry(0),)), now_us=NOW_US), Appended)
    day_us = 86_400_000_000
    above = Append(NAME, (Entry("later", make(NOW_US, 7, "b"), Value("1")),))
    assert isinstance(replica.ask(above, now_us=NOW_US - day_us), Appended)
    beyond = Append(NAME, (entry(2),))
    assert replica.ask(beyond, now_us=NOW_US - day_us).reason == "clock-ahead"
    replica.store.witnessed = at(day_us)
    assert isinstance(replica.ask(Append(NAME, (entry(day_us),)), now_us=NOW_US - day_us), Appended)


@pytest.mark.parametrize("restarts", [False, True])
async def test_what_another_replica_said_of_its_store_bounds_timestamps_too(
    tmp_path: Path, restarts: bool
) -> None:
    """It was away while the others stored far ahead of clocks that are right again."""
    document = ClusterDocument(
        "test", (ReplicaInfo("r1", "http://127.0.0.1:1"), ReplicaInfo("r2", "http://127.0.0.1:2"))
    )
    far = make(NOW_US + 86_400_000_000, 0, "s")
    above = Append(NAME, (Entry("e", make(wall_us(far) + 1, 0, "s"), Value("1")),))

    def opened() -> Member:
        made = Member(open_folder(tmp_path, document, "r1"), wall_us=lambda: NOW_US)
        made.is_vouched_for = True
        return made

    member = opened()
    try:
        assert isinstance((await answer_of(member, [above])).replies[0], Refused)
        await member.testify(Announcement("", "r2", "store", far))
        if restarts:
            member.close()
            member = opened()
        assert isinstance((await answer_of(member, [above])).replies[0], Appended)
    finally:
        member.close()


def test_all_that_a_summary_tells_of_counts_as_stored() -> None:
    """Else a replica would refuse what was decided on top of it, once clocks were set back."""
    replica = Replica()
    remembered = Summary(horizon=at(1), recent=(Decision("key", ballot(1_500_000)),))
    assert isinstance(replica.ask(Accept(NAME, ballot(1), remembered)), Accepted)
    assert replica.store.clock >= at(1_500_000)[:19]
    again = Accept(NAME, ballot(2), remembered)
    assert isinstance(replica.ask(again, now_us=NOW_US - 60_000_000), Accepted)


@pytest.mark.parametrize("kind", ["entries", "fences", "terms"])
def test_nobody_pushes_timestamps_faster_than_time_goes(kind: str) -> None:
    """Who sends the highest that is taken, as often as can be, moves the highest by a microsecond each time."""
    replica, pushes = Replica(), 2_000
    top_us = 2_000_000
    for _ in range(pushes):
        for step_us in (2_000_000, 1_000, 2, 1):
            t = make(NOW_US + top_us + step_us, COUNTER_MAX, "z")
            request: Request = Append(NAME, (Entry(t, t, Value("1")),))
            if kind != "entries":
                request = Collect(NAME, fence=t) if kind == "fences" else Collect(NAME, make_ballot(t, 0))
            if not isinstance(replica.ask(request), Refused):
                top_us += step_us
    assert wall_us(replica.store.highest) <= NOW_US + 2_000_000 + pushes
