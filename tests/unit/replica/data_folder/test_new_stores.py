"""Stores that have never voted: when they may, what keeps them from it, and who is told."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from quorate.api_specs.cluster import BadCluster, ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.api_specs.messages import Announcement, Testimony
from quorate.client_sdk.protocol.configurations import joint, settled, taken_back
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.protocol.witness import Witness
from quorate.replica.service.configured import WrongCluster
from quorate.replica.service.member import Member, OtherConfiguration, Starting, StoreLost
from quorate.replica.store.group_commit import Overloaded
from quorate.replica.store.peer_records import CANDIDATES_MAX
from quorate.replica.store.store import StorageFailed
from quorate.replica.upkeep import announcer as watch_module
from quorate.replica.upkeep.announcer import Watch
from quorate.timestamps.timestamp import ZERO
from tests.support.asking import answer_of
from tests.unit.replica.protocol.test_witness import DOCUMENT, LATE, WAIT_S, Direct, append

JOINS_AT = "http://127.0.0.1:7004"


def new_member(path: Path, replica: str) -> Member:
    """One whose store has never voted, or whatever lies there."""
    return Member(open_folder(path, DOCUMENT, replica))


class Fleet:
    """New replicas, each with a folder and a watch of its own, of which any may be down."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.others = Direct(dict.fromkeys(("r1", "r2", "r3", "r4")))
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, replica: str, folder: str = "") -> Member:
        return self._watched(new_member(self.root / (folder or replica), replica))

    def join(self) -> Member:
        """r4, which is no member."""
        return self._watched(Member(open_folder(self.root / "r4", DOCUMENT, "r4", joins_at=JOINS_AT)))

    def _watched(self, made: Member) -> Member:
        self.others.members[made.id] = made
        self.tasks[made.id] = asyncio.create_task(Watch(made, self.others)._ask())
        return made

    async def serving(self) -> list[Member]:
        """All three members, which vote."""
        made = [self.start(each) for each in ("r1", "r2", "r3")]
        await until(lambda: all(each.is_vouched_for for each in made))
        return made

    async def stop(self, replica: str) -> None:
        self.tasks[replica].cancel()
        await asyncio.gather(self.tasks[replica], return_exceptions=True)
        made = self.others.members[replica]
        assert made is not None
        self.others.members[replica] = None
        made.close()

    async def close(self) -> None:
        for replica, made in self.others.members.items():
            if made is not None:
                await self.stop(replica)


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    made = Fleet(tmp_path)
    yield made
    await made.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.005)


async def test_new_replicas_vote_once_each_knows_of_all(fleet: Fleet) -> None:
    r1, r2 = fleet.start("r1"), fleet.start("r2")
    await until(lambda: list(r1.awaited) == list(r2.awaited) == ["r3"])
    assert (r1.trouble, r1.is_vouched_for) == ("starting", False)
    (reason,) = r1.why_not_ready()
    assert "it is new, and votes once every other replica has noted its store" in reason
    assert "not yet been done by r3 (down): the first start of a cluster needs all its replicas" in reason
    with pytest.raises(Starting, match="it is new"):
        await answer_of(r1, [append(1_000_000)])
    r3 = fleet.start("r3")
    await until(lambda: all(each.is_vouched_for for each in (r1, r2, r3)))
    for replica in ("r1", "r2", "r3"):
        await fleet.stop(replica)
    again = fleet.start("r1")
    await until(lambda: again.is_vouched_for)
    await answer_of(again, [append(1_000_000)])


async def test_one_that_did_not_note_it_is_no_witness(fleet: Fleet) -> None:
    """Its disk is full. Once there is room, the new one votes."""
    r2, r3 = fleet.start("r2"), fleet.start("r3")
    usual, fails = r3.testify, True

    async def testify(told: Announcement) -> Testimony:
        return replace(await usual(told), noted=not fails)

    r3.testify = testify  # type: ignore[assignment, method-assign]
    r1 = fleet.start("r1")
    await until(lambda: r1.awaited == {"r3": "its disk is full"})
    fails = False
    await until(lambda: r1.is_vouched_for and r2.is_vouched_for)


