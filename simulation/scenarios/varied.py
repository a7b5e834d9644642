"""The scenarios of the test runs: those of `scenario`, in most seeds with more that may happen.

Owns what was added after the first thousands of seeds had names in the records: `scenario` keeps giving those. Added are
embedded front ends, commands forwarded, operations begun together, stopped and slow processes, stepping clocks of replicas,
adversarial links, further votes, and clusters whose memory is so short that forgetting happens within the run.
"""

import random
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import replace

from ...adts.specification import operation_of
from ...api_specs.cluster import ClusterDocument, ReplicaInfo, checked
from ...api_specs.limits import Limits
from ...timestamps.clock_bound import DRIFT
from .faults import NO_FAULTS, Faults
from .scenario import BLIND, Scenario, keeps_order, rule, scenario

MORE_VOTES: Final = ((1,), (1, 1), (1, 1, 1, 1), (2, 2, 1), (3, 1, 1, 1), (1, 1, 1, 1, 0))
OPERATIONS: Final = 52
"""Of all callers together, about."""
OUTLASTING_S: Final = 600.0
MANY: Final = 7
"""Items that callers take at once, at most."""
EVERY: Final = 8
"""One world in so many."""


def varied(seed: int) -> Scenario:
    """The scenario of a seed, as tests and soaks run it."""
    what = scenario(seed)
    rng = random.Random(f"varied {seed}")
    what = replace(what, operations=max(4, OPERATIONS // (what.fronts * what.processes)))
    if rng.random() < 0.15:
        what = replace(what, document=_with_other_votes(what.document, rng))
    if what.faults != NO_FAULTS and rng.random() < 0.6:
        what = with_faults(what, _more_faults(what.faults, rng))
    if rng.random() < 0.15:
        what = forgetful(what, rng)
    if rng.random() < 0.35:
        what = _with_embedded(what, rng)
    if rng.random() < 0.4:
        what = _routed(what, rng)
    if rng.random() < 0.3:
        what = _gathered(what, rng)
    if what.faults != NO_FAULTS and rng.random() < 0.6:
        what = with_faults(what, replace(what.faults, drift_ppm=round(DRIFT * 1e6)))
    if what.faults != NO_FAULTS and rng.random() < 0.1:
        what = _leaping(what, rng)
    doubled = rng.choice([0.2, 0.6]) if what.keyed and rng.random() < 0.6 else 0.0
    catches_up = rng.random() < 0.5
    asks_again = rng.choice([0.0, 0.2, 1.0]) if what.keyed else 0.0
    # The last two by the seed itself, so that other worlds stay as they were.
    return replace(
        what,
        doubled=doubled,
        catches_up=catches_up,
        asks_again=asks_again,
        is_busy=seed % EVERY == 0,
        repeats_undone=seed % EVERY == EVERY // 2,
    )


def weak(what: Scenario) -> Scenario:
    """The scenario, with objects of eventual consistency."""
    observing = {"Peek", "Size", "Read", "Get", "Items"}
    rules = tuple(
        replace(
            each,
            consistency="eventual",
            classes={
                name: sizes for name, sizes in each.classes.items() if operation_of(name) not in observing
            },
        )
        for each in what.document.choices
    )
    return replace(what, document=checked(replace(what.document, choices=rules)))


def outboxed(what: Scenario) -> Scenario:
    """The scenario, with a queue whose enqueues go through outboxes; in half of the worlds it is empty only if these are. In most memory outlasts the
    run; in the others items may be there twice."""
    exact_empty = True if what.seed // EVERY % 2 else UNSET
    rules = tuple(
        replace(each, outbox=True, exact_empty=exact_empty) if each.objects == "queue/*" else each
        for each in what.document.choices
    )
    limits = what.document.limits
    if what.seed % EVERY not in (1, 2):
        limits = replace(limits, retry_window_s=OUTLASTING_S)
    if what.seed % EVERY in (2, 3):
        limits = replace(limits, batch_items_max=MANY)
    objects = what.objects if "queue/q" in what.objects else ("queue/q",)
    document = checked(replace(what.document, choices=rules, limits=limits))
    return replace(what, document=document, objects=objects)


def leaping(what: Scenario) -> Scenario:
    """The scenario, with clocks that leap."""
    if what.faults.leaps:
        return what
    return _leaping(what, random.Random(f"leaping {what.seed}"))


def _leaping(what: Scenario, rng: random.Random) -> Scenario:
    """Clocks of replicas leap, by seconds or by months, and those of front ends with them or alone; front ends measure theirs."""
    clock = replace(what.document.clock, front_end_error_s=None)
    what = replace(what, document=replace(what.document, clock=clock))
    leap_us_max = rng.choice([10_000_000, 3_600_000_000, 300 * 86_400_000_000])
    return with_faults(what, replace(what.faults, leaps=rng.randint(1, 4), leap_us_max=leap_us_max))


def with_faults(what: Scenario, faults: Faults) -> Scenario:
    """The scenario with these faults, and with what can be promised under them."""
    return _judged(replace(what, faults=faults))


def _judged(what: Scenario) -> Scenario:
    return replace(what, is_exact=keeps_order(what.document, what.faults))


def _more_faults(faults: Faults, rng: random.Random) -> Faults:
    return replace(
        faults,
        slow_throughout=rng.choice([0, 0, 1, 2]),
        newest_first=rng.choice([0, 0, 1, 3]),
        slow_replicas=rng.choice([0, 0, 1, 2]),
        freezes=rng.choice([0, 0, 1, 2]),
        client_freezes=rng.choice([0, 0, 0, 1]),
        client_crash_at=rng.choice([0, 0, 0, rng.randint(1, 200)]),
        replica_clock_steps=rng.choice([0, 2]) if faults.replica_skew_us else 0,
    )


def _with_other_votes(document: ClusterDocument, rng: random.Random) -> ClusterDocument:
    votes = rng.choice(MORE_VOTES)
    is_quorum = any(each.ordering == "quorum" for each in document.choices)
    replicas = tuple(
        ReplicaInfo(f"r{number}", f"http://r{number}:1", vote) for number, vote in enumerate(votes, 1)
    )
    rules = tuple(rule(rng, adt, sum(votes), is_quorum=is_quorum) for adt in BLIND)
    return checked(replace(document, replicas=replicas, choices=rules))


def _with_embedded(what: Scenario, rng: random.Random) -> Scenario:
    """Some front ends in replicas, whose clocks they have."""
    return _judged(replace(what, embedded=rng.randint(1, what.fronts)))


def _routed(what: Scenario, rng: random.Random) -> Scenario:
    """Several front ends, most of which share what they decide on, and hand it over; more than half carry no key."""
    fronts, processes = rng.choice([(2, 1), (3, 1), (3, 2), (4, 1), (6, 1)])
    return replace(
        what,
        is_routed=True,
        fronts=max(fronts, what.embedded),
        processes=processes,
        operations=max(4, OPERATIONS // (fronts * processes)),
        keyed=min(what.keyed, 0.3),
        think_us=what.think_us if what.is_forgetful else rng.choice([0, 1_000, 1_000, 10_000]),
        weights=what.weights | {"Deq": 4, "Cas": 3, "PutIfAbsent": 2},
    )


def _gathered(what: Scenario, rng: random.Random) -> Scenario:
    """Operations of several callers of a front end begin together; in half of these worlds all are on cells."""
    fronts, processes = rng.choice([(1, 5), (2, 3), (2, 4), (3, 2)])
    objects = rng.choice([what.objects, ("dictionary/d",), ("register/r", "dictionary/d")])
    return replace(
        what,
        is_gathered=True,
        objects=objects,
        keyed=1.0 if what.keyed else 0.0,
        fronts=max(fronts, what.embedded),
        processes=processes,
        operations=max(4, OPERATIONS // (fronts * processes)),
        think_us=what.think_us if what.is_forgetful else rng.choice([0, 0, 1_000]),
    )


def forgetful(what: Scenario, rng: random.Random) -> Scenario:
    """Three quarters of a second of memory, a slow pace, deletions, and somebody who collects; logs that are never collected do not fit."""
    document = what.document
    limits: dict[str, Any] = {
        "retry_window_s": 0.3,
        "deadline_s_max": 0.25,
        "wait_s_max": 0.1,
        "consumed_lag_s": rng.choice([0.05, 0.3]),
    }
    rules = tuple(replace(each, collect=True) for each in document.choices)
    document = replace(
        document,
        choices=rules,
        limits=_limits(document.limits, limits),
        clock=replace(document.clock, offset_max_s=0.1),
    )
    faults = replace(
        what.faults,
        client_skew_us=min(what.faults.client_skew_us, 5_000),
        replica_skew_us=min(what.faults.replica_skew_us, 3_000),
    )
    what = replace(
        what,
        document=checked(document),
        faults=faults,
        objects=rng.choice([("dictionary/d",), ("queue/q", "register/r", "dictionary/d")]),
        weights=what.weights | {"Delete": 4, "Collect": 3},
        deadline_s=min(what.deadline_s, 0.2),
        exchange_timeout_s=0.1,
        think_us=rng.choice([20_000, 50_000]),
        prunes=True,
        is_forgetful=True,
        fault_span_us=1_500_000,
    )
    return _judged(what)


def _limits(limits: Limits, other: dict[str, Any]) -> Limits:
    return replace(limits, **other)
