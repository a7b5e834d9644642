"""The bodies of the ADT API, typed, with examples; their schemas are the OpenAPI document's.

Owns shapes only. What a value may be is checked where it becomes canonical text (`quorate.api_specs.values`).
"""

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from quorate.api_specs.limits import DEFAULTS


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


Anything = Annotated[Any, Field(description="Any JSON value")]


class EnqueueBody(_Body):
    """One item or many."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"items": [{"job": 1}, {"job": 2}]}, {"item": "a single one"}]}
    )
    item: Anything = None
    items: list[Any] | None = Field(
        default=None, description="Items in the order in which they join the queue"
    )


class DequeueBody(_Body):
    """How many to take, and how long to wait for the first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max": 10, "wait_s": 5}]})
    max: int = Field(default=1, ge=1, description=f"At most so many (limit: {DEFAULTS.batch_items_max})")
    wait_s: float = Field(
        default=0,
        ge=0,
        allow_inf_nan=False,
        description=f"Seconds to wait for an item (limit: {DEFAULTS.wait_s_max:g})",
    )


class ValueBody(_Body):
    """A value."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": {"colour": "green"}}]})
    value: Anything


class CompareAndSetBody(_Body):
    """What the value must be, and what it becomes. null stands for absent."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"old": None, "new": "leader-1"}]})
    old: Anything
    new: Anything


class Enqueued(BaseModel):
    """How many items joined the queue."""

    enqueued: int = Field(examples=[2])


class QueueItems(BaseModel):
    """Items from the front, oldest first; none when the queue is empty."""

    items: list[JsonValue] = Field(examples=[[{"job": 1}]])


class QueueState(BaseModel):
    """How many items wait, and the timestamp up to which the queue is consumed."""

    size: int = Field(examples=[3])
    horizon: str = Field(examples=["0006424e5d3c80.0000.k3v9q0a1b2c3d"])


class StoredValue(BaseModel):
    """The current value."""

    value: JsonValue = Field(examples=[{"colour": "green"}])


class Swapped(BaseModel):
    """Whether the value was `old`, and is now `new`."""

    swapped: bool


class Stored(BaseModel):
    """Whether the key was absent, and now has the value."""

    stored: bool


class DictionaryItems(BaseModel):
    """All keys and values at one moment."""

    size: int = Field(examples=[1])
    items: dict[str, JsonValue] = Field(examples=[{"ada": {"age": 36}}])


class ClusterInfo(BaseModel):
    """The cluster document that this replica holds, and its hash."""

    hash: str
    document: dict[str, JsonValue]


class Health(BaseModel):
    """That the replica is well; anything else is a problem document."""

    status: str = Field(examples=["ready"])


class WaitingTombstones(BaseModel):
    """Deleted dictionary keys, older than the retry window, that go once every replica has confirmed the deletion."""

    waiting: int = Field(description="How many this replica holds, as of its last look at each")
    oldest_s: float | None = Field(
        description="Seconds since the oldest of these deletions; null without any"
    )
    held_up_by: list[str] = Field(
        description="The replicas that did not confirm when this one last asked them; empty when none waits"
    )


class ReplicaStatus(BaseModel):
    """A replica about itself. What the store tells (`objects` to `tombstones`) is null when the replica cannot vote."""

    cluster: str
    hash: str
    replica: str
    store: str
    incarnation: str
    now_us: int = Field(description="The replica's physical clock, microseconds since 1970")
    objects: int | None
    clock: str | None = Field(description="At or above every timestamp in the store")
    file_bytes: dict[str, int] | None
    tombstones: WaitingTombstones | None
    reasons: list[str] = Field(description="Why it cannot vote now; empty when it can")


IDEMPOTENCY_KEY_PATTERN: Final = r"^[\x21-\x7e]{1,200}$"
