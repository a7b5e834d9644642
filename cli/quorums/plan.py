"""`quorate quorums plan`: which votes, choices and systems suit a mix of operations best."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Final

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from ...adts.specification import Specification
from ...quorums.choices.assignment import Assignment
from ...quorums.choices.choices import Constraints, constraints_of
from ...quorums.choices.minimal import shown
from ...quorums.planning.cost import Strategy, Workload, one_mix
from ...quorums.planning.curves import curve
from ...quorums.planning.offers import Offer, Target, parse_target
from ...quorums.planning.search import Setting, candidates_of, expressions_of, plan, thinned
from ...quorums.planning.strategy import MissingSolver, Objective, check_solver
from ...quorums.systems.expressions import parse_system
from ...quorums.systems.failures import Group, Groups, Independent, Joint, Model
from ...quorums.systems.systems import System
from ...quorums.systems.systems import replicas_of as replicas_in
from ..failure import Usage
from ..output import AsJson, answer, console, reported, say
from .choice_rule import TomlOption, check_offered, offered_text
from .choices import OrderingOption, ReplicationOption, RuleOption
from .commands import quorums_app
from .data_types import TypeArgument, type_named
from .input import (
    GroupsOption,
    OperationsOption,
    ReplicasOption,
    TraceOption,
    UpOption,
    by_name,
    event_classes,
    for_each,
    model_of,
    names_of,
    number,
    percent,
    replicas_of,
    time_of,
    trace_from,
)
from .plots import LINES_MAX, Line, plotted

ROWS_SHOWN_MAX: Final = 20
NAMING: Final = "--names"
"""The option that says which replicas there are."""
MANY: Final = 12
"""Of more replicas the distributions of votes are thousands, with a linear program for each: minutes of processor time."""
DEFAULT_UP: Final = "0.99"
"""Where nothing is said about failures, that replicas are up as in Gifford's examples."""

SEARCH_S_MAX: Final = 3600
WITHIN: Final = 1.0
"""Percent by which figures differ that nobody would choose by."""

_LEAST_WORDS: Final = {
    "load": "has the least load",
    "messages": "needs the fewest messages",
    "wait": "waits least",
}

MixOption = Annotated[
    list[str],
    typer.Option(
        "--mix",
        metavar="[SHARE:]Enq=50,Deq=50",
        help="How often each operation (or outcome, as Deq/Empty) happens. Repeat it, each with its share of the time, where that changes: "
        "3:Enq=90,Deq=10. One strategy must then do for all of them.",
    ),
]
LatencyOption = Annotated[
    str,
    typer.Option(
        "--latency",
        metavar="MS | r1=MS,…",
        help="Milliseconds that answers take; 5:9/50:1 is 5 nine times, 50 once.",
    ),
]
CapacityOption = Annotated[
    str,
    typer.Option(
        "--capacity", metavar="N | r1=N,…", help="Quorum accesses that a replica serves in a second (1)."
    ),
]
WriteCapacityOption = Annotated[
    str,
    typer.Option(
        "--write-capacity",
        metavar="N | r1=N,…",
        help="Of final quorums, which are written to; --capacity is then of initial ones.",
    ),
]
WithinOption = Annotated[
    float,
    typer.Option(
        "--within",
        min=0,
        metavar="PERCENT",
        help="Leave out what one that is shown comes so near to in every figure, downtime in place of availability.",
    ),
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="TARGET",
        help="As 'Enq >= 99.99%', 'Deq p50 <= 20ms', 'Deq resilience >= 1', 'capacity >= 2000'; or a limit on whom to ask: 'load <= 0.5', "
        "'messages <= 6', 'wait <= 12ms'. Repeat it.",
    ),
]


NamesOption = Annotated[
    str | None, typer.Option("--names", metavar="a,b,…", help="The replicas' names, instead of -n.")
]
VotesMaxOption = Annotated[
    int | None,
    typer.Option(
        "--votes-max",
        min=1,
        max=10,
        help=f"Try 0 to so many votes each (2; of more than {MANY} replicas 1).",
    ),
]
SystemsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--system", metavar="READS", help="Try this system and its dual, too, as 'a*b + c*d'; repeat it."
    ),
]
DeadOption = Annotated[
    str, typer.Option("--dead", metavar="r1,…", help="Replicas known to be down: plan anew.")
]
LeastOption = Annotated[
    Objective,
    typer.Option(
        "--least",
        help="What those who are asked are chosen for: least load, fewest messages, or least time to wait for just these (with --latency).",
    ),
]
SpareOption = Annotated[
    int, typer.Option("--spare", min=0, help="Ask so many more that any so many may be silent.")
]
SearchOption = Annotated[
    float,
    typer.Option(
        "--search",
        min=0,
        max=SEARCH_S_MAX,
        metavar="SECONDS",
        help="For at most so long also try all systems in which each replica stands once, as 'a*b + choose(2; c, d, e)'.",
    ),
]
PlotOption = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE.svg",
        help=f"Draw load and capacity of the first {LINES_MAX} over the share of the mix's first operation.",
    ),
]
RowsOption = Annotated[int, typer.Option("--rows", min=1, help="Show at most so many.")]


