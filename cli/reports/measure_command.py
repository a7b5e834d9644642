"""`quorate measure`: run a plan of faults and workloads, and leave a folder that `quorate report` reads.

Owns the words around a run, its progress, and the cluster that a plan starts. What a run is, `quorate.measurement` knows.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from msgspec.structs import asdict
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...adts.plain_class import PlainClass
from ...adts.specification import Specification
from ...adts.types.catalogue import adt_of, known_types
from ...api_specs.cluster import ClusterDocument
from ...measurement.plan.durations import BadDuration, duration_text, parse_duration
from ...measurement.plan.own_calls import check_calls, own_types_of
from ...measurement.plan.plan import Plan
from ...measurement.plan.plan_check import parse_plan, prefill_of, warnings
from ...measurement.plan.schedule import Schedule
from ...measurement.run.measuring import Measured, Onlooker, Setting, measure, schedule_of
from ...measurement.run.parquet import Converted, convert
from ...measurement.run.recorder import FLUSH_S
from ...measurement.run.replicas import NotStarted
from ...measurement.run.run_folder import HISTORY, RUN, add_notes
from ..check.weak_answers import missed_in, sentence_of
from ..cluster.document import read_document
from ..cluster.local_cluster import LocalCluster
from ..credentials import read_token
from ..failure import Failure, Usage
from ..files import read_text, used_as_folder
from ..interrupt import set_at_signal
from ..output import AsJson, answer, console, reported
from ..progress import Reached, busy, time_bar
from ..quorums.data_types import class_of, computed, users_code

_MADE: Final = {"by": "quorate measure"}


@reported
def measure_command(
    plan_path: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, a TOML file.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="DIR", help="Where the measurements go: a new or empty folder."),
    ] = Path("out/measured"),
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show what would fail when, and what would be measured; run nothing."),
    ] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the replicas' data folders and logs.")] = False,
    rotate: Annotated[
        str,
        typer.Option(
            "--rotate",
            metavar="60s",
            help="Rows go to a new file so often, and stay lines: for quorate report --follow, while the run goes on.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Measure quorum choices on a live cluster while its replicas fail as a plan says.

    To begin with, copy examples/tiny.toml, and look at what it does: quorate measure tiny.toml --dry-run

    Ctrl-C ends a run early; what was measured until then is kept. `quorate report --input DIR` reads it.

    docs/reference/measurement-plans.md explains plans, docs/reference/measurements.md the files of a run.
    """
    story = Console(stderr=True, highlight=False) if as_json else console()
    rotate_s = _rotation(rotate)
    text = read_text(plan_path, f"The plan {plan_path}")
    plan = parse_plan(text, str(plan_path))
    document = read_document(plan_path.parent / plan.cluster.document) if plan.cluster.document else None
    schedule = schedule_of(plan, document)
    classes = _classes(
        plan, document, (plan_path.parent / plan.cluster.document).parent if document else plan_path.parent
    )
    for sentence in warnings(plan):
        story.print(f"[yellow]Note:[/yellow] {escape(sentence)}")
    if dry_run:
        _tell_schedule(story, plan, schedule)
        answer(as_json, _schedule_as_json(plan, schedule))
        return
    _make_empty(out)
    measured, converted = _run(story, plan, text, document, classes, out, keep, rotate_s)
    missed = list(_missed(out, plan, classes))
    add_notes(out, missed)
    _tell(story, measured, converted, out)
    for sentence in missed:
        story.print(escape(sentence))
    if as_json:
        answer(True, _as_json(measured, converted, out))


def _rotation(text: str) -> float | None:
    """How long rows go to one file, in seconds; None for as long as the run goes on."""
    if not text:
        return None
    try:
        rotate_s = parse_duration(text)
    except BadDuration as error:
        raise Usage(f"--rotate: {error}") from None
    if rotate_s < FLUSH_S:
        raise Usage(f"--rotate {text}: rows are written every {FLUSH_S:g} s; give as much or more, as 60s")
    return rotate_s


