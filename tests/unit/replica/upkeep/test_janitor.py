"""The janitor outlives every error, known or not, and comes back to what it had in hand."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ClockSettings, ClusterDocument, ReplicaInfo
from quorate.api_specs.limits import Capacity, Limits
from quorate.api_specs.messages import Append
from quorate.client_sdk.protocol.core.values import YOUNG, CollectTombstone, Done, Failed, Outcome
from quorate.client_sdk.protocol.front_end import NOT_BEGUN
from quorate.client_sdk.protocol.operations.context import NO_TURN
from quorate.gc.pruning import AGAIN, SOON
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.replica.store.store import StorageFailed, Store
from quorate.replica.upkeep import janitor as janitor_module
from quorate.replica.upkeep.janitor import Janitor
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import make
from tests.support.asking import answer_of

# Deletions are remembered for a fifth of a second, so that they are soon due. Entries come as repairs, which are never too
# old: on a busy machine a fifth of a second may pass between stamping and storing.
DOCUMENT = ClusterDocument(
    "test",
    (ReplicaInfo("r1", "http://127.0.0.1:7001"),),
    clock=ClockSettings(offset_max_s=0.05),
    limits=Limits(retry_window_s=0.1, deadline_s_max=0.09, wait_s_max=0.05, consumed_lag_s=0.05),
)
WAIT_S = 60


class FaultyOnce:
    """The embedded front end, with an error of its own at the first deletion that it is to collect."""

    def __init__(self, member: Member) -> None:
        self.inner = embedded_front_end(member, None)
        self.asked: list[str] = []
        self.collected = asyncio.Event()

    async def run(self, operation: CollectTombstone, deadline_s: float) -> Outcome:
        """See FrontEnd."""
        self.asked.append(operation.object)
        if len(self.asked) == 1:
            raise ZeroDivisionError("nobody foresaw it")
        outcome = await self.inner.run(operation, deadline_s)
        if isinstance(outcome, Done) and outcome.result:
            self.collected.set()
        return outcome


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    opened = Member(open_folder(tmp_path / "data", DOCUMENT, "r1"))
    yield opened
    await asyncio.to_thread(opened.close)


async def test_unforeseen_error_is_logged_and_the_next_round_goes_on(
    member: Member, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(janitor_module, "ROUND_S", 0.01)
    t = make(member.wall_us(), 0, "a")
    await answer_of(member, [Append("dictionary/d/gone", (Entry("e", t, None),), "repair")])
    front_end = FaultyOnce(member)
    janitor = Janitor(member, front_end)
    janitor.start()
    try:
        async with asyncio.timeout(WAIT_S):
            await front_end.collected.wait()
    finally:
        await janitor.stop()
        await front_end.inner.aclose()
    assert set(front_end.asked) == {"dictionary/d/gone"}
    assert "the janitor met an error of its own" in caplog.text
    assert "ZeroDivisionError: nobody foresaw it" in caplog.text
    assert await member.run(lambda store: store.use().objects) == 0


async def test_a_replica_whose_disk_has_room_again_finds_out_though_nobody_writes(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's own page limit stands in for the full disk. Nothing is due, so only a probe can write."""
    monkeypatch.setattr(janitor_module, "ROUND_S", 0.01)
    big = Value('"' + "x" * 200_000 + '"')
    request = Append("queue/q", (Entry("e", make(member.wall_us(), 0, "a"), big),), "repair")
    await member.run(
        lambda store: store._database.all("PRAGMA max_page_count = 1")
    )  # as low as the file is now
    with pytest.raises(StorageFailed, match="full"):
        await answer_of(member, [request])
    await member.run(lambda store: store._database.all("PRAGMA max_page_count = 1000000"))
    assert "full" in member.why_not_ready()[0], "reading does not tell that there is room"
    front_end = embedded_front_end(member, None)
    janitor = Janitor(member, front_end)
    janitor.start()
    try:
        async with asyncio.timeout(WAIT_S):
            while member.why_not_ready():
                await asyncio.sleep(0.01)
    finally:
        await janitor.stop()
        await front_end.aclose()
    await answer_of(member, [request])


