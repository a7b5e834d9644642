"""`quorate types check FILE.py:CLASS`: whether a class is a data type, on simulated clusters as well, what depends on what, and what its
quorums may be."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from ...adts.own import Computed
from ...adts.plain_class import BLIND, OK, PlainClass
from ...adts.specification import EventClass, Kind, operation_of
from ...adts.walk import Step, difference
from ...quorums.choices.assignment import Assignment, of_choice
from ...quorums.choices.choices import Choice, Constraints, constraints_of, minimal_choices
from ...quorums.systems.failures import Independent, availability
from ..failure import EXIT_FAILED, Failure, Usage
from ..groups import Group
from ..output import AsJson, answer, console, reported
from ..quorums.anomalies import wrongly_observing
from ..quorums.commands import relation_as_json
from ..quorums.data_types import computed, own_type
from ..quorums.input import ReplicasOption, percent, replicas_of
from ..quorums.type_tables import blank_table, dependency_table, operation_table, sentences_of
from .simulated import simulated
from .simulation_words import words_of
from .walked import walked_apart

SEEDS: Final = 100
"""About five seconds on one core."""

types_app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Data types of your own: a Python class, whose methods are the operations.",
)


@types_app.callback()
def _group() -> None:
    """With one command, typer would take its word for an argument."""


@types_app.command("check")
@reported
def check(
    type_name: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:CLASS", help="A class, and the file that has it.", show_default=False
        ),
    ],
    replicas: ReplicasOption = None,
    up: Annotated[float, typer.Option("--p", min=0.0, max=1.0, help="How often each replica is up.")] = 0.99,
    seeds: Annotated[
        int,
        typer.Option("--seeds", min=0, help="How many clusters are simulated, each from a seed; 0: none."),
    ] = SEEDS,
    first: Annotated[int, typer.Option("--first", min=0, help="The first seed.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Run every operation from many states, in two processes, and then on simulated clusters whose replicas crash and whose packets are
    lost; then tell what depends on what, and the quorum choices.

    Exit codes: 0 the class is a data type; 1 two processes differ, a blind operation looks at the state, or a cluster is not linearizable; 2 it
    is none.
    """
    text, colon, name = type_name.rpartition(":")
    if not colon:
        raise Usage(f"{type_name!r} names no class: write FILE.py:CLASS")
    steps = _agreed(type_name, Path(text), name)
    own = computed(type_name, own_type(Path(text), name))
    _check_blind(own)
    if problem := wrongly_observing(own):
        raise Failure(problem)
    votes = replicas_of(replicas, None)
    constraints = constraints_of(own, None)
    choices = minimal_choices(constraints, votes, "inclusion")
    shares = [_shares(of_choice(constraints, each, votes), Fraction(str(up))) for each in choices]
    states = len({step.before for step in steps} - {""})
    if not as_json:
        console().print(f"The same in two processes: {len(steps):,} steps, from {states:,} states.")
    came = simulated(Path(text), name, first, seeds) if seeds else None
    if as_json:
        told = {"steps": len(steps), "states": states} | ({"simulated": came.for_json()} if came else {})
        rows = [_as_json(each, found) for each, found in zip(choices, shares, strict=True)]
        answer(True, told | dict(relation_as_json(own, own.relation, None)) | {"choices": rows})
    elif came is not None:
        answer(False, None, "\n".join(words_of(came, name, seeds)))
    if came is not None and came.broken is not None:
        raise typer.Exit(EXIT_FAILED)
    if not as_json:
        _print(own, constraints, list(zip(choices, shares, strict=True)), len(votes), up)


def _agreed(type_name: str, file: Path, name: str) -> Sequence[Step]:
    """The steps that two processes took alike; raises Failure where they did not."""
    here, there = walked_apart(file, name)
    differs = difference(here, there)
    if differs is not None:
        raise Failure(
            f"{type_name} is not deterministic. {differs}. Replicas could not agree: let what an operation does follow from the state and "
            "its arguments alone, and hand it times, chances and new names as arguments"
        )
    return here


def _check_blind(own: Computed) -> None:
    """Raises Failure where an operation that the class calls blind has an answer that depends on the state."""
    for name in sorted(_named_blind(own)):
        place = f"{own.name}.{BLIND} names {name}"
        if own.kinds[name] is Kind.OBSERVE:
            raise Failure(f"{place}, which changes nothing: there is nothing to store. Take it out")
        if own.kinds[name] is Kind.DECIDE:
            ends = ", ".join(each.partition("/")[2] for each in own.depends if operation_of(each) == name)
            raise Failure(
                f"{place}, which ends with {ends}, by the state: whoever calls a blind operation is told {OK} before it runs. "
                f"Take it out of {BLIND}, or let it end {OK} whatever the state"
            )


def _named_blind(own: Computed) -> frozenset[str]:
    return own.serial.blind if isinstance(own.serial, PlainClass) else frozenset()


def _print(
    own: Computed,
    constraints: Constraints,
    choices: Sequence[tuple[Choice, Mapping[str, Fraction]]],
    votes: int,
    up: float,
) -> None:
    """What depends on what, and the quorum choices with their availability."""
    out = console()
    out.print()
    out.print(operation_table([own]))
    out.print(dependency_table(own.relation))
    for sentence in sentences_of(own, own.relation, is_own=True):
        out.print(escape(sentence))
    out.print(
        f"\nMinimal quorum choices of {votes} replicas, each up {percent(up)} of the time: the votes that an operation "
        "reads and writes at most, and how often it finds them.\n"
    )
    shown = blank_table(*constraints.outcomes)
    for each, found in choices:
        shown.add_row(
            *(f"{_votes(each, names)} {percent(found[name])}" for name, names in constraints.outcomes.items())
        )
    out.print(shown)
    out.print(
        "These are for planning. Served on replicas, blind operations share the quorums of one event class, Blind/Ok, and all others those of "
        "Call/Ok: majorities, where no rule says otherwise."
    )
    could_be = [
        name for name, kind in own.kinds.items() if kind is Kind.BLIND and name not in _named_blind(own)
    ]
    if could_be and isinstance(own.serial, PlainClass):
        words = ", ".join(map(repr, could_be))
        out.print(
            f"No answer of {', '.join(could_be)} depends on the state. Where it returns None, {escape(f'{BLIND} = ({words},)')} in the class "
            "lets it be stored without a look: quicker, and with fewer replicas."
        )


def _shares(assignment: Assignment, up: Fraction) -> Mapping[str, Fraction]:
    """How often each operation finds its quorums, however it ends."""
    model = Independent(dict.fromkeys(assignment.replicas, up))
    return {name: availability(assignment.needed_of(name), model) for name in assignment.constraints.outcomes}


def _votes(choice: Choice, outcomes: Sequence[EventClass]) -> tuple[int, int]:
    sizes = [choice.classes[name] for name in outcomes]
    return max(each.initial for each in sizes), max(each.final for each in sizes)


def _as_json(choice: Choice, shares: Mapping[str, Fraction]) -> Mapping[str, Any]:
    return {
        "classes": {name: list(sizes) for name, sizes in choice.classes.items()},
        "availability": {name: float(share) for name, share in shares.items()},
    }
