"""Mistakes of the front end outside decisions: blind operations, observations, clocks, and what it counts."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec.structs import replace

from quorate.adts import cell
from quorate.adts.log import Entry
from quorate.adts.specification import Kind
from quorate.adts.types import queue
from quorate.api_specs.messages import Collect, Reply
from quorate.client_sdk.protocol import front_end as machine
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.rounds import Event, Expired, Task
from quorate.client_sdk.protocol.core.time_now import TimeNow
from quorate.client_sdk.protocol.core.values import Done, Items, Listed, Peek, Read
from quorate.client_sdk.protocol.decisions import transitions
from quorate.client_sdk.protocol.operations import blind, everywhere, observe, runs
from quorate.client_sdk.protocol.operations.cell_parts import ReadPart, StoredPart
from quorate.client_sdk.protocol.operations.context import (
    Machine,
    OperationFailed,
    OutcomeSteps,
    is_better_known,
)
from quorate.quorums.choices.choice import QuorumChoice, Sizes
from quorate.quorums.systems.tally import Quorum
from quorate.replica.protocol import acceptor
from quorate.simulation.history import Call
from quorate.simulation.world.world import Process
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.sim.planted.plant import AnyOne, OneTwice, Planting, patched
from tests.sim.schedules.test_directed import plain_peek

Blind = blind.Blind
Steps = Generator[float, Event, None]


def stamp_anew_when_fenced() -> Planting:
    """Fenced somewhere? A new timestamp, and again, though some replica may hold the old one."""

    def recover(self: Blind, attempt: Any) -> Steps:
        self._stamp_anew(attempt)
        yield from ()

    return patched(Blind, _recover=recover)


def begin_anew_though_stored() -> Planting:
    """An entry that some replica stores is given another timestamp where others refused it for its time."""

    def begin(self: Blind, values: Sequence[Any]) -> Generator[float, Event, Any]:
        while True:
            yield from self.learn_order()
            entries = self.entries(values, is_keyed=bool(self._key))
            try:
                return (yield from self._begin_with(entries))
            except Expired as expired:
                if not is_better_known(expired, entries[-1].t, self._cache, self._machine):
                    raise

    return patched(Blind, _begin=begin)


def forget_the_recovery() -> Planting:
    """A recovery that got no answer in time is forgotten; when all replicas answer fenced, a new timestamp."""
    right = Blind._recover

    def recover(self: Blind, attempt: Any) -> Steps:
        deadline_s, self._task.deadline_s = self._task.deadline_s, self._task.now.mono_s + blind.HEDGE_S
        try:
            yield from right(self, attempt)
        except OperationFailed:
            if self._task.now.mono_s >= deadline_s:
                raise
        finally:
            self._task.deadline_s = deadline_s
        attempt.is_recovered = False

    return patched(Blind, _recover=recover)


def forget_that_it_recovered() -> Planting:
    """As above, but recoveries are waited for: only the note that there was one is dropped."""
    right = Blind._recover

    def recover(self: Blind, attempt: Any) -> Steps:
        yield from right(self, attempt)
        attempt.is_recovered = False

    return patched(Blind, _recover=recover)


def stamp_keyed_anew_alone() -> Planting:
    """A keyed entry that all replicas fenced gets a new timestamp without a decision: another caller has another."""
    right = Blind._append

    def append(self: Blind, attempts: list[Any], kind: blind.AttemptKind) -> Steps:
        for attempt in attempts:
            attempt.is_recovered = False
        return right(self, attempts, kind)

    return patched(Blind, _append=append)


def write_back_to_one() -> Planting:
    """A reader's write-back counts as done when one replica holds the entry."""
    right = Blind.write_back

    def write_back(self: Blind, *entries: Entry) -> Generator[float, Event, tuple[Timestamp, ...]]:
        self._final = AnyOne(self._final)
        self._is_met = self._final.is_met_by
        return right(self, *entries)

    return patched(Blind, write_back=write_back)


@contextmanager
def _with_quorums(instead: Callable[[Quorum], Quorum], *places: tuple[type, str]) -> Iterator[None]:
    """What objects of these classes keep under these names are other quorums."""
    with ExitStack() as stack:
        for owner, name in places:
            if owner is Blind:
                stack.enter_context(patched(Blind, _go_by=_changed_choice(instead)))
            else:
                stack.enter_context(patched(owner, __init__=_changed_init(owner, name, instead)))
        yield


