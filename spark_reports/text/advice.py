"""The commands that apply what a report advises. Pure."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ..model.figures import AdaptiveFigures, Figures, RecommendationFigures
from ..model.phrases import points

COMMANDS_MAX: Final = 8
"""Objects of one type that get a command of their own, for the recommended choice and for the standing rule."""


def commands(figures: Figures, place: str) -> list[str]:
    """Give a command for each object that is to have another choice, or a standing rule; `place` is that of `figures.json`."""
    return [
        shlex.join(["quorate", "choice", "set", name, "--advice", place, *options])
        for row, options in _advised(figures)
        for name in row.objects[:COMMANDS_MAX]
    ]


def choice_commands(figures: Figures, place: str) -> list[str]:
    """Give those of the commands that set recommended choices."""
    return commands(replace(figures, adaptive=()), place)


def hints(figures: Figures) -> list[str]:
    """Give what a reader must know of the commands: which words to replace, what they set, and objects that are left out."""
    objects = {row.adt: row.objects for row, _ in _advised(figures) if row.objects}
    told = [
        f"Put the name of your object in the place of NAME, as in {adt}/jobs, or write '{adt}/*' for all."
        for adt, names in objects.items()
        if names == (f"{adt}/NAME",)
    ]
    told += [_standing(row) for row in figures.adaptive if row.objects]
    return told + [
        f"{len(names) - COMMANDS_MAX} more objects of type {adt} have no command here: figures.json names them."
        for adt, names in objects.items()
        if len(names) > COMMANDS_MAX
    ]


def _advised(figures: Figures) -> Iterator[tuple[RecommendationFigures | AdaptiveFigures, tuple[str, ...]]]:
    """What the commands set, the recommended choice of a type before its standing rule, with the options that ask for it."""
    for best in figures.recommendations:
        yield best, ()
        yield from ((row, ("--standing",)) for row in figures.adaptive if row.adt == best.adt)


def _standing(row: AdaptiveFigures) -> str:
    chance = "" if row.certain else ", which may be chance"
    return (
        f"With --standing the command sets the standing rule for the {row.adt}, by which the cluster switches by itself: it would have served "
        f"{points(row.difference)} more of the mix{chance}."
    )
