"""The plan of a measurement: its TOML form as checked values. Pure.

Owns the keys of a plan and their defaults; `plan_check` owns what must fit together. Durations that the plan's clock runs
through (of failures, repairs, planned outages) are in plan time; what machines do (rates, deadlines, the prober's step) is
in real time. docs/reference/measurement-plans.md is the reference for people.
"""

import tomllib
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import UNSET, Struct, field

from ...api_specs.cluster import BYTE_ORDER_MARK, HAS_MARK, ChoiceRule
from ...quorums.choices.choice import Consistency, Ordering
from .durations import BadDuration, parse_duration
from .plan_words import in_words

Kind = Literal["kill", "stop", "cut"]
"""How a replica is down: its process killed and started again, frozen, or cut off from everybody else."""
Law = Literal["exponential", "weibull"]

OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "queue": ("Enq", "Deq", "Peek", "Size"),
    "register": ("Write", "Read", "Cas"),
    "dictionary": ("Put", "Delete", "Get", "Items", "PutIfAbsent", "Cas"),
}
"""What a workload of these types can be made of; one's own types have the methods of their classes. A dictionary's Size is left out: front ends answer it by Items, and it is recorded so."""


class BadPlan(ValueError):
    """A plan that cannot be run; the sentence names the place and the remedy."""


class Duration(float):
    """Seconds; written in a plan as `2h`."""


