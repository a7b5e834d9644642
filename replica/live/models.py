"""The answers that the live page is drawn from, typed; their schemas are the OpenAPI document's. Shapes only."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_T1 = "0006424e5d3c80.0000.k3v9q0a1b2c3d"
_ZERO = "00000000000000.0000.0"


def _example(value: dict[str, Any]) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [value]})


class CatchUpSeen(BaseModel):
    """How far a replica is behind another one, as it says itself."""

    lag: int | None = Field(
        description="Changes of the other's logs that it has not looked at yet, or may not install yet; null: not known yet"
    )
    entries: int = Field(description="Entries that it brought from there since it started")


Role = Literal["voter", "learner", "joining", "leaving"]


class ReplicaSeen(BaseModel):
    """A replica, as the one that answers sees it."""

    id: str = Field(examples=["r2"])
    url: str
    votes: int
    state: Literal["ready", "not-voting", "down"] = Field(
        description="`not-voting`: it runs, and does not take part (as while it starts)"
    )
    trouble: str = Field(description="Why it is not ready; empty when it is")
    answered_ms: float | None = Field(description="How long its answer took")
    clock_offset_ms: float | None = Field(
        description="How far its clock is ahead, to within half of `answered_ms`"
    )
    incarnation: str | None
    missing: int | None = Field(
        description="Entries of the objects listed that others hold and it does not, of those that still count"
    )
    catch_up: dict[str, CatchUpSeen] | None = Field(
        description="By other replica, how far it is behind; null where it does not tell"
    )
    role: Role = Field(
        description="`learner`: a member without a vote; `joining`, `leaving`: while the cluster changes"
    )
    configuration: int | None = Field(
        description="The number of the configuration that it is in, as it says itself"
    )
    release: str | None = Field(description="Its release, as it says itself", examples=["0.1.0"])
    switch_waits: str = Field(
        description="Why it does not switch a standing rule that is due; empty when nothing waits"
    )


class LogSeen(BaseModel):
    """One replica's part of an object."""

    horizon: str = Field(description="Decided up to here, as far as this replica has heard", examples=[_T1])
    fence: str = Field(description="It accepts no new entry at or below this", examples=[_T1])
    entries: int = Field(description="Entries above the object's horizon, of the newest that were asked for")
    missing: int = Field(description="Entries that others hold and it does not, of those that still count")


class ObjectSeen(BaseModel):
    """An object, as far as the replicas that answered know it."""

    object: str = Field(examples=["queue/jobs"])
    horizon: str = Field(description="The highest horizon of any replica", examples=[_T1])
    fence: str = Field(description="The highest fence of any replica", examples=[_T1])
    entries: int = Field(description="Entries above the horizon that some replica holds")
    is_cut: bool = Field(description="Whether a replica holds more entries than were asked for")
    held: int = Field(description="Of a queue: items that are delivered under leases")
    waiting: int = Field(description="Of a queue: items that wait to be delivered, and left the log already")
    dead: int = Field(description="Of a queue: dead letters")
    is_absent: bool = Field(
        description="Of a dictionary's key: whether it has no value, as one that was deleted and is not forgotten yet. False where the asked replica does not know the newest value"
    )
    replicas: dict[str, LogSeen] = Field(description="By replica id, of those that know the object")


class FallbackSeen(BaseModel):
    """The second choice of a standing rule."""

    objects: str = Field(description="The rule's pattern", examples=["queue/orders*"])
    condition: str = Field(description="When it is to be in force, in words")
    is_in_force: bool


class ConfigurationSeen(BaseModel):
    """The configuration of the cluster, as the replica that answers goes by it."""

    number: int = Field(description="Counted from 0, that of the cluster file", examples=[2])
    before: list[str] = Field(
        description="While the cluster changes: the members of the configuration before; else none"
    )
    members: list[str] = Field(description="The members of this configuration", examples=[["r1", "r2", "r3"]])
    removed: list[str] = Field(description="Former members; none of them comes back")
    declared_dead: list[str] = Field(
        description="While the cluster changes: members of before that an operator declared dead"
    )
    fallbacks: list[FallbackSeen]


class Overview(BaseModel):
    """The cluster at a glance: every replica, and a page of the objects by name."""

    model_config = _example(
        {
            "cluster": "shop",
            "hash": "bd4fa0c1aa6fbefccf2d6ec5b1f05800b0acf3ddecad59071d3b5e38a95b47c3",
            "served_by": "r1",
            "now_us": 1795208035257076,
            "replicas": [
                {
                    "id": "r1",
                    "url": "http://127.0.0.1:8101",
                    "votes": 1,
                    "state": "ready",
                    "trouble": "",
                    "answered_ms": 1.6,
                    "clock_offset_ms": 0.0,
                    "incarnation": "ebf6a7e116289fdb",
                    "missing": 0,
                    "catch_up": {"r2": {"lag": 0, "entries": 250}},
                    "role": "voter",
                    "configuration": 2,
                    "release": "0.1.0",
                    "switch_waits": "",
                }
            ],
            "configuration": {
                "number": 2,
                "before": [],
                "members": ["r1", "r2", "r3"],
                "removed": ["r4"],
                "declared_dead": [],
                "fallbacks": [],
            },
            "objects": [
                {
                    "object": "queue/jobs",
                    "horizon": _ZERO,
                    "fence": _ZERO,
                    "entries": 1,
                    "is_cut": False,
                    "held": 0,
                    "waiting": 0,
                    "dead": 0,
                    "is_absent": False,
                    "replicas": {"r1": {"horizon": _ZERO, "fence": _ZERO, "entries": 1, "missing": 0}},
                }
            ],
            "next": "queue/jobs",
        }
    )

    cluster: str
    hash: str
    served_by: str = Field(description="The replica that answers", examples=["r1"])
    now_us: int = Field(description="Its physical clock, microseconds since 1970")
    replicas: list[ReplicaSeen]
    configuration: ConfigurationSeen
    objects: list[ObjectSeen]
    next: str | None = Field(description="What `after` must be for the next page; null when there is none")


