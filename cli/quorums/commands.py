"""`quorate quorums types|depends`: the data types that the quorum calculus knows, and what depends on what.

Owns the group `quorums`, to which other modules add their commands. Asks no replica.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.table import Table

from ...adts.dependency import EVENTS_MAX, Bound, Relation, TooLarge, dependencies
from ...adts.own import Computed
from ...adts.specification import Specification, operation_of
from ...adts.types.catalogue import SPECIFICATIONS, known_types
from ..failure import Usage
from ..groups import Group
from ..output import AsJson, answer, console, reported
from .data_types import TypeArgument, type_named

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
    table = _table("type", "operation", "runs", "outcomes")
    for each in known_types().values():
        for number, (operation, kind) in enumerate(each.kinds.items()):
            name = each.name + (" *" if each.name in SPECIFICATIONS else "")
            terms = ", ".join(class_.partition("/")[2] for class_ in _outcomes(each, operation))
            table.add_row("" if number else name, _signature(each, operation), kind.value, terms)
        table.add_section()
    console().print(table)
    console().print("* offered by the service; the others are for planning.")


@quorums_app.command("depends")
@reported
def depends(
    type_name: TypeArgument,
    events_max: Annotated[
        int, typer.Option("--events", min=1, max=20, help="Search histories of up to so many events.")
    ] = EVENTS_MAX,
    as_json: AsJson = False,
) -> None:
    """Which event classes depend on which, computed from the serial specification, with a witness for each pair.

    The event after + makes the one after ! illegal, which is legal without it. Names with a prime are of the former.
    """
    specification, relation = _searched(type_name, Bound(events_max))
    is_own = isinstance(specification, Computed)
    if as_json:
        declared = None if is_own else relation.table == specification.depends
        answer(True, relation_as_json(specification, relation, declared))
        return
    out = console()
    out.print(_dependency_table(relation))
    for sentence in _sentences(specification, relation, is_own):
        out.print(escape(sentence))


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
                "classes": _outcomes(specification, operation),
            }
            for operation, kind in specification.kinds.items()
        ],
    }


def _outcomes(specification: Specification, operation: str) -> list[str]:
    return [name for name in specification.depends if operation_of(name) == operation]


def _signature(specification: Specification, operation: str) -> str:
    return f"{operation}({', '.join(specification.arguments[operation])})"


def _table(*titles: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def _dependency_table(relation: Relation) -> Table:
    table = _table("event class", "depends on", "if", "witness")
    for name in relation.classes:
        pairs = [(q, witness) for (p, q), witness in relation.pairs.items() if p == name]
        if not pairs:
            table.add_row(name, "nothing")
        for number, (q, witness) in enumerate(pairs):
            conditions = ", ".join(map(str, relation.conditions[name, q]))
            table.add_row("" if number else name, q, escape(conditions), escape(str(witness)))
        table.add_section()
    return table


def _sentences(specification: Specification, relation: Relation, is_own: bool) -> Iterator[str]:
    """What the table does not show."""
    if relation.split_by is not None:
        yield f"Each {relation.split_by} is an object of its own for {', '.join(relation.split)}."
    if relation.complete:
        yield f"Longer histories than {relation.events_max} events add nothing, with these arguments."
    else:
        yield f"Histories of up to {relation.events_max} events were searched; longer ones might add pairs."
    declared = {(p, q) for p, others in specification.depends.items() for q in others}
    missing = [f"{p} on {q}" for p, q in sorted(declared - relation.pairs.keys())]
    if missing:
        yield f"Declared, but not found by so short a search: {', '.join(missing)}."
    elif not is_own:
        yield "This is the table that the type declares."
