"""What a replica says of itself."""

import asyncio
from pathlib import Path

import pytest

from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.member import Member
from quorate.replica.service.status import status_of
from quorate.timestamps.timestamp import make
from tests.unit.replica.conftest import one_replica

NOW_US = 1_000_000_000


async def test_deleted_keys_that_are_kept_until_time_has_come_to_them_are_told(tmp_path: Path) -> None:
    """As after clocks were ahead."""
    document = one_replica()
    member = Member(document, "r1", open_folder(tmp_path / "r1", document, "r1"), wall_us=lambda: NOW_US)

    async def told() -> object:
        return (await status_of(member, {}))["tombstones"]

    assert await told() == {"waiting": 0, "oldest_s": None, "ahead_s": 0.0, "held_up_by": ()}
    member.tombstones.note("dictionary/d/old", make(NOW_US - 5_000_000, 0, "a"))
    assert await told() == {"waiting": 1, "oldest_s": 5.0, "ahead_s": 0.0, "held_up_by": ()}
    member.tombstones.note("dictionary/d/ahead", make(NOW_US + 60_000_000, 0, "a"))
    assert await told() == {"waiting": 2, "oldest_s": 5.0, "ahead_s": pytest.approx(60.0), "held_up_by": ()}
    await asyncio.to_thread(member.close)
