"""Routers of the framework as all endpoints use them: one for each tag, with operations named after their functions.

Routers that are the same for every cluster are made once in a process; what their endpoints need of the application that was asked they
get by `of_application`.

A query or a body of an operation on objects is read strictly: a mistaken `?ids=...` would purge all dead letters, as if none had
been named. Must not know any endpoint.
"""

from collections import Counter
from typing import Any, Final, Literal

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError
from starlette.requests import Request

from .json_body import JsonRoute
from .problems import Refusal

OWN_TAG: Final = "types of your own"
PROTOCOL_TAG: Final = "replica protocol"


def tagged(tag: str, **given: Any) -> APIRouter:
    """A router whose operations have this tag; the table of `quorate.replica.openapi` has the errors that they answer."""
    errors: dict[int | str, dict[str, Any]] = {"default": {"description": "A problem"}}
    return APIRouter(tags=[tag], responses=errors, generate_unique_id_function=_operation_id, **given)


def object_router(kind: str) -> APIRouter:
    """The router of the operations on queues, registers or dictionaries, all below the path of one object."""
    return tagged(
        kind, prefix=f"/v1/{kind}/{{name}}", route_class=JsonRoute, dependencies=[Depends(_known_query)]
    )


Part = Literal["member", "operations", "types", "metrics", "access", "copies", "scan", "probes"]
"""What an application keeps in its `state` for endpoints."""


def of_application(name: Part) -> Any:
    """A dependency of endpoints: this part of the application that was asked."""

    async def find(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(find)


def _operation_id(route: APIRoute) -> str:
    """As generated clients call it: `get_queue` is `getQueue`."""
    first, *others = route.name.split("_")
    return first + "".join(map(str.title, others))


def _as_digits(given: Any) -> Any:
    """Refuse what Python, and nobody else, takes for a number: `1_0` is 10 there, and so is ` 10 `."""
    if isinstance(given, str) and ("_" in given or given != given.strip()):
        raise PydanticCustomError("number_form", "Input should be a number without underscores and spaces")
    return given


AS_DIGITS: Final = BeforeValidator(_as_digits)
"""For each number of a query."""


async def _known_query(request: Request) -> None:
    """Refuse a query with a parameter that the endpoint does not have, or with one twice. A dependency of endpoints."""
    if not request.url.query:
        return
    route: APIRoute = request.scope["route"]
    parts = (route.dependant, *route.dependant.dependencies)
    known = [field.alias for part in parts for field in part.query_params]
    for name, times in Counter(key for key, _ in request.query_params.multi_items()).items():
        if name not in known:
            rest = f"here it may have {', '.join(known)}; all else goes into the body"
            raise Refusal("malformed", f"the query has no parameter {name[:64]!r}: {rest}")
        if times > 1:
            raise Refusal("malformed", f"{name}: given {times} times, which of them counts cannot be told")
