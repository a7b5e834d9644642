"""Worlds whose replicas have room for a handful of objects, and are full at times: each of others, for no message reaches all of them.

Keys of several dictionaries are written, deleted, asked for in vain, repeated under idempotency keys, and forgotten; who finds no room is told
so, and may try again. Owns the derivation from the seed. It must not know what is right, nor what a replica does without room.
"""

import random
from typing import Final

from msgspec.structs import replace

from ...api_specs.cluster import checked
from .burying import REPLICAS, SPAN_US, rule
from .scenario import BLIND, DECIDE, Scenario
from .varied import forgetful, varied, with_faults

OBJECTS: Final = tuple(f"dictionary/{letter}" for letter in "defghi")
"""With three keys each; a replica has room for fewer of them."""
OBJECTS_MAX: Final = (5, 6, 8, 12)
OPERATIONS: Final = 120
"""Of all callers together, about."""
FRONTS: Final = (2, 3, 4)


def full(seed: int) -> Scenario:
    """The scenario of a seed."""
    rng = random.Random(f"full {seed}")
    what = varied(seed)
    if not what.is_forgetful:
        what = forgetful(what, rng)
    is_quorum = rng.random() < 0.3
    rules = tuple(rule(each, BLIND[each], DECIDE[each], is_quorum=is_quorum) for each in BLIND)
    fronts = max(what.embedded, rng.choice(FRONTS))
    what = replace(
        what,
        document=checked(replace(what.document, replicas=REPLICAS, choices=rules)),
        objects=OBJECTS,
        objects_max=rng.choice(OBJECTS_MAX),
        in_turn=rng.random() < 0.5,
        weights=what.weights
        | {"Write": 4, "Delete": 4, "Collect": 4, "Cas": 2, "PutIfAbsent": 2, "Items": rng.choice([0, 0, 1])},
        keyed=rng.choice([0.3, 1.0]),
        fronts=fronts,
        embedded=rng.choice([what.embedded, min(fronts, len(REPLICAS))]),
        processes=1,
        operations=OPERATIONS // fronts,
        think_us=rng.choice([5_000, 20_000, 50_000]),
        catches_up=rng.random() < 0.5,
        asks_again=rng.choice([0.0, 0.2, 1.0]),
        repeats_undone=rng.random() < 0.7,
        is_gathered=False,
        exchange_timeout_s=rng.choice([0.02, 0.05, 0.1]),
        fault_span_us=SPAN_US,
    )
    faults = replace(
        what.faults,
        leaps=0,
        apart=rng.choice([0, 2, 3, 5]),
        loss=rng.choice([0.0, 0.02, 0.1]),
        lazy_loss=rng.choice([0.3, 1.0]),
        client_crashes=rng.choice([0, 0, 1]),
        tail=rng.choice([0.0, 0.05, 0.3]),
    )
    return with_faults(what, faults)
