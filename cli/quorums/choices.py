"""`quorate quorums choices|availability`: all minimal quorum choices of a data type, and how often each is up."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich import box
from rich.table import Table

from ...adts.specification import operation_of
from ...quorums.choices.assignment import Assignment, of_choice, of_pair
from ...quorums.choices.choice import Ordering
from ...quorums.choices.choices import Choice, Constraints, Replication, Rule, constraints_of, minimal_choices
from ...quorums.choices.minimal import blocking_sets, count_of_sets, shown
from ...quorums.planning.traces import UpTrace
from ...quorums.systems.expressions import parse_system
from ...quorums.systems.failures import Independent, Model, availability
from ...quorums.systems.systems import BadQuorums, System, dual
from ...quorums.systems.systems import replicas_of as named_in
from ..failure import Usage
from ..output import AsJson, answer, console, reported
from .choice_rule import TomlOption, check_offered, offered_text
from .commands import quorums_app
from .data_types import TypeArgument, type_named
from .input import (
    GroupsOption,
    OperationsOption,
    ReplicasOption,
    TraceOption,
    UpOption,
    VotesOption,
    model_of,
    names_of,
    percent,
    replicas_of,
    trace_from,
)

BLOCKING_SHOWN_MAX: Final = 4
BLOCKING_MAX: Final = 2000
"""Blocking sets of votes that are listed at all: there is a list for each choice and class."""

RuleOption = Annotated[
    Rule,
    typer.Option(
        "--rule",
        help="Drop choices that another beats in every quorum (inclusion), or in what each operation needs (by-operation).",
    ),
]
OrderingOption = Annotated[
    Ordering,
    typer.Option("--ordering", help="What orders blind operations: clocks, or reading a quorum first."),
]
ReplicationOption = Annotated[
    Replication,
    typer.Option(
        "--replication",
        help="Typed logs; or, for comparison, the whole state behind read and write quorums, with version numbers or timestamps.",
    ),
]
SystemOption = Annotated[
    list[str] | None,
    typer.Option(
        "--system",
        metavar="READS[|WRITES]",
        help="A quorum system instead of votes, as 'a*b + c*d', 'grid(a,b;c,d)', 'choose(2;a,b,c)'; WRITES: its dual. Repeat it.",
    ),
]


class Question(NamedTuple):
    """What both commands are asked about."""

    constraints: Constraints
    votes: Mapping[str, int]
    choices: Sequence[Choice]


def _asked(
    type_name: str,
    votes: Mapping[str, int],
    rule: Rule,
    operations: str,
    ordering: Ordering,
    replication: Replication,
) -> Question:
    constraints = constraints_of(
        type_named(type_name), names_of(operations), ordering=ordering, replication=replication
    )
    return Question(constraints, votes, minimal_choices(constraints, votes, rule))


@quorums_app.command()
@reported
def choices(
    type_name: TypeArgument,
    replicas: ReplicasOption = None,
    votes: VotesOption = None,
    rule: RuleOption = "inclusion",
    operations: OperationsOption = "",
    ordering: OrderingOption = "clock",
    replication: ReplicationOption = "typed",
    toml: TomlOption = False,
    as_json: AsJson = False,
) -> None:
    """All minimal quorum choices: one line for each, (initial, final) votes for each event class.

    Smaller is not valid: some operation could miss an event that it depends on.
    """
    asked = _asked(type_name, replicas_of(replicas, votes), rule, operations, ordering, replication)
    if toml:
        check_offered(asked.constraints.type_name, replication)
    texts = [
        offered_text(of_choice(asked.constraints, each, asked.votes), ordering, replication)
        for each in asked.choices
    ]
    if as_json:
        rows = [{name: list(sizes) for name, sizes in each.classes.items()} for each in asked.choices]
        answer(True, _heading(asked, rule, ordering, replication) | {"choices": rows, "toml": texts})
        return
    console().print(_title(asked, rule))
    table = Table(box=box.SIMPLE_HEAVY)
    for name in asked.constraints.classes:
        table.add_column(name)
    for each in asked.choices:
        table.add_row(*(str(tuple(sizes)) for sizes in each.classes.values()))
    console().print(table)
    if toml:
        for each, text in zip(asked.choices, texts, strict=True):
            answer(False, None, f"# {each}\n{text}")


@quorums_app.command("availability")
@reported
def availability_of_choices(
    type_name: TypeArgument,
    replicas: ReplicasOption = None,
    votes: VotesOption = None,
    system: SystemOption = None,
    up: UpOption = "",
    group: GroupsOption = None,
    trace: TraceOption = None,
    rule: RuleOption = "inclusion",
    operations: OperationsOption = "",
    ordering: OrderingOption = "clock",
    replication: ReplicationOption = "typed",
    as_json: AsJson = False,
) -> None:
    """How often each event class and operation finds its quorums up, for every minimal choice or for a system; exactly.

    With --trace also how often it did not, for how long at most, and what independent replicas would have predicted.
    """
    parsed = [_pair(text) for text in system or ()]
    if parsed and (replicas, votes) != (None, None):
        raise Usage("--system names its replicas; leave -n and --votes out")
    named = list(dict.fromkeys(name for pair in parsed for each in pair for name in named_in(each)))
    given = dict.fromkeys(named, 1) if parsed else replicas_of(replicas, votes)
    up_trace = trace_from(trace, list(given)) if trace is not None else None
    model = model_of(up, group or (), up_trace, list(given))
    if model is None:
        raise Usage(
            "say how replicas fail: --p 0.99, --p r1=0.99,r2=0.9, --group rack=0.99:r1,r2, or --trace FILE"
        )
    asked = _asked(type_name, given, rule, operations, ordering, replication)
    assignments = [of_choice(asked.constraints, each, given, str(each)) for each in asked.choices]
    if parsed:
        assignments = [of_pair(asked.constraints, *pair, label=" | ".join(map(str, pair))) for pair in parsed]
    rows = [_figures(each, model, up_trace) for each in assignments]
    if as_json:
        answer(True, _heading(asked, rule, ordering, replication) | {"assignments": rows})
        return
    for assignment, row in zip(assignments, rows, strict=True):
        console().print(assignment.label)
        console().print(_availability_table(row, up_trace is not None))


def _pair(text: str) -> tuple[System, System]:
    reads, bar, writes = text.partition("|")
    if not reads.strip() or (bar and not writes.strip()):
        raise Usage(
            f"--system: {text!r} names no {'writes' if reads.strip() else 'reads'}; write READS, or READS|WRITES"
        )
    first = parse_system(reads)
    return first, parse_system(writes) if bar else dual(first)


def _heading(asked: Question, rule: Rule, ordering: Ordering, replication: Replication) -> dict[str, Any]:
    return {
        "type": asked.constraints.type_name,
        "votes": dict(asked.votes),
        "rule": rule,
        "ordering": ordering,
        "replication": replication,
        "classes": list(asked.constraints.classes),
    }


def _title(asked: Question, rule: Rule) -> str:
    given = set(asked.votes.values())
    shown_votes = (
        f"{len(asked.votes)} replicas of one vote"
        if given == {1}
        else "votes " + ", ".join(f"{name} {votes}" for name, votes in asked.votes.items())
    )
    return f"{asked.constraints.type_name}, {shown_votes}; minimal by rule {rule}"


def _figures(assignment: Assignment, model: Model[Fraction], trace: UpTrace | None) -> dict[str, Any]:
    """All figures of an assignment, as the JSON form has them."""
    outcomes = assignment.constraints.outcomes
    return {
        "label": assignment.label,
        "classes": {
            name: _of_system(assignment.needed(name), model, trace) for name in assignment.constraints.classes
        },
        "operations": {
            operation: _of_system(assignment.needed_of(operation), model, trace) for operation in outcomes
        },
    }


def _of_system(system: System, model: Model[Fraction], trace: UpTrace | None) -> dict[str, Any]:
    share = availability(system, model)
    blocking: list[list[str]] | None = None
    if count_of_sets(dual(system)) <= BLOCKING_MAX:
        try:
            blocking = [sorted(each) for each in blocking_sets(system)]
        except BadQuorums:
            blocking = None
    figures = {
        "needs": str(system),
        "availability": float(share),
        "unavailability": float(1 - share),
        "blocked_by": blocking,
    }
    if trace is not None:
        found = trace.outages(system)
        independent = availability(system, Independent(trace.up_shares()))
        figures |= {
            "independent": float(independent),
            "outages": found.outages,
            "longest_outage_s": float(found.longest_s),
            "down_s": float(found.down_s),
            "observed_s": float(found.observed_s),
        }
    return figures


def _availability_table(row: Mapping[str, Any], has_trace: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAVY)
    titles = [
        "event class",
        "up",
        *(["if independent", "outages", "longest"] if has_trace else []),
        "blocked by",
    ]
    for title in titles:
        table.add_column(title, overflow="fold")
    for name, figures in row["classes"].items():
        table.add_row(name, *_cells(figures, has_trace))
    for operation, figures in row["operations"].items():
        names = [name for name in row["classes"] if operation_of(name) == operation]
        if len({row["classes"][name]["needs"] for name in names}) > 1:
            table.add_row(f"{operation}, whatever it is", *_cells(figures, has_trace))
    return table


def _cells(figures: Mapping[str, Any], has_trace: bool) -> list[str]:
    cells = [percent(1 - Fraction(figures["unavailability"]))]
    if has_trace:
        cells += [
            percent(figures["independent"]),
            str(figures["outages"]),
            f"{figures['longest_outage_s']:.6g} s",
        ]
    return [*cells, _blocked(figures["blocked_by"])]


def _blocked(sets: Sequence[Sequence[str]] | None) -> str:
    if sets is None:
        return "(too many sets to list)"
    if not sets:
        return "nothing"
    listed = " ".join(shown(each) for each in sets[:BLOCKING_SHOWN_MAX])
    more = len(sets) - BLOCKING_SHOWN_MAX
    return listed + (f" and {more} more" if more > 0 else "")
