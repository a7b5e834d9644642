"""What a replica notes of the others: what the watch heard a moment ago, else their health, over real connections."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec import structs

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo, from_json
from quorate.api_specs.messages import ProbeRow
from quorate.client_sdk.transport.http_transport import quick_client
from quorate.client_sdk.transport.tls import SYSTEM_TRUST
from quorate.measurement.faults.held_ports import HeldPort
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.logs.probe_log import ProbeLog
from quorate.replica.service.member import Member, Peer
from quorate.replica.upkeep import probing as module
from quorate.replica.upkeep.probing import Probes, Probing
from tests.system.harness import until

EVERY_S = 0.1


class Health:
    """Another replica, as far as its health goes."""

    def __init__(self) -> None:
        self.status = "200 OK"
        self.asked = 0
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (head := await reader.readuntil(b"\r\n\r\n")).startswith(b"GET /v1/health/ready "):
            assert b"authorization" not in head.lower()
            self.asked += 1
            writer.write(f"HTTP/1.1 {self.status}\r\nContent-Length: 2\r\n\r\n{{}}".encode())

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        async with await asyncio.start_server(self._connected, "127.0.0.1", 0) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def slow_clock() -> Callable[[], int]:
    """One that is behind the one which the event loop goes by, so that whoever sleeps until a moment wakes before it."""
    began_us, began_s = time.time_ns() // 1000, time.monotonic()
    return lambda: began_us + round((time.monotonic() - began_s) * 0.95e6)


class Rig:
    """r1 of three replicas: r2 answers, and nobody listens at r3's port."""

    def __init__(self, folder: Path, other: Health, silent: HeldPort) -> None:
        ports = (7001, other.port, silent.number)
        document = ClusterDocument(
            "test", tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:{port}") for n, port in enumerate(ports, 1))
        )
        self.other = other
        self.member = Member(open_folder(folder / "data", document, "r1"), wall_us=slow_clock())
        self.folder = folder / "probes"
        self.folder.mkdir()
        self.log = ProbeLog(self.folder, "r1", 1)
        self.probing = Probing(self.member, Probes(self.log, EVERY_S), quick_client(None, SYSTEM_TRUST))

    def rows(self) -> list[ProbeRow]:
        return list(self.log.page().rows)

    async def moments(self, number: int) -> list[list[ProbeRow]]:
        """Wait for the rows of so many moments more: those, by moment."""
        before = len(self.rows()) // 3
        await until(lambda: len(self.rows()) // 3 >= before + number, "it notes what it sees")
        rows = self.rows()[3 * before :]
        return [rows[place : place + 3] for place in range(0, 3 * number, 3)]


@pytest_asyncio.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    other, silent = Health(), HeldPort.chosen()
    async with other.served():
        made = Rig(tmp_path, other, silent)
        yield made
        await made.probing.stop()
        await asyncio.to_thread(made.member.close)


async def test_each_moment_has_a_row_for_itself_and_each_other_replica(rig: Rig) -> None:
    rig.probing.start()
    found = await rig.moments(2)
    while not any(answers.up for _, answers, _ in found):  # On a busy machine it may have answered too late.
        found = await rig.moments(1)
    for own, answers, silent in found:
        assert own == ProbeRow("r1", own.time_s, 0, None), "it does not vote yet: nobody has vouched for it"
        assert (answers.replica, answers.time_s) == ("r2", own.time_s)
        if answers.up:
            assert 0 < (answers.latency_s or 0) < module.ANSWER_S_MAX
        assert silent == ProbeRow("r3", own.time_s, 0, None)
        assert own.time_s / EVERY_S == pytest.approx(round(own.time_s / EVERY_S), abs=1e-3)
    rig.other.status = "503 Service Unavailable"
    await rig.moments(1)
    assert (await rig.moments(1))[0][1].up == 0


async def test_no_moment_is_noted_twice(rig: Rig) -> None:
    rig.probing.start()
    found = [moment[0].time_s for moment in await rig.moments(5)]
    assert found == sorted(set(found))


async def test_what_the_watch_heard_a_moment_ago_is_not_asked_again(rig: Rig) -> None:
    def heard(**told: float) -> Iterator[Peer]:
        while True:
            yield Peer(
                True, 0, 1500, votes=bool(told.get("votes", 1)), met_s=time.monotonic() - told["ago_s"]
            )

    rig.member.peers["r2"] = next(heard(ago_s=-3600))
    rig.member.peers["r3"] = next(heard(ago_s=3600))
    rig.probing.start()
    ((_, answers, silent),) = await rig.moments(1)
    assert (answers.up, answers.latency_s, rig.other.asked) == (1, 0.003, 0)
    assert silent.up == 0, "what was heard an hour ago does not count"
    rig.member.peers["r2"] = next(heard(ago_s=-3600, votes=0))
    await rig.moments(2)
    assert rig.other.asked > 0, "who bore no witness is asked"


async def test_a_folder_that_cannot_be_written_is_told_once_and_stops_nothing(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    away = rig.folder.with_name("away")
    with caplog.at_level(logging.WARNING, module.__name__):
        rig.probing.start()
        await rig.moments(1)
        rig.folder.rename(away)
        await until(lambda: bool(caplog.records), "it warns")
        asked = rig.other.asked
        await until(lambda: rig.other.asked >= asked + 3, "it goes on asking")
        lines = [each.getMessage() for each in caplog.records]
        assert lines == [f"samples are missing in the probe log: {rig.folder}: No such file or directory"]
        away.rename(rig.folder)
        await rig.moments(1)


async def test_a_process_that_stood_still_says_nothing_of_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STOOD_STILL_WAITS", 0)  # Any look takes too long.
    rig.probing.start()
    await until(lambda: rig.other.asked >= 2, "it asks")
    assert rig.rows() == []


async def test_who_is_no_member_notes_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def is_member(_: Member) -> bool:
        nonlocal looked
        looked += 1
        return False

    monkeypatch.setattr(Member, "is_member", property(is_member))
    rig.probing.start()
    await until(lambda: looked >= 3, "it looks")
    assert rig.rows() == []
    assert os.listdir(rig.folder) == []


async def test_the_configuration_is_noted_once_and_not_while_it_changes(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.probing.start()
    await rig.moments(2)
    first = rig.member.document
    (noted,) = rig.log.page().configurations
    assert (from_json(noted.document), noted.time_s) == (first, rig.rows()[0].time_s)
    after = structs.replace(first, epoch=2)
    both = structs.replace(after, epoch=1, old=first)
    monkeypatch.setattr(rig.member.configured, "document", both)
    await rig.moments(2)
    assert len(rig.log.page().configurations) == 1
    monkeypatch.setattr(rig.member.configured, "document", after)
    await rig.moments(2)
    assert [from_json(each.document).number for each in rig.log.page().configurations] == [0, 2]
