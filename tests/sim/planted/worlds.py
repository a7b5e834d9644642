"""The worlds in which planted mistakes are looked for: what of a seed's scenario is fixed, so that one shows sooner."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from quorate.api_specs.cluster import AFTER_S_MIN, ChoiceRule, ClockSettings, Fallback
from quorate.quorums.choices.choice import Ordering
from quorate.simulation.scenarios.scenario import BLIND, DECIDE
from tests.sim.planted.plant import Hint

QUEUE: Final = ("queue/q",)
REGISTER: Final = ("register/r",)
DICTIONARY: Final = ("dictionary/d",)
WORDS: Final = ("Enq", "Deq", "Peek", "Size", "Read", "Write", "Cas", "PutIfAbsent", "Delete", "Items")


def only(**weights: int) -> Mapping[str, Any]:
    """Only these operations."""
    return {"weights": dict.fromkeys(WORDS, 0) | weights}


def chosen(
    adt: str, blind: tuple[int, int], decide: tuple[int, int], ordering: Ordering = "clock"
) -> tuple[ChoiceRule, ...]:
    """The rule with these quorums for blind and for deciding events."""
    classes = dict.fromkeys(BLIND[adt], blind) | dict.fromkeys(DECIDE[adt], decide)
    return (ChoiceRule(f"{adt}/*", classes, ordering),)


BUSY: Final = {
    "fronts": 4,
    "processes": 1,
    "operations": 10,
    "think_us": 1_000,
    "deadline_s": 1.0,
    "keyed": 0.0,
    "is_exact": True,
}
GOOD_CLOCKS: Final = {"client_skew_us": 0, "replica_skew_us": 0, "clock_steps": 0}
ROUGH: Final = GOOD_CLOCKS | {"loss": 0.1, "tail": 0.3, "tail_us_max": 20_000, "cuts": 4, "lazy_loss": 1.0}
"""Replies come late or not at all, and nothing is learned from lazy messages."""
ROUGHER: Final = ROUGH | {"loss": 0.2, "tail": 0.5, "cuts": 10}
HISTORY: Final = ("linearizable", "taken twice", "lost", "size")
"""Which check of a history is the first to notice is chance."""
CRASHES: Final = {"crashes": 4}

ROUGH_QUEUE: Final = Hint(
    QUEUE, chosen("queue", (0, 2), (2, 2)), faults=ROUGH, fields={**BUSY, **only(Enq=3, Deq=3)}
)
KEYED_QUEUE: Final = replace(ROUGH_QUEUE, fields={**ROUGH_QUEUE.fields, "keyed": 1.0})
WHOLE_READS: Final = Hint(DICTIONARY, faults=GOOD_CLOCKS, fields={**BUSY, **only(Write=4, Delete=1, Items=3)})
MOVING: Final = replace(WHOLE_READS, fields={**WHOLE_READS.fields, "processes": 2, "think_us": 300})
LEAPING_KEYS: Final = replace(
    KEYED_QUEUE,
    clock=ClockSettings(),
    faults={**KEYED_QUEUE.faults, "leaps": 4, "leap_us_max": 300 * 86_400_000_000, "loss": 0.2},
    fields={**KEYED_QUEUE.fields, **only(Enq=3, Deq=5), "is_exact": False},
)
"""Replicas' clocks leap by up to 300 days, and repeats of dequeues under keys come after it."""
LEAPING_QUEUE: Final = replace(
    ROUGH_QUEUE,
    clock=ClockSettings(),
    faults=GOOD_CLOCKS | {"leaps": 4, "leap_us_max": 60_000_000, "loss": 0.1},
    fields={
        **ROUGH_QUEUE.fields,
        **only(Enq=5, Deq=2),
        "operations": 40,
        "think_us": 5_000,
        "is_exact": False,
    },
)
"""Replicas' clocks leap one by one: what some store, others refuse for their clocks."""
TWINS: Final = replace(
    KEYED_QUEUE, fields={**KEYED_QUEUE.fields, "doubled": 0.9, "fronts": 5, **only(Enq=4, Deq=2)}
)
"""Every enqueue has a key, and most of them two front ends that run it at the same time."""
TWINS_TOGETHER: Final = replace(
    TWINS, fields={**TWINS.fields, "is_gathered": True, "processes": 5, "fronts": 3}
)
"""Enqueues of several callers of one front end begin together, too."""
CAS: Final = Hint(
    REGISTER,
    chosen("register", (0, 2), (2, 2)),
    faults=ROUGH,
    fields={**BUSY, **only(Read=2, Write=3, Cas=3)},
)
WEAK: Final = replace(CAS, rules=(ChoiceRule("register/*", {"Write/Ok": (0, 2)}, consistency="eventual"),))
SLOW_CAS: Final = Hint(
    REGISTER,
    chosen("register", (3, 1), (3, 1), "quorum"),
    faults=GOOD_CLOCKS | {"slow_links": 3},
    fields={**BUSY, **only(Read=2, Write=4, Cas=3), "fronts": 1, "processes": 5, "is_gathered": True},
)
"""Writes of the same front end come and are complete while a decision looks."""
ROUTED: Final = replace(
    ROUGH_QUEUE,
    faults=ROUGH | {"duplication": 0.3, "cuts": 1, "cancels": 0.0, "client_crashes": 0},
    fields={**ROUGH_QUEUE.fields, **only(Enq=5, Deq=4), "is_routed": True},
)
"""Front ends share a queue and hand their commands over; messages are lost and doubled."""
RESTARTED: Final = replace(ROUGH_QUEUE, faults=ROUGH | {"client_crashes": 6})
ALL_STORE: Final = replace(KEYED_QUEUE, rules=chosen("queue", (0, 3), (1, 3)))
FIVE: Final = replace(ROUGH_QUEUE, rules=chosen("queue", (0, 3), (3, 3)), replicas=5)
BY_CLASS: Final = replace(
    ROUGH_QUEUE,
    rules=(ChoiceRule("queue/*", finals={"Enq": "r1*r2*r3", "Deq": "r1 + r2 + r3"}),),
    faults=ROUGH | {"lazy_loss": 0.0},
)
READ_ONE: Final = (0, 1), (3, 1)
SKEWED: Final = Hint(
    QUEUE,
    chosen("queue", *READ_ONE),
    clock=ClockSettings(0.0),
    faults=GOOD_CLOCKS | {"client_skew_us": 1_000_000, "crashes": 0},
    fields={**BUSY, **only(Enq=3, Deq=3)},
)
"""Wall clocks are up to a second wrong, but bounded by what is measured; blind quorums need not meet."""
IN_REPLICAS: Final = Hint(
    QUEUE,
    chosen("queue", *READ_ONE),
    clock=ClockSettings(0.02, front_end_error_s=0.0),
    faults=GOOD_CLOCKS | {"client_skew_us": 0, "replica_skew_us": 20_000, "crashes": 0},
    fields={**BUSY, **only(Enq=3, Deq=3), "embedded": 2},
)
"""Callers' clocks are right, and those of replicas are up to 20 ms wrong: by them, too, operations are ordered."""
BY_QUORUM: Final = replace(
    SKEWED,
    rules=chosen("queue", (2, 2), (2, 2), "quorum"),
    clock=ClockSettings(0.0, front_end_error_s=0.0),
)
CATCHING_UP: Final = replace(
    ROUGH_QUEUE,
    rules=chosen("queue", *READ_ONE),
    faults=ROUGH | {"crashes": 4, "lazy_loss": 0.3},
    fields={**ROUGH_QUEUE.fields, **only(Enq=4, Deq=3), "catches_up": True},
)
PRIMARY: Final = Hint(
    rules=(ChoiceRule("*", fallback=Fallback(down=("r3",), after_s=AFTER_S_MIN, reads="r1")),),
    faults=ROUGHER,
    fields={"operations": 15},
)
"""One replica alone decides while another one is taken to be down."""
FEW: Final = Hint(fields={"operations": 15})
FEW_KEYED: Final = Hint(fields={"operations": 15, "keyed": 1.0, "doubled": 0.6})
CATCHING_UP_ROUGHLY: Final = replace(
    ROUGH_QUEUE, faults=ROUGHER, fields={**CATCHING_UP.fields, "deadline_s": 1.0}
)
