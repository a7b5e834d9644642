"""What of a cluster file decides where acknowledged data is found: the members, their votes, and the quorum choices.

Owns which parts these are, and how a difference is told. All else (URLs, limits, clock settings, ids of stores) may be edited
while nothing runs, and so it is kept where a replica follows a configuration that was changed while it ran. Pure.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from ..adts.specification import Kind, operation_of
from ..adts.types.catalogue import SPECIFICATIONS
from ..quorums.choices.minimal import resilience
from ..quorums.choices.system_choice import SystemQuorum
from ..quorums.systems.tally import Quorum, VoteCount
from .cluster import BadCluster, ChoiceRule, ClusterDocument, Fallback, ReplicaInfo, alone, checked
from .patterns import covers, is_met

TOLD_MAX: Final = 4
"""Differences that a sentence names."""
CHARS_MAX: Final = 600
"""Names of rules have no bound of their own."""
_WITHOUT_RULE: Final = "objects without a rule"


class RuleInForce(Struct, frozen=True, omit_defaults=True):
    """What a rule means. `quorums` are the initial and final quorum, in words, by data type and event class."""

    objects: str
    ordering: str
    collect: bool
    quorums: Mapping[str, Mapping[str, tuple[str, str]]]
    outbox: bool = False


class Configuration(Struct, frozen=True):
    """Votes by member, and the rules in their order; the last is that of objects without a rule."""

    members: Mapping[str, int]
    rules: tuple[RuleInForce, ...]

    def text(self) -> str:
        """The form in which it is stored."""
        return msgspec.json.encode(self, order="deterministic").decode()


_DECODE: Final = msgspec.json.Decoder(Configuration).decode


def tolerated(quorum: Quorum, members: int) -> int:
    """How many of so many replicas may be down, whichever they are, while there is such a quorum; -1 where there never is one."""
    if quorum.is_met_by(()):
        return members
    if isinstance(quorum, SystemQuorum):
        return resilience(quorum.system)
    assert isinstance(quorum, VoteCount), "a choice gives one or the other"
    left, down = sum(quorum.votes.values()), 0
    for votes in sorted(quorum.votes.values(), reverse=True):
        left -= votes
        if left < quorum.needed:
            break
        down += 1
    return down


def loses(document: ClusterDocument, lost: Collection[str]) -> list[str]:
    """The event classes of which lost replicas alone may have been a final quorum, with their objects. While the cluster changes, under the
    configuration before, under which may have been acknowledged what is not carried yet, or under the one to come."""
    if document.former is not None:
        alone = replace(document, old=UNSET)
        return sorted({*loses(document.former, lost), *loses(alone, lost)})
    found = [
        f"Enq/Ok of {rule.objects} (kept by one replica's outbox until it is relayed)"
        for rule in document.choices
        if rule.has_outboxes
    ]
    for adt, specification in document.specifications.items():
        patterns = [rule.objects for rule in document.choices if rule.objects.partition("/")[0] in (adt, "*")]
        for pattern in [*patterns, f"{adt}/*"]:
            choice = document.choice_of(f"{adt}/{pattern.partition('/')[2] or '*'}")
            found += [
                f"{name} of {pattern} (final quorum {choice.classes[name].final})"
                for name in sorted(specification.changes)
                if choice.final_of(name).is_met_by(set(lost))
            ]
    return sorted(set(found))


def check_same_cluster(file: ClusterDocument, told: ClusterDocument) -> None:
    """Raises BadCluster where what is told is of another cluster than the file: two may have the same names of replicas."""
    if told.name != file.name:
        raise BadCluster(f"it is of cluster {told.name!r}, and not of {file.name!r}")
    stores = {replica.id: replica.store for replica in told.replicas}
    for replica in file.replicas:
        there = stores.get(replica.id, "")
        if replica.store and there and there != replica.store:
            raise BadCluster(
                f"it names store {there!r} of replica {replica.id}, and the cluster file here {replica.store!r}: give all the same file, or this is "
                "another cluster"
            )


def in_force(file: ClusterDocument, chosen: ClusterDocument) -> ClusterDocument:
    """The members, votes and rules that the cluster has chosen while it ran, with all else as the file has it: limits, clock settings, types, and
    the URLs and stores of the members that it names. Of members that moved since, the URLs are those chosen."""
    named = {replica.id: replica for replica in file.replicas}
    members = tuple(_placed(member, named.get(member.id, member)) for member in chosen.replicas)
    old = UNSET if chosen.former is None else in_force(file, chosen.former)
    return replace(
        chosen,
        name=file.name,
        replicas=members,
        old=old,
        clock=file.clock,
        limits=file.limits,
        types=file.types,
    )


def with_members(document: ClusterDocument, members: Collection[ReplicaInfo]) -> ClusterDocument:
    """The document with these members; of one that changes, what it changes to. Rules that ask for majorities ask for those of the new ones; where only
    members without votes come and leave, they stay as they are. Raises BadCluster where another rule does not fit them."""
    rules = tuple(_majorities_kept(document, rule) for rule in document.choices)
    if _voting(members) == _voting(document.replicas):
        rules = document.choices
    return checked(replace(alone(document), replicas=tuple(members), choices=rules))


def _voting(members: Collection[ReplicaInfo]) -> Mapping[str, int]:
    return {member.id: member.votes for member in members if member.votes}


def _majorities_kept(document: ClusterDocument, rule: ChoiceRule) -> ChoiceRule:
    """The rule; without its numbers, where they are those of majorities anyway. So its fallback."""
    plain = replace(rule, classes={})
    if rule.classes and _mean_the_same(document, rule.in_state(False), plain.in_state(False)):
        rule = plain
    if rule.standing is not None and rule.standing.classes:
        plain = replace(rule, fallback=replace(rule.standing, classes={}))
        if _mean_the_same(document, rule.in_state(True), plain.in_state(True)):
            rule = plain
    return rule


def _mean_the_same(document: ClusterDocument, one: ChoiceRule, other: ChoiceRule) -> bool:
    return all(
        document.choice_by(one, adt).classes == document.choice_by(other, adt).classes
        for adt in filter(one.covers, document.specifications)
    )


def keeping_states(wanted: ClusterDocument, now: ClusterDocument) -> ClusterDocument:
    """The document, with those fallbacks in force that are now, of rules for the same objects with the same condition: a file never says it."""
    before = {rule.objects: rule for rule in now.choices}
    rules = tuple(state_kept(rule, before.get(rule.objects)) for rule in wanted.choices)
    return replace(wanted, choices=rules)


def keeping_places(wanted: ClusterDocument, now: ClusterDocument) -> ClusterDocument:
    """The document, with members where they are now. Another URL is where a member is to move, unless it has moved since the document was written."""
    members = {each.id: each for each in now.replicas}
    replicas = tuple(_kept_place(each, members.get(each.id, each)) for each in wanted.replicas)
    return replace(wanted, replicas=replicas)


def _kept_place(wanted: ReplicaInfo, now: ReplicaInfo) -> ReplicaInfo:
    is_move = wanted.url != now.url and wanted.placed_in >= now.placed_in
    return wanted if is_move else replace(wanted, url=now.url, moved=now.moved)


def state_kept(rule: ChoiceRule, before: ChoiceRule | None) -> ChoiceRule:
    """The rule, fallen back where the one before it has, with the same condition."""
    if rule.standing is None or before is None or before.standing is None:
        return rule
    is_same = (rule.standing.down, rule.standing.live_below) == (
        before.standing.down,
        before.standing.live_below,
    )
    return rule.in_state(is_same and before.has_fallen_back)


def _placed(member: ReplicaInfo, named: ReplicaInfo) -> ReplicaInfo:
    """The member as it is chosen, where the file names it so. Who edits a file moves it while nothing runs; but an older file knows no later place."""
    placed = max(named, member, key=lambda each: each.placed_in)
    return replace(member, url=placed.url, moved=placed.moved, store=named.store or member.store)


def configuration_of(document: ClusterDocument) -> Configuration:
    """The configuration of a document."""
    rules = [_in_force(document, rule, rule.objects) for rule in document.choices]
    return Configuration(document.votes, (*rules, _in_force(document, ChoiceRule("*"), _WITHOUT_RULE)))


def read_configuration(text: str) -> Configuration:
    """What was stored; msgspec.DecodeError when it is none."""
    return _DECODE(text)


def _in_force(document: ClusterDocument, rule: ChoiceRule, name: str) -> RuleInForce:
    quorums = {}
    for adt in filter(rule.covers, document.specifications):
        choice = document.choice_by(rule, adt)
        quorums[adt] = {
            each: (_words(choice.initial_of(operation_of(each))), _words(choice.final_of(each)))
            for each in choice.classes
        }
    return RuleInForce(name, rule.ordering, rule.collect, quorums, rule.has_outboxes)


def _words(quorum: Quorum) -> str:
    if isinstance(quorum, SystemQuorum):
        return str(quorum.system)
    assert isinstance(quorum, VoteCount), "a choice gives one or the other"
    return str(quorum.needed)


def types_in(configuration: Configuration) -> frozenset[str]:
    """The data types that it knows."""
    return frozenset(adt for rule in configuration.rules for adt in rule.quorums)


def difference(before: Configuration, now: Configuration) -> str:
    """What differs, in words for who edits the document; empty when nothing does. Event classes and data types that one of the
    two does not know are of another release, and no difference; but a type of one's own may only be added."""
    return _in_a_sentence(_differences(before, now))


