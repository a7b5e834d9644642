"""`quorate demo`, which `make demo` runs: the whole way on real processes, told as it happens.

Owns the order of the story and its words. What is run lies in `demo_trace` and `demo_load`, what must hold in
`demo_check`, what is written in `demo_record`.
"""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from quorate.cli.demo_load import CHOICES, QUEUES, Load, problems_at_rest
from quorate.cli.demo_record import Interval, UpTimes, write_run
from quorate.cli.demo_trace import CLASSES, QUEUE, STEPS, run_step
from quorate.cli.failure import EXIT_FAILED
from quorate.cli.local_cluster import LocalCluster, free_ports
from quorate.cli.output import AsJson, answer, console, reported
from quorate.cli.progress import bar, busy
from quorate.cli.trace_command import read_traces, show

OPERATIONS: Final = 3000
OUTAGES: Final = (("r2", 0.25, 0.55), ("r3", 0.70, 0.80))
"""Who is killed, and when it is killed and started again, as parts of the load's duration."""


@reported
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where measurements and report go.")] = Path("out/demo"),
    operations: Annotated[int, typer.Option("--operations", min=50, help="How many in the measured part.")] = OPERATIONS,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the replicas' data folders and logs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Three replicas, a lecture's execution, then load while replicas are killed; checks that nothing is lost."""
    began_s = time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    story = Console(stderr=True, highlight=False) if as_json else console()
    root = Path(tempfile.mkdtemp(prefix="cluster-", dir=out))
    rules = [(f"queue/{QUEUE}", "queue", CLASSES, False)]
    rules += [(f"queue/{name}", "queue", classes, True) for name, classes in QUEUES.items()]
    keep_for_sure = True
    try:
        with LocalCluster.create(root.resolve(), rules=rules) as cluster:
            problems, load, intervals = _run(story, cluster, operations)
            write_run(out, load.recorder.records, intervals, cluster.document, CHOICES)
        keep_for_sure = bool(problems)
    finally:
        if not (keep or keep_for_sure):
            shutil.rmtree(root, ignore_errors=True)
    _show_verdict(story, problems, load)
    rows = outcome_rows(load.recorder.records, intervals)
    _show_outcomes(story, rows)
    report = _report(story, out)
    story.print(f"\nMeasurements: {out.resolve()}")
    if keep or keep_for_sure:
        story.print(f"Replicas' data folders and logs: {root.resolve()}")
    story.print(f"All replicas are stopped. This took {time.monotonic() - began_s:.0f} s.")
    if as_json:
        data = {"ok": not problems, "problems": problems, "operations": len(load.recorder.records), "outcomes": rows}
        answer(True, data | {"out": str(out.resolve()), "report": report})
    if problems:
        raise typer.Exit(EXIT_FAILED)
