"""The paragraphs that say how the figures came about, fitted to what was run. Pure."""

from typing import Final

from quorate.spark_reports.contract import CONTRADICTS
from quorate.spark_reports.figures import Figures
from quorate.spark_reports.wording import counted, duration, listed
from quorate.spark_reports.wording_answer import Finding, time_scale

KINDS: Final = {
    "run": "a measured run",
    "probes": "the samples of a prober",
    "trace": "a trace of up times",
    "prometheus": "a saved answer of a Prometheus range query",
}
ENGINES: Final = {
    "spark": "Spark computed the figures; plain Python gives the same.",
    "python": "Plain Python computed the figures, without Spark, which gives the same and is for more rows.",
}
FILES_MAX: Final = 8
OUTAGES_FEW: Final = 3
"""Over 200 seeds of the example plan, each need of 2 to 5 votes by itself, the interval held the long-run share in 106 of 134
with one or two outages, in 147 of 156 with three to five, and in none of the 25 without any."""


def how(figures: Figures) -> list[str]:
    """Say what was read, over which time, and what the predictions rest on."""
    source, window = figures.source, figures.window
    files = list(source.files[:FILES_MAX])
    if len(source.files) > FILES_MAX:
        files.append(f"{len(source.files) - FILES_MAX} more")
    read = f"This report was made from {KINDS.get(source.kind, source.kind)}"
    paragraphs = [f"{read} ({listed(files)})." if files else f"{read}."]
    attempts = sum(row.attempts for row in figures.operations)
    if attempts:
        ran = f", run by {counted(len(source.front_ends), 'front end')}" if source.front_ends else ""
        paragraphs.append(
            f"{counted(attempts, 'operation')} began within the window of {duration(window.end_s - window.start_s)}{ran}. "
            "Available means: answered before the deadline of the operation. An operation with unknown outcome got no "
            "answer, and counts as not available."
        )
    else:
        paragraphs.append(
            "No operation was recorded. All that is said of choices is predicted from the up and down times of the replicas."
        )
    scale = time_scale(window)
    if scale is not None:
        paragraphs.append(f"{scale} Times on this page are as they were measured.")
    paragraphs.append(_known(figures))
    if source.prober_step_s is not None:
        paragraphs.append(
            f"A prober asked each replica every {duration(source.prober_step_s)} whether it was up."
        )
    if source.kind == "run" and all(row.kind != "intervals" for row in figures.rows):
        paragraphs.append(
            "Nobody noted the true up and down times of the replicas; what a prober saw stands in for them."
        )
    paragraphs.append(ENGINES.get(source.engine, f"Computed by {source.engine}."))
    return paragraphs


def _known(figures: Figures) -> str:
    window = figures.window
    if not window.known_s:
        return "At no time was the state of every replica known, so nothing could be predicted."
    links = (
        " Links between front ends and replicas failed too: a replica counts as up for a front end while both are up; "
        "shares of time are the mean over front ends."
        if figures.source.links
        else ""
    )
    return (
        f"Predictions rest on the {duration(window.known_s)} ({counted(window.up_changes, 'interval')} between changes) in "
        f"which the state of every replica is known.{links}{_contradicted(figures)}"
    )


def _contradicted(figures: Figures) -> str:
    rows = sum(row.rows for row in figures.rejected if row.reason == CONTRADICTS)
    if not rows:
        return ""
    return (
        f" {counted(rows, 'row')} of up times contradict one another: the time of which they say both up and down is unknown, "
        "what else they say counts."
    )


def why(figures: Figures) -> str:
    """Explain the columns of the table of causes."""
    lag = duration(figures.window.lag_s)
    return (
        "The independent prediction and the measured availability differ by steps that add up, each in percentage points: "
        "failing together (the joint prediction less the independent one); when it was tried (attempts do not fall evenly over "
        f"time); detection (attempts within {lag} of a change of the replicas that decides, in both directions); the rest "
        "(contention, deadlines and all else); and attempts while the state of some replica was unknown."
    )


def words(figures: Figures) -> list[Finding]:
    """Give the words of the page with their meaning."""
    found = []
    if figures.operations:
        found += [
            Finding("Measured", "Answered operations, out of all attempts."),
            Finding("Interval (95 %)", interval(figures)),
        ]
    else:
        found.append(Finding("Interval (95 %)", trace_interval(figures)))
    return [
        *found,
        Finding(
            "Predicted, joint",
            "The share of time in which the replicas that were up held an initial and a final quorum of the operation; the "
            "sets of replicas are those that were really up together.",
        ),
        Finding(
            "Predicted, independent",
            "The same from each replica's own share of time up, multiplied as if replicas failed independently of one another.",
        ),
        Finding(
            "Stretch by stretch",
            "The outages of a run are in what was measured and in what is predicted from its trace alike. Where both are drawn "
            "anew together, their difference varies less than either, and smaller differences show.",
        ),
        Finding(
            "Nines",
            "How often a nine stands in the availability before anything else: 99 % has two. One nine more is a tenth of the "
            "failures.",
        ),
        Finding(
            "Mix served",
            "The share of all operations that a choice would have served, each operation weighing as much as it stands in the "
            "mix. The choice that serves most is recommended; of equals, one that asks for fewer votes.",
        ),
        Finding(
            "Pareto front",
            "The choices that no other beats in one operation without losing in another. Which of them is best depends on how "
            "often each operation is wanted: on the mix.",
        ),
    ]


def interval(figures: Figures) -> str:
    """Explain the interval of a measured availability in plain words, and how far it can be trusted."""
    words = (
        "If the run were repeated under like conditions, the interval would hold the true availability about 95 times of 100. "
        "It is the wider of two: Wilson's, which takes attempts for independent of one another, and a bootstrap that draws "
        "whole stretches of time anew, so that what failed together stays together"
    )
    without = [row for row in figures.operations if row.block_bootstrap is None]
    if without and len(without) == len(figures.operations):
        return (
            f"{words}; this run has too few stretches, or too few failures, for the second, so the true uncertainty is larger "
            "than shown."
        )
    if without:
        words += f"; for {len(without)} of {len(figures.operations)} operations only the first could be made"
    few = sum(row.trace.outages < OUTAGES_FEW for row in figures.operations)
    if not few:
        return f"{words}."
    return (
        f"{words}. No interval reckons with outages that the run was spared: where it met fewer than {OUTAGES_FEW}, as for "
        f"{few} of {len(figures.operations)} operations here, the true uncertainty is larger than shown."
    )


def trace_interval(figures: Figures) -> str:
    """Explain the interval of a prediction from a trace."""
    if figures.window.blocks is None:
        return (
            "No intervals are given: the trace is too short beside its outages to say what another such stretch of time would "
            "give."
        )
    return (
        f"What another such stretch of time might give: a bootstrap that draws {figures.window.blocks} stretches of the trace "
        "anew, so that what failed together stays together. About 95 of 100 such stretches lie within."
    )
