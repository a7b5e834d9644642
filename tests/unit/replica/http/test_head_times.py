"""How long a connection stays open on which no request becomes whole, however its bytes come: by a clock that the test moves."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from quorate.api_specs.limits import AHEAD_BYTES_MAX
from quorate.replica.http.connections import BoundedProtocol, Bounds
from quorate.replica.http.fair_queue import FairQueue
from quorate.replica.http.traffic import Traffic
from quorate.replica.server import direct

HEAD_S, IDLE_S = 10.0, 30
BEGUN = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = BEGUN + b"\r\n"


class Timer:
    """One that a clock of the test's fires."""

    def __init__(self, at_s: float, callback: Callable[..., object], *args: object) -> None:
        self.at_s = at_s
        self._callback = callback
        self._args = args
        self._is_over = False

    def cancel(self) -> None:
        """As asyncio has it."""
        self._is_over = True

    def fire(self) -> None:
        """Call back, once."""
        if not self._is_over:
            self._is_over = True
            self._callback(*self._args)


class MovedClock:
    """The event loop of a protocol: time passes when the test says so."""

    def __init__(self) -> None:
        self.create_task = asyncio.get_running_loop().create_task
        self._now_s = 0.0
        self._timers: list[Timer] = []

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: object) -> Timer:
        """As asyncio has it."""
        self._timers.append(timer := Timer(self._now_s + delay_s, callback, *args))
        return timer

    def pass_s(self, seconds: float) -> None:
        """Let so much time pass."""
        self._now_s += seconds
        for timer in sorted(self._timers, key=lambda each: each.at_s):
            if timer.at_s <= self._now_s:
                self._timers.remove(timer)
                timer.fire()


class Turns(FairQueue):
    """Everything waits for its turn, which comes when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.works: list[Callable[[], None]] = []

    def may_begin(self, size: int) -> bool:
        """As the queue of a busy replica."""
        del size
        return False

    def put(self, caller: Any, size: int, work: Callable[[], None]) -> None:
        """As a queue has it."""
        del caller, size
        self.works.append(work)

    def take_all(self) -> None:
        """Let turns come while something waits."""
        while self.works:
            self.works.pop(0)()


class Line(asyncio.Transport):
    """A connection of which the test is the other end."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.heard = b""
        self.is_closed = self.is_paused = False

    def write(self, data: Any) -> None:
        self.heard += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0