def difference_of_documents(before: ClusterDocument, now: ClusterDocument) -> str:
    """The same, with fallbacks that differ: these decide nothing about where data is found, as long as they are not in force."""
    found = _differences(configuration_of(before), configuration_of(now))
    return _in_a_sentence([*found, *_of_fallbacks(before, now)])


def _differences(before: Configuration, now: Configuration) -> list[str]:
    return [*_of_members(before.members, now.members), *_of_rules(before, now)]


def _in_a_sentence(found: Sequence[str]) -> str:
    left_out = f"; and {len(found) - TOLD_MAX} more" if len(found) > TOLD_MAX else ""
    told = "; ".join(found[:TOLD_MAX])
    return (told if len(told) <= CHARS_MAX else told[:CHARS_MAX] + "…") + left_out


def _of_members(before: Mapping[str, int], now: Mapping[str, int]) -> Iterator[str]:
    if new := [name for name in now if name not in before]:
        yield f"[[replicas]] has {', '.join(new)}, not a member then"
    if gone := [name for name in before if name not in now]:
        yield f"[[replicas]] lacks {', '.join(gone)}, a member then"
    for name in now:
        if name in before and before[name] != now[name]:
            yield f"[[replicas]] {name}: votes = {now[name]}, and {before[name]} then"


