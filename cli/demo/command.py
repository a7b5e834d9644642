"""`quorate demo`, which `make demo` runs: the whole way on real processes, told as it happens.

Owns the order of the story and its words. What is run lies in `demo_trace` and `demo_load`, what must hold in
`demo_check`, what is tabled in `demo_table`; what is written down `quorate.measurement` knows.
"""

import asyncio
import shutil
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...api_specs.cluster import ChoiceRule
from ...measurement.clock import RunClock
from ...measurement.faults.held_ports import HeldPort
from ...measurement.rows import OperationRow
from ...measurement.run.parquet import convert
from ...measurement.run.recorder import Recorder
from ...measurement.run.run_folder import REPLICAS, Run, clear, write_run, write_up_times
from ...measurement.up_times import UpTimes
from ..cluster.local_cluster import LocalCluster
from ..failure import EXIT_FAILED
from ..files import used_as_folder
from ..objects.trace_command import read_traces, show
from ..output import AsJson, answer, console, reported
from ..progress import bar, busy
from .load import FRONT_END_NAMES, OBJECTS, QUEUES, Load, Seen, problems_at_rest
from .table import outcome_rows
from .trace import CLASSES, QUEUE, STEPS, run_step

OPERATIONS: Final = 3000
OUTAGES: Final = (("r2", 0.25, 0.55), ("r3", 0.70, 0.80))
"""Who is killed, and the shares of the load after which it is killed and started again."""

_RULES: Final = [
    ChoiceRule(f"queue/{QUEUE}", CLASSES, collect=False),
    *(ChoiceRule(f"queue/{name}", classes) for name, classes in QUEUES.items()),
]


