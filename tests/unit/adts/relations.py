"""What the search finds for each type, once for all tests that ask; and types drawn by their answers."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from quorate.adts.dependency import Bound, Relation, dependencies
from quorate.adts.specification import Invocation, Response
from quorate.adts.types.catalogue import known_types
from tests.unit.adts.brute_force import short_lists

SHORT = short_lists()


@cache
def relation_of(adt: str) -> Relation:
    """As far as the search goes."""
    return dependencies(known_types()[adt])


@cache
def short_relation_of(adt: str) -> Relation:
    """As far as a search by brute force goes, over as few arguments."""
    specification, events_max = SHORT[adt]
    return dependencies(specification, Bound(events_max))


class Drawn:
    """A type drawn as its answers: `answers[state, operation]` is the state after it, and how it ends. No answer: it waits."""

    name = "drawn"
    results: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - a test's constant

    def __init__(self, start: str, arguments: Mapping[str, tuple[str, ...]], answers: dict[Any, Any]) -> None:
        self.arguments = {name: {"x": values} if values else {} for name, values in arguments.items()}
        self._start = start
        self._answers = answers

    def initial(self) -> str:
        """See SerialSpecification."""
        return self._start

    def step(self, state: str, invocation: Invocation) -> tuple[str, Response]:
        """See SerialSpecification."""
        return self.outcomes(state, invocation)[0]

    def outcomes(self, state: str, invocation: Invocation) -> list[tuple[str, Response]]:
        """See Nondeterministic."""
        found = self._answers.get((state, invocation.operation, *invocation.args))
        return [] if found is None else [(found[0], Response(found[1]))]
