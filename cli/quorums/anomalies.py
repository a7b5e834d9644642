"""What eventual consistency buys: the pairs of the dependency relation that it drops, each with the shortest history that shows it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from ...adts.dependency import Relation
from ...adts.own import Computed
from ...adts.plain_class import OBSERVING, PlainClass
from ...adts.specification import EventClass, Kind, Specification, operation_of
from .type_tables import blank_table


class Anomaly(NamedTuple):
    """An answer of the first class may miss an event of the second that ended before it began."""

    answer: EventClass
    missed: EventClass
    history: str


def observing(specification: Specification) -> frozenset[str]:
    """The operations that read any one replica where objects are of eventual consistency."""
    if isinstance(specification, Computed):
        serial = specification.serial
        return serial.observing if isinstance(serial, PlainClass) else frozenset()
    return frozenset(name for name, kind in specification.kinds.items() if kind is Kind.OBSERVE)


def wrongly_observing(specification: Specification) -> str:
    """Which operations a class calls observing though they change something, in words; empty where there are none."""
    if not isinstance(specification, Computed):
        return ""
    changing = {operation_of(each) for each in specification.changes} & observing(specification)
    names = ", ".join(sorted(changing))
    told = f"{specification.name}.{OBSERVING} names {names}, which may change something: a replica that is behind would not do it"
    return f"{told}. Take that out" if changing else ""


def anomalies(specification: Specification, relation: Relation) -> Iterator[Anomaly]:
    """Those of a type whose relation was searched."""
    weak = observing(specification)
    for (answer, missed), witness in relation.pairs.items():
        if operation_of(answer) in weak:
            yield Anomaly(answer, missed, witness.anomaly)


def anomaly_table(found: Iterator[Anomaly]) -> Table:
    """A row for each."""
    table = blank_table("an answer of", "may miss", "as in the history")
    for each in found:
        table.add_row(each.answer, each.missed, escape(each.history))
    return table


def as_json(found: Iterator[Anomaly]) -> list[Mapping[str, str]]:
    """For programs."""
    return [{"class": each.answer, "misses": each.missed, "history": each.history} for each in found]
