"""The tables of choices: the answer, what every choice would have given, and one choice against another. Pure."""

from collections.abc import Sequence
from typing import Final

from ..model.figures import (
    CandidateFigures,
    ClaimFigures,
    ComparisonFigures,
    CounterfactualFigures,
    Figures,
    OperationFigures,
    OutageFigures,
    SummaryFigures,
)
from ..model.phrases import NO_BREAK, NO_VALUE, counted, duration, listed, maybe_duration, percent, signed
from ..text.adaptive import condition
from ..text.regimes import changed
from .tables import Cell, Cells, Columns, Table, prose, table, text

ANSWER_ROWS_MAX: Final = 8
KINDS: Final = {"typed": "typed", "read-write": "read/write", "run": "as it was run"}


def adts(figures: Figures) -> list[str]:
    """Give the data types that the report speaks of, in order of their first candidate."""
    return list(
        dict.fromkeys([row.adt for row in figures.candidates] + [row.adt for row in figures.operations])
    )


def between(low: float | None, high: float | None) -> str:
    """Write an interval of shares; nothing where there is none."""
    return "" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def summary(figures: Figures) -> Table:
    """Give each operation under the recommended choice, if one is to be preferred, and under those in force.

    Operations of which a choice has the same to say share a row.
    """
    kinds = adts(figures)
    operations: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for row in figures.summary:
        if row.present or preferred(figures, row.adt) == row.choice:
            cells = (
                percent(row.available),
                duration(row.downtime_month_s),
                duration(row.longest_s),
                maybe_duration(row.mttr_s),
            )
            operations.setdefault((row.adt, f"{row.choice}: {_role(figures, row)}", cells), []).append(
                row.operation
            )
    order = list(dict.fromkeys((adt, choice) for adt, choice, _ in operations))
    rows: list[Cells] = [
        [Cell(listed(names) if len(kinds) == 1 else f"{adt}: {listed(names)}", choice), *cells]
        for (adt, choice, cells), names in sorted(
            operations.items(), key=lambda item: order.index(item[0][:2])
        )
    ]
    scaled = "; times are those of the plan" if figures.window.time_scale != 1 else ""
    columns: Columns = [
        prose("Operation"),
        "Available",
        "Downtime in 30 days",
        "Longest outage",
        "Mean time to repair",
    ]
    return table(f"The recommended choice and the one in force, from joint up times{scaled}", columns, rows)


def _role(figures: Figures, row: SummaryFigures) -> str:
    parts = ["recommended"] if preferred(figures, row.adt) == row.choice else []
    if row.present:
        taken = "in force at the end" if changed(figures, row.adt) else "taken to be in force"
        parts.append("in force" if row.run_as is not None else taken)
    return ", ".join(parts)


def answer(figures: Figures, adt: str) -> Table:
    """Give the table of the answer: the choices that were run, the recommended one, and if none was run the best ones."""
    candidates = [row for row in figures.candidates if row.adt == adt]
    measured = {(row.choice, row.operation): row for row in figures.operations if row.adt == adt}
    predicted = {(row.choice, row.operation): row for row in figures.counterfactuals if row.adt == adt}
    operations = list(dict.fromkeys(operation for _, operation in [*measured, *predicted]))
    run = {choice for choice, _ in measured}
    shown = [row for row in candidates if row.recommended or row.run_as in run]
    if not measured:
        front = sorted((row for row in candidates if row.on_front), key=lambda row: -row.served)
        best = [row for row in candidates if row.kind == "read-write"]
        shown = [*front, *sorted(best, key=lambda row: -row.served)[:1]]
    unique = list(dict.fromkeys(shown))
    unique.sort(key=lambda row: (not row.recommended, -row.served))
    advised = preferred(figures, adt)
    rows: list[Cells] = [
        _answer_row(row, operations, measured, predicted, advised) for row in unique[:ANSWER_ROWS_MAX]
    ]
    what = "measured" if measured else "predicted from joint up times"
    caption = f"The {adt}: availability of each operation, {what}, and the share of the mix that a choice would serve"
    return table(caption, [text("Quorum choice"), *operations, "Mix served"], rows)


