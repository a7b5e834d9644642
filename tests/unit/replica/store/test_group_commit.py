"""Concurrent work shares commits; what fails, fails alone; nothing is answered before it is on disk."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from quorate.adts.log import Entry, Value
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.protocol.log import ObjectState, PutRows, PutState
from quorate.replica.store import group_commit as committing
from quorate.replica.store.database import StorageFailed
from quorate.replica.store.group_commit import Committer, Overloaded, Sized, Transaction
from quorate.replica.store.store import Store
from quorate.timestamps.timestamp import ZERO, make
from tests.unit.replica.conftest import one_replica

SMALL = Value("1")
BIG = Value('"' + "x" * 200_000 + '"')


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[Store, Committer]]:
    folder = open_folder(tmp_path / "data", one_replica(), "r1")
    assert folder.database is not None
    store = Store(folder.database)
    committer = Committer(store, jobs_max=100)
    committer.start()
    yield store, committer
    committer.stop()
    folder.close()


def write(store: Store, number: int, value: Value = SMALL) -> int:
    t = make(number, 0, "a")
    store.apply([PutRows("queue/q", (Entry(t, t, value),)), PutState(ObjectState("queue/q"))])
    return number


class Blocker:
    """Keeps the writer busy until it is let go, so that what is submitted meanwhile waits together."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()

    def __call__(self, _: Store) -> None:
        self.entered.set()
        assert self.leave.wait(30)


async def test_work_that_waits_together_shares_one_commit(opened: tuple[Store, Committer]) -> None:
    store, committer = opened
    blocker = Blocker()
    first = asyncio.ensure_future(committer.submit(blocker))
    await asyncio.to_thread(blocker.entered.wait, 30)
    rest = [asyncio.ensure_future(committer.submit(partial(write, number=number))) for number in range(1, 41)]
    await asyncio.sleep(0)
    before = store.commits
    blocker.leave.set()
    assert await asyncio.gather(*rest) == list(range(1, 41))
    await first
    assert store.commits == before + 1


async def waiting(committer: Committer, works: Sequence[Callable[[Store], int]]) -> list[int | BaseException]:
    """What came of work that waited together."""
    blocker = Blocker()
    first = asyncio.ensure_future(committer.submit(blocker))
    await asyncio.to_thread(blocker.entered.wait, 30)
    rest = [asyncio.ensure_future(committer.submit(work)) for work in works]
    await asyncio.sleep(0)
    blocker.leave.set()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


async def test_work_for_which_no_time_is_left_goes_into_the_next_transaction(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "GROUP_S_MAX", 0.0)
    store, committer = opened
    before = store.commits
    found = await waiting(committer, [partial(write, number=number) for number in range(1, 41)])
    assert found == list(range(1, 41))
    assert store.commits == before + 40
    assert [row.entry.t for row in store.rows("queue/q", ZERO, 50)] == [
        make(number, 0, "a") for number in range(1, 41)
    ]


