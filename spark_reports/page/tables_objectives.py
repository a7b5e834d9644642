"""The tables of service level objectives: the error budgets of the choices in force, what each day burnt, and every choice. Pure."""

from ..model.figures import Figures, ObjectiveFigures, VerdictFigures
from ..model.phrases import NO_VALUE, percent
from ..text.objectives import ATTEMPTS, amount, left, of_budget, spent, target
from .tables import Cell, Cells, Columns, Table, prose, table, text


def budgets(figures: Figures) -> Table:
    """Give each objective under each choice in force: its error budget, spent and left."""
    rows: list[Cells] = [
        [
            Cell(target(row), row.choice),
            "met" if row.met else "missed",
            Cell(percent(row.availability), "measured" if row.unit == ATTEMPTS else "predicted"),
            amount(row, row.budget),
            Cell(amount(row, row.spent), f"{spent(row)} of the budget"),
            left(row),
        ]
        for row in figures.objectives
        if row.present
    ]
    columns: Columns = [prose("Objective"), text("Verdict"), "Available", "Error budget", "Spent", "Left"]
    return table("Service level objectives under the choice in force", columns, rows)


def burn_by_day(figures: Figures) -> Table:
    """Give what each day burnt under the choices in force: the burn rate, and the share of the budget of the whole time."""
    own = [row for row in figures.objectives if row.present]
    several = len({row.choice for row in own}) > 1
    by_day = [{day.day: day for day in row.days} for row in own]
    rows: list[Cells] = []
    for name in _days(own):
        cells: Cells = [name]
        for row, days in zip(own, by_day, strict=True):
            day = days.get(name)
            share = 0.0 if day is None else day.spent / row.budget
            cells.append(
                Cell(NO_VALUE)
                if day is None
                else Cell(f"{day.burn_rate:.3g}", f"{of_budget(share)} of the budget")
            )
        rows.append(cells)
    headings = [f"{target(row)}, {row.choice}" if several else target(row) for row in own]
    return table(
        "Burn rate of each day (1 spends the error budget exactly in the time of this report)",
        [text("Day"), *headings],
        rows,
    )


def _days(rows: list[ObjectiveFigures]) -> list[str]:
    """Every day of any of them, in order: the rows with most days have all that others have, but for days without attempts."""
    longest = sorted(rows, key=lambda row: -len(row.days))
    found = dict.fromkeys(day.day for row in longest for day in row.days)
    return sorted(found, key=lambda name: (len(name), name))


def every_choice(figures: Figures, adt: str) -> Table:
    """Give every objective under every choice of a type."""
    rows = {(row.objective, row.choice): row for row in figures.objectives if row.adt == adt}
    names = list(dict.fromkeys(objective for objective, _ in rows))
    shown: list[Cells] = []
    for verdict in (each for each in figures.verdicts if each.adt == adt):
        own = [rows.get((name, verdict.choice)) for name in names]
        cells = [
            Cell(NO_VALUE)
            if row is None
            else Cell(
                percent(row.availability),
                f"{'met' if row.met else 'missed'}: {spent(row)} spent, {left(row)}",
            )
            for row in own
        ]
        shown.append([Cell(verdict.choice, _standing(verdict)), "yes" if verdict.met else "no", *cells])
    headings = [target(next(row for row in rows.values() if row.objective == name)) for name in names]
    caption = f"The {adt}: objectives under every choice, measured where it was run and tried, else predicted"
    return table(caption, [prose("Quorum choice"), text("Meets all"), *headings], shown)


def _standing(row: VerdictFigures) -> str:
    parts = ["in force"] if row.present else ["run"] if row.run_as is not None else ["not run"]
    return ", ".join(parts if row.valid else [*parts, "its quorums can miss each other"])


def adts(figures: Figures) -> list[str]:
    """Give the data types that objectives are for."""
    return list(dict.fromkeys(row.adt for row in figures.verdicts))
