"""Mistakes on the way from one configuration to another."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from quorate.adts.log import Seen
from quorate.adts.types.catalogue import CONFIGURATION
from quorate.api_specs.cluster import ClusterDocument, with_states
from quorate.client_sdk.protocol import reconfiguration
from quorate.client_sdk.protocol.configurations import is_over, joint, keeps_quorums, moved, settled
from quorate.client_sdk.protocol.core.rounds import Gathering
from quorate.client_sdk.protocol.decisions import proposer
from quorate.client_sdk.protocol.decisions.proposer import Proposer
from quorate.client_sdk.protocol.operations import blind, enqueue_round, everywhere, reservation
from quorate.client_sdk.protocol.operations.blind import Attempt, Blind
from quorate.client_sdk.protocol.operations.reservation import Entries, Shown
from quorate.client_sdk.protocol.reconfiguration import Steps
from quorate.client_sdk.protocol.standing_rules import Move
from quorate.quorums.choices.choice import QuorumChoice
from quorate.quorums.choices.joint_choice import Both, OrAll
from quorate.simulation.world.nodes import ReplicaNode
from quorate.timestamps.timestamp import ZERO
from tests.sim.planted.plant import Planting, patched


def carry_nothing() -> Planting:
    """The new configuration begins without what was stored under the old one."""

    def objects(*_: object) -> Generator[Any, Any, set[str]]:
        yield from ()
        return {CONFIGURATION}

    return patched(reconfiguration, _objects=objects)


def carry_for_no_vote() -> Planting:
    """A change of votes or rules counts as one of members without votes: nothing is carried."""

    def keeps(_: ClusterDocument) -> bool:
        return True

    return patched(reconfiguration, keeps_quorums=keeps)


def carry_summaries_alone() -> Planting:
    """What no decision has taken in is not carried."""

    def not_stored(*_: object) -> list[Seen]:
        return []

    return patched(everywhere, _not_stored=not_stored)


def carry_what_is_undecided() -> Planting:
    """What counts as decided is not accepted anew by quorums of both configurations."""

    def is_carried(granted: object) -> bool:
        del granted
        return False

    return patched(proposer, _is_carried=is_carried)


def meet_the_new_alone() -> Planting:
    """While both configurations are in force, quorums are those of the new one."""

    def is_met_by(self: Both, replicas: Collection[str]) -> bool:
        return self.second.is_met_by(replicas)

    return patched(Both, is_met_by=is_met_by)


def meet_the_old_alone() -> Planting:
    """While both configurations are in force, quorums are those of the old one."""

    def is_met_by(self: Both, replicas: Collection[str]) -> bool:
        return self.first.is_met_by(replicas)

    return patched(Both, is_met_by=is_met_by)


def meet_any_survivor() -> Planting:
    """Where a member was declared dead, any other one stands in for an old quorum."""

    def is_met_by(self: OrAll, replicas: Collection[str]) -> bool:
        return self.quorum.is_met_by(replicas) or not self.names.isdisjoint(replicas)

    return patched(OrAll, is_met_by=is_met_by)


def wait_for_no_survivor() -> Planting:
    """Where a member was declared dead, the old configuration counts as over at once."""

    def is_over_at_once(both: ClusterDocument, left: AbstractSet[str]) -> bool:
        return bool(both.survivors) or is_over(both, left)

    return patched(reconfiguration, is_over=is_over_at_once)


def go_elsewhere_from_what_was_to_come() -> Planting:
    """A change goes elsewhere as if it had come to its end: from the configuration that it was to come to, to which nothing is carried yet."""

    def from_there(both: ClusterDocument, new: ClusterDocument, dead: Collection[str]) -> ClusterDocument:
        return joint(settled(both), new, dead & both.own_votes.keys())

    return patched(reconfiguration, redirected=from_there)


def leave_while_moving() -> Planting:
    """Where a member moves, all others leave with it, without a configuration in which both are in force."""

    def alone_there(at: ClusterDocument, places: Mapping[str, str]) -> ClusterDocument:
        after = moved(at, places)
        kept = tuple(each for each in after.replicas if each.id in places)
        is_for_itself = any(each.votes for each in kept) and at.former is None
        return replace(after, replicas=kept, choices=()) if is_for_itself else after

    return patched(reconfiguration, moved=alone_there)


def keep_terms() -> Planting:
    """A front end decides in a new configuration on promises of the one before."""
    right = Proposer._choose

    def choose(self: Proposer) -> None:
        term = self._term
        right(self)
        self._term = term

    return patched(Proposer, _choose=choose)


def keep_replies() -> Planting:
    """A round counts what was answered in the configuration before."""

    def has(self: Gathering, is_enough: Callable[[], bool]) -> bool:
        self._task.renew()
        return is_enough()

    return patched(Gathering, _has=has)


def take_messages_of_any() -> Planting:
    """A replica takes messages of the configurations before the one that it is in."""
    right = ReplicaNode.receive

    def receive(self: ReplicaNode, exchange: Any) -> None:
        if (
            exchange.batch.cluster != self.replica.document.hash
            and exchange.front.machine.epoch < self.replica.document.number
        ):
            exchange.batch = type(exchange.batch)(self.replica.document.hash, exchange.batch.requests)
        right(self, exchange)

    return patched(ReplicaNode, receive=receive)


def leave_keys_behind() -> Planting:
    """The new configuration begins while keys of before are remembered."""

    def are_forgotten(*_: object) -> Generator[Any, Any, bool]:
        yield from ()
        return True

    return patched(reconfiguration, _keys_are_forgotten=are_forgotten)


def leave_keys_behind_for_learners() -> Planting:
    """Where no quorum changes, the new configuration begins while keys of before are remembered, on which all members of before may have agreed."""
    right = reconfiguration._keys_are_forgotten

    def are_forgotten(both: ClusterDocument) -> Generator[Any, Any, bool]:
        if keeps_quorums(both):
            yield from ()
            return True
        return (yield from right(both))

    return patched(reconfiguration, _keys_are_forgotten=are_forgotten)


def agree_as_if_alone() -> Planting:
    """What all members of before hold under a key is not seen to be agreed on, once a new one holds something else."""

    def proposal_from(shown: Shown, entries: Entries, choice: QuorumChoice) -> Entries:
        del choice
        latest = max(shown.values(), key=lambda held: held.ballot)
        if latest.ballot > ZERO or all(held.entries == latest.entries for held in shown.values()):
            return latest.entries
        return entries

    return _both(reservation, enqueue_round, proposal_from=proposal_from)


def void_by_the_joint_quorum() -> Planting:
    """An entry counts as never stored where no quorum of both configurations may store it, though one of the old may."""

    def may_be_complete(self: Blind, attempt: Attempt) -> bool:
        return self._final.is_met_by(self._everyone - self._fenced.get(attempt.entry.t, blind.NOBODY))

    return patched(Blind, _may_be_complete=may_be_complete)


def switch_at_once() -> Planting:
    """A switch of a standing rule goes from one choice to the other without a configuration in which both are in force."""

    def steps(self: Move) -> Steps:
        chosen = yield from reconfiguration._latest(self.at)
        wanted = with_states(chosen.document, dict(self.states))
        while chosen.document.former is None and not reconfiguration.is_like(chosen.document, wanted):
            following = replace(wanted, epoch=chosen.document.number + 1)
            _, chosen = yield from reconfiguration._choose(chosen, following)
            wanted = with_states(chosen.document, dict(self.states))
        return chosen.document

    return patched(Move, steps=steps)


@contextmanager
def _both(one: Any, other: Any, **replacements: Any) -> Iterator[None]:
    with patched(one, **replacements), patched(other, **replacements):
        yield
