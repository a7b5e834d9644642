"""The tables of regimes, where the choice in force changed within the time of a report. Pure."""

from ..model.aggregates import microseconds
from ..model.figures import AsItWasFigures, Figures, RegimeFigures
from ..model.phrases import NO_VALUE, duration, maybe_duration, maybe_percent, moment, percent
from ..text.regimes import changed
from .tables import Cell, Cells, Columns, Table, prose, table, text


def regimes(figures: Figures) -> Table:
    """Give each operation in each regime, under its own choice and under the recommended one; no row where nothing changed."""
    rows = [_regime(row) for row in figures.regimes if changed(figures, row.adt)]
    columns: Columns = [
        prose("From"), text("Operation"), "Available", "Recommended choice", "Downtime", "Outages", "Longest outage", "Mean time to repair",
    ]  # fmt: skip
    return table("Each regime under the choice that was in force in it, from joint up times", columns, rows)


def _regime(row: RegimeFigures) -> Cells:
    known = f"{duration(row.known_s)} known" if row.known_s else "nothing known"
    return [
        Cell(moment(microseconds(row.from_s)), f"{row.adt}: {row.choice}, {known}"),
        row.operation,
        maybe_percent(row.available),
        maybe_percent(row.recommended_available),
        duration(row.downtime_s),
        f"{row.outages:,}",
        duration(row.longest_s) if row.outages else NO_VALUE,
        maybe_duration(row.mttr_s),
    ]


def as_it_was(figures: Figures) -> Table:
    """Give the mix and each operation over all regimes, beside one choice or rule all along; no row where nothing changed."""
    rows = [_whole(row) for row in figures.as_it_was if changed(figures, row.adt)]
    columns: Columns = [prose("Served"), "As it was", "Recommended choice alone", "Best standing rule"]
    return table(
        "The whole time as it was, beside the recommended choice and the best standing rule", columns, rows
    )


def _whole(row: AsItWasFigures) -> Cells:
    return [
        Cell(
            f"{row.adt}: {row.operation or 'the mix'}",
            "" if row.operation else f"recommended: {row.recommended}",
        ),
        percent(row.available),
        percent(row.recommended_available),
        maybe_percent(row.adaptive_available),
    ]
