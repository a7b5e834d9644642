"""Endpoints of administrators (scope admin): which tokens are valid here, and to read their list again.

Owns these paths. What they tell is what an operator needs who rotates tokens; no digest is among it.
"""

from typing import Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from quorate.replica.access import Access
from quorate.replica.audit import audit
from quorate.replica.gate import CALLER

TOKENS_PATH: Final = "/v1/admin/tokens"


class KnownToken(BaseModel):
    """A token that is accepted. Both are empty for one without."""

    tag: str
    name: str
    scopes: list[str]
    """What it allows, with all that its scopes include."""
    rate: float
    """Requests a second."""


class KnownTokens(BaseModel):
    """All tokens that the replica accepts; `asked` is false where it asks for none."""

    asked: bool = Field(examples=[True])
    tokens: list[KnownToken] = Field(
        examples=[[{"tag": "k3v9", "name": "shop", "scopes": ["read", "write"], "rate": 1000}]]
    )


def add_admin_endpoints(router: APIRouter, access: Access) -> None:
    """Add the endpoints."""

    @router.get(TOKENS_PATH, response_model=KnownTokens, operation_id="getTokens", tags=["administration"])
    async def tokens() -> dict[str, Any]:
        """The tokens that this replica accepts now, without their secrets."""
        return _told(access)

    @router.post(
        TOKENS_PATH + "/read",
        response_model=KnownTokens,
        operation_id="reloadTokens",
        tags=["administration"],
    )
    async def read_tokens(request: Request) -> dict[str, Any]:
        """Read the list of tokens again now, as SIGHUP does. One that cannot be used changes nothing: the log says why."""
        audit("tokens-asked", by=request.scope[CALLER].shown)
        access.look(wanted=True)
        return _told(access)


def _told(access: Access) -> dict[str, Any]:
    tokens = [
        {"tag": each.tag, "name": each.name, "scopes": sorted(each.scopes), "rate": each.rate_max}
        for each in access.known.credentials
    ]
    return {"asked": not access.is_open, "tokens": tokens}
