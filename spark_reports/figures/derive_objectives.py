"""Service level objectives held against every quorum choice: by attempts where it was run and tried, else by the time with enough."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ..model.aggregates import Aggregates
from ..model.days import days_of
from ..model.figures import DayFigures, ObjectiveFigures, VerdictFigures
from ..model.models import US_PER_S, Model
from ..model.objectives import (
    AS_IT_WAS,
    Budget,
    Present,
    Tally,
    added,
    choices_of,
    names_of,
    present_choices,
    quorum_of,
)
from ..model.questions import Questions
from ..model.quorum_choices import Choice, ClassQuorum, is_valid
from ..model.run_document import Run
from .derive_regimes import Regime, choices_in_force, within

ATTEMPTS = "attempts"
SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The objectives, each as a share by the name of an operation or event class, and the choice that is said to be in force."""

    targets: Mapping[str, Fraction]
    present: Present = None


def objectives(
    found: Aggregates,
    run: Run,
    questions: Questions,
    model: Model,
    wanted: Wanted,
    regimes: Sequence[Regime] = (),
) -> tuple[tuple[ObjectiveFigures, ...], tuple[VerdictFigures, ...]]:
    """Each objective under each choice of each type that has what it names, the present choices first; and each such choice by itself. Where several
    were in force one after the other, `as it was` is what is judged."""
    seen = _Seen(found, run, model)
    rows: list[ObjectiveFigures] = []
    verdicts: list[VerdictFigures] = []
    for adt in questions.used:
        names = [name for name in wanted.targets if name in names_of(questions, adt)]
        if not names:
            continue
        several = len(regimes) > 1 and choices_in_force(questions, adt, run.votes, regimes)
        if several:
            parts = [
                (_Seen(replace(found, spans=tuple(within(found.spans, each))), run, model), choice)
                for each, choice in zip(regimes, several, strict=True)
            ]
            was = [row for name in names for row in _as_it_was(parts, name, wanted.targets[name])]
            rows += was
            verdicts.append(_verdict_on(was, names, adt))
        present = frozenset() if several else present_choices(questions, adt, run.votes, wanted.present)
        choices = sorted(choices_of(questions, adt), key=lambda each: each.name not in present)
        own = [
            row
            for name in names
            for choice in choices
            for row in _row(seen, choice, name, wanted.targets[name], choice.name in present)
        ]
        rows += own
        verdicts += [_verdict(choice, names, own, questions, choice.name in present) for choice in choices]
    return tuple(rows), tuple(verdicts)


def _verdict(
    choice: Choice,
    names: Sequence[str],
    rows: Sequence[ObjectiveFigures],
    questions: Questions,
    present: bool,
) -> VerdictFigures:
    met = {row.objective for row in rows if row.choice == choice.name and row.met}
    missed = tuple(name for name in names if name not in met)
    return VerdictFigures(
        adt=choice.adt,
        choice=choice.name,
        run_as=choice.run_as,
        present=present,
        valid=choice.run_as is None or is_valid(choice, questions.used[choice.adt], questions.types),
        met=not missed,
        missed=missed,
    )


def _verdict_on(rows: Sequence[ObjectiveFigures], names: Sequence[str], adt: str) -> VerdictFigures:
    """The verdict on the choices that were in force, each in its own time."""
    met = {row.objective for row in rows if row.met}
    missed = tuple(name for name in names if name not in met)
    return VerdictFigures(adt, AS_IT_WAS, None, present=True, valid=True, met=not missed, missed=missed)


def _as_it_was(
    parts: "Sequence[tuple[_Seen, Choice]]", name: str, target: Fraction
) -> Iterator[ObjectiveFigures]:
    """The objective over all regimes; nothing where the choice of one of them has no such event class."""
    days: dict[int, Tally] = {}
    for seen, choice in parts:
        quorum = quorum_of(choice, name)
        if quorum is None:
            return
        for day, tally in seen.of(choice, name, quorum)[1].items():
            days[day] = added([days[day], tally]) if day in days else tally
    (seen, choice), *_ = parts
    yield from _of_days(
        seen, replace(choice, name=AS_IT_WAS, run_as=None), name, target, (SECONDS, days), True
    )


def _row(
    seen: "_Seen", choice: Choice, name: str, target: Fraction, present: bool
) -> Iterator[ObjectiveFigures]:
    """The objective under the choice; nothing where the choice has no such event class, or nothing was seen of it."""
    quorum = quorum_of(choice, name)
    if quorum is not None:
        yield from _of_days(seen, choice, name, target, seen.of(choice, name, quorum), present)


def _of_days(
    seen: "_Seen",
    choice: Choice,
    name: str,
    target: Fraction,
    by_day: tuple[str, dict[int, Tally]],
    present: bool,
) -> Iterator[ObjectiveFigures]:
    unit, days = by_day
    all_days = added(days.values())
    if not all_days.total:
        return
    whole, scale = Budget(target, all_days), seen.size_of(unit)
    yield ObjectiveFigures(
        objective=name,
        target=float(target),
        adt=choice.adt,
        choice=choice.name,
        run_as=choice.run_as,
        present=present,
        unit=unit,
        total=float(all_days.total * scale),
        availability=float(whole.availability),
        budget=float(whole.budget * scale),
        spent=float(all_days.bad * scale),
        left=float(whole.left * scale),
        burn_rate=float(whole.burn_rate),
        met=whole.is_met,
        days=tuple(
            DayFigures(
                day=seen.days.name(number),
                total=float(tally.total * scale),
                spent=float(tally.bad * scale),
                burn_rate=float(Budget(target, tally).burn_rate),
            )
            for number, tally in sorted(days.items())
        ),
    )


class _Seen:
    """What was seen on each day: attempts, and how long which replicas were up together."""

    def __init__(self, found: Aggregates, run: Run, model: Model) -> None:
        self.model = model
        self.days = days_of(found.span, run.time_scale)
        self.attempts: dict[tuple[str, str], dict[int, Tally]] = defaultdict(dict)
        for choice, operation, day, attempts, ok in found.days:
            self.attempts[choice, operation][day] = Tally(attempts, attempts - ok)
        self.up_us: dict[tuple[int, int], int] = defaultdict(int)
        for view, start_us, end_us, up in found.spans:
            for day, time_us in self.days.parts(start_us, end_us):
                self.up_us[day, up] += time_us * model.members.get(view, 0)

    def of(self, choice: Choice, name: str, quorum: ClassQuorum) -> tuple[str, dict[int, Tally]]:
        """The unit, and what was seen on each day of which anything is known.

        Attempts that failed had no event class: they count for one only where the operation has no other.
        """
        classes = [each for each in choice.classes if each.operation == quorum.operation]
        tried = self.attempts.get((choice.run_as or "", quorum.operation))
        if tried is not None and (name == quorum.operation or len(classes) == 1):
            return ATTEMPTS, tried
        enough = self.model.enough(quorum.needed)
        total: dict[int, int] = defaultdict(int)
        bad: dict[int, int] = defaultdict(int)
        for (day, up), time_us in self.up_us.items():
            total[day] += time_us
            bad[day] += 0 if up in enough else time_us
        return SECONDS, {day: Tally(us, bad[day]) for day, us in total.items() if us}

    def size_of(self, unit: str) -> Fraction:
        """One of what is counted, in the unit; times are the mean over front ends."""
        return (
            Fraction(1) if unit == ATTEMPTS else Fraction(1, int(US_PER_S) * sum(self.model.members.values()))
        )