def _missed(out: Path, plan: Plan, classes: Mapping[str, type]) -> Iterator[str]:
    """What answers of eventual consistency missed, in words, where there were any."""
    if not (out / HISTORY).is_file():
        return
    types: dict[str, Specification] = {
        name: computed(adt_of(name), PlainClass(classes[adt_of(name)]))
        if adt_of(name) in classes
        else known_types()[adt_of(name)]
        for name in plan.choice_by_object
    }
    with users_code("the code of a type fails"):
        yield from (f"{sentence_of(found)}." for found in missed_in(out / HISTORY, types))


def _make_empty(out: Path) -> None:
    with used_as_folder(out, "--out"):
        out.mkdir(parents=True, exist_ok=True)
        is_used = any(out.iterdir())
    if is_used:
        raise Usage(f"{out} is not empty; nothing was changed. Name a new folder with --out.")


def _classes(plan: Plan, document: ClusterDocument | None, folder: Path) -> Mapping[str, type]:
    """The classes of the plan's own types, by type, from the folder of what names them."""
    types = own_types_of(plan, document)
    classes = {name: class_of(types, name, folder) for name in types}
    plain = {}
    for name, found in classes.items():
        with users_code(f"{types[name]}, the type {name}, is no data type"):
            plain[name] = PlainClass(found)
    check_calls(plan, plain, None if document is None else document.limits)
    return classes


def _run(
    story: Console,
    plan: Plan,
    text: str,
    document: ClusterDocument | None,
    classes: Mapping[str, type],
    out: Path,
    keep: bool,
    rotate_s: float | None,
) -> tuple[Measured, Converted | None]:
    if document is not None:
        setting = Setting(
            out, document, None, text, token=read_token(), made=_MADE, classes=classes, rotate_s=rotate_s
        )
        measured = _measured(story, plan, setting)
    else:
        with _cluster(story, plan, out, keep) as cluster:
            setting = Setting(
                out, cluster.document, cluster, text, made=_MADE, classes=classes, rotate_s=rotate_s
            )
            measured = _measured(story, plan, setting)
        _tidy(story, cluster.root, keep=keep or bool(measured.course.deaths))
    if rotate_s is not None:
        return measured, None
    with busy(story, "Writing Parquet"):
        return measured, convert(out)


@contextmanager
def _cluster(story: Console, plan: Plan, out: Path, keep: bool) -> Iterator[LocalCluster]:
    root = Path(tempfile.mkdtemp(prefix="cluster-", dir=out)).resolve()
    try:
        with LocalCluster.create(
            root, replicas=len(plan.replicas), rules=plan.rules, types=plan.types
        ) as cluster:
            yield cluster
    except KeyboardInterrupt:
        _tidy(story, root, keep=keep)
        raise
    except BaseException:
        _tidy(story, root, keep=True)
        raise


def _tidy(story: Console, root: Path, *, keep: bool) -> None:
    """Take away what the replicas have left, or say where it is."""
    if keep:
        story.print(f"Data folders and logs of the replicas: {escape(str(root))}", soft_wrap=True)
    else:
        shutil.rmtree(root, ignore_errors=True)


def _measured(story: Console, plan: Plan, setting: Setting) -> Measured:
    try:
        with ExitStack() as shown:
            measured = asyncio.run(_until_signal(plan, setting, _Shown(story, plan, shown)))
    except NotStarted as error:
        raise Failure(str(error)) from None
    if not measured.outcomes:
        raise Failure("Nothing was measured: the run ended before its first operation did.")
    return measured


class _Shown:
    """The `Onlooker` that shows one thing at a time: what begins, then the bar of time."""

    def __init__(self, story: Console, plan: Plan, shown: ExitStack) -> None:
        self._story: Final = story
        self._plan: Final = plan
        self._shown: Final = shown
        self._bar: Reached | None = None

    def begins(self, what: str) -> None:
        self._shown.close()
        self._shown.enter_context(busy(self._story, what))

    def reached(self, elapsed_s: float) -> None:
        if self._bar is None:
            self._shown.close()
            length_s = self._plan.length_s
            self._story.print(
                f"  {_rate(self._plan):g} operations a second for {duration_text(length_s)}; Ctrl-C ends it early"
            )
            self._bar = self._shown.enter_context(time_bar(self._story, "measuring", length_s))
        self._bar(elapsed_s)


