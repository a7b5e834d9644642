"""What becomes of a summary that no replica accepts, so that no decision can go on from it: what is wrong in it leaves. Pure.

Owns how a summary is made sound, and the sentences about it. It rests on the checks of messages (`quorate.api_specs.checking`):
what it makes passes them, whatever was wrong. Must not know how a wrong summary came about.
"""

from typing import Any

import msgspec
from msgspec.structs import replace

from ..adts.log import NOTHING, Dead, Leased, Summary
from .checking import CARRIED_MAX, carried_by, check_summary, listed_max
from .limits import DELIVERIES_MAX, Limits


def mended(summary: Summary, limits: Limits) -> tuple[Summary, tuple[str, ...]]:
    """The summary with all that the checks refuse set right or taken out; a sentence for each change, with what left."""
    told: list[str] = []
    for what, most in listed_max(limits).items():
        sound: list[Any] = []
        room = CARRIED_MAX.get(what, 0)
        for part in getattr(summary, what):
            part = _bounded(part, told)  # noqa: PLW2901
            carried = carried_by(part)
            if len(sound) < most and carried <= room and _passes(replace(NOTHING, **{what: (part,)}), limits):
                sound.append(part)
                room -= carried
            else:
                told.append(f"taken out of {what}: {msgspec.json.encode(part).decode()}")
        summary = replace(summary, **{what: tuple(sound)})
    for what in ("terms_floor", "value"):
        if not _passes(replace(NOTHING, **{what: getattr(summary, what)}), limits):
            told.append(f"{what} was {getattr(summary, what)}")
            summary = replace(summary, **{what: getattr(NOTHING, what)})
    return summary, tuple(told)


def _bounded(part: Any, told: list[str]) -> Any:
    """An item whose count of deliveries is too high keeps the highest one, and so its lease and its place."""
    if not isinstance(part, Leased | Dead):
        return part
    deliveries = max(0, min(part.deliveries, DELIVERIES_MAX))
    right = replace(part, deliveries=deliveries)
    if isinstance(right, Leased):
        right = replace(right, excused=max(0, min(right.excused, deliveries)))
    if right != part:
        told.append(f"deliveries of {part.entry.id} were {part.deliveries}, and are {deliveries}")
    return right


def _passes(summary: Summary, limits: Limits) -> bool:
    try:
        check_summary(summary, limits)
    except ValueError:
        return False
    return True
