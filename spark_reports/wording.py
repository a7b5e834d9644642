"""Numbers and findings in words: how a figure is written, and the sentences that open a report."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

from quorate.spark_reports.figures import ComparisonFigures, Figures, OperationFigures

SHARE_WORTH_SAYING: Final = 0.0005
NO_BREAK: Final = "\N{NO-BREAK SPACE}"


def percent(share: float) -> str:
    """Write a share so that what is missing to 100 % keeps about two digits; only 1 is written 100 %.

    The blank before the sign does not break.

    >>> [percent(share).replace(NO_BREAK, "_") for share in (1.0, 0.99954, 0.9954, 0.954, 0.99999999, 0.0)]
    ['100_%', '99.954_%', '99.54_%', '95.4_%', '>_99.999_%', '0.0_%']
    """
    missing = 1 - share
    if missing <= 0:
        return f"100{NO_BREAK}%"
    if missing < 1e-5:
        return f">{NO_BREAK}99.999{NO_BREAK}%"
    decimals = 1 if missing >= 0.01 else 2 if missing >= 0.001 else 3
    return f"{share * 100:.{decimals}f}{NO_BREAK}%"


def points(difference: float) -> str:
    """Write a difference between shares in percentage points, without a sign."""
    size = abs(difference) * 100
    return f"{size:.1f} points" if size >= 1 else f"{size:.2f} points"


def counted(number: int, thing: str) -> str:
    """Write a number of things: `1 outage`, `2 outages`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def signed(difference: float) -> str:
    """Write a difference between shares in percentage points with its sign, a true minus where there is one."""
    return f"{difference * 100:+.2f}".replace("-", "\N{MINUS SIGN}")


def duration(seconds: float) -> str:
    """Write a duration with three digits and the unit that suits it."""
    for unit, length_s in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        # Minutes and hours only where they are plainly easier to read than seconds.
        if seconds >= length_s * (2 if length_s > 1 else 1):
            return f"{seconds / length_s:.3g}{NO_BREAK}{unit}"
    return f"{seconds * 1e6:.3g}{NO_BREAK}µs"


class Trade(NamedTuple):
    """Two operations under two choices, of which each is the better one for one of the operations."""

    gained: ComparisonFigures
    paid: ComparisonFigures

    @property
    def smaller(self) -> float:
        return min(abs(self.gained.difference), abs(self.paid.difference))

    @property
    def certain(self) -> bool:
        """Whether both differences have a sign that their 95 % intervals do not leave open."""
        return all(row.low > 0 or row.high < 0 for row in self)


def best_trade(comparisons: Sequence[ComparisonFigures]) -> Trade | None:
    """Find the two choices and operations for which most is traded, or None if nothing worth saying is."""
    trades = [
        Trade(*sorted(pair, key=lambda row: -row.difference))
        for pair in combinations(comparisons, 2)
        if (pair[0].adt, pair[0].choice, pair[0].other) == (pair[1].adt, pair[1].choice, pair[1].other)
        and pair[0].difference * pair[1].difference < 0
    ]
    worth = [trade for trade in trades if trade.smaller >= SHARE_WORTH_SAYING]
    return max(worth, key=lambda trade: (trade.certain, trade.smaller), default=None)


def answer(figures: Figures) -> list[str]:
    """Give the sentences that open the report: what was traded, and which model of failure told it beforehand."""
    if not figures.operations:
        return [
            "No operation was measured. What each quorum choice would have given on this trace stands below.",
        ]
    trade = best_trade(figures.comparisons)
    first = _trade_sentence(trade, figures.operations) if trade else _plain_sentence(figures.operations)
    return [first, _model_sentence(figures.operations)]


def _trade_sentence(trade: Trade, operations: Sequence[OperationFigures]) -> str:
    measured = {(row.choice, row.operation): percent(row.measured) for row in operations}
    gained, paid = trade
    choice, other = gained.choice, gained.other
    certainty = (
        "Both differences are larger than chance would make them (95 % intervals)."
        if trade.certain
        else "One of these differences may be chance (95 % intervals): a longer run has to confirm it."
    )
    return (
        f"{choice} answered {measured[choice, gained.operation]} of {gained.operation} and "
        f"{measured[choice, paid.operation]} of {paid.operation}, {other} "
        f"{measured[other, gained.operation]} and {measured[other, paid.operation]}: "
        f"going from {other} to {choice} buys {_with_interval(gained, 1)} of {gained.operation} for "
        f"{_with_interval(paid, -1)} of {paid.operation}. {certainty}"
    )


def _with_interval(row: ComparisonFigures, sign: int) -> str:
    low, high = sorted((sign * row.low, sign * row.high))
    return f"{points(row.difference)} ({low * 100:.2g} to {high * 100:.2g})"


def _plain_sentence(operations: Sequence[OperationFigures]) -> str:
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


def _model_sentence(operations: Sequence[OperationFigures]) -> str:
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
