"""Scenarios whose cluster comes to other members, votes and quorum choices while it is used.

Owns what operators want, and which rules have a fallback. It must not know how a cluster comes there (`quorate.client_sdk.protocol.reconfiguration`).
"""

import random
from collections.abc import Collection, Sequence
from typing import Final

from msgspec.structs import replace

from ...api_specs.cluster import (
    AFTER_S_MIN,
    BadCluster,
    ChoiceRule,
    ClusterDocument,
    Fallback,
    ReplicaInfo,
    checked,
)
from ...api_specs.configuration import with_members
from .own import own_rule
from .scenario import BLIND, Scenario, rule

ROOM_BYTES: Final = 64 * 1024
SIZES: Final = (1, 3, 3, 3, 5)
MEMBERS_MIN: Final = 3
"""Of clusters with fallbacks: of two none may be down."""


def changing(what: Scenario) -> Scenario:
    """The scenario, with one to three changes: of members and of quorum choices, or of these alone; one after another, or all wanted at once. Some
    callers are still there when the last has come to its end."""
    rng = random.Random(f"changing {what.seed}")
    changes: list[ClusterDocument] = []
    for number in range(rng.choice([1, 1, 2, 3])):
        others = [f"{letter}{number}" for letter in "abcde"]
        changes.append(_other(changes[-1] if changes else what.document, others, rng))
    return replace(
        what,
        document=_with_room(what.document),
        changes=tuple(map(_with_room, changes)),
        change_every_us=rng.choice([0, 50_000, 200_000]),
        operations=2 * what.operations,
        think_us=_think_us(what, rng),
        prunes=True,
        has_codec=False,
    )


def dying(what: Scenario) -> Scenario:
    """The scenario, in which a member is off for good before the first change, and no configuration that follows has it. The others have a majority of
    the votes, which the cluster's own register needs."""
    rng, found = random.Random(f"dying {what.seed}"), changing(what)
    total = sum(each.votes for each in what.document.replicas)
    spare = [each.id for each in what.document.replicas if 2 * each.votes < total]
    if not spare:
        return found
    gone = rng.choice(spare)
    what = replace(what, document=_alone(what.document, gone, rng))
    changes: list[ClusterDocument] = []
    for number in range(len(found.changes)):
        others = [f"{letter}{number}" for letter in "abcde"]
        changes.append(_other(changes[-1] if changes else what.document, others, rng, gone))
    return replace(
        found, document=_with_room(what.document), changes=tuple(map(_with_room, changes)), dying=gone
    )


def dying_in_between(what: Scenario) -> Scenario:
    """The scenario of one in which a member dies before the first change, and another one in the middle of a change that was to keep it. The others have a
    majority of the votes of either side."""
    rng, found = random.Random(f"dying in between {what.seed}"), dying(what)
    if not found.dying:
        return found
    at_first, first = found.document, found.changes[0]
    if len(at_first.replicas) < MEMBERS_MIN + 2 or rng.random() < 0.5:
        names = (*at_first.own_votes, *("s1", "s2", "s3", "s4"))[: MEMBERS_MIN + 2]
        at_first = _of(at_first, names, rng)
    kept = [name for name in at_first.own_votes if name != found.dying]
    second = rng.choice(kept)
    if second not in first.own_votes or len(first.replicas) < MEMBERS_MIN:
        others = rng.sample(
            [each for each in (*kept, "x1", "x2") if each != second], rng.choice([2, 3, 3, 4])
        )
        first = _alone(_of(first, sorted([second, *others]), rng), second, rng)
    return replace(
        found,
        document=_alone(at_first, second, rng),
        changes=(first, *found.changes[1:]),
        dying_in_between=second,
        instead=rng.choice(["", "y1"]),
    )


def moving(what: Scenario) -> Scenario:
    """The scenario of a changing one, with one to three members that move to other URLs, before a change, in the middle, or afterwards."""
    rng = random.Random(f"moving {what.seed}")
    last_us = max(200_000, what.change_every_us * len(what.changes))
    return replace(what, moving=tuple(rng.randrange(last_us) for _ in range(rng.choice([1, 2, 3]))))


def _of(document: ClusterDocument, names: Sequence[str], rng: random.Random) -> ClusterDocument:
    """The document with these members, a vote each, and rules for so many."""
    rules = tuple(_like(each, len(names), rng) for each in document.choices)
    members = tuple(ReplicaInfo(name, f"http://{name}:1") for name in names)
    return checked(replace(document, replicas=members, choices=rules))


def without_dead(document: ClusterDocument, dead: Collection[str], instead: str = "") -> ClusterDocument:
    """What an operator wants who wanted this, where these members are off for good: without them, or with that one instead. Rules that do not fit become
    majorities."""
    members = [each for each in document.replicas if each.id not in dead]
    if instead and instead not in document.own_votes:
        members.append(ReplicaInfo(instead, f"http://{instead}:1"))
    try:
        return with_members(document, members)
    except BadCluster:
        plain = tuple(replace(each, classes={}) for each in document.choices)
        return with_members(replace(document, choices=plain), members)


