"""`quorate quorums types|depends`: the data types that the quorum calculus knows, and what depends on what.

Owns the group `quorums`, to which other modules add their commands. Asks no replica.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from ...adts.dependency import EVENTS_MAX, Bound, Relation, TooLarge, dependencies
from ...adts.own import Computed
from ...adts.specification import Specification
from ...adts.types.catalogue import SPECIFICATIONS, known_types
from ..failure import Usage
from ..groups import Group
from ..output import AsJson, answer, console, reported
from .anomalies import anomalies, anomaly_table, observing, wrongly_observing
from .anomalies import as_json as anomalies_as_json
from .data_types import TypeArgument, type_named
from .type_tables import dependency_table, operation_table, outcomes_of, sentences_of

quorums_app = typer.Typer(
    cls=Group, no_args_is_help=True, help="Which quorums a data type needs, and what they cost."
)


@quorums_app.command("types")
@reported
def types(as_json: AsJson = False) -> None:
    """The data types that the calculus knows: operations, their outcomes, and how each runs.

    Blind operations need no initial quorum, observing ones no final quorum; deciding ones need both.
    """
    if as_json:
        answer(True, {"types": [_type_as_json(each) for each in known_types().values()]})
        return
    console().print(operation_table(known_types().values(), SPECIFICATIONS))
    console().print("* offered by the service; the others are for planning.")


@quorums_app.command("depends")
@reported
def depends(
    type_name: TypeArgument,
    events_max: Annotated[
        int, typer.Option("--events", min=1, max=20, help="Search histories of up to so many events.")
    ] = EVENTS_MAX,
    consistency: Annotated[
        Literal["atomic", "eventual"],
        typer.Option(help="eventual: show what answers may miss then, each with the shortest history."),
    ] = "atomic",
    as_json: AsJson = False,
) -> None:
    """Which event classes depend on which, computed from the serial specification, with a witness for each pair.

    The event after + makes the one after ! illegal, which is legal without it. Names with a prime are of the former.
    """
    specification, relation = _searched(type_name, Bound(events_max))
    is_own = isinstance(specification, Computed)
    if consistency == "eventual" and (problem := wrongly_observing(specification)):
        raise Usage(problem)
    if as_json:
        declared = None if is_own else relation.table == specification.depends
        told = relation_as_json(specification, relation, declared)
        if consistency == "eventual":
            told = {**told, "anomalies": anomalies_as_json(anomalies(specification, relation))}
        answer(True, told)
        return
    out = console()
    if consistency == "eventual":
        _show_anomalies(specification, relation)
        return
    out.print(dependency_table(relation))
    for sentence in sentences_of(specification, relation, is_own):
        out.print(escape(sentence))


def _show_anomalies(specification: Specification, relation: Relation) -> None:
    out, weak = console(), sorted(observing(specification))
    if not weak:
        out.print(
            "No operation is weak: a class of your own names those that may miss changes in "
            f"{escape('observing = (...)')}, and no other one may."
        )
        return
    out.print(
        f"With eventual consistency any one replica answers {', '.join(weak)}. All else stays linearizable."
    )
    out.print(anomaly_table(anomalies(specification, relation)))
    out.print(
        "Once all replicas are up, they soon show the same. Only a change with an unknown outcome may show at some of "
        "them, until the next change."
    )


def _searched(type_name: str, bound: Bound) -> tuple[Specification, Relation]:
    specification = type_named(type_name, bound)
    if isinstance(specification, Computed):
        return specification, specification.relation
    try:
        return specification, dependencies(specification, bound)
    except TooLarge as error:
        raise Usage(f"{error} (--events)") from None


def relation_as_json(
    specification: Specification, relation: Relation, declared: bool | None
) -> Mapping[str, Any]:
    """A relation for programs; docs/reference/types.md says what the keys mean."""
    return {
        "type": specification.name,
        "kinds": {operation: kind.value for operation, kind in specification.kinds.items()},
        "classes": list(relation.classes),
        "changes": sorted(relation.changes),
        "pairs": [
            {
                "class": p,
                "depends_on": q,
                "conditions": list(map(str, relation.conditions[p, q])),
                "witness": {
                    "before": list(map(str, witness.h1)),
                    "inserted": str(witness.q),
                    "between": list(map(str, witness.h2)),
                    "illegal": str(witness.p),
                },
            }
            for (p, q), witness in relation.pairs.items()
        ],
        "split_by": relation.split_by,
        "split": list(relation.split),
        "events_max": relation.events_max,
        "complete": relation.complete,
        "declared": declared,
    }


def _type_as_json(specification: Specification) -> Mapping[str, Any]:
    return {
        "type": specification.name,
        "offered": specification.name in SPECIFICATIONS,
        "operations": [
            {
                "operation": operation,
                "arguments": list(specification.arguments[operation]),
                "kind": kind.value,
                "classes": outcomes_of(specification, operation),
            }
            for operation, kind in specification.kinds.items()
        ],
    }
