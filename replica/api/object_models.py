"""The bodies of the ADT API, typed, with examples; their schemas are the OpenAPI document's.

Owns shapes only. What a value may be is checked where it becomes canonical text (`quorate.api_specs.values`).
"""

from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, JsonValue, Tag

from ...api_specs.limits import DEFAULTS, DELAY_S_MAX


class Body(BaseModel):
    """What a request may hold, and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)


Anything = Annotated[Any, Field(description="Any JSON value")]


class Timed(Body):
    """When items may be acquired; a dequeue takes no notice."""

    delay_s: float = Field(
        default=0,
        ge=0,
        le=DELAY_S_MAX,
        allow_inf_nan=False,
        description="After so many seconds at the earliest",
    )
    expires_s: float | None = Field(
        default=None,
        gt=0,
        le=DELAY_S_MAX,
        allow_inf_nan=False,
        description="Not after so many seconds; left out: they do not expire",
    )


class OneItem(Timed):
    """One item."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"item": {"job": 1}}]})
    item: Anything


class SeveralItems(Timed):
    """Items in the order in which they join the queue."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"items": [{"job": 1}, {"job": 2}]}]})
    items: list[Any] = Field(
        min_length=1, description=f"At least one, at most so many: {DEFAULTS.batch_items_max}"
    )


ONE: Final = "(one)"
SEVERAL: Final = "(several)"
"""Which of two forms a body has: part of the place of an error, and no name within the body."""


def _which(body: Any) -> str | None:
    tags = {"item": ONE, "items": SEVERAL}
    given = tags.keys() & set(body) if isinstance(body, dict) else set()
    return tags[given.pop()] if len(given) == 1 else None


EnqueueBody = Annotated[
    Annotated[OneItem, Tag(ONE)] | Annotated[SeveralItems, Tag(SEVERAL)],
    Discriminator(
        _which, custom_error_type="one_or_several", custom_error_message="give either item or items"
    ),
]
"""One item or several."""


ItemsMax = Annotated[int, Field(ge=1, description=f"At most so many (limit: {DEFAULTS.batch_items_max})")]
WaitS = Annotated[
    float,
    Field(
        ge=0, allow_inf_nan=False, description=f"Seconds to wait for an item (limit: {DEFAULTS.wait_s_max:g})"
    ),
]


class DequeueBody(Body):
    """How many to take, and how long to wait for the first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max": 10, "wait_s": 5}]})
    max: ItemsMax = 1
    wait_s: WaitS = 0


class ValueBody(Body):
    """A value."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"value": {"colour": "green"}}]})
    value: Anything


class CompareAndSetBody(Body):
    """What the value must be, and what it becomes. null stands for absent; numbers are compared by amount (1 is 1.0)."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"old": "leader-1", "new": "leader-2"}]})
    old: Anything
    new: Anything


def _not_null(old: Any) -> Any:
    if old is None:
        raise ValueError("null stands for an absent key as well: use DELETE")
    return old


