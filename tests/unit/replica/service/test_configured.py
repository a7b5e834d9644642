"""In which configuration a replica is: when it goes on, what it answers then, and where it is after a restart."""

import asyncio
import errno
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import BadCluster, ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import (
    SPOKEN,
    Append,
    Batch,
    Collect,
    Proposal,
    Protocols,
    Reserve,
    Testimony,
)
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.replica.data_folder import identity
from quorate.replica.data_folder.identity import IDENTITY_FILE, open_folder
from quorate.replica.protocol.log import Reservation
from quorate.replica.protocol.witness import Witness
from quorate.replica.service import configured as configured_module
from quorate.replica.service.configured import WrongCluster
from quorate.replica.service.member import Member
from quorate.replica.store.store import StorageFailed, Store
from quorate.timestamps.timestamp import make
from tests.support.asking import answer_of
from tests.unit.replica.conftest import one_replica

FIRST = one_replica()
BOTH = joint(FIRST, replace(FIRST, choices=(ChoiceRule("register/*", collect=False),)))
AFTER = settled(BOTH)
READ = (Collect("register/x"),)


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    opened = Member(open_folder(tmp_path / "r1", FIRST, "r1"))
    yield opened
    await asyncio.to_thread(opened.close)


async def restarted(member: Member, file: ClusterDocument = FIRST) -> Member:
    """The same folder, served anew with this cluster file."""
    await asyncio.to_thread(member.close)
    return Member(open_folder(member.folder.path, file, "r1"))


def entry(member: Member, number: int = 0) -> Entry:
    t = make(member.wall_us(), number, "c")
    return Entry(t, t, Value("1"))


async def test_it_takes_messages_of_its_own_configuration_alone(member: Member) -> None:
    await member.configured.follow(BOTH)
    stored = Append("register/x", (entry(member),), "first")
    for document in (FIRST, AFTER):
        with pytest.raises(WrongCluster, match=f"this replica's has {BOTH.hash}, configuration 1") as refused:
            await member.answer(Batch(document.hash, (stored,)))
        assert refused.value.epoch == 1
    assert (await member.configured.holding("", 9)).objects == (), "nothing was done"
    await member.answer(Batch(BOTH.hash, (stored,)))
    assert (await member.configured.holding("", 9)).objects == ("register/x",)


async def test_it_goes_on_to_later_configurations_only(member: Member) -> None:
    heard: list[int] = []
    member.configured.followers.append(lambda document: heard.append(document.number))
    for document in (FIRST, AFTER, BOTH, AFTER):
        await member.configured.follow(document)
    assert (member.document, heard) == (AFTER, [2])


async def test_two_who_tell_it_at_once_have_it_go_on_once_to_each(member: Member) -> None:
    heard: list[int] = []
    member.configured.followers.append(lambda document: heard.append(document.number))
    await asyncio.gather(*map(member.configured.follow, (BOTH, AFTER, BOTH, AFTER)))
    assert (member.document.number, heard) == (2, [1, 2])


async def test_it_is_there_still_after_a_restart_with_the_old_file_and_with_the_new_one(
    member: Member,
) -> None:
    await member.configured.follow(BOTH)
    await member.configured.follow(AFTER)
    for file in (FIRST, replace(AFTER, epoch=FIRST.epoch)):
        again = await restarted(member, file)
        assert (again.document, again.lost) == (AFTER, None)
        assert (await answer_of(again, READ)).replies
        await asyncio.to_thread(again.close)


async def test_once_it_has_gone_on_only_releases_talk_to_it_and_read_its_store_that_know_of_that(
    member: Member, caplog: pytest.LogCaptureFixture
) -> None:
    file = member.folder.path / IDENTITY_FILE
    assert member.configured.protocols == SPOKEN == Protocols(1, 2)
    assert msgspec.json.decode(file.read_bytes())["schema"] == 7
    with caplog.at_level("INFO", "quorate.replica.store.configuration"):
        await member.configured.follow(BOTH)
        await member.configured.follow(AFTER)
    assert [
        each.getMessage() for each in caplog.records if each.name.startswith("quorate.replica.store")
    ] == [
        "the store has schema 8 from now on, for the configuration changes while the cluster runs: releases that know schema 7 alone refuse it"
    ]
    assert member.configured.protocols == Protocols(2, 2)
    assert msgspec.json.decode(file.read_bytes())["schema"] == 8
    again = await restarted(member)
    assert (again.folder.identity.schema, again.configured.protocols) == (8, Protocols(2, 2))
    await asyncio.to_thread(again.close)


