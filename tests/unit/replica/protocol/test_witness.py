"""A store that was rolled back or swapped is found out by what the other replicas saw of it."""

import asyncio
import shutil
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Announcement, Append, Testimony
from quorate.client_sdk.protocol.configurations import joint
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.replica.data_folder.identity import Folder, open_folder
from quorate.replica.protocol.witness import Witness, contradiction, seen
from quorate.replica.service.member import Member, Starting, StoreLost
from quorate.replica.store.configuration import note
from quorate.replica.upkeep import announcer as watch_module
from quorate.replica.upkeep.announcer import Watch
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.support.asking import answer_of

DOCUMENT: Final = ClusterDocument(
    "test", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in (1, 2, 3))
)
WAIT_S: Final = 60
EARLY, LATE = (make(wall_us, 0, "site") for wall_us in (1_000_000, 2_000_000))


def announcement(
    store: str = "a", clock: Timestamp = LATE, born: str = "", *, named: bool = False, is_new: bool = False
) -> Announcement:
    return Announcement("hash", "r1", store, clock, named, born, is_new)


@pytest.mark.parametrize(
    ("known", "told", "remembered"),
    [
        (None, announcement(), Witness("a", LATE)),
        (Witness("a", EARLY), announcement(), Witness("a", LATE)),
        (Witness("a", LATE), announcement(clock=EARLY), Witness("a", LATE)),
        (Witness("a", EARLY), announcement("b"), Witness("a", EARLY)),
        (Witness("a", LATE), announcement("b", EARLY, named=True), Witness("b", EARLY)),
        (Witness("a", EARLY), announcement("b", named=True, is_new=True), Witness("a", EARLY)),
        (Witness("a", EARLY, "1"), announcement(born="1"), Witness("a", LATE, "1")),
        (Witness("a", EARLY, "1"), announcement(born="2"), Witness("a", EARLY, "1")),
        (Witness("a", EARLY, "1"), announcement(born="2", named=True, is_new=True), Witness("a", EARLY, "1")),
    ],
)
def test_what_a_witness_remembers(known: Witness | None, told: Announcement, remembered: Witness) -> None:
    assert seen(known, told) == remembered


@pytest.mark.parametrize("known", [None, Witness("a", LATE, "1"), Witness("b", LATE, "1")])
def test_of_a_store_that_is_no_member_the_last_word_is_remembered_and_no_time(known: Witness | None) -> None:
    """It may be made anew, and whoever sends it may say any time."""
    told = announcement("a", EARLY, "2", is_new=True)
    assert seen(known, told, is_member=False) == Witness("a", ZERO, "2")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9))))
def test_a_witness_never_takes_back_what_it_saw(told: list[tuple[str, int]]) -> None:
    known: Witness | None = None
    for store, wall_us in told:
        now = seen(known, announcement(store, make(wall_us, 0, "site")))
        assert known is None or (now.store == known.store and now.clock >= known.clock)
        known = now


@pytest.mark.parametrize(
    ("mine", "testimony", "words"),
    [
        (announcement(), Testimony(), None),
        (announcement(), Testimony("a", EARLY), None),
        (announcement(), Testimony("a", LATE), None),
        (announcement(clock=EARLY), Testimony("a", LATE), "an older copy was put in its place"),
        (announcement("b"), Testimony("a", EARLY), "knows replica r1 with store a, and this is store b"),
        (announcement("b", named=True), Testimony("a", LATE), None),
        (announcement(clock=EARLY, named=True), Testimony("a", LATE), "an older copy was put in its place"),
        (announcement("b", named=True, is_new=True), Testimony("a", LATE), "knows replica r1 with store a"),
        (announcement(born="1"), Testimony("a", EARLY, born="1"), None),
        (announcement(born="2"), Testimony("a", EARLY, born="1"), "was made anew under its id"),
        (
            announcement(born="2", named=True, is_new=True),
            Testimony("a", ZERO, born="1"),
            "made anew under its id",
        ),
        (announcement(), Testimony(refuses="no (see `quorate replace`)"), None),
        (
            announcement(is_new=True),
            Testimony(refuses="no (`quorate replace`)"),
            "r1 is new, and replica r2 says: no",
        ),
    ],
)
def test_what_a_testimony_proves(mine: Announcement, testimony: Testimony, words: str | None) -> None:
    sentence = contradiction(mine, "r2", testimony)
    if words is None:
        assert sentence is None
    else:
        assert sentence is not None
        assert words in sentence
        assert "`quorate replace`" in sentence, "it says what to do"


