"""How long a replica has held what summaries list: decisions under keys, ambiguous entries, and how leases ended; and that an object came to nothing. Pure.

Owns the rule that a replica's word about age rests on its own monotonic clock, and on nothing else. What a summary listed when
this replica met it is at least as old as that. So no step of any clock makes it older. A restart begins anew, and what was
there is called old later, never earlier. It must not know what is done with the word.
"""

from collections import OrderedDict, deque
from typing import Final

from msgspec.structs import replace

from ...adts.log import NOTHING, Summary
from ...api_specs.messages import NOT_AGED, Accept, Accepted, Aged, Collect, Collected, Reply, Request
from ...gc.arrivals import Arrivals
from ...timestamps.ballot import NO_BALLOT
from ...timestamps.timestamp import Timestamp
from .log import Log, ObjectState

SAMPLES: Final = 32
"""How often in a window it is noted how far an object's lists have come."""
OBJECTS_MAX: Final = 10_000
"""Objects followed. One that is dropped is met anew, and its lists are called old later."""


class Ages:
    """What one process of a replica knows of the age of lists. `window_s` is what counts as old."""

    def __init__(self, window_s: float) -> None:
        self._window_s: Final = window_s
        self._arrivals: Final = Arrivals(window_s)
        self._old = -1
        """What has this arrival number, or a lower one, was there a window before the batch."""
        self._met: Final[OrderedDict[str, deque[tuple[float, Aged]]]] = OrderedDict()

    def look(self, log: Log, mono_s: float) -> None:
        """A batch begins, or has been handled: note how far the log has come, and what of it is old."""
        self._old = self._arrivals.old(log, mono_s)

    def told(self, request: Request, reply: Reply, log: Log, mono_s: float) -> Reply:
        """The reply, which says what is old of the summary that this replica holds of the object."""
        if type(reply) is not Collected and type(reply) is not Accepted:
            return reply
        assert isinstance(request, (Collect, Accept)), "they alone are answered so"
        state = log.state(request.object)
        summary, aged = NOTHING if state is None else state.summary, NOT_AGED
        if _lists(summary) or request.object in self._met:
            self.meet(request.object, summary, mono_s)
            aged = self.aged(request.object, mono_s)
        if state is not None and (ended := _ended_long_ago(state, self._old)) is not None:
            aged = replace(aged, ended=ended)
        if aged is NOT_AGED:
            return reply
        if type(reply) is Collected:
            return replace(reply, aged=aged)
        return reply if reply.then is None else replace(reply, then=replace(reply.then, aged=aged))

    def meet(self, name: str, summary: Summary, mono_s: float) -> None:
        """Note how far the lists have come by now."""
        if not _lists(summary):
            self._met.pop(name, None)
            return
        ends = _ends(summary)
        met = self._met.setdefault(name, deque())
        self._met.move_to_end(name)
        if met and met[-1][1] == ends:
            return
        if len(met) > 1 and met[-1][0] < met[-2][0] + self._window_s / SAMPLES:
            met.pop()
        met.append((mono_s, ends))
        if len(self._met) > OBJECTS_MAX:
            self._met.popitem(last=False)

    def aged(self, name: str, mono_s: float) -> Aged:
        """How far the lists had come a window ago."""
        met = self._met.get(name)
        if met is None:
            return NOT_AGED
        while len(met) > 1 and met[1][0] + self._window_s <= mono_s:
            met.popleft()
        return met[0][1] if met[0][0] + self._window_s <= mono_s else NOT_AGED


def _ended_long_ago(state: ObjectState, old: int) -> Timestamp | None:
    """When the object came to nothing, if that was decided by that number, and still stands."""
    is_old = state.committed == state.accepted and state.decided_by <= old
    return state.ended() if is_old else None


def _lists(summary: Summary) -> bool:
    """Whether there is anything of an age in it."""
    return bool(summary.recent or summary.ambiguous or summary.settled)


def _ends(summary: Summary) -> Aged:
    """The ballots of what the lists end with."""
    return Aged(
        summary.recent[-1].ballot if summary.recent else NO_BALLOT,
        summary.ambiguous[-1][1] if summary.ambiguous else NO_BALLOT,
        summary.settled[-1].ballot if summary.settled else NO_BALLOT,
    )