def _of_rules(before: Configuration, now: Configuration) -> Iterator[str]:
    known = types_in(before)
    old, new = ({rule.objects: rule for rule in _asked(each, known)} for each in (before, now))
    for name in sorted(known - types_in(now) - SPECIFICATIONS.keys()):
        yield f"[types] lacks {name}, a type then"
    for name in new:
        if name not in old:
            yield f"[[choices]] has {name}, and no such rule then"
    for name in old:
        if name not in new:
            yield f"[[choices]] lacks {name}, a rule then"
    if [name for name in old if name in new] != [name for name in new if name in old]:
        yield "[[choices]] are in another order"
    for name, rule in new.items():
        is_same_sum = name != _WITHOUT_RULE or before.members == now.members
        if name in old and is_same_sum:
            yield from _of_rule(old[name], rule)


def _asked(configuration: Configuration, adts: Collection[str]) -> Iterator[RuleInForce]:
    """The rules that some object of these types can meet. Releases of before took others without a word: a new document must leave them out."""
    for number, rule in enumerate(configuration.rules):
        earlier = (other.objects for other in configuration.rules[:number])
        is_asked = is_met(rule.objects, adts) and not any(
            covers(each, rule.objects, adts) for each in earlier
        )
        if is_asked or rule.objects == _WITHOUT_RULE:
            yield rule


def _of_fallbacks(before: ClusterDocument, now: ClusterDocument) -> Iterator[str]:
    """Of rules that both have, for the same objects."""
    known = {rule.objects: rule for rule in before.choices}
    for rule in now.choices:
        if (then := known.get(rule.objects)) is None or (then.standing is None and rule.standing is None):
            continue
        place = f"[[choices]] {rule.objects}"
        if then.standing is None:
            yield f"{place} has a fallback, and none then"
        elif rule.standing is None:
            yield f"{place} lacks the fallback that it had then"
        else:
            yield from _of_condition(f"{place}: fallback", then.standing, rule.standing)
            sides = ((before, then), (now, rule))
            earlier, later = (_in_force(each, side.in_state(True), side.objects) for each, side in sides)
            yield from _of_quorums(f"{place}: fallback", earlier, later)


def _of_condition(place: str, before: Fallback, now: Fallback) -> Iterator[str]:
    for name in ("down", "live_below", "after_s"):
        was, is_now = getattr(before, name), getattr(now, name)
        if was != is_now:
            yield f"{place}: {name} = {_shown(is_now)}, and {_shown(was)} then"


def _shown(value: object) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else f"{value:g}"


def _only_observes(adt: str, event_class: str) -> bool:
    kinds = SPECIFICATIONS[adt].kinds if adt in SPECIFICATIONS else {}
    return kinds.get(operation_of(event_class)) is Kind.OBSERVE


def _of_rule(before: RuleInForce, now: RuleInForce) -> Iterator[str]:
    place = f"[[choices]] {now.objects}"
    if before.ordering != now.ordering:
        yield f"{place}: ordering = {now.ordering!r}, and {before.ordering!r} then"
    if before.collect != now.collect:
        yield f"{place}: collect = {now.collect}, and {before.collect} then".lower()
    if before.outbox != now.outbox:
        yield f"{place}: outbox = {now.outbox}, and {before.outbox} then".lower()
    yield from _of_quorums(place, before, now)


def _of_quorums(place: str, before: RuleInForce, now: RuleInForce) -> Iterator[str]:
    for adt, classes in now.quorums.items():
        for name, quorums in classes.items():
            # Nothing that was stored rests on what was only read.
            if _only_observes(adt, name):
                continue
            then = before.quorums.get(adt, {}).get(name, quorums)
            if then != quorums:
                yield f"{place}: {name} is ({', '.join(quorums)}), and was ({', '.join(then)})"
