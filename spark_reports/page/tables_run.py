"""The tables of a run: operations and replicas, why measured and predicted differ, what was read and rejected. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Final

from ..model.figures import Figures
from ..model.phrases import (
    NO_VALUE,
    counted,
    duration,
    in_nines,
    maybe_duration,
    maybe_percent,
    percent,
    signed,
)
from .tables import Cell, Cells, Columns, Table, prose, table, text
from .tables_choices import between, outage_cells

STRETCHES: Final = 10
PAIRS_MAX: Final = 12


def operations(figures: Figures) -> Table:
    rows: list[Cells] = []
    for row in figures.operations:
        failed = f"{row.unavailable:,} unavailable, {row.unknown:,} unknown"
        rows.append(
            [
                row.choice,
                Cell(row.operation, f"needs {row.needed_votes} votes" if row.needed_votes else ""),
                Cell(percent(row.measured), between(row.low, row.high)),
                in_nines(row.measured, row.low),
                Cell(percent(row.predicted_joint), _agrees(row.joint_agrees)),
                Cell(percent(row.predicted_independent), _agrees(row.independent_agrees)),
                Cell(f"{row.attempts:,}", failed),
            ]
        )
    columns: Columns = [
        prose("Quorum choice"), text("Operation"), "Measured (95 % interval)", "In nines", "Predicted, joint",
        "Predicted, independent", "Attempts",
    ]  # fmt: skip
    return table("Availability of each operation that was run, measured and predicted", columns, rows)


def gaps(figures: Figures) -> Table:
    rows: list[Cells] = []
    for row in figures.operations:
        cells: Cells = [row.choice, Cell(row.operation)]
        for gap in (row.joint_gap, row.independent_gap):
            short = gap.low is None or gap.high is None
            width = (
                "too short for an interval" if short else f"{signed(gap.low or 0)} to {signed(gap.high or 0)}"
            )
            verdict = "off" if gap.certain else "no clear difference"
            cells += [Cell(signed(gap.difference), width), Cell(verdict)]
        rows.append(cells)
    columns: Columns = [
        prose("Quorum choice"), text("Operation"), "Measured less joint", text("Verdict"), "Measured less independent",
        text("Verdict"),
    ]  # fmt: skip
    return table(
        "Measured less predicted, in percentage points, held together stretch by stretch", columns, rows
    )


def _agrees(agrees: bool) -> str:
    return "within the interval" if agrees else "outside the interval"


def causes(figures: Figures) -> Table:
    rows: list[Cells] = []
    for row in figures.operations:
        cause = row.cause
        parts: Cells = [NO_VALUE] * 5
        if cause is not None:
            steps = (cause.correlation, cause.timing, cause.detection, cause.rest, cause.unknown_state)
            parts = [signed(step) for step in steps]
        name = Cell(row.choice)
        rows.append(
            [name, Cell(row.operation), percent(row.predicted_independent), *parts, percent(row.measured)]
        )
    columns: Columns = [
        prose("Quorum choice"), text("Operation"), "Predicted, independent", "Failing together", "When it was tried",
        "Detection", "The rest", "State unknown", "Measured",
    ]  # fmt: skip
    return table("From the independent prediction to what was measured, in percentage points", columns, rows)


def surprises(figures: Figures) -> Table:
    rows: list[Cells] = [
        [
            row.choice,
            Cell(row.operation),
            f"{row.surprises.failed_near_change:,}",
            f"{row.surprises.ok_near_change:,}",
            Cell(
                f"{row.surprises.unavailable_while_enough + row.surprises.unknown_while_enough:,}",
                f"{row.surprises.unknown_while_enough:,} unknown",
            ),
            f"{row.surprises.ok_while_short:,}",
            f"{row.surprises.outside_trace:,}",
        ]
        for row in figures.operations
        if any(asdict(row.surprises).values())
    ]
    columns: Columns = [
        prose("Quorum choice"), text("Operation"), "Failed near a change", "Answered near a change",
        "Failed although enough were up", "Answered although too few were up", "State unknown",
    ]  # fmt: skip
    made = table(
        "Attempts that ended otherwise than the replicas' state at their start would have it", columns, rows
    )
    return replace(made, note=_others(len(figures.operations) - len(rows), "had no such attempt"))


def outages(figures: Figures) -> Table:
    met = [row for row in figures.operations if row.trace.outages or row.seen.outages]
    rows: list[Cells] = [
        [row.choice, Cell(row.operation), *outage_cells(row.trace), *outage_cells(row.seen)] for row in met
    ]
    columns: Columns = [
        prose("Quorum choice"), text("Operation"), "Outages, from the trace", "Longest", "Mean time to recovery",
        "Outages, as operations saw them", "Longest", "Mean time to recovery",
    ]  # fmt: skip
    made = table("Times in which an operation could not be done", columns, rows)
    return replace(made, note=_others(len(figures.operations) - len(met), "met no outage"))


def _others(number: int, what: str) -> str:
    """Stand for the rows that hold nothing but zeros."""
    return f"{counted(number, 'other operation')} {what}." if number else ""


def replicas(figures: Figures) -> Table:
    racks = any(row.rack is not None for row in figures.replicas)
    rows: list[Cells] = []
    for row in figures.replicas:
        cells: Cells = [
            row.replica,
            *([row.rack or NO_VALUE] if racks else []),
            f"{row.votes}",
            maybe_percent(row.up_share),
        ]
        longest = duration(row.longest_outage_s) if row.outages else NO_VALUE
        cells += [f"{row.outages:,}", longest, maybe_duration(row.mttf_s), maybe_duration(row.mttr_s)]
        rows.append([*cells, duration(row.observed_s)])
    columns: Columns = [
        text("Replica"), *([text("Rack")] if racks else []), "Votes", "Up", "Outages", "Longest outage",
        "Mean time to failure", "Mean time to repair", "Observed for",
    ]  # fmt: skip
    return table("Each replica over the whole time", columns, rows)


def stretches(figures: Figures) -> Table:
    """Give the timeline as numbers: the down share of each replica, and failed operations, in ten stretches of time."""
    bins = len(figures.downtime[0].down_share) if figures.downtime else 0
    edges = [round(index * bins / STRETCHES) for index in range(STRETCHES + 1)]
    spans = [span for span in pairwise(edges) if span[0] < span[1]]
    rows: list[Cells] = []
    for down in figures.downtime:
        shares = [sum(down.down_share[a:b]) / (b - a) for a, b in spans]
        rows.append(
            [
                Cell(down.replica, "share of time down"),
                *(percent(share) if share else "up" for share in shares),
            ]
        )
    for row in figures.timeline:
        counts = [f"{sum(row.failed[a:b]):,} of {sum(row.attempts[a:b]):,}" for a, b in spans]
        rows.append([Cell(f"{row.choice}: {row.operation}", "failed"), *counts])
    headings = [f"from {duration(a * figures.window.bin_s)}" for a, _ in spans]
    return table(
        "Replicas down and operations failed, in stretches of time", [prose("What"), *headings], rows
    )


def live_votes(figures: Figures) -> Table:
    rows: list[Cells] = [
        [counted(row.live_votes, "live vote"), percent(row.measured_share), percent(row.independent_share)]
        for row in figures.live_votes
    ]
    columns: Columns = [text("Votes"), "Share of time, as it was", "Share of time, if independent"]
    return table("How many votes were live", columns, rows)


def pairs(figures: Figures) -> Table:
    """Give the pairs of replicas that fail together most."""
    known = [row for row in figures.correlation.pairs if row.phi is not None]
    known.sort(key=lambda row: -abs(row.phi or 0.0))
    rows: list[Cells] = [
        [
            f"{row.replica} and {row.other}",
            percent(row.both_down),
            percent(row.both_down_independent),
            f"{row.phi:+.2f}".replace("-", "\N{MINUS SIGN}"),
        ]
        for row in known[:PAIRS_MAX]
    ]
    caption = "Pairs of replicas that fail together most" if len(known) > PAIRS_MAX else "Pairs of replicas"
    columns: Columns = [text("Pair"), "Both down", "If independent", "Correlation (\N{MINUS SIGN}1 to 1)"]
    return table(caption, columns, rows)


def latencies(figures: Figures) -> Table:
    rows: list[Cells] = [
        [
            row.choice,
            Cell(row.operation, row.event_class or ""),
            row.outcome,
            f"{row.operations:,}",
            *(duration(value) for value in (row.p50_s, row.p90_s, row.p99_s, row.max_s)),
        ]
        for row in figures.latencies
    ]
    columns: Columns = [
        prose("Quorum choice"), text("Operation"), text("Outcome"), "Operations", "Median", "90 % within",
        "99 % within", "Slowest",
    ]  # fmt: skip
    return table("Latency by choice, event class and outcome", columns, rows)


def prober(figures: Figures) -> Table:
    rows: list[Cells] = [
        [
            row.replica,
            maybe_percent(row.agreed),
            Cell(f"{row.detected:,} of {row.outages:,}", f"{row.missed:,} missed"),
            f"{row.false_alarms:,}",
            Cell(maybe_duration(row.detection_mean_s), f"longest {maybe_duration(row.detection_max_s)}"),
            maybe_duration(row.recovery_mean_s),
            duration(row.watched_s),
        ]
        for row in figures.prober
    ]
    columns: Columns = [
        text("Replica"), "Agreed with the truth", "Outages detected", "False alarms", "Time to detect",
        "Time to see it back", "Watched for",
    ]  # fmt: skip
    return table("What the prober saw of each replica, against the truth", columns, rows)


def rows_read(figures: Figures) -> Table:
    rows: list[Cells] = [
        [row.kind, f"{row.read:,}", f"{row.used:,}", f"{row.rejected:,}"] for row in figures.rows
    ]
    return table("Rows read", [text("Kind"), "Read", "Used", "Kept aside"], rows)


def rejected(figures: Figures) -> Table:
    rows: list[Cells] = [
        [row.source, Cell(row.reason), Cell(f"{row.rows:,}"), Cell(row.example)] for row in figures.rejected
    ]
    return table(
        "Rows kept aside, by reason", [prose("File"), prose("Reason"), "Rows", prose("For example")], rows
    )


def named(caption: str, versions: Mapping[str, str], headings: Sequence[str]) -> Table:
    """Give names and values, such as versions."""
    return table(
        caption, [text(headings[0]), prose(headings[1])], [[name, value] for name, value in versions.items()]
    )
