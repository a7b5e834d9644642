"""Data types as tables: their operations, and what depends on what."""

from collections.abc import Collection, Iterable, Iterator

from rich import box
from rich.markup import escape
from rich.table import Table

from ...adts.dependency import Relation
from ...adts.specification import Specification, condition_of, operation_of


def operation_table(specifications: Iterable[Specification], marked: Collection[str] = ()) -> Table:
    """The operations of each type, how each runs, and its outcomes; names of types that are `marked` have a star."""
    table = blank_table("type", "operation", "runs", "outcomes")
    for each in specifications:
        for number, (operation, kind) in enumerate(each.kinds.items()):
            name = each.name + (" *" if each.name in marked else "")
            terms = ", ".join(map(condition_of, outcomes_of(each, operation)))
            table.add_row("" if number else name, _signature(each, operation), kind.value, terms)
        table.add_section()
    return table


def outcomes_of(specification: Specification, operation: str) -> list[str]:
    """The event classes of an operation."""
    return [name for name in specification.depends if operation_of(name) == operation]


def _signature(specification: Specification, operation: str) -> str:
    return f"{operation}({', '.join(specification.arguments[operation])})"


def blank_table(*titles: str) -> Table:
    """A table without rows. Long cells go on in the next line."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold")
    return table


def dependency_table(relation: Relation) -> Table:
    """A row for each pair, with its condition and its witness."""
    table = blank_table("event class", "depends on", "if", "witness")
    for name in relation.classes:
        pairs = [(q, witness) for (p, q), witness in relation.pairs.items() if p == name]
        if not pairs:
            table.add_row(name, "nothing")
        for number, (q, witness) in enumerate(pairs):
            conditions = ", ".join(map(str, relation.conditions[name, q]))
            table.add_row("" if number else name, q, escape(conditions), escape(str(witness)))
        table.add_section()
    return table


def sentences_of(specification: Specification, relation: Relation, is_own: bool) -> Iterator[str]:
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
