"""What passes between a decider, its callers and the front end around them. Pure values and a protocol."""

from collections.abc import Generator
from typing import Any, Final, Protocol

from msgspec import Struct

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Commit
from quorate.client_sdk.decisions import Wish
from quorate.client_sdk.effects import Failed
from quorate.client_sdk.tasks import SOON_S, Event, Task
from quorate.timestamps.timestamp import Timestamp

WISHES_MAX: Final = 256
"""Decided in one batch."""


class Verdict(Struct, frozen=True):
    """What a decision tells its caller: a result and the replicas it rests on, or a failure."""

    result: Any = None
    answered: frozenset[str] = frozenset()
    failed: Failed | None = None


class Asked(Struct, eq=False):
    """A wish, whom to tell the result, and until when it is wanted."""

    wish: Wish
    task: Task
    is_proposed: bool = False
    """Whether something that may grant it was sent: from then on its outcome may be unknown."""
    is_here: bool = False
    """Whether it must be decided by this front end: another one handed it over, or would not take it."""


class Batches:
    """Takes from the wishes that wait for a decision, the oldest first."""

    def __init__(self, waiting: list[Asked]) -> None:
        self._waiting: Final = waiting
        self._latest = 0

    def next(self, task: Task) -> Generator[float, Event, list[Asked]]:
        """The next batch; empty when nobody asks any more.

        The callers of a batch of several were just told, and most of them ask again. They may do so first: else two halves
        of all callers would take turns, and each decision serve one of them.
        """
        if self._latest > 1:
            until_s = task.now.mono_s + SOON_S
            while task.now.mono_s < until_s:
                yield until_s
        batch = self._waiting[:WISHES_MAX]
        self._latest = len(batch)
        return batch


class Machine(Protocol):
    """What a decider needs of the front end around it."""

    @property
    def document(self) -> ClusterDocument:
        """The cluster document."""

    @property
    def limits(self) -> Limits:
        """The cluster document's limits."""

    def stamp(self) -> Timestamp:
        """A new timestamp of this front end."""

    def random(self) -> float:
        """A number in [0, 1) from the front end's seed."""

    def oldest_remembered(self) -> Timestamp:
        """What has a lower timestamp is beyond all retries, and may be forgotten."""

    def oldest_turn(self) -> Timestamp:
        """A turn with a lower timestamp is ended, lest summaries forget it."""

    def payload_source(self) -> str:
        """The replica to ask for payloads; the others send ids and timestamps."""

    def resolve(self, asked: Asked, verdict: Verdict) -> None:
        """Tell the caller."""

    def send_lazily(self, replica: str, request: Commit) -> None:
        """Send along with the next message to that replica."""

    def count(self, what: str) -> None:
        """Add one to a counter."""
