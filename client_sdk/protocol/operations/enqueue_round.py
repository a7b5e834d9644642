"""Enqueues that begin together on one queue: one append stores the entries of all, and those with keys agree on them in one round
before. Pure.

Each key keeps a consensus of its own (`reservation`): only the messages are shared. What is not agreed at once goes on alone, as
though it had begun then: it finds what this round left at the replicas, as it would find what another front end left.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ....adts.log import Entry, Value
from ....api_specs.messages import Proposal, Reserve
from ....timestamps.timestamp import Timestamp
from ..core.rounds import Event, Expired, Reconfigured, Steps, Task
from ..core.values import AT_ONCE, Enqueue, Operation, Outcome
from ..decisions.idempotency import decision_id
from . import outboxes
from .blind import Attempt, Blind
from .context import Machine, OperationFailed, OutcomeSteps
from .reservation import Entries, accept, agreed_in, ask, is_refused, may_be_agreed, proposal_from
from .shared_round import Alone, Host


class _Keyed(Struct, eq=False):
    """One enqueue of the round: the id of its key, and its entries, without values as they are agreed."""

    number: int
    operation: Enqueue
    id: str
    entries: Sequence[Entry]
    unfilled: Entries


def grouped(
    begun: Iterable[tuple[int, Operation]], items_max: int, is_kept: Callable[[Enqueue], bool]
) -> tuple[list[tuple[int, Operation]], list[list[tuple[int, Enqueue]]]]:
    """Which of these, by number, run alone, and which go together: enqueues on one queue, due and expiring alike, all without a
    key or each under a key of its own, with as many items as one append may hold; and all on one queue that an outbox is to keep (`is_kept`)."""
    alone: list[tuple[int, Operation]] = []
    groups: dict[tuple[object, ...], list[_Group]] = {}
    for number, operation in begun:
        if not isinstance(operation, Enqueue):
            alone.append((number, operation))
            continue
        is_keyed = bool(operation.key) and not is_kept(operation)
        how = (operation.spans == AT_ONCE,) if is_kept(operation) else (operation.spans, is_keyed)
        alike = groups.setdefault((operation.object, *how), [])
        if is_keyed and any(operation.key in group.keys for group in alike):
            alone.append((number, operation))
            continue
        if not alike or alike[-1].items + len(operation.values) > items_max:
            alike.append(_Group())
        alike[-1].add(number, operation)
    made = [group.begun for alike in groups.values() for group in alike]
    alone += [only for group in made if len(group) == 1 for only in group]
    return alone, [group for group in made if len(group) > 1]


class _Group:
    """Some that go together."""

    def __init__(self) -> None:
        self.begun: Final[list[tuple[int, Enqueue]]] = []
        self.keys: Final[set[str]] = set()
        self.items = 0

    def add(self, number: int, operation: Enqueue) -> None:
        """One more."""
        self.begun.append((number, operation))
        self.keys.add(operation.key)
        self.items += len(operation.values)


class EnqueueRound:
    """Such enqueues, from their beginning until each has ended or goes on alone."""

    def __init__(
        self, begun: Sequence[tuple[int, Enqueue]], task: Task, machine: Machine, host: Host
    ) -> None:
        first = begun[0][1]
        self._name: Final = first.object
        self._outboxes: Final = () if first.from_outbox else machine.outboxes_of(first.object)
        self._open: Final = dict(begun)
        """Those that have not ended, by their numbers."""
        self._task: Final = task
        self._machine: Final = machine
        self._host: Final = host
        self._cache: Final = machine.cache_of(self._name)
        self._blind: Final = Blind(self._name, task, machine, spans=first.spans)

    def numbers(self) -> list[int]:
        """Of the operations that have not ended."""
        return list(self._open)

    def drop(self, number: int) -> bool:
        """Nobody waits for this one any more; whether there are others."""
        self._open.pop(number, None)
        return bool(self._open)

    def run(self) -> Steps:
        """Store the entries of all; where there are keys, those that all agree on."""
        if self._machine.is_outbox(self._name):
            self._finish(outboxes.refuse_outbox(self._name))
        elif self._outboxes:
            yield from self._keep()
        elif all(operation.key for operation in self._open.values()):
            yield from self._run_keyed()
        else:
            values = [value for operation in self._open.values() for value in operation.values]
            self._finish((yield from self._blind.run(values, "Enq/Ok")))

    def _keep(self) -> Steps:
        """Have an outbox keep all of them; what none has room for ends before."""
        records = list[Value]()
        try:
            if any(operation.spans != AT_ONCE for operation in self._open.values()):
                yield from outboxes.ask_all_clocks(self._name, self._task, self._machine)
        except Expired as expired:
            self._finish(expired.outcome(is_unknown=False))
        for number, operation in list(self._open.items()):
            try:
                records += outboxes.records_of(operation, self._machine)
            except OperationFailed as failure:
                self._finish(failure.outcome, [number])
        if records:
            self._finish((yield from outboxes.keep(records, self._outboxes, self._task, self._machine)))

    def _run_keyed(self) -> Steps:
        is_asked = False
        try:
            yield from self._blind.learn_order()
            is_asked = True
            agreed = yield from self._agree(list(self._keyed()))
        except Expired as expired:
            choice = self._machine.choice_of(self._name)
            self._finish(expired.outcome(is_unknown=is_asked and may_be_agreed(expired, choice)))
        except Reconfigured:
            for each in list(self._keyed()):
                self._go_alone(each)
        except OperationFailed as failure:
            self._finish(failure.outcome)
        else:
            yield from self._store(agreed)

    def _store(self, agreed: Sequence[_Keyed]) -> Steps:
        """Append the entries of all at once. What a fence refused goes on alone, and the others do not wait for it."""
        attempts = {
            each.number: [Attempt(entry, each.id, is_recovered=True) for entry in each.entries]
            for each in agreed
        }
        if not attempts:
            return
        # To nobody yet; but who repeats one of them elsewhere stores the same entries.
        self._blind.is_sent = True
        try:
            yield from self._blind.append_agreed([each for some in attempts.values() for each in some])
        except Expired as expired:
            late = expired.outcome(is_unknown=True)
            unstored = {number for number, some in attempts.items() if not all(each.is_done for each in some)}
            self._finish(late, unstored)
        for each in agreed:
            if not all(attempt.is_done for attempt in attempts[each.number]):
                self._go_on(each, attempts.pop(each.number))
        if stored := [attempt for some in attempts.values() for attempt in some if attempt.is_done]:
            self._finish((yield from self._blind.stored(stored, "Enq/Ok")))

    def _go_on(self, each: _Keyed, attempts: list[Attempt]) -> None:
        """Store them in a task of their own."""

        def steps(task: Task) -> OutcomeSteps:
            blind = _blind_of(each.operation, task, self._machine)
            return blind.go_on_agreed(self._blind, attempts, "Enq/Ok")

        self._alone(each, Alone(steps))

    def _keyed(self) -> Iterator[_Keyed]:
        for number, operation in self._open.items():
            entries = self._blind.entries(operation.values, is_keyed=True)
            unfilled = tuple(Entry(entry.id, entry.t) for entry in entries)
            yield _Keyed(number, operation, decision_id("Enq", operation.key), entries, unfilled)

    def _agree(self, begun: Sequence[_Keyed]) -> Generator[float, Event, list[_Keyed]]:
        """Those whose entries are agreed now, as they are; the others go on alone. See `reservation.agree`."""
        ballot, choice = self._machine.stamp_for(self._cache), self._machine.choice_of(self._name)
        asking = Reserve(self._name, ballot, _proposals(begun))
        agreed, undecided = list[_Keyed](), list[_Keyed]()
        shown = yield from ask(asking, choice, self._task, self._cache)
        for each, held in zip(begun, shown, strict=True):
            if is_refused(held):
                self._go_alone(each)
            elif (found := agreed_in(held, choice)) is not None:
                agreed += self._kept(each, found)
            else:
                undecided += self._kept(each, proposal_from(held, each.unfilled, choice))
        if undecided:
            self._machine.count("keys agreed in two rounds")
            agreed += yield from self._accept(undecided, ballot)
        return agreed

    def _accept(
        self, undecided: Sequence[_Keyed], ballot: Timestamp
    ) -> Generator[float, Event, list[_Keyed]]:
        """Those of which a final quorum of decisions holds the entries under the ballot."""
        accepting = Reserve(self._name, ballot, _proposals(undecided), accept=True)
        choice = self._machine.choice_of(self._name)
        try:
            accepted = yield from accept(accepting, choice, self._task, self._cache)
        except Expired as expired:
            # An initial quorum holds the entries since it was asked.
            expired.reached = frozenset(choice.votes)
            raise
        for each, is_accepted in zip(undecided, accepted, strict=True):
            if not is_accepted:
                self._go_alone(each)
        return [each for each, is_accepted in zip(undecided, accepted, strict=True) if is_accepted]

    def _kept(self, each: _Keyed, found: Entries) -> list[_Keyed]:
        """The enqueue, if these are its own entries; what somebody else has begun goes on alone."""
        if found == each.unfilled:
            return [each]
        self._go_alone(each)
        return []

    def _go_alone(self, each: _Keyed) -> None:
        """Run it from its beginning, in a task of its own. An initial quorum may hold the entries that the round has asked for."""

        def steps(task: Task) -> OutcomeSteps:
            blind = _blind_of(each.operation, task, self._machine)
            blind.is_sent = True
            return blind.run(each.operation.values, "Enq/Ok")

        self._alone(each, Alone(steps))

    def _alone(self, each: _Keyed, alone: Alone) -> None:
        if self._open.pop(each.number, None) is not None:
            self._host.go_alone(each.number, each.operation, self._task, alone)

    def _finish(self, outcome: Outcome, numbers: Collection[int] | None = None) -> None:
        """All that is left ends so, or these."""
        for number in list(self._open if numbers is None else self._open.keys() & numbers):
            del self._open[number]
            self._host.finish(number, outcome)


def _proposals(keyed: Iterable[_Keyed]) -> tuple[Proposal, ...]:
    return tuple(Proposal(each.id, each.unfilled) for each in keyed)


def enqueue(operation: Enqueue, task: Task, machine: Machine) -> OutcomeSteps:
    """An enqueue that runs alone."""
    if not operation.from_outbox and (kept_at := machine.outboxes_of(operation.object)):
        return (yield from outboxes.store(operation, kept_at, task, machine))
    if machine.is_outbox(operation.object):
        return outboxes.refuse_outbox(operation.object)
    return (yield from _blind_of(operation, task, machine).run(operation.values, "Enq/Ok"))


def _blind_of(operation: Enqueue, task: Task, machine: Machine) -> Blind:
    may_be_old = operation.from_outbox
    return Blind(operation.object, task, machine, operation.key, operation.spans, may_be_old=may_be_old)
