"""The sentences about a choice in force that changed within the time of a report: what it gave as it was, and what is not what it gave. Pure."""

from typing import Final

from ..model.aggregates import microseconds
from ..model.figures import AsItWasFigures, Figures, RegimeFigures
from ..model.phrases import counted, listed, moment, percent, quoted

REGIMES_MAX: Final = 4
"""So many are named in a sentence; a table has them all."""


def sentences(figures: Figures) -> list[str]:
    """Give what is to be said of each type whose choice in force changed."""
    return [
        sentence
        for whole in figures.as_it_was
        if whole.operation is None and changed(figures, whole.adt)
        for sentence in _told(figures, whole)
    ]


def changed(figures: Figures, adt: str) -> bool:
    """Whether another choice of the type came into force within the time."""
    return len(regimes(figures, adt)) > 1


def regimes(figures: Figures, adt: str) -> list[RegimeFigures]:
    """Give the first row of each regime, in the order of time."""
    return list({row.regime: row for row in reversed(figures.regimes) if row.adt == adt}.values())[::-1]


def _told(figures: Figures, whole: AsItWasFigures) -> list[str]:
    own = regimes(figures, whole.adt)
    last, times = own[-1], len(own) - 1
    named = [_named(row) for row in own[:REGIMES_MAX]]
    more = [counted(len(own) - REGIMES_MAX, "more regime")] if len(own) > REGIMES_MAX else []
    often = "once" if times == 1 else f"{times} times"
    name = quoted(whole.recommended, whole.adt)
    alone = f"{name} all along would have served {percent(whole.recommended_available)}"
    if whole.adaptive_available is not None:
        alone += f", and the best standing rule {percent(whole.adaptive_available)}"
    in_force = quoted(last.choice, whole.adt)
    unlike = f"What stands here of {in_force} as the choice in force was not measured under it: it would have given that, had it"
    return [
        f"For the {whole.adt}, the choice in force changed {often} in this time: {listed([*named, *more])}.",
        f"As it was, there were replicas enough for {percent(whole.available)} of the mix; {alone}.",
        f"{unlike} been in force all along.",
    ]


def _named(row: RegimeFigures) -> str:
    since = "at first" if row.regime == 1 else f"from {moment(microseconds(row.from_s))} on"
    return f"{quoted(row.choice, row.adt)} {since}"