class Connection:
    """One connection to an application that answers everything with `done`, once it may."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.line, self.turns = MovedClock(), Line(), Turns()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        monkeypatch.setattr(direct, "FairQueue", lambda: self.turns)

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            await self.may_answer.wait()
            await PlainTextResponse("done")(scope, receive, send)

        config = uvicorn.Config(answer, http="httptools", ws="none", log_config=None, access_log=False)
        config.timeout_keep_alive = IDLE_S
        config.load()
        self.protocol: BoundedProtocol = direct.bounded(Bounds(head_s=HEAD_S), Traffic())(
            config=config, server_state=ServerState(), app_state={}, _loop=self.clock
        )
        self.protocol.connection_made(self.line)

    async def say(self, data: bytes) -> None:
        """Have it come, be parsed in its turns, and be answered."""
        self.protocol.data_received(data)
        self.turns.take_all()
        await self.answered()

    async def answered(self) -> None:
        """Let what may be answered be answered."""
        for _ in range(20):
            await asyncio.sleep(0)
            self.turns.take_all()

    @property
    def was_late(self) -> bool:
        """Whether it was told that its head took too long, and hung up on."""
        return self.line.is_closed and self.line.heard.startswith(b"HTTP/1.1 408 ")


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Connection]:
    return lambda: Connection(monkeypatch)


@pytest.mark.parametrize("size", [0, 2, 16_384, 262_144])
async def test_bytes_that_are_no_request_do_not_keep_a_new_connection_open(
    made: Callable[[], Connection], size: int
) -> None:
    """A burst of empty lines had to wait for turns, and that had stopped the time for ever."""
    connection = made()
    if size:
        await connection.say(b"\r\n" * (size // 2))
    connection.clock.pass_s(HEAD_S - 0.1)
    assert not connection.line.is_closed
    connection.clock.pass_s(0.2)
    assert connection.line.is_closed
    assert connection.line.heard == b""


async def test_bytes_that_are_no_request_do_not_end_the_time_between_two(
    made: Callable[[], Connection],
) -> None:
    connection = made()
    await connection.say(WHOLE)
    assert connection.line.heard.endswith(b"done")
    for _ in range(3):
        connection.clock.pass_s(9)
        await connection.say(b"\r\n" * 8192)
        assert not connection.line.is_closed
    connection.clock.pass_s(IDLE_S - 27 + 0.1)
    assert connection.line.is_closed


@pytest.mark.parametrize("before", [b"", WHOLE])
async def test_a_head_has_its_time_from_its_first_byte_however_long_its_pieces(
    made: Callable[[], Connection], before: bytes
) -> None:
    """Each piece of 8 KiB waited for turns, and began the time again: 42 s."""
    connection = made()
    await connection.say(before)
    connection.line.heard = b""
    await connection.say(BEGUN)
    connection.clock.pass_s(HEAD_S - 1)
    await connection.say(b"X: %b\r\n" % (b"x" * 8192))
    assert not connection.line.is_closed
    connection.clock.pass_s(1.1)
    assert connection.was_late


async def test_nobody_is_late_whose_bytes_have_come_and_wait_for_their_turns(
    made: Callable[[], Connection],
) -> None:
    connection = made()
    await connection.say(BEGUN)
    connection.clock.pass_s(HEAD_S - 1)
    connection.protocol.data_received(b"X: %b\r\n\r\n" % (b"x" * 8192))
    connection.clock.pass_s(2)
    assert not connection.line.is_closed
    connection.turns.take_all()
    await connection.answered()
    assert connection.line.heard.endswith(b"done")
    connection.clock.pass_s(HEAD_S + 1)
    assert not connection.line.is_closed, "now the time between two requests runs"


async def test_who_is_not_whole_when_all_has_had_its_turn_is_late(made: Callable[[], Connection]) -> None:
    connection = made()
    await connection.say(BEGUN)
    connection.clock.pass_s(HEAD_S - 1)
    connection.protocol.data_received(b"X: %b\r\n" % (b"x" * 8192))
    connection.clock.pass_s(2)
    assert not connection.line.is_closed
    connection.turns.take_all()
    assert connection.was_late


async def test_a_head_does_not_owe_the_time_of_the_one_before_it(made: Callable[[], Connection]) -> None:
    connection = made()
    await connection.say(BEGUN)
    connection.clock.pass_s(HEAD_S - 1)
    await connection.say(b"\r\n" + BEGUN)
    connection.clock.pass_s(HEAD_S - 1)
    assert not connection.line.is_closed
    await connection.say(b"\r\n")
    assert connection.line.heard.count(b"done") == 2


async def test_who_may_send_nothing_before_answers_come_is_not_late(made: Callable[[], Connection]) -> None:
    connection = made()
    connection.may_answer.clear()
    await connection.say(WHOLE)
    padded = BEGUN + b"X: %b\r\n\r\n" % (b"x" * 4000)
    await connection.say(padded)
    await connection.say(padded * (AHEAD_BYTES_MAX // len(padded) + 2) + BEGUN)
    assert connection.line.is_paused
    connection.clock.pass_s(HEAD_S + 1)
    connection.may_answer.set()
    await connection.answered()
    assert not connection.line.is_closed
    await connection.say(b"\r\n")
    assert connection.line.heard.endswith(b"done")
    await connection.say(BEGUN)
    connection.clock.pass_s(HEAD_S + 0.1)
    assert connection.line.is_closed
