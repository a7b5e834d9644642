"""How a run went: what lessens its measurements, and in which sentences a reader is told. Pure."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ..plan.durations import duration_text

LATE_S: Final = 0.25
"""Operations that begin later than this after their time are told of: the machine has too much to do."""


UNENDED: Final = "The run was killed, or is still going on; what was measured until then is kept."


class Course(Struct, frozen=True):
    """What happened beside the plan.

    Attributes:
        is_whole: whether it came to the plan's end.
        not_begun: operations that found no room.
        latest_s: the longest time by which an operation began late.
        missed: outages that were over before their replica was back from an earlier one.
        deaths: of replicas that ended by themselves, each in a sentence.
        refusals: by object, what an operation on it was refused for.
    """

    is_whole: bool
    not_begun: int
    latest_s: float
    missed: int
    deaths: tuple[str, ...]
    refusals: Mapping[str, str] = {}

    @property
    def notes(self) -> list[str]:
        """What a reader of the measurements should know about how they were made, each in a sentence."""
        found = list(self.deaths)
        found += [
            f"Some operations on {object} were refused, and count as unavailable: {why}"
            for object, why in self.refusals.items()
        ]
        if not self.is_whole:
            found.append("The run was ended early; what was measured until then is kept.")
        if self.not_begun:
            found.append(
                f"{self.not_begun} operations had no room to begin and count as unavailable: lower the rates, or the "
                "measurement is of the machine rather than of the choices."
            )
        if self.latest_s > LATE_S:
            found.append(
                f"An operation began {duration_text(self.latest_s)} after its time: the machine had a lot to do, and some "
                "failures may be its own."
            )
        if self.missed:
            found.append(
                f"{self.missed} outages were over before their replica was back from an earlier one."
            )
        return found
