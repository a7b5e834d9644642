"""Which requests of other front ends a replica's own front end serves (`quorate.api_specs.messages.ForwardedRequest`). Pure.

Owns the rule "once at most". A forwarded request names the incarnation that may serve it, and this one remembers the ids that it
has met. It forgets the oldest first. Of a sender whose ids it forgot, it serves nothing at or below the highest of them: so a copy
that arrives late is refused, whatever clocks do, and no sender's ids refuse another's. A front end whose clock was set back counts
as another sender. What is refused here may be a copy, so the refusal is never definite. (By the clock it refuses, too, what was
asked long ago, since nobody waits for it any more.) Where ids of many senders were met and forgotten while the clock was ahead, no new sender could
be told from those before time has come there. Then the replica takes another incarnation, as at a restart.
"""

from collections import OrderedDict
from typing import Final

from ...api_specs.messages import Denied, ForwardedRequest, Granted
from ...client_sdk.protocol.core.values import Done, Outcome
from ...client_sdk.protocol.decisions.forwarding import SHARED_S, granted
from ...timestamps.timestamp import ZERO, Timestamp, site, wall_us

IDS_MAX: Final = 20_000
SENDERS_MAX: Final = 20_000
"""Senders of which it is known what was forgotten; beyond, what is forgotten counts for every sender that is not among them."""
COMMANDS_MAX: Final = 1000
"""Commands under way for other front ends; one more is left to its own."""
OBJECTS_MAX: Final = 1000

LastSent = tuple[str, float]
"""A front end's site, and when it asked last."""


class _Met:
    """The ids that were met. Those of one sender rise, but may come in any order."""

    def __init__(self) -> None:
        self._ids: Final[OrderedDict[Timestamp, None]] = OrderedDict()
        self._forgotten: Final[OrderedDict[str, Timestamp]] = OrderedDict()
        """The highest that was forgotten of each site; the site of which that was longest ago is first."""
        self._forgotten_of_others = ZERO
        """The same of all the sites that are not in there."""

    def is_new(self, found: Timestamp) -> bool:
        """Whether it certainly was not met before; now it is."""
        if found in self._ids or found <= self._floor(site(found)):
            return False
        self._ids[found] = None
        if len(self._ids) > IDS_MAX:
            self._forget(self._ids.popitem(last=False)[0])
        return True

    @property
    def floor_of_others(self) -> Timestamp:
        """A sender that is not known is refused what it sends at or below this."""
        return self._forgotten_of_others

    def _floor(self, sender: str) -> Timestamp:
        return self._forgotten.get(sender, self._forgotten_of_others)

    def _forget(self, met: Timestamp) -> None:
        sender = site(met)
        self._forgotten[sender] = max(met, self._floor(sender))
        self._forgotten.move_to_end(sender)
        if len(self._forgotten) > SENDERS_MAX:
            _, highest = self._forgotten.popitem(last=False)
            self._forgotten_of_others = max(self._forgotten_of_others, highest)


class AtMostOnce:
    """The forwarded requests that the present incarnation of a replica has met."""

    def __init__(self, offset_max_s: float) -> None:
        self._incarnation = ""
        self._offset_max_us: Final = int(offset_max_s * 1e6)
        self._met = _Met()
        self._under_way = 0
        self._senders: Final[OrderedDict[str, tuple[LastSent, LastSent]]] = OrderedDict()
        """Of each object: the front end that asked last, and the one before that was another."""

    def is_stuck(self, incarnation: str, now_us: int) -> bool:
        """Whether this incarnation would refuse every new sender until time has come to what it met while its clock was ahead."""
        return (
            incarnation == self._incarnation
            and wall_us(self._met.floor_of_others) > now_us + self._offset_max_us
        )

    def problem(self, request: ForwardedRequest, incarnation: str, now_us: int) -> str | None:
        """Why the forwarded request must not be served; None for one that was not met before, and is now. `incarnation` is the replica's of now: what one
        before has met is forgotten, for nothing is served any more that names it."""
        if incarnation != self._incarnation:
            self._incarnation, self._met = incarnation, _Met()
        if request.incarnation != incarnation:
            return "the replica was restarted meanwhile, or its clock was set back"
        if abs(wall_us(request.id) - now_us) > self._offset_max_us:
            return "the forwarded request's id is far from the replica's clock: it comes late, or one of the two is wrong"
        if not self._met.is_new(request.id):
            return "the forwarded request was met before, or is too old to tell"
        return None

    def begin(self, commands: int) -> bool:
        """Whether there is room for so many commands; from now on they are under way."""
        if self._under_way + commands > COMMANDS_MAX:
            return False
        self._under_way += commands
        return True

    def end(self, commands: int) -> None:
        """So many commands are no longer under way."""
        self._under_way -= commands

    def is_shared(self, request: ForwardedRequest, now_s: float) -> bool:
        """Whether another front end asked about the same object just now; notes that this one did."""
        nobody = ("", float("-inf"))
        last, other = self._senders.pop(request.object, (nobody, nobody))
        here = (site(request.id), now_s)
        other = other if last[0] == here[0] else last
        self._senders[request.object] = (here, other)
        if len(self._senders) > OBJECTS_MAX:
            self._senders.popitem(last=False)
        return now_s - other[1] < SHARED_S


def result_of(outcome: Outcome) -> Granted | Denied:
    """What goes back of the operation that served a command."""
    if isinstance(outcome, Done):
        return granted(outcome.result, outcome.answered)
    return Denied(outcome.detail, outcome.definite)
