"""Long names cut for the page: a name of two hundred letters would push everything else off a phone. Pure.

The page shows the short names everywhere, and once a table of them with the full ones. The JSON and Parquet figures have full
names only.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from ..model.figures import Figures
from ..model.phrases import shortened

NAME_CHARS_MAX: Final = 72
KEPT: Final = frozenset({"source", "rejected"})
"""Parts of the figures in which no name stands by itself."""


def short_names(figures: Figures) -> dict[str, str]:
    """Give the short name of each long one; no two are alike."""
    names = [row.choice for row in figures.candidates]
    names += [row.choice for row in figures.operations]
    names += [row.replica for row in figures.replicas]
    names += [row.rack for row in figures.replicas if row.rack]
    taken = {name for name in names if len(name) <= NAME_CHARS_MAX}
    short: dict[str, str] = {}
    for name in dict.fromkeys(names):
        if len(name) <= NAME_CHARS_MAX:
            continue
        cut, number = shortened(name, NAME_CHARS_MAX), 1
        while cut in taken:
            number += 1
            cut = f"{shortened(name, NAME_CHARS_MAX - 5)} ({number})"
        taken.add(cut)
        short[name] = cut
    return short


def renamed(figures: Figures, names: Mapping[str, str]) -> Figures:
    """Give the figures with these names put for others."""
    if not names:
        return figures
    changed = {
        field.name: _renamed(getattr(figures, field.name), names)
        for field in fields(figures)
        if field.name not in KEPT
    }
    return replace(figures, **changed)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, tuple):
        parts = [_renamed(part, names) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value, **{each.name: _renamed(getattr(value, each.name), names) for each in fields(value)}
        )
    return value
