"""What a replica says of itself."""

import asyncio
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.member import Member
from quorate.replica.service.status import OUTBOXES_MAX, status_of
from quorate.timestamps.timestamp import make
from tests.unit.replica.conftest import one_replica

NOW_US = 1_000_000_000


async def test_deleted_keys_that_are_kept_until_time_has_come_to_them_are_told(tmp_path: Path) -> None:
    """As after clocks were ahead."""
    document = one_replica()
    member = Member(open_folder(tmp_path / "r1", document, "r1"), wall_us=lambda: NOW_US)

    async def told() -> object:
        return (await status_of(member, {}))["tombstones"]

    assert await told() == {"waiting": 0, "oldest_s": None, "ahead_s": 0.0, "held_up_by": ()}
    member.tombstones.note("dictionary/d/old", make(NOW_US - 5_000_000, 0, "a"))
    assert await told() == {"waiting": 1, "oldest_s": 5.0, "ahead_s": 0.0, "held_up_by": ()}
    member.tombstones.note("dictionary/d/ahead", make(NOW_US + 60_000_000, 0, "a"))
    assert await told() == {"waiting": 2, "oldest_s": 5.0, "ahead_s": pytest.approx(60.0), "held_up_by": ()}
    await asyncio.to_thread(member.close)


async def test_queues_whose_items_wait_in_outboxes_are_told_those_first_that_wait_longest(
    tmp_path: Path,
) -> None:
    document = replace(one_replica(), choices=(ChoiceRule("queue/*", outbox=True),))
    member = Member(open_folder(tmp_path / "r1", document, "r1"))
    assert (await status_of(member, {}))["outboxes"] == {}
    assert member.outboxes is not None
    now_s = time.monotonic()
    for number in reversed(range(OUTBOXES_MAX + 1)):
        member.outboxes.find([f"queue/{number}@r1"], now_s - 1000 + number)
    told = (await status_of(member, {}))["outboxes"]
    await asyncio.to_thread(member.close)
    assert list(told) == [f"queue/{number}" for number in range(OUTBOXES_MAX)]
    assert 1000 <= told["queue/0"] < 1100


async def test_without_outboxes_there_are_none(tmp_path: Path) -> None:
    document = one_replica()
    member = Member(open_folder(tmp_path / "r1", document, "r1"))
    told = (await status_of(member, {}))["outboxes"]
    await asyncio.to_thread(member.close)
    assert told == {}
