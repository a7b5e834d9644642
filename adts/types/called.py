"""A type of the users' own, as quorums see it: replicas keep its objects' states without its code, so any call may depend on any."""

from collections.abc import Hashable, Mapping
from typing import Any, Final

from ..specification import EventClass, Invocation, Kind, Response

CALL: Final = "Call"
"""Every operation of such a type, to quorums."""


class Called:
    """The type of that name. Each call is decided: it reads what earlier ones wrote, whatever they did."""

    arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {CALL: {}}
    results: Final[Mapping[EventClass, tuple[str, ...]]] = {}
    kinds: Final[Mapping[str, Kind]] = {CALL: Kind.DECIDE}
    changes: Final[frozenset[EventClass]] = frozenset({f"{CALL}/Ok"})
    depends: Final[Mapping[EventClass, frozenset[EventClass]]] = {f"{CALL}/Ok": changes}

    def __init__(self, name: str) -> None:
        self.name: Final = name

    def initial(self) -> Hashable:
        """How many calls there were: all that is known without the code."""
        return 0

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """See SerialSpecification."""
        del invocation
        return state + 1, Response("Ok")