def _changed_choice(instead: Callable[[Quorum], Quorum]) -> Any:
    right = Blind._go_by

    def go_by(self: Blind, choice: QuorumChoice) -> None:
        right(self, choice)
        self._final = instead(self._final)
        self._is_met = self._final.is_met_by

    return go_by


def _changed_init(owner: Any, name: str, instead: Callable[[Quorum], Quorum]) -> Any:
    right = owner.__init__

    def init(self: Any, *args: Any, **named: Any) -> None:
        right(self, *args, **named)
        vars(self)[name] = instead(vars(self)[name])

    return init


def acknowledge_at_first_word() -> Planting:
    """A blind operation is done when the first replica says that it stores the entry."""
    return _with_quorums(AnyOne, (Blind, "_final"), (StoredPart, "needed"))


def count_one_replica_twice() -> Planting:
    """A replica that answers an append twice (as when it was sent again) counts twice."""
    return _with_quorums(OneTwice, (Blind, "_final"), (StoredPart, "needed"))


def take_what_neighbours_got() -> Planting:
    """A write that goes beside others counts as stored at each replica that answered, though that refused this one."""

    def take(self: StoredPart, replica: str, reply: Reply) -> None:
        del reply
        self._stored.add(replica)

    return patched(StoredPart, take=take)


def read_the_newest_seen() -> Planting:
    """A read answers the newest value it saw, and writes nothing back."""

    def settled_version(cache: LogCache, choice: QuorumChoice) -> observe.Version | None:
        del choice
        return cell.current(cache.summary, cache.by_id())[:2]

    return patched(observe, settled_version=settled_version)


def read_before_the_time() -> Planting:
    """A read answers a value whose timestamp is still ahead of time."""

    def wait(*_: Any) -> Generator[float, Event, None]:
        yield from ()

    return patched(observe, wait_until_passed=wait)


def read_at_one() -> Planting:
    """A read looks at one replica, whatever its initial quorum."""
    right = observe.collect

    def collect(name: str, task: Task, machine: Machine, needed: Quorum, **how: Any) -> Any:
        return right(name, task, machine, AnyOne(needed), **how)

    @contextmanager
    def both() -> Iterator[None]:
        with patched(observe, collect=collect), _with_quorums(AnyOne, (ReadPart, "needed")):
            yield

    return both()


def items_of_two_moments() -> Planting:
    """All keys of a dictionary, each as it was when it was settled: one collect, no second look."""

    def items(operation: Items, task: Task, machine: Machine) -> OutcomeSteps:
        page = observe._Page(operation)
        found, answered = yield from observe._scan(page, task, machine)
        versions = {}
        for name in sorted(found):
            outcome = yield from observe.read(Read(name), task, machine)
            versions[name] = (ZERO, outcome.result if isinstance(outcome, Done) else None)
        return Done(page.listed(versions), "Items/Ok", answered)

    return instead(Items, items)


def page_to_the_last() -> Planting:
    """A page of a dictionary ends where the last replica has ended, in every look, however many keys that are: others have not shown what they hold of
    them."""
    shipped = observe._Page.listed

    def has_enough(page: observe._Page, shown: Collection[str], shown_bytes: int, newest: str) -> bool:
        return len(shown) >= page.most > 0

    def end(page: observe._Page, partly: Iterable[str]) -> None:
        page.last = max(partly, default="")

    def listed(page: observe._Page, versions: Mapping[str, observe.Version]) -> Listed:
        vars(page)["most"] = 0
        return shipped(page, versions)

    return patched(observe._Page, has_enough=has_enough, end=end, listed=listed)


def peek_only_reads() -> Planting:
    """A Peek reads, writes back and answers, but does not settle the front by a decision."""
    right, plain = runs._RUNS[Peek], plain_peek(1)

    def peek(operation: Peek, task: Task, machine: Machine) -> OutcomeSteps:
        """Where nothing is to be seen, the shipped one."""
        cache = machine.cache_of(operation.object)
        needed = machine.choice_of(operation.object).initial_of("Peek")
        yield from observe.collect(operation.object, task, machine, needed)
        is_empty = not queue.view(cache.summary, cache.by_id())
        return (yield from (right if is_empty else plain)(operation, task, machine))

    return instead(Peek, peek)


