"""A later configuration is fetched from one replica at a time, and not at once again where that came to nothing."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from quorate.api_specs.cluster import ClusterDocument
from quorate.client_sdk.errors import BadCluster
from quorate.client_sdk.protocol.configurations import settled
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport import following
from quorate.client_sdk.transport.following import Following
from tests.unit.client_sdk.scripted import changed, document_of
from tests.unit.client_sdk.transport.test_driver import settle

BOTH = changed(document_of("r1", "r2", "r3"))
AFTER = settled(BOTH)
Told = ClusterDocument | Unanswered | Exception


class Rig:
    """What is followed, with what each fetch brings in hand."""

    def __init__(self) -> None:
        self.told: Told = BOTH
        """What the next fetch brings."""
        self.free = asyncio.Event()
        self.free.set()
        self.asked: list[str] = []
        self.followed: list[ClusterDocument] = []
        self.breaks = False
        self.following = Following(BOTH.name, self._fetch, self._follow)

    async def _fetch(self, replica: str, timeout_s: float) -> ClusterDocument | Unanswered:
        assert timeout_s == following.FETCH_S
        self.asked.append(replica)
        await self.free.wait()
        if isinstance(self.told, Exception):
            raise self.told
        return self.told

    def _follow(self, document: ClusterDocument) -> None:
        if self.breaks:
            raise ZeroDivisionError
        self.followed.append(document)

    async def hear(self, *replicas: str) -> None:
        """Of these, each in a turn of its own; and let all that can run now run."""
        for replica in replicas:
            self.following.hear(replica)
            await settle()


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    await rig.following.aclose()


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fetch that brought something."""
    monkeypatch.setattr(following, "SOON_S", 0.0)


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE_S", 0.0)


@pytest.fixture
def long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAUSE_S", 3600.0)


async def test_a_later_configuration_is_fetched_from_who_is_in_it_and_given_on(rig: Rig) -> None:
    await rig.hear("r2")
    assert rig.asked == ["r2"]
    assert rig.followed == [BOTH]


async def test_one_replica_is_asked_at_a_time_and_the_next_one_later(rig: Rig) -> None:
    rig.free.clear()
    await rig.hear("r1", "r2", "r1")
    assert rig.asked == ["r1"]
    rig.free.set()
    await settle()
    rig.told = AFTER
    await rig.hear("r3")
    assert rig.asked == ["r1", "r3"]
    assert rig.followed == [BOTH, AFTER]


@pytest.mark.usefixtures("no_pause")
async def test_where_one_cannot_tell_it_the_next_that_was_heard_of_meanwhile_is_asked(rig: Rig) -> None:
    rig.told = Unanswered("r1: no answer in time")
    rig.free.clear()
    await rig.hear("r1", "r2", "r1")
    rig.free.set()
    async with asyncio.timeout(60):
        while len(rig.asked) < 2:
            await asyncio.sleep(0)
    assert rig.asked[:2] == ["r1", "r2"]


async def test_only_who_tells_a_configuration_of_another_cluster_is_disbelieved(rig: Rig) -> None:
    disbelieved: list[str] = []
    for told in (BadCluster("no cluster file"), Unanswered("late"), replace(BOTH, name="elsewhere")):
        rig.told = told
        rig.following = Following(BOTH.name, rig._fetch, rig._follow, disbelieved.append)
        await rig.hear("r1")
        await rig.following.aclose()
        assert disbelieved == (["r1"] if isinstance(told, ClusterDocument) else [])


