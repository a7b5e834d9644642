"""The endpoint at which `quorate report` asks for what the replica saw of the others. Owns the path; the rows are the probe log's."""

import asyncio
from typing import Annotated, Any, Final

import msgspec
from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from ...api_specs.messages import PROBE_LOG_PATH
from ..http.problems import Refusal
from ..http.routers import AS_DIGITS, of_application, tagged
from ..logs.probe_log import PLACE_PATTERN
from ..upkeep.probing import Probes

TIME_S_MAX: Final = 2e11


class Probe(BaseModel):
    """Whether a replica voted at a moment, as the observer saw it."""

    replica: str = Field(examples=["r2"])
    time_s: float = Field(description="Seconds since 1970 (UTC)", examples=[1793491200.0])
    up: int = Field(description="1 if it did, else 0", examples=[1])
    latency_s: float | None = Field(
        description="How long its answer took, in seconds; null without one", examples=[0.002]
    )


class NotedConfiguration(BaseModel):
    """A configuration that the observer was in."""

    time_s: float = Field(
        description="When it was noted, in seconds since 1970 (UTC): with a new file, a new process, or a change that had ended",
        examples=[1793491200.0],
    )
    document: dict[str, Any] = Field(
        description="The cluster file in force, as `GET /v1/cluster` shows it",
        examples=[{"name": "shop", "replicas": [{"id": "r1", "url": "http://10.0.0.1:8000"}]}],
    )


class ProbeRows(BaseModel):
    """A page of a probe log, in the order in which it was written."""

    observer: str = Field(description="The replica that saw it", examples=["r1"])
    every_s: float = Field(description="Seconds between two looks, as it is served now", examples=[10.0])
    rows: list[Probe] = Field(
        examples=[[{"replica": "r2", "time_s": 1793491200.0, "up": 1, "latency_s": 0.002}]]
    )
    configurations: list[NotedConfiguration] = Field(
        default_factory=list,
        description="With the first page of each file of the log: the configurations that the observer was in while it was written",
        examples=[
            [
                {
                    "time_s": 1793491200.0,
                    "document": {"name": "shop", "replicas": [{"id": "r1", "url": "http://10.0.0.1:8000"}]},
                }
            ]
        ],
    )
    next: str = Field(
        description="`after` of the next page; empty: there is none", examples=["20261101T000000Z.262080"]
    )


Time = Annotated[float, Query(ge=0, le=TIME_S_MAX, allow_inf_nan=False), AS_DIGITS]

probes_router: Final = tagged("service")
"""The endpoint."""


@probes_router.get(PROBE_LOG_PATH, response_model=ProbeRows)
async def get_probes(
    probes: Annotated[Probes | None, of_application("probes")],
    from_s: Annotated[Time, Query(description="Not before that time", examples=[1793491200.0])] = 0.0,
    to_s: Annotated[Time, Query(description="Before that time", examples=[1793577600.0])] = TIME_S_MAX,
    after: Annotated[
        str,
        Query(
            pattern=f"^({PLACE_PATTERN})?$",
            description="`next` of the page before",
            examples=["20261101T000000Z.262080"],
        ),
    ] = "",
) -> Response:
    """What this replica saw of itself and of the others at each step, where it is served with `--probe-log`."""
    if probes is None:
        raise Refusal("not-found", "this replica keeps no probe log: serve it with --probe-log FOLDER")
    log = probes.log
    try:
        page = await asyncio.to_thread(log.page, after, from_s, to_s)
    except OSError as error:
        raise Refusal(
            "storage-failed", f"the probe log cannot be read: {error.strerror}", definite=True
        ) from None
    told = {"observer": log.observer, "every_s": probes.every_s, **page._asdict()}
    return Response(msgspec.json.encode(told), media_type="application/json")
