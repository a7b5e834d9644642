"""What a member tells whoever sends it a batch, beside the replies."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.api_specs.messages import Announcement, Append, Batch, Changes, Collect, Commit, Request, Scan
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.configured import WrongCluster
from quorate.replica.service.member import Member, Peer, Starting
from quorate.replica.store import group_commit
from quorate.timestamps.timestamp import ZERO, make
from tests.support.asking import answer_of
from tests.unit.replica.conftest import one_replica

NOW_US = 1_700_000_000_000_000
THREE = ClusterDocument("test", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in (1, 2, 3)))


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


@pytest.mark.parametrize("collects", [True, False])
async def test_marks_collect_nothing_of_objects_whose_logs_keep_their_events(
    tmp_path: Path, collects: bool
) -> None:
    document = replace(one_replica(), choices=(ChoiceRule("register/*", collect=collects),))
    member = Member(open_folder(tmp_path / "r1", document, "r1"), wall_us=lambda: NOW_US)
    old, new = (make(NOW_US, counter, "a") for counter in (1, 2))
    append = Append("register/r", tuple(Entry(t, t, Value("1")) for t in (old, new)))
    await answer_of(member, [append, Commit("register/r", complete=(new,))])
    state = await member.run(lambda store: store.state("register/r"))
    assert state is not None
    assert state.collected == (old if collects else ZERO)
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


async def test_members_that_come_and_go_change_whom_it_asks_where_and_what_it_knows_of_them(
    tmp_path: Path,
) -> None:
    folder = open_folder(tmp_path / "r1", THREE, "r1")
    member = Member(folder, endpoints={"r5": "http://127.0.0.1:9"})
    lag = member.lags["r2"]
    member.peers.update({"r2": Peer(True), "r3": Peer(True)})
    come = [ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}", store=str(n)) for n in (4, 5)]
    both = joint(THREE, with_members(THREE, [*THREE.replicas[:2], *come]))
    await member.configured.follow(both)
    assert set(member.others) == member.lags.keys() == {"r2", "r3", "r4", "r5"}
    assert member.peers == {"r2": Peer(True), "r3": Peer(True)}
    assert (member.urls["r4"], member.urls["r5"]) == ("http://127.0.0.1:7004", "http://127.0.0.1:9")
    await member.configured.follow(settled(both))
    assert set(member.others) == member.lags.keys() == {"r2", "r4", "r5"}
    assert member.peers == {"r2": Peer(True)}
    assert member.lags["r2"] is lag, "what is known of who stays stays"
    assert "r3" not in member.urls
    await asyncio.to_thread(member.close)


@pytest.mark.parametrize("way", ["answer", "post"])
async def test_who_takes_it_for_a_member_is_told_of_a_later_configuration_and_others_that_it_is_none(
    tmp_path: Path, way: str
) -> None:
    """One that goes by the first configuration may have been asleep for long: where it was told so, this one has become a member, or was."""
    member = Member(open_folder(tmp_path / "r4", THREE, "r4", joins_at="http://127.0.0.1:7004"))
    both = joint(THREE, replace(THREE, choices=(ChoiceRule("queue/*", collect=False),)))
    await member.configured.follow(both)

    async def ask(document: ClusterDocument) -> None:
        batch = Batch(document.hash, (Collect("register/x"),))
        if way == "answer":
            await member.answer(batch)
        else:
            member.post(batch, lambda *_: None, lambda: True)

    with pytest.raises(WrongCluster) as refused:
        await ask(THREE)
    assert refused.value.epoch == 1
    with pytest.raises(Starting, match="no member yet, in configuration 1"):
        await ask(both)
    await asyncio.to_thread(member.close)


@pytest.mark.parametrize(
    ("request_", "is_heavy"),
    [(Scan("queue/"), True), (Changes(0, 9), True), (Collect("queue/q"), False)],
    ids=["scan", "changes", "collect"],
)
@pytest.mark.parametrize("is_posted", [True, False])
async def test_what_reads_pages_of_many_objects_may_be_heavy(
    request_: Request, is_heavy: bool, is_posted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long a front end's own reads take, their caller has its turns."""
    monkeypatch.setattr(group_commit, "HEAVY_S", -1.0)
    document = one_replica()
    member = Member(open_folder(tmp_path / "r1", document, "r1"))
    batch = Batch(document.hash, (request_,))
    if is_posted:
        told = asyncio.get_running_loop().create_future()
        member.post(batch, lambda reply, _: told.set_result(reply), lambda: True, "reader")
        await told
    else:
        await member.answer(batch, "reader")
    assert member._committer is not None
    assert (("reader", True) in member._committer._rests) is is_heavy
    await asyncio.to_thread(member.close)
