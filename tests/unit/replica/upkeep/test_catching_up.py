"""The task that catches up: in which order, how much at a time, what it says of itself, and where transactions fail.

What was not made durable is got all the same, by a later pass.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.api_specs.limits import Capacity
from quorate.api_specs.messages import (
    Append,
    Appended,
    Batch,
    BatchReply,
    Changes,
    Collect,
    Commit,
)
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.protocol import catch_up
from quorate.replica.protocol.catch_up import Lack
from quorate.replica.service.member import Member
from quorate.replica.store.store import StorageFailed, Store
from quorate.replica.upkeep import catching_up
from quorate.replica.upkeep.background import Silent
from quorate.replica.upkeep.catching_up import CatchingUp, portion
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import Timestamp, make
from tests.support.asking import answer_of
from tests.support.exchanging import Exchanging
from tests.unit.replica.protocol.test_acceptor import NAME

DOCUMENT = ClusterDocument("test", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{n}") for n in (1, 2)))
Work = Callable[[Store], Any]
Run = Callable[..., Awaitable[Any]]


class To(Exchanging):
    """The way to another member in this process. `asked` holds all batches; nothing else comes through while `is_mute`."""

    def __init__(self, other: Member) -> None:
        self._other = other
        self.asked: list[Batch] = []
        self.is_mute = False

    async def exchange(self, _replica: str, batch: Batch, _timeout_s: float) -> BatchReply | Unanswered:
        """What it answers."""
        self.asked.append(batch)
        if self.is_mute and not isinstance(batch.requests[0], Changes):
            return Unanswered("no answer")
        return await answer_of(self._other, batch.requests)

    def collects(self) -> list[list[Collect]]:
        """What was fetched, by batch."""
        found = [[each for each in batch.requests if isinstance(each, Collect)] for batch in self.asked]
        return [each for each in found if each]

    async def aclose(self) -> None:
        """There is nothing to close."""


class Repairs:
    """Who is told of entries that were left, and notes it."""

    def __init__(self, *, has_room: bool = True) -> None:
        self.told: list[Mapping[str, Sequence[Entry]]] = []
        self.has_room = has_room

    def take_up(self, left: Mapping[str, Sequence[Entry]]) -> None:
        """See TakesUp."""
        self.told.extend([left] if left else [])


NOBODY = Repairs()


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[list[Member]]:
    """r1, which has nothing, and r2, which has an entry."""
    found = [Member(open_folder(tmp_path / name, DOCUMENT, name)) for name in ("r1", "r2")]
    for member in found:
        await member.admit()
    t = make(found[1].wall_us(), 0, "c")
    await answer_of(found[1], [Append(NAME, (Entry(t, t, Value('"' + "x" * 100_000 + '"')),), "first")])
    yield found
    for member in found:
        await asyncio.to_thread(member.close)


def failing(run: Run, place: int) -> Run:
    """`run`, whose transaction at this place is undone: the disk is full."""
    calls = 0

    async def once(work: Work, **how: bool) -> Any:
        nonlocal calls
        calls += 1
        if calls != place:
            return await run(work, **how)

        def fails(store: Store) -> None:
            work(store)
            raise StorageFailed("the database failed: database or disk is full", passing=True)

        try:
            return await run(fails, **how)
        finally:  # As the janitor does, which writes until it may.
            await run(lambda store: store.others.put_progress("r3", "", 1))

    return once


def repeating(run: Run, place: int) -> Run:
    """`run`, whose transaction at this place is undone and done once more, as where other work in it raises."""
    calls = 0

    async def twice(work: Work, **how: bool) -> Any:
        nonlocal calls
        calls += 1
        if calls != place:
            return await run(work, **how)

        def undone(store: Store) -> Any:
            work(store)
            store.rollback()
            return work(store)

        return await run(undone, **how)

    return twice


@pytest.mark.parametrize("wrong", [failing, repeating])
@pytest.mark.parametrize("place", range(1, 8))
async def test_what_a_transaction_lost_is_got_by_a_later_pass(
    members: list[Member], monkeypatch: pytest.MonkeyPatch, wrong: Callable[[Run, int], Run], place: int
) -> None:
    here, there = members
    monkeypatch.setattr(catching_up, "PASS_S", 0.01)
    run: Run = here.run
    monkeypatch.setattr(here, "run", wrong(run, place))
    following = CatchingUp(here, To(there), NOBODY)
    following.start()
    try:
        await until_it_is_here(run)
    finally:
        await following.stop()


def at(member: Member, number: int) -> Timestamp:
    return make(member.wall_us(), number, "d")


async def put(member: Member, name: str, *timestamps: Timestamp, size: int = 1) -> None:
    entries = tuple(Entry(t, t, Value('"' + "x" * size + '"')) for t in timestamps)
    (told,) = (await answer_of(member, [Append(name, entries, "first")])).replies
    assert isinstance(told, Appended), told


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.005)


async def test_the_newest_comes_first_whatever_has_room_in_an_answer(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Consumers take the oldest meanwhile, which then need not be brought."""
    here, there = members
    monkeypatch.setattr(catching_up, "PASS_S", 0.01)
    missed = [at(there, number) for number in range(9)]
    await put(there, "queue/long", *missed, size=DOCUMENT.limits.page_bytes_max // 3)
    to = To(there)
    following = CatchingUp(here, to, NOBODY)
    following.start()
    try:
        await until(lambda: here.lags["r2"].changes == 0)
    finally:
        await following.stop()
    came = await here.run(lambda store: store.arrived("queue/long", 0, store.arrival(), 100))
    assert [t for _, t in sorted(came)] == sorted(missed, reverse=True)
    assert len(to.collects()) > 2, "an answer has no room for all"


async def test_it_counts_what_it_brought_and_says_what_it_lacks(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    lag = here.lags["r2"]
    assert (lag.changes, lag.level_s) == (None, None)
    monkeypatch.setattr(catching_up, "PASS_S", 0.01)
    to = To(there)
    to.is_mute = True
    following = CatchingUp(here, to, NOBODY)
    following.start()
    try:
        await until(lambda: lag.changes == 1)
        await put(there, "queue/other", at(there, 1))
        await until(lambda: lag.changes == 2)
        assert (lag.entries, lag.bytes) == (0, 0), "it knows of them, and gets nothing"
        to.is_mute = False
        await until(lambda: lag.changes == 0)
        assert lag.level_s is not None
        assert (lag.entries, lag.bytes) == (2, 100_005)
    finally:
        await following.stop()


async def test_while_nothing_changes_it_wakes_no_writer(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    monkeypatch.setattr(catching_up, "PASS_S", 0.01)
    await here.testify(await there.announcement())
    latest = await there.run(lambda store: store.arrival())
    to, quick, run = To(there), list[bool](), here.run

    async def noted(work: Work, *, is_quick: bool = False) -> Any:
        quick.append(is_quick)
        return await run(work, is_quick=is_quick)

    following = CatchingUp(here, to, NOBODY)
    following.start()
    try:
        await until(lambda: (following._kept.get("r2") or ("", 0))[1] == latest)
        monkeypatch.setattr(here, "run", noted)
        asked = len(to.asked)
        await until(lambda: len(to.asked) > asked + 3)
    finally:
        await following.stop()
    assert len(quick) > 3
    assert all(quick)


async def test_after_a_restart_it_asks_for_what_came_since_alone(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    monkeypatch.setattr(catching_up, "PASS_S", 0.01)
    await here.testify(await there.announcement())
    looked_upto = await there.run(lambda store: store.arrival())
    first = CatchingUp(here, To(there), NOBODY)
    first.start()
    try:
        async with asyncio.timeout(30):
            while await here.run(lambda store: (store.others.progress("r2") or ("", 0))[1]) < looked_upto:
                await asyncio.sleep(0.005)
    finally:
        await first.stop()
    await put(there, "queue/other", at(there, 1))
    here.lags["r2"].changes = None
    to = To(there)
    following = CatchingUp(here, to, NOBODY)
    following.start()
    try:
        await until(lambda: here.lags["r2"].entries == 2)
    finally:
        await following.stop()
    assert min(batch.requests[0].since for batch in to.asked if isinstance(batch.requests[0], Changes)) == (
        looked_upto
    )
    assert {each.object for some in to.collects() for each in some} == {"queue/other"}


class Slow:
    """The way to another replica, on which each exchange takes `exchange_s` seconds of a clock that stands still else; and what rests there were, which
    take no time."""

    def __init__(self, there: Member, monkeypatch: pytest.MonkeyPatch) -> None:
        self.to = To(there)
        self.now_s = 0.0
        self.exchange_s = 1.0
        self.messages_max = 1000
        """Later ones are not answered."""
        self.rests: list[float] = []
        self._exchange = self.to.exchange
        monkeypatch.setattr(self.to, "exchange", self.exchange)
        monkeypatch.setattr(catching_up, "time", self)
        monkeypatch.setattr(catching_up, "asyncio", self)

    def monotonic(self) -> float:
        """As `time` has it."""
        return self.now_s

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """See Transport."""
        self.now_s += self.exchange_s
        if len(self.to.asked) >= self.messages_max:
            return Unanswered("no answer")
        return await self._exchange(replica, batch, timeout_s)

    async def sleep(self, seconds: float) -> None:
        """As `asyncio` has it."""
        self.rests.append(seconds)

    def forget(self) -> None:
        """What was noted so far."""
        self.rests.clear()


@pytest.mark.parametrize("exchange_s", [0.125, 1.0])
async def test_it_fetches_a_few_objects_at_a_time_and_rests_three_times_as_long_as_that_took(
    exchange_s: float, members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But no longer than a pass."""
    here, there = members
    for number in range(3 * catching_up.FETCHED_MAX):
        await put(there, f"queue/{number}", at(there, number))
    slow = Slow(there, monkeypatch)
    slow.exchange_s = exchange_s
    following = CatchingUp(here, slow.to, NOBODY)
    await following._pass("r2")
    slow.forget()
    await following._pass("r2")
    fetched = slow.to.collects()
    assert len(fetched) >= 3
    assert max(map(len, fetched)) == catching_up.FETCHED_MAX
    rests = [rest for rest in slow.rests if rest]
    assert rests == [min(catching_up.REST_BEHIND * exchange_s, catching_up.PASS_S)] * len(fetched)


async def test_of_long_logs_it_fetches_a_few_entries_at_a_time(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    monkeypatch.setattr(catching_up, "ENTRIES_MAX", 4)
    for name in ("queue/long", "queue/longer"):
        await put(there, name, *(at(there, number) for number in range(10)))
    slow = Slow(there, monkeypatch)
    following = CatchingUp(here, slow.to, NOBODY)
    for _ in range(2):
        await following._pass("r2")
    sizes = [sum(len(each.wanted) for each in some) for some in slow.to.collects()]
    assert max(sizes) <= 2 * 4 - 1
    assert here.lags["r2"].entries == 21
    assert here.lags["r2"].changes == 0


async def test_after_it_was_killed_in_the_middle_it_fetches_nothing_again_that_it_holds(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    monkeypatch.setattr(catching_up, "ENTRIES_MAX", 4)
    await put(there, "queue/long", *(at(there, number) for number in range(20)))
    slow = Slow(there, monkeypatch)
    killed = CatchingUp(here, slow.to, NOBODY)
    await killed._pass("r2")
    slow.messages_max = len(slow.to.asked) + 3
    with pytest.raises(Silent):
        await killed._pass("r2")
    held = {t for _, t in await here.run(lambda store: store.arrived("queue/long", 0, store.arrival(), 100))}
    assert 0 < len(held) < 20
    to = To(there)
    again = CatchingUp(here, to, NOBODY)
    for _ in range(2):
        await again._pass("r2")
    fetched = [
        t for some in to.collects() for each in some if each.object == "queue/long" for t in each.wanted
    ]
    assert len(fetched) == 20 - len(held)
    assert held.isdisjoint(fetched)


def timestamps(count: int) -> tuple[Timestamp, ...]:
    return tuple(make(number, 0, "c") for number in range(count))


def test_a_portion_has_something_and_not_much() -> None:
    long, short = (Lack("queue/long", timestamps(500)), Lack("queue/short", timestamps(1)))
    some = catching_up.ENTRIES_MAX // 2
    half = Lack("queue/half", timestamps(some))
    assert portion([long, short], catching_up.ENTRIES_MAX) == [long]
    assert portion([short, long, short], catching_up.ENTRIES_MAX) == [short, long]
    assert portion([half, half, short], catching_up.ENTRIES_MAX) == [half, half]
    assert portion([short] * 100, catching_up.ENTRIES_MAX) == [short] * catching_up.FETCHED_MAX
    assert portion([short], catching_up.ENTRIES_MAX) == [short]


@pytest.mark.parametrize("is_busy", [True, False])
async def test_while_nothing_is_missing_a_look_takes_two_per_cent_of_the_time_of_one_that_serves(
    is_busy: bool, members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    following = CatchingUp(here, (slow := Slow(there, monkeypatch)).to, NOBODY)
    for _ in range(2):
        await following._pass("r2")
    slow.to.asked.clear()
    for number in range(12):
        stamp = at(there, number)
        for member in members:
            await put(member, f"queue/{number}", stamp)
    monkeypatch.setattr(catching_up, "PAGE", 4)
    served = iter(range(1000)) if is_busy else iter([0] * 1000)
    monkeypatch.setattr(following, "_busyness", lambda: next(served))
    await following._pass("r2")
    slow.forget()
    await following._pass("r2")
    assert slow.to.collects() == []
    assert len(slow.rests) >= 2
    assert set(slow.rests) == {1.0 * catching_up.REST_BUSY if is_busy else 0.0}
    assert 1 / (1 + catching_up.REST_BUSY) < 0.02


async def test_a_full_replica_is_not_level_while_it_can_install_nothing(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that looked at all, and was refused, is none after which nothing is missing."""
    here, there = members
    following = CatchingUp(here, To(there), NOBODY)
    monkeypatch.setattr(here, "capacity", Capacity(disk_bytes_max=1))
    await following._pass("r2")  # It hears what there is to look at.
    lag = here.lags["r2"]
    level_s = lag.level_s
    for _ in range(3):
        await following._pass("r2")
    assert (lag.changes, lag.level_s, lag.entries) == (1, level_s, 0)
    monkeypatch.setattr(here, "capacity", Capacity())
    await following._pass("r2")
    await following._pass("r2")
    assert (lag.changes, lag.entries) == (0, 1)
    assert lag.level_s != level_s


async def test_a_full_log_takes_in_below_its_fence_no_more_than_it_has_room_for(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait for room, and are missing until then."""
    here, there = members
    name, missed = "queue/full", [at(there, number) for number in range(4)]
    await put(there, name, *missed)
    await answer_of(there, [Commit(name, complete=tuple(missed))])
    await answer_of(here, [Collect(name, fence=max(missed))])
    monkeypatch.setattr(here, "capacity", Capacity(log_entries_max=2))
    following = CatchingUp(here, To(there), NOBODY)
    for _ in range(3):
        await following._pass("r2")
    assert await here.run(lambda store: store.length(name)) == 3, "a quarter beyond the bound"
    assert here.lags["r2"].changes == 1
    monkeypatch.setattr(here, "capacity", Capacity())
    await following._pass("r2")
    assert await here.run(lambda store: store.stored(name, missed)) == set(missed)
    assert here.lags["r2"].changes == 0


@pytest.mark.parametrize("is_suspended", [True, False])
@pytest.mark.parametrize(("paused_s", "asked"), [(1.0, 1), (DOCUMENT.limits.deadline_s_max + 1, 2)])
async def test_an_answer_that_is_older_than_any_that_somebody_takes_in_is_asked_for_again(
    members: list[Member], monkeypatch: pytest.MonkeyPatch, paused_s: float, asked: int, *, is_suspended: bool
) -> None:
    """As where this process was stopped meanwhile, or its machine suspended: what it tells of may be deleted, and forgotten, since."""
    here, there = members
    to = To(there)
    following = CatchingUp(here, to, NOBODY)
    await following._pass("r2")  # It hears what there is to look at.
    exchange, passed_s = to.exchange, 0.0
    came: list[int] = []

    async def paused(replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        nonlocal passed_s
        answer = await exchange(replica, batch, timeout_s)
        if isinstance(batch.requests[0], Collect):
            passed_s += 0.0 if came else paused_s
            came.append(here.lags["r2"].entries)
        return answer

    def now() -> Now:
        return Now(0.0 if is_suspended else passed_s, round(passed_s * 1e6))

    monkeypatch.setattr(to, "exchange", paused)
    monkeypatch.setattr(here, "now", now)
    await following._pass("r2")
    assert came == [0] * asked
    assert here.lags["r2"].entries == 1


@pytest.mark.parametrize("entry_s", [2.0, 30.0])
async def test_less_is_asked_for_where_answers_come_too_late_and_a_pass_ends_however_late_they_are(
    members: list[Member], monkeypatch: pytest.MonkeyPatch, entry_s: float
) -> None:
    """As where `deadline_s_max` is short: each entry takes so long on its way, and what took longer than 25 s is not taken in."""
    here, there = members
    for number in range(40):
        await put(there, NAME, at(there, 1000 + number))
        await put(there, f"queue/{number}", at(there, number))
    to, passed_s, sizes = To(there), 0.0, list[int]()
    following = CatchingUp(here, to, NOBODY)
    await following._pass("r2")  # It hears what there is to look at.
    exchange = to.exchange

    async def slow(replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        nonlocal passed_s
        wanted = sum(len(each.wanted) for each in batch.requests if isinstance(each, Collect))
        passed_s += entry_s * wanted
        sizes.append(wanted)
        return await exchange(replica, batch, timeout_s)

    monkeypatch.setattr(to, "exchange", slow)
    monkeypatch.setattr(here, "now", lambda: Now(passed_s, round(passed_s * 1e6)))
    if entry_s > DOCUMENT.limits.deadline_s_max:
        with pytest.raises(Silent):
            await following._pass("r2")
        assert sizes[-1] == 1
        assert here.lags["r2"].entries == 0
        assert (here.lags["r2"].changes or 0) >= 81
        monkeypatch.setattr(here, "now", lambda: Now(0.0, 0))  # Now they come in time.
    await following._pass("r2")
    assert here.lags["r2"].entries == 81
    assert len(sizes) < 200


async def test_an_answer_that_grew_old_while_it_waited_for_the_store_is_asked_for_again(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where this process was stopped after it came: it is old when it would be installed."""
    here, there = members
    following = CatchingUp(here, to := To(there), NOBODY)
    await following._pass("r2")  # It hears what there is to look at.
    run, passed_s = here.run, 0.0

    async def stopped_once(work: Work, **how: Any) -> Any:
        nonlocal passed_s
        if to.collects() and not passed_s:
            passed_s = DOCUMENT.limits.deadline_s_max + 1
        return await run(work, **how)

    monkeypatch.setattr(here, "run", stopped_once)
    monkeypatch.setattr(here, "now", lambda: Now(passed_s, round(passed_s * 1e6)))
    await following._pass("r2")
    assert len(to.collects()) == 2
    assert here.lags["r2"].entries == 1


async def until_it_is_here(run: Run) -> None:
    """Until the entry is in the log, for a while."""
    async with asyncio.timeout(30):
        while not await is_here(run):
            await asyncio.sleep(0.005)


async def is_here(run: Run) -> bool:
    """Whether the entry is in the log. A look that shares its transaction with one that failed knows nothing."""
    try:
        return bool(await run(lambda store: len(store.arrived(NAME, 0, store.arrival(), 10))))
    except StorageFailed:
        return False


async def left_unmarked(members: list[Member], *names: str) -> dict[str, Entry]:
    """r2 has an entry of each object that lies below r1's fence, and that nobody has marked complete."""
    here, there = members
    entries = {}
    for number, name in enumerate(names):
        t = at(there, number)
        entries[name] = Entry(t, t, Value('"x"'))
        await answer_of(there, [Append(name, (entries[name],), "first")])
        await answer_of(here, [Collect(name, fence=t)])
    return entries


async def test_what_nobody_marks_complete_goes_to_read_repair_and_comes_once_it_is_marked(
    members: list[Member],
) -> None:
    here, there = members
    left = await left_unmarked(members, "queue/left")
    following = CatchingUp(here, To(there), repairs := Repairs())
    for _ in range(1 + catch_up.OVERDUE_PASSES):
        await following._pass("r2")
        assert repairs.told == [], "its client may mark it yet"
    await following._pass("r2")
    (entry,) = left.values()
    assert repairs.told == [{"queue/left": [entry]}]
    await following._pass("r2")
    assert len(repairs.told) == 1, "it is not asked for in each pass"
    await answer_of(there, [Commit("queue/left", complete=(entry.t,))])
    await following._pass("r2")
    assert await here.run(lambda store: store.stored("queue/left", [entry.t])) == {entry.t}
    assert here.lags["r2"].changes == 0


async def test_what_was_left_long_ago_goes_to_read_repair_in_the_first_pass(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    left = await left_unmarked(members, "queue/left")
    now, ago_s = here.now(), 2 * here.document.limits.deadline_s_max + 60
    monkeypatch.setattr(here, "now", lambda: now.before(-ago_s))
    following = CatchingUp(here, To(there), repairs := Repairs())
    await following._pass("r2")
    await following._pass("r2")
    assert repairs.told == [{name: [entry] for name, entry in left.items()}]


async def test_what_was_overwritten_is_no_lag_where_everything_is_kept(tmp_path: Path) -> None:
    """A write that came to one replica alone is below the others' fences, and has become history nowhere."""
    document = replace(DOCUMENT, choices=(ChoiceRule("register/*", collect=False),))
    members = [Member(open_folder(tmp_path / name, document, name)) for name in ("r1", "r2")]
    for member in members:
        await member.admit()
    here, there = members
    (lost,) = (await left_unmarked(members, "register/kept")).values()
    t = at(there, 9)
    for member in members:
        await answer_of(member, [Append("register/kept", (Entry(t, t, Value("2")),), "first")])
        await answer_of(member, [Commit("register/kept", complete=(t,))])
    following = CatchingUp(here, To(there), repairs := Repairs())
    for _ in range(3 + catch_up.OVERDUE_PASSES):
        await following._pass("r2")
    assert here.lags["r2"].changes == 0
    assert repairs.told == []
    assert await here.run(lambda store: store.stored("register/kept", [lost.t, t])) == {t}
    for member in members:
        await asyncio.to_thread(member.close)


async def test_read_repair_that_has_no_room_is_told_when_it_has(members: list[Member]) -> None:
    here, there = members
    left = await left_unmarked(members, "queue/left")
    following = CatchingUp(here, To(there), repairs := Repairs(has_room=False))
    for _ in range(2 + catch_up.OVERDUE_PASSES):
        await following._pass("r2")
    assert repairs.told == []
    repairs.has_room = True
    await following._pass("r2")
    assert repairs.told == [{name: [entry] for name, entry in left.items()}]


async def test_an_answer_that_came_too_late_is_not_repaired_by(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    await left_unmarked(members, "queue/left")
    following = CatchingUp(here, to := To(there), repairs := Repairs())
    for _ in range(1 + catch_up.OVERDUE_PASSES):
        await following._pass("r2")
    timely = iter([False, False, True, True])
    monkeypatch.setattr(catch_up, "is_timely", lambda *_: next(timely))
    to.asked.clear()
    await following._pass("r2")
    assert len(to.asked) == 3, "the changes, and the entry twice"
    assert len(repairs.told) == 1


async def test_what_was_asked_for_in_an_earlier_configuration_is_not_taken_in(members: list[Member]) -> None:
    """The answer came before the replica went on, and its turn at the store after that."""
    both = joint(DOCUMENT, replace(DOCUMENT, choices=(ChoiceRule("register/*", collect=False),)))

    class GoesOn(To):
        async def exchange(self, _replica: str, batch: Batch, _timeout_s: float) -> BatchReply | Unanswered:
            answer = await super().exchange(_replica, batch, _timeout_s)
            if isinstance(batch.requests[0], Collect):
                await members[0].configured.follow(both)
            return answer

    following = CatchingUp(members[0], GoesOn(members[1]), NOBODY)
    await following._pass("r2")  # What is older than this is looked at by the next.
    with pytest.raises(Silent):
        await following._pass("r2")
    assert (await members[0].configured.holding("", 9)).objects == ()


R3 = ReplicaInfo("r3", "http://127.0.0.1:3", store="third")
REPLACED = joint(DOCUMENT, with_members(DOCUMENT, [DOCUMENT.replicas[0], R3]))
"""r2 leaves, and r3 comes."""


def tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks()}


async def test_a_new_member_is_followed_from_when_it_comes_and_one_that_left_no_more(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    monkeypatch.setattr(catching_up, "PASS_S", 0.01)
    asked: list[str] = []

    class Named(To):
        async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
            asked.append(replica)
            return await super().exchange(replica, batch, timeout_s)

    following = CatchingUp(here, Named(there), NOBODY)
    following.start()
    try:
        await until(lambda: len(asked) > 3)
        assert set(asked) == {"r2"}
        await here.configured.follow(REPLACED)
        await until(lambda: here.lags["r3"].changes == 0)
        assert {"quorate-catch-up-r2", "quorate-catch-up-r3"} <= tasks(), "r2 is a member still"
        await here.configured.follow(settled(REPLACED))
        await until(lambda: "quorate-catch-up-r2" not in tasks())
        asked.clear()
        await until(lambda: len(asked) > 3)
        assert set(asked) == {"r3"}
    finally:
        await following.stop()


async def test_each_is_followed_once_however_often_the_configuration_changes(members: list[Member]) -> None:
    following = CatchingUp(members[0], To(members[1]), NOBODY)
    following.start()
    try:
        await members[0].configured.follow(REPLACED)
        names = [task.get_name() for task in asyncio.all_tasks()]
        assert sorted(each for each in names if each.startswith("quorate-catch-up")) == [
            "quorate-catch-up-r2",
            "quorate-catch-up-r3",
        ]
    finally:
        await following.stop()


async def test_after_it_was_stopped_nothing_is_begun(members: list[Member]) -> None:
    following = CatchingUp(members[0], To(members[1]), NOBODY)
    following.start()
    await following.stop()
    await members[0].configured.follow(REPLACED)
    assert not {each for each in tasks() if each.startswith("quorate-catch-up")}


async def test_a_pass_at_a_replica_that_leaves_in_the_middle_of_it_ends(
    members: list[Member], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = members
    following = CatchingUp(here, To(there), NOBODY)
    for _ in range(2):
        await following._pass("r2")
    keep = following._keep

    async def leaves(other: str) -> None:
        await keep(other)
        del here.lags[other]

    monkeypatch.setattr(following, "_keep", leaves)
    with pytest.raises(Silent):
        await following._pass("r2")