class _Part(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a plan."""


class Time(_Part, frozen=True):
    """How long the plan is, and how many of its seconds one real second stands for."""

    duration: Duration
    scale: float = 1.0


class Cluster(_Part, frozen=True):
    """What is measured: so many replicas of its own, in racks or not; or the running cluster of a document."""

    replicas: int = 0
    racks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    document: str = ""
    front_ends: tuple[str, ...] = ("f1", "f2")


class Prober(_Part, frozen=True):
    """How often each replica is asked whether it is ready (real time); 0s for no prober."""

    step: Duration = Duration(0.5)


class Process(_Part, frozen=True, kw_only=True):
    """Up and down in turn, for times drawn from two laws with these means. A Weibull law's `shape` below 1 bunches failures,
    above 1 makes them come of age."""

    mttf: Duration
    mttr: Duration
    law: Law = "exponential"
    shape: float = 1.0
    repair_law: Law = "exponential"
    repair_shape: float = 1.0


class Failures(Process, frozen=True, kw_only=True):
    """Replicas that fail each by itself; none named: all."""

    replicas: tuple[str, ...] = ()
    kind: Kind = "kill"


class RackOutages(Process, frozen=True, kw_only=True):
    """Racks that fail each by itself, with every replica in them; none named: all."""

    racks: tuple[str, ...] = ()
    kind: Kind = "kill"


class Planned(_Part, frozen=True, rename={"lasts": "for"}):
    """Replicas taken down at a stated time; with `stagger`, each so much after the one before."""

    at: Duration
    lasts: Duration
    replicas: tuple[str, ...]
    stagger: Duration = Duration(0.0)
    kind: Kind = "kill"


class Partition(_Part, frozen=True, kw_only=True, rename={"lasts": "for"}):
    """Front ends that cannot reach some replicas, and other replicas that neither reach them nor are reached by them: at a
    stated time, or by a process of its own."""

    replicas: tuple[str, ...]
    front_ends: tuple[str, ...] = ()
    other_replicas: tuple[str, ...] = ()
    at: Duration | None = None
    lasts: Duration | None = None
    mttf: Duration | None = None
    mttr: Duration | None = None
    law: Law = "exponential"
    shape: float = 1.0
    repair_law: Law = "exponential"
    repair_shape: float = 1.0

    @property
    def process(self) -> Process | None:
        """Its process; None when it is planned."""
        if self.mttf is None or self.mttr is None:
            return None
        return msgspec.convert(self, Process, from_attributes=True)


class Choice(_Part, frozen=True):
    """A quorum choice under its name, as a cluster file's [[choices]] has it; of a running cluster, the object alone."""

    name: str
    classes: dict[str, tuple[int, int]] = field(default_factory=dict)
    ordering: Ordering = "clock"
    reads: str = ""
    writes: str = ""
    initials: dict[str, str] = field(default_factory=dict)
    finals: dict[str, str] = field(default_factory=dict)
    object: str = ""
    consistency: Consistency = "atomic"
    outbox: bool = False
    exact_empty: bool = False

    def rule_for(self, object: str) -> ChoiceRule:
        """It, as the rule of an object in a cluster file."""
        return ChoiceRule(
            object,
            self.classes,
            ordering=self.ordering,
            reads=self.reads,
            writes=self.writes,
            initials=self.initials,
            finals=self.finals,
            consistency=UNSET if self.consistency == "atomic" else self.consistency,
            outbox=self.outbox or UNSET,
            exact_empty=self.exact_empty or UNSET,
        )


class Workload(_Part, frozen=True):
    """Operations on one object for each choice: `rates` says how many of each operation a second (real time) one object
    gets from all front ends together. `prefill` is how many items a queue holds at the start; absent: as many as are
    asked for in the whole run."""

    type: str
    rates: dict[str, float]
    choices: tuple[Choice, ...]
    deadline: Duration = Duration(1.0)
    prefill: int | None = None


class Plan(_Part, frozen=True):
    """A whole plan. Make it with `plan_check.parse_plan`, which checks it."""

    time: Time
    cluster: Cluster
    workloads: tuple[Workload, ...]
    types: dict[str, str] = field(default_factory=dict)
    """Data types of one's own, by name, as a cluster file's [types] has them."""
    seed: int = 0
    prober: Prober = Prober()
    failures: tuple[Failures, ...] = ()
    outages: tuple[RackOutages, ...] = ()
    planned: tuple[Planned, ...] = ()
    partitions: tuple[Partition, ...] = ()

    @property
    def length_s(self) -> float:
        """How long it takes, in real seconds."""
        return self.time.duration / self.time.scale

    @property
    def replicas(self) -> tuple[str, ...]:
        """The replicas of the cluster that the plan starts; none when it measures a running one."""
        named = sum(len(members) for members in self.cluster.racks.values())
        return tuple(f"r{number}" for number in range(1, max(self.cluster.replicas, named) + 1))

    @property
    def rules(self) -> tuple[ChoiceRule, ...]:
        """Its choices, as a cluster file holds them."""
        return tuple(
            choice.rule_for(object_of(workload, choice))
            for workload in self.workloads
            for choice in workload.choices
        )

    @property
    def choice_by_object(self) -> dict[str, str]:
        """The name of the choice that each object is kept by."""
        return {
            object_of(workload, choice): choice.name
            for workload in self.workloads
            for choice in workload.choices
        }


_TABLES: Final[Mapping[str, type[_Part]]] = {
    "": Plan,
    "time": Time,
    "cluster": Cluster,
    "prober": Prober,
    "failures": Failures,
    "outages": RackOutages,
    "planned": Planned,
    "partitions": Partition,
    "workloads": Workload,
    "workloads.choices": Choice,
}
_KEYS: Final = {name: table.__struct_encode_fields__ for name, table in _TABLES.items()}
_VALUES: Final = {
    "kind": get_args(Kind),
    "law": get_args(Law),
    "repair_law": get_args(Law),
    "ordering": get_args(Ordering),
    "consistency": get_args(Consistency),
}


def object_of(workload: Workload, choice: Choice) -> str:
    """The object that a choice of a workload is measured on."""
    return choice.object or f"{workload.type}/{choice.name}"


def read_plan(text: str, source: str) -> Plan:
    """The plan that TOML `text` holds, with every key of the right type; BadPlan names `source` and the place."""
    if text.startswith(BYTE_ORDER_MARK):
        raise BadPlan(f"{source} {HAS_MARK}")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadPlan(f"{source}: {error}") from None
    try:
        return msgspec.convert(data, Plan, dec_hook=_decoded)
    except msgspec.ValidationError as error:
        raise BadPlan(f"{source}: {in_words(str(error), _KEYS, _VALUES)}") from None


def _decoded(kind: type[Any], value: Any) -> Any:
    assert kind is Duration, "the only type of a plan that msgspec does not know"
    if isinstance(value, str):
        return Duration(parse_duration(value))
    raise BadDuration(f'a duration is a text with its unit, as "2h", not {value!r}')
