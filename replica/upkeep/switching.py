"""The background task that puts fallbacks of standing rules in force, and first choices again, as members fail and come back.

Owns the rhythm, and that a switch has a deadline. What is due, and whose turn it is, is `standing_rules`' business; the steps are those of any
operator. It takes from the watch who is live.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from ...api_specs.cluster import BadCluster
from ...client_sdk.errors import QuorateError, RefusedByReplicas
from ...client_sdk.protocol.core.values import Done, Failed
from ...client_sdk.protocol.reconfiguration import CarryAll, Perform, Todo, followed
from ...client_sdk.protocol.standing_rules import Move, StandingRules, Waits, states_of
from ...client_sdk.transport.operator import Operator
from ..logs.audit import audit
from ..logs.throttle import Troubles
from ..service.member import Member, StoreLost
from ..service.quorums_held import voting_of
from .background import Background

ROUND_S: Final = 0.5
ATTEMPT_S: Final = 30.0
"""For all of a switch but waiting until idempotency keys are forgotten; it begins anew with each object that is carried, of which there may be any
number."""
REST_S: Final = 5.0
"""After a switch that came to nothing."""
NO_RIGHT: Final = (
    "fallbacks are not switched by this replica: the token that it sends to the others (QUORATE_TOKEN) is not of scope admin: put one of the scopes "
    "replica and admin there, and its line into all lists"
)

_log = logging.getLogger(__name__)


class Switching(Background):
    """Works for one member until `stop`. `operator` makes one who changes the configuration in this replica's name; `may_change` says whether its
    token allows that."""

    def __init__(
        self, member: Member, operator: Callable[[], Operator], may_change: Callable[[], bool]
    ) -> None:
        super().__init__(_log)
        self._member: Final = member
        self._operator: Final = operator
        self._may_change: Final = may_change
        self._rules: Final = StandingRules(member.id)
        self._waiting: Final = Troubles(_log, logging.WARNING)
        self._attempt: tuple[asyncio.Task[None], Move] | None = None
        self._rests_until_s = 0.0
        self._failed = ""
        """Why the last attempt came to nothing, while the same is still due."""

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._begin(self._rounds(), "quorate-switching")

    async def _rounds(self) -> None:
        with suppress(StoreLost):
            while True:
                await asyncio.sleep(ROUND_S)
                await self._outlived(self._look(), "standing rules wait", "the look at standing rules")

    async def _look(self) -> None:
        member, now_s = self._member, self._member.now().mono_s
        document = member.document
        if member.trouble is not None or not document.standing_rules:
            self._say("")
            return
        found = self._rules.look(document, voting_of(member.id, member.peers, now_s), now_s)
        if not self._may_change():
            self._say(NO_RIGHT)
            return
        if self._attempt is not None and not self._has_ended(*self._attempt, found, now_s):
            return
        if not isinstance(found, Move):
            self._failed = ""
        self._say(found.reason if isinstance(found, Waits) else self._failed)
        if isinstance(found, Move) and found.is_ours and now_s >= self._rests_until_s:
            begun = self._begin(self._switch(found), "quorate-switch")
            self._attempt = None if begun is None else (begun, found)

    def _has_ended(
        self, task: asyncio.Task[None], move: Move, found: Move | Waits | None, now_s: float
    ) -> bool:
        """Whether the attempt is over. One that is not wanted any more is given up."""
        if task.done():
            self._attempt = None
            if task.cancelled():
                self._failed = ""
            if self._failed:
                self._rests_until_s = now_s + REST_S
            return True
        is_there = states_of(self._member.document) == move.states
        if found.goal != move.goal if isinstance(found, Move) else not is_there:
            task.cancel()
        return False

    def _say(self, why: str) -> None:
        """Why no switch is made that is due, or would not be; nothing speaks against it where that is empty."""
        self._member.switches.waits = why
        if why:
            self._waiting.meet(why)
        else:
            self._waiting.end()

    async def _switch(self, move: Move) -> None:
        """Bring it to its end, or give it up: whoever is next finds how far it has come."""
        await self._outlived(self._ended(move), "standing rules wait", "a switch")

    async def _ended(self, move: Move) -> None:
        self._failed, outcome = f"{move.reason}; the switch met an error of its own", "given-up"
        try:
            await self._carry_out(move)
            self._failed, outcome = "", "done"
        except RefusedByReplicas as error:
            self._failed, outcome = f"{move.reason}; other replicas refuse the switch: {error}", "refused"
        except TimeoutError:
            self._failed = f"{move.reason}; the switch has not come to its end in time"
        except (BadCluster, QuorateError) as error:
            self._failed = f"{move.reason}; the switch came to nothing: {error}"
        finally:
            self._member.switches.ended[outcome] += 1

    async def _carry_out(self, move: Move) -> None:
        _log.info("switches the configuration: %s", move.reason)
        operator, choosing = self._operator(), Choosing()
        try:
            patience_s = ATTEMPT_S + move.at.memory_s
            async with asyncio.timeout(patience_s) as limit:
                steps = followed(move.steps(), partial(put_off, limit, patience_s))
                document = await operator.run(followed(steps, choosing.hear))
        finally:
            await operator.aclose()
        if states_of(document) != move.states:
            raise BadCluster("somebody else has changed the configuration meanwhile")
        if not choosing.may_be_ours:
            return
        fallen_back = [objects for objects, state in move.states if state]
        audit("fallbacks", epoch=document.number, in_force=fallen_back, reason=move.reason)


class Choosing:
    """Whether the configuration in force at the end of a change is the one that who hears of its steps had chosen: others may carry out the same switch, and
    one of them tells of it."""

    def __init__(self) -> None:
        self.may_be_ours = False
        """Also where that is not known: it is told twice rather than by nobody."""

    def hear(self, todo: Todo, answer: Any) -> None:
        """A step was done, with what came of it. Each that performs an operation would have a configuration chosen."""
        if isinstance(todo, Perform):
            is_chosen = isinstance(answer, Done) and answer.result is True
            self.may_be_ours = is_chosen or (isinstance(answer, Failed) and not answer.definite)


def put_off(limit: asyncio.Timeout, seconds: float, todo: Todo, answer: Any) -> None:
    """The limit is so many seconds from now, where that step has carried an object."""
    if isinstance(todo, CarryAll) and any(isinstance(each, Done) for each in answer):
        limit.reschedule(asyncio.get_running_loop().time() + seconds)