@reported
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Where measurements and report go.")
    ] = Path("out/demo"),
    operations: Annotated[
        int, typer.Option("--operations", min=50, help="How many in the measured part.")
    ] = OPERATIONS,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the replicas' data folders and logs.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show a lecture's execution on three replicas, then load them while some are killed: is anything lost?

    Exit code 1 if anything was lost or delivered twice.
    """
    began_s = time.monotonic()
    story = Console(stderr=True, highlight=False) if as_json else console()
    with used_as_folder(out, "--out"):
        out.mkdir(parents=True, exist_ok=True)
        root = Path(tempfile.mkdtemp(prefix="cluster-", dir=out)).resolve()
    problems: list[str] | None = None
    try:
        problems, rows = _on_replicas(story, root, out, operations)
    finally:
        if problems == [] and not keep:
            shutil.rmtree(root, ignore_errors=True)
        else:
            story.print(f"Data folders and logs of the replicas: {escape(str(root))}")
    _tell_verdict(story, problems)
    _tell_outcomes(story, rows)
    report = _report(story, out)
    story.print(f"The measurements behind it are in {escape(str(out))}. Everything is stopped.")
    story.print(f"This took {time.monotonic() - began_s:.0f} s.")
    if as_json:
        data = {"ok": not problems, "problems": problems, "operations": operations, "outcomes": rows}
        answer(True, data | {"out": str(out.resolve()), "report": report})
    if problems:
        raise typer.Exit(EXIT_FAILED)


def _on_replicas(
    story: Console, root: Path, out: Path, operations: int
) -> tuple[list[str], list[dict[str, Any]]]:
    """All that needs the replicas; they are stopped afterwards. What is wrong, and the rows of the table."""
    history = out / "history.jsonl"
    history.unlink(missing_ok=True)
    clear(out)
    with LocalCluster.create(root, rules=_RULES) as cluster:
        with busy(story, "Starting three replicas"):
            cluster.start()
            cluster.ready()
        for id, url in cluster.urls.items():
            story.print(f"  {id} at {url}, process {cluster.pids[id]}")
        problems = _lecture(story, cluster)
        seen, rows = asyncio.run(_under_load(story, cluster, out, operations, history))
        with busy(story, "Draining the queues, and comparing with what the clients saw"):
            problems += asyncio.run(problems_at_rest(cluster.document, seen, history))
    convert(out)
    return problems, rows


def _lecture(story: Console, cluster: LocalCluster) -> list[str]:
    """Five operations at different quorums, and the logs that they leave."""
    _heading(story, "An execution, as lectures draw it: Enq (0, 2), Deq (2, 2) of three replicas")
    nobody = HeldPort.chosen()
    problems = []
    for step in STEPS:
        told = asyncio.run(run_step(cluster.document, step, f"http://127.0.0.1:{nobody.number}"))
        story.print(f"  {escape(told.sentence)}")
        if told.problem:
            problems.append(f"{told.sentence}: {told.problem}")
    for trace in read_traces(cluster.document, f"queue/{QUEUE}"):
        show(trace, story)
    story.print("  No single replica holds all of it; any two together do.")
    return problems


async def _under_load(
    story: Console, cluster: LocalCluster, out: Path, operations: int, history: Path
) -> tuple[Seen, list[dict[str, Any]]]:
    """The measured part. What the clients saw, and the rows of the table."""
    _heading(story, f"{operations} operations of four front ends, while replicas are killed")
    clock = RunClock()
    rows: list[OperationRow] = []
    recorder = Recorder(out / "operations-1.jsonl.gz")

    def record(row: OperationRow) -> None:
        rows.append(row)
        recorder.add(row)

    with bar(story, "operations begun", operations) as begun, closing(recorder):
        load = Load(cluster.document, operations, begun, history, record, clock)
        start_s = clock.now_s()
        up_times = UpTimes(cluster.urls, start_s)
        async with asyncio.TaskGroup() as group:
            flushing = group.create_task(recorder.run())
            outages = group.create_task(_outages(story, cluster, load, up_times, clock))
            await load.run()
            await outages
            flushing.cancel()
    end_s = clock.now_s()
    write_up_times(out / REPLICAS, "replica", up_times.intervals(end_s))
    run = Run(cluster.document, OBJECTS, FRONT_END_NAMES, (start_s, end_s), made={"by": "quorate demo"})
    write_run(out, run)
    return load.seen, outcome_rows(rows, up_times.intervals(end_s), cluster.document, OBJECTS)


async def _outages(
    story: Console, cluster: LocalCluster, load: Load, up_times: UpTimes[str], clock: RunClock
) -> None:
    """Kill and bring back, as the load goes on."""
    for id, killed_at, back_at in OUTAGES:
        await load.reached(killed_at)
        pid = cluster.pids[id]
        await asyncio.to_thread(cluster.kill, id)
        up_times.mark(id, clock.now_s(), up=False)
        story.print(f"  {id} is killed (SIGKILL to process {pid})")
        await load.reached(back_at)
        await asyncio.to_thread(cluster.restart, id)
        up_times.mark(id, clock.now_s(), up=True)
        story.print(f"  {id} is back with its old data (process {cluster.pids[id]})")


def _tell_verdict(story: Console, problems: list[str]) -> None:
    if not problems:
        story.print(
            "  [green]Nothing was lost, nothing delivered twice, nothing overwritten out of turn.[/green]"
        )
    for problem in problems:
        story.print(f"  [red]Wrong:[/red] {escape(problem)}")


def _tell_outcomes(story: Console, rows: list[dict[str, Any]]) -> None:
    _heading(story, "Share of operations that were answered, with all replicas up and with one down")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("choice", "operation", "needs"):
        table.add_column(title, no_wrap=True)
    for title in ("begun", "all up", "one down", "unknown", "ms"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        cells = (_percent(row["answered_all_up"]), _percent(row["answered_some_down"]), str(row["unknown"]))
        needs = f"{row['needed_votes']} of 3"
        median = "" if row["median_ms"] is None else f"{row['median_ms']:.0f}"
        table.add_row(row["choice"], row["operation"], needs, str(row["begun"]), *cells, median)
    story.print(table)


def _report(story: Console, out: Path) -> str | None:
    """The Spark report, where Spark is; else the sentence that says how to get it."""
    try:
        from ...spark_reports.model.errors import ReportError  # noqa: PLC0415
        from ...spark_reports.report import Options, make_report  # noqa: PLC0415
    except ModuleNotFoundError as error:
        story.print(f"No report: the package {error.name} is missing; run: pip install 'quorate\\[reports]'")
        return None
    try:
        with busy(story, "Making the report with Spark, which takes a few seconds to start"):
            made = make_report(out, out / "report", Options())
    except ReportError as error:
        story.print(f"No report: {escape(str(error))}.")
        return None
    for note in made.notes:
        story.print(escape(note))
    html = str(made.html.resolve())
    story.print(f"The report, measured beside predicted: [bold]{escape(html)}[/bold]", soft_wrap=True)
    return html


def _heading(story: Console, text: str) -> None:
    story.print(f"\n[bold]{escape(text)}[/bold]")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"