async def test_the_identity_file_is_written_anew_where_it_could_not_be(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patch:
        patch.setattr(identity, "write_durably", full)
        await member.configured.follow(BOTH)
    file = member.folder.path / IDENTITY_FILE
    assert msgspec.json.decode(file.read_bytes())["schema"] == 7
    again = await restarted(member)
    assert msgspec.json.decode(file.read_bytes())["schema"] == 8
    await asyncio.to_thread(again.close)


async def test_limits_are_those_of_its_own_file(member: Member) -> None:
    await member.configured.follow(BOTH)
    file = replace(FIRST, limits=Limits(batch_items_max=7))
    again = await restarted(member, file)
    assert again.document == replace(BOTH, limits=file.limits, old=file)
    await again.configured.follow(AFTER)
    assert again.document == replace(AFTER, limits=file.limits)
    await asyncio.to_thread(again.close)


async def test_where_it_cannot_be_noted_it_stays_where_it_is(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(store: Store, document: ClusterDocument) -> None:
        raise StorageFailed("the disk is full", passing=True)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "follow_configuration", full)
        with pytest.raises(StorageFailed):
            await member.configured.follow(BOTH)
    assert member.document == FIRST
    assert (await answer_of(member, READ)).replies
    await member.configured.follow(BOTH)
    assert member.document == BOTH


async def test_it_is_noted_before_the_first_answer_under_it(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process ended in between."""
    monkeypatch.setattr(member.configured, "_go_on_to", lambda later, store: None)
    await member.configured.follow(BOTH)
    assert member.document == FIRST
    again = await restarted(member)
    assert again.document == BOTH
    await asyncio.to_thread(again.close)


async def test_a_new_store_that_has_gone_on_is_new_still(tmp_path: Path) -> None:
    """It has not voted: the others must note it before it does."""
    three = replace(
        FIRST, replicas=tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in (1, 2, 3))
    )
    both = joint(three, replace(three, choices=(ChoiceRule("queue/*", collect=False),)))
    member = Member(open_folder(tmp_path / "r1", three, "r1"))
    await member.configured.follow(both)
    again = await restarted(member, three)
    assert (again.document, again.is_new, again.is_vouched_for) == (both, True, False)
    await again.admit()
    last = await restarted(again, three)
    assert (last.document, last.is_new) == (both, False)
    await asyncio.to_thread(last.close)


async def test_configurations_of_another_cluster_are_refused_and_nothing_changes(member: Member) -> None:
    other = replace(FIRST, name="other")
    with pytest.raises(BadCluster, match="it is of cluster 'other', and not of 'test'"):
        await member.configured.follow(joint(other, other))
    assert member.document == FIRST


async def test_whether_events_are_kept_is_as_the_rules_of_now_have_it(member: Member) -> None:
    assert not member.configured.keeps_events("register/x")
    await member.configured.follow(BOTH)
    assert member.configured.keeps_events("register/x")


async def test_bounds_are_shared_among_the_members_of_now(member: Member) -> None:
    assert member._bounds.waiting_bytes_max == FIRST.limits.waiting_bytes_max(1)
    others = tuple(ReplicaInfo(name, f"http://{name}:1") for name in ("r2", "r3", "r4", "r5"))
    await member.configured.follow(joint(FIRST, replace(FIRST, replicas=(*FIRST.replicas, *others))))
    assert (
        member._bounds.waiting_bytes_max
        == FIRST.limits.waiting_bytes_max(5)
        < FIRST.limits.waiting_bytes_max(1)
    )


async def test_keys_of_before_are_those_it_held_when_it_went_on_and_holds_still(member: Member) -> None:
    def reserve(key: str, number: int) -> Reserve:
        ballot = make(member.wall_us(), number, "c")
        return Reserve("queue/q", ballot, (Proposal(key, (replace(entry(member, number), value=None),)),))

    await answer_of(member, [reserve("a", 1), reserve("b", 2)])
    await member.configured.follow(BOTH)
    await answer_of(member, [reserve("c", 3), reserve("a", 4)])
    assert (await member.configured.holding("", 9)).keys == 2, "a, which was touched since, and b"
    await member.run(lambda store: store.forget_reservations(store.arrival(), 1))
    assert (await member.configured.holding("", 9)).keys == 1
    again = await restarted(member)
    assert (await again.configured.holding("", 9)).keys == 2, "after a restart all count as of before"
    await asyncio.to_thread(again.close)


async def test_objects_are_told_in_pages(member: Member) -> None:
    names = [f"register/{n}" for n in range(5)]
    await answer_of(member, [Append(name, (entry(member, n),), "first") for n, name in enumerate(names)])
    found: list[str] = []
    while (page := await member.configured.holding(max(found, default=""), 2)).more:
        found += page.objects
    assert [*found, *page.objects] == names


async def test_a_replica_that_is_further_is_told_of(member: Member) -> None:
    heard: list[str] = []
    member.configured.hear_of_later = heard.append
    for name, epoch in (("same", 0), ("further", 1), ("silent", None)):
        member.configured.meet(name, Unanswered("no", epoch=epoch))
    assert heard == ["further"]


async def test_what_is_of_another_cluster_is_refused_though_its_members_have_the_same_names(
    tmp_path: Path,
) -> None:
    file = one_replica(store="own")
    member = Member(open_folder(tmp_path / "named", file, "r1"))
    both = joint(file, replace(file, choices=BOTH.choices))
    for other, words in (
        (replace(both, name="other"), "it is of cluster 'other', and not of 'test'"),
        (replace(both, replicas=(replace(file.replicas[0], store="another"),)), "it names store 'another'"),
    ):
        with pytest.raises(BadCluster, match=words):
            await member.configured.follow(other)
    assert member.document == file
    await asyncio.to_thread(member.close)


async def test_who_is_further_counts_until_it_answers_or_says_nothing_or_is_of_another_cluster(
    member: Member,
) -> None:
    configured = member.configured
    configured.meet("r2", Unanswered("further", epoch=3))
    assert configured.is_behind
    configured.meet("r2", Unanswered("down"))
    assert not configured.is_behind
    configured.meet("r2", Unanswered("further", epoch=3))
    configured.disbelieve("r2")
    configured.meet("r2", Unanswered("further", epoch=4))
    assert not configured.is_behind
    configured.meet("r2", Testimony())
    configured.meet("r2", Unanswered("further", epoch=4))
    assert configured.is_behind


async def test_keys_of_before_count_for_as_long_as_repeats_may_be_in_time(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who goes on to repeat an operation has the key held for good, and every answer is that it is too old."""
    await member.configured.follow(BOTH)
    await member.run(lambda store: store.held.put(b"d" * 16, Reservation(), 1))
    await member.configured.follow(AFTER)
    assert (await member.configured.holding("", 9)).keys == 1
    late_s = time.monotonic() + member.document.memory_s
    monkeypatch.setattr(configured_module, "time", SimpleNamespace(monotonic=lambda: late_s))
    assert (await member.configured.holding("", 9)).keys == 0


async def test_followers_hear_of_it_though_other_work_of_its_transaction_failed(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[int] = []
    member.configured.followers.append(lambda document: heard.append(document.number))
    goes_on = member.configured._go_on_to

    def fails(later: ClusterDocument, store: Store) -> None:
        goes_on(later, store)
        raise StorageFailed("the disk is full", passing=True)

    monkeypatch.setattr(member.configured, "_go_on_to", fails)
    with pytest.raises(StorageFailed):
        await member.configured.follow(BOTH)
    assert (member.document, heard) == (BOTH, [1])


async def test_stores_of_members_are_remembered_and_of_a_new_one_the_store_that_it_became_a_member_with(
    tmp_path: Path,
) -> None:
    """Of one that was a member before it is what was seen, though the file names another store: that one announces itself."""
    replicas = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}", store=f"store{n}") for n in range(1, 6))
    file = replace(FIRST, replicas=replicas[:3])
    member = Member(
        open_folder(tmp_path / "r1", replace(file, replicas=(FIRST.replicas[0], *replicas[1:3])), "r1")
    )
    stores = {"r2": "before", "r3": "store3", "r4": "store4", "r5": "made-anew", "r6": "store6"}
    seen = {name: Witness(store, make(1, 0, "c")) for name, store in stores.items()}

    def put(store: Store) -> None:
        for name, each in seen.items():
            store.others.put_witness(name, each)

    async def remembered() -> dict[str, Witness | None]:
        return {name: await member.run(lambda store: store.others.witness(name)) for name in seen}  # noqa: B023

    await member.run(put)
    first = member.document
    both = joint(first, with_members(first, [*first.replicas[:2], *replicas[3:]]))
    await member.configured.follow(both)
    assert await remembered() == seen | {"r5": None, "r6": None}
    await member.configured.follow(settled(both))
    assert await remembered() == seen | {"r3": None, "r5": None, "r6": None}
    await asyncio.to_thread(member.close)


async def test_it_goes_on_whole_though_who_told_it_goes_away_in_the_middle(member: Member) -> None:
    """Else what is noted on disk could be ahead of what it answers under, for good."""
    async with member.configured.turn:
        telling = asyncio.create_task(member.configured.follow(BOTH))
        await asyncio.sleep(0.01)
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)
    async with asyncio.timeout(60):
        while member.document != BOTH:
            await asyncio.sleep(0.001)
