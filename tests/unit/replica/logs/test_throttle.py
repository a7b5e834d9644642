"""A trouble that lasts does not fill a disk with its log."""

import asyncio
import logging
from pathlib import Path

import pytest

from quorate.replica.data_folder.identity import open_folder
from quorate.replica.logs.throttle import AGAIN_S, Troubles
from quorate.replica.service.embedded import to_others
from quorate.replica.service.member import Member
from quorate.replica.store.store import StorageFailed
from quorate.replica.upkeep import announcer
from tests.unit.replica.conftest import one_replica

_LOG = logging.getLogger("quorate.test")


class Told:
    """Troubles at a time that is set, and what was logged since the last look."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.now_s = 1000.0
        self.troubles = Troubles(_LOG, logging.WARNING, lambda: self.now_s)

    def lines(self) -> list[str]:
        """The lines, which are then forgotten."""
        found = [record.getMessage() for record in self._caplog.records if record.name == _LOG.name]
        self._caplog.clear()
        return found


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    return Told(caplog)


def test_a_trouble_is_told_at_once_then_once_a_minute_with_how_often_and_at_its_end(told: Told) -> None:
    told.troubles.end()
    assert told.lines() == [], "nothing was wrong"
    told.troubles.meet("full")
    assert told.lines() == ["full"]
    for _ in range(500):
        told.now_s += AGAIN_S / 1000
        told.troubles.meet("full")
    assert told.lines() == []
    told.now_s += AGAIN_S
    told.troubles.meet("full")
    assert told.lines() == ["full (met again in the last 90 s: 501)"]
    told.troubles.meet("full")
    told.troubles.end()
    told.troubles.end()
    assert told.lines() == ["it is over (met again before: 1): full"]


def test_a_trouble_that_comes_back_long_after_its_end_is_new(told: Told) -> None:
    for _ in range(2):
        told.troubles.meet("full")
        told.troubles.end()
        assert told.lines() == ["full", "it is over: full"]
        told.now_s += 2 * AGAIN_S


def test_another_trouble_is_told_at_once(told: Told) -> None:
    told.troubles.meet("full")
    told.troubles.meet("broken")
    assert told.lines() == ["full", "broken"]


def test_a_trouble_that_comes_and_goes_is_told_as_seldom(told: Told) -> None:
    for _ in range(120):
        told.troubles.meet("full")
        told.troubles.end()
        told.now_s += 1
    first, over, again, over_again = told.lines()
    assert (first, over) == ("full", "it is over: full")
    assert (again, over_again) == ("full (met again in the last 60 s: 60)", "it is over: full")


async def test_the_watch_tells_once_of_a_store_that_cannot_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = one_replica()
    member = Member(open_folder(tmp_path / "data", document, "r1"))
    looking = announcer.Watch(member, to_others(member, None))
    ended = iter([StorageFailed("full", passing=True)] * 3)

    async def found(*_: object) -> set[str]:
        if (error := next(ended, None)) is not None:
            raise error
        return {"r2"}

    monkeypatch.setattr(looking, "_round", found)
    heard = [await looking._heard((), 1.0) for _ in range(4)]
    await looking.stop()
    await asyncio.to_thread(member.close)
    assert heard == [set(), set(), set(), {"r2"}]
    told = [record.getMessage() for record in caplog.records if record.name == announcer.__name__]
    words = "the others were not told of the store: full"
    assert told == [words, f"it is over (met again before: 2): {words}"]
