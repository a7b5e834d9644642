"""The sentences that open a report: what to choose, whether typed quorums paid, whether the predictions were right. Pure.

Each is true for every input that `derive` can give: what was not run is not called measured, and a difference whose interval
holds 0 is not called one.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from quorate.spark_reports.figures import (
    AgainstFigures,
    ClaimFigures,
    Figures,
    OperationFigures,
    RecommendationFigures,
    WindowFigures,
)
from quorate.spark_reports.wording import (
    NO_BREAK,
    counted,
    duration,
    in_nines,
    listed,
    percent,
    points,
    quoted,
    signed,
)

READ_WRITE: Final = "read-write"
TIED_MAX: Final = 3

MIXES: Final = {
    "attempts": "the mix as it was tried",
    "given": "the mix asked for",
    "equal": "a mix of all operations alike",
}


SHORT: Final = (
    "The run is too short beside its outages for intervals that keep together what failed together. Those given take attempts "
    "for independent of one another and are too narrow: a longer run has to confirm every difference."
)


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
        f"{head}{_tied(row, behind)}: it would have served {percent(row.served)} of {mix}{_beside(row)}"
        f"{_as_run(figures, row)}{_not_clearly(behind)}."
    )


def _tied(row: RecommendationFigures, behind: Sequence[AgainstFigures]) -> str:
    names = [quoted(name) for name in row.tied[:TIED_MAX]]
    if not names:
        return ""
    if len(row.tied) > TIED_MAX:
        names.append(f"{len(row.tied) - TIED_MAX} more")
    return f", level with {listed(names)}" if behind else f", or just as well {listed(names, 'or')}"


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


def findings(figures: Figures) -> list[Finding]:
    """Give what else a reader should know first, the most important thing first."""
    found = [Finding("Typed against read/write quorums", claim(figures))]
    if figures.operations:
        found.append(Finding("Measured", measured(figures.operations)))
        found.append(Finding("Predicted from joint failures", joint(figures.operations)))
        if len(figures.replicas) > 1:
            found.append(
                Finding(
                    "Predicted as if independent", independent(figures.operations, sure=not short(figures))
                )
            )
    elif figures.counterfactuals and len(figures.replicas) > 1:
        found.append(Finding("If failures were independent", independent_on_trace(figures)))
    found.append(Finding("Failing together", together(figures)))
    if short(figures):
        found.append(Finding("How sure", SHORT))
    return found


def short(figures: Figures) -> bool:
    """Whether something failed, and yet the run is too short for intervals that mind outages."""
    failed = [row for row in figures.operations if row.ok < row.attempts]
    return bool(failed) and figures.window.blocks is None


def claim(figures: Figures) -> str:
    """Say whether typed quorums let a blind operation be more available, at the cost of the others: the lecture's claim."""
    if not figures.operations:
        return "Not measured: the input holds no operations. The table of choices says what each kind would have given."
    pairs = [
        list(rows) for _, rows in groupby(figures.claim, key=lambda row: (row.adt, row.typed, row.read_write))
    ]
    pairs = [rows for rows in pairs if any(row.blind for row in rows)]
    if not pairs:
        return "Not measured: the run holds no typed choice beside a read/write one of the same type."
    best = max(pairs, key=_weight)
    gain = _gain(best)
    others = [row for row in best if not row.blind]
    cost = min(others, key=lambda row: row.difference) if others else None
    shown = [gain, cost] if cost else [gain]
    differences = listed([_interval(row) for row in shown])
    held = sum(_holds(rows) for rows in pairs)
    count = (
        f" It holds for {held or 'none'} of the {len(pairs)} such pairs that were run."
        if len(pairs) > 1
        else ""
    )
    return f"{_verdict(gain, cost)} With {quoted(best[0].typed)} instead of {quoted(best[0].read_write)}: {differences}.{count}"


def _gain(rows: Sequence[ClaimFigures]) -> ClaimFigures:
    return max((row for row in rows if row.blind), key=lambda row: row.difference)


def _weight(rows: Sequence[ClaimFigures]) -> tuple[bool, bool, float]:
    gain = _gain(rows)
    return _holds(rows), gain.certain and gain.difference > 0, gain.difference


def _holds(rows: Sequence[ClaimFigures]) -> bool:
    gain = _gain(rows)
    paid = any(row.certain and row.difference < 0 for row in rows if not row.blind)
    return gain.certain and gain.difference > 0 and paid


def _interval(row: ClaimFigures) -> str:
    return (
        f"{row.operation} {signed(row.difference)} points (95 % interval {signed(row.low)} to {signed(row.high)}, "
        f"{signed(row.predicted_joint)} predicted)"
    )


def _verdict(gain: ClaimFigures, cost: ClaimFigures | None) -> str:
    if not gain.certain or gain.difference == 0:
        return (
            f"No clear difference: the interval for {gain.operation} leaves the sign of the difference open."
        )
    if gain.difference < 0:
        return f"Against the lecture's claim, typed quorums made {gain.operation} less available."
    more = f"typed quorums made {gain.operation} more available"
    if cost is None:
        return f"As the lecture claims, {more}; what it cost others was not measured."
    if not cost.certain or cost.difference == 0:
        return f"As the lecture claims, {more}; what {cost.operation} paid for it cannot be told from chance."
    if cost.difference > 0:
        return f"As the lecture claims, {more}, and {cost.operation} did not even pay for it."
    return f"As the lecture claims, {more} at the cost of {cost.operation}."


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


def independent(operations: Sequence[OperationFigures], *, sure: bool) -> str:
    """Say whether the prediction that takes failures for independent is off, and by how much.

    It is visibly off only where the intervals can be trusted: where `sure`.
    """
    off = [row for row in operations if not row.independent_agrees]
    finer = [row for row in operations if row.independent_gap.certain]
    if off:
        more = len({id(row) for row in [*off, *finer]}) - len(off)
        found = (
            f"{'Visibly off' if sure else 'Off'} for {len(off)} of {len(operations)}, beyond their 95 % intervals: "
            f"{_gap('predicted_independent', off)}."
        )
        return f"{found} Held together stretch by stretch, for {more} more." if more else found
    if finer:
        return (
            f"Off for {len(finer)} of {len(operations)}, as it shows when both are held together stretch by stretch of the "
            f"run: {_gap('predicted_independent', finer)}. Each lies within its own 95 % interval."
        )
    return (
        f"Not visibly off: it lies within the 95 % interval of {_each(len(operations))}, so this run gives no proof "
        "against independence."
    )


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


def independent_on_trace(figures: Figures) -> str:
    """Say how far the two predictions lie apart where nothing was measured."""
    worst = max(figures.counterfactuals, key=lambda row: abs(row.predicted_independent - row.predicted_joint))
    gap = worst.predicted_independent - worst.predicted_joint
    if abs(gap) < 5e-7:
        return (
            "Both predictions say the same of every choice: these replicas give no sign of failing together."
        )
    return (
        f"Taking failures for independent would mislead by up to {points(gap)}: {percent(worst.predicted_independent)} "
        f"instead of {percent(worst.predicted_joint)} for {worst.operation} with {quoted(worst.choice)}."
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
