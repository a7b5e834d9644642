"""What the SDK raises. Each error says whether it is `definite`: certain that nothing happened and nothing will.

    QuorateError
    ├── Unavailable         no quorum answered in time
    ├── OutcomeUnknown      it may or may not have taken effect; never definite
    ├── LeaseLost           some leases are not the caller's any more; definite for these, and the others took effect
    ├── RefusedByReplicas   they will not do it: wrong clock, other cluster file, no credentials, a key used before
    ├── LimitReached        a bound is met: repeat it when there is room again; always definite
    ├── BadInput            a name, value or option outside the rules (also a ValueError); always definite
    ├── BadCluster          a cluster file that cannot be used (also a ValueError); always definite
    └── Closed              the client was closed; definite when it was before the operation began

Owns this tree and the step from a failed outcome to its error. Must not know transports: what a network does reaches
here only as an outcome.
"""

from typing import Final

from ..api_specs import cluster
from ..api_specs.problems import KINDS, Limit
from .protocol.core.values import Failed

_SEND_A_HEADER: Final = KINDS["unauthorized"].advice.removesuffix(".")
PASS_A_TOKEN: Final = "Pass a token that this cluster accepts: connect(..., token=...)"
"""Who calls the SDK sends no headers."""


class QuorateError(Exception):
    """An operation gave no answer. `definite`: it is certain that it did not and will not take effect."""

    def __init__(self, message: str, *, definite: bool) -> None:
        super().__init__(message)
        self.definite = definite


class Unavailable(QuorateError):
    """No quorum answered before the deadline."""


class OutcomeUnknown(QuorateError):
    """The operation may or may not have taken effect: repeat it with its idempotency key, or look."""

    def __init__(self, message: str) -> None:
        super().__init__(message, definite=False)


class RefusedByReplicas(QuorateError):
    """The replicas answered that they will not do it; the message says why and what to do."""

    def __init__(self, message: str, *, definite: bool) -> None:
        super().__init__(message.replace(_SEND_A_HEADER, PASS_A_TOKEN), definite=definite)


class LimitReached(QuorateError):
    """A bound is met: nothing was done, and the operation may be repeated when there is room again. `limit` is the name of the
    bound, that of the problem (`quorate.api_specs.problems`)."""

    def __init__(self, message: str, limit: Limit) -> None:
        super().__init__(message, definite=True)
        self.limit: Final = limit


class LeaseLost(QuorateError):
    """Leases that the caller does not hold any more: for `lost` (their tokens) nothing was done. All others named in the same
    call took effect."""

    def __init__(self, lost: tuple[str, ...]) -> None:
        super().__init__(
            f"{'1 lease is' if len(lost) == 1 else f'{len(lost)} leases are'} not held any more "
            f"({', '.join(lost[:3])}{' …' if len(lost) > 3 else ''}): delivered to others meanwhile, or settled before",
            definite=True,
        )
        self.lost = lost


class BadInput(QuorateError, ValueError):
    """A name, value or option outside the rules; nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, definite=True)


class BadCluster(QuorateError, cluster.BadCluster):
    """The cluster file cannot be read or used; the message names the place and what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, definite=True)


class Closed(QuorateError):
    """The client was closed before the operation (definite) or during it."""


def error_of(failed: Failed) -> QuorateError:
    """The error that tells of a failed outcome."""
    match failed.reason:
        case "unavailable":
            return Unavailable(failed.detail, definite=failed.definite)
        case "unknown":
            return OutcomeUnknown(failed.detail)
        case "refused" | "key-reused":
            return RefusedByReplicas(failed.detail, definite=failed.definite)
        case limit if failed.definite:
            advice = KINDS[limit].advice.removesuffix(".")
            return LimitReached(f"{failed.detail.removesuffix('.')}. {advice}", limit)
    return OutcomeUnknown(failed.detail)