@pytest.mark.parametrize("witness", ["r2", "r3"])
async def test_a_store_made_anew_does_not_vote_while_any_witness_lives(fleet: Fleet, witness: str) -> None:
    """Nobody was told anything since the first votes, and the new one has the same id, or another that the document names."""
    first = [fleet.start(each) for each in ("r1", "r2", "r3")]
    await until(lambda: all(each.is_vouched_for for each in first))
    await answer_of(first[0], [append(1_000_000)])
    for replica in ("r1", "r2", "r3"):
        await fleet.stop(replica)
    fleet.start(witness)
    new = fleet.start("r1", "r1-again")
    await until(lambda: new.lost is not None)
    assert f"replica {witness} knows" in (new.lost or "")
    assert new.trouble == "store-lost"
    assert not new.is_vouched_for


async def test_a_store_that_voted_refuses_other_choices_and_so_do_new_ones_that_hear_of_it(
    fleet: Fleet, tmp_path: Path
) -> None:
    first = [fleet.start(each) for each in ("r1", "r2", "r3")]
    await until(lambda: all(each.is_vouched_for for each in first))
    await fleet.close()
    rules = (ChoiceRule("queue/*", {"Enq/Ok": (0, 1)}),)
    other = replace(DOCUMENT, choices=rules)
    r1 = Member(open_folder(tmp_path / "r1", other, "r1"))
    assert r1.trouble == "other-configuration"
    assert "[[choices]] has queue/*, and no such rule then" in r1.why_not_ready()[0]
    with pytest.raises(OtherConfiguration, match="Put these lines back"):
        await answer_of(r1, [append(1_000_000)])
    new = Member(open_folder(tmp_path / "new", other, "r2"))
    with pytest.raises(StoreLost, match="replica r2 is new, and replica r1 says: replica r1 has voted under"):
        await Watch(new, Direct({"r1": r1, "r3": None}))._ask()
    assert new.trouble == "other-configuration"
    for each in (r1, new):
        each.close()
    back = Member(open_folder(tmp_path / "r1", DOCUMENT, "r1"))
    assert (back.lost, back.is_new) == (None, False)
    back.close()


async def test_a_replica_that_was_alone_notes_what_it_votes_under_and_refuses_two_members_more(
    tmp_path: Path,
) -> None:
    """Nobody need vouch for it, so it votes from the moment that it is opened."""
    alone = replace(DOCUMENT, replicas=DOCUMENT.replicas[:1])
    one = Member(open_folder(tmp_path / "r1", alone, "r1"))
    await answer_of(one, [append(1_000_000)])
    one.close()
    again = Member(open_folder(tmp_path / "r1", DOCUMENT, "r1"))
    assert again.trouble == "other-configuration"
    assert "[[replicas]] has r2, r3, not a member then" in again.why_not_ready()[0]
    with pytest.raises(OtherConfiguration):
        await answer_of(again, [append(1_000_000)])
    again.close()


async def restarted(path: Path, document: ClusterDocument) -> str | None:
    """What keeps r1 from voting under this document, once those it knows of have vouched for it; None when nothing does."""
    made = Member(open_folder(path, document, "r1"))
    try:
        if made.lost is None and not made.is_vouched_for:
            await made.admit()
        return made.lost
    finally:
        made.close()


@pytest.mark.parametrize("members", [1, 3])
async def test_a_type_that_was_added_is_noted_at_the_first_start_with_it(
    tmp_path: Path, members: int
) -> None:
    """Else it could be given other quorums, or go, after calls of it were acknowledged."""
    before = replace(DOCUMENT, replicas=DOCUMENT.replicas[:members])
    added = replace(before, types={"cart": "tests.support.own_types:Cart"})
    ruled = replace(added, choices=(ChoiceRule("cart/*", {"Call/Ok": (1, members)}),))
    for document in (before, added):
        assert await restarted(tmp_path / "r1", document) is None
    assert "[types] lacks cart, a type then" in (await restarted(tmp_path / "r1", before) or "")
    assert "[[choices]] has cart/*, and no such rule then" in (await restarted(tmp_path / "r1", ruled) or "")
    assert await restarted(tmp_path / "r1", added) is None


