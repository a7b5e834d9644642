"""Objectives and a summary made up for tests of the page: of Enq at 99.9 %, measured, which the choice in force missed, and of Deq at 99 %, which it met."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from quorate.spark_reports.model.figures import (
    DayFigures,
    Figures,
    ObjectiveFigures,
    SummaryFigures,
    VerdictFigures,
)
from quorate.spark_reports.model.objectives import Budget, Tally


def objective(name: str, target: str, total: int, bad: int, **changes: Any) -> ObjectiveFigures:
    """Give an objective of which everything bad was on the second of two days of equal length."""
    whole, share = Budget(Fraction(target), Tally(total, bad)), Fraction(target)
    return replace(
        ObjectiveFigures(
            objective=name,
            target=float(share),
            adt="queue",
            choice="enq-1",
            run_as="enq-1",
            present=True,
            unit="attempts",
            total=total,
            availability=float(whole.availability),
            budget=float(whole.budget),
            spent=bad,
            left=float(whole.left),
            burn_rate=float(whole.burn_rate),
            met=whole.is_met,
            days=(
                DayFigures("2026-11-01", total / 2, 0, 0.0),
                DayFigures("2026-11-02", total / 2, bad, 2 * float(whole.burn_rate)),
            ),
        ),
        **changes,
    )


def judged(figures: Figures) -> Figures:
    """Give the figures with objectives: the first choice is in force, and misses that of Enq; all others but the last meet both."""
    names = [row.choice for row in figures.candidates]
    rows = [
        (
            name,
            objective("Enq", "0.999", 1000, 5 if index in (0, len(names) - 1) else 1),
            objective("Deq", "0.99", 172_800, 864, unit="seconds"),
        )
        for index, name in enumerate(names)
    ]
    return replace(
        figures,
        objectives=tuple(
            replace(row, choice=name, run_as=name, present=name == names[0])
            for own in zip(*(each[1:] for each in rows), strict=True)
            for name, row in zip(names, own, strict=True)
        ),
        verdicts=tuple(
            VerdictFigures(
                "queue",
                name,
                name,
                name == names[0],
                valid=True,
                met=enq.met,
                missed=() if enq.met else ("Enq",),
            )
            for name, enq, _ in rows
        ),
        summary=tuple(
            SummaryFigures(
                "queue",
                operation,
                name,
                name,
                recommended,
                present,
                available,
                (1 - available) * 2_592_000,
                2,
                900.0,
                600.0,
            )
            for operation in ("Enq", "Deq")
            for name, recommended, present, available in (
                ("enq-2", True, False, 0.999),
                (names[0], False, True, 0.985),
            )
        ),
    )
