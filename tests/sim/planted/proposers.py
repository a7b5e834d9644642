"""Mistakes of decisions: ballots, steps, fences, ambiguous entries, Empty, and what is known to be decided."""

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any

from msgspec.structs import replace

from quorate.adts.log import Entry, Seen, Summary, Value
from quorate.adts.types import queue
from quorate.api_specs.commands import DequeueCommand, PeekCommand
from quorate.api_specs.messages import Aged
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.rounds import Event, Task
from quorate.client_sdk.protocol.decisions import summary_builder as builder
from quorate.client_sdk.protocol.decisions import transitions
from quorate.client_sdk.protocol.decisions.idempotency import Memory
from quorate.client_sdk.protocol.decisions.proposer import Proposer
from quorate.client_sdk.protocol.decisions.summary_builder import Context, SummaryBuilder
from quorate.client_sdk.protocol.decisions.term import Term, TermLost
from quorate.client_sdk.protocol.decisions.transitions import Command, Plan
from quorate.quorums.systems.tally import Quorum
from quorate.timestamps.ballot import Ballot, make_ballot
from quorate.timestamps.timestamp import ZERO, Timestamp
from tests.sim.planted.plant import AnyOne, Planting, patched

Steps = Generator[float, Event, None]


def take_incomplete_unnoted() -> Planting:
    """An entry that may be incomplete is consumed without being noted as ambiguous."""

    def note_taken(self: SummaryBuilder, found: Seen) -> None:
        del self, found

    return patched(SummaryBuilder, note_taken=note_taken)


def forget_ambiguous_at_once() -> Planting:
    """Ambiguous ids and keyed decisions are forgotten with the next decision, not after the retry window."""
    right = Proposer._context

    def context(self: Proposer) -> Context:
        listed = self._cache.summary
        ballots = [known.ballot for known in listed.recent] + [ballot for _, ballot in listed.ambiguous]
        return replace(right(self), aged=[Aged(ballot, ballot, ballot) for ballot in ballots])

    return patched(Proposer, _context=context)


def remember_one_key() -> Planting:
    """The summary keeps the latest keyed decision only, and takes new ones in regardless."""
    right = SummaryBuilder.finish

    def finish(self: SummaryBuilder, keep: set[str]) -> Summary:
        self.recent = self.recent[-1:]
        return right(self, keep)

    return patched(SummaryBuilder, finish=finish, has_room_for=lambda *_: True)


def remember_keys_without_shares() -> Planting:
    """Who comes first may have all keys remembered that an object remembers."""

    def has_room(self: Memory, caller: Hashable, entries: Sequence[Entry], result: Value | None) -> bool:
        return all(room.may_take(None, size) for room, size in self._takes(entries, result))

    return patched(Memory, has_room=has_room)


def remember_no_turns() -> Planting:
    """The summary keeps only its own term: an owner cannot tell that an earlier accept of its is part of it."""
    right = SummaryBuilder.finish

    def finish(self: SummaryBuilder, keep: set[str]) -> Summary:
        after = right(self, keep)
        return after if after is self.before else replace(after, terms=(self.context.ballot,))

    return patched(SummaryBuilder, finish=finish)


def decide_for_all_who_asked() -> Planting:
    """A decision goes on for callers that were told an outcome meanwhile."""
    return patched(Proposer, _are_asked=lambda *_: True)


def forget_old_turns() -> Planting:
    """The summary forgets a term that began longer ago than the memory, though it was the latest but one."""
    return patched(builder, TERMS_KEPT=0)


def empty_at_first_look() -> Planting:
    """Empty is answered over a summary that was not known to be decided before the collect began."""
    right = Proposer._plan

    def plan(self: Proposer, commands: list[Command], is_fresh: bool, decided_before: Ballot) -> Plan | None:
        del decided_before
        return right(self, commands, is_fresh, self._cache.ballot)

    return patched(Proposer, _plan=plan)


def empty_from_the_cache() -> Planting:
    """Empty is answered from what the front end has in mind, without a collect."""
    right = Proposer._plan

    def plan(self: Proposer, commands: list[Command], is_fresh: bool, decided_before: Ballot) -> Plan | None:
        found = right(self, commands, is_fresh, decided_before)
        cache = self._cache
        is_taking = all(isinstance(command, DequeueCommand | PeekCommand) for command in commands)
        if (
            found is not None
            or not (self._is_queue and is_taking)
            or queue.view(cache.summary, cache.by_id())
        ):
            return found
        return Plan(cache.summary, dict.fromkeys(range(len(commands)), ()), [])

    return patched(Proposer, _plan=plan)


