"""The sentences on what taking failures for independent would have promised, where nothing was measured. Pure.

Predictions are compared by the ratio of the downtimes that they promise, for 99.9 % instead of 99.5 % is five times too
optimistic and only 0.4 points; and the recommended choice is spoken of first, as it is the one that will be run.
"""

from collections.abc import Sequence
from math import inf, log
from typing import Final

from ..model.figures import CounterfactualFigures, Figures
from ..model.phrases import percent, quoted

SAME: Final = 5e-7
"""Shares that differ by less are shown alike."""


def independent_on_trace(figures: Figures) -> str:
    """Say how far the two predictions lie apart: for what is recommended, then where their ratio is largest."""
    rows = figures.counterfactuals
    if all(abs(row.predicted_independent - row.predicted_joint) < SAME for row in rows):
        return (
            "Both predictions say the same of every choice: these replicas give no sign of failing together."
        )
    taken = {(row.adt, row.choice) for row in figures.recommendations}
    recommended = [row for row in rows if (row.adt, row.choice) in taken]
    if not recommended:
        return f"Taking failures for independent would mislead: {_told(_worst(rows))}."
    first, last = _worst(recommended), _worst(rows)
    told = (
        f"For the recommended choice, taking failures for independent would {_judged(first)}: {_told(first)}."
    )
    if _apart(last) <= _apart(first):
        return f"{told} For no other choice is the ratio larger."
    return f"{told} The ratio is largest for {_told(last)}."


def _worst(rows: Sequence[CounterfactualFigures]) -> CounterfactualFigures:
    return max(rows, key=_apart)


def _is_same(row: CounterfactualFigures) -> bool:
    return abs(row.predicted_independent - row.predicted_joint) < SAME


def _apart(row: CounterfactualFigures) -> float:
    """How far the two downtimes lie apart, whichever is the longer; 0 where there was none, which gives no ratio."""
    promised, found = 1 - row.predicted_independent, 1 - row.predicted_joint
    if _is_same(row) or found <= 0:
        return 0.0
    return abs(log(found / promised)) if promised > 0 else inf


def _judged(row: CounterfactualFigures) -> str:
    if _is_same(row):
        return "not mislead"
    return "be too optimistic" if row.predicted_independent > row.predicted_joint else "be too pessimistic"


def _told(row: CounterfactualFigures) -> str:
    shown = f"{percent(row.predicted_independent)} instead of {percent(row.predicted_joint)} for {row.operation} with {quoted(row.choice)}"
    promised, found = 1 - row.predicted_independent, 1 - row.predicted_joint
    if _is_same(row):
        return f"{percent(row.predicted_joint)} either way for {row.operation} with {quoted(row.choice)}"
    if promised <= 0 or found <= 0:
        return f"{shown}, {'no downtime at all' if promised <= 0 else 'downtime where there was none'}"
    if found > promised:
        return f"{shown}, {found / promised:.2g} times the downtime that it would promise"
    return f"{shown}, {found / promised:.2g} of the downtime that it would promise"