@quorums_app.command("plan")
@reported
def plan_command(
    type_name: TypeArgument,
    mix: MixOption,
    replicas: ReplicasOption = None,
    names: NamesOption = None,
    votes_max: VotesMaxOption = None,
    system: SystemsOption = None,
    up: UpOption = "",
    group: GroupsOption = None,
    trace: TraceOption = None,
    latency: LatencyOption = "",
    capacity: CapacityOption = "",
    write_capacity: WriteCapacityOption = "",
    target: TargetOption = None,
    least: LeastOption = "load",
    spare: SpareOption = 0,
    search: SearchOption = 0.0,
    dead: DeadOption = "",
    rule: RuleOption = "inclusion",
    operations: OperationsOption = "",
    ordering: OrderingOption = "clock",
    replication: ReplicationOption = "typed",
    within: WithinOption = WITHIN,
    plot: PlotOption = None,
    rows: RowsOption = ROWS_SHOWN_MAX,
    toml: TomlOption = False,
    as_json: AsJson = False,
) -> None:
    """Votes, choices and systems for a mix of operations: all those that meet the targets and that no other beats.

    Weighed are the availability of each operation, the load of the busiest replica, messages, round trips, and the
    median time if --latency is given. Load and capacity need scipy (the extra `plan`).
    """
    known = _names(replicas, names)
    specification = type_named(type_name)
    constraints = constraints_of(
        specification, names_of(operations), ordering=ordering, replication=replication
    )
    mixes = [_mix(constraints, specification, each) for each in mix]
    if toml:
        check_offered(specification.name, replication)
    setting = Setting(
        constraints,
        tuple(known),
        _average(mixes),
        _model(up, group or (), trace, known),
        _workload(mixes, capacity, write_capacity, latency, known),
        frozenset(_dead(dead, known)),
        has_loads=_has_solver(),
        optimise=least,
        spare=spare,
    )
    targets = [parse_target(text, setting.operations) for text in target or ()]
    _check_targets(targets, setting)
    _check_strategies(setting)
    systems = [_system(each, known) for each in system or ()]
    most = votes_max or _votes_max(known)
    candidates = candidates_of(setting, votes_max=most, rule=rule, systems=systems)
    front = plan(setting, chain(candidates, _searched(setting, search)), targets)
    offers = thinned(front, within / 100) if within else front
    near = len(front) - len(offers)
    if plot is not None and offers:
        _draw(plot, setting, offers)
    texts = [offered_text(offer.assignment, ordering, replication) for offer in offers[:rows]]
    if as_json:
        answer(True, _as_json(setting, offers[:rows], texts, len(offers), near))
        return
    _show(setting, offers, rows)
    if near:
        say(
            f"quorate: {near} more come within {within:g} % of one of these in every figure: --within 0 shows them"
        )
    for index, text in enumerate(texts if toml else (), 1):
        answer(False, None, f"\n# Offer {index}\n{text}".rstrip())


def _votes_max(known: Sequence[str]) -> int:
    if len(known) <= MANY:
        return 2
    say(
        f"quorate: of more than {MANY} replicas only equal votes are tried; --votes-max 2 tries more, for minutes"
    )
    return 1


def _names(replicas: int | None, names: str | None) -> list[str]:
    if names is None:
        return list(replicas_of(replicas, None))
    if replicas is not None:
        raise Usage("--names says which replicas there are; leave -n out")
    known = names_of(names)
    if known is None:
        raise Usage(f"--names: {names!r} names nobody; write as a,b,c")
    if twice := sorted(name for name in set(known) if known.count(name) > 1):
        raise Usage(f"--names: {twice[0]} is given twice; give it once")
    return known


