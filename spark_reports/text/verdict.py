"""The verdict on each data type in one short sentence, which the card of a report begins with. Pure."""

from ..model.figures import Figures, RecommendationFigures
from ..model.phrases import counted, quoted


def verdicts(figures: Figures) -> list[str]:
    """Say for each type what to choose, or that the time was too short to tell; nothing where nothing can be said."""
    if not figures.window.known_s:
        return []
    return [f"For the {row.adt}, {_verdict(figures, row)}" for row in figures.recommendations]


def _verdict(figures: Figures, row: RecommendationFigures) -> str:
    others = sum(each.adt == row.adt for each in figures.candidates) - 1
    name = quoted(row.choice, row.adt)
    if not others:
        return f"{name} is the only choice."
    if len(row.tied) >= others:
        return f"this trace gives no reason to prefer a choice: all {others + 1} would have served alike."
    unclear = [other for other in row.against if other.choice not in row.tied and not other.certain]
    if not unclear:
        return f"choose {name}."
    nearest = min(unclear, key=lambda other: other.difference)
    more = f", or from {counted(len(unclear) - 1, 'other')}" if len(unclear) > 1 else ""
    return f"{name} comes first, but the time is too short to tell it from {quoted(nearest.choice, row.adt)}{more}."
