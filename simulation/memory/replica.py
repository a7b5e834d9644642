"""A whole replica in memory: the shipped machine over a simulated store.

Owns how requests reach the machine and its effects the store. It must not know the network, nor when a replica crashes.
"""

from typing import Final

from ...adts.log import Entry
from ...api_specs.cluster import ClusterDocument
from ...api_specs.limits import Capacity
from ...api_specs.messages import Append, Batch, BatchReply, Changes, Reply, Request, Scan
from ...replica.protocol.acceptor import Handled
from ...replica.protocol.ages import Ages
from ...replica.protocol.ahead import Ahead
from ...replica.protocol.capacity import beyond, with_room
from ...replica.protocol.refusals import Bounds
from ...replica.protocol.room import handle_within
from ...timestamps.clock import Now
from .store import MemoryStore

UNBOUNDED: Final = Capacity()
"""That of a replica as it is shipped, which no world fills."""


class OtherCluster(ValueError):
    """The batch comes from a front end that goes by another configuration."""


class InMemoryReplica:
    """A replica without disk and network: the shipped machine over a MemoryStore.

    `now_us` arguments are this replica's wall clock, in microseconds.
    """

    def __init__(self, document: ClusterDocument, replica_id: str, capacity: Capacity = UNBOUNDED) -> None:
        self.document = document
        self.id = replica_id
        self.capacity = capacity
        self.store = MemoryStore()
        self._bounds = Bounds.of(document)
        self._told: dict[Changes, Reply] = {}
        """What was said of changes at the store's version `_told_at`: peers ask the same many times while nothing happens."""
        self._told_at = -1
        self._keeps_events: dict[str, bool] = {}
        self._number = 0
        self.start()

    @property
    def incarnation(self) -> str:
        """Changes with every start."""
        return f"{self.id}i{self._number}"

    def take_another_incarnation(self) -> None:
        """Count as one that was restarted."""
        self._number += 1

    def follow(self, document: ClusterDocument) -> None:
        """It is in this configuration from now on, durably, and takes messages of no other."""
        self.document = document
        self._bounds = Bounds.of(document)
        self._keeps_events.clear()

    def is_full(self, percent: int) -> bool:
        """Whether it has as many objects as it may for what goes so many percent beyond its bound."""
        return self.store.use().objects >= beyond(self.capacity, percent).objects_max

    def start(self) -> None:
        """Start, or start again after a crash: what was not committed is lost."""
        self.store.crash()
        self._number += 1
        self._ages = Ages(self.document.memory_s)
        self._ahead = Ahead(self.document.clock)

    def exchange(self, batch: Batch, now_us: int, stepped_us: int = 0) -> BatchReply:
        """Handle and commit a batch; OtherCluster when its sender goes by another configuration. Its clock was stepped so far."""
        reply = self.handle(batch, now_us, (now_us - stepped_us) / 1e6)
        self.store.commit()
        return reply

    def handle(self, batch: Batch, now_us: int, mono_s: float) -> BatchReply:
        """Handle a batch in the open transaction: the reply must not leave before `store.commit`. `mono_s` never steps."""
        if batch.cluster != self.document.hash:
            raise OtherCluster(f"replica {self.id} is in configuration {self.document.number}")
        self._ages.look(self.store, mono_s)
        self.look_ahead(now_us, mono_s)
        replies = tuple(
            [
                self._ages.told(request, self._answer(request, now_us), self.store, mono_s)
                for request in batch.requests
            ]
        )
        self._ages.look(self.store, mono_s)
        ahead = self._ahead.told(now_us)
        return BatchReply(self.id, self.incarnation, self.store.clock, now_us, replies, ahead=ahead)

    def with_room(self, request: Append) -> tuple[Entry, ...]:
        """Which of the entries that it writes back this replica has room for."""
        return with_room(request, self.store, self.capacity)

    def look_ahead(self, now_us: int, mono_s: float) -> None:
        """Note what stores hold ahead of time, as a replica does whenever it tells the others how far its store has come."""
        self._ahead.look(self.store.highest, Now(mono_s, now_us))

    def tell(self, request: Request, now_us: int) -> Reply:
        """Handle and commit one request of another replica."""
        reply = self._answer(request, now_us)
        self.store.commit()
        return reply

    def _answer(self, request: Request, now_us: int) -> Reply:
        if isinstance(request, Changes):
            return self._changes(request, now_us)
        keeps = not isinstance(request, Scan) and self.keeps(request.object)
        reply, effects = self._handled(request, now_us, keeps_events=keeps)
        self.store.apply(*effects)
        return reply

    def _changes(self, request: Changes, now_us: int) -> Reply:
        """A question that writes nothing, and whose answer depends on the store alone."""
        if self._told_at != self.store.version:
            self._told_at = self.store.version
            self._told.clear()
        told = self._told.get(request)
        if told is None:
            told, effects = self._handled(request, now_us)
            assert not effects
            self._told[request] = told
        return told

    def _handled(self, request: Request, now_us: int, *, keeps_events: bool = False) -> Handled:
        return handle_within(
            self.capacity, request, self.store, now_us, self._bounds, keeps_events=keeps_events
        )

    def keeps(self, name: str) -> bool:
        """Whether the object keeps its events (`collect = false`)."""
        known = self._keeps_events.get(name)
        if known is None:
            known = self._keeps_events[name] = not self.document.rule_of(name).collect
        return known
