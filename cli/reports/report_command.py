"""`quorate report`: what each quorum choice gave, or would have given, from measurements.

Takes the words apart; `quorate.spark_reports.report` does the rest.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...measurement.plan.durations import BadDuration, parse_duration
from ..failure import EXIT_FAILED, Usage
from ..output import AsJson, answer, console, reported
from ..progress import busy
from ..quorums.data_types import type_named
from ..quorums.input import by_name, number, percent, whole_number
from .follow import follow_command, objectives_in_force, reports_there
from .observed import prepare

ENGINES: Final = ("auto", "spark", "python")
_WORKING: Final = {
    "auto": "Making the report with Spark (--engine python is quicker for little data)",
    "spark": "Making the report with Spark",
    "python": "Making the report in plain Python",
}
SLO_EXAMPLE: Final = "Enq=99.9,Deq=99"
SINCE_EXAMPLE: Final = "2026-11-30T12:00Z=Enq (0, 3), Deq (3, 3)"


InputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="DIR|FILE|URI",
        help="A measured run, a folder of probes, a CSV trace, or saved JSON of a Prometheus range query; a URI, as s3a://BUCKET/probes, "
        "is read by Spark's file systems; may be left out with --store or --cluster. Repeat it for the probes of several observers.",
    ),
]
StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="DIR|URI",
        help="Keep there what the probes of each day come to: of the input only days that are new or changed are read.",
    ),
]
ClusterOption = Annotated[
    str,
    typer.Option(
        "--cluster",
        "-c",
        metavar="FILE|DIR|URL|NAME",
        help="Which cluster. Its file, the folder of `quorate up`, or a replica's URL: its replicas are asked for what they saw (`quorate serve "
        "--probe-log`). With --store, its name there; a running cluster has that of its file.",
    ),
]
OutOption = Annotated[
    str, typer.Option("--out", "-o", metavar="DIR|URI", help="Folder for the report; made if missing.")
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="auto|spark|python",
        envvar="QUORATE_REPORT_ENGINE",
        help="auto: Spark, or plain Python where there is no Java. python is quicker for little data.",
    ),
]
MasterOption = Annotated[
    str, typer.Option("--master", metavar="URL", help="Run Spark, and where: local[*], spark://HOST:PORT, …")
]
MemoryOption = Annotated[
    str,
    typer.Option(
        "--driver-memory",
        metavar="SIZE",
        help="Memory of Spark's Java process here: 4g, 512m; else by the input and the cores.",
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A setting of Spark, as spark-submit takes it; repeat it for more.",
    ),
]
TypeOption = Annotated[
    str,
    typer.Option(
        "--type",
        metavar="TYPE",
        help="What the replicas keep, where no run says so: queue, …, or your own class as FILE.py:NAME.",
    ),
]
VotesOption = Annotated[
    str,
    typer.Option(
        "--votes", metavar="r1=1,r2=1,…", help="Replicas that count, with their votes; all, one each."
    ),
]
MixOption = Annotated[
    str,
    typer.Option(
        "--mix", metavar="Enq=1,Deq=1", help="How often each operation is wanted; as tried, or alike."
    ),
]
LabelOption = Annotated[
    str, typer.Option("--label", help="The label of Prometheus that tells replicas apart.")
]
StepOption = Annotated[
    float | None,
    typer.Option(
        "--step",
        metavar="SECONDS",
        help="Time between samples; their median, where left out. A new --store needs it, and keeps it.",
    ),
]
LagOption = Annotated[
    float,
    typer.Option("--lag", metavar="SECONDS", help="An attempt so near to a change counts as met by it."),
]
FromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="TIME",
        help="Only probes and operations from then on count: a date or time (UTC), as 2026-11-01 or 2026-11-01T12:00Z, or seconds.",
    ),
]
ToOption = Annotated[
    str,
    typer.Option("--to", metavar="TIME", help="Only those before then count; a date is its first moment."),
]
LastOption = Annotated[
    str,
    typer.Option(
        "--last",
        metavar="30d",
        help="Only those of so long before --to, or before the end of the data, count; of a running cluster, before now.",
    ),
]
SloOption = Annotated[
    list[str] | None,
    typer.Option(
        "--slo",
        metavar="Enq=99.9,Deq=99",
        help="Service level objectives in percent, by operation or event class; repeat it, or separate by commas. Exit code 1 where the "
        "choice in force misses one.",
    ),
]
PresentOption = Annotated[
    str,
    typer.Option(
        "--present",
        metavar="CHOICE",
        help="The quorum choice in force, as the report names it: what --slo judges; those that were run, or majorities.",
    ),
]
SinceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--since",
        metavar="TIME=CHOICE",
        help="When the choice in force changed, and to which: --present then names the one before the first. Repeat it, in the order of time. "
        "--slo judges each in its own time.",
    ),
]
FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow",
        help="Go on: make the report of the last hour, or of --last, anew as new files come to --input, until Ctrl-C or SIGTERM. Each file is "
        "taken once, and must be whole; a later run goes on from --out.",
    ),
]
EveryOption = Annotated[
    str, typer.Option("--every", metavar="60s", help="With --follow: how often to look for new files.")
]


@reported
def report(
    *,
    input_paths: InputOption = None,
    out: OutOption = "out/report",
    store: StoreOption = "",
    cluster: ClusterOption = "",
    engine: EngineOption = "auto",
    master: MasterOption = "",
    driver_memory: MemoryOption = "",
    conf: ConfOption = None,
    type_name: TypeOption = "",
    votes: VotesOption = "",
    mix: MixOption = "",
    label: LabelOption = "instance",
    step_s: StepOption = None,
    lag_s: LagOption = 1.0,
    from_time: FromOption = "",
    to_time: ToOption = "",
    last: LastOption = "",
    slo: SloOption = None,
    present: PresentOption = "",
    since: SinceOption = None,
    follow: FollowOption = False,
    every: EveryOption = "60s",
    as_json: AsJson = False,
) -> None:
    """What each quorum choice gave, or would have given, while these replicas failed as they did.

    For a measured run: availability measured beside predicted, and why they differ. For other people's data, with --type:
    what every valid quorum choice would have given. For a running cluster, with --cluster: the same, from what its replicas saw of each other.
    Spark computes it, within this process; no knowledge of it is needed.

    Exit codes: 0, and every objective of --slo is met by the choice in force; 1, one is missed, or the report could not be made; 2, the
    command line or the input is wrong.
    """
    if engine not in ENGINES:
        raise Usage(f"--engine {engine}: use {', '.join(ENGINES)}")
    wanted: dict[str, Any] = {
        "engine": engine,
        "master": master or None,
        "driver_memory": driver_memory or None,
        "conf": dict(map(_setting, conf or ())),
        "adt": type_named(type_name) if type_name else None,
        "votes": by_name(votes, "--votes", whole_number) if votes else {},
        "mix": _mix(mix),
        "label": label,
        "step_s": step_s,
        "lag_s": lag_s,
        "slo": by_name(",".join(slo), "--slo", _share, SLO_EXAMPLE) if slo else {},
        "present": present or None,
        "store": store or None,
        "cluster": cluster or None,
    }
    story = Console(stderr=True, highlight=False) if as_json else console()
    with _known_errors():
        wanted["asked"] = _asked(from_time, to_time, last)
        wanted["changes"] = [_change(each) for each in since or ()]
        if follow:
            follow_command(
                story, input_paths or [], out, wanted, every_s=_seconds(every, "--every"), as_json=as_json
            )
            return
        prepared = prepare(story, input_paths or [], out, wanted)
        made = _made(story, prepared.place, out, prepared.wanted)
    made = replace(made, notes=(*prepared.notes, *made.notes))
    for note in made.notes:
        story.print(escape(note), soft_wrap=True)
    if as_json:
        answer(True, _as_json(made, has_objectives=bool(slo)))
    else:
        _tell_made(story, made)
    _end(made.figures)


def _as_json(made: Any, *, has_objectives: bool) -> dict[str, Any]:
    """What was made, for programs."""
    paths = {"html": made.html, "figures": made.json, "tables": made.tables, "parquet": made.parquet}
    shown = {name: None if path is None else str(path.resolve()) for name, path in paths.items()}
    commands, _ = _commands(made)
    told = {"recommendations": _recommended(made.figures), "commands": commands}
    told |= {"objectives": objectives_in_force(made.figures)} if has_objectives else {}
    return shown | {"notes": list(made.notes)} | told


def _tell_made(story: Console, made: Any) -> None:
    """The same for people."""
    _tell(story, made.figures)
    for sentence in _sentences(made.figures):
        story.print(escape(sentence), soft_wrap=True)
    story.print(f"The report: [bold]{escape(str(made.html.resolve()))}[/bold]", soft_wrap=True)
    _tell_commands(story, *_commands(made))


def _mix(words: str) -> dict[str, float]:
    """How often each operation is wanted; nothing where that is not said."""
    shares = by_name(words, "--mix", number, "Enq=1,Deq=1") if words else {}
    return {name: float(share) for name, share in shares.items()}


def _setting(word: str) -> tuple[str, str]:
    """A setting of Spark as key and value."""
    key, equals, value = word.partition("=")
    if not (key and equals):
        raise Usage(f"--conf {word}: write KEY=VALUE, as spark.executor.memory=8g")
    return key, value


def _end(figures: Any) -> None:
    """Ends with the exit code for objectives that are missed, after everything is said and written."""
    from ...spark_reports.text import objectives  # noqa: PLC0415 - an extra

    if not objectives.are_met(figures):
        raise typer.Exit(EXIT_FAILED)


def _share(word: str) -> Fraction:
    """An objective in percent as a share."""
    percentage = number(word)
    if not 0 < percentage < 100:
        raise ValueError("a percentage above 0 and below 100, which would leave no error budget")
    return percentage / 100


def _asked(from_time: str, to_time: str, last: str) -> Any:
    """The time that is asked for."""
    from ...spark_reports.model.period import Asked, read_moment  # noqa: PLC0415 - an extra

    moments: dict[str, int | None] = {}
    for option, text in (("--from", from_time), ("--to", to_time)):
        try:
            moments[option] = read_moment(text) if text else None
        except ValueError as error:
            raise Usage(f"{option} {text}: write {error}") from None
    last_us = round(_seconds(last, "--last") * 1e6) if last else None
    return Asked(moments["--from"], moments["--to"], last_us)


def _change(word: str) -> Any:
    """When which choice came into force."""
    from ...spark_reports.figures.derive_regimes import Since  # noqa: PLC0415 - an extra
    from ...spark_reports.model.period import read_moment  # noqa: PLC0415

    time_text, equals, choice = word.partition("=")
    if not (equals and choice.strip()):
        raise Usage(f"--since {word}: write TIME=CHOICE, as '{SINCE_EXAMPLE}'")
    try:
        return Since(read_moment(time_text.strip()), choice.strip())
    except ValueError as error:
        raise Usage(f"--since {word}: before the = write {error}") from None


def _seconds(text: str, option: str) -> float:
    """A duration that an option gives."""
    try:
        return parse_duration(text)
    except BadDuration as error:
        raise Usage(f"{option}: {error}") from None


def _made(story: Console, input_path: Any, out: str, wanted: dict[str, Any]) -> Any:
    with reports_there():
        from ...spark_reports.report import Options, make_report  # noqa: PLC0415 - an extra
    with busy(story, _WORKING["python" if wanted["store"] else wanted["engine"]]):
        return make_report(input_path, out, Options(**wanted))


@contextmanager
def _known_errors() -> Iterator[None]:
    from ...spark_reports.model.errors import ReportError  # noqa: PLC0415 - an extra

    try:
        yield
    except ReportError as error:
        raise Usage(str(error)) from error


def _recommended(figures: Any) -> list[dict[str, Any]]:
    return [
        {"adt": row.adt, "choice": row.choice, "served": row.served, "run": row.run_as is not None}
        for row in figures.recommendations
    ]


def _sentences(figures: Any) -> list[str]:
    """What a choice in force that changed gave, what switching quorums would have won, and what became of objectives, as a terminal shows it."""
    from ...spark_reports.model.phrases import NO_BREAK  # noqa: PLC0415 - an extra
    from ...spark_reports.text import adaptive, objectives, regimes  # noqa: PLC0415

    told = [*regimes.sentences(figures), *adaptive.sentences(figures), *objectives.sentences(figures)]
    return [sentence.replace(NO_BREAK, " ") for sentence in told]


def _commands(made: Any) -> tuple[list[str], list[str]]:
    """The commands that apply the advice, and what to know of them."""
    from ...spark_reports.text import advice  # noqa: PLC0415 - an extra

    return advice.commands(made.figures, made.advice), advice.hints(made.figures)


def _tell_commands(story: Console, commands: list[str], hints: list[str]) -> None:
    if not commands:
        return
    story.print("To apply it to a running cluster (first with --dry-run, which only shows):")
    for line in hints + commands:
        story.print(f"  {escape(line)}", soft_wrap=True)


def _tell(story: Console, figures: Any) -> None:
    """The table of choices, and which one to take."""
    for best in figures.recommendations:
        mix = ", ".join(f"{percent(row.share)} {row.operation}" for row in best.mix)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"{best.adt}: {mix}", title_justify="left")
        table.add_column("quorum choice")
        for operation in (row.operation for row in best.mix):
            table.add_column(operation, justify="right", no_wrap=True)
        table.add_column("of the mix", justify="right", no_wrap=True)
        for candidate in (row for row in figures.candidates if row.adt == best.adt):
            own = {row.operation: row for row in figures.counterfactuals if row.choice == candidate.choice}
            cells = [percent(own[row.operation].predicted_joint) for row in best.mix]
            name = candidate.choice + (" (run)" if candidate.run_as else "")
            style = "bold" if candidate.recommended else "" if candidate.on_front else "dim"
            table.add_row(escape(name), *cells, percent(candidate.served), style=style)
        story.print(table)
        story.print(_best(best, sum(row.adt == best.adt for row in figures.candidates)))


def _best(best: Any, candidates: int) -> str:
    """Which choice to take, or that it does not matter."""
    if candidates > 1 and len(best.tied) >= candidates - 1:
        return f"No choice is better than another here: each serves {percent(best.served)} of this mix."
    return f"Most of this mix is served by {escape(best.choice)}: {percent(best.served)}."
