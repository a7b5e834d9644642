"""Recorders: what is written can be read, also when the writer was killed or its file damaged."""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from quorate.api_specs.messages import ProbeRow
from quorate.measurement.run import recorder as module
from quorate.measurement.run.recorder import ROWS_MAX, Recorder, lines_of

DEADLINE_S = 30


def rows_of(path: Path) -> list[ProbeRow]:
    """The whole rows of a file."""
    return [msgspec.json.decode(line, type=ProbeRow) for line in lines_of(path)]


def probe(number: int) -> ProbeRow:
    """One of many different rows."""
    return ProbeRow("r1", float(number), 1, 0.001)


def test_rows_come_back_in_order_from_many_flushes(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "probes.jsonl.gz")
    for number in range(30):
        recorder.add(probe(number))
        if number % 7 == 0:
            recorder.flush()
    recorder.close()
    recorder.close()
    assert rows_of(recorder.path) == [probe(number) for number in range(30)]
    assert recorder.count == 30


def test_rows_that_wait_are_bounded(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "probes.jsonl.gz")
    for number in range(ROWS_MAX):
        recorder.add(probe(number))
    flushed = len(rows_of(recorder.path))
    recorder.close()
    assert flushed == ROWS_MAX


async def test_a_cancelled_flush_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLUSH_S", 0.0)
    for turns in range(1, 12):
        recorder = Recorder(tmp_path / f"probes-{turns}.jsonl.gz")
        recorder.add(probe(turns))
        running = asyncio.ensure_future(recorder.run())
        for _ in range(turns):
            await asyncio.sleep(0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        recorder.close()
        assert rows_of(recorder.path) == [probe(turns)], f"cancelled after {turns} turns of the loop"


WRITER = """
import asyncio, sys
from pathlib import Path
from quorate.measurement.run.recorder import Recorder
from quorate.api_specs.messages import ProbeRow

async def write():
    recorder = Recorder(Path(sys.argv[1]))
    flushing = asyncio.ensure_future(recorder.run())
    for number in range(10**9):
        recorder.add(ProbeRow("r1", float(number), 1, 0.001))
        if number % 50 == 0:
            await asyncio.sleep(0.001)

asyncio.run(write())
"""


@pytest.mark.slow
def test_what_a_killed_writer_flushed_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "probes.jsonl.gz"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) as writer:
        until = time.monotonic() + DEADLINE_S
        flushed = 0
        while flushed < 2:
            assert time.monotonic() < until, "nothing was flushed in time"
            time.sleep(0.1)
            flushed = path.read_bytes().count(b"\x1f\x8b\x08\x00\x00\x00\x00\x00") if path.exists() else 0
        writer.send_signal(signal.SIGKILL)
    lines = list(lines_of(path))
    rows = [msgspec.json.decode(line, type=ProbeRow) for line in lines if line.endswith(b"}")]
    assert len(lines) - len(rows) <= 1  # the member that was being written
    assert len(rows) > 1000
    assert rows == [probe(number) for number in range(len(rows))]


@pytest.mark.parametrize("cut", [1, 7, 60])
def test_a_file_that_was_cut_off_gives_its_whole_members_and_one_line_that_says_so(
    tmp_path: Path, cut: int
) -> None:
    recorder = Recorder(tmp_path / "probes.jsonl.gz")
    for number in range(4):
        recorder.add(probe(number))
        recorder.flush()
    recorder.close()
    recorder.path.write_bytes(recorder.path.read_bytes()[:-cut])
    *rows, last = lines_of(recorder.path)
    assert [msgspec.json.decode(line, type=ProbeRow) for line in rows][:3] == [probe(0), probe(1), probe(2)]
    assert last.endswith(b" (the rest of this file is cut off or damaged)")


def test_plain_lines_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "probes.jsonl"
    path.write_bytes(b"one\ntwo\nhalf")
    assert list(lines_of(path)) == [b"one", b"two", b"half"]


async def test_rows_go_to_one_file_after_the_other_and_each_is_whole_once_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FLUSH_S", 0.0)
    recorder = Recorder(tmp_path / "probes-1.jsonl.gz", rotate_s=0.0)
    running = asyncio.ensure_future(recorder.run())
    named: dict[Path, bytes] = {}
    async with asyncio.timeout(DEADLINE_S):
        for number in range(3):
            recorder.add(probe(number))
            while not (path := tmp_path / f"probes-1-{number + 1:06d}.jsonl.gz").exists():
                await asyncio.sleep(0)
            named[path] = path.read_bytes()
            assert rows_of(path) == [probe(number)]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [path.name for path in set(tmp_path.iterdir()) - named.keys()] == ["probes-1-000004~.jsonl.gz"]
    recorder.add(probe(3))
    recorder.close()
    recorder.close()
    assert {path: path.read_bytes() for path in named} == named
    assert rows_of(tmp_path / "probes-1-000004.jsonl.gz") == [probe(3)]
    Recorder(tmp_path / "probes-2.jsonl.gz", rotate_s=60.0).close()
    assert len(list(tmp_path.iterdir())) == 4, "no empty file is left"
