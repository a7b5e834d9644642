"""The sentences that open a report: what to choose, whether typed quorums paid, whether the predictions were right. Pure.

Each is true for every input that `derive` can give: what was not run is not called measured, and a difference whose interval
holds 0 is not called one.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ..model.confidence import OUTAGES_OF_SIGN
from ..model.figures import (
    AgainstFigures,
    CandidateFigures,
    Figures,
    OperationFigures,
    RecommendationFigures,
    WindowFigures,
)
from ..model.phrases import (
    NO_BREAK,
    ROUNDING,
    counted,
    duration,
    in_nines,
    listed,
    percent,
    points,
    quoted,
    shortened,
    signed,
)
from . import adaptive
from .claim import claim
from .independence import independent_on_trace

READ_WRITE: Final = "read-write"
TIED_MAX: Final = 3

MIXES: Final = {
    "attempts": "the mix as it was tried",
    "given": "the mix asked for",
    "equal": "a mix of all operations alike",
}


INDEPENDENT_ATTEMPTS: Final = "attempts for independent of one another, which is too narrow"
KNOWN_ENOUGH: Final = 0.95
"""Where less of the time is known, the reader is told at once."""


NOTES_MAX: Final = 5
NOTE_CHARS_MAX: Final = 300


class Finding(NamedTuple):
    """One finding: what it is about in a few words, and the sentence."""

    about: str
    sentence: str


def answers(figures: Figures) -> list[str]:
    """Give the answer, one sentence for each data type."""
    if not figures.window.known_s:
        return [
            "No choice can be recommended: at no time was the state of every replica known, so nothing can be predicted."
        ]
    if not figures.recommendations:
        return ["No quorum choice was looked at, so none can be recommended."]
    return [_answer(figures, row) for row in figures.recommendations]


def _answer(figures: Figures, row: RecommendationFigures) -> str:
    others = [c for c in figures.candidates if c.adt == row.adt and c.choice != row.choice]
    mix = f"{MIXES.get(row.mix_from, row.mix_from)} ({listed([f'{m.operation}{NO_BREAK}{_whole(m.share)}' for m in row.mix])})"
    if not others:
        return f"For the {row.adt}, {quoted(row.choice, row.adt)} would have served {percent(row.served)} of {mix}; there is no other choice."
    if len(row.tied) >= len(others):
        return _all_alike(row, len(others) + 1, mix)
    behind = [other for other in row.against if other.choice not in row.tied and not other.certain]
    head = f"For the {row.adt}, with replicas failing as these did, "
    head += (
        f"{quoted(row.choice, row.adt)} comes first" if behind else f"choose {quoted(row.choice, row.adt)}"
    )
    return (
        f"{head}{_tied(row, behind, figures.candidates)}: it would have served {percent(row.served)} of {mix}{_beside(row)}"
        f"{_as_run(figures, row)}{_not_clearly(behind)}."
    )


def _tied(
    row: RecommendationFigures, behind: Sequence[AgainstFigures], candidates: Sequence[CandidateFigures]
) -> str:
    """Name those that would have served as much: as good ones, and those that are fit for fewer failures."""
    independent = {each.choice: each.served_independent for each in candidates if each.adt == row.adt}
    weaker = [name for name in row.tied if independent[name] < independent[row.choice] - ROUNDING]
    equal = [name for name in row.tied if name not in weaker]
    told = ""
    if equal:
        told = f", level with {_few(equal)}" if behind else f", or just as well {_few(equal, 'or')}"
    if weaker:
        told += f"{',' if told else ''} rather than {_few(weaker, 'or')}, which did as well here but would bear fewer failures"
    return told


def _few(names: Sequence[str], last: str = "and") -> str:
    more = [f"{len(names) - TIED_MAX} more"] if len(names) > TIED_MAX else []
    return listed([*(quoted(name) for name in names[:TIED_MAX]), *more], last)


def _not_clearly(behind: Sequence[AgainstFigures]) -> str:
    """Name the nearest of those that are behind by no more than may be chance."""
    if not behind:
        return ""
    nearest = min(behind, key=lambda other: other.difference)
    more = f", nor {counted(len(behind) - 1, 'other')}" if len(behind) > 1 else ""
    return f"; {quoted(nearest.choice)} is not clearly behind it{_interval_of(nearest)}{more}"


def _whole(share: float) -> str:
    return (
        f"{share * 100:.0f}{NO_BREAK}%" if 0.005 <= share < 0.995 or share in {0.0, 1.0} else percent(share)
    )


def _all_alike(row: RecommendationFigures, choices: int, mix: str) -> str:
    if row.served >= 1:
        return (
            f"For the {row.adt}, this trace gives no reason to prefer a choice: each of the {choices} looked at would have "
            f"served all of {mix}."
        )
    if row.served <= 0:
        return f"For the {row.adt}, no choice would have served anything: each of the {choices} looked at had no quorum."
    return (
        f"For the {row.adt}, this trace gives no reason to prefer a choice: each of the {choices} looked at would have "
        f"served {percent(row.served)} of {mix}."
    )


def _beside(row: RecommendationFigures) -> str:
    """Compare with the best read/write choice, or with the best other if the recommended one is itself of that kind."""
    wanted = [other for other in row.against if (other.kind == READ_WRITE) != (row.kind == READ_WRITE)]
    if not wanted:
        return ""
    other = max(wanted, key=lambda each: each.served)
    if other.choice in row.tied or not other.certain:
        return ""
    kind = "the best typed choice" if row.kind == READ_WRITE else "the best read/write choice"
    return f", {points(other.difference)} more than {kind}, {quoted(other.choice)}{_interval_of(other)}"


def _interval_of(other: AgainstFigures) -> str:
    if other.low is None or other.high is None:
        return f" ({signed(other.difference)} points; the trace is too short to say how sure that is)"
    return f" ({signed(other.difference)} points, 95 % interval {signed(other.low)} to {signed(other.high)})"


def _as_run(figures: Figures, row: RecommendationFigures) -> str:
    if not figures.operations:
        return "; no operation was measured, so this rests on the trace alone"
    if row.run_as is None:
        return "; it was not run here, so this rests on the trace alone"
    measured = [each for each in figures.operations if (each.adt, each.choice) == (row.adt, row.run_as)]
    if not measured:
        return "; no operation was tried with it, so this rests on the trace alone"
    shares = listed([f"{percent(each.measured)} of {each.operation}" for each in measured])
    return f"; it was run here, and answered {shares}"


def notes(figures: Figures) -> list[str]:
    """Give what the run says against itself, cut where it says too much."""
    said = [shortened(note, NOTE_CHARS_MAX) for note in figures.source.notes]
    more = len(said) - NOTES_MAX
    return said if more <= 0 else [*said[:NOTES_MAX], f"{more} more of such notes stand in figures.json."]


def findings(figures: Figures) -> list[Finding]:
    """Give what else a reader should know first, the most important thing first."""
    found = [Finding("Known only in part", known_in_part(figures))] if is_partly_known(figures) else []
    found.append(Finding("Typed against read/write quorums", claim(figures)))
    if figures.operations:
        found.append(Finding("Measured", measured(figures.operations)))
        found.append(Finding("Predicted from joint failures", joint(figures.operations)))
        if len(figures.replicas) > 1:
            found.append(Finding("Predicted as if independent", independent(figures)))
    elif figures.counterfactuals and len(figures.replicas) > 1:
        found.append(Finding("If failures were independent", independent_on_trace(figures)))
    if switching := adaptive.sentences(figures):
        found.append(Finding("Switching as replicas fail", " ".join(switching)))
    found.append(Finding("Failing together", together(figures)))
    if short(figures):
        found.append(Finding("How sure", how_sure(figures)))
    return found


def is_partly_known(figures: Figures) -> bool:
    """Whether predictions leave out so much time that they may speak of better or worse days than there were."""
    window = figures.window
    return 0 < window.known_s < KNOWN_ENOUGH * (window.end_s - window.start_s)


def known_in_part(figures: Figures) -> str:
    """Say how little of the time the predictions rest on."""
    window = figures.window
    length_s = window.end_s - window.start_s
    return (
        f"All that is predicted rests on {duration(window.known_s)}, {percent(window.known_s / length_s)} of the "
        f"{duration(length_s)}: in the rest the state of some replica is unknown, and failures of that time are not predicted."
    )


def short(figures: Figures) -> bool:
    """Whether something failed, and yet the run is too short for intervals that mind outages."""
    failed = [row for row in figures.operations if row.ok < row.attempts]
    return bool(failed) and figures.window.blocks is None


def how_sure(figures: Figures) -> str:
    """Say of a short run what its intervals reckon with, as they were made: `derive_operations` makes them."""
    by_outage = sum(row.by_outage is not None for row in figures.operations)
    alone = len(figures.operations) - by_outage
    told = [
        "The run is too short beside its outages to be cut into stretches that keep together what failed together."
    ]
    if by_outage:
        told.append(
            f"{_intervals(by_outage, alone, 'reckon')} with outages instead, as if these began at random and lasted exponentially "
            "distributed times."
        )
    if alone:
        told.append(f"{_intervals(alone, by_outage, 'take')} {INDEPENDENT_ATTEMPTS}.")
    if any(row.trace.outages >= OUTAGES_OF_SIGN for row in figures.operations) and figures.comparisons:
        told.append(
            f"Intervals of differences where a choice met {OUTAGES_OF_SIGN} outages or more take {INDEPENDENT_ATTEMPTS}."
        )
    return " ".join([*told, "A longer run has to confirm every difference."])


def _intervals(count: int, others: int, verb: str) -> str:
    """Example: `_intervals(1, 7, "take")` is "1 interval of a share takes"."""
    if count == 1:
        return f"{'1' if others else 'The'} interval of a share {verb}s"
    return f"{count if others else 'All'} intervals of shares {verb}"


def measured(operations: Sequence[OperationFigures]) -> str:
    """Say how available operations were, from the worst to the best."""
    attempts = sum(row.attempts for row in operations)
    worst = min(operations, key=lambda row: row.measured)
    best = max(operations, key=lambda row: row.measured)
    if worst.measured == 1:
        low = min(row.low for row in operations)
        return (
            f"No failure was seen: all {attempts:,} operations were answered. That is no proof that none fails; the "
            f"intervals leave {in_nines(1.0, low)} for each operation and choice{_spared(operations)}."
        )
    if best.measured == 0:
        return f"None of {counted(attempts, 'operation')} was answered."
    if worst.measured == best.measured:
        return f"Of {counted(attempts, 'operation')}, {percent(worst.measured)} were answered, alike for each that was run."
    return (
        f"From {percent(worst.measured)} of {worst.operation} with {quoted(worst.choice)} to {percent(best.measured)} of "
        f"{best.operation} with {quoted(best.choice)}."
    )


def _spared(operations: Sequence[OperationFigures]) -> str:
    """Say so where the intervals do not reckon with outages that the run did not meet."""
    if all(row.by_outage for row in operations):
        return ""
    return ", and do not reckon with outages that this run was spared"


def joint(operations: Sequence[OperationFigures]) -> str:
    """Say whether the prediction from joint up-sets lies within the measured intervals, and what a finer look shows."""
    off = [row for row in operations if not row.joint_agrees]
    if off:
        right = len(operations) - len(off)
        first = (
            f"Within the 95 % interval of {right} of {len(operations)} measured availabilities, and off for {_named(off)}: "
            f"{_gap('predicted_joint', off)}."
        )
    else:
        first = f"It agrees: what the replicas' joint up times predict lies within the 95 % interval of {_each(len(operations))}."
    below = [row for row in operations if row.joint_gap.certain and row.joint_gap.difference < 0]
    above = [row for row in operations if row.joint_gap.certain and row.joint_gap.difference > 0]
    return f"{first}{_finer(below, 'below', len(operations))}{_finer(above, 'above', len(operations))}"


def _finer(rows: Sequence[OperationFigures], where: str, of: int) -> str:
    """Say which measurements lie beside the prediction where both are held together stretch by stretch of the run."""
    if not rows:
        return ""
    worst = max(rows, key=lambda row: abs(row.joint_gap.difference))
    return (
        f" Held together stretch by stretch, {len(rows)} of {of} {'lie' if len(rows) > 1 else 'lies'} {where} it, by {'up to ' if len(rows) > 1 else ''}"
        f"{points(worst.joint_gap.difference)} ({worst.operation} with {quoted(worst.choice)}); the table of causes says why."
    )


def independent(figures: Figures) -> str:
    """Say how far independence misleads about the recommended choice, as a ratio of downtimes, and whether measurements show it off."""
    shown = _independent_measured(figures.operations, sure=not short(figures))
    return f"{independent_on_trace(figures)} {shown}" if figures.counterfactuals else shown


def _independent_measured(operations: Sequence[OperationFigures], *, sure: bool) -> str:
    """Say of how many measurements the prediction is off; visibly only where the intervals can be trusted: where `sure`."""
    off = [row for row in operations if not row.independent_agrees]
    finer = [row for row in operations if row.independent_gap.certain]
    if off:
        more = len({id(row) for row in [*off, *finer]}) - len(off)
        found = f"{'Visibly off' if sure else 'Off'} for {len(off)} of {_measurements(len(operations))}, beyond their 95 % intervals."
        return f"{found} Held together stretch by stretch of the run, for {more} more." if more else found
    if finer:
        return (
            f"Off for {len(finer)} of {_measurements(len(operations))}, as it shows when both are held together stretch by stretch of the "
            "run. Each lies within its own 95 % interval."
        )
    return (
        f"Not visibly off: it lies within the 95 % interval of {_each(len(operations))}, so this run gives no proof "
        "against independence."
    )


def _measurements(number: int) -> str:
    return counted(number, "measured availability", "measured availabilities")


def _each(number: int) -> str:
    return "the one measured availability" if number == 1 else f"each of the {number} measured availabilities"


def _named(rows: Iterable[OperationFigures], most: int = 3) -> str:
    names = [f"{row.operation} with {quoted(row.choice)}" for row in rows]
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return listed([*names[:most], *more])


def _gap(model: str, rows: Sequence[OperationFigures]) -> str:
    worst = max(rows, key=lambda row: abs(getattr(row, model) - row.measured))
    predicted = getattr(worst, model)
    upto = "by up to " if len(rows) > 1 else "by "
    return (
        f"{upto}{points(predicted - worst.measured)} ({worst.operation} with {quoted(worst.choice)}: {percent(predicted)} "
        f"predicted, {percent(worst.measured)} measured)"
    )


def together(figures: Figures) -> str:
    """Say how far replicas fail together, or that they did not fail or could not."""
    if len(figures.replicas) == 1:
        return "There is one replica only: it fails alone, and every choice has its availability."
    ratio = figures.correlation.variance_ratio
    if ratio is None:
        outages = sum(row.outages for row in figures.replicas)
        if outages == 0:
            return "No replica was seen down, so nothing is known about how they fail."
        return "Too little changed to say how far replicas fail together."
    size = f"The number of replicas down at once varied {ratio:.2g} times as much as it would were failures independent"
    if ratio > 1.05:
        return f"{size}: they fail together."
    if ratio < 0.95:
        return f"{size}: they rather fail one after the other."
    return f"{size}: they fail about independently."


def time_scale(window: WindowFigures) -> str | None:
    """Say what a measured minute stands for, or None where time was not scaled."""
    if window.time_scale == 1:
        return None
    return f"One measured minute stands for {duration(60 * window.time_scale)} of the plan."