@pytest.fixture(autouse=True)
def _short_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicas that are down are not waited for as long as a real start does."""
    monkeypatch.setattr(watch_module, "ASK_S", 0.02)


def member(folder: Folder, replica: str) -> Member:
    """A replica that has voted before."""
    assert folder.database is not None
    if folder.is_new:
        note(folder.database, DOCUMENT)
        folder.database.commit()
    made = Member(folder)
    made.is_new = False
    return made


class Direct:
    """The way to members in this process; None in place of one stands for a dead replica."""

    def __init__(self, members: dict[str, Member | None]) -> None:
        self.members = members
        self.asked: list[str] = []

    async def announce(self, replica: str, told: Announcement, timeout_s: float) -> Testimony | Unanswered:
        del timeout_s
        self.asked.append(replica)
        other = self.members[replica]
        return Unanswered("down") if other is None else await other.testify(told)

    async def aclose(self) -> None:
        """Nothing to give up."""


async def started(own: Member, others: Direct) -> Watch:
    """A watch whose first question is over."""
    watch = Watch(own, others)
    await watch._ask()
    return watch


def append(wall_us: int) -> Append:
    return Append("queue/q", (Entry(f"e{wall_us}", make(wall_us, 0, "site"), Value("1")),), "repair")


@pytest.mark.parametrize("wall_us", [1_500_000, 3_000_000], ids=["below what was seen", "above"])
async def test_a_rolled_back_store_does_not_vote_once_any_witness_is_heard(
    tmp_path: Path, wall_us: int
) -> None:
    """r1 is rolled back to a copy of its folder; r3 alone saw how far it had come, and answers only later."""
    r1, r2, r3 = (member(open_folder(tmp_path / each, DOCUMENT, each), each) for each in ("r1", "r2", "r3"))
    with pytest.raises(Starting):
        await answer_of(r1, [append(1_000_000)])
    watch = await started(r1, Direct({"r2": r2, "r3": r3}))
    await answer_of(r1, [append(1_000_000)])
    r1.close()
    shutil.copytree(tmp_path / "r1", tmp_path / "backup")

    r1 = member(open_folder(tmp_path / "r1", DOCUMENT, "r1"), "r1")
    watch = await started(r1, Direct({"r2": r2, "r3": r3}))
    await answer_of(r1, [append(2_000_000)])
    others = Direct({"r2": None, "r3": r3})
    watch = Watch(r1, others)
    await watch._tell()  # where it stood when it was opened
    await watch._tell()
    r1.close()

    shutil.rmtree(tmp_path / "r1")
    shutil.copytree(tmp_path / "backup", tmp_path / "r1")
    r1 = member(open_folder(tmp_path / "r1", DOCUMENT, "r1"), "r1")
    others = Direct({"r2": r2, "r3": None})
    watch = await started(r1, others)
    await answer_of(r1, [append(wall_us)])  # r2 knows nothing that speaks against it
    others.members["r3"] = r3
    with pytest.raises(StoreLost, match="older copy"):
        await watch._tell()
    with pytest.raises(StoreLost, match="older copy"):
        await answer_of(r1, [append(1_600_000)])
    assert r1.why_not_ready() == [r1.lost]
    await r1.testify(Announcement("h", "r2", "s", EARLY))
    assert (await r1.testify(Announcement("h", "r2", "t", EARLY))).store == "s", (
        "it still bears witness itself"
    )
    for each in (r1, r2, r3):
        each.close()


async def test_a_front_end_hears_where_a_store_began_whatever_its_first_message_writes(
    tmp_path: Path,
) -> None:
    for number in (1, 2):
        r1 = member(open_folder(tmp_path / "r1", DOCUMENT, "r1"), "r1")
        await started(r1, Direct({"r2": None, "r3": None}))
        reply = await answer_of(r1, [append(number * 1_000_000)])
        assert (reply.began, reply.clock) == (
            make((number - 1) * 1_000_000, 0, "site") if number > 1 else ZERO,
            make(number * 1_000_000, 0, "site"),
        )
        r1.close()


async def test_a_swapped_store_does_not_vote(tmp_path: Path) -> None:
    r1, r2 = (member(open_folder(tmp_path / each, DOCUMENT, each), each) for each in ("r1", "r2"))
    await started(r1, Direct({"r2": r2, "r3": None}))
    r1.close()
    new = member(open_folder(tmp_path / "other", DOCUMENT, "r1"), "r1")
    with pytest.raises(StoreLost, match="knows replica r1 with store"):
        await started(new, Direct({"r2": r2, "r3": None}))
    for each in (new, r2):
        each.close()


async def test_an_honest_store_votes_after_any_number_of_restarts(tmp_path: Path) -> None:
    """Also with nobody to ask, and with what was told cut off between two announcements."""
    r2 = member(open_folder(tmp_path / "r2", DOCUMENT, "r2"), "r2")
    for number in range(1, 4):
        r1 = member(open_folder(tmp_path / "r1", DOCUMENT, "r1"), "r1")
        await started(r1, Direct({"r2": r2 if number != 2 else None, "r3": None}))
        await answer_of(r1, [append(number * 1_000_000)])
        assert r1.why_not_ready() == []
        r1.close()
    r2.close()


class Stumbling(Direct):
    """A way on which an error of our own is met, to some replicas."""

    def __init__(self, members: dict[str, Member | None], to: set[str]) -> None:
        super().__init__(members)
        self.to = to

    async def announce(self, replica: str, told: Announcement, timeout_s: float) -> Testimony | Unanswered:
        if replica in self.to:
            self.asked.append(replica)
            raise ZeroDivisionError("nobody foresaw it")
        return await super().announce(replica, told, timeout_s)


async def test_an_error_on_the_way_to_one_replica_does_not_silence_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """r3 knows r1 with another store; on the way to r2 the watch meets an error of its own."""
    first, r3 = (member(open_folder(tmp_path / each, DOCUMENT, "r1" if each == "a" else each),
                        "r1" if each == "a" else each) for each in ("a", "r3"))  # fmt: skip
    await started(first, Direct({"r2": None, "r3": r3}))
    swapped = member(open_folder(tmp_path / "b", DOCUMENT, "r1"), "r1")
    with pytest.raises(StoreLost, match="knows replica r1 with store"):
        await started(swapped, Stumbling({"r3": r3}, to={"r2"}))
    assert "on the way to r2" in caplog.text
    for each in (first, swapped, r3):
        each.close()


async def test_the_watch_outlives_an_error_of_its_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after the start, in a round of the rhythm, and once only. The next round tells what was written since."""
    monkeypatch.setattr(watch_module, "TELL_S", 0.01)
    r1, r2 = (member(open_folder(tmp_path / each, DOCUMENT, each), each) for each in ("r1", "r2"))
    watch = Watch(r1, Direct({"r2": r2, "r3": None}))
    rounds = 0
    usual = r1.announcement

    async def announcement(*, is_first: bool = False) -> Announcement:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            raise ZeroDivisionError("nobody foresaw it")
        return await usual(is_first=is_first)

    monkeypatch.setattr(r1, "announcement", announcement)
    watch.start()
    try:
        async with asyncio.timeout(WAIT_S):
            while not r1.is_vouched_for:
                await asyncio.sleep(0.01)
            await answer_of(r1, [append(1_000_000)])
            while await r2.run(lambda store: store.others.witness("r1")) != Witness(
                r1.folder.identity.store, make(1_000_000, 0, "site"), r1.folder.identity.born
            ):
                await asyncio.sleep(0.01)
    finally:
        await watch.stop()
    assert "the watch met an error of its own" in caplog.text
    for each in (r1, r2):
        each.close()


