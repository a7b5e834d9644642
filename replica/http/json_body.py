"""JSON bodies, read so that they mean one thing (`quorate.api_specs.json_text`)."""

from functools import partial
from typing import Any, Final

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from ...api_specs.json_text import BadJson, TooManyParts, read_json
from ...api_specs.limits import BODY_VALUES_MAX
from .large_bodies import read_apart
from .problems import Refusal

MEMBERS_MAX: Final = 100
"""More than any body has members, those of what it holds aside. Each that nobody knows would have a sentence of its own."""


def decoded(body: bytes) -> Any:
    """What a body means. Raises BadJson, in a whole sentence; Refusal for one that holds too much."""
    try:
        return read_json(body, BODY_VALUES_MAX)
    except TooManyParts as error:
        detail = f"the body {error} (BODY_VALUES_MAX): send what it holds in several requests"
        raise Refusal("too-large", detail) from None
    except BadJson as error:
        raise BadJson(f"the body {error}") from None


class _Request(Request):
    """`outer`, whose JSON is read as here. The body stays with `outer`, where handlers of errors look for it."""

    def __init__(self, outer: Request) -> None:
        super().__init__(outer.scope, outer.receive)
        self._outer: Final = outer

    async def body(self) -> bytes:
        return await self._outer.body()

    async def json(self) -> Any:
        try:
            found = await read_apart(partial(decoded, await self.body()))
        except BadJson as error:
            raise HTTPException(400, str(error)) from None
        except Refusal as error:
            raise HTTPException(error.problem.status, str(error)) from None
        if isinstance(found, dict) and len(found) > MEMBERS_MAX:
            raise HTTPException(400, f"the body has {len(found)} members, and none has more than a few")
        return found


class JsonRoute(APIRoute):
    """A route of the framework whose bodies are read as here."""

    def get_route_handler(self) -> Any:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_Request(request))

        return handle_strictly
