"""The paragraphs that say how the figures came about, fitted to what was run. Pure."""

from collections.abc import Sequence
from typing import Final

from ..model.confidence import OUTAGES_FEW, Interval
from ..model.contract import CONTRADICTS
from ..model.figures import Figures
from ..model.phrases import NO_BREAK, counted, duration, listed
from .answer import Finding, time_scale

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


def reading(figures: Figures) -> str:
    """Say how to read the name of a choice, by one that the page shows; nothing where none is made of numbers of votes."""
    rows = [row for row in figures.counterfactuals if row.needed_votes is not None]
    best = {row.choice for row in figures.recommendations}
    row = next((row for row in rows if row.choice in best), rows[0] if rows else None)
    if row is None:
        return ""
    things = "replicas" if all(each.votes == 1 for each in figures.replicas) else "votes"
    return (
        f"How to read a choice: with {row.operation} ({row.initial},{NO_BREAK}{row.final}), {row.operation} reads at "
        f"{row.initial} {things} before it answers and is stored at {row.final} after, so it can be done while "
        f"{row.needed_votes} of them {'is' if row.needed_votes == 1 else 'are'} up."
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
        Finding(
            "Typed",
            "Each operation reads and stores only what its meaning asks for: an Enq of a queue reads nothing.",
        ),
        Finding(
            "Read/write",
            "Whatever changes the object reads its whole state first and writes it, as a file is kept.",
        ),
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
            "mix. The choice that serves most is recommended; of equals, the one that would serve most were failures "
            "independent, for it bears more of them; then the one that asks for the fewest votes.",
        ),
        Finding(
            "Pareto front",
            "The choices that no other beats in one operation without losing in another. Which of them is best depends on how "
            "often each operation is wanted: on the mix.",
        ),
    ]


def interval(figures: Figures) -> str:
    """Explain the interval of a measured availability in plain words, and how far it can be trusted."""
    rows = figures.operations
    parts = [
        "If the run were repeated under like conditions, the interval would hold the true availability about 95 times of 100.",
        "It is the widest of those that can be made. Wilson's takes attempts for independent of one another.",
    ]
    drawn = sum(row.block_bootstrap is not None for row in rows)
    if drawn:
        parts.append(
            f"A block bootstrap{_of(drawn, len(rows))} draws whole stretches of time anew, so that what failed together stays "
            "together."
        )
    parts += _by_outage([(row.by_outage, row.trace.outages) for row in rows])
    alone = [row for row in rows if row.block_bootstrap is None and row.by_outage is None]
    if alone:
        parts.append(
            f"For {_all(len(alone), len(rows))}, only the first can be made: {_why_alone(figures)}, so the true uncertainty "
            "is larger than shown."
        )
    return " ".join(parts)


def _of(part: int, whole: int) -> str:
    return "" if part == whole else f" (for {part} of {whole} operations)"


def _all(part: int, whole: int) -> str:
    if part == whole:
        return "the operation" if whole == 1 else f"all {whole} operations"
    return f"{part} of {whole} operations"


def _by_outage(found: Sequence[tuple[Interval | None, int]]) -> list[str]:
    """Explain the intervals by outage, each given with the number of outages; nothing where there is none."""
    few = [outages for each, outages in found if each is not None]
    if not few:
        return []
    sentences = [
        f"An interval by outage{_of(len(few), len(found))} counts where there were fewer than {OUTAGES_FEW} outages, or no "
        + "bootstrap: exact limits for how often an outage begins (Garwood 1936) and for how long it lasts, put together as an "
        + "F distribution (Trivedi 2001)."
    ]
    none = few.count(0)
    if none:
        sentences.append(
            f"Where there was no outage at all{_of(none, len(found))}, the rule of three says how many the run may have been "
            "spared (Hanley and Lippman-Hand 1983: at most 3, and 3.7 in an interval of two sides), each as long as those of "
            "single replicas."
        )
    return sentences


def _why_alone(figures: Figures) -> str:
    if not any(row.outages for row in figures.replicas):
        spared = duration(figures.window.known_s / 3)
        return (
            "no replica was seen down, so nobody knows how long an outage lasts; by the rule of three, there is less than one "
            f"in {spared}"
        )
    return "the run has too few stretches beside its outages, or nothing was ever up"


def trace_interval(figures: Figures) -> str:
    """Explain the interval of a prediction from a trace."""
    by_outage = _by_outage([(row.by_outage, row.trace.outages) for row in figures.counterfactuals])
    parts = []
    if figures.window.blocks is not None:
        parts.append(
            f"A block bootstrap draws {figures.window.blocks} stretches of the trace anew, so that what failed together stays "
            "together."
        )
    parts += by_outage
    if not any(row.low is not None for row in figures.counterfactuals):
        return (
            "No intervals are given: the trace is too short beside its outages, or without any, to say what another such "
            "stretch of time would give."
        )
    return " ".join(
        [
            "What another such stretch of time might give: about 95 of 100 lie within.",
            *parts,
        ]
    )
