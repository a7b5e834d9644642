"""Large bodies are read in a thread, one at a time and callers in turn; what nobody waits for any more is not begun."""

import asyncio
import importlib
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from quorate.adts.log import Value
from quorate.adts.specification import EventClass
from quorate.api_specs.limits import Limits
from quorate.client_sdk.protocol.core.values import Done, Operation, Outcome, Write
from quorate.replica.access.credentials import anyone
from quorate.replica.access.token_list import nobody_asked
from quorate.replica.api.operations import Asked, Operations
from quorate.replica.http.fair_queue import LONG_BYTES
from quorate.replica.http.gate import Gate, turn_of
from quorate.replica.http.large_bodies import (
    CLOCK,
    LARGE_BYTES,
    Arrived,
    LargeBodies,
    asked_at,
    begin,
    read_apart,
)
from quorate.replica.http.problems import Refusal
from quorate.replica.http.traffic import Traffic
from quorate.timestamps.clock import Now

collector = importlib.import_module("gc")
WAIT_S = 60.0
LARGE = LARGE_BYTES + 1


@contextmanager
def busy(bodies: LargeBodies) -> Iterator[threading.Event]:
    """The thread reads another body until the event is set."""
    goes_on = threading.Event()
    reading = bodies.read("first", partial(goes_on.wait, WAIT_S))
    try:
        yield goes_on
    finally:
        goes_on.set()
    assert not reading.cancelled()


async def test_the_loop_goes_on_while_a_body_is_read() -> None:
    bodies = LargeBodies()
    with busy(bodies) as goes_on:
        last = bodies.read("a", threading.current_thread)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not last.done(), "one at a time"
        goes_on.set()
        async with asyncio.timeout(WAIT_S):
            assert await last is not threading.current_thread()


async def test_what_was_read_goes_on_before_another_body_is_read() -> None:
    """All that was parsed of twelve bodies waited for the next step of each: to look for garbage among that took two seconds."""
    bodies, done = LargeBodies(), list[str]()
    with busy(bodies) as goes_on:
        works = [bodies.read("a", partial(done.append, name)) for name in ("first", "second")]
        works += [bodies.read("a", partial(done.append, name), is_begun=True) for name in ("third", "fourth")]
        goes_on.set()
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*works)
    assert done == ["third", "fourth", "first", "second"]


class Parsed:
    """What was made of a body."""


async def _asked(body: bytes, app: Callable[[], Awaitable[None]]) -> None:
    """The application answers a request with that body."""
    bodies = LargeBodies()

    async def receive() -> Message:
        await asyncio.sleep(WAIT_S)
        raise AssertionError

    begin(Arrived("a", len(body), CLOCK.now(), receive, bodies))
    await app()


async def test_what_was_parsed_of_a_refused_body_is_gone_with_its_answer() -> None:
    """Without waiting for the garbage collector, which seldom looks at what is old: a replica took 55 MB for each."""
    left: list[weakref.ref[Parsed]] = []

    def refuse() -> None:
        parsed = Parsed()
        left.append(weakref.ref(parsed))
        raise Refusal("malformed", "it is wrong")

    async def answer() -> None:
        with pytest.raises(Refusal):
            await read_apart(refuse)

    collector.collect()
    collector.disable()
    try:
        await _asked(b"9" * LARGE, answer)
        assert len(left) == 1
        async with asyncio.timeout(WAIT_S):  # The thread that read it may still be on its way out.
            while left[0]() is not None:
                await asyncio.sleep(0.001)
    finally:
        collector.enable()


async def test_callers_take_turns_and_what_is_cancelled_is_not_begun() -> None:
    bodies, done = LargeBodies(), list[str]()
    with busy(bodies):
        reads = [bodies.read("many", partial(done.append, f"many {number}")) for number in range(5)]
        reads.append(bodies.read("one", partial(done.append, "one")))
        reads[1].cancel()
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*reads, return_exceptions=True)
    assert done == ["many 0", "one", "many 2", "many 3", "many 4"]


async def test_an_error_is_the_reader_s_own() -> None:
    bodies = LargeBodies()
    failed = bodies.read("a", partial(int, "x"))
    after = bodies.read("a", partial(int, "1"))
    async with asyncio.timeout(WAIT_S):
        with pytest.raises(ValueError, match="invalid literal"):
            await failed
        assert await after == 1


