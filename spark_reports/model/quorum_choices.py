"""Quorum choices as a report asks about them: those that were run, and every other valid one of the type.

Owns the step from numbers of votes and from quorum systems to one form, the system that must be up for an event class,
so that whoever counts up-sets need not know what a choice was made of.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...adts.specification import EventClass, Kind, Specification, operation_of
from ...quorums.choices.assignment import Assignment, is_empty
from ...quorums.choices.choice import Ordering
from ...quorums.choices.choices import Choice as Numbers
from ...quorums.choices.choices import Replication, constraints_of, minimal_choices
from ...quorums.systems.systems import BadQuorums, System, both
from ...quorums.systems.systems import votes as votes_system

CANDIDATES_MAX: Final = 100
"""Where a type has more minimal choices, only those are kept that none beats in the votes its operations need."""

Types = Mapping[str, Specification]
"""The data types that are known, by name: those of the catalogue, and one's own."""

TYPED: Final = "typed"
READ_WRITE: Final = "read-write"
RUN: Final = "run"


@dataclass(frozen=True, slots=True)
class ClassQuorum:
    """The quorums of one event class; the numbers are None where they are quorum systems."""

    event_class: EventClass
    initial: System
    final: System
    initial_votes: int | None = None
    final_votes: int | None = None

    @property
    def operation(self) -> str:
        """The operation of the class: `Deq` of `Deq/Empty`."""
        return operation_of(self.event_class)

    @property
    def needed(self) -> System:
        """Who must be up: an initial and a final quorum, which may be the same replicas."""
        return both(self.initial, self.final)

    @property
    def needed_votes(self) -> int | None:
        """Votes that must be live: the larger quorum, since both may be the same replicas."""
        if self.initial_votes is None or self.final_votes is None:
            return None
        return max(self.initial_votes, self.final_votes)

    @property
    def shown(self) -> tuple[str, str]:
        """Initial and final quorum in words."""
        return _shown(self.initial, self.initial_votes), _shown(self.final, self.final_votes)


def _shown(system: System, number: int | None) -> str:
    if number is None:
        return "0" if is_empty(system) else str(system)
    return str(number)


def of_votes(event_class: EventClass, sizes: tuple[int, int], votes: Mapping[str, int]) -> ClassQuorum:
    """The quorums of numbers of votes; BadQuorums when there are not so many."""
    initial, final = sizes
    return ClassQuorum(event_class, votes_system(votes, initial), votes_system(votes, final), initial, final)


@dataclass(frozen=True, slots=True)
class Choice:
    """A quorum choice by its event classes, in order; `run_as` is its name in run.json, None for one that was not run.

    `ordering` is `quorum` where blind operations read an initial quorum first.
    """

    name: str
    adt: str
    ordering: str
    kind: str
    run_as: str | None
    classes: tuple[ClassQuorum, ...]

    @property
    def operations(self) -> tuple[str, ...]:
        """Its operations, in the order of its classes."""
        return tuple(dict.fromkeys(each.operation for each in self.classes))

    def normal_class(self, operation: str) -> ClassQuorum:
        """Give the class that stands for an operation whose outcomes differ in their quorums.

        It is `<operation>/Ok`, or, where the choice has no such class, the one that needs the most votes, or comes first.
        Whoever asks for a Deq wants an item, so `Deq/Ok` decides whether Deq is available, not `Deq/Empty`.
        """
        own = [each for each in self.classes if each.operation == operation]
        normal = [each for each in own if each.event_class == f"{operation}/Ok"]
        return normal[0] if normal else max(own, key=lambda each: each.needed_votes or 0)

    def is_read_write(self) -> bool:
        """Whether blind operations read an initial quorum before they write."""
        return self.ordering == "quorum"


def is_valid(choice: Choice, operations: Sequence[str], types: Types) -> bool:
    """Whether, for these operations, every initial quorum meets the final quorums that its type says it must.

    What was run is measured as it was, valid or not; but only a valid choice can be recommended. Of a type that is not known
    nothing can be said, so it passes.
    """
    specification = types.get(choice.adt)
    if specification is None or not set(operations) <= set(specification.kinds):
        return True
    ordering: Ordering = "quorum" if choice.is_read_write() else "clock"
    constraints = constraints_of(specification, operations, ordering=ordering)
    initials: dict[str, System] = {}
    for each in choice.classes:
        if each.operation in constraints.outcomes:
            own = initials.get(each.operation)
            initials[each.operation] = each.initial if own is None else both(own, each.initial)
    finals = {
        each.event_class: each.final for each in choice.classes if each.event_class in constraints.classes
    }
    try:
        Assignment(constraints, initials, finals)
    except BadQuorums:
        return False
    return True


