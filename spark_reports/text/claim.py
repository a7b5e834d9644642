"""The sentence on the lecture's claim: whether typed quorums let a blind operation be more available than read/write ones. Pure."""

from collections.abc import Sequence
from itertools import groupby

from ..model.figures import ClaimFigures, Figures
from ..model.phrases import listed, quoted, signed


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