async def _until_signal(plan: Plan, setting: Setting, onlooker: Onlooker) -> Measured:
    """The first signal ends the run cleanly, the second at once."""
    return await measure(plan, setting, set_at_signal(), onlooker)


def _rate(plan: Plan) -> float:
    return sum(sum(each.rates.values()) * len(each.choices) for each in plan.workloads)


def _tell_schedule(story: Console, plan: Plan, schedule: Schedule) -> None:
    scale = plan.time.scale
    rows: list[tuple[float, float, str, str, str]] = [
        (each.start_s, each.end_s, each.replica, each.kind, each.cause) for each in schedule.outages
    ]
    rows += [
        (each.start_s, each.end_s, f"{each.asker} - {each.replica}", "parted", each.cause)
        for each in schedule.partings
    ]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("from", "for", "plan time", "who", "how", "why"):
        table.add_column(title, no_wrap=True, justify="right" if title in ("from", "for") else "left")
    for start_s, end_s, who, how, why in sorted(rows):
        planned = f"{duration_text(start_s * scale)} for {duration_text((end_s - start_s) * scale)}"
        table.add_row(f"{start_s:.1f} s", f"{end_s - start_s:.1f} s", planned, who, how, why)
    story.print(table)
    for workload in plan.workloads:
        rates = ", ".join(f"{name} {rate:g}/s" for name, rate in workload.rates.items())
        names = ", ".join(choice.name for choice in workload.choices)
        prefill = (
            f", {prefill_of(workload, plan.length_s)} items in each at the start"
            if workload.type == "queue"
            else ""
        )
        story.print(f"{workload.type}: {rates} on each of {escape(names)}{prefill}")
    story.print(
        f"Faults: {len(rows)}. Load: {_rate(plan):g} operations a second from {len(plan.cluster.front_ends)} front ends, "
        f"{_rate(plan) * plan.length_s:.0f} in all; {duration_text(plan.length_s)} of real time for "
        f"{duration_text(plan.time.duration)} of the plan."
    )


def _schedule_as_json(plan: Plan, schedule: Schedule) -> dict[str, Any]:
    return {
        "length_s": plan.length_s,
        "operations_per_s": _rate(plan),
        "outages": [asdict(each) for each in schedule.outages],
        "partings": [asdict(each) for each in schedule.partings],
    }


def _tell(story: Console, measured: Measured, converted: Converted | None, out: Path) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("choice", "operation", "ok", "unavailable", "unknown", "answered"):
        table.add_column(title, no_wrap=True, justify="left" if title in ("choice", "operation") else "right")
    for row in outcome_rows(measured.outcomes):
        share = f"{100 * row['ok'] / (row['ok'] + row['unavailable'] + row['unknown']):.2f}%"
        counts = (str(row[name]) for name in ("ok", "unavailable", "unknown"))
        table.add_row(row["choice"], row["operation"], *counts, share)
    story.print(table)
    for sentence in measured.course.notes:
        story.print(f"[yellow]Note:[/yellow] {escape(sentence)}")
    if converted is not None:
        story.print(escape(converted.sentence))
    story.print(
        f"Measured for {duration_text(measured.length_s)}; it is in {escape(str(out))}.", soft_wrap=True
    )


def outcome_rows(outcomes: Mapping[tuple[str, str, str], int]) -> list[dict[str, Any]]:
    """How often each operation of each choice came to which outcome, in the order in which they were first met."""
    keys = dict.fromkeys((choice, operation) for choice, operation, _ in outcomes)
    return [
        {"choice": choice, "operation": operation}
        | {each: outcomes.get((choice, operation, each), 0) for each in ("ok", "unavailable", "unknown")}
        for choice, operation in sorted(keys)
    ]


def _as_json(measured: Measured, converted: Converted | None, out: Path) -> dict[str, Any]:
    return {
        "out": str(out.resolve()),
        "length_s": measured.length_s,
        "whole": measured.course.is_whole,
        "outcomes": outcome_rows(measured.outcomes),
        "probes": measured.probes,
        "notes": measured.course.notes,
        "parquet": converted is not None and converted.is_parquet,
        "rows_left_as_lines": 0 if converted is None else converted.left,
        "run": str((out / RUN).resolve()),
    }
