"""What the nodes of a world have in common: the world around them, and that a process may be stopped.

Owns no node. It must not know what nodes do.
"""

from collections.abc import Callable
from typing import Any, Protocol

from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import Capacity
from ...client_sdk.protocol.core.preference import Preference
from .network import Link, Network


class Surroundings(Protocol):
    """What nodes ask of the world they live in."""

    network: Network
    document: ClusterDocument
    has_codec: bool
    is_routed: bool
    is_gathered: bool
    is_busy: bool
    capacity: Capacity
    exchange_timeout_us: int
    is_traced: bool
    is_healed: bool
    now_us: int
    counters: dict[str, int]

    def later(self, delay_us: int, action: Callable[..., None], *args: Any) -> None:
        """Do it after a while."""

    def carry(self, link: Link, delay_us: int, action: Callable[..., None], *args: Any) -> None:
        """Do it when the packet arrives that starts now."""

    def note(self, what: str, times: int) -> None:
        """Count something so many times more."""

    def crash_front(self, front: Any) -> None:
        """The front end (`quorate.simulation.world.nodes.FrontNode`) vanishes."""

    def drift(self, node: str) -> float:
        """How far the node's clock runs fast or slow, as a share."""

    def preference(self, node: str, own: str | None) -> Preference:
        """Whom the front end asks first, and for how long."""

    def chance(self) -> float:
        """A random number in 0..1."""

    def trace(self, who: str, what: Callable[[], str]) -> None:
        """Note what happens; `what` is called only when someone listens."""


class Stoppable:
    """A process that may be stopped for a while (SIGSTOP): what comes meanwhile waits until it goes on."""

    def __init__(self) -> None:
        self._held: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether it is stopped now."""
        return self._held is not None

    def stop(self) -> None:
        """Do nothing any more until `go_on`."""
        if self._held is None:
            self._held = []

    def hold(self, action: Callable[..., None], *args: Any) -> None:
        """Do it when the process goes on."""
        assert self._held is not None
        self._held.append((action, args))

    def go_on(self) -> None:
        """Go on, with what has come meanwhile first."""
        held, self._held = self._held, None
        for action, args in held or ():
            action(*args)
