"""Data types of one's own: from a serial specification to all that the quorum calculus asks for. Pure.

Owns the completion of a specification by what a search finds. Who writes `name`, `arguments`, `initial` and `step` need
not know what depends on what.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

from .dependency import DEFAULT, Bound, Relation, dependencies
from .specification import (
    EventClass,
    Invocation,
    Kind,
    Response,
    SerialSpecification,
    outcomes_of,
)


class Computed:
    """A Specification whose kinds, changes and dependency table come from a search; it holds as far as the search went.

    Raises what `dependencies` raises.
    """

    def __init__(self, serial: SerialSpecification, bound: Bound = DEFAULT) -> None:
        self.serial: Final = serial
        self.relation: Final[Relation] = dependencies(serial, bound)
        self.name: Final = serial.name
        self.arguments: Final = serial.arguments
        self.results: Final = serial.results
        self.kinds: Final[Mapping[str, Kind]] = self.relation.kinds
        self.changes: Final[frozenset[EventClass]] = self.relation.changes
        self.depends: Final[Mapping[EventClass, frozenset[EventClass]]] = self.relation.table

    def initial(self) -> Hashable:
        """See SerialSpecification."""
        return self.serial.initial()

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """See SerialSpecification."""
        return self.serial.step(state, invocation)

    def outcomes(self, state: Any, invocation: Invocation) -> Iterable[tuple[Any, Response]]:
        """See Nondeterministic."""
        return outcomes_of(self.serial, state, invocation)
