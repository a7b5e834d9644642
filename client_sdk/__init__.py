"""The front end: a machine without I/O, the transports that drive it, typed handles, errors.

Owns how an operation runs against replicas, from its first message to its response or its error. Must not know how a
replica stores what it promised. The public names are here, each imported on first use: Python runs this file before the
pure machine, which must not bring a transport along.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..api_specs.cluster import ClusterDocument
    from .api.blocking import Client, Dictionary, Queue, Register
    from .api.client import AsyncClient
    from .api.connect import connect, connect_async
    from .api.handles import AsyncDictionary, AsyncQueue, AsyncRegister, Page
    from .api.history import History
    from .api.leases import DeadLetter, Delivery, Lease, LeaseCounts
    from .errors import (
        BadCluster,
        BadInput,
        Closed,
        LeaseLost,
        LimitReached,
        OutcomeUnknown,
        QuorateError,
        RefusedByReplicas,
        Unavailable,
    )
    from .protocol.core.counters import Distribution, FrontEndCounts, OperationKind
    from .transport.tls import ClientTls

__all__ = [
    "AsyncClient",
    "AsyncDictionary",
    "AsyncQueue",
    "AsyncRegister",
    "BadCluster",
    "BadInput",
    "Client",
    "ClientTls",
    "Closed",
    "ClusterDocument",
    "DeadLetter",
    "Delivery",
    "Dictionary",
    "Distribution",
    "FrontEndCounts",
    "History",
    "Lease",
    "LeaseCounts",
    "LeaseLost",
    "LimitReached",
    "OperationKind",
    "OutcomeUnknown",
    "Page",
    "Queue",
    "QuorateError",
    "RefusedByReplicas",
    "Register",
    "Unavailable",
    "connect",
    "connect_async",
]

_HOMES: Final = (
    "errors",
    "api.leases",
    "protocol.core.counters",
    "api.history",
    "transport.tls",
    "api.handles",
    "api.connect",
    "api.blocking",
)
"""The modules that have the public names: what is quickly imported comes first."""


def __getattr__(name: str) -> object:
    for home in _HOMES if name in __all__ else ():
        found = getattr(import_module(f".{home}", __name__), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
