"""A batch that asks for much is answered in part, and holds up nobody; what its caller no longer waits for is not done."""

import asyncio
import itertools
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import NOTHING, Entry, Value
from quorate.api_specs.checking import COUNT_MAX
from quorate.api_specs.limits import BATCH_ENTRIES_MAX, BATCH_READS_S_MAX, Limits
from quorate.api_specs.messages import (
    Accept,
    Append,
    Appended,
    BatchReply,
    Changes,
    Collect,
    Collected,
    Commit,
    Proposal,
    Refused,
    Request,
    Reserve,
    Row,
    Scan,
    Scanned,
    Window,
)
from quorate.api_specs.tokens import digest_of
from quorate.api_specs.weights import weight
from quorate.client_sdk.protocol.core.values import Done, Read, Write
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.protocol.acceptor import READ_PER_PAGE, handle
from quorate.replica.protocol.log import ObjectState, PutRows, PutState
from quorate.replica.protocol.refusals import Bounds
from quorate.replica.service.member import Member
from quorate.replica.service.reply_budget import Budget
from quorate.replica.store.store import Store
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import INFINITY, ZERO, make
from tests.support.asking import answer_of
from tests.support.in_process import in_process
from tests.unit.replica.conftest import one_replica
from tests.unit.replica.server import test_direct
from tests.unit.replica.server.test_direct import WRITER, Served, append, one_answer, post, served
from tests.unit.replica.server.test_direct import batch as encoded

ITEM = Value('"' + "x" * 1000 + '"')
PAGE_BYTES = 10_000
LIMITS = Limits(page_bytes_max=PAGE_BYTES, value_bytes_max=5000)
HEADERS = (b"Content-Type: application/msgpack",)
WAIT_S = 30.0