def _model(up: str, groups: Sequence[str], trace: Path | None, known: Sequence[str]) -> Model[float]:
    up_trace = trace_from(trace, known) if trace is not None else None
    if up_trace is None and not up:
        up = "1" if groups else DEFAULT_UP
    return _rounded(model_of(up, groups, up_trace, known, NAMING))


def _mix(constraints: Constraints, specification: Specification, text: str) -> tuple[float, dict[str, float]]:
    """A mix, and its share of the time."""
    in_front, colon, given = text.rpartition(":")
    share = by_name(f"share={in_front}", "--mix", number)["share"] if colon else Fraction(1)
    if share <= 0:
        raise Usage(f"--mix: {text!r} has no share of the time; give a number above 0")
    shares = event_classes(specification, by_name(given, "--mix", number, "Enq=50,Deq=50"), "--mix")
    return float(share), one_mix(constraints, shares)


def _average(mixes: Sequence[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """How often each event happens over all the time."""
    names = dict.fromkeys(name for _, mix in mixes for name in mix)
    total = sum(share for share, _ in mixes)
    return {name: sum(share * mix.get(name, 0.0) for share, mix in mixes) / total for name in names}


def _workload(
    mixes: Sequence[tuple[float, Mapping[str, float]]],
    capacity: str,
    write_capacity: str,
    latency: str,
    known: Sequence[str],
) -> Workload:
    reads, writes = (
        {name: float(each) for name, each in for_each(text or "1", option, known, number, NAMING).items()}
        for text, option in ((capacity, "--capacity"), (write_capacity or capacity, "--write-capacity"))
    )
    times = for_each(latency, "--latency", known, time_of, NAMING) if latency else {}
    for name in known:
        if times and name not in times:
            raise Usage(f"--latency: nothing is said about replica {name!r}; give it milliseconds")
    return Workload(tuple(mixes), reads, writes, times)


def _rounded(model: Model[Fraction] | None) -> Model[float]:
    """The search measures thousands of candidates: in floats, whose error is below 1e-12."""
    match model:
        case Joint(weights):
            return Joint({up: float(weight) for up, weight in weights.items()})
        case Groups(up, groups):
            single = tuple(Group(each.name, each.members, float(each.up)) for each in groups)
            return Groups({name: float(p) for name, p in up.items()}, single)
        case Independent(up):
            return Independent({name: float(p) for name, p in up.items()})
    raise Usage("say how replicas fail: --p, --group or --trace")


def _system(text: str, known: Sequence[str]) -> System:
    if not text.strip():
        raise Usage("--system: an empty text names nobody; write as 'a*b + c*d'")
    system = parse_system(text)
    for name in replicas_in(system):
        if name not in known:
            raise Usage(
                f"--system: {text!r} names the unknown replica {name!r}; known are {', '.join(known)}; {NAMING} names others"
            )
    return system


def _dead(text: str, known: Sequence[str]) -> list[str]:
    dead = names_of(text) or []
    for name in dead:
        if name not in known:
            raise Usage(
                f"--dead: unknown replica {name!r}; known are {', '.join(known)}; {NAMING} names others"
            )
    return dead


def _has_solver() -> bool:
    try:
        check_solver()
    except MissingSolver as error:
        say(f"quorate: without load, capacity and messages: {error}")
        return False
    return True


def _check_targets(targets: Sequence[Target], setting: Setting) -> None:
    for target in targets:
        if target.is_cost and not setting.has_loads:
            raise Usage(f"the target on {target.figure} needs scipy: pip install 'quorate[plan]'")
        if target.figure in ("p50", "p99", "wait") and not setting.workload.times:
            raise Usage(f"the target on {target.figure} needs answer times: give --latency")


def _check_strategies(setting: Setting) -> None:
    if setting.optimise == "wait" and not setting.workload.times:
        raise Usage("--least wait needs answer times: give --latency")
    if not setting.has_loads and (setting.optimise != "load" or setting.spare):
        raise Usage("--least and --spare need scipy: pip install 'quorate[plan]'")


def _searched(setting: Setting, seconds: float) -> Iterator[Assignment]:
    """All expressions, until the time is over; says how far it came."""
    if not seconds:
        return
    end_s, tried = monotonic() + seconds, 0
    for each in expressions_of(setting):
        if monotonic() >= end_s:
            say(f"quorate: {tried:,} expressions were tried in {seconds:g} s, not all that there are")
            return
        yield each
        tried += 1
    say(f"quorate: all {tried:,} expressions were tried")


def _draw(file: Path, setting: Setting, offers: Sequence[Offer]) -> None:
    if not setting.has_loads:
        raise Usage("--plot needs scipy: pip install 'quorate[plan]'")
    operation = setting.operations[0]
    lines = [
        Line(index, offer.assignment.label, curve(offer.assignment, setting, operation))
        for index, offer in enumerate(offers[:LINES_MAX], 1)
    ]
    try:
        file.write_text(plotted(operation, lines))
    except OSError as error:
        raise Usage(f"--plot: {file} cannot be written ({error.strerror}); give another file") from None
    say(f"quorate: load and capacity over the share of {operation} are drawn in {file}")


def _as_json(
    setting: Setting, offers: Sequence[Offer], texts: Sequence[str | None], count: int, near: int
) -> dict[str, Any]:
    return {
        "type": setting.constraints.type_name,
        "replicas": list(setting.replicas),
        "dead": sorted(setting.dead),
        "mix": {name: float(share) for name, share in setting.mix.items()},
        "found": count,
        "near": near,
        "offers": [
            _offer_as_json(setting, offer) | {"toml": text} for offer, text in zip(offers, texts, strict=True)
        ],
    }


def _offer_as_json(setting: Setting, offer: Offer) -> dict[str, Any]:
    assignment, strategy = offer.assignment, offer.strategy
    return {
        "label": assignment.label,
        "initial": {name: str(system) for name, system in assignment.initials.items()},
        "final": {name: str(system) for name, system in assignment.finals.items()},
        "availability": dict(offer.availability),
        "overall": offer.overall,
        "resilience": dict(offer.resilience),
        "rounds": offer.rounds,
        "p50_ms": _finite(offer.p50_ms),
        "p99_ms": _finite(offer.p99_ms),
        "load": strategy.load if strategy else None,
        "capacity": strategy.capacity if strategy else None,
        "messages": strategy.messages if strategy else None,
        "wait_ms": strategy.wait_ms if strategy and setting.workload.times else None,
        "strategy": _asked(strategy) if strategy else None,
    }


def _finite(times: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if time == float("inf") else time for name, time in times.items()}


def _asked(strategy: Strategy) -> list[dict[str, Any]]:
    return [
        {
            "of": access.of,
            "quorum": "final" if access.is_final else "initial",
            "ask": sorted(replicas),
            "share": share,
        }
        for access, draw in strategy.draws.items()
        for replicas, share in draw
    ]


def _show(setting: Setting, offers: Sequence[Offer], rows: int) -> None:
    out = console()
    if not offers:
        out.print(
            "No candidate meets all targets: lower one, or give less --spare, or more --votes-max, --search, --system or replicas."
        )
        return
    table = Table(box=box.SIMPLE_HEAVY)
    times = setting.operations if setting.workload.times else ()
    titles = ["", *(f"{each} up" for each in setting.operations), *(f"{each} p50" for each in times)]
    titles += ["capacity", "messages"] if setting.has_loads else []
    titles += ["wait"] if setting.has_loads and times else []
    for title in [*titles, "rounds"]:
        table.add_column(title, overflow="fold")
    for index, offer in enumerate(offers[:rows], 1):
        cells = [percent(offer.availability[each]) for each in setting.operations]
        cells += [f"{offer.p50_ms[each]:.4g} ms" for each in times]
        if offer.strategy:
            cells += [f"{offer.strategy.capacity:.4g}/s", f"{offer.strategy.messages:.3g}"]
            cells += [f"{offer.strategy.wait_ms:.4g} ms"] if times else []
        table.add_row(str(index), *cells, f"{offer.rounds:.3g}")
    out.print(table)
    for index, offer in enumerate(offers[:rows], 1):
        out.print(escape(f"{index:>3}  {offer.assignment.label}"))
    if len(offers) > rows:
        out.print(
            f"{len(offers) - rows} more that none beats: --rows {len(offers)} shows all; --target narrows."
        )
    if first := offers[0].strategy:
        out.print(f"The first one {_LEAST_WORDS[setting.optimise]} when these are asked:")
        for line in _strategy_lines(first):
            out.print("  " + escape(line))


def _strategy_lines(strategy: Strategy) -> list[str]:
    of_access: dict[str, list[str]] = {}
    for row in _asked(strategy):
        label = f"{row['of']} {row['quorum']}"
        of_access.setdefault(label, []).append(f"{shown(row['ask'])} {row['share']:.0%}")
    return [f"{label}: " + ", ".join(sorted(asked)) for label, asked in of_access.items()]
