"""What the live page asks its replica: the cluster at a glance, an object's trace, the quorum choices. It reads alone.

Owns paths and checks of input. What the replicas answer is the cluster scan's business, what it means `overview`'s.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query
from pydantic import BaseModel
from starlette.responses import Response

from ...adts.types.catalogue import is_object_name
from ...api_specs.messages import Scan
from ..http.problems import Refusal
from ..http.routers import tagged
from ..service.member import Member
from . import models
from .cluster_scan import ClusterScan
from .overview import choices_of, overview_of, trace_of

OBJECTS_MAX: Final = 100
OBJECTS: Final = 20
ENTRIES_MAX: Final = 200
ENTRIES: Final = 50
COUNTED_MAX: Final = 100
"""Entries of each object that the overview looks at."""
NAME_CHARS_MAX: Final = 500

After = Annotated[
    str,
    Query(
        max_length=NAME_CHARS_MAX,
        description="List objects whose names come after this one",
        examples=["queue/jobs"],
    ),
]
Prefix = Annotated[
    str,
    Query(
        max_length=NAME_CHARS_MAX, description="List objects whose names start with this", examples=["queue/"]
    ),
]


def live_router(member: Member, scan: Callable[[], ClusterScan | None]) -> APIRouter:
    """What the live page asks; `scan` gives the one of the running application."""
    router, document = tagged("service"), member.document

    def opened() -> ClusterScan:
        if (found := scan()) is None:
            raise Refusal("unavailable", "the replica is starting", definite=True)
        return found

    @router.get("/v1/overview", response_model=models.Overview)
    async def get_overview(
        after: After = "",
        prefix: Prefix = "",
        limit: Annotated[
            int, Query(ge=1, le=OBJECTS_MAX, description="Objects in the answer", examples=[20])
        ] = OBJECTS,
    ) -> Response:
        """The cluster as this replica sees it now: who is up, and horizon, fence and entries of each object."""
        _check_text(after, prefix)
        scan = Scan(prefix, after, limit, newest=COUNTED_MAX, payload=False)
        seen, catch_ups = await asyncio.gather(opened().look(scan), opened().catch_ups())
        return _fresh(overview_of(document, member.id, member.wall_us(), seen, COUNTED_MAX, catch_ups))

    @router.get("/v1/trace", response_model=models.ObjectTrace)
    async def get_trace(
        object: Annotated[
            str,
            Query(
                max_length=NAME_CHARS_MAX,
                description="As `queue/jobs`, `register/leader`, `dictionary/users/ann`",
                examples=["queue/jobs"],
            ),
        ],
        entries: Annotated[
            int, Query(ge=1, le=ENTRIES_MAX, description="The newest entries of each replica", examples=[50])
        ] = ENTRIES,
    ) -> Response:
        """The logs of all replicas side by side, with leases and dead letters; what a replica does not hold is absent there."""
        if not is_object_name(object):
            raise Refusal("bad-name", "object: name one as queue/NAME, register/NAME or dictionary/NAME/KEY")
        # Of all names that start with this one, it is the first.
        seen = await opened().look(Scan(object, limit=1, newest=entries))
        return _fresh(trace_of(document, object, seen, entries, member.wall_us()))

    @router.get("/v1/choices", response_model=models.Choices)
    async def get_choices() -> Response:
        """The quorum choices in force, their constraints, and which operations have their quorums now."""
        return _fresh(choices_of(document, await opened().look(Scan("", limit=0))))

    return router


def _check_text(*texts: str) -> None:
    for text in texts:
        if not (text.isascii() and text.isprintable()):
            raise Refusal("bad-name", "after and prefix: names have printable ASCII characters only")


def _fresh(answer: BaseModel) -> Response:
    return Response(
        answer.model_dump_json(), media_type="application/json", headers={"Cache-Control": "no-store"}
    )
