"""What one seed stands for: the cluster file, the clients and their operations, the faults, the clocks.

Owns the derivation from the seed. It must not know how a world runs it.
"""

import random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ...adts.log import Value
from ...adts.plain_class import PlainClass
from ...api_specs.cluster import ChoiceRule, ClockSettings, ClusterDocument, ReplicaInfo, checked
from ...api_specs.limits import Limits
from ...client_sdk.protocol.core.values import (
    CollectTombstone,
    CompareAndSet,
    Dequeue,
    Enqueue,
    Invoke,
    Items,
    Operation,
    Peek,
    PutIfAbsent,
    QueueSize,
    Read,
    Settle,
    Write,
)
from .faults import Faults

__all__ = ["BLIND", "KEYS", "Caller", "Faults", "Scenario", "keeps_order", "rule", "scenario"]

KEYS: Final = ("a", "b", "c")
LISTINGS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"most": 2},
    {},
    {"after": "a", "most": 1},
    {},
    {"prefix": "b"},
)
"""What a caller lists of a dictionary, in turn: all, the first two keys, the one behind a, those that begin with b."""
FIRST_SHARE: Final = 0.5
ANY_SHARE: Final = 0.05
"""Of operations on the first object, and on any other one, where callers go from object to object."""
BLIND: Final = {"queue": ["Enq/Ok"], "register": ["Write/Ok"], "dictionary": ["Put/Ok", "Delete/Ok"]}
DECIDE: Final = {"queue": ["Deq/Ok"], "register": ["Cas/Ok"], "dictionary": ["PutIfAbsent/Ok", "Cas/Ok"]}


class Leasing(Struct, frozen=True):
    """What callers do with leases (`quorate.simulation.scenarios.leased`)."""

    lease_s: float
    deliveries_max: int
    timed: float
    """Share of enqueued items that are due later, or expire."""
    forgotten: float
    """Share of leases that their holder never settles."""
    is_tight: bool
    """Whether a queue has room for a few leased items only."""


class Scenario(Struct, frozen=True):
    """One run. `is_exact`: clocks are good enough for the whole promise, the order of blind operations included."""

    seed: int
    document: ClusterDocument
    fronts: int
    processes: int
    """Concurrent callers on each front end."""
    operations: int
    """How many each process invokes."""
    objects: tuple[str, ...]
    weights: dict[str, int]
    keyed: float
    """Share of operations that carry an idempotency key, where they can."""
    deadline_s: float
    exchange_timeout_s: float
    think_us: int
    faults: Faults
    is_exact: bool
    has_codec: bool
    prunes: bool
    embedded: int = 0
    """How many of the front ends are embedded in a replica each."""
    is_routed: bool = False
    """Whether front ends that share an object hand their commands over; every replica has a front end then."""
    is_gathered: bool = False
    """Whether operations that are called at nearly one moment at one front end begin together, as those of one turn of an
    event loop do."""
    is_forgetful: bool = False
    """Whether the cluster's memory is short, so that forgetting happens within the run, and is checked at its end."""
    fault_span_us: int = 0
    """Faults begin within so much time, or the usual one if that is longer."""
    doubled: float = 0.0
    """Share of keyed enqueues that another front end runs at the same time, under the same key."""
    asks_again: float = 0.0
    """Share of keyed operations that are run once more, though they were answered: by a caller that lost its memory."""
    repeats_undone: bool = False
    """Whether keyed operations that certainly did nothing are called again under the same key, as calls of their own."""
    catches_up: bool = False
    """Whether replicas get what they missed from each other; at the end they must be level then."""
    leasing: Leasing | None = None
    """In worlds whose callers acquire."""
    drawn: PlainClass | None = None
    """In worlds of a type of one's own: that type (`quorate.simulation.scenarios.own`)."""
    is_busy: bool = False
    """Whether decisions on what has a state wait for one another, as those on large states do (`quorate.client_sdk.protocol.core.work`):
    between what they collect and what they do about it time passes."""
    in_turn: bool = False
    """Whether a caller goes on from one object to the next, but for the first one, which all use throughout."""
    objects_max: int = 0
    """How many objects a replica may have, in worlds whose replicas are full at times; 0: as many as come."""
    changes: tuple[ClusterDocument, ...] = ()
    """The configurations that operators want, one after another, or at once."""
    change_every_us: int = 0
    dying: str = ""
    """A member that is off for good, from when the others hold all that it holds; operators then declare it dead."""
    dying_in_between: str = ""
    """A member that is to stay, and is off for good in the middle of a change, from when another one holds all that it holds."""
    instead: str = ""
    """The new member that takes its place, if any does."""
    moving: tuple[int, ...] = ()
    """When a member moves to another URL, in microseconds."""
    each_another: tuple[str, ...] = ()
    """Arguments of its operations that are another one in each call, so that answers tell whose they are."""

    @property
    def is_changing(self) -> bool:
        """Whether the configuration may change: operators want another one, or rules have fallbacks."""
        return bool(self.changes or self.document.standing_rules)


