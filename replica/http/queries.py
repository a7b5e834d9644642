"""What a query may say: a parameter that is misspelt, or meant for the body, is refused and not passed over.

A mistaken `?ids=...` would discard all dead letters, as if none had been named. Must not know any endpoint.
"""

from collections import Counter

from fastapi.routing import APIRoute
from starlette.requests import Request

from .problems import Refusal


async def known_query(request: Request) -> None:
    """Refuse a query with a parameter that the endpoint does not have, or with one twice. A dependency of endpoints."""
    if not request.url.query:
        return
    route: APIRoute = request.scope["route"]
    known = [field.alias for field in route.dependant.query_params]
    for name, times in Counter(key for key, _ in request.query_params.multi_items()).items():
        if name not in known:
            rest = f"here it may have {', '.join(known)}; all else goes into the body"
            raise Refusal("malformed", f"the query has no parameter {name[:64]!r}: {rest}")
        if times > 1:
            raise Refusal("malformed", f"{name}: given {times} times, which of them counts cannot be told")
