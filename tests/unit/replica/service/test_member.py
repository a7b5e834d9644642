"""What a member tells whoever sends it a batch, beside the replies."""

import asyncio
from pathlib import Path

from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ReplicaInfo
from quorate.api_specs.messages import Announcement, Append, Collect
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.member import Member
from quorate.timestamps.timestamp import ZERO, make
from tests.support.asking import answer_of
from tests.unit.replica.conftest import one_replica

NOW_US = 1_700_000_000_000_000


async def test_what_was_stored_while_clocks_were_ahead_is_told_though_nobody_asked_meanwhile(
    tmp_path: Path,
) -> None:
    """It is noted when the others are told how far the store has come, which is every two seconds."""
    document, clock_us = one_replica(), NOW_US + 60_000_000
    member = Member(open_folder(tmp_path / "r1", document, "r1"), wall_us=lambda: clock_us)
    far = make(clock_us, 0, "a")
    assert (await answer_of(member, [Append("queue/q", (Entry("e", far, Value('"x"')),))])).ahead == ZERO
    clock_us = NOW_US
    await member.announcement()
    clock_us = NOW_US + 58_500_000
    assert (await answer_of(member, [Collect("register/other")])).ahead == far
    clock_us = NOW_US + 63_000_000
    assert (await answer_of(member, [Collect("register/other")])).ahead == ZERO
    await asyncio.to_thread(member.close)


async def test_what_another_store_holds_ahead_is_told_from_when_it_is_heard_of(tmp_path: Path) -> None:
    """Whoever has heard from this replica alone must look, too."""
    alone = one_replica()
    document = replace(alone, replicas=(*alone.replicas, ReplicaInfo("r2", "http://127.0.0.1:7002")))
    member = Member(open_folder(tmp_path / "r1", document, "r1"), wall_us=lambda: NOW_US)
    member.is_vouched_for = True
    far = make(NOW_US + 60_000_000, 0, "a")
    await member.testify(Announcement(document.hash, "r2", "store", far))
    assert (await answer_of(member, [Collect("register/other")])).ahead == far
    await asyncio.to_thread(member.close)
