"""TLS reads record by record, and ends a connection with too many empty ones: such records cost others' time, and nobody counts them."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from quorate.replica.http.fair_queue import LONG_BYTES, FairQueue
from quorate.replica.http.tls.records import EMPTY_RECORDS_MAX, RECORDS_AT_ONCE, TooManyEmptyRecords
from tests.support.openssl_client import OpensslClient
from tests.support.turns import CountedTurns
from tests.unit.replica.http.tls.test_door import WAIT_S, Behind, Said, contexts, run, served

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
MANY = 5000
RECORD_BYTES = 22
"""A record in which nothing is, at least."""
READ_BYTES = 262_144


class Agreed:
    """A replica's side and a client that have agreed, in memory."""

    def __init__(self, folder: Path) -> None:
        replica, _ = contexts(folder)
        self.arrived, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.replica = replica.wrap_bio(self.arrived, self._out, server_side=True)
        self.client = OpensslClient()
        while not self.client.agrees():
            self.send()
            with pytest.raises(ssl.SSLWantReadError):
                self.replica.do_handshake()
            self.client.hear(self._out.read())
        self.send()
        self.replica.do_handshake()

    def send(self) -> None:
        self.arrived.write(self.client.said())

    def heard(self) -> bytes:
        """What the replica reads until there is no more of it."""
        found = b""
        try:
            while True:
                found += self.replica.read(READ_BYTES)
        except ssl.SSLWantReadError:
            return found


def test_a_client_may_change_its_keys_some_times(tmp_path: Path) -> None:
    both = Agreed(tmp_path)
    for _ in range(EMPTY_RECORDS_MAX):
        both.client.write(b"word")
        both.client.change_keys(1)
    both.client.write(b"last")
    both.send()
    assert both.heard() == b"word" * EMPTY_RECORDS_MAX + b"last"


@pytest.mark.parametrize("between", [b"", b"x"])
def test_of_many_records_that_bring_nothing_few_are_read_and_then_none(
    between: bytes, tmp_path: Path
) -> None:
    """Sixty connections with ten thousand each took a replica's event loop for four seconds."""
    both = Agreed(tmp_path)
    for _ in range(MANY // 31):
        both.client.change_keys(31)
        if between:
            both.client.write(between)
    both.send()
    for _ in range(2):
        with pytest.raises(TooManyEmptyRecords):
            both.heard()
    assert both.arrived.pending > (MANY - 3 * EMPTY_RECORDS_MAX) * RECORD_BYTES


def test_records_may_come_in_any_pieces(tmp_path: Path) -> None:
    both = Agreed(tmp_path)
    said = [b"a", b"b" * 16_384, b"c" * 300, b"d" * 5]
    for each in said:
        both.client.write(each)
    sent = both.client.said()
    for size in (1, 3, 5, 7):
        found = b""
        for start in range(0, len(sent), size):
            both.arrived.write(sent[start : start + size])
            found += both.heard()
        assert found == b"".join(said)
        for each in said:
            both.client.write(each)
        sent = both.client.said()


def test_what_is_read_a_little_at_a_time_is_whole(tmp_path: Path) -> None:
    both = Agreed(tmp_path)
    both.client.write(b"abcdefgh")
    both.client.write(b"ijkl")
    both.send()
    assert b"".join(both.replica.read(3) for _ in range(5)) == b"abcdefghijkl"


@pytest.mark.parametrize("make", LOOPS)
def test_who_changes_keys_for_ever_is_cut_off(
    make: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path
) -> None:
    replica, _ = contexts(tmp_path)

    async def work() -> None:
        async with served(replica, FairQueue()) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            client = OpensslClient()
            while not client.agrees():
                writer.write(client.said())
                client.hear(await reader.read(65_536))
            client.change_keys(EMPTY_RECORDS_MAX + 1)
            writer.write(client.said())
            try:
                async with asyncio.timeout(WAIT_S):
                    while await _read(reader):
                        pass
            finally:
                writer.close()

    run(make, work())


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(65_536)
    except ConnectionError:
        return b""


@pytest.mark.parametrize("make", LOOPS)
def test_of_many_small_records_some_are_read_in_each_turn(
    make: Callable[[], asyncio.AbstractEventLoop], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eleven thousand of one byte each, on each of a thousand connections, were one step of the loop."""
    replica, trusting = contexts(tmp_path)
    heard: list[int] = []

    def data_received(self: Behind, data: bytes) -> None:
        heard.append(len(data))
        self._transport.write(data)

    monkeypatch.setattr(Behind, "data_received", data_received)

    async def work() -> None:
        turns = CountedTurns()
        async with served(replica, turns) as port:
            clients = [Said(trusting, *await asyncio.open_connection("127.0.0.1", port)) for _ in range(3)]
            for each in clients:
                await each.agree()
                each.send()
                each.tls.write(b"hello")
                each.send()
                assert await each.read(5) == b"hello"
            begun = turns.begun()
            for each in clients:
                for _ in range(MANY):
                    each.tls.write(b"x")
                each.send()
            for each in clients:
                assert len(await each.read(MANY)) == MANY
                each.writer.close()
            assert max(heard) <= 2 * RECORDS_AT_ONCE, "the first time, and in a turn of the queue"
            assert turns.begun() - begun >= len(clients) * MANY // RECORDS_AT_ONCE // 2
            assert turns.most_bytes() <= LONG_BYTES * 2

    run(make, work())
