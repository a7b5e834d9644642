"""The sentences about service level objectives: whether the present choice met each, and which choices would have met all. Pure."""

from math import floor
from typing import Final

from ..model.figures import Figures, ObjectiveFigures, VerdictFigures
from ..model.objectives import AS_IT_WAS
from ..model.phrases import NO_BREAK, counted, duration, listed, percent, quoted

ATTEMPTS: Final = "attempts"
CHOICES_MAX: Final = 6


def sentences(figures: Figures) -> list[str]:
    """Give one sentence for each objective under each choice in force, then one for each type: which choices would have met all."""
    return [_told(row) for row in figures.objectives if row.present] + meeting(figures)


def verdicts(figures: Figures) -> list[str]:
    """Give one sentence for each choice in force, for a page that has the rest in a table."""
    return [_verdict(row) for row in figures.verdicts if row.present]


def _verdict(row: VerdictFigures) -> str:
    role = "which was run" if row.run_as is not None else "taken to be in force"
    if row.choice == AS_IT_WAS:
        missed = f"{listed(row.missed)} {'is' if len(row.missed) == 1 else 'are'} missed"
        fate = "every objective is met" if row.met else missed
        return f"For the {row.adt}, as it was, with each choice while it was in force, {fate}."
    did = "meets every objective" if row.met else f"misses {listed(row.missed)}"
    return f"For the {row.adt}, {quoted(row.choice, row.adt)}, {role}, {did}."


def meeting(figures: Figures) -> list[str]:
    """Give one sentence for each type: which choices would have met all objectives."""
    return [_meeting(figures, adt) for adt in dict.fromkeys(row.adt for row in figures.verdicts)]


def are_met(figures: Figures) -> bool:
    """Whether the choices in force met every objective."""
    return all(row.met for row in figures.verdicts if row.present)


def target(row: ObjectiveFigures) -> str:
    """Write an objective as it was asked for: `Enq 99.9 %`."""
    return f"{row.objective}{NO_BREAK}{row.target * 100:.10g}{NO_BREAK}%"


def amount(row: ObjectiveFigures, size: float) -> str:
    """Write so much of an error budget: failures are counted, time is told as a duration."""
    if row.unit != ATTEMPTS:
        return duration(size)
    return counted(floor(size), "failure") if size == floor(size) else f"{size:,.1f} failures"


def of_budget(share: float) -> str:
    """Write a share of an error budget as a percentage, which may be above 100."""
    percentage = share * 100
    near = 95 <= percentage < 105  # where it decides
    digits = ".4g" if near else ",.0f" if percentage >= 9.95 or not percentage else ".2g"
    return f"{percentage:{digits}}{NO_BREAK}%"


def spent(row: ObjectiveFigures) -> str:
    """Write how much of the error budget is spent, as a percentage of it."""
    return of_budget(row.burn_rate)


def left(row: ObjectiveFigures) -> str:
    """Write what is left of the error budget, or by how much it is overspent."""
    return f"{amount(row, row.left)} left" if row.left >= 0 else f"overspent by {amount(row, -row.left)}"


def _told(row: ObjectiveFigures) -> str:
    how = "was" if row.unit == ATTEMPTS else "would have been"
    under = row.choice if row.choice == AS_IT_WAS else f"with {quoted(row.choice, row.adt)}"
    return (
        f"SLO {target(row)} {'met' if row.met else 'missed'}: {under}, {row.objective} {how} available "
        f"{percent(row.availability)}; {spent(row)} of the error budget of {amount(row, row.budget)} is spent, {left(row)}."
    )


def _meeting(figures: Figures, adt: str) -> str:
    own = [row for row in figures.verdicts if row.adt == adt and row.choice != AS_IT_WAS]
    names = [quoted(row.choice, adt) for row in own if row.met and row.valid]
    several = len({row.objective for row in figures.objectives if row.adt == adt}) > 1
    every = "every objective" if several else "the objective"
    if not names:
        return f"For the {adt}, no choice of the {len(own)} looked at meets {every}."
    more = [f"{len(names) - CHOICES_MAX} more"] if len(names) > CHOICES_MAX else []
    verb = "meet" if len(names) > 1 else "meets"
    return f"For the {adt}, {listed([*names[:CHOICES_MAX], *more])} {verb} {every}, of {len(own)} looked at."