def with_learner(what: Scenario) -> Scenario:
    """The scenario; in half of them a member without votes comes at some time, and leaves again, gets a vote, or is there until the next change. All other
    votes and rules stay as they are until then."""
    rng = random.Random(f"learner {what.seed}")
    if rng.random() < 0.5:
        return what
    known = [what.document, *what.changes]
    place = rng.randrange(1 if what.dying else 0, len(known))
    at, member = known[place], ReplicaInfo("l0", "http://l0:1")
    learning = checked(replace(at, replicas=(*at.replicas, replace(member, votes=0))))
    total = sum(each.votes for each in at.replicas) + member.votes
    voting = replace(
        at, replicas=(*at.replicas, member), choices=tuple(_like(each, total, rng) for each in at.choices)
    )
    then = rng.choice([[], [at], [checked(voting)]])
    return replace(what, changes=tuple([*known[: place + 1], learning, *then, *known[place + 1 :]][1:]))


def _alone(document: ClusterDocument, member: str, rng: random.Random) -> ClusterDocument:
    """The document with rules by which the member alone may be a final quorum, mostly."""
    votes, total = document.own_votes[member], sum(document.own_votes.values())
    rules = list(document.choices)
    for _ in range(20):
        if rng.random() < 0.1 or any(final <= votes for each in rules for _, final in each.classes.values()):
            break
        rules = [_like(each, total, rng) for each in rules]
    return checked(replace(document, choices=tuple(rules)))


def _think_us(what: Scenario, rng: random.Random) -> int:
    """So that callers outlast the changes, which wait until keys are forgotten; in some worlds they do not rest at all."""
    if what.keyed and not what.is_forgetful:
        return rng.choice([0, 200_000, 400_000])
    return max(what.think_us, rng.choice([0, 10_000, 30_000, 60_000]))


def _with_room(document: ClusterDocument) -> ClusterDocument:
    """With room for configurations among the values."""
    limits = document.limits
    value, body = max(limits.value_bytes_max, ROOM_BYTES), max(limits.body_bytes_max, 8 * ROOM_BYTES)
    return replace(document, limits=replace(limits, value_bytes_max=value, body_bytes_max=body))


def _other(
    document: ClusterDocument, others: Sequence[str], rng: random.Random, gone: str = ""
) -> ClusterDocument:
    """Another configuration, without the member that is gone."""
    members = document.replicas
    if rng.random() < 0.75 or gone in document.own_votes:
        known = [each.id for each in members if each.id != gone]
        names = sorted(rng.sample([*known, *others], rng.choice(SIZES)))
        votes = [1] * len(names) if rng.random() < 0.8 else [rng.randint(1, 2) for _ in names]
        members = tuple(
            ReplicaInfo(name, f"http://{name}:1", vote) for name, vote in zip(names, votes, strict=True)
        )
    total = sum(each.votes for each in members)
    rules = tuple(_like(each, total, rng) for each in document.choices)
    return checked(replace(document, replicas=members, choices=rules))


def _like(before: ChoiceRule, total: int, rng: random.Random) -> ChoiceRule:
    """Other quorums for the same objects, which are ordered, and collected, as before: what may be promised of them does not change."""
    adt = before.objects.partition("/")[0]
    while True:
        is_quorum = before.ordering == "quorum"
        drawn = rule(rng, adt, total, is_quorum=is_quorum) if adt in BLIND else own_rule(rng, total)
        if drawn.ordering == before.ordering:
            return replace(drawn, collect=before.collect)


def standing(what: Scenario) -> Scenario:
    """The scenario of a changing one, whose rules have fallbacks; with fewer changes by operators, who leave them their fallbacks, or do not."""
    rng = random.Random(f"standing {what.seed}")
    changes = what.changes[: rng.choice([0, 0, 1, 2])]
    kept = tuple(_standing(each, rng) if rng.random() < 0.5 else each for each in changes)
    think_us = max(what.think_us, rng.choice([20_000, 50_000, 100_000]))
    return replace(what, document=_standing(what.document, rng), changes=kept, think_us=think_us)


def _standing(document: ClusterDocument, rng: random.Random) -> ClusterDocument:
    """Three members or more, with a vote each, and a fallback for each rule. The first choices are as before where they can be switched while one
    member is down, else majorities."""
    names = [each.id for each in document.replicas]
    names += [name for name in ("s1", "s2", "s3")[: MEMBERS_MIN - len(names)] if len(names) < MEMBERS_MIN]
    members = tuple(ReplicaInfo(name, f"http://{name}:1") for name in names)
    down = rng.choice(names)
    fallbacks = [_fallback(names, down, rng) for _ in document.choices]
    rules = [replace(rule, fallback=each) for rule, each in zip(document.choices, fallbacks, strict=True)]
    try:
        return checked(replace(document, replicas=members, choices=tuple(rules)))
    except BadCluster:
        plain = tuple(replace(rule, classes={}) for rule in rules)
        return checked(replace(document, replicas=members, choices=plain))


def _fallback(names: Sequence[str], down: str, rng: random.Random) -> Fallback:
    """For one member that is down, or any; no quorum needs one that may be."""
    if rng.random() < 0.3:
        reads = _votes(rng.randint(2, len(names) - 1), names)
        return Fallback(live_below=len(names), after_s=AFTER_S_MIN, reads=reads)
    live = [name for name in names if name != down]
    return Fallback(down=(down,), after_s=AFTER_S_MIN, reads=_votes(rng.randint(1, len(live)), live))


def _votes(needed: int, names: Sequence[str]) -> str:
    return f"votes({needed}; {', '.join(f'{name}:1' for name in names)})"