async def test_what_lasts_is_logged_once_and_its_end(
    member: Member, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(janitor_module, "ROUND_S", 0.0)
    front_end = embedded_front_end(member, None)
    janitor = Janitor(member, front_end)
    rounds, well = 0, asyncio.Event()

    async def prune() -> None:
        nonlocal rounds
        rounds += 1
        if rounds <= 5:
            raise StorageFailed("full", passing=True)
        if rounds == 7:  # So the sixth has come to its end.
            well.set()

    monkeypatch.setattr(janitor, "_prune", prune)
    janitor.start()
    try:
        async with asyncio.timeout(WAIT_S):
            await well.wait()
    finally:
        await janitor.stop()
        await front_end.aclose()
    told = [record.getMessage() for record in caplog.records if record.name == janitor_module.__name__]
    assert told == ["the janitor waits: full", "it is over (met again before: 4): the janitor waits: full"]


async def test_front_end_without_an_answer_is_no_error(
    member: Member, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(janitor_module, "ROUND_S", 0.01)
    asked = asyncio.Event()

    class Silent:
        """As if another replica were down."""

        async def run(self, operation: CollectTombstone, deadline_s: float) -> Outcome:
            """See FrontEnd."""
            asked.set()
            return Failed("unavailable", "too few", definite=True, answered=frozenset())

    deletion = Entry("e", make(member.wall_us(), 0, "a"), None)
    await answer_of(member, [Append("dictionary/d/gone", (deletion,), "repair")])
    janitor = Janitor(member, Silent())
    janitor.start()
    try:
        async with asyncio.timeout(WAIT_S):
            await asked.wait()
            while (vitals := await member.vitals()) is None or not vitals.tombstones.held_up_by:
                await asyncio.sleep(0.01)
    finally:
        await janitor.stop()
    assert vitals.tombstones.held_up_by == ("r1",)
    assert "error" not in caplog.text


async def test_one_replica_buries_a_deletion_whenever_its_machine_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Monotonic clocks count from the start of a machine, so they say nothing that replicas could share."""
    replicas = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in (1, 2, 3))
    document = replace(DOCUMENT, replicas=replicas)
    members = [
        Member(open_folder(tmp_path / each.id, document, each.id), wall_us=lambda: 5_000_000)
        for each in replicas
    ]
    names = [f"dictionary/d/{number}" for number in range(100)]
    chosen: list[str] = []
    for started_s, member in zip((1.0, 7000.0, 90_000.0), members, strict=True):
        monkeypatch.setattr(janitor_module, "time", SimpleNamespace(monotonic=lambda up_s=started_s: up_s))
        janitor = Janitor(member, Slow())
        chosen += filter(janitor._is_mine, names)
    for member in members:
        await asyncio.to_thread(member.close)
    assert sorted(chosen) == sorted(names), "each by one"


@pytest.mark.parametrize("why", ["room", "full", "refused"])
async def test_where_there_is_no_room_one_replica_buries_all_deletions_of_a_turn_and_each_has_its_turn(
    tmp_path: Path, why: str
) -> None:
    """Five that fill what room is left at the same time would each find it at some of the others, and none at all of them."""
    replicas = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in range(1, 6))
    document, now_us = replace(DOCUMENT, replicas=replicas), 0
    key, full = "dictionary/d/0", Failed("too-many-objects", "no room", definite=True)
    capacity = Capacity(objects_max=2 if why == "full" else 3)
    members = [
        Member(open_folder(tmp_path / each.id, document, each.id), wall_us=lambda: now_us, capacity=capacity)
        for each in replicas
    ]
    janitors = [Janitor(member, Slow()) for member in members]
    for member, janitor in zip(members, janitors, strict=True):
        await member.admit()
        await with_deletions(member, 2)
        if why == "refused":
            member.tombstones.note(key, make(0, 0, "a"))
            await member.run(partial(janitor._again, {key: AGAIN}, {key: full}, frozenset()))
        await janitor._look_at_room()
    names, buriers = [f"dictionary/d/{number}" for number in range(100)], set[int]()
    for turn in range(len(members)):
        now_us = int((turn + 0.5) * document.memory_s * 1e6)
        owned = [sum(map(janitor._is_mine, names)) for janitor in janitors]
        assert sum(owned) == len(names), "each by one"
        assert (max(owned) == len(names)) is (why != "room")
        buriers.add(owned.index(max(owned)))
    assert why == "room" or len(buriers) == len(members), "each has its turn before any has another"
    for member in members:
        await asyncio.to_thread(member.close)


@pytest.mark.parametrize(("why", "windows"), [("Collect/Kept", AGAIN), (YOUNG, SOON)])
async def test_what_stays_is_tried_when_all_can_have_held_it_and_what_is_anothers_at_the_next_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str, windows: float
) -> None:
    replicas = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in (1, 2, 3))
    document = replace(DOCUMENT, replicas=replicas)
    turn_us = int(document.memory_s * 1e6)
    member = Member(
        open_folder(tmp_path / "r1", document, "r1"),
        wall_us=lambda: 8 * turn_us + turn_us // 4,
    )

    class Keeping:
        """A front end that collects nothing."""

        async def run(self, operation: CollectTombstone, deadline_s: float) -> Outcome:
            """See FrontEnd."""
            return Done(False, why, frozenset(document.votes))

    janitor, waits = Janitor(member, Keeping()), dict[str, float]()
    names = [f"dictionary/d/{number}" for number in range(8)]
    given_out = [names, []]
    monkeypatch.setattr(janitor._pruning, "ended", lambda *_: given_out.pop(0))
    monkeypatch.setattr(janitor._pruning, "again", lambda _, name, __, wait: waits.update({name: wait}))
    await janitor._collect_tombstone()
    mine = set(filter(janitor._is_mine, names))
    await asyncio.to_thread(member.close)
    assert 0 < len(mine) < len(names)
    assert waits == pytest.approx({name: windows if name in mine else 3 / 4 for name in names})


async def test_what_was_not_begun_says_nothing_of_other_replicas(member: Member) -> None:
    """As where this machine stood still."""
    janitor = Janitor(member, Slow())
    silent = Failed("unavailable", "too few", definite=True)
    assert janitor._unanswered(NOT_BEGUN) == janitor._unanswered(NO_TURN) == frozenset()
    assert janitor._unanswered(silent) == {"r1"}


class Slow:
    """A front end that collects nothing, and takes its time; `silent` do not answer it."""

    def __init__(self, silent: frozenset[str] = frozenset(), reason: Any = "unavailable") -> None:
        self.silent = silent
        self.reason = reason
        self.together: list[int] = []
        self._waiting = 0

    async def run(self, operation: CollectTombstone, deadline_s: float) -> Outcome:
        """See FrontEnd."""
        self._waiting += 1
        await asyncio.sleep(0.001)
        if self._waiting:
            self.together.append(self._waiting)
            self._waiting = 0
        if self.silent:
            return Failed(self.reason, "too few", definite=True, answered=frozenset({"r1"}) - self.silent)
        return Done(False, "Collect/Kept", frozenset({"r1"}))


async def with_deletions(member: Member, number: int) -> None:
    entry = Entry("e", make(member.wall_us(), 0, "a"), None)
    await answer_of(member, [Append(f"dictionary/d/{n}", (entry,), "repair") for n in range(number)])


@pytest.mark.parametrize(
    ("silent", "reason", "most"),
    [
        (set(), "", 500),
        ({"r1"}, "unavailable", janitor_module.BATCH_FIRST),
        ({"r1"}, "refused", janitor_module.BATCH_FIRST),
        ({"r1"}, "too-many-objects", 500),
    ],
)
async def test_a_round_offers_all_that_is_due_but_few_while_a_replica_is_silent(
    member: Member, silent: set[str], reason: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has no room is not silent, though it holds up what it has no room for."""
    monkeypatch.setattr(janitor_module, "BURYING_S", WAIT_S)
    front_end = Slow(frozenset(silent), reason)
    janitor = Janitor(member, front_end)
    await janitor._prune()  # Else the first walk over the store meets them, too.
    await with_deletions(member, 500)
    await janitor._prune()
    began_s = time.monotonic()
    while time.monotonic() < began_s + DOCUMENT.memory_s * AGAIN:
        await asyncio.sleep(0.01)
    await janitor._prune()
    # What is offered again a window later would be due again while a slow machine is at it.
    monkeypatch.setattr(janitor._pruning, "_window_s", 10 * WAIT_S)
    await janitor._collect_tombstone()
    assert sum(front_end.together) == most
    assert await member.run(lambda _: member.tombstones.waiting().held_up_by) == tuple(silent)
    assert max(front_end.together) <= janitor_module.BATCH_MAX


async def test_who_held_up_one_object_is_named_though_others_were_confirmed_after_it(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Told:
        """A front end that says this of each collection in turn."""

        async def run(self, operation: CollectTombstone, deadline_s: float) -> Outcome:
            """See FrontEnd."""
            return outcomes.pop(0)

    janitor, key, other = Janitor(member, Told()), "dictionary/d/0", "dictionary/d/1"
    full = Failed("too-many-objects", "no room", definite=True)
    silent = Failed("unavailable", "too few", definite=True)
    kept = Done(False, "Collect/Kept", frozenset({"r1"}))
    outcomes: list[Outcome] = []
    await with_deletions(member, 2)

    async def held_up_by(*batches: tuple[str, Outcome]) -> tuple[str, ...]:
        left = [[name] for name, _ in batches]
        outcomes[:] = [outcome for _, outcome in batches]
        monkeypatch.setattr(janitor._pruning, "ended", lambda *_: left.pop(0))
        monkeypatch.setattr(janitor._pruning, "is_due", lambda _: bool(left))
        await janitor._collect_tombstone()
        assert not left
        return await member.run(lambda _: member.tombstones.waiting().held_up_by)

    assert await held_up_by((key, full), (other, kept)) == ("r1",)
    # What is said of silent replicas says nothing of room, nor does what was not asked.
    assert await held_up_by((key, silent)) == ("r1",)
    assert await held_up_by((other, kept)) == ("r1",)
    assert await held_up_by((key, NO_TURN)) == ("r1",)
    assert await held_up_by((key, kept)) == ()
    assert await held_up_by((other, silent)) == ("r1",)
    assert await held_up_by((key, kept)) == ()


async def test_deleting_leaves_the_store_to_others_for_most_of_the_time(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a queue of a million was emptied there is much to delete."""
    now_s, slept = 0.0, list[float]()
    is_more = [True, True, False]

    async def run(work: Callable[[Store], object]) -> object:
        nonlocal now_s
        now_s += 10.0  # It waits for the store.
        return work(store)

    def round_(store: Store, now: Now) -> bool:
        nonlocal now_s
        del store
        assert now.mono_s == now_s
        now_s += 0.25
        return is_more.pop(0)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    store: Any = SimpleNamespace(give_back_space=lambda: None)

    janitor = Janitor(member, FaultyOnce(member))
    monkeypatch.setattr(member, "run", run)
    monkeypatch.setattr(member, "_mono_s", lambda: now_s)
    monkeypatch.setattr(Store, "give_back_space", lambda _: None)
    monkeypatch.setattr(janitor._pruning, "round", round_)
    monkeypatch.setattr(janitor_module, "time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(janitor_module, "asyncio", SimpleNamespace(sleep=sleep))
    await janitor._prune()
    assert slept == [0.5, 0.5, 0]
    assert not is_more