@contextmanager
def instead(kind: type, run: Any) -> Iterator[None]:
    with patched(runs, _RUNS={**runs._RUNS, kind: run}):
        yield


def show_what_is_known() -> Planting:
    """A read answers what its front end knows of by then, not the version that it has settled."""
    right = observe._read_settled

    def read_settled(name: str, operation: str, task: Task, machine: Machine, *shown: Any) -> Any:
        _, answered = yield from right(name, operation, task, machine, *shown)
        cache = machine.cache_of(name)
        return cell.current(cache.summary, cache.by_id())[:2], answered

    return patched(observe, _read_settled=read_settled)


def take_a_floor_for_the_end() -> Planting:
    """The floor of one replica ends what the others show in the same look."""

    def cache_of(name: str, votes: Mapping[str, int], replies: Mapping[str, Reply]) -> LogCache:
        cache = LogCache(name, votes)
        for replica, reply in replies.items():
            cache.absorb(replica, "", Collect(name), reply)
        return cache

    return patched(observe, shown_together=cache_of)


def non_intersecting_choice() -> Planting:
    """Front ends work with quorums one vote smaller than the choice says: dependent ones need not meet."""
    right = machine.FrontEnd.choice_of

    def choice_of(self: machine.FrontEnd, name: str) -> QuorumChoice:
        choice = right(self, name)
        smaller: QuorumChoice = object.__new__(QuorumChoice)
        classes = {
            event: Sizes(min(initial, max(1, initial - 1)), final)
            for event, (initial, final) in choice.classes.items()
        }
        vars(smaller).update(vars(choice), classes=classes)
        smaller._note_quorums()
        return smaller

    return patched(machine.FrontEnd, choice_of=choice_of)


def finals_exchanged() -> Planting:
    """Blind entries count as complete at a final quorum of decisions, decisions as decided at one of blind entries."""
    right = machine.FrontEnd.choice_of

    def choice_of(self: machine.FrontEnd, name: str) -> QuorumChoice:
        choice = right(self, name)
        exchanged: QuorumChoice = object.__new__(type(choice))
        (reads, stores), (looks, accepts) = choice._of_kind[Kind.BLIND], choice._of_kind[Kind.DECIDE]
        kinds = {**choice._of_kind, Kind.BLIND: (reads, accepts), Kind.DECIDE: (looks, stores)}
        vars(exchanged).update(vars(choice), _of_kind=kinds)
        return exchanged

    return patched(machine.FrontEnd, choice_of=choice_of)


def bury_where_it_was_not_confirmed() -> Planting:
    """A deletion is forgotten although a replica that slept has only the older value."""
    return patched(everywhere, _has_decision=lambda *_: True, _has_held=lambda *_: True)


@contextmanager
def bury_at_once() -> Iterator[None]:
    """A deletion is forgotten once all replicas have it, and not a retry window later."""
    ahead = patched(TimeNow, oldest_remembered=lambda self: make(self._now.wall_us + 1_000_000, 0, "0"))
    with (
        ahead,
        patched(everywhere, _has_held=lambda *_: True),
        patched(transitions, _is_old=lambda *_: False),
    ):
        yield


@contextmanager
def bury_what_is_not_decided() -> Iterator[None]:
    """A deletion is forgotten that lies in the logs alone, beside an older decision."""
    unsettled = patched(
        everywhere, _is_settled=lambda *_: True, _has_decision=lambda *_: True, _has_held=lambda *_: True
    )
    with unsettled, patched(acceptor, may_forget=lambda *_, **__: True):
        yield


def retry_under_a_new_key() -> Planting:
    """A caller repeats an operation without an answer under a new key."""
    right = Process._start

    def start(self: Process, operation: Any, calls: list[Call]) -> None:
        if self._is_repeat:
            operation = replace(operation, key=operation.key + "r")
        right(self, operation, calls)

    return patched(Process, _start=start)