def _answer_row(
    row: CandidateFigures,
    operations: Sequence[str],
    measured: dict[tuple[str, str], OperationFigures],
    predicted: dict[tuple[str, str], CounterfactualFigures],
    advised: str | None,
) -> Cells:
    notes = [KINDS.get(row.kind, row.kind)] if row.kind != "run" else []
    notes += ["recommended"] if row.choice == advised else []
    quorums = _quorums(row, operations, predicted) if row.run_as == row.choice else ""
    cells: Cells = [Cell(row.choice, "; ".join(part for part in (quorums, ", ".join(notes)) if part))]
    for operation in operations:
        tried = measured.get((row.run_as or "", operation))
        expected = predicted.get((row.choice, operation))
        if tried is not None:
            cells.append(Cell(percent(tried.measured), between(tried.low, tried.high)))
        elif expected is not None:
            note = "predicted, not run" if measured else between(expected.low, expected.high)
            cells.append(Cell(percent(expected.predicted_joint), note))
        else:
            cells.append(Cell(NO_VALUE))
    return [*cells, Cell(percent(row.served), "predicted" if measured else between(row.low, row.high))]


def _quorums(
    row: CandidateFigures, operations: Sequence[str], predicted: dict[tuple[str, str], CounterfactualFigures]
) -> str:
    """Write the quorums that a name of the run stands for, where they are numbers of votes."""
    own = [predicted.get((row.choice, operation)) for operation in operations]
    numbers = [each for each in own if each is not None and each.needed_votes is not None]
    return ", ".join(f"{each.operation} ({each.initial},{NO_BREAK}{each.final})" for each in numbers)


def preferred(figures: Figures, adt: str) -> str | None:
    """Give the choice to call recommended; None where all serve alike, which is no reason to prefer one."""
    for row in figures.recommendations:
        others = sum(each.adt == adt for each in figures.candidates) - 1
        if row.adt == adt and (len(row.tied) < others or not others):
            return row.choice
    return None


def candidates(figures: Figures, adt: str, numbers: dict[str, int]) -> Table:
    """Give every candidate with what each operation would have had, in the order of their numbers in the chart."""
    predicted = {(row.choice, row.operation): row for row in figures.counterfactuals if row.adt == adt}
    operations = list(dict.fromkeys(operation for _, operation in predicted))
    rows: list[Cells] = []
    for row in ranked(figures, adt):
        given = [predicted.get((row.choice, operation)) for operation in operations]
        cells = [
            Cell(percent(each.predicted_joint), between(each.low, each.high)) if each else Cell(NO_VALUE)
            for each in given
        ]
        kind = KINDS.get(row.kind, row.kind)
        advised = preferred(figures, adt) == row.choice
        standing = Cell("on it") if row.on_front else Cell("no", f"{row.dominated_by} is better")
        rows.append(
            [
                Cell(f"{numbers[row.choice]}. {row.choice}", _standing(row, kind, advised=advised)),
                *cells,
                Cell(percent(row.served), between(row.low, row.high)),
                percent(row.served_independent),
                NO_VALUE if row.quorum_size is None else f"{row.quorum_size:.3g}",
                standing,
            ]
        )
    caption = f"The {adt}: what every choice would have given on this trace, from joint up times"
    columns: Columns = [
        prose("Quorum choice"), *operations, "Mix served", "Mix served, if independent", "Votes per operation",
        prose("Pareto front"),
    ]  # fmt: skip
    return table(caption, columns, rows)


def _standing(row: CandidateFigures, kind: str, *, advised: bool) -> str:
    run = "not run" if row.run_as is None else "run" if row.run_as == row.choice else f"run as {row.run_as}"
    return ", ".join([kind, run, *(["recommended"] if advised else [])])


def ranked(figures: Figures, adt: str) -> list[CandidateFigures]:
    """Give the candidates of a type: the recommended one, the others by what they would serve."""
    own = [row for row in figures.candidates if row.adt == adt]
    return sorted(own, key=lambda row: (not row.recommended, -row.served))


def counterfactual_outages(figures: Figures, adt: str) -> Table:
    """Give what each choice would have gone without enough, and how often."""
    rows: list[Cells] = [
        [
            row.choice,
            Cell(row.operation),
            Cell(row.initial),
            Cell(row.final),
            percent(row.predicted_independent),
            percent(row.predicted_joint),
            *outage_cells(row.trace),
        ]
        for row in figures.counterfactuals
        if row.adt == adt
    ]
    columns: Columns = [
        prose("Quorum choice"), text("Operation"), prose("Initial quorum"), prose("Final quorum"), "If independent",
        "Joint", "Outages", "Longest", "Mean time to recovery",
    ]  # fmt: skip
    return table(f"The {adt}: quorums and outages of every choice, from the trace", columns, rows)


