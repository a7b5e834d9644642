"""Seeing to it that entries which a look shows are in force, though a final quorum may not store them yet. Pure.

Owns what comes of it where there is no room for them, neither in logs nor in one decision. Must not know what is looked for.
"""

from collections.abc import Generator, Sequence
from typing import Final, NamedTuple

from msgspec import UNSET

from ....adts.log import Entry, Seen
from ..core.rounds import Event, Expired, Task
from ..decisions.payloads import Gone, Withheld, fetch_payloads
from ..decisions.transitions import Fate, RecoverCommand
from .blind import Blind
from .context import Machine, decide, pause

REST_S: Final = 0.5
"""So long it rests at first where there is no room, and then twice as long each time, but no longer than"""
REST_S_MAX: Final = 4.0
"""which is for others to take items. Each time sends all that is to be settled to all replicas."""


class Settled(NamedTuple):
    """What came of entries that were to be in force."""

    done: int
    """How many are in force: a final quorum stores them, or a decision has taken them up."""
    is_decided: bool
    """Whether decisions took some up, or had passed them."""
    room_asked: frozenset[str] | None = None
    """Who answered that one decision takes up no more; None where that was not so."""
    refusals: str = ""
    """Why replicas did not store them."""


def put_in_force(
    name: str, entries: Sequence[Entry], task: Task, machine: Machine
) -> Generator[float, Event, Settled]:
    """Have a final quorum store these entries; a decision takes up those that fences keep from it, one after the other while it has room."""
    blind, cache = Blind(name, task, machine), machine.cache_of(name)
    stored = yield from blind.write_back(*entries)
    done, fenced = len(stored), [entry for entry in entries if entry.t not in stored]
    for entry in fenced:
        cache.held_until_s = 0.0
        verdict = yield from decide(name, RecoverCommand(entry, may_be_complete=True), task, machine)
        if (
            verdict.result is Fate.UNKNOWN and entry.t > cache.summary.horizon
        ):  # Nor is there room for the rest.
            return Settled(done, True, verdict.answered, blind.refusals)
        done += verdict.result is Fate.IN_FORCE
    return Settled(done, bool(fenced))


class Settling:
    """Settles what one operation's looks at an object show, look after look."""

    def __init__(self, name: str, task: Task, machine: Machine) -> None:
        self._name: Final = name
        self._task: Final = task
        self._machine: Final = machine
        self._rest_s = REST_S

    def settle(self, doubtful: list[Seen]) -> Generator[float, Event, bool]:
        """Make sure that all these entries are in force; False when a decision was needed, and the view is out of date. Raises Expired where they have
        found no room, and the deadline leaves no time to try again."""
        name, task, machine = self._name, self._task, self._machine
        cache = machine.cache_of(name)
        missing = {found.entry.t for found in doubtful if found.entry.value is UNSET}
        try:
            payloads = (yield from fetch_payloads(task, cache, missing, machine.limits)) if missing else {}
        except (Withheld, Gone):  # A decision has passed it meanwhile, and its log has forgotten it.
            return False
        # Not taken in by the log cache when a decision has passed it meanwhile.
        entries = [
            Entry(each.id, each.t, payloads[each.t]) if each.value is UNSET else each
            for each in (found.entry for found in doubtful)
        ]
        settled = yield from put_in_force(name, entries, task, machine)
        if settled.room_asked is not None:
            yield from self._rest(settled.refusals, settled.room_asked)
        return not settled.is_decided

    def _rest(self, refusals: str, answered: frozenset[str]) -> Generator[float, Event, None]:
        """Leave others time to take items."""
        until_s = self._task.now.mono_s + self._rest_s
        if until_s >= self._task.deadline_s:
            raise Expired(
                f"too few replicas store some entries of {self._name}: its logs at the others are full, or fence them, and one decision takes up no "
                f"more of them; take items out, or raise --log-entries-max{refusals and f' ({refusals})'}",
                answered,
            )
        self._rest_s = min(2 * self._rest_s, REST_S_MAX)
        yield from pause(self._task, until_s)
