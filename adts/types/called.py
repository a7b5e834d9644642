"""A type of the users' own, as quorums see it: replicas keep its objects' states without its code, so any call may depend on any."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response

CALL: Final = "Call"
"""Every operation of such a type that looks at the state, to quorums."""
BLIND: Final = "Blind"
"""Every one that does not."""
_CHANGES: Final = frozenset({f"{CALL}/Ok", f"{BLIND}/Ok"})


class Called:
    """The type of that name. Each call is decided: it reads what earlier ones wrote, whatever they did; but for those of operations that
    the class calls blind, which read nothing."""

    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {CALL: {}, BLIND: {}}
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {}
    kinds: Final[Mapping[str, Kind]] = {CALL: Kind.DECIDE, BLIND: Kind.BLIND}
    changes: Final[frozenset[EventClass]] = _CHANGES
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {
        f"{CALL}/Ok": _CHANGES,
        f"{BLIND}/Ok": frozenset(),
    }

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def initial(self) -> Hashable:
        """How many calls there were: all that is known without the code."""
        return 0

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """See SerialSpecification."""
        del invocation
        return state + 1, Response("Ok")
