"""What the prober sees of a replica that stands still, and when; and the clock by which it says so."""

import asyncio
import os
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
import pytest

from quorate.api_specs.messages import ProbeRow
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.measurement.clock import RunClock
from quorate.measurement.run.prober import Prober
from quorate.measurement.run.recorder import Recorder, lines_of
from quorate.measurement.run.replicas import start_all

STEP_S: Final = 0.2
PROBES: Final = 5
WAIT_S: Final = 60.0


class Lateness:
    """How late this event loop was at most: what the machine adds to everything that is measured on it."""

    def __init__(self) -> None:
        self.most_s = 0.0

    async def watch(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            due_s = time.monotonic() + 0.01
            await asyncio.sleep(0.01)
            self.most_s = max(self.most_s, time.monotonic() - due_s)


async def probes_of(folder: Path, replicas: LocalCluster) -> tuple[list[ProbeRow], float, float, float]:
    """What was seen of r1, which stood still between two moments; these, and how late the machine was."""
    await start_all(replicas)
    clock, lateness = RunClock(), Lateness()
    with closing(Recorder(folder / "probes-1.jsonl.gz")) as recorder:
        prober = Prober(replicas.urls, STEP_S, recorder, clock)
        beside = [asyncio.ensure_future(each) for each in (prober.run(), lateness.watch())]
        await more(recorder)
        os.kill(replicas.pids["r1"], signal.SIGSTOP)
        stopped_s = clock.now_s()
        await more(recorder)
        continued_s = clock.now_s()
        os.kill(replicas.pids["r1"], signal.SIGCONT)
        await more(recorder)
        for task in beside:
            task.cancel()
        await asyncio.gather(*beside, return_exceptions=True)
    rows = [msgspec.json.decode(line, type=ProbeRow) for line in lines_of(recorder.path)]
    return rows, stopped_s, continued_s, lateness.most_s


async def more(recorder: Recorder) -> None:
    """Wait for PROBES further ones."""
    until, before = time.monotonic() + WAIT_S, recorder.count
    while recorder.count < before + PROBES:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


@pytest.mark.slow
def test_a_replica_that_stands_still_is_seen_down_at_the_next_probe_and_one_step_later_at_most(
    tmp_path: Path,
) -> None:
    with LocalCluster.create(tmp_path / "cluster", replicas=1) as cluster:
        rows, stopped_s, continued_s, late_s = asyncio.run(probes_of(tmp_path, cluster))
    sent_still = [row for row in rows if stopped_s <= row.time_s < continued_s - STEP_S]
    assert len(sent_still) >= PROBES - 2
    assert {row.up for row in sent_still} == {0}
    assert all(row.latency_s is None for row in sent_still)
    assert sent_still[0].time_s - stopped_s <= STEP_S + 2 * late_s
    assert any(row.up for row in rows if row.time_s > continued_s)
    before = [row for row in rows if row.time_s < stopped_s - STEP_S]
    assert any(row.up for row in before)
    assert all(0 < row.latency_s <= STEP_S + late_s for row in rows if row.latency_s is not None)


def test_a_run_s_clock_does_not_follow_a_wall_clock_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = RunClock()
    before_s = clock.now_s()
    assert before_s == pytest.approx(time.time(), abs=WAIT_S)
    true_s = time.time()
    monkeypatch.setattr(time, "time", lambda: true_s - 3600)
    after_s = clock.now_s()
    assert before_s <= after_s < before_s + WAIT_S