class Caller:
    """Sends one body, and may leave."""

    def __init__(self, size: int) -> None:
        self._bodies = [b"x" * size]
        self._left = asyncio.Event()

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> Message:
        if self._bodies:
            return {"type": "http.request", "body": self._bodies.pop(), "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}


class Served:
    """A gate, and what has been begun behind it."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.threads: list[threading.Thread] = []
        self.gate = Gate(
            self._app, body_bytes_max=Limits().body_bytes_max, access=nobody_asked(), traffic=Traffic()
        )

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        body = (await receive())["body"]
        await read_apart(partial(self._read, body))

    def _read(self, body: bytes) -> None:
        self.read.append(len(body))
        self.threads.append(threading.current_thread())

    def ask(self, caller: Caller, host: str = "127.0.0.1") -> "asyncio.Task[None]":
        scope = {
            "type": "http",
            "method": "PUT",
            "path": "/v1/registers/a",
            "headers": [],
            "client": (host, 1),
        }
        return asyncio.create_task(self.gate(scope, caller.receive, _nowhere))


async def _nowhere(message: Message) -> None:
    del message


@pytest.mark.parametrize(("size", "is_apart"), [(10, False), (LONG_BYTES + 1, False), (LARGE, True)])
async def test_a_large_body_is_read_apart(size: int, is_apart: bool) -> None:
    served = Served()
    async with asyncio.timeout(WAIT_S):
        await served.ask(Caller(size))
    assert served.read == [size]
    assert (served.threads != [threading.current_thread()]) is is_apart


async def test_a_body_whose_caller_leaves_while_the_thread_is_busy_is_not_begun() -> None:
    served, gone, there = Served(), Caller(LARGE), Caller(LARGE + 1)
    with busy(served.gate.large_bodies):
        tasks = [served.ask(gone), served.ask(there)]
        for _ in range(20):
            await asyncio.sleep(0)
        gone.leave()
        async with asyncio.timeout(WAIT_S):
            await tasks[0]
    async with asyncio.timeout(WAIT_S):
        await tasks[1]
    assert served.read == [LARGE + 1]


async def test_a_body_whose_caller_leaves_while_others_have_their_turns_is_not_begun() -> None:
    served, callers = Served(), [Caller(LONG_BYTES + number) for number in range(1, 50)]
    tasks = [served.ask(caller) for caller in callers]
    while not served.read:
        await asyncio.sleep(0)
    callers[-1].leave()
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*tasks)
    assert served.read == [LONG_BYTES + number for number in range(1, 49)]


async def test_without_tokens_addresses_take_turns() -> None:
    """One address with two hundred bodies does not keep another one waiting for more than two of them."""
    served = Served()
    tasks = [served.ask(Caller(LONG_BYTES + 1)) for _ in range(200)]
    for _ in range(10):
        await asyncio.sleep(0)
    tasks.append(served.ask(Caller(LONG_BYTES + 2), "127.0.0.2"))
    async with asyncio.timeout(WAIT_S):
        await asyncio.gather(*tasks)
    assert served.read.index(LONG_BYTES + 2) < 20


def test_a_token_takes_turns_and_an_address_where_there_is_none() -> None:
    assert turn_of(anyone(), ("10.0.0.1", 1)) == turn_of(anyone(), ("10.0.0.1", 2))
    assert turn_of(anyone(), ("10.0.0.1", 1)) != turn_of(anyone(), ("10.0.0.2", 1))
    assert turn_of(None, None) is None


HERE = Now(1000.0, 5_000_000_000)
"""By the clock of the front end."""


class _Asked:
    """A front end that notes how long each operation may take, and since when."""

    def __init__(self) -> None:
        self.deadlines: list[tuple[float, Now | None]] = []

    def now(self) -> Now:
        return HERE

    async def run(
        self, operation: Operation, deadline_s: float, turn: object = None, asked: Now | None = None
    ) -> Outcome:
        del operation, turn
        self.deadlines.append((deadline_s, asked))
        return Done(None, EventClass("Write/Ok"), frozenset())


@pytest.mark.parametrize(("deadline_s", "is_run"), [(5.0, True), (1.0, False)])
async def test_what_a_request_has_waited_counts_for_its_deadline(
    monkeypatch: pytest.MonkeyPatch, deadline_s: float, is_run: bool
) -> None:
    operations, front_end = Operations(Limits(), lambda: None), _Asked()
    operations.front_end = front_end  # type: ignore[assignment]
    now = CLOCK.now()
    came = Now(now.mono_s - 2.0, now.wall_us - 2_000_000)
    monkeypatch.setattr("quorate.replica.api.operations.asked_at", lambda: came)
    if is_run:
        await operations.run(Write("register/r", Value("1")), deadline_s)
        ((most_s, asked),) = front_end.deadlines
        assert most_s == 5.0
        assert asked is not None
        assert 2.0 <= HERE.since_s(asked) < 60.0
    else:
        with pytest.raises(Refusal, match="its deadline passed while the request waited") as refused:
            await operations.run(Write("register/r", Value("1")), deadline_s)
        assert refused.value.problem.status == 503
        assert front_end.deadlines == []


async def test_under_a_key_nothing_is_done_on_a_connection_that_is_not_read_from() -> None:
    """Nobody would hear that the client has gone, and its repeat may be forgotten by now."""

    class Flow:
        is_held = True

    async def receive() -> Message:
        await asyncio.sleep(WAIT_S)
        raise AssertionError

    operations = Operations(Limits(), lambda: None)
    request = Request({"type": "http", "headers": []}, receive)
    flow = Flow()
    begin(Arrived("a", 10, CLOCK.now(), receive, LargeBodies(), flow))
    await operations.be_asked(Asked(request, None, None))
    with pytest.raises(Refusal, match="bytes have come behind"):
        await operations.be_asked(Asked(request, None, "key"))
    flow.is_held = False
    await operations.be_asked(Asked(request, None, "key"))


async def test_a_request_has_waited_since_its_body_was_whole() -> None:
    waits: list[float] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        waits.append(CLOCK.now().since_s(asked_at()))

    gate = Gate(app, body_bytes_max=Limits().body_bytes_max, access=nobody_asked(), traffic=Traffic())
    served = Served()
    served.gate = gate
    await served.ask(Caller(10))
    await served.ask(Caller(LONG_BYTES + 1))
    assert all(wait >= 0.0 for wait in waits)
    assert waits[1] > 0.0, "it was not read in the turn in which it came"
    assert CLOCK.now().since_s(asked_at()) < waits[1], "outside of any request it is now"