class LeaseStatusSeen(BaseModel):
    """How an item of a queue stands with acquire, as one replica knows it."""

    state: Literal["held", "over", "delayed", "due", "expired", "dead"] = Field(
        description="`held` by somebody until `until_us`; `over`: that has passed, so the next acquire delivers it; `delayed` "
        "until `until_us`; `due`: it waits to be delivered; `expired`: the next acquire makes it a dead letter; `dead`: it is one"
    )
    words: str = Field(
        description="The same in words, times in UTC", examples=["held until 12:00:30 UTC, delivery 2"]
    )
    until_us: int | None = Field(description="Microseconds since 1970")
    deliveries: int = Field(description="How often it was delivered")


class TraceRow(BaseModel):
    """What the replicas hold at one timestamp, in their logs or besides: leases and dead letters left the log."""

    t: str = Field(examples=[_T1])
    at: str = Field(description="The wall-clock time in it, UTC", examples=["2026-01-31 12:00:00.000000"])
    events: dict[str, str] = Field(
        description="By replica id; absent where the replica does not hold it",
        examples=[{"r1": '[Enq("x"); Ok()]', "r2": '[Enq("x"); Ok()]'}],
    )
    lease_statuses: dict[str, LeaseStatusSeen] = Field(
        description="By replica id, of items that an acquire has met, or that are delayed or expire; absent for all others"
    )
    unseen: list[str] = Field(
        description="Replicas of which it is not known whether they hold it: their answer was cut off before it"
    )


class TraceColumn(BaseModel):
    """One replica's promises for the object, and what its summary decides."""

    state: Literal["ready", "not-voting", "down"]
    trouble: str
    horizon: str | None = Field(examples=[_T1])
    fence: str | None
    accepted: str | None = Field(
        description="The horizon that it accepted; above `horizon`: not known decided"
    )
    adopted: list[str] = Field(description="Entries that its summary holds itself")
    value: str | None = Field(description="Decided value of a register or key, JSON text, cut when long")
    held: int = Field(description="Items that are delivered, as its summary tells")
    waiting: int = Field(description="Items that wait to be delivered, and left the log")
    dead: int = Field(description="Dead letters")


class ObjectTrace(BaseModel):
    """The logs of all replicas side by side: one row per timestamp, one column per replica."""

    model_config = _example(
        {
            "object": "queue/jobs",
            "rows": [
                {
                    "t": _T1,
                    "at": "2026-01-31 12:00:00.000000",
                    "events": {"r1": '[Enq({"job":1}); Ok()]'},
                    "lease_statuses": {},
                    "unseen": [],
                }
            ],
            "replicas": {
                "r1": {
                    "state": "ready",
                    "trouble": "",
                    "horizon": _ZERO,
                    "fence": _ZERO,
                    "accepted": _ZERO,
                    "adopted": [],
                    "value": '"x"',
                    "held": 0,
                    "waiting": 0,
                    "dead": 0,
                }
            },
            "is_cut": False,
        }
    )

    object: str
    rows: list[TraceRow]
    replicas: dict[str, TraceColumn] = Field(description="In the order of the cluster file")
    is_cut: bool = Field(description="Whether there are older entries than the rows")


class ClassSeen(BaseModel):
    """The quorums of an event class: votes, and the quorum systems where the choice is made of these."""

    name: str = Field(examples=["Deq/Ok"])
    operation: str = Field(examples=["Deq"])
    initial: int = Field(description="Votes read before (with systems: the least number of replicas)")
    final: int = Field(description="Votes that must store it after; 0 when it changes nothing")
    initial_system: str | None
    final_system: str | None
    is_available: bool = Field(description="Whether the replicas that vote now hold both its quorums")


class Constraint(BaseModel):
    """Every initial quorum of the operation meets every final quorum of the event class."""

    operation: str = Field(examples=["Deq"])
    event_class: str = Field(examples=["Enq/Ok"])


class ChoiceSeen(BaseModel):
    """The quorum choice of all objects of one type whose names match."""

    objects: str = Field(description="A pattern, as `queue/fast-*`; the first that matches counts")
    type: str = Field(examples=["queue"])
    ordering: Literal["clock", "quorum"]
    collect: bool = Field(description="False: decided events are kept in the logs")
    classes: list[ClassSeen]
    constraints: list[Constraint]


class Choices(BaseModel):
    """The quorum choices in force, in the order in which they are tried."""

    model_config = _example(
        {
            "votes": {"r1": 1, "r2": 1, "r3": 1},
            "ready": ["r1", "r2", "r3"],
            "choices": [
                {
                    "objects": "*",
                    "type": "queue",
                    "ordering": "clock",
                    "collect": True,
                    "classes": [
                        {
                            "name": "Enq/Ok",
                            "operation": "Enq",
                            "initial": 0,
                            "final": 2,
                            "initial_system": "r1",
                            "final_system": "r1 + r2",
                            "is_available": True,
                        }
                    ],
                    "constraints": [{"operation": "Deq", "event_class": "Enq/Ok"}],
                }
            ],
            "is_cut": False,
        }
    )

    votes: dict[str, int]
    ready: list[str] = Field(description="The replicas that vote now, by id")
    choices: list[ChoiceSeen]
    is_cut: bool = Field(description="Whether the cluster file has more rules than are listed")
