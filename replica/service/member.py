"""One member of a cluster: a data folder, its committer, and the machine that answers batches from it.

Owns the way of a batch from checked requests to a durable reply, and what health means. Must not know HTTP.
"""

import logging
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeVar

from msgspec import Struct, field

from ...adts.log import Entry
from ...adts.types.catalogue import adt_of, is_log
from ...api_specs.classes_held import ClassHeld
from ...api_specs.cluster import BadCluster, ClusterDocument
from ...api_specs.limits import Capacity
from ...api_specs.messages import (
    Accept,
    Announcement,
    Append,
    Batch,
    BatchReply,
    Changes,
    Collect,
    Commit,
    Reply,
    Request,
    Scan,
    Testimony,
)
from ...gc.tombstones import Tombstones, Waiting
from ...timestamps.clock import Now
from ...timestamps.timestamp import ZERO, Timestamp
from ..access.authorization import changes
from ..data_folder.identity import Folder, new_incarnation
from ..protocol.ages import Ages
from ..protocol.ahead import Ahead
from ..protocol.capacity import Use, shares, with_room
from ..protocol.refusals import Bounds
from ..protocol.relay import Open
from ..protocol.request_counts import RequestCounts
from ..protocol.room import handle_within
from ..protocol.witness import Witness, contradiction, seen
from ..store.group_commit import Committer, Done, Note, Overloaded, Sized, TransactionCounts
from ..store.store import StorageFailed, Store
from .configured import Configured, WrongCluster
from .reply_budget import Budget

if TYPE_CHECKING:
    from .tracing import RequestTraces

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")
QUICK_REQUESTS_MAX: Final = 100
"""So many reads of cells take about a millisecond; more should not hold up the event loop."""
_LONG: Final = frozenset((Scan, Changes))


class StoreLost(Exception):
    """The replica has voted before from a store that it no longer has; it must not vote."""


class OtherConfiguration(StoreLost):
    """The replica has voted under other members or quorum choices, or another one that it asked has; it must not vote."""


class Starting(Exception):
    """The replica has not yet asked the others whether its store is the newest that they saw; nothing was done."""


class Vitals(NamedTuple):
    """What the store says of itself."""

    use: Use
    capacity_used: dict[str, float]
    """The share of each bound."""
    clock: Timestamp
    file_bytes: dict[str, int]
    tombstones: Waiting


class Peer(NamedTuple):
    """Another replica: whether it answered when it was asked last, and how far its clock was ahead of this one's when it did,
    in microseconds, to within `error_us`; None while that is not known. `votes`: whether it bore witness, which one that lost
    its store or stops does not; `met_s`: when it was asked, by the monotonic clock."""

    is_up: bool
    offset_us: int | None = None
    error_us: int = 0
    votes: bool = False
    met_s: float = 0.0


class Lag(Struct):
    """How far this replica is behind another one: `changes` of its log that were not looked at yet, or may not be installed yet
    (None: not known), and since when nothing was missing (`level_s`, by the monotonic clock). `entries` and `bytes` of payload
    were brought from it."""

    changes: int | None = None
    level_s: float | None = None
    entries: int = 0
    bytes: int = 0


class Switches(Struct):
    """Of standing rules: how often this replica switched them, by what came of it, and why none is made that is due; empty where nothing speaks
    against it."""

    ended: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("done", "given-up", "refused"), 0))
    waits: str = ""


Trouble = Literal["stopping", "store-lost", "other-configuration", "starting", "storage-failed"]


