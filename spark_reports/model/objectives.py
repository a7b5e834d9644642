"""Service level objectives: what is asked of availability, the error budget that this leaves, and how fast it is burnt. Pure.

The words are those of Google's *The Site Reliability Workbook*, chapters 2 and 5. The error budget is what may go wrong: one less the objective,
of all attempts, or of the time. The burn rate is the share that did go wrong by the share that may: at 1 the budget is spent exactly
at the end of the period, at 2 after half of it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from ...adts.specification import EventClass, operation_of
from ...quorums.choices.choice import BadChoice, QuorumChoice
from .errors import ReportError
from .questions import Questions
from .quorum_choices import Choice, ClassQuorum

NAMES_MAX: Final = 12

AS_IT_WAS: Final = "as it was"
"""What stands for a choice where several were in force one after the other, each in its own time."""

Sizes = Mapping[EventClass, tuple[int, int]]
"""Initial and final quorums in votes, as a rule of a cluster has them."""
Present = str | Sizes | None
"""What says which choice is in force: its name in the report, or the rule that the objects have; None where nothing does."""


@dataclass(frozen=True, slots=True)
class Tally:
    """How much was seen, and how much of it was bad: attempts, or microseconds. Whole numbers, so that sums are exact."""

    total: int
    bad: int


@dataclass(frozen=True, slots=True)
class Budget:
    """An objective, as a share, held against what was seen, which is something."""

    target: Fraction
    seen: Tally

    @property
    def availability(self) -> Fraction:
        """The share that was good."""
        return 1 - Fraction(self.seen.bad, self.seen.total)

    @property
    def budget(self) -> Fraction:
        """The error budget: how much may be bad."""
        return (1 - self.target) * self.seen.total

    @property
    def left(self) -> Fraction:
        """How much more may be bad; less than nothing where the budget is overspent."""
        return self.budget - self.seen.bad

    @property
    def burn_rate(self) -> Fraction:
        """How often over the budget was spent."""
        return self.seen.bad / self.budget

    @property
    def is_met(self) -> bool:
        """Whether the budget was enough."""
        return self.left >= 0


def added(tallies: Iterable[Tally]) -> Tally:
    """All of them together."""
    every = list(tallies)
    return Tally(sum(each.total for each in every), sum(each.bad for each in every))


def names_of(questions: Questions, adt: str) -> tuple[str, ...]:
    """What an objective of a type may be for: each operation that was measured or can be predicted, then each event class of those."""
    used = questions.used[adt]
    classes = (each.event_class for choice in choices_of(questions, adt) for each in choice.classes)
    return (*used, *dict.fromkeys(name for name in classes if operation_of(name) in used))


def quorum_of(choice: Choice, name: str) -> ClassQuorum | None:
    """The quorums that an objective's name is about: those of the event class, or of the one that stands for the operation."""
    if name in choice.operations:
        return choice.normal_class(name)
    return next((each for each in choice.classes if each.event_class == name), None)


def check(questions: Questions, names: Collection[str], present: Present, votes: Mapping[str, int]) -> None:
    """See that objectives are of something that was measured, and that the present choice is one that was looked at.

    Raises:
        ReportError: the sentence says which there are.
    """
    known = {adt: names_of(questions, adt) for adt in questions.used}
    for name in names:
        if not any(name in own for own in known.values()):
            there = "; ".join(f"{adt}: {', '.join(own)}" for adt, own in known.items())
            raise ReportError(f"--slo names {name}, which nobody measured; there are {there}")
    check_named(questions, present, "--present")
    for adt, own in known.items():
        if set(names) & set(own) and not present_choices(questions, adt, votes, present):
            raise ReportError(
                f"nothing says which choice of the {adt} is in force; name it with --present, as the report has it: {questions.choices[0].name!r}"
            )


def check_named(questions: Questions, present: Present, option: str) -> None:
    """See that a choice that an option names is one that was looked at.

    Raises:
        ReportError: the sentence says which there are.
    """
    choices = [each.name for each in questions.choices]
    if isinstance(present, str) and present not in choices:
        shown = "; ".join(choices[:NAMES_MAX]) + ("; …" if len(choices) > NAMES_MAX else "")
        raise ReportError(f"{option} names {present!r}, which was not looked at; there are {shown}")


def present_choices(
    questions: Questions, adt: str, votes: Mapping[str, int], present: Present
) -> frozenset[str]:
    """The choices in force: the one that is named, or has the quorums of a rule; else those that were run, else majorities, which objects have
    where no rule is for them."""
    own = choices_of(questions, adt)
    if isinstance(present, str) and any(each.name == present for each in own):
        return frozenset({present})
    run = frozenset(each.name for each in own if each.run_as is not None)
    rule = present if isinstance(present, Mapping) else {}
    return run or frozenset(_of_rule(questions, adt, own, votes, rule))


def _of_rule(
    questions: Questions, adt: str, own: Sequence[Choice], votes: Mapping[str, int], rule: Sizes
) -> list[str]:
    """The choice with the quorums of a rule, which fills in majorities for what it leaves out."""
    specification = questions.types.get(adt)
    try:
        default = None if specification is None else QuorumChoice(specification, votes, rule)
    except BadChoice:
        default = None
    if default is None:
        return []
    return [
        each.name
        for each in own
        if not each.is_read_write()
        and all(
            own_class.needed_votes == max(default.sizes(own_class.event_class)) for own_class in each.classes
        )
    ][:1]


def choices_of(questions: Questions, adt: str) -> list[Choice]:
    """The choices that objectives of a type are held against: those that have all operations that count."""
    used = set(questions.used[adt])
    return [each for each in questions.choices if each.adt == adt and used <= set(each.operations)]