async def test_refusals_of_what_was_sent_before_fetch_nothing_more(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SOON_S", 3600.0)
    await rig.hear("r1", "r2", "r3")
    assert (rig.asked, rig.followed) == (["r1"], [BOTH])


@pytest.mark.parametrize("first", [Unanswered("r1: no answer in time"), BadCluster("r1: none")])
async def test_before_anything_is_sent_the_first_who_tells_it_is_believed(first: Told) -> None:
    """The others are not waited for."""
    told: dict[str, Told] = {"r1": first, "r2": BOTH}
    followed: list[ClusterDocument] = []

    async def fetch(replica: str, timeout_s: float) -> ClusterDocument | Unanswered:
        assert timeout_s == following.ASK_S
        if replica not in told:
            await asyncio.Event().wait()
        if isinstance(found := told[replica], Exception):
            raise found
        return found

    async with asyncio.timeout(60):
        await Following(BOTH.name, fetch, followed.append).ask(BOTH.votes)
    assert followed == [BOTH]


async def test_where_nobody_tells_anything_what_is_known_is_gone_by() -> None:
    async def fetch(replica: str, timeout_s: float) -> ClusterDocument | Unanswered:
        del timeout_s
        return replace(BOTH, name="elsewhere") if replica == "r1" else Unanswered("down")

    followed: list[ClusterDocument] = []
    await Following(BOTH.name, fetch, followed.append).ask(BOTH.votes)
    assert followed == []


def unusable() -> dict[str, tuple[Told, str]]:
    return {
        "another cluster": (replace(BOTH, name="elsewhere"), "it is of cluster 'elsewhere'"),
        "no answer": (Unanswered("r1: no answer in time"), "r1: no answer in time"),
        "no cluster file": (BadCluster("r1: no cluster file that can be used"), "no cluster file that can"),
    }


@pytest.mark.parametrize(("told", "why"), unusable().values(), ids=unusable().keys())
@pytest.mark.usefixtures("long_pause")
async def test_a_fetch_that_came_to_nothing_is_logged_and_followed_by_a_pause(
    rig: Rig, told: Told, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    rig.told = told
    await rig.hear("r1")
    assert rig.followed == []
    [record] = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("r1 is in a later configuration, which cannot be gone on to: ")
    assert why in record.getMessage()
    rig.told = BOTH
    await rig.hear("r1", "r2")
    assert rig.asked == ["r1"]


@pytest.mark.parametrize("told", [told for told, _ in unusable().values()], ids=unusable().keys())
@pytest.mark.usefixtures("no_pause")
async def test_once_the_pause_is_over_the_next_answer_fetches_again(rig: Rig, told: Told) -> None:
    rig.told = told
    await rig.hear("r1", "r1")
    rig.told = BOTH
    await rig.hear("r2")
    assert rig.asked == ["r1", "r1", "r2"]
    assert rig.followed == [BOTH]


@pytest.mark.usefixtures("no_pause")
async def test_a_mistake_of_who_follows_is_logged_and_does_not_end_it(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.breaks = True
    await rig.hear("r1")
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "ZeroDivisionError" in caplog.text
    assert "an error of our own" in caplog.text
    rig.breaks = False
    await rig.hear("r1")
    assert rig.followed == [BOTH]


@pytest.mark.usefixtures("long_pause")
async def test_a_mistake_of_who_follows_is_not_repeated_at_once(rig: Rig) -> None:
    rig.breaks = True
    await rig.hear("r1", "r1")
    assert rig.asked == ["r1"]


async def test_who_follows_may_take_its_time_and_nothing_is_fetched_meanwhile() -> None:
    asked: list[str] = []
    followed: list[ClusterDocument] = []
    ready = asyncio.Event()

    async def fetch(replica: str, _: float) -> ClusterDocument:
        asked.append(replica)
        return BOTH

    async def follow(document: ClusterDocument) -> None:
        await ready.wait()
        followed.append(document)

    slow = Following(BOTH.name, fetch, follow)
    for replica in ("r1", "r2"):
        slow.hear(replica)
        await settle()
    assert (asked, followed) == (["r1"], [])
    ready.set()
    await settle()
    assert followed == [BOTH]
    slow.hear("r2")
    await settle()
    assert asked == ["r1", "r2"]
    await slow.aclose()


@pytest.mark.parametrize("part", ["fetch", "follow", "pause"])
async def test_it_ends_wherever_it_is(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    ended: list[str] = []

    async def forever(name: str) -> None:
        begun.append(name)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def fetch(replica: str, _: float) -> ClusterDocument | Unanswered:
        if part == "fetch":
            await forever(part)
        return Unanswered("r1: no answer in time") if part == "pause" else BOTH

    monkeypatch.setattr(following, "PAUSE_S", 3600.0)
    before = asyncio.all_tasks()
    one = Following(BOTH.name, fetch, lambda _: forever(part))
    await one.aclose()
    one.hear("r1")
    await settle()
    assert len(asyncio.all_tasks() - before) == 1
    async with asyncio.timeout(30):
        await one.aclose()
    assert asyncio.all_tasks() == before
    assert begun == ended == ([] if part == "pause" else [part])
