"""Availability from normal running: replicas note what they see, and a report on the cluster has the outage that a prober saw, too."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.console import Console

from quorate.api_specs.messages import PROBE_LOG_FILE, ProbeRow
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.reports.observed import prepare
from quorate.client_sdk import connect_async
from quorate.measurement.clock import RunClock
from quorate.measurement.run.prober import Prober
from quorate.measurement.run.recorder import Recorder
from quorate.spark_reports.merging import merge
from quorate.spark_reports.model.period import Asked
from quorate.spark_reports.report import Options, make_report
from tests.docs.pages import blocks_run_by
from tests.system.harness import Clusters, until
from tests.unit.cli import conftest
from tests.unit.cli.reports.test_observed import wanted

STEP_S: Final = 0.5
BEFORE_S: Final = 0.1
"""What the watch heard so long before a moment may count as of it (`FRESH_SHARE` of a step)."""
MOMENTS: Final = 8


class Notes:
    """What the replicas have noted, in the folder that they share."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder

    def of(self, replica: str, *observers: str) -> list[ProbeRow]:
        """What these observers said of a replica, in order of time."""
        found = [
            row
            for path in self.folder.iterdir()
            if (name := PROBE_LOG_FILE.fullmatch(path.name)) and name[1] in observers
            for line in path.read_bytes().splitlines()
            if (row := msgspec.json.decode(line, type=ProbeRow)).replica == replica
        ]
        return sorted(found, key=lambda row: row.time_s)

    async def after(self, since_s: float, up: int) -> tuple[float, float]:
        """Wait until r1 and r3 have said of r2, MOMENTS times each after a moment, that it is up, or down: from when to when both did."""

        def times(observer: str) -> list[float]:
            return [row.time_s for row in self.of("r2", observer) if row.time_s > since_s and row.up == up]

        await until(lambda: min(map(len, map(times, ("r1", "r3")))) >= MOMENTS, f"r2 is noted with {up}")
        both = [times(observer) for observer in ("r1", "r3")]
        return max(own[0] for own in both), min(own[-1] for own in both)


def longest_s(figures: Any) -> float:
    """The longest outage of r2 in the figures of a report."""
    (found,) = (row for row in figures["replicas"] if row["replica"] == "r2")
    return float(found["longest_outage_s"])


async def noting(clusters: Clusters) -> tuple[LocalCluster, Notes]:
    """A cluster that keeps a queue, and whose replicas note what they see."""
    cluster, notes = clusters.make(), Notes(clusters.folder / "notes")
    [block] = blocks_run_by("tests/system/watching/test_probe_log.py")
    option, _ = block.text.split()[-2:]
    for id in cluster.urls:
        cluster.serve_options[id] = [option, str(notes.folder), "--probe-every", f"{STEP_S}s"]
    cluster.start()
    cluster.ready()
    async with connect_async(cluster.document_path) as client:
        await client.queue("jobs").enqueue({"job": 1})
    return cluster, notes


async def test_an_outage_is_in_the_report_of_what_the_replicas_saw(clusters: Clusters) -> None:
    cluster, notes = await noting(clusters)
    (own := clusters.folder / "own").mkdir()
    recorder = Recorder(own / "probes.jsonl.gz")
    probing = asyncio.create_task(Prober(cluster.urls, STEP_S, recorder, RunClock()).run())

    _, last_up_s = await notes.after(time.time(), up=1)
    cluster.kill("r2")
    down_s = await notes.after(time.time() + BEFORE_S, up=0)
    await asyncio.to_thread(cluster.restart, "r2")
    await notes.after(time.time(), up=1)
    up_s = time.time()
    probing.cancel()
    await asyncio.gather(probing, return_exceptions=True)
    recorder.close()

    # One observer is gone, and its samples are asked for in vain; the others saw the same.
    cluster.kill("r1")
    done = conftest.quorate(
        *("report", "--cluster", str(cluster.root), "--last", "7d"),
        cwd=clusters.folder,
        QUORATE_REPORT_ENGINE="python",
    )
    assert done.returncode == 0, done.stderr
    assert re.search("samples, seen by r2, r3[.;]", done.stdout)
    assert "Without all that some replicas saw: r1: connection refused." in done.stdout
    prepared = prepare(
        Console(quiet=True),
        [],
        clusters.folder / "prepared",
        wanted(cluster=str(cluster.document_path), asked=Asked(last_us=86_400_000_000)),
    )
    assert prepared.wanted["asked"].last_us is None, "before now, when the replicas were asked"
    assert prepared.wanted["step_s"] == STEP_S
    assert (prepared.wanted["adt"], prepared.wanted["votes"]) == ("queue", {"r1": 1, "r2": 1, "r3": 1})
    assert (prepared.wanted["cluster"], len(prepared.notes)) == (None, 2)
    asked = json.loads((clusters.folder / "out" / "report" / "figures.json").read_text())

    merged = merge([notes.folder], clusters.folder / "merged")
    assert merged.observers == ["r1", "r2", "r3"]
    plain = Options("python", adt="queue")
    seen, read = (
        make_report(place, place.with_name(f"{place.name}-report"), plain).figures.as_dict()
        for place in (own, merged.place)
    )
    for found in (seen, asked, read):
        assert down_s[1] - down_s[0] <= longest_s(found) <= up_s - last_up_s


async def test_a_change_of_the_choice_begins_a_regime_of_the_report(clusters: Clusters) -> None:
    cluster, notes = await noting(clusters)
    await notes.after(time.time(), up=1)
    before_s = time.time()
    words = ("choice", "set", "queue/*", "Enq=0,1", "Deq=3,1", "--cluster", str(cluster.document_path))
    done = conftest.quorate(*words, cwd=clusters.folder)
    assert done.returncode == 0, done.stderr
    await notes.after(time.time(), up=1)
    after_s = time.time()
    cluster.kill("r2")
    await asyncio.to_thread(cluster.restart, "r2")  # It notes once more which configuration it is in.
    await notes.after(time.time(), up=1)

    asked = ("report", "--cluster", str(cluster.root), "--mix", "Enq=1,Deq=1")
    done = conftest.quorate(*asked, cwd=clusters.folder, QUORATE_REPORT_ENGINE="python")
    assert done.returncode == 0, done.stderr
    assert (
        'the choice in force changed once in this time: "Enq (0, 2), Deq (2, 2)" at first and "Enq (0, 1), Deq (3, 1)" from'
        in done.stdout
    )
    rows = json.loads((clusters.folder / "out" / "report" / "figures.json").read_text())["regimes"]
    assert [(row["choice"], row["operation"]) for row in rows] == [
        (choice, operation)
        for choice in ("Enq (0, 2), Deq (2, 2)", "Enq (0, 1), Deq (3, 1)")
        for operation in ("Enq", "Deq")
    ]
    assert before_s <= rows[-1]["from_s"] <= after_s
    assert rows[0]["to_s"] == rows[-1]["from_s"]
    assert all(row["known_s"] > 0 for row in rows)
