"""All background tasks of a replica, as one.

Owns the order in which they begin and end. Must not know what they do.
"""

from collections.abc import Callable, Iterable
from typing import Final

from ...client_sdk.transport.driver import Driver
from ...client_sdk.transport.http_transport import HttpTransport
from ...client_sdk.transport.operator import Operator
from ..service.member import Member
from .announcer import Watch
from .background import Background
from .catching_up import CatchingUp
from .janitor import Janitor
from .looking import Looking
from .relaying import Relaying
from .repairing import Repairing
from .switching import Switching


class Upkeep:
    """Works for one member until `stop`, with the front end that is embedded in it. `to_others` makes a way to the other replicas, `operator` one who
    changes the configuration, which this replica's token allows where `may_change` says so; `further` are tasks that not every replica has."""

    def __init__(
        self,
        member: Member,
        front_end: Driver,
        to_others: Callable[[], HttpTransport],
        operator: Callable[[], Operator],
        may_change: Callable[[], bool],
        further: Iterable[Background] = (),
    ) -> None:
        repairing = Repairing(member, front_end)
        self._tasks: Final[list[Background]] = [
            Watch(member, to_others()),
            CatchingUp(member, to_others(), repairing),
            Looking(member, front_end),
            repairing,
            Relaying(member, front_end),
            Switching(member, operator, may_change),
            Janitor(member, front_end),
            *further,
        ]

    def start(self) -> None:
        """Begin, on the running event loop."""
        for each in self._tasks:
            each.start()

    async def stop(self) -> None:
        """End at once, before the front end is closed: they would take a closed one for an error. Again does nothing."""
        while self._tasks:
            await self._tasks.pop().stop()
