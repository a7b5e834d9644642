"""What the live page asks its replica: the cluster at a glance, an object's trace, the quorum choices. It reads alone.

Owns paths and checks of input. What the replicas answer is the cluster scan's business, what it means `overview`'s.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Final

from fastapi import Query
from pydantic import BaseModel
from starlette.responses import Response

from ...adts.keys import as_kept, beginning_kept
from ...adts.types.catalogue import adt_of, is_object_name
from ...api_specs.cluster import ClusterDocument
from ...api_specs.messages import Scan
from ..http.large_bodies import turn
from ..http.problems import Refusal
from ..http.routers import AS_DIGITS, of_application, tagged
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


AskedMember = Annotated[Member, of_application("member")]
Scanning = Annotated[ClusterScan | None, of_application("scan")]

_Make = Callable[[ClusterScan, Scan], Awaitable[BaseModel]]

live_router: Final = tagged("service")
"""What the live page asks."""


@live_router.get("/v1/overview", response_model=models.Overview)
async def get_overview(
    member: AskedMember,
    scan: Scanning,
    after: After = "",
    prefix: Prefix = "",
    limit: Annotated[
        int, Query(ge=1, le=OBJECTS_MAX, description="Objects in the answer", examples=[20]), AS_DIGITS
    ] = OBJECTS,
) -> Response:
    """The cluster as this replica sees it now: who is up, and horizon, fence and entries of each object."""
    begins, behind = beginning_kept(prefix), as_kept(after)
    _check_text(behind, begins)
    question = Scan(begins, behind, limit, newest=COUNTED_MAX, payload=False)
    return await _answered(scan, question, partial(_overview, member, prefix), prefix)


@live_router.get("/v1/trace", response_model=models.ObjectTrace)
async def get_trace(
    member: AskedMember,
    scan: Scanning,
    object: Annotated[
        str,
        Query(
            max_length=NAME_CHARS_MAX,
            description="As `queue/jobs`, `register/leader`, `dictionary/users/ann`",
            examples=["queue/jobs"],
        ),
    ],
    entries: Annotated[
        int,
        Query(ge=1, le=ENTRIES_MAX, description="The newest entries of each replica", examples=[50]),
        AS_DIGITS,
    ] = ENTRIES,
) -> Response:
    """The logs of all replicas side by side, with leases and dead letters; what a replica does not hold is absent there."""
    kept = as_kept(object)
    if not is_object_name(kept):
        raise Refusal("bad-name", "object: name one as queue/NAME, register/NAME or dictionary/NAME/KEY")
    if adt_of(object) not in member.document.specifications:
        raise Refusal("not-found", f"object: the cluster has no data type {adt_of(object)!r}")
    # Of all names that start with this one, it is the first.
    question = Scan(kept, limit=1, newest=entries)
    return await _answered(scan, question, partial(_trace, member, entries))


@live_router.get("/v1/choices", response_model=models.Choices)
async def get_choices(member: AskedMember, scan: Scanning) -> Response:
    """The quorum choices in force, their constraints, and which operations have their quorums now."""
    return await _answered(scan, Scan("", limit=0), partial(_choices, member.document))


def _check_text(*texts: str) -> None:
    for text in texts:
        if not (text.isascii() and text.isprintable()):
            raise Refusal("bad-name", "after and prefix: names have printable ASCII characters only")


async def _overview(member: Member, prefix: str, scan: ClusterScan, question: Scan) -> BaseModel:
    seen, told = await asyncio.gather(scan.look(question), scan.told())
    absent = await scan.absent(seen)
    document = member.document
    # Members may have changed since they were asked.
    seen = {id: each for id, each in seen.items() if id in document.votes}
    return overview_of(document, member.id, member.wall_us(), seen, COUNTED_MAX, told, absent, prefix)


async def _trace(member: Member, entries: int, scan: ClusterScan, question: Scan) -> BaseModel:
    seen = await scan.look(question)
    return trace_of(member.document, question.prefix, seen, entries, member.wall_us())


async def _choices(document: ClusterDocument, scan: ClusterScan, question: Scan) -> BaseModel:
    return choices_of(document, await scan.look(question))


async def _answered(scan: ClusterScan | None, question: Scan, make: _Make, prefix: str = "") -> Response:
    """The text, too, is made once for all who ask the same, of the objects with a prefix: of a hundred it takes two milliseconds."""
    if scan is None:
        raise Refusal("unavailable", "the replica is starting", definite=True)

    async def text() -> str:
        return (await make(scan, question)).model_dump_json()

    return Response(
        await scan.once((question, prefix), text, turn()),
        media_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