def is_blind(adt: str, operation: str, types: Types) -> bool:
    """Whether typed quorums let the operation go without reading."""
    specification = types.get(adt)
    return specification is not None and specification.kinds.get(operation) is Kind.BLIND


def all_choices(
    run_choices: Sequence[Choice],
    used: Mapping[str, Sequence[str]],
    votes: Mapping[str, int],
    types: Types,
) -> tuple[Choice, ...]:
    """Give the run's choices and every other valid one of each type, for the operations in `used` by type.

    A run's choice with the quorums of a minimal one stands in its place, under the name it has in the run.
    """
    found: list[Choice] = []
    for adt, operations in used.items():
        own = [choice for choice in run_choices if choice.adt == adt]
        minimal = _minimal(adt, types.get(adt), operations, votes)
        matched: set[str] = set()
        for candidate in minimal:
            twin = next((choice for choice in own if _same(choice, candidate)), None)
            if twin is not None:
                matched.add(twin.name)
            found.append(candidate if twin is None else replace(twin, kind=candidate.kind))
        found += [choice for choice in own if choice.name not in matched]
    return tuple(_named_apart(found))


def _same(choice: Choice, candidate: Choice) -> bool:
    """Whether the run's choice has the candidate's quorums, for all operations that the candidate is about."""
    if choice.is_read_write() != candidate.is_read_write():
        return False
    own = {each.event_class: (each.initial_votes, each.final_votes) for each in choice.classes}
    return all(
        own.get(each.event_class) == (each.initial_votes, each.final_votes) for each in candidate.classes
    )


def _minimal(
    adt: str, specification: Specification | None, operations: Sequence[str], votes: Mapping[str, int]
) -> list[Choice]:
    if specification is None or not set(operations) <= set(specification.kinds):
        return []
    kinds: tuple[tuple[str, str, Replication], ...] = (
        (TYPED, "clock", "typed"),
        (READ_WRITE, "quorum", "versions"),
    )
    found = []
    for kind, ordering, replication in kinds:
        constraints = constraints_of(specification, operations, replication=replication)
        try:
            # Read/write quorums that only trade reads for writes of one operation differ in nothing that is asked here.
            rows = minimal_choices(constraints, votes, "inclusion" if kind == TYPED else "by-operation")
            if len(rows) > CANDIDATES_MAX:
                rows = minimal_choices(constraints, votes, "by-operation")[:CANDIDATES_MAX]
        except BadQuorums:
            continue  # more combinations than can be gone through: the run's own choices are still answered for
        found += [_candidate(adt, kind, ordering, row, votes) for row in rows]
    return found


def _candidate(adt: str, kind: str, ordering: str, row: Numbers, votes: Mapping[str, int]) -> Choice:
    classes = tuple(of_votes(name, sizes, votes) for name, sizes in row.classes.items())
    made = Choice("", adt, ordering, kind, None, classes)
    parts = []
    for operation in made.operations:
        normal = made.normal_class(operation)
        parts.append(f"{operation} ({normal.initial_votes}, {normal.final_votes})")
    return replace(made, name=("read/write " if kind == READ_WRITE else "") + ", ".join(parts))


def _named_apart(choices: Iterable[Choice]) -> Iterable[Choice]:
    taken: set[str] = {choice.name for choice in choices if choice.run_as is not None}
    for choice in choices:
        name = choice.name
        while choice.run_as is None and name in taken:
            name += " (not run)"
        taken.add(name)
        yield replace(choice, name=name)


def used_operations(
    choices: Sequence[Choice], attempted: Collection[tuple[str, str]], mix: Mapping[str, float]
) -> dict[str, tuple[str, ...]]:
    """Give the operations that count, by type: those of the mix, else those attempted, else those of the choices."""
    used = {}
    for adt in dict.fromkeys(choice.adt for choice in choices):
        own = [choice for choice in choices if choice.adt == adt]
        listed = tuple(dict.fromkeys(name for choice in own for name in choice.operations))
        tried = {operation for name, operation in attempted if name in {choice.name for choice in own}}
        if mix and set(mix) <= set(listed):
            used[adt] = tuple(name for name in listed if name in mix)
        else:
            used[adt] = tuple(name for name in listed if name in tried) or listed
    return used