async def test_a_witness_whose_disk_is_full_tells_what_it_knows_and_is_told_again(tmp_path: Path) -> None:
    """SQLite's own page limit stands in for the full disk. What is announced is too long for the room left."""
    r1, r2 = (member(open_folder(tmp_path / each, DOCUMENT, each), each) for each in ("r1", "r2"))
    await r2.testify(announcement("a", EARLY))
    r2.is_vouched_for = True
    await r2.run(lambda store: store._database.all("PRAGMA max_page_count = 1"))  # as low as the file is now
    long = announcement("b" * 200_000, LATE, named=True)
    assert replace(await r2.testify(long), now_us=0) == Testimony("a", EARLY, noted=False)
    assert replace(await r2.testify(long), now_us=0) == Testimony("a", EARLY, noted=False)
    await r2.run(lambda store: store._database.all("PRAGMA max_page_count = 1000000"))
    assert replace(await r2.testify(long), now_us=0) == Testimony("a", EARLY)
    assert replace(await r2.testify(long), now_us=0) == Testimony(long.store, LATE)
    for each in (r1, r2):
        each.close()


async def test_who_did_not_note_what_it_was_told_is_told_again(tmp_path: Path) -> None:
    r1 = member(open_folder(tmp_path / "r1", DOCUMENT, "r1"), "r1")

    class Full(Direct):
        """Every replica answers, and notes nothing at first."""

        async def announce(self, replica: str, told: Announcement, timeout_s: float) -> Testimony:
            self.asked.append(replica)
            return Testimony(noted=len(self.asked) > 2)

    others = Full({})
    watch = await started(r1, others)
    assert sorted(others.asked) == ["r2", "r3"], "their word counts all the same"
    await watch._tell()
    assert sorted(others.asked) == ["r2", "r2", "r3", "r3"]
    await watch._tell()
    assert len(others.asked) == 4
    r1.close()


