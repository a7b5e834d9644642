"""How a cluster comes from one configuration to another while it runs: old, both together, new. Pure.

Each step is a configuration of its own, with the next `epoch`; a replica takes messages of one configuration alone, and goes on to later ones
only. While both are in force each quorum holds one of the old and one of the new (`quorate.quorums.choices.joint_choice`), so whatever was
stored under the old is met. The new one may begin, alone, when

* no operation can end under the old one any more: the replicas that have left it block each of its quorums (`is_over`), and
* all that was stored under the old is stored under both (`Carry` of each object, asked for while both are in force). Where both have the same
  quorums (`keeps_quorums`), it is so anyway.

Then quorums of the new one meet all that was ever acknowledged. Where members were declared dead (`ClusterDocument.dead`), all others of the old
configuration stand in for any quorum of it: they meet whatever a quorum stored that did not consist of the dead alone. Where one dies that was to
stay, the same change goes on to another configuration (`redirected`). It must not know who tells replicas, nor how.
"""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from ...api_specs.cluster import BadCluster, ClusterDocument, ReplicaInfo, alone, checked

NOBODY: Final[frozenset[str]] = frozenset()
_KEPT: Final = ("name", "clock", "limits", "types")


def joint(old: ClusterDocument, new: ClusterDocument, dead: Collection[str] = ()) -> ClusterDocument:
    """The configuration in which both are in force, where these members of the old one are off and stay off. BadCluster where `new` cannot follow `old`."""
    if old.former is not None:
        raise BadCluster("the cluster is changing already: let that change end, or take it back")
    for part in _KEPT:
        if getattr(old, part) != getattr(new, part):
            raise BadCluster(f"{part} cannot change while the cluster runs: leave it as it is")
    if any(rule.has_outboxes for rule in (*old.choices, *new.choices)):
        raise BadCluster("a cluster whose queues have outboxes cannot change while it runs")
    _check_members(old.replicas, new, old.former_members)
    gone = tuple(sorted(dead)) or UNSET
    return checked(
        replace(new, epoch=old.number + 1, old=old, retired=old.retired, dead=gone, given_up=UNSET)
    )


def _check_members(members: Sequence[ReplicaInfo], new: ClusterDocument, retired: Collection[str]) -> None:
    """An id stands for one store for ever: another one has forgotten what it promised, and one that comes back holds what was forgotten meanwhile."""
    before = {replica.id: replica for replica in members}
    places = {replica.url: replica.id for replica in members}
    for replica in new.replicas:
        if places.get(replica.url, replica.id) != replica.id:
            raise BadCluster(
                f"replica {replica.id}: at {replica.url} is {places[replica.url]}: start a new one elsewhere"
            )
        known = before.get(replica.id, replica)
        if (known.url, known.store) != (replica.url, replica.store):
            raise BadCluster(
                f"replica {replica.id}: its url and its store stay: start a new one with another id, and replace it by that"
            )
        if replica.id in retired:
            raise BadCluster(
                f"replica {replica.id} was a member before, and is none now: give the new one another id"
            )


def moved(at: ClusterDocument, places: Mapping[str, str]) -> ClusterDocument:
    """The same configuration, in the middle of a change the same two, where these members are at other URLs. Quorums are the same, so nothing is carried: those
    of before meet those that follow. BadCluster where another one is at a URL."""
    number = at.number + 1
    if plain := [
        name
        for name in places
        if at.urls[name].startswith("https:") and not places[name].startswith("https:")
    ]:
        raise BadCluster(
            f"{places[plain[0]]}: {plain[0]} has an https:// URL, and nobody follows it to another one"
        )

    def of(document: ClusterDocument) -> ClusterDocument:
        replicas = tuple(
            replace(each, url=places[each.id], moved=number) if each.id in places else each
            for each in document.replicas
        )
        return replace(
            document, replicas=replicas, old=UNSET if document.former is None else of(document.former)
        )

    following = replace(of(at), epoch=number)
    names: dict[str, str] = {}
    for name, url in following.urls.items():
        if (other := names.setdefault(url, name)) != name:
            raise BadCluster(f"replica {name}: at {url} is {other}: give it a place of its own")
    return checked(following)


