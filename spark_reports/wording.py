"""Numbers and findings in words: how a figure is written, and the sentences that open a report."""

from itertools import permutations
from typing import NamedTuple

from quorate.spark_reports.figures import Figures, OperationFigures

POINTS_WORTH_SAYING = 0.0005


def percent(share: float) -> str:
    """Write a share so that what is missing to 100 % keeps about two digits; only 1 is written 100 %.

    >>> [percent(share) for share in (1.0, 0.99954, 0.9954, 0.954, 0.99999999, 0.0)]
    ['100 %', '99.954 %', '99.54 %', '95.4 %', '> 99.999 %', '0.0 %']
    """
    missing = 1 - share
    if missing <= 0:
        return "100 %"
    if missing < 1e-5:
        return "> 99.999 %"
    decimals = 1 if missing >= 0.01 else 2 if missing >= 0.001 else 3
    return f"{share * 100:.{decimals}f} %"


def points(difference: float) -> str:
    """Write a difference between shares in percentage points, without a sign."""
    size = abs(difference) * 100
    return f"{size:.1f} points" if size >= 1 else f"{size:.2f} points"


def duration(seconds: float) -> str:
    """Write a duration with three digits and the unit that suits it."""
    for unit, length_s in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        # Minutes and hours only where they are plainly easier to read than seconds.
        if seconds >= length_s * (2 if length_s > 1 else 1):
            return f"{seconds / length_s:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


class Trade(NamedTuple):
    """Two operations under two choices, each choice the better one for its own operation."""

    gained: tuple[OperationFigures, OperationFigures]
    paid: tuple[OperationFigures, OperationFigures]

    @property
    def smaller_gain(self) -> float:
        return min(better.measured - worse.measured for better, worse in (self.gained, self.paid))

    @property
    def certain(self) -> bool:
        """Whether in both cases the intervals of confidence lie apart."""
        return all(better.low > worse.high for better, worse in (self.gained, self.paid))


def best_trade(operations: tuple[OperationFigures, ...]) -> Trade | None:
    """Find the pair of choices and operations in which both differences are largest, or None if nothing is traded."""
    by_pair = {(row.adt, row.choice, row.operation): row for row in operations}
    trades = []
    for adt in {row.adt for row in operations}:
        choices = sorted({row.choice for row in operations if row.adt == adt})
        names = sorted({row.operation for row in operations if row.adt == adt})
        for one, other in permutations(choices, 2):
            for first, second in permutations(names, 2):
                keys = [(adt, one, first), (adt, other, first), (adt, other, second), (adt, one, second)]
                if all(key in by_pair for key in keys):
                    rows = [by_pair[key] for key in keys]
                    trades.append(Trade((rows[0], rows[1]), (rows[2], rows[3])))
    worth = [trade for trade in trades if trade.smaller_gain >= POINTS_WORTH_SAYING]
    return max(worth, key=lambda trade: (trade.smaller_gain, trade.gained[0].choice), default=None)


def answer(figures: Figures) -> list[str]:
    """Give the sentences that open the report: what was traded, and which model of failure told it beforehand."""
    if not figures.operations:
        return [
            "No operation was measured. What each quorum choice would have given on this trace stands below.",
        ]
    trade = best_trade(figures.operations)
    first = _trade_sentence(trade) if trade else _plain_sentence(figures.operations)
    return [first, _model_sentence(figures.operations)]


def _trade_sentence(trade: Trade) -> str:
    (a, a_other), (b, b_other) = trade.gained, trade.paid
    certainty = (
        "The 95 % intervals lie apart in both cases."
        if trade.certain
        else "The 95 % intervals still overlap: a longer run would have to confirm it."
    )
    return (
        f"{a.choice} answered {percent(a.measured)} of {a.operation} and {percent(b_other.measured)} of "
        f"{b.operation}; {b.choice} answered {percent(a_other.measured)} of {a.operation} and "
        f"{percent(b.measured)} of {b.operation}: choosing between them trades "
        f"{points(a.measured - a_other.measured)} of {a.operation} against "
        f"{points(b.measured - b_other.measured)} of {b.operation}. {certainty}"
    )


def _plain_sentence(operations: tuple[OperationFigures, ...]) -> str:
    worst = min(operations, key=lambda row: row.measured)
    if worst.measured == 1:
        attempts = sum(row.attempts for row in operations)
        return f"All {attempts:,} operations were answered, under every quorum choice that was run."
    best = max(operations, key=lambda row: row.measured)
    return (
        f"Availability ran from {percent(worst.measured)} ({worst.operation} with {worst.choice}) to "
        f"{percent(best.measured)} ({best.operation} with {best.choice}); among the choices that were run, none gave "
        "one operation more and took it from another."
    )


def _model_sentence(operations: tuple[OperationFigures, ...]) -> str:
    def worst(model: str) -> tuple[float, OperationFigures]:
        gaps = [(abs(getattr(row, model) - row.measured), row) for row in operations]
        return max(gaps, key=lambda gap: gap[0])

    joint, _ = worst("predicted_joint")
    independent, row = worst("predicted_independent")
    return (
        f"Predicted from the replicas' joint up time, availability is at most {points(joint)} from the measured one; "
        f"predicted as if replicas failed independently, it is up to {points(independent)} away "
        f"({row.operation} with {row.choice}: {percent(row.predicted_independent)} predicted, "
        f"{percent(row.measured)} measured)."
    )