class Member:
    """Answers for the replica that the folder is of. `wall_us` reads the physical clock, in microseconds since 1970, and `mono_s` one that never steps, in
    seconds; `endpoints` maps ids of other replicas to URLs that override the document's."""

    def __init__(
        self,
        folder: Folder,
        *,
        wall_us: Callable[[], int] = lambda: time.time_ns() // 1000,
        mono_s: Callable[[], float] = time.monotonic,
        endpoints: Mapping[str, str] | None = None,
        traces: "RequestTraces | None" = None,
        capacity: Capacity = Capacity(),  # noqa: B008 - it cannot change
    ) -> None:
        self.capacity: Final = capacity
        self.configured: Final = Configured(
            folder.document, self.run, folder.identity.replica, self._check_told, folder.raise_schema
        )
        """In which configuration it is."""
        document = folder.document
        self.id: Final = folder.identity.replica
        self.endpoints: Final = dict(endpoints or {})
        self.folder: Final = folder
        self.wall_us: Final = wall_us
        self._mono_s: Final = mono_s
        self.traces: Final = traces
        """Follows requests; None where nothing is traced."""
        self.tombstones: Final = Tombstones()
        self.requests: Final = RequestCounts()
        self.lags: Final = {name: Lag() for name in document.votes if name != self.id}
        """How far it is behind the others."""
        self.peers: Final[dict[str, Peer]] = {}
        """The other replicas, as the watch met them last."""
        self.switches: Final = Switches()
        self._bounds = Bounds.of(document)
        self._ages: Final = Ages(document.memory_s)
        self._ahead: Final = Ahead(document.clock)
        self.outboxes: Final = Open(document, self.id) if document.has_outboxes else None
        """Those of this replica in which something may wait; None where no queue has outboxes."""
        self.lost: str | None = folder.lost
        """Why this replica must not vote; None when nothing speaks against it."""
        self._is_other = folder.is_other
        self.is_new = folder.is_new
        """Whether its store has never voted: it does not before every other replica has noted its birth."""
        self.awaited: Mapping[str, str] = dict.fromkeys(self.lags if self.is_new else (), "")
        """The replicas that have not noted the store of a new one, and what came of asking them."""
        self.is_vouched_for = document.votes.keys() <= {self.id}
        """Whether the other replicas, if any, were asked about its store; before, it does not vote."""
        self.is_stopping = False
        self.held: tuple[ClusterDocument, frozenset[str], tuple[ClassHeld, ...]] | None = None
        """The event classes that were held last, under that configuration, by those who voted."""
        """Whether it was told to stop: what is under way is ended, and nothing new is begun."""
        self.began = ZERO
        """Where the clock of the store stood when it was opened, before this process wrote to it."""
        self._committer: Final = None if folder.database is None else self._opened(Store(folder.database))
        self.configured.followers.append(self._go_on)

    @property
    def others(self) -> list[str]:
        """The other members, as all on the event loop know them."""
        return list(self.lags)

    @property
    def is_member(self) -> bool:
        """Whether it is a member of the configuration that it is in. One that is to become a member follows the configurations meanwhile."""
        return self.id in self.document.votes

    @property
    def urls(self) -> dict[str, str]:
        """Where it finds each replica."""
        return self.document.urls | self.endpoints

    def _check_told(self, told: ClusterDocument) -> None:
        """Raises BadCluster for a configuration that never knew this replica, which has voted elsewhere: two clusters may have one name."""
        if not (self.is_new or self.id in told.votes or self.id in told.former_members):
            raise BadCluster(f"it names no replica {self.id}, and never has: it is of another cluster")

    def _go_on(self, document: ClusterDocument) -> None:
        """It is in this configuration from now on."""
        self._bounds = Bounds.of(document)
        others = [name for name in document.votes if name != self.id]
        if self.is_new:
            self.awaited = dict.fromkeys(others, "")
        for name in self.lags.keys() - others:
            del self.lags[name]
            self.peers.pop(name, None)
        for name in others:
            self.lags.setdefault(name, Lag())
        if (why := self.folder.why_no_member(document)) is not None and self.lost is None:
            self._is_other, self.lost = True, why
            _log.error("%s", why)

    @property
    def document(self) -> ClusterDocument:
        """The cluster's, with the configuration that this replica is in: it takes messages of no other."""
        return self.configured.document

    def _opened(self, store: Store) -> Committer:
        self.began = store.clock
        self.configured.begin(store)
        if self.is_vouched_for and self.lost is None:  # Nobody need be asked.
            self._note(store)
            store.commit()
        committer = Committer(store)
        committer.start()
        return committer

    def now(self) -> Now:
        """The present moment, by which its own front end goes as well: right or wrong, the two tell the same time."""
        return Now(self._mono_s(), self.wall_us())

    async def answer(self, batch: Batch, caller: Hashable = None) -> BatchReply:
        """The reply to a checked batch, or to the first of its requests where they are much
        (`quorate.replica.service.reply_budget`), once all it promises is on disk; `caller` takes turns with others.

        Raises StoreLost, Starting, WrongCluster, Overloaded (nothing was done) or StorageFailed (not known).
        """
        if self.traces is not None and batch.trace:
            return await self.traces.handled(partial(self._answer, caller=caller), batch)
        return await self._answer(batch, caller=caller)

    async def _answer(self, batch: Batch, note: Note | None = None, *, caller: Hashable) -> BatchReply:
        self._check_voting(batch)
        return await self.run(
            partial(self._handle_batch, batch),
            len(batch.requests),
            is_quick=_is_quick(batch.requests),
            note=note,
            caller=caller,
            is_long=_is_long(batch.requests),
        )

    def post(self, batch: Batch, done: Done, is_wanted: Callable[[], bool], caller: Hashable = None) -> None:
        """As `answer`, without traces, for who would rather be told than wait: `done` hears the reply, StorageFailed, or
        Unwanted where it was no longer wanted before it began."""
        self._check_voting(batch)
        if self._committer is None or self.lost is not None:
            raise self.lost_error()
        self._committer.post(
            partial(self._handle_batch, batch),
            done,
            len(batch.requests),
            is_quick=_is_quick(batch.requests),
            is_wanted=is_wanted,
            caller=caller,
            is_long=_is_long(batch.requests),
        )

    def _check_voting(self, batch: Batch) -> None:
        if (
            not self.is_member
        ):  # Whoever goes by an earlier configuration takes it for one, and is told of this one.
            self.configured.check(batch.cluster)
        if not self.is_vouched_for and self.lost is None:
            raise Starting(self._asking())

    def _asking(self) -> str:
        waits = ", ".join(f"{name} ({said})" if said else name for name, said in self.awaited.items())
        if not self.is_member:
            unknown = f", once {waits} noted its store" if waits else ""
            return f"it is no member yet, in configuration {self.document.number}: `quorate member add` makes it one{unknown}"
        if not self.is_new:
            return "it still asks the other replicas how far they saw its store; it votes in a moment"
        return (
            "it is new, and votes once every other replica has noted its store, which has not yet been done by "
            f"{waits or 'them'}: the first start of a cluster needs all its replicas"
        )

    def lost_error(self) -> StoreLost:
        """The error that says why it must not vote."""
        return OtherConfiguration(self.lost) if self._is_other else StoreLost(self.lost)

    def _note(self, store: Store) -> None:
        """The configuration under which it votes from now on."""
        if self.is_new:
            store.note_configuration(self.document)
        else:
            store.note_types(self.document)

    async def admit(self) -> None:
        """The others vouch for the store: note under which configuration it votes, and vote from now on."""
        async with self.configured.turn:
            await self.run(self._note)
        self.is_new, self.is_vouched_for = False, True

    async def take_another_incarnation(self) -> None:
        """Count as a replica that was restarted just now, where it was asked in the name of the incarnation before. Raises as `run` does; it may count so
        nevertheless."""

        def work(store: Store) -> None:
            # In the store's turn, so that no reply of the former incarnation tells of a later clock.
            self.began, self.folder.incarnation = store.clock, new_incarnation()

        await self.run(work)

    async def run(
        self,
        work: Callable[[Store], _Result | Sized[_Result]],
        weight: int = 1,
        *,
        is_quick: bool = False,
        note: Note | None = None,
        caller: Hashable = None,
        is_long: bool = False,
    ) -> _Result:
        """What `work` returns, in a transaction on the store; the others as for the committer. Raises as `answer` does."""
        if self._committer is None or self.lost is not None:
            raise self.lost_error()
        return await self._committer.submit(
            work, weight, is_quick=is_quick, note=note, caller=caller, is_long=is_long
        )

    def _handle_batch(self, batch: Batch, store: Store) -> Sized[BatchReply]:
        """In the store's turn: the configuration may have changed since the batch came."""
        self.configured.check(batch.cluster)
        return self._handle(store, batch.requests)

    def _handle(self, store: Store, requests: Sequence[Request]) -> Sized[BatchReply]:
        replies: list[Reply] = []
        now_us, mono_s, budget = self.wall_us(), self._mono_s(), Budget(self._bounds.page_bytes_max)
        self._ages.look(store, mono_s)
        self._ahead.look(store.highest, Now(mono_s, now_us))
        for request in requests:
            if self.outboxes is not None:
                self.outboxes.note(request)
            keeps = (type(request) is Accept or type(request) is Commit) and self.configured.keeps_events(
                request.object
            )
            reply, effects = handle_within(
                self.capacity, request, store, now_us, self._bounds, keeps_events=keeps
            )
            self.requests.note(request, reply, effects, store)
            if effects:
                store.apply(effects)
            reply = self._ages.told(request, reply, store, mono_s)
            replies.append(reply)
            if budget.is_spent_by(request, reply):
                break
        # By a later time: the process may have stood still since the batch began.
        self._ages.look(store, self._mono_s())
        incarnation = self.folder.incarnation
        now_us, ahead = self.wall_us(), self._ahead.told(now_us)
        whole = BatchReply(self.id, incarnation, store.clock, now_us, tuple(replies), self.began, ahead)
        return Sized(whole, budget.bytes)

    def perform(self, store: Store, request: Request) -> Reply:
        """The reply to a request of this replica's own, which is done as part of the transaction."""
        return self._handle(store, (request,)).result.replies[0]

    def with_room(self, store: Store, request: Append) -> tuple[Entry, ...]:
        """Which of the entries that it writes back this replica has room for."""
        return with_room(request, store, self.capacity)

    async def testify(self, announcement: Announcement, within: ClusterDocument | None = None) -> Testimony:
        """What was known of the sender's store; from now on, what it says as well, unless it cannot be written. A replica
        that does not vote may still testify, if it has a store at all. Raises as `run` does, and WrongCluster where it went on from the configuration
        `within` which it was asked."""
        if self._committer is None:
            raise StoreLost(self.lost)

        def work(store: Store, *, notes: bool) -> Testimony:
            if within is not None and self.document is not within:
                raise WrongCluster(announcement.cluster, self.document)
            is_member = announcement.replica in self.document.votes
            known = store.others.witness(announcement.replica)
            now = seen(known, announcement, is_member=is_member)
            if not is_member:
                known = None
                if not store.others.has_room(announcement.replica, self.document.votes):
                    raise Overloaded("too many replicas that are no members have announced themselves")
            if notes and now != known:
                store.others.put_witness(announcement.replica, now)
            self._ahead.look(store.highest, self.now())
            before = known or Witness("", ZERO)
            is_noted = notes and (now.store, now.born) == (announcement.store, announcement.born)
            refuses = (self.folder.lost or "") if self.folder.is_other else ""
            now_us = self.wall_us()
            return Testimony(before.store, before.clock, is_noted, now_us, before.born, refuses)

        try:
            return await self._committer.submit(partial(work, notes=True))
        except StorageFailed:  # Its disk is full, say: what it knows, it can still tell.
            return await self._committer.submit(partial(work, notes=False))

    async def announcement(self, *, is_first: bool = False) -> Announcement:
        """How far this replica's store has come, as is on disk; `is_first`: how far it had come when it was opened."""

        def come(store: Store) -> Timestamp:
            self._ahead.look(store.highest, self.now())
            return self.began if is_first else store.clock

        clock = await self.run(come)
        identity = self.folder.identity
        is_named = any(each.id == self.id and each.store for each in self.document.replicas)
        return Announcement(
            self.document.hash, self.id, identity.store, clock, is_named, identity.born, self.is_new
        )

    def hear(self, witness: str, told: Announcement, testimony: Testimony) -> None:
        """Take what replica `witness` answered to `told`: this one stops voting when it contradicts its store."""
        sentence = contradiction(told, witness, testimony)
        if sentence is not None and self.lost is None:
            self._is_other = told.is_new and bool(testimony.refuses)
            self.lost = sentence
            _log.error("%s", sentence)

    async def vitals(self) -> Vitals | None:
        """Figures of the store; None without one."""
        if self._committer is None:
            return None
        return await self.run(self._vitals)

    def _vitals(self, store: Store) -> Vitals:
        use = store.use()
        used = shares(use, self.capacity)
        return Vitals(use, used, store.clock, store.sizes(), self.tombstones.waiting())

    @property
    def why_lost(self) -> Trouble:
        """The kind of reason of `lost`."""
        return "other-configuration" if self._is_other else "store-lost"

    @property
    def trouble(self) -> Trouble | None:
        """What kind of reason keeps this replica from voting now; None when it can."""
        if self.is_stopping:
            return "stopping"
        if self.lost is not None:
            return self.why_lost
        if not self.is_vouched_for:
            return "starting"
        return "storage-failed" if self.why_not_ready() else None

    @property
    def transactions(self) -> TransactionCounts | None:
        """What its transactions were like; None without a store."""
        return None if self._committer is None else self._committer.counts

    def why_not_ready(self) -> list[str]:
        """The reasons why this replica cannot vote now; empty when it can."""
        asking = None if self.is_vouched_for else self._asking()
        stopping = "it is stopping" if self.is_stopping else None
        reasons = [
            stopping,
            self.lost or asking,
            None if self._committer is None else self._committer.problem,
        ]
        return [reason for reason in reasons if reason is not None]

    def close(self) -> None:
        """Answer what waits, close the store and unlock the folder. Blocks."""
        if self._committer is not None:
            self._committer.stop()
        self.folder.close()


def _is_quick(requests: Sequence[Request]) -> bool:
    return len(requests) <= QUICK_REQUESTS_MAX and all(map(_reads_a_cell, requests))


def _is_long(requests: Sequence[Request]) -> bool:
    """Whether it reads pages of many objects, which takes a hundred times as long as what front ends ask for."""
    return not _LONG.isdisjoint(map(type, requests))


def _reads_a_cell(request: Request) -> bool:
    """Whether it reads a register or a dictionary's key, whose log is short, and changes nothing."""
    return isinstance(request, Collect) and not changes(request) and not is_log(adt_of(request.object))
