"""Copies of a running member's database: one at a time, with room left for the replica, and none once it stops."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.limits import BACKUPS_SENT_MAX
from quorate.api_specs.messages import Append
from quorate.client_sdk.protocol.configurations import joint
from quorate.replica.data_folder.identity import COPY_FILE, identity_in, open_folder
from quorate.replica.service import copying
from quorate.replica.service.copying import Copies, NoRoom
from quorate.replica.service.member import Member, StoreLost
from quorate.replica.store import database
from quorate.replica.store.database import Database
from quorate.replica.store.group_commit import Overloaded
from quorate.timestamps.timestamp import make
from tests.support.asking import answer_of
from tests.unit.replica.conftest import one_replica


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    """A member with some hundred kilobytes, so that a copy takes several steps."""
    document = one_replica()
    made = Member(open_folder(tmp_path / "data", document, "r1"))
    stamps = [make(made.wall_us(), number, "s") for number in range(1000)]
    entries = tuple(Entry(stamp, stamp, Value('"' + "x" * 2000 + '"')) for stamp in stamps)
    await answer_of(made, [Append("queue/q", entries, "first")])
    yield made
    await asyncio.to_thread(made.close)


async def test_copy_has_no_name_and_is_what_it_says(member: Member, tmp_path: Path) -> None:
    copy = await Copies(member).take()
    assert not (member.folder.path / COPY_FILE).exists()
    (tmp_path / "copy").write_bytes(copy.file.read())
    copy.file.close()
    assert (tmp_path / "copy").stat().st_size == copy.bytes > 2_000_000
    opened = Database(tmp_path / "copy")
    assert identity_in(opened).store == member.folder.identity.store
    opened.close()
    assert copy.taken.incarnation == member.folder.incarnation


async def test_second_copy_at_a_time_is_refused_and_a_later_one_is_not(member: Member) -> None:
    copies = Copies(member)
    taking = asyncio.create_task(copies.take())
    await asyncio.sleep(0)
    with pytest.raises(Overloaded, match="another backup"):
        await copies.take()
    (await taking).file.close()
    (await copies.take()).file.close()


async def test_few_copies_are_sent_at_a_time_and_one_that_is_closed_makes_room(member: Member) -> None:
    copies = Copies(member)
    sent = [await copies.take() for _ in range(BACKUPS_SENT_MAX)]
    with pytest.raises(Overloaded, match="being sent already"):
        await copies.take()
    sent.pop().file.close()
    sent.append(await copies.take())
    for each in sent:
        each.file.close()


async def test_copy_is_given_up_when_the_replica_stops(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy is held at its beginning until then: else it might be there before."""
    begun, stopped, copy_database = threading.Event(), threading.Event(), database.copy_database

    def held(*arguments: Any) -> None:
        begun.set()
        assert stopped.wait(60)
        copy_database(*arguments)

    monkeypatch.setattr(copying, "copy_database", held)
    copies = Copies(member)
    taking = asyncio.create_task(copies.take())
    assert await asyncio.to_thread(begun.wait, 60)
    copies.stop()
    stopped.set()
    with pytest.raises(Overloaded, match="is stopping"):
        await taking
    with pytest.raises(Overloaded, match="is stopping"):
        await copies.take()
    assert not (member.folder.path / COPY_FILE).exists()


async def test_copy_whose_caller_goes_away_is_closed(member: Member) -> None:
    copies = Copies(member)
    taking = asyncio.create_task(copies.take())
    await asyncio.sleep(0)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    async with asyncio.timeout(60):
        while True:
            try:
                copy = await copies.take()
            except Overloaded:
                await asyncio.sleep(0.01)
            else:
                copy.file.close()
                return


async def test_copy_leaves_room_for_the_replica(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """No disk has so much room as is to be left here."""
    monkeypatch.setattr(copying, "ROOM_BYTES", 1 << 60)
    with pytest.raises(NoRoom, match="are free"):
        await Copies(member).take()


async def test_store_that_does_not_vote_is_not_backed_up(member: Member) -> None:
    member.lost = "it was rolled back"
    with pytest.raises(StoreLost, match="rolled back"):
        await Copies(member).take()


async def test_copy_that_a_killed_process_left_is_removed(member: Member) -> None:
    left = member.folder.path / COPY_FILE
    left.write_bytes(b"half")
    (await Copies(member).take()).file.close()
    assert not left.exists()


async def test_a_copy_names_the_configuration_that_is_in_it(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The replica may go on to another one just after it was asked for the copy."""
    both = joint(member.document, replace(member.document, choices=(ChoiceRule("queue/*", collect=False),)))
    before = await Copies(member).take()
    loop, copy_database = asyncio.get_running_loop(), database.copy_database

    def late(*arguments: Any) -> None:
        asyncio.run_coroutine_threadsafe(member.configured.follow(both), loop).result()
        copy_database(*arguments)

    monkeypatch.setattr(copying, "copy_database", late)
    after = await Copies(member).take()
    assert (before.taken.hash, after.taken.hash) == (one_replica().hash, both.hash)
    for copy in (before, after):
        copy.file.close()
