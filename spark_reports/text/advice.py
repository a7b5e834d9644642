"""The commands that apply what a report recommends. Pure."""

import shlex
from typing import Final

from ..model.figures import Figures

COMMANDS_MAX: Final = 8
"""Objects of one type that get a command of their own."""


def commands(figures: Figures, place: str) -> list[str]:
    """Give a command for each object that is to have another choice; `place` is that of `figures.json`."""
    return [
        shlex.join(["quorate", "choice", "set", name, "--advice", place])
        for row in figures.recommendations
        for name in row.objects[:COMMANDS_MAX]
    ]


def hints(figures: Figures) -> list[str]:
    """Give what a reader must know of the commands: which words to replace, and objects that are left out."""
    told = [
        f"Put the name of your object in the place of NAME, as in {row.adt}/jobs, or write '{row.adt}/*' for all."
        for row in figures.recommendations
        if row.objects == (f"{row.adt}/NAME",)
    ]
    return told + [
        f"{len(row.objects) - COMMANDS_MAX} more objects of type {row.adt} have another choice: figures.json names them."
        for row in figures.recommendations
        if len(row.objects) > COMMANDS_MAX
    ]
