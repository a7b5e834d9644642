"""What is asked of a trace: which quorum systems, and whether each up-set that occurred holds a quorum of them.

Both engines count up-sets first, which are few, and only then learn from here which of them are enough for what. So an
engine never evaluates a quorum system, and a system of any form costs the same.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...quorums.systems.systems import System, is_quorum
from .quorum_choices import Choice, Types, all_choices, used_operations


@dataclass(frozen=True, slots=True)
class Questions:
    """The choices to answer for, and the distinct systems behind them.

    `used` gives the operations that count, by type; `run_systems` the number of the system that decides about each
    operation that was tried; `types` what is known of data types.
    """

    choices: tuple[Choice, ...]
    used: Mapping[str, tuple[str, ...]]
    systems: tuple[System, ...]
    run_systems: Mapping[tuple[str, str], int]
    types: Types

    def number(self, system: System) -> int:
        """The number of a system."""
        return self.systems.index(system)


def ask(
    run_choices: Sequence[Choice],
    adts: Mapping[str, Sequence[str]],
    votes: Mapping[str, int],
    attempted: Collection[tuple[str, str]],
    mix: Mapping[str, float],
    types: Types,
) -> Questions:
    """Give the questions for a run's choices, or for the types in `adts` (with their operations) where none was run."""
    used = used_operations(run_choices, attempted, mix)
    used |= {adt: tuple(operations) for adt, operations in adts.items() if adt not in used}
    choices = all_choices(run_choices, used, votes, types)
    systems = dict.fromkeys(each.needed for choice in choices for each in choice.classes)
    order = {system: number for number, system in enumerate(systems)}
    by_name = {choice.name: choice for choice in run_choices}
    return Questions(
        choices=choices,
        used=used,
        systems=tuple(systems),
        run_systems={
            (name, operation): order[by_name[name].normal_class(operation).needed]
            for name, operation in sorted(attempted)
        },
        types=types,
    )


def names_of(up: int, replicas: Sequence[str]) -> frozenset[str]:
    """The replicas whose bit is set."""
    return frozenset(name for index, name in enumerate(replicas) if up >> index & 1)


def deciding(
    systems: Sequence[System], up_sets: Iterable[int], replicas: Sequence[str]
) -> dict[tuple[int, int], bool]:
    """For each (number of a system, up-set), whether the up-set holds a quorum of it."""
    named = {up: names_of(up, replicas) for up in up_sets}
    return {
        (number, up): is_quorum(system, names)
        for number, system in enumerate(systems)
        for up, names in named.items()
    }