async def test_the_first_vote_waits_for_room_to_note_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Member(open_folder(tmp_path / "r1", DOCUMENT, "r1"))
    usual, failures = alone.admit, iter([True, True])

    async def admit() -> None:
        if next(failures, False):
            raise StorageFailed("the disk is full", passing=True)
        await usual()

    monkeypatch.setattr(alone, "admit", admit)

    class Noting(Direct):
        async def announce(self, replica: str, told: Announcement, timeout_s: float) -> Testimony:
            return Testimony()

    await Watch(alone, Noting({}))._ask()
    assert alone.is_vouched_for
    alone.close()


def with_r4(joiner: Member, *leaving: str, store: str = "") -> ClusterDocument:
    """Both are in force: the members of before, and those with r4 and without these."""
    r4 = ReplicaInfo("r4", JOINS_AT, store=store or joiner.folder.identity.store)
    stay = [each for each in DOCUMENT.replicas if each.id not in leaving]
    return joint(DOCUMENT, with_members(DOCUMENT, [*stay, r4]))


async def settle(member: Member) -> None:
    """What its watch has begun, as the first vote, has come to its end."""
    for _ in range(2):
        await member.run(lambda store: store.clock)


def told(store: str, replica: str = "r4") -> Announcement:
    return Announcement(DOCUMENT.hash, replica, store, LATE, born=f"born-{store}", is_new=True)


async def test_a_store_that_is_no_member_may_be_made_anew_until_it_is_one(tmp_path: Path) -> None:
    r1 = new_member(tmp_path / "r1", "r1")
    for store in ("a", "b"):
        heard = await r1.testify(told(store))
        assert (heard.store, heard.born, heard.noted) == ("", "", True), "nothing speaks against it"
        noted = await r1.run(lambda store: store.others.witness("r4"))
        assert noted == Witness(store, ZERO, f"born-{store}")
    assert await r1.run(lambda store: store.highest) == ZERO, "anybody could set the clock ahead"
    admitted = [*DOCUMENT.replicas, ReplicaInfo("r4", JOINS_AT, store="b")]
    await r1.configured.follow(joint(DOCUMENT, with_members(DOCUMENT, admitted)))
    assert (await r1.testify(told("b"))).store == "b"
    assert (await r1.testify(told("c"))).store == "b"
    noted = await r1.run(lambda store: store.others.witness("r4"))
    assert noted == Witness("b", LATE, "born-b"), "a member's store stays, and its time is noted"
    await asyncio.to_thread(r1.close)


async def test_so_many_replicas_that_are_no_members_are_noted_and_no_more(tmp_path: Path) -> None:
    r1 = new_member(tmp_path / "r1", "r1")
    for number in range(CANDIDATES_MAX):
        await r1.testify(told("a", f"c{number}"))
    with pytest.raises(Overloaded, match="no members"):
        await r1.testify(told("a", "r4"))
    assert (await r1.testify(told("b", "c3"))).noted
    assert (await r1.testify(told("a", "r2"))).noted, "members have a place of their own"
    await asyncio.to_thread(r1.close)


