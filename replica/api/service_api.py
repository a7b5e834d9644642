"""What a replica says of itself: the cluster file, its health, its status, and what the types of problems mean."""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from fastapi import Path
from starlette.responses import Response

from ...api_specs.problems import KINDS, TYPE_PREFIX
from ..http.problems import Refusal
from ..http.routers import of_application, tagged
from ..service.member import Member
from ..service.own_types import OwnTypes
from ..service.quorums_held import held_now
from ..service.status import status_of
from . import object_models as models

ProblemName = Annotated[
    str, Path(description=f"What stands behind {TYPE_PREFIX} in a type", examples=["outcome-unknown"])
]
AskedMember = Annotated[Member, of_application("member")]
"""The replica that was asked."""

service_router: Final = tagged("service")
"""The endpoints."""


@service_router.get("/v1/cluster")
async def get_cluster(member: AskedMember) -> Response:
    """The cluster file that this replica holds."""
    document = member.document
    cluster = msgspec.json.encode({"hash": document.hash, "document": document})
    return Response(cluster, media_type="application/json")


@service_router.get("/v1/health/live", response_model=models.Health)
async def get_liveness() -> dict[str, str]:
    """Answers while the process runs."""
    return {"status": "live"}


@service_router.get("/v1/health/ready", response_model=models.Health)
async def get_readiness(member: AskedMember) -> dict[str, str]:
    """Answers 200 when the replica can vote, else 503 with the reasons."""
    if (trouble := member.trouble) is not None:
        raise Refusal(trouble, "; ".join(member.why_not_ready()))
    return {"status": "ready"}


@service_router.get("/v1/health/quorums", response_model=models.QuorumHealth)
async def get_quorum_health(member: AskedMember) -> dict[str, Any]:
    """Answers 200 while the replicas that this one sees voting hold all quorums of every event class, else 503 naming those
    that lack one. What is seen is at most 15 seconds old."""
    held = held_now(member)
    if lacking := held.lacking():
        raise Refusal(
            "unavailable",
            f"quorums are missing for {lacking}. {len(held.voting)} of {len(member.document.replicas)} replicas vote, as this "
            f"one saw them up to {held.age_s:.1f} s ago",
            definite=True,
        )
    return {"status": "held", "voting": len(held.voting), "age_s": round(held.age_s, 1)}


_HEALTH: Final[dict[str, Callable[..., Any]]] = {
    "live": get_liveness,
    "ready": get_readiness,
    "quorums": get_quorum_health,
}
for _path, _endpoint in _HEALTH.items():  # as some load balancers ask
    service_router.add_api_route(f"/v1/health/{_path}", _endpoint, methods=["HEAD"], include_in_schema=False)


@service_router.get("/v1/status", response_model=models.ReplicaStatus)
async def get_status(
    member: AskedMember, types: Annotated[OwnTypes, of_application("types")]
) -> dict[str, Any]:
    """The replica about itself."""
    return await status_of(member, types)


@service_router.get(TYPE_PREFIX + "{name}", response_model=models.ProblemType)
async def get_problem_type(name: ProblemName) -> dict[str, Any]:
    """What a problem's `type` means."""
    if name not in KINDS:
        raise Refusal("not-found", "there is no such type of problem")
    return {"type": TYPE_PREFIX + name, **KINDS[name]._asdict()}