def outage_cells(outages: OutageFigures) -> list[str]:
    """Give number, longest and mean of outages."""
    longest = duration(outages.longest_s) if outages.outages else NO_VALUE
    return [f"{outages.outages:,}", longest, maybe_duration(outages.mean_s)]


def comparisons(figures: Figures) -> Table:
    """Give each operation under each two choices that were run."""
    caption = "One choice against another: difference of availability, in percentage points"
    rows = [_difference(row, row.choice, row.other) for row in figures.comparisons]
    return table(caption, [prose("Choice"), *DIFFERENCE], rows)


def claim(figures: Figures) -> Table:
    """Give the lecture's claim, one line for each pair of choices and each operation."""
    caption = "Typed quorums against read/write quorums: difference of availability, in percentage points"
    rows = [
        _difference(row, row.typed, row.read_write, "goes without reading" if row.blind else "has to read")
        for row in figures.claim
    ]
    return table(caption, [prose("Typed choice"), *DIFFERENCE], rows)


DIFFERENCE: Final[Columns] = [text("Operation"), "Points, measured", "Points, predicted", text("Verdict")]


def _difference(row: ComparisonFigures | ClaimFigures, choice: str, other: str, note: str = "") -> Cells:
    return [
        Cell(choice, f"instead of {other}"),
        Cell(row.operation, note),
        Cell(signed(row.difference), f"{signed(row.low)} to {signed(row.high)}"),
        signed(row.predicted_joint),
        _verdict(row.difference, certain=row.certain),
    ]


def _verdict(difference: float, *, certain: bool) -> str:
    if not certain or difference == 0:
        return "no clear difference"
    return "more available" if difference > 0 else "less available"


def recommended(figures: Figures) -> Table:
    """Give the recommended choice of each type against the others."""
    rows: list[Cells] = []
    for row in figures.recommendations:
        for other in row.against:
            verdict = _verdict(other.difference, certain=other.certain).replace("available", "served")
            if other.low is not None and other.high is not None:
                note = f"{signed(other.low)} to {signed(other.high)}"
            else:
                note = "" if other.choice in row.tied else "too short for an interval"
            if other.choice in row.tied:
                verdict = "the same"
            name = Cell(row.choice, f"instead of {other.choice}")
            run = "run" if other.run else "not run"
            rows.append([name, Cell(row.adt), run, Cell(signed(other.difference), note), verdict])
    columns: Columns = [
        prose("Recommended"),
        text("Type"),
        text("The other"),
        "Points of the mix",
        text("Verdict"),
    ]
    return table(
        "The recommended choice against those that were run and the best read/write choice", columns, rows
    )


def adaptive(figures: Figures) -> Table:
    """Give the mix and each event class under the recommended choice alone, and under the best standing rule."""
    rows: list[Cells] = []
    for row in figures.adaptive:
        rule = f"{row.normal}; {row.fallback} while {condition(row)}"
        costs = f"{counted(row.switches, 'switch', 'switches')}, joint for {duration(row.joint_s)}, fallback for {duration(row.fallback_s)}"
        shares = [("the mix", row.served_fixed, row.served)]
        shares += [(each.event_class, each.fixed, each.adaptive) for each in row.classes]
        rows += [
            [
                Cell(f"{row.adt}: {what}", f"{rule}: {costs}" if what == "the mix" else ""),
                percent(fixed),
                percent(switched),
                signed(switched - fixed),
            ]
            for what, fixed, switched in shares
        ]
    columns: Columns = [prose("Served"), "Recommended choice alone", "Standing rule", "Points"]
    return table("The best standing rule that was tried, beside the recommended choice alone", columns, rows)


def event_classes(figures: Figures) -> Table:
    """Give each event class of the choices that were run."""
    rows: list[Cells] = [
        [
            row.choice,
            Cell(row.event_class, "stands for its operation" if row.normal else ""),
            Cell(row.initial),
            Cell(row.final),
            f"{row.ok:,}",
            NO_VALUE if row.measured is None else percent(row.measured),
            percent(row.predicted_joint),
            percent(row.predicted_independent),
            Cell(
                duration(row.trace.longest_s) if row.trace.outages else NO_VALUE,
                counted(row.trace.outages, "outage"),
            ),
        ]
        for row in figures.classes
    ]
    columns: Columns = [
        prose("Quorum choice"), text("Event class"), prose("Initial quorum"), prose("Final quorum"), "Answered",
        "Measured", "Joint", "If independent", "Longest outage",
    ]  # fmt: skip
    return table("Event classes of the choices that were run", columns, rows)
