"""A few calls, drawn: who made them, what came back, and when, each moment a column."""

from collections.abc import Iterator, Sequence
from typing import Final

from ...adts.histories.calls import NEVER, Call
from ...adts.histories.search import Found
from ...adts.specification import shown

CALLS_MAX: Final = 30
COLUMNS_MAX: Final = 60


def drawn(found: Found, calls: Sequence[Call]) -> Iterator[str]:
    """The lines that show why these calls have no right order."""
    listed = sorted(calls, key=lambda call: (call.invoked, call.returned))
    if len(listed) > CALLS_MAX:
        yield f"… {len(listed) - CALLS_MAX} earlier calls"
        listed = listed[-CALLS_MAX:]
    moments = sorted(
        {moment for call in listed for moment in (call.invoked, call.returned) if moment < NEVER}
    )
    columns = {moment: _column(place, len(moments)) for place, moment in enumerate(moments)}
    of_process = max((len(call.process) for call in listed), default=0)
    of_text = max((len(str(call)) for call in listed), default=0)
    for call in listed:
        bar = _bar(columns[call.invoked], columns.get(call.returned))
        yield f"{call.process:{of_process}}  {call!s:{of_text}}  {bar}"
    yield ""
    yield from _explained(found)


def _column(place: int, moments: int) -> int:
    """Two columns a moment, fewer where there are many."""
    return place * 2 if moments * 2 <= COLUMNS_MAX else place * COLUMNS_MAX // moments


def _bar(start: int, end: int | None) -> str:
    if end is None:
        return " " * start + "├──?"
    return " " * start + "├" + "─" * max(0, end - start - 1) + "┤"


def _explained(found: Found) -> Iterator[str]:
    last = found.order[-3:]
    ahead = "… then " if len(found.order) > len(last) else ""
    order = f"{ahead}{'; '.join(map(str, last))}" if last else "none of them"
    yield f"The longest order that fits: {order}."
    for name, state in found.states.items():
        yield f"{name} is then {shown(state)}, and none of these can come next:"
    for call in found.stuck[:5]:
        yield f"  {call}"