def scenario(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = random.Random(f"scenario {seed}")
    faults = _faults(rng)
    clock, is_quorum, is_exact = _clocks(rng, faults)
    objects = rng.choice(
        [
            ("queue/q",),
            ("queue/q",),
            ("register/r",),
            ("dictionary/d",),
            ("queue/q", "register/r", "dictionary/d"),
        ]
    )
    fronts, processes = rng.choice([(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (4, 1)])
    keyed = rng.choice([0.0, 0.0, 0.3, 1.0])
    recent_max = 64 if faults == Faults() else rng.choice([4, 64, 64])
    return Scenario(
        seed=seed,
        document=_document(rng, clock, recent_max, is_quorum=is_quorum),
        fronts=fronts,
        processes=processes,
        operations=max(4, 40 // (fronts * processes)),
        objects=objects,
        weights=_weights(rng),
        keyed=keyed,
        deadline_s=rng.choice([0.3, 1.0, 3.0]),
        exchange_timeout_s=rng.choice([0.1, 0.5, 1.0]),
        think_us=rng.choice([0, 1_000, 10_000]),
        faults=faults,
        is_exact=is_exact,
        has_codec=rng.random() < 0.2,
        prunes=rng.random() < 0.5,
    )


def _faults(rng: random.Random) -> Faults:
    """Each fault is there in some runs only, so that each also meets a world that is otherwise quiet."""
    if rng.random() < 0.1:
        return Faults()
    return Faults(
        loss=rng.choice([0, 0, 0.02, 0.1, 0.25]),
        duplication=rng.choice([0, 0, 0.1]),
        tail=rng.choice([0, 0.05, 0.3]),
        tail_us_max=rng.choice([20_000, 300_000]),
        slow_links=rng.choice([0, 0, 1, 3]),
        cuts=rng.choice([0, 0, 1, 4]),
        partitions=rng.choice([0, 0, 0, 1, 2]),
        crashes=rng.choice([0, 0, 1, 3]),
        client_crashes=rng.choice([0, 0, 0, 1]),
        cancels=rng.choice([0, 0, 0.05]),
        lazy_loss=rng.choice([0, 0.3, 1.0]),
        joining=rng.choice([0, 0.5]),
        commit_us_max=rng.choice([0, 0, 2_000]),
        replica_skew_us=rng.choice([0, 0, 0, 3_000, 100_000]),
        client_skew_us=rng.choice([0, 0, 5_000, 1_000_000]),
        clock_steps=rng.choice([0, 0, 2]),
    )


def _clocks(rng: random.Random, faults: Faults) -> tuple[ClockSettings, bool, bool]:
    """Clock settings, whether ordering is by quorum, and whether blind operations keep their order (DESIGN section 3)."""
    has_good_replicas = faults.replica_skew_us <= 3_000
    has_good_clients = faults.client_skew_us == 0
    replica_error_s = 0.003 if has_good_replicas and faults.replica_skew_us else 0.0
    if rng.random() < 0.2:
        return ClockSettings(replica_error_s=replica_error_s), True, True
    if has_good_clients and rng.random() < 0.5:
        return ClockSettings(replica_error_s, front_end_error_s=0.0), False, has_good_replicas
    if rng.random() < 0.2:
        return (
            ClockSettings(0.0, front_end_error_s=0.0),
            False,
            has_good_clients and not faults.replica_skew_us,
        )
    return ClockSettings(replica_error_s), False, has_good_replicas


def keeps_order(document: ClusterDocument, faults: Faults) -> bool:
    """Whether the declared clock errors are true, or not needed: then blind operations keep their order."""
    if all(each.ordering == "quorum" for each in document.choices):
        return True
    clock = document.clock
    if faults.leaps:
        return False
    if faults.replica_skew_us > clock.replica_error_s * 1e6:
        return False
    if clock.front_end_error_s is None:
        return True
    return faults.client_skew_us * (3 if faults.clock_steps else 1) <= clock.front_end_error_s * 1e6


def _document(
    rng: random.Random, clock: ClockSettings, recent_max: int, *, is_quorum: bool
) -> ClusterDocument:
    votes = rng.choice([(1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1, 1, 1), (2, 1, 1), (1, 1, 1, 0)])
    replicas = tuple(
        ReplicaInfo(f"r{number}", f"http://r{number}:1", vote) for number, vote in enumerate(votes, 1)
    )
    rules = tuple(rule(rng, adt, sum(votes), is_quorum=is_quorum) for adt in BLIND)
    limits = Limits(
        page_entries_max=rng.choice([2, 5, 2000]),
        retry_window_s=5.0,
        deadline_s_max=4.0,
        wait_s_max=1.0,
        consumed_lag_s=5.0,
        recent_decisions_max=recent_max,
    )
    return checked(ClusterDocument("sim", replicas, rules, clock, limits))


def rule(rng: random.Random, adt: str, total: int, *, is_quorum: bool) -> ChoiceRule:
    """A random choice of final quorums; initial quorums as small as these allow."""
    blind, decide = rng.randint(1, total), rng.randint(1, total)
    least = total + 1 - min(blind, decide)
    classes = dict.fromkeys(BLIND[adt], (least if is_quorum else 0, blind))
    classes |= dict.fromkeys(DECIDE[adt], (least, decide))
    return ChoiceRule(f"{adt}/*", classes, "quorum" if is_quorum else "clock", collect=rng.random() < 0.9)


def _weights(rng: random.Random) -> dict[str, int]:
    """How often each operation is chosen; some not at all in some runs."""
    weights = {
        word: rng.choice([0, 1, 1, 3]) for word in ("Peek", "Size", "Items", "Cas", "PutIfAbsent", "Delete")
    }
    return weights | {"Enq": rng.choice([2, 3, 5]), "Deq": rng.choice([1, 3]), "Read": 2, "Write": 2}


class Caller:
    """One process: invents its operations as it goes, with values that nobody else uses."""

    def __init__(self, scenario: Scenario, who: str, rng: random.Random) -> None:
        self._scenario = scenario
        self._who = who
        self._rng = rng
        self._number = 0
        self._begun = self._turn = self._listed = 0
        self._written: dict[str, list[Value]] = {}

    def next(self) -> Operation:
        """The next operation."""
        operation = self._invented()
        if hasattr(operation, "key") and self._rng.random() < self._scenario.keyed:
            self._number += 1
            return replace(operation, key=f"{self._who}.{self._number}")
        return operation

    def _invented(self) -> Operation:
        return self._on_object(self._object())

    def _object(self) -> str:
        objects = self._scenario.objects
        if not self._scenario.in_turn:
            return self._rng.choice(objects)
        self._begun += 1
        others = objects[1:]
        if self._begun == 1:
            self._turn = self._rng.randrange(len(others))
        chance = self._rng.random()
        if chance < FIRST_SHARE:
            return objects[0]
        if chance > 1 - ANY_SHARE:
            return self._rng.choice(others)
        return others[(self._turn + self._begun * len(others) // self._scenario.operations) % len(others)]

    def _on_object(self, name: str) -> Operation:
        if name.startswith("queue/"):
            return self._on_queue(name)
        if name.startswith("register/"):
            return self._on_cell(self._chosen("Read", "Write", "Cas"), name)
        word = self._chosen("Read", "Write", "Cas", "PutIfAbsent", "Delete", "Items", "Collect")
        if word == "Items":
            self._listed += 1
            return Items(name, **LISTINGS[self._listed % len(LISTINGS)])
        return self._on_cell(word, f"{name}/{self._rng.choice(KEYS)}")

    def heard(self, operation: Operation, result: Any) -> None:
        """Note what an operation gave."""
        if isinstance(operation, Read):
            self.saw(operation.object, result)

    def saw(self, name: str, value: Value | None) -> None:
        """Note a value that was read, so that a compare-and-set may succeed."""
        if value is not None:
            self._written.setdefault(name, []).append(value)

    def _chosen(self, *words: str) -> str:
        return self._rng.choices(words, [self._scenario.weights.get(word, 0) for word in words])[0]

    def _value(self) -> Value:
        self._number += 1
        return Value(f'"{self._who}.{self._number}"')

    def _on_queue(self, name: str) -> Operation:
        rng = self._rng
        match self._chosen("Enq", "Deq", "Peek", "Size"):
            case "Enq":
                return Enqueue(name, tuple(self._value() for _ in range(rng.choice([1, 1, 1, 3]))))
            case "Deq":
                return Dequeue(name, rng.choice([1, 1, 1, 2, 5]), rng.choice([0.0, 0.0, 0.0, 0.05]))
            case "Peek":
                return Peek(name)
        return QueueSize(name)

    def _on_cell(self, word: str, name: str) -> Operation:
        match word:
            case "Read":
                return Read(name)
            case "Write" | "PutIfAbsent":
                value = self._value()
                self.saw(name, value)
                return Write(name, value) if word == "Write" else PutIfAbsent(name, value)
            case "Delete":
                return Write(name, None)
            case "Collect":
                return CollectTombstone(name)
        known = self._written.get(name)
        old = known[-1] if known and self._rng.random() < 0.8 else None
        new = self._value()
        is_delete = name.startswith("dictionary/") and self._number % 4 == 0
        return CompareAndSet(name, old, None if is_delete else new)


def is_owed(operation: Operation, result: Any) -> bool:
    """Whether a repeat under the operation's key is owed this very result, and does nothing: all but what found nothing to do."""
    match operation:
        case Enqueue(key=key):
            return bool(key)
        case Dequeue(key=key) | CompareAndSet(key=key) | PutIfAbsent(key=key):
            return bool(key) and bool(result)
        case Invoke(key=key):
            return bool(key) and result.condition == "Ok"
    return False


def is_repeatable(operation: Operation) -> bool:
    """Whether a repeat takes effect once: under a key, or by the tokens of leases."""
    return bool(getattr(operation, "key", "")) or isinstance(operation, Settle)