def one_ballot_for_all_accepts() -> Planting:
    """All accepts of a term go under one ballot."""

    def ballot(self: Term, step: int | None = None) -> Ballot:
        return make_ballot(self.stamp, min(1, self.step if step is None else step))

    return patched(Term, ballot=ballot)


def go_on_after_the_turn_is_lost() -> Planting:
    """An owner whose accept was refused delivers the items all the same."""
    right = Proposer._accept

    def accept(self: Proposer, task: Task, plan: Plan, wanted: int) -> Steps:
        try:
            yield from right(self, task, plan, wanted)
        except TermLost:
            self._machine.count("terms lost")

    return patched(Proposer, _accept=accept)


def forget_what_was_proposed() -> Planting:
    """An owner that lost its term does not ask whether its last accept came into force, and decides anew."""

    def check(self: Proposer) -> bool:
        self._proposed = None
        return False

    return patched(Proposer, _check_proposed=check)


def take_doubtful_for_lost() -> Planting:
    """An accept is held for superseded because an undecided summary lacks it."""
    return patched(Proposer, _is_proposed_in_doubt=property(lambda self: False))


def believe_all_decided() -> Planting:
    """Every summary that is seen counts as decided."""
    return patched(LogCache, is_decided=property(lambda self: True))


def decided_by_one() -> Planting:
    """A summary counts as decided when one replica has accepted it."""
    right = LogCache.check_decided

    def check_decided(self: LogCache, final: Quorum) -> None:
        right(self, AnyOne(final))

    return patched(LogCache, check_decided=check_decided)


def accept_at_one() -> Planting:
    """An owner counts its accept as decided when one replica has accepted it."""
    right = Proposer.__init__

    def init(self: Proposer, *args: Any) -> None:
        right(self, *args)
        vars(self)["_final"] = AnyOne(self._final)

    return patched(Proposer, __init__=init)


def bound_of_one() -> Planting:
    """An owner takes up to the highest fence that any replica reports, not up to what a quorum has fenced."""
    right: Callable[[Term], Timestamp] = vars(Term)["bound"].fget

    def bound(self: Term) -> Timestamp:
        return max([right(self), *self._fenced.values()]) if self.has_promises else ZERO

    return patched(Term, bound=property(bound))


def swap_below_a_write() -> Planting:
    """A compare-and-set gives its value a timestamp that a write it has seen is above."""
    right = Proposer._plan

    def plan(self: Proposer, commands: list[Command], is_fresh: bool, decided_before: Ballot) -> Plan | None:
        if self._is_queue or not self._current.has_promises or not self._stamp > self._cache.summary.horizon:
            return right(self, commands, is_fresh, decided_before)
        cache = self._cache
        return transitions.plan_cell(cache.summary, cache.by_id(), self._stamp, commands, self._context())

    return patched(Proposer, _plan=plan)


def let_ended_calls_come_later() -> Planting:
    """A stored call that a look shows above the stamp comes after the decision, though it may have ended before that began."""
    return patched(Proposer, _come_later=lambda self, above: not (self._is_overwritten and above))


def let_newer_writes_come_later() -> Planting:
    """A write of a cell that no earlier look showed comes after the decision, though older ones may have been forgotten for it."""

    def come_later(self: Proposer, above: Sequence[Any]) -> bool:
        return all(self._shown is not None and timestamp not in self._shown for timestamp in above)

    return patched(Proposer, _come_later=come_later)


def void_though_it_may_complete() -> Planting:
    """An entry below the horizon counts as void although a final quorum may store it."""
    right = transitions._recover

    def recover(builder: SummaryBuilder, command: transitions.RecoverCommand) -> Any:
        return right(builder, replace(command, may_be_complete=False))

    return patched(transitions, _recover=recover)


def recovered_is_not_adopted() -> Planting:
    """A recovery that finds the entry above the horizon says that it is in force, and adopts nothing."""

    def adopt(*_: Any) -> None:
        return None

    return patched(transitions, _adopt=adopt)


def adopted_shown_twice() -> Planting:
    """An adopted entry and the copy of it in a log are two items."""
    right = queue.view

    def shown(summary: Summary, seen: dict[str, Seen]) -> list[Seen]:
        adopted = {entry.id for entry in summary.adopted}
        above = {f"{key} again": found for key, found in seen.items() if key in adopted}
        if not above:
            return right(summary, seen)
        bare = replace(summary, adopted=())
        return sorted(right(summary, {}) + right(bare, {**seen}), key=lambda found: found.entry.t)

    return patched(queue, view=shown)