async def test_nothing_is_told_twice(tmp_path: Path) -> None:
    r1, r2, r3 = (member(open_folder(tmp_path / each, DOCUMENT, each), each) for each in ("r1", "r2", "r3"))
    others = Direct({"r2": r2, "r3": r3})
    watch = await started(r1, others)
    others.asked.clear()
    await watch._tell()
    assert others.asked == []
    await answer_of(r1, [append(1_000_000)])
    await watch._tell()
    assert sorted(others.asked) == ["r2", "r3"]
    for each in (r1, r2, r3):
        each.close()


class Further:
    """Another replica that is in a later configuration: it testifies to those alone who are there, too."""

    def __init__(self, document: ClusterDocument) -> None:
        self.document = document
        self.asked = self.testified = 0

    async def announce(self, replica: str, told: Announcement, timeout_s: float) -> Testimony | Unanswered:
        del replica, timeout_s
        self.asked += 1
        if told.cluster != self.document.hash:
            return Unanswered("it is further", refused=True, epoch=self.document.number)
        self.testified += 1
        return Testimony()

    async def aclose(self) -> None:
        """Nothing to give up."""


async def test_a_store_is_not_vouched_for_while_another_replica_is_in_a_later_configuration(
    tmp_path: Path,
) -> None:
    """It may be an older copy, which would answer those who slept through the change, as it did before."""
    own = member(open_folder(tmp_path / "r1", DOCUMENT, "r1"), "r1")
    changed = replace(DOCUMENT, choices=(ChoiceRule("queue/*", collect=False),))
    further, heard = Further(joint(DOCUMENT, changed)), asyncio.Event()
    own.configured.hear_of_later = lambda _: heard.set()
    asking = asyncio.create_task(Watch(own, further)._ask())
    await heard.wait()
    while further.asked < 12:  # Far longer than a replica that is down is waited for.
        await asyncio.sleep(watch_module.ASK_S)
    assert not own.is_vouched_for
    await own.configured.follow(further.document)
    await asking
    assert own.is_vouched_for
    await asyncio.to_thread(own.close)


@pytest.mark.parametrize("comes", [True, False])
async def test_a_replica_in_an_earlier_configuration_is_waited_for_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comes: bool
) -> None:
    """It runs, and may have seen a newer store; it hears of the configuration when it announces itself. That it never does is not waited for without end."""
    monkeypatch.setattr(watch_module, "MEET_S", 60.0 if comes else 0.2)
    own = member(open_folder(tmp_path / "r1", DOCUMENT, "r1"), "r1")
    both = joint(DOCUMENT, replace(DOCUMENT, choices=(ChoiceRule("queue/*", collect=False),)))
    await own.configured.follow(both)
    earlier = Further(DOCUMENT)
    asking = asyncio.create_task(Watch(own, earlier)._ask())
    if comes:
        async with asyncio.timeout(WAIT_S):
            while earlier.asked < 12:
                await asyncio.sleep(watch_module.ASK_S)
        assert not own.is_vouched_for
        earlier.document = both
    await asking
    assert own.is_vouched_for
    assert bool(earlier.testified) == comes
    await asyncio.to_thread(own.close)


async def test_a_store_that_went_on_late_is_asked_for_there_before_it_votes(tmp_path: Path) -> None:
    """It goes on while the watch rests, long after those that are down are waited for: the first word comes in the later configuration alone."""
    own = member(open_folder(tmp_path / "r1", DOCUMENT, "r1"), "r1")
    further = Further(joint(DOCUMENT, replace(DOCUMENT, choices=(ChoiceRule("queue/*", collect=False),))))
    own.configured.hear_of_later = lambda _: None
    asking = asyncio.create_task(Watch(own, further)._ask())
    while further.asked < 12:
        await asyncio.sleep(watch_module.ASK_S)
    asked, testified = further.asked, further.testified
    assert not testified
    await own.configured.follow(further.document)
    await asking
    assert further.asked > asked
    assert further.testified, "it was asked there before the first vote"
    await asyncio.to_thread(own.close)