async def test_work_that_raises_fails_alone_where_no_time_is_left(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committing, "GROUP_S_MAX", 0.0)
    _, committer = opened
    fails: list[Callable[[Store], int]] = [lambda _: 1 // 0, partial(write, number=2), lambda _: 1 // 0]
    first, second, third = await waiting(committer, fails)
    assert (type(first), second, type(third)) == (ZeroDivisionError, 2, ZeroDivisionError)


async def test_reading_costs_no_commit(opened: tuple[Store, Committer]) -> None:
    store, committer = opened
    before = store.commits
    assert await committer.submit(lambda log: log.state("queue/q")) is None
    assert store.commits == before


async def test_small_read_runs_at_once_while_the_store_is_idle(opened: tuple[Store, Committer]) -> None:
    """In the caller's thread, which needs no waking; while the writer is at work it waits its turn behind it."""
    store, committer = opened
    await committer.submit(lambda log: write(log, 1))

    def read(log: Store) -> tuple[bool, int]:
        return threading.current_thread() is threading.main_thread(), len(
            log.stored("queue/q", [make(1, 0, "a")])
        )

    assert await committer.submit(read, is_quick=True) == (True, 1)
    assert await committer.submit(read) == (False, 1)
    blocker = Blocker()
    first = asyncio.ensure_future(committer.submit(blocker))
    await asyncio.to_thread(blocker.entered.wait, 30)
    behind = asyncio.ensure_future(committer.submit(read, is_quick=True))
    await asyncio.sleep(0)
    assert not behind.done()
    blocker.leave.set()
    assert await behind == (False, 1)
    await first
    assert not store._database._driver.in_transaction


async def test_small_read_that_fails_is_told_and_undone(opened: tuple[Store, Committer]) -> None:
    store, committer = opened

    def broken(log: Store) -> None:
        write(log, 99)
        raise LookupError("broken")

    with pytest.raises(LookupError):
        await committer.submit(broken, is_quick=True)
    assert (
        await committer.submit(lambda log: log.stored("queue/q", [make(99, 0, "a")]), is_quick=True) == set()
    )
    assert store.rollbacks == 1


async def test_work_that_raises_fails_alone(opened: tuple[Store, Committer]) -> None:
    _, committer = opened

    def broken(log: Store) -> None:
        write(log, 99)
        raise LookupError("broken")

    blocker = Blocker()
    first = asyncio.ensure_future(committer.submit(blocker))
    await asyncio.to_thread(blocker.entered.wait, 30)
    good = asyncio.ensure_future(committer.submit(lambda log: write(log, 1)))
    bad = asyncio.ensure_future(committer.submit(broken))
    await asyncio.sleep(0)
    blocker.leave.set()
    assert await good == 1
    with pytest.raises(LookupError):
        await bad
    await first
    stored = await committer.submit(lambda log: log.stored("queue/q", [make(1, 0, "a"), make(99, 0, "a")]))
    assert stored == {make(1, 0, "a")}
    assert committer.problem is None


async def test_onlooker_that_raises_undoes_nothing(opened: tuple[Store, Committer]) -> None:
    store, committer = opened

    def wrong(_: Transaction) -> None:
        raise RuntimeError("an onlooker's mistake")

    assert await committer.submit(partial(write, number=1), note=wrong) == 1
    assert await committer.submit(partial(write, number=2)) == 2
    assert (committer.problem, committer.in_doubt, store.rollbacks) == (None, False, 0)
    assert len(await committer.submit(lambda each: each.rows("queue/q", ZERO, 10))) == 2


async def test_more_than_the_queue_holds_is_refused(opened: tuple[Store, Committer]) -> None:
    _, committer = opened
    blocker = Blocker()
    running = [asyncio.ensure_future(committer.submit(blocker))]
    await asyncio.to_thread(blocker.entered.wait, 30)
    running += [asyncio.ensure_future(committer.submit(lambda _: None)) for _ in range(50)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await committer.submit(lambda _: None)
    running.append(asyncio.ensure_future(committer.submit(lambda _: None, caller="another")))
    await asyncio.sleep(0)
    blocker.leave.set()
    await asyncio.gather(*running)


async def test_callers_take_turns_and_each_ones_work_is_done_in_order(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each piece in a transaction of its own: what is left of a group goes on before all else, and in its order."""
    monkeypatch.setattr(committing, "GROUP_S_MAX", 0.0)
    _, committer = opened
    blocker, done = Blocker(), list[str]()
    running = [asyncio.ensure_future(committer.submit(blocker))]
    await asyncio.to_thread(blocker.entered.wait, 30)
    for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2"):
        work = partial(lambda _, name: done.append(name), name=name)
        running.append(asyncio.ensure_future(committer.submit(work, caller=name[0])))
    await asyncio.sleep(0)
    blocker.leave.set()
    await asyncio.gather(*running)
    assert done == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


@pytest.mark.parametrize("is_heavy", [True, False])
async def test_heavy_reads_have_transactions_of_their_own(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch, is_heavy: bool
) -> None:
    """Who waits with one for a transaction waits as long as it takes."""
    _, committer = opened
    monkeypatch.setattr(committing, "HEAVY_S", -1.0 if is_heavy else 600.0)
    monkeypatch.setattr(committing, "REST_S_MAX", 0.0)
    await committer.submit(lambda _: None, caller="s", is_long=True)
    blocker, seen = Blocker(), dict[str, int]()
    running = [asyncio.ensure_future(committer.submit(blocker))]
    await asyncio.to_thread(blocker.entered.wait, 30)

    def work(found: Store, name: str) -> None:
        seen[name] = found.commits
        write(found, len(seen))

    for name, is_long in (("w1", False), ("scan", True), ("w2", False), ("w3", False), ("scan2", True)):
        work_of = partial(work, name=name)
        running.append(asyncio.ensure_future(committer.submit(work_of, caller=name[0], is_long=is_long)))
    await asyncio.sleep(0)
    blocker.leave.set()
    await asyncio.gather(*running)
    first = seen["w1"]
    apart = {"w1": first, "scan": first + 1, "w2": first + 2, "scan2": first + 3, "w3": first + 4}
    assert seen == (apart if is_heavy else dict.fromkeys(apart, first))


@pytest.mark.parametrize("are_others_there", [True, False])
async def test_after_a_long_read_its_caller_rests_while_others_work(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch, are_others_there: bool
) -> None:
    _, committer = opened
    monkeypatch.setattr(committing, "REST_S_MAX", 600.0)
    monkeypatch.setattr(committing, "LATELY_S", 600.0 if are_others_there else 0.0)
    clock = [time.perf_counter()]
    monkeypatch.setattr(committing, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def scan(_: Store) -> None:
        clock[0] += 100.0

    if are_others_there:
        await committer.submit(partial(write, number=1), caller="other")
    await committer.submit(scan, caller="reader", is_long=True)
    resting = asyncio.ensure_future(committer.submit(scan, caller="reader", is_long=True))
    assert await committer.submit(partial(write, number=2), caller="reader") == 2, (
        "its short ones do not rest"
    )
    assert await committer.submit(partial(write, number=3), caller="other") == 3
    if are_others_there:
        assert not resting.done()
        clock[0] += 101.0
        await committer.submit(partial(write, number=4), caller="other")  # The writer looks at the clock.
    await asyncio.wait_for(resting, 30)


async def test_full_disk_fails_the_work_and_the_store_recovers(
    opened: tuple[Store, Committer], caplog: pytest.LogCaptureFixture
) -> None:
    store, committer = opened
    database = store._database
    await committer.submit(lambda _: database.all("PRAGMA max_page_count = 1"))  # As low as the file is now.
    with pytest.raises(StorageFailed, match="full"):
        await committer.submit(lambda log: write(log, 1, BIG))
    assert committer.problem is not None
    assert not committer.in_doubt
    told: asyncio.Future[tuple[object, Exception | None]] = asyncio.get_running_loop().create_future()
    committer.post(lambda log: write(log, 1, BIG), lambda *what: told.set_result(what))
    result, error = await told
    assert result is None, "work that was done, but is not durable, has no result"
    assert isinstance(error, StorageFailed)
    assert len(caplog.records) == 1, "what lasts is told once"
    await committer.submit(lambda _: database.all("PRAGMA max_page_count = 1000000"))
    assert await committer.submit(lambda log: write(log, 2)) == 2
    assert committer.problem is None
    assert "it is over" in caplog.records[-1].getMessage()
    assert await committer.submit(lambda log: log.stored("queue/q", [make(1, 0, "a")])) == set()


async def test_error_that_time_does_not_heal_ends_all_work(opened: tuple[Store, Committer]) -> None:
    store, committer = opened
    database = store._database
    with pytest.raises(StorageFailed):
        await committer.submit(lambda _: database.all("SELECT * FROM no_such_table"))
    assert committer.in_doubt
    assert "restart" in str(committer.problem)
    with pytest.raises(StorageFailed, match="restart"):
        await committer.submit(lambda log: write(log, 1))


async def test_error_in_undoing_leaves_the_replica_alive_and_not_ready(
    opened: tuple[Store, Committer], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one thing that the writer does not foresee: whoever waits is answered, and the thread lives on."""
    store, committer = opened

    def broken(_: Store) -> None:
        raise LookupError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(store, "rollback", lambda: 1 / 0)
        with pytest.raises(StorageFailed, match="the writer failed: division by zero"):
            async with asyncio.timeout(30):
                await committer.submit(broken)
    assert committer.in_doubt
    assert committer.problem is not None
    assert "ZeroDivisionError" in caplog.text
    assert committer._thread.is_alive()
    with pytest.raises(StorageFailed):
        await committer.submit(lambda log: write(log, 1))


@pytest.mark.parametrize(
    ("weights", "sizes"),
    [
        ((1, 1, committing.TELL_WEIGHT_MAX, committing.TELL_WEIGHT_MAX, 1, 1), (0,) * 6),
        ((1,) * 6, (1, 1, committing.TELL_BYTES_MAX, committing.TELL_BYTES_MAX, 1, 1)),
    ],
)
async def test_much_of_one_transaction_is_answered_in_several_turns(
    opened: tuple[Store, Committer], weights: Sequence[int], sizes: Sequence[int]
) -> None:
    """Each answer is put into bytes as it is told, and the event loop has others to serve."""
    _, committer = opened
    blocker, turn, told = Blocker(), 0, list[int]()
    loop = asyncio.get_running_loop()

    def tick() -> None:
        nonlocal turn
        turn += 1
        if len(told) < 6:
            loop.call_soon(tick)

    first = asyncio.ensure_future(committer.submit(blocker))
    await asyncio.to_thread(blocker.entered.wait, 30)
    for weight, size in zip(weights, sizes, strict=True):
        committer.post(partial(sized, size=size), lambda _, __: told.append(turn), weight)
    tick()
    blocker.leave.set()
    await first
    async with asyncio.timeout(30):
        while len(told) < 6:
            await asyncio.sleep(0)
    assert [told.count(each) for each in sorted(set(told))] == [2, 1, 1, 2]


async def test_what_several_transactions_did_is_answered_in_turns_and_in_order(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each had told a portion in every turn: many together as much as there is, and a later one before an earlier one's rest."""
    monkeypatch.setattr(committing, "GROUP_S_MAX", 0.0)
    _, committer = opened
    turn, told = 0, list[tuple[int, int]]()
    loop = asyncio.get_running_loop()

    def tick() -> None:
        nonlocal turn
        turn += 1
        if len(told) < 4:
            loop.call_soon(tick)

    def tell(number: int, _: object, __: Exception | None) -> None:
        told.append((number, turn))

    for number in range(4):
        committer.post(partial(sized, size=0), partial(tell, number), committing.TELL_WEIGHT_MAX)
    last = Blocker()
    end = asyncio.ensure_future(committer.submit(last))
    await asyncio.sleep(0)
    assert last.entered.wait(30)  # Here, so that the event loop hears of all four at once.
    tick()
    last.leave.set()
    await end
    assert [number for number, _ in told] == [0, 1, 2, 3]
    assert len({at for _, at in told}) == 4


async def test_no_turn_tells_more_however_many_transactions_ended_meanwhile(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them brings little, and all come in one turn of an event loop that was held up."""
    monkeypatch.setattr(committing, "GROUP_S_MAX", 0.0)
    _, committer = opened
    told, turn, count = dict[int, int](), 0, 20
    loop = asyncio.get_running_loop()

    def tick() -> None:
        nonlocal turn
        turn += 1
        if sum(told.values()) < count:
            loop.call_soon(tick)

    def tell(_: object, __: Exception | None) -> None:
        told[turn] = told.get(turn, 0) + 1

    for _ in range(count):
        committer.post(partial(sized, size=0), tell, committing.TELL_WEIGHT_MAX // 5)
    last = Blocker()
    end = asyncio.ensure_future(committer.submit(last))
    await asyncio.sleep(0)
    assert last.entered.wait(30)
    tick()
    last.leave.set()
    await end
    async with asyncio.timeout(30):
        while sum(told.values()) < count:
            await asyncio.sleep(0)
    assert max(told.values()) <= 5


def sized(_: Store, size: int) -> Sized[None]:
    return Sized(None, size)


async def test_results_that_nobody_has_taken_yet_are_bounded_in_bytes(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun and not told: a transaction's worth beyond what may wait, however many ask at once."""
    monkeypatch.setattr(committing, "UNTOLD_S_MAX", 600.0)  # It goes on because it is told to.
    _, committer = opened
    size = committing.GROUP_BYTES_MAX // 10
    blocker, begun, told, held = Blocker(), 0, 0, list[int]()

    def work(_: Store) -> Sized[None]:
        nonlocal begun
        begun += size
        held.append(begun - told)
        return Sized(None, size)

    def done(_: object, error: Exception | None) -> None:
        nonlocal told
        assert error is None
        told += size

    first = asyncio.ensure_future(committer.submit(blocker))
    await asyncio.to_thread(blocker.entered.wait, 30)
    for _ in range(49):
        committer.post(work, done)
    blocker.leave.set()
    await first
    async with asyncio.timeout(30):
        while told < 49 * size:
            await asyncio.sleep(0.001)
    assert max(held) <= committing.UNTOLD_BYTES_MAX + committing.GROUP_BYTES_MAX + 2 * size
    assert committer._untold_bytes == sum(committer._told)


async def test_an_event_loop_that_is_held_up_does_not_end_the_writers_work(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, committer = opened
    monkeypatch.setattr(committing, "UNTOLD_S_MAX", 0.01)
    last = threading.Event()

    def work(_: Store, number: int) -> Sized[None]:
        if number == 4:
            last.set()
        return Sized(None, committing.UNTOLD_BYTES_MAX + 1)

    for number in range(5):
        committer.post(partial(work, number=number), lambda _, __: None)
    assert last.wait(30)  # The event loop tells nobody meanwhile.


async def test_who_stops_does_not_wait_for_results_to_be_taken(
    opened: tuple[Store, Committer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be the event loop that stops it, which takes none meanwhile."""
    _, committer = opened
    monkeypatch.setattr(committing, "UNTOLD_S_MAX", 600)
    for _ in range(5):
        committer.post(lambda _: Sized(None, committing.UNTOLD_BYTES_MAX + 1), lambda _, __: None)
    committer.stop()
    assert not committer._thread.is_alive()