async def test_a_joiner_that_all_have_noted_votes_as_soon_as_it_is_a_member_and_not_before(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await fleet.serving()
    monkeypatch.setattr(watch_module, "RETRY_S", 10 * WAIT_S)  # Nobody need ask again.
    monkeypatch.setattr(watch_module, "ASK_S", 10 * WAIT_S)
    r4 = fleet.join()
    assert list(r4.awaited) == ["r1", "r2", "r3"]
    await until(lambda: not r4.awaited)
    for each in first:
        noted = await each.run(lambda store: store.others.witness("r4"))
        assert noted == Witness(r4.folder.identity.store, ZERO, r4.folder.identity.born)
    await settle(r4)
    assert (r4.trouble, r4.is_new, r4.is_member) == ("starting", True, False)
    with pytest.raises(Starting, match="it is no member yet, in configuration 0"):
        await answer_of(r4, [append(1_000_000)])
    await r4.configured.follow(with_r4(r4))
    await until(lambda: r4.is_vouched_for)
    assert (r4.trouble, r4.is_new, r4.is_member) == (None, False, True)
    await answer_of(r4, [append(1_000_000)])


@pytest.mark.parametrize("leaves", [False, True])
async def test_one_that_stays_keeps_a_joiner_from_voting_until_it_has_noted_it_and_one_that_leaves_does_not(
    fleet: Fleet, *, leaves: bool
) -> None:
    """As one whose disk is lost, and that is replaced."""
    await fleet.serving()
    await fleet.stop("r3")
    r4 = fleet.join()
    await until(lambda: r4.awaited == {"r3": "down"})
    asked = fleet.others.asked.count("r3")
    await r4.configured.follow(with_r4(r4, *(["r3"] if leaves else [])))
    await until(lambda: r4.is_vouched_for or fleet.others.asked.count("r3") > asked + 1)
    await settle(r4)
    assert r4.is_vouched_for is leaves
    if not leaves:
        with pytest.raises(Starting, match=r"not yet been done by r3 \(down\)"):
            await answer_of(r4, [append(1_000_000)])
        fleet.start("r3")
        await until(lambda: r4.is_vouched_for)


@pytest.mark.parametrize(
    ("goes_on_to", "words"),
    [
        (lambda r4: with_r4(r4, store="another"), "became a member with store another"),
        (lambda r4: taken_back(with_r4(r4)), "r4 is a member no more, as of configuration 2"),
    ],
    ids=["another store", "taken back"],
)
async def test_a_joiner_whose_place_another_store_has_or_nobody_any_more_never_votes_and_says_so(
    fleet: Fleet, goes_on_to: Callable[[Member], ClusterDocument], words: str
) -> None:
    await fleet.serving()
    r4 = fleet.join()
    await until(lambda: not r4.awaited)
    await r4.configured.follow(goes_on_to(r4))
    assert r4.trouble == "other-configuration"
    (reason,) = r4.why_not_ready()
    assert words in reason
    for asked in (fleet.tasks["r4"], answer_of(r4, [append(1_000_000)])):
        with pytest.raises(OtherConfiguration, match=words):
            await asked
    assert not r4.is_vouched_for


async def test_a_member_that_has_left_votes_no_more_and_says_so(fleet: Fleet) -> None:
    r3 = (await fleet.serving())[2]
    r4 = fleet.join()
    both = with_r4(r4, "r3")
    await r3.configured.follow(both)
    await answer_of(r3, [append(1_000_000)])
    await r3.configured.follow(settled(both))
    assert r3.trouble == "other-configuration"
    with pytest.raises(OtherConfiguration, match="r3 is a member no more, as of configuration 2"):
        await answer_of(r3, [append(1_000_000)])


async def test_a_joiner_is_noted_anew_in_each_configuration_that_it_is_no_member_of(fleet: Fleet) -> None:
    """Members forget the stores of others when they go on."""
    first = await fleet.serving()
    r4 = fleet.join()
    await until(lambda: not r4.awaited)
    changed = joint(DOCUMENT, replace(DOCUMENT, choices=(ChoiceRule("queue/*", collect=False),)))
    for each in first:
        fleet.others.members[each.id] = None  # Else r4 may be noted again before it is looked for.
        await each.configured.follow(changed)
        assert await each.run(lambda store: store.others.witness("r4")) is None
    fleet.others.members.update({each.id: each for each in first})
    await r4.configured.follow(changed)
    assert list(r4.awaited) == ["r1", "r2", "r3"]
    await until(lambda: not r4.awaited)
    for each in first:
        assert await each.run(lambda store: store.others.witness("r4")) is not None


async def test_joiners_that_come_together_need_not_note_each_other(fleet: Fleet) -> None:
    """One of them may have ended meanwhile, and with both in force nobody could go back."""
    await fleet.serving()
    r4 = fleet.join()
    await until(lambda: not r4.awaited)
    r5 = ReplicaInfo("r5", "http://127.0.0.1:7005", store="of-r5")
    together = with_members(DOCUMENT, [*with_r4(r4).replicas, r5])
    fleet.others.members["r5"] = None
    await r4.configured.follow(joint(DOCUMENT, together))
    await until(lambda: r4.is_vouched_for)


async def test_the_first_vote_is_noted_while_no_configuration_is_gone_on_to(fleet: Fleet) -> None:
    """Else what is noted could be the one before, and the store would be there after a restart."""
    r1 = (await fleet.serving())[0]
    async with r1.configured.turn:
        admitted = asyncio.create_task(r1.admit())
        await settle(r1)
        assert not admitted.done()
    await admitted


async def test_a_joiner_that_slept_through_the_joint_configuration_waits_for_those_alone_that_were_there_before(
    fleet: Fleet,
) -> None:
    """Another one that came with it has ended, and its disk is lost: nobody else can note this one there."""
    await fleet.serving()
    r4 = fleet.join()
    await until(lambda: not r4.awaited)
    r5 = ReplicaInfo("r5", "http://127.0.0.1:7005", store="of-r5")
    fleet.others.members["r5"] = None
    together = with_members(DOCUMENT, [*with_r4(r4).replicas, r5])
    await fleet.stop("r1")
    changed = joint(DOCUMENT, replace(DOCUMENT, choices=(ChoiceRule("queue/*", collect=False),)))
    await r4.configured.follow(changed)
    await until(lambda: list(r4.awaited) == ["r1"])
    await r4.configured.follow(
        settled(joint(settled(changed), with_members(settled(changed), together.replicas)))
    )
    await until(lambda: list(r4.awaited) == ["r1", "r5"])
    await fleet.stop("r4")
    r4 = fleet.join()  # Also after a restart.
    fleet.start("r1")
    await until(lambda: r4.is_vouched_for)


async def test_a_store_that_has_voted_follows_no_configuration_that_never_knew_its_replica(
    fleet: Fleet,
) -> None:
    """Two clusters may have one name, and files that name no stores. One that is new may join either."""
    r1 = (await fleet.serving())[0]
    others = tuple(ReplicaInfo(f"b{n}", f"http://127.0.0.1:710{n}") for n in (1, 2))
    elsewhere = replace(DOCUMENT, replicas=others, epoch=2)
    with pytest.raises(BadCluster, match="it names no replica r1, and never has: it is of another cluster"):
        await r1.configured.follow(elsewhere)
    assert r1.document == DOCUMENT
    await r1.configured.follow(replace(elsewhere, retired=("r1",)))
    assert r1.trouble == "other-configuration", "it has left"
    await fleet.join().configured.follow(elsewhere)


async def test_what_was_announced_in_the_configuration_before_is_not_noted_in_the_next(fleet: Fleet) -> None:
    """A second joiner with the same id would take the place of the one that became a member."""
    r1 = (await fleet.serving())[0]
    r4 = fleet.join()
    await until(lambda: not r4.awaited)
    within = r1.document
    await r1.configured.follow(with_r4(r4))
    with pytest.raises(WrongCluster):
        await r1.testify(told("another"), within)
    noted = await r1.run(lambda store: store.others.witness("r4"))
    assert noted is not None
    assert noted.store == r4.folder.identity.store


async def test_one_that_leaves_while_it_is_asked_is_no_peer_afterwards(fleet: Fleet) -> None:
    r1 = (await fleet.serving())[0]
    without = with_members(DOCUMENT, [each for each in DOCUMENT.replicas if each.id != "r3"])
    usual = fleet.others.announce

    async def announce(replica: str, told: Announcement, timeout_s: float) -> Testimony | Unanswered:
        await r1.configured.follow(settled(joint(DOCUMENT, without)))
        return await usual(replica, told, timeout_s)

    fleet.others.announce = announce  # type: ignore[method-assign]
    await Watch(r1, fleet.others)._round(["r2", "r3"], WAIT_S)
    assert list(r1.peers) == ["r2"]
