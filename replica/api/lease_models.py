"""The bodies of the ADT API that are about leases, typed, with examples; see `quorate.replica.api.object_models`."""

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ...adts.log import DeadReason
from ...api_specs.checking import ID_CHARS_MAX, LEASE_TOKEN_CHARS_MAX
from ...api_specs.limits import DELAY_S_MAX, DELIVERIES_MAX, LEASE_S_MAX, SETTLE_TOKENS_MAX
from ...client_sdk.api.lease_calls import LEASE_S
from .object_models import Body, ItemsMax, WaitS

_TOKEN: Final = "1/0006424e5d3c80.0000.k3v9q0a1b2c3d"
_ID: Final = "0006424e5d3c80.0000.k3v9q0a1b2c3d"
_LEASE: Final[dict[str, JsonValue]] = {
    "item": {"job": 1},
    "id": _ID,
    "token": _TOKEN,
    "deliveries": 1,
    "redelivered": False,
    "deadline": 1795203030.5,
}
_LETTER: Final[dict[str, JsonValue]] = {"item": {"job": 1}, "id": _ID, "reason": "rejected", "deliveries": 3}
_TEXT: Final = r"^[\x20-\x7e]{1,%d}$"

LeaseS = Annotated[
    float,
    Field(
        gt=0,
        le=LEASE_S_MAX,
        allow_inf_nan=False,
        description=f"How many seconds the lease lasts from now, at most {LEASE_S_MAX:g}",
    ),
]


class AcquireBody(Body):
    """How many to be delivered, for how long, and how long to wait for the first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max": 10, "lease_s": 60, "wait_s": 5}]})
    max: ItemsMax = 1
    lease_s: LeaseS = LEASE_S
    wait_s: WaitS = 0
    max_deliveries: int | None = Field(
        default=None,
        ge=1,
        le=DELIVERIES_MAX,
        description="What was delivered so often becomes a dead letter instead; left out: no maximum",
    )


class TokensBody(Body):
    """Which leases."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tokens": [_TOKEN]}]})
    tokens: list[Annotated[str, Field(pattern=_TEXT % LEASE_TOKEN_CHARS_MAX)]] = Field(
        min_length=1,
        max_length=SETTLE_TOKENS_MAX,
        description="Which leases: the tokens that acquire gave",
        examples=[[_TOKEN]],
    )


class ReleaseBody(TokensBody):
    """Which leases to give back, and when the items are to be delivered again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tokens": [_TOKEN], "delay_s": 10}]})
    delay_s: float = Field(
        default=0, ge=0, le=DELAY_S_MAX, allow_inf_nan=False, description="After so many seconds"
    )


class RejectBody(TokensBody):
    """Which leases end so that the items are not delivered again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tokens": [_TOKEN], "dead_letter": True}]})
    dead_letter: bool = Field(
        default=True, description="Whether they become dead letters; false: they are gone"
    )


class RenewBody(TokensBody):
    """Which leases last longer."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"tokens": [_TOKEN], "lease_s": 60}]})
    lease_s: LeaseS = LEASE_S


class DeadLettersBody(Body):
    """Which dead letters, by the ids of their items; left out: all."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": [_ID]}]})
    ids: list[Annotated[str, Field(pattern=_TEXT % ID_CHARS_MAX)]] | None = Field(
        default=None, min_length=1, max_length=1000
    )


class DelayedBody(Body):
    """Which delayed items; left out: all."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"due_after_s": 86400}]})
    due_after_s: float = Field(
        default=0,
        ge=0,
        le=DELAY_S_MAX,
        allow_inf_nan=False,
        description="Those that are due in so many seconds or later",
    )


class LeasedItem(BaseModel):
    """An item that is delivered: nobody else is given it before the deadline has certainly passed."""

    item: JsonValue = Field(examples=[{"job": 1}])
    id: str = Field(description="Names the item, however often it is delivered", examples=[_ID])
    token: str = Field(description="Names this lease", examples=[_TOKEN])
    deliveries: int = Field(description="How often it was delivered, this time included", examples=[1])
    redelivered: bool = Field(description="Whether it was delivered before", examples=[False])
    deadline: float = Field(description="Seconds since 1970", examples=[1795203030.5])


class LeasedItems(BaseModel):
    """What is delivered: first items that were delivered before, then from the front."""

    leases: list[LeasedItem] = Field(examples=[[_LEASE]])


class SettledLeases(BaseModel):
    """Which leases were not the caller's any more, so that nothing was done; all others took effect."""

    lost: list[str] = Field(examples=[[]])


class RenewedLeases(SettledLeases):
    """Which leases were not the caller's any more, and how long the others last now."""

    deadline: float = Field(description="Seconds since 1970", examples=[1795203060.5])


class LeaseState(BaseModel):
    """Of the items that an acquire has met: how many are delivered, wait to be (again), and are dead letters."""

    held: int = Field(examples=[2])
    waiting: int = Field(examples=[1])
    dead: int = Field(examples=[0])


class DeadLetterItem(BaseModel):
    """An item that is not delivered any more."""

    item: JsonValue = Field(examples=[{"job": 1}])
    id: str = Field(examples=[_ID])
    reason: DeadReason = Field(examples=["rejected"])
    deliveries: int = Field(description="How often it was delivered", examples=[3])


class DeadLetterItems(BaseModel):
    """Dead letters, oldest first."""

    letters: list[DeadLetterItem] = Field(examples=[[_LETTER]])


class Purged(BaseModel):
    """How many items that were."""

    purged: int = Field(examples=[1])


class Cleared(BaseModel):
    """How many dead letters that were."""

    cleared: int = Field(examples=[1])