def without(both: ClusterDocument, dead: Collection[str]) -> ClusterDocument:
    """The same change, where these members that leave are off and stay off, too. Quorums of both of its configurations still hold one of the new."""
    gone = tuple(sorted({*both.declared_dead, *dead}))
    return checked(replace(both, epoch=both.number + 1, dead=gone))


def redirected(both: ClusterDocument, new: ClusterDocument, dead: Collection[str]) -> ClusterDocument:
    """The same change, but to this configuration instead, for these members are off and stay off that were to be in the one to come. BadCluster where
    `new` cannot follow, or lacks others of that one.

    Both changes begin with the same old configuration, whose quorums meet. Where the dead are missing, all others stand in for these, of both of its
    sides until now: whatever was stored is met that was not at the dead alone.
    """
    assert both.former is not None, "only a change that has begun goes elsewhere"
    if lacking := [name for name in both.own_votes if name not in new.own_votes and name not in dead]:
        raise BadCluster(
            f"{', '.join(lacking)} cannot leave before the change under way has come to its end: leave it in, and remove it afterwards"
        )
    if kept := [name for name in dead if name in new.own_votes]:
        raise BadCluster(
            f"{', '.join(kept)} is declared dead, and would still be a member: remove or replace it in the same change"
        )
    votes = both.own_votes
    left = sum(each for name, each in votes.items() if name not in dead)
    if 2 * left <= sum(votes.values()):
        raise BadCluster(
            f"without {', '.join(sorted(dead))}, {left} of the {sum(votes.values())} votes to come are left, and a majority is needed: restore a backup, or use `quorate replace`"
        )
    first = joint(both.former, new, {*both.declared_dead, *dead} & both.former.own_votes.keys())
    _check_members((*both.former.replicas, *both.replicas), new, both.former_members)
    retired = (*both.former_members, *(name for name in votes if name not in first.votes))
    stand_ins = tuple(sorted({*both.stand_ins, *both.voters}.difference(dead)))
    return checked(replace(first, epoch=both.number + 1, retired=retired or UNSET, given_up=stand_ins))


def settled(both: ClusterDocument) -> ClusterDocument:
    """The new configuration alone."""
    assert both.former is not None, "only what has begun comes to its end"
    return _alone(both, both, both.former)


def taken_back(both: ClusterDocument) -> ClusterDocument:
    """The old configuration alone, again: what was stored under both is stored under it, and nothing need be carried."""
    assert both.former is not None, "only a change that has begun is taken back"
    return _alone(both, both.former, both)


def _alone(both: ClusterDocument, kept: ClusterDocument, left: ClusterDocument) -> ClusterDocument:
    """One of the two, and those members retired that only the other one has."""
    retired = (*both.former_members, *(name for name in left.own_votes if name not in kept.own_votes))
    return replace(alone(kept), epoch=both.number + 1, retired=retired or UNSET)


def is_over(both: ClusterDocument, left: AbstractSet[str]) -> bool:
    """Whether no operation can end under the old configuration alone any more, where these replicas have left it."""
    assert both.former is not None, "only what another one follows is ever over"
    # Who blocks the majorities of the cluster's own register is not the dead alone: they meet those who stood in, of a change that went elsewhere since, too.
    others = both.former.votes.keys() - left
    are_dead = bool(both.survivors) and both.survivors <= left
    return are_dead or not any(quorum.is_met_by(others) for _, quorum in both.former.asked_quorums())


def keeps_quorums(both: ClusterDocument) -> bool:
    """Whether the old and the new configuration have the same quorums, for they have the same voters, with the same votes, and the same rules: members
    without votes come and leave. Then a quorum of the one is one of the other, and whatever rests on two quorums that meet goes on as if nothing had
    changed: what is stored, fences, promises. Not what rests on all members, as an agreement on an idempotency key may. Where a change went elsewhere
    (`redirected`), it does not count as such."""
    assert both.former is not None, "only what another one follows keeps something"
    voting, before = (
        {name: votes for name, votes in each.items() if votes}
        for each in (both.own_votes, both.former.own_votes)
    )
    return voting == before and both.choices == both.former.choices and not both.stand_ins


def is_served(document: ClusterDocument, by: AbstractSet[str]) -> bool:
    """Whether these replicas hold every quorum of the configuration."""
    return all(quorum.is_met_by(by) for _, quorum in document.asked_quorums())