def item(name: str, number: int) -> Append:
    t = make(time.time_ns() // 1000, number, "c")
    return Append(name, (Entry(t, t, ITEM),), "first")


@pytest.mark.parametrize("room", [None, PAGE_BYTES])
def test_a_page_reads_no_more_rows_than_it_has_room_for(tmp_path: Path, room: int | None) -> None:
    """2,000 items of a kilobyte: a page has room for nine, and one more is read, which tells that there are more."""
    folder = open_folder(tmp_path / "data", one_replica(LIMITS), "r1")
    assert folder.database is not None
    store, name = Store(folder.database), "queue/q"
    times = [make(1_700_000_000_000_000 + number, 0, "s") for number in range(2000)]
    store.apply([PutState(ObjectState(name)), *(PutRows(name, (Entry(t, t, ITEM),)) for t in times)])
    store.commit()
    expected = times if room is None else times[:10]
    for found in (
        store.rows(name, ZERO, 2000, room),
        [row for _, row in store.arrivals(name, ZERO, INFINITY, 0, 2000, room)],
        store.wanted(name, times, room),
    ):
        assert [row.entry.t for row in found] == expected
    newest = times if room is None else times[-10:]
    assert [row.entry.t for row in store.newest(name, ZERO, 2000, room)] == newest
    folder.abandon()


def test_reading_a_page_of_many_large_items_takes_the_memory_of_a_page(tmp_path: Path) -> None:
    limits = Limits()
    folder = open_folder(tmp_path / "data", one_replica(limits), "r1")
    assert folder.database is not None
    store, name, bounds = Store(folder.database), "queue/q", Bounds.of(one_replica(limits))
    value = Value('"' + "x" * 20_000 + '"')
    times = [make(1_700_000_000_000_000 + number, 0, "s") for number in range(2000)]
    store.apply([PutState(ObjectState(name)), *(PutRows(name, (Entry(t, t, value),)) for t in times)])
    for number in range(20):
        store.apply([PutState(ObjectState(f"queue/{number}"))])
        store.apply([PutRows(f"queue/{number}", (Entry(t, t, value),)) for t in times[:50]])
    store.commit()
    window = Window(limit=2000)
    unseen, known = Window(limit=2000, payload=False), Window(upto=INFINITY, limit=0, payload=False)
    asked: dict[Request, int] = {
        Collect(name, window=window): 3,
        Collect(name, wanted=tuple(times)): 3,
        Scan("queue/"): 3,
        # Payloads that are not shown are read, too: a request of 60 bytes took 200 MB.
        Collect(name, window=unseen): 2 + READ_PER_PAGE,
        Collect(name, window=known): 2 + READ_PER_PAGE,
        Scan("queue/", payload=False): 2 + READ_PER_PAGE,
    }
    tracemalloc.start()
    try:
        for request, pages in asked.items():
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            handle(request, store, 1_700_000_000_000_000, bounds)
            taken = tracemalloc.get_traced_memory()[1] - before
            assert taken < pages * limits.page_bytes_max, f"{taken} bytes for {request}"
    finally:
        tracemalloc.stop()
        folder.abandon()


def _pages(name: str, window: Window, store: Store, bounds: Bounds) -> Iterator[tuple[Row, ...]]:
    """What the replica shows of an object, page by page."""
    has_more = True
    while has_more:
        reply, _ = handle(Collect(name, window=window), store, 0, bounds)
        assert isinstance(reply, Collected)
        yield reply.rows
        has_more = reply.more or reply.upto != INFINITY
        window = replace(window, since=reply.since, upto=reply.upto)


def test_pages_without_payloads_end_where_too_much_was_read_and_show_all_that_is_there(
    tmp_path: Path,
) -> None:
    """By rows and by arrivals, and by objects."""
    folder = open_folder(tmp_path / "data", one_replica(LIMITS), "r1")
    assert folder.database is not None
    store, bounds = Store(folder.database), Bounds.of(one_replica(LIMITS))
    times = [make(1_700_000_000_000_000 + number, 0, "s") for number in range(100)]
    for name in ("queue/a", "queue/b", "queue/c"):
        store.apply([PutState(ObjectState(name)), *(PutRows(name, (Entry(t, t, ITEM),)) for t in times)])
    store.commit()
    for window in (Window(limit=200, payload=False), Window(upto=INFINITY, limit=200, payload=False)):
        pages = list(_pages("queue/a", window, store, bounds))
        assert [row.entry for page in pages for row in page] == [Entry(t, t) for t in times]
        assert {len(page) for page in pages[:-1]} == {READ_PER_PAGE * PAGE_BYTES // len(ITEM)}
    names, has_more = list[str](), True
    while has_more:
        found, _ = handle(Scan("queue/", names[-1] if names else "", payload=False), store, 0, bounds)
        assert isinstance(found, Scanned)
        assert len(found.objects) <= 2, "objects are read until a page of them was read"
        assert all(each.more for _, each in found.objects), "and are said to be cut"
        names += [name for name, _ in found.objects]
        has_more = found.more
    assert names == ["queue/a", "queue/b", "queue/c"]
    folder.abandon()


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    opened = Member(open_folder(tmp_path / "data", one_replica(LIMITS), "r1"))
    await answer_of(opened, [item("queue/q", number) for number in range(20)])
    await answer_of(opened, [item(f"queue/many-{number:02}", 0) for number in range(30)])
    yield opened
    opened.close()


async def in_batches(member: Member, *requests: Request) -> list[BatchReply]:
    """What comes of requests whose rest is sent again."""
    replies: list[BatchReply] = []
    while requests:
        replies.append(await answer_of(member, requests))
        assert replies[-1].replies, "each batch gets on"
        requests = requests[len(replies[-1].replies) :]
    return replies


async def test_a_batch_brings_back_a_page_and_a_reply_and_the_rest_when_it_is_sent_again(
    member: Member,
) -> None:
    page = Collect("queue/q", window=Window(limit=100))
    replies = await in_batches(member, *[page] * 50)
    assert len(replies) > 10
    assert max(len(msgspec.msgpack.encode(each)) for each in replies) < 3 * PAGE_BYTES
    found = list(itertools.chain.from_iterable(each.replies for each in replies))
    assert len(found) == 50
    assert all(isinstance(each, Collected) and each.rows for each in found)


async def test_what_replicas_ask_to_catch_up_is_weighed_as_any_other_page(member: Member) -> None:
    replies = await in_batches(member, *[Changes(0, COUNT_MAX, limit=50)] * 200)
    assert len(replies) > 10
    assert max(len(msgspec.msgpack.encode(each)) for each in replies) < 3 * PAGE_BYTES


async def test_what_changes_something_is_never_lost_in_a_batch_that_is_cut_off(member: Member) -> None:
    pages = [Collect("queue/q", window=Window(limit=100))] * 5
    replies = await in_batches(member, *pages, item("queue/other", 0), *pages, item("queue/other", 1))
    stored = [each for reply in replies for each in reply.replies if isinstance(each, Appended)]
    assert [each.stored for each in stored] == [(True,), (True,)]
    (reply,) = (await answer_of(member, [Collect("queue/other", window=Window(limit=9))])).replies
    assert isinstance(reply, Collected)
    assert len(reply.rows) == 2


async def test_a_scan_ends_with_a_page_and_goes_on_where_it_ended(member: Member) -> None:
    names: list[str] = []
    more = True
    while more:
        (reply,) = (await answer_of(member, [Scan("queue/many-", after=max(names, default=""))])).replies
        assert isinstance(reply, Scanned)
        assert reply.objects
        assert len(msgspec.msgpack.encode(reply)) < 2 * PAGE_BYTES
        names += [name for name, _ in reply.objects]
        more = reply.more
    assert names == [f"queue/many-{number:02}" for number in range(30)]


def ticking(seconds: float) -> Callable[[], float]:
    """A clock that goes on by so much with each look."""
    times = itertools.count()
    return lambda: next(times) * seconds


@pytest.mark.parametrize(
    "read",
    [
        Collect("queue/q"),
        Scan("queue/"),
        Changes(0, 1),
        Accept("queue/q", make_ballot(make(1, 0, "c"), 1), NOTHING, then=Collect("queue/q")),
    ],
    ids=lambda read: type(read).__name__,
)
def test_reads_are_bounded_by_their_time(read: Request) -> None:
    """Those that rode along with accepts were not: ids of large items read, 62 times in one batch, took 3.9 s on a busy machine."""
    budget, refused = Budget(1_000_000, ticking(BATCH_READS_S_MAX / 3.5)), Refused("bad-request", "")
    for _ in range(3):
        assert not budget.is_spent_by(read, refused)
    assert budget.is_spent_by(read, refused)


def test_changes_are_bounded_by_their_entries() -> None:
    """Batches of 180,000 tiny entries, which their bytes allow, took eight tenths of a second each; to mark 340,000 as complete took 2 to 5 s."""
    changing = [Budget(1_000_000, ticking(BATCH_READS_S_MAX)) for _ in range(4)]
    refused = Refused("bad-request", "")
    some = Append("queue/q", (Entry("e", make(1, 0, "c"), Value("1")),) * 1024)
    keys = Reserve("queue/q", ZERO, (Proposal("k", ()),) * 1024)
    marks = Commit("queue/q", complete=(make(1, 0, "c"),) * 1024)
    accept = Accept("queue/q", make_ballot(make(1, 0, "c"), 1), NOTHING)
    budget = changing.pop()
    assert not any(budget.is_spent_by(accept, refused) for _ in range(1000)), "nothing is read, nor appended"
    bringing: tuple[Request, ...] = (some, keys, marks)
    for budget, request in zip(changing, bringing, strict=True):
        for _ in range(BATCH_ENTRIES_MAX // 1024):
            assert not budget.is_spent_by(request, refused)
        assert budget.is_spent_by(request, refused)


async def test_a_reply_is_weighed_about_right(member: Member) -> None:
    ballot = make_ballot(make(time.time_ns() // 1000, 0, "c"), 1)
    asked = (
        Collect("queue/q", window=Window(limit=9)),
        Scan("queue/many-", limit=5),
        Changes(0, COUNT_MAX, limit=50),
    )
    for request in asked:
        (reply,) = (await answer_of(member, [request])).replies
        assert 0.5 < weight(reply) / len(msgspec.msgpack.encode(reply)) < 2
    summary = msgspec.structs.replace(NOTHING, value=ITEM)
    then = Collect("register/r")
    (accepted,) = (await answer_of(member, [Accept("register/r", ballot, summary, then=then)])).replies
    assert weight(accepted) > len(ITEM)


def test_reads_side_by_side_of_more_than_one_reply_holds_all_come_back(tmp_path: Path) -> None:
    with in_process(tmp_path, LIMITS) as cluster:
        here = cluster.front_end()
        names = [f"register/r{number}" for number in range(60)]
        for name in names:
            assert isinstance(cluster.outcome(here, Write(name, ITEM)), Done)
        other = cluster.front_end()

        async def all_at_once() -> list[object]:
            return await asyncio.gather(*(other.driver.run(Read(name), WAIT_S) for name in names))

        outcomes = cluster.run(all_at_once())
        assert [each.result for each in outcomes if isinstance(each, Done)] == [ITEM] * 60


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.001)


async def hold_writer(here: Served) -> tuple[threading.Event, "asyncio.Task[None]"]:
    """Keep the writer busy until the event is set."""
    entered, leave = threading.Event(), threading.Event()

    def work(_: Store) -> None:
        entered.set()
        assert leave.wait(WAIT_S)

    busy = asyncio.create_task(here.member.run(work))
    await asyncio.to_thread(entered.wait, WAIT_S)
    return leave, busy


@pytest.mark.parametrize("is_direct", [True, False])
async def test_what_has_not_begun_when_its_caller_leaves_is_not_done(
    tmp_path: Path, *, is_direct: bool
) -> None:
    async with served(tmp_path, is_direct=is_direct) as here:
        leave, busy = await hold_writer(here)
        _, writer = await asyncio.open_connection("127.0.0.1", here.port)
        writer.write(post(encoded(here, append(1)), *HEADERS))
        await until(lambda: here.app.traffic.under_way == 1)
        writer.transport.abort()
        await until(lambda: here.app.traffic.connections == 0)
        # The application hears of it in its turn, the direct way at once.
        await until(lambda: is_direct or here.app.traffic.under_way == 0)
        leave.set()
        await busy
        await until(lambda: here.app.traffic.under_way == 0)
        assert here.app.traffic.bodies.held == 0
        (reply,) = (await answer_of(here.member, [Collect("queue/q", window=Window(limit=9))])).replies
        assert isinstance(reply, Collected)
        assert reply.rows == ()


@pytest.mark.parametrize("is_direct", [True, False])
async def test_requests_within_a_batch_count_for_the_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_direct: bool
) -> None:
    line = f"scopes=write rate=100 sha256={digest_of(WRITER.encode()).hex()}"
    monkeypatch.setattr(test_direct, "tokens", lambda: line)
    async with served(tmp_path, is_direct=is_direct, has_tokens=True) as here:
        headers = (*HEADERS, b"Authorization: Bearer " + WRITER.encode())
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        statuses = []
        for _ in range(2):
            writer.write(post(encoded(here, *[Collect("register/r")] * 300), *headers))
            statuses.append((await one_answer(reader))[0])
        assert statuses == [b"HTTP/1.1 200 OK", b"HTTP/1.1 429 Too Many Requests"]
        writer.close()
