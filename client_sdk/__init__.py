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
    from .api.handles import AsyncDictionary, AsyncQueue, AsyncRegister
    from .api.history import History
    from .api.leases import DeadLetter, Lease, LeaseCounts
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
    "Queue",
    "QuorateError",
    "RefusedByReplicas",
    "Register",
    "Unavailable",
    "connect",
    "connect_async",
]

_HOMES: Final = {
    "quorate.api_specs.cluster": ("ClusterDocument",),
    "quorate.client_sdk.api.blocking": ("Client", "Dictionary", "Queue", "Register"),
    "quorate.client_sdk.api.client": ("AsyncClient",),
    "quorate.client_sdk.api.handles": ("AsyncDictionary", "AsyncQueue", "AsyncRegister"),
    "quorate.client_sdk.api.connect": ("connect", "connect_async"),
    "quorate.client_sdk.protocol.core.counters": ("Distribution", "FrontEndCounts", "OperationKind"),
    "quorate.client_sdk.errors": (
        "BadCluster",
        "BadInput",
        "Closed",
        "LeaseLost",
        "LimitReached",
        "OutcomeUnknown",
        "QuorateError",
        "RefusedByReplicas",
        "Unavailable",
    ),
    "quorate.client_sdk.api.history": ("History",),
    "quorate.client_sdk.api.leases": ("DeadLetter", "Lease", "LeaseCounts"),
    "quorate.client_sdk.transport.tls": ("ClientTls",),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