class CompareAndDeleteBody(Body):
    """What the value must be for its key to be removed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"old": "leader-1"}]})
    old: Annotated[Any, Field(description="Any JSON value but null"), AfterValidator(_not_null)]


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

    swapped: bool = Field(examples=[True])


class Deleted(BaseModel):
    """Whether the key had the value `old`, and is now absent."""

    deleted: bool = Field(examples=[True])


class Stored(BaseModel):
    """Whether the key was absent, and now has the value."""

    stored: bool = Field(examples=[True])


class DictionaryItems(BaseModel):
    """Keys and values at one moment."""

    size: int = Field(description="How many these are", examples=[1])
    items: dict[str, JsonValue] = Field(examples=[{"ada": {"age": 36}}])
    next: str = Field(
        "",
        description="The key after which the next page begins; left out: there is no next page",
        examples=["ada"],
    )


class ProblemType(BaseModel):
    """What holds for all problems of a type."""

    type: str = Field(examples=["/problems/outcome-unknown"])
    status: int = Field(examples=[504])
    title: str = Field(examples=["The operation may or may not have taken effect"])
    advice: str = Field(description="What the caller should do", examples=["Look at the object."])
    definite: bool | None = Field(
        description="Whether the operation certainly had no effect; null where each problem says so itself",
        examples=[False],
    )


class Health(BaseModel):
    """That the replica is well; anything else is a problem document."""

    status: str = Field(examples=["ready"])


class QuorumHealth(BaseModel):
    """That every event class has its quorums; a problem document names those that lack one."""

    status: str = Field(examples=["held"])
    voting: int = Field(description="How many replicas vote, this one included", examples=[3])
    age_s: float = Field(description="Seconds since the first of the others was asked last", examples=[4.2])


class WaitingTombstones(BaseModel):
    """What came to nothing before the retry window: deleted keys, and objects known only by failed operations with an idempotency key. It goes once every replica has confirmed that."""

    waiting: int = Field(description="How many this replica holds, as of its last look at each", examples=[1])
    oldest_s: float | None = Field(
        description="Seconds since the oldest of these deletions; null without any", examples=[4.5]
    )
    ahead_s: float = Field(
        description="How far the newest is ahead of time, as after clocks were ahead: it is kept at least until time has come there. 0 where none is",
        examples=[0.0],
    )
    held_up_by: list[str] = Field(
        description="The replicas that did not confirm when this one last asked them, or had no room for one of these; empty when none waits",
        examples=[["r3"]],
    )


class CatchUpStatus(BaseModel):
    """How far a replica is behind another one."""

    lag: int | None = Field(
        description="Changes of the other one's logs that it has not looked at yet, or may not install yet",
        examples=[0],
    )
    age_s: float | None = Field(
        description="How long ago it had looked at all that the other one held", examples=[0.8]
    )
    entries: int = Field(description="Entries that it had missed, and got from the other one", examples=[0])


class SpokenProtocols(BaseModel):
    """The versions of the replica protocol that a replica speaks."""

    oldest: int = Field(examples=[1])
    newest: int = Field(examples=[2])


class ReplicaStatus(BaseModel):
    """A replica about itself. What the store tells (`objects` to `tombstones`) is null when the replica cannot vote."""

    cluster: str = Field(description="The name of the cluster", examples=["quorate"])
    hash: str = Field(description="Of the cluster file", examples=["3f8a0c52b1d94e67"])
    epoch: int = Field(
        description="Which configuration of the cluster it is in, counted from 0", examples=[0]
    )
    replica: str = Field(description="Its id in the cluster file", examples=["r1"])
    release: str = Field(description="Which release of Quorate runs there", examples=["0.1.0"])
    protocol: SpokenProtocols = Field(examples=[{"oldest": 1, "newest": 2}])
    url: str = Field(description="Where others reach it", examples=["http://127.0.0.1:8001"])
    store: str = Field(description="The identity of its store", examples=["d41c7b0a9e6f3852"])
    incarnation: str = Field(description="Another one after each start", examples=["9b2e61f7c0a35d84"])
    now_us: int = Field(
        description="The replica's physical clock, microseconds since 1970", examples=[1795203000000000]
    )
    objects: int | None = Field(description="How many objects it stores", examples=[12])
    clock: str | None = Field(
        description="At or above every timestamp in the store",
        examples=["0006424e5d3c80.0000.k3v9q0a1b2c3d"],
    )
    file_bytes: dict[str, int] | None = Field(
        description="The sizes of its files", examples=[{"database": 4096, "log": 32768}]
    )
    capacity_used: dict[str, float] | None = Field(
        description="The share of what it may take in that is used, by the option of `quorate serve` that sets the bound",
        examples=[
            {"objects-max": 0.01, "log-entries-max": 0.2, "disk-bytes-max": 0.1, "disk-free-min": 0.005}
        ],
    )
    tombstones: WaitingTombstones | None = Field(
        examples=[{"waiting": 1, "oldest_s": 4.5, "ahead_s": 0.0, "held_up_by": ["r3"]}]
    )
    catch_up: dict[str, CatchUpStatus] = Field(
        description="By other replica", examples=[{"r2": {"lag": 0, "age_s": 0.8, "entries": 0}}]
    )
    outboxes: dict[str, float] = Field(
        description="By queue, for how many seconds something in its outbox here could not be relayed; of the 100 queues that waited longest",
        examples=[{"queue/mail": 0.02}],
    )
    fallbacks: dict[str, bool] = Field(
        description="By objects, whether the fallback of their standing rule is in force",
        examples=[{"queue/jobs": False}],
    )
    switch_waits: str = Field(
        description="Why no standing rule is switched by this replica that is due, or would be; empty where nothing speaks against it",
        examples=[""],
    )
    without_code: dict[str, str] = Field(
        description="Types of your own whose calls cannot be run here over HTTP, and why", examples=[{}]
    )
    reasons: list[str] = Field(description="Why it cannot vote now; empty when it can", examples=[[]])
