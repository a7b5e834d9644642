"""Worlds in which deleted keys are forgotten beside objects that live on: queues, or objects of a type of one's own.

What a replica forgets raises its floor, below which it says nothing of an object that it does not know. Each front end is apart from one
replica, and then from another, so that replicas get to know objects that others know long since: front ends throw away what they
know of them in the middle of what they do. Owns the derivation from the seed. It must not know what is right.
"""

import random
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from ...adts.plain_class import PlainClass
from ...api_specs.cluster import ChoiceRule, ReplicaInfo, checked
from .leased import with_leases
from .own import TYPE
from .scenario import BLIND, DECIDE, Scenario
from .varied import forgetful, varied, with_faults

KEYS_OF: Final = "dictionary/d"
OTHERS: Final = 12
"""Objects that live on; each of them is new to everybody at some moment of the run."""
OPERATIONS: Final = 120
"""Of all callers together, about: what is deleted at first is forgotten long before the end."""
SPAN_US: Final = 4_000_000
FRONTS: Final = (2, 3, 4)
REPLICAS: Final = tuple(ReplicaInfo(f"r{number}", f"http://r{number}:1") for number in range(1, 4))
MAJORITY: Final = 2


def burying(seed: int, found: PlainClass, code: str) -> Scenario:
    """The scenario of a seed. In a third of them the objects that live are queues, in another one queues with leases, else of this type."""
    rng = random.Random(f"burying {seed}")
    what = varied(seed)
    if not what.is_forgetful:
        what = forgetful(what, rng)
    kind = rng.choice(["plain", "leased", TYPE])
    is_own = kind == TYPE
    classes = {TYPE: (["Blind/Ok"], ["Call/Ok"])} if is_own else {}
    classes |= {each: (BLIND[each], DECIDE[each]) for each in BLIND}
    is_quorum = rng.random() < 0.3
    rules = tuple(rule(each, *some, is_quorum=is_quorum) for each, some in classes.items())
    document = replace(
        what.document, replicas=REPLICAS, choices=rules, types={TYPE: code} if is_own else UNSET
    )
    fronts = max(what.embedded, rng.choice(FRONTS))
    what = replace(
        what,
        document=checked(document),
        drawn=found if is_own else None,
        objects=(KEYS_OF, *(f"{TYPE if is_own else 'queue'}/{number}" for number in range(OTHERS))),
        in_turn=True,
        weights=what.weights | {"Delete": 6, "Collect": 8, "Items": 0},
        fronts=fronts,
        processes=1,
        operations=OPERATIONS // fronts,
        think_us=rng.choice([5_000, 20_000, 50_000]),
        catches_up=rng.random() < 0.2,
        is_gathered=False,
        exchange_timeout_s=rng.choice([0.02, 0.05, 0.1]),
        fault_span_us=SPAN_US,
    )
    if kind == "leased":
        what = with_leases(what, rng, is_tight=False)
    faults = replace(
        what.faults,
        leaps=0,
        apart=rng.choice([2, 3, 5]),
        loss=rng.choice([0.0, 0.02, 0.1]),
        lazy_loss=rng.choice([0.3, 1.0]),
        client_crashes=rng.choice([0, 0, 1]),
        tail=rng.choice([0.0, 0.05, 0.3]),
    )
    return with_faults(replace(what, repeats_undone=rng.random() < 0.5), faults)


def rule(adt: str, blind: list[str], decide: list[str], *, is_quorum: bool) -> ChoiceRule:
    """Two of three everywhere, so that there are quorums without the replica from which a front end is apart."""
    classes = dict.fromkeys(blind, (MAJORITY if is_quorum else 0, MAJORITY))
    classes |= dict.fromkeys(decide, (MAJORITY, MAJORITY))
    return ChoiceRule(f"{adt}/*", classes, "quorum" if is_quorum else "clock")
