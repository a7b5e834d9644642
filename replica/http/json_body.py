"""JSON bodies, read so that they mean one thing (`quorate.api_specs.json_text`)."""

from typing import Any, Final

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from ...api_specs.json_text import BadJson, read_json


def decoded(body: bytes) -> Any:
    """What a body means. Raises BadJson, in a whole sentence."""
    try:
        return read_json(body)
    except BadJson as error:
        raise BadJson(f"the body {error}") from None


class _Request(Request):
    """`outer`, whose JSON is read as here. The body stays with `outer`, where handlers of errors look for it."""

    def __init__(self, outer: Request) -> None:
        super().__init__(outer.scope, outer.receive)
        self._outer: Final = outer

    async def body(self) -> bytes:
        """See starlette.requests.Request."""
        return await self._outer.body()

    async def json(self) -> Any:
        """See starlette.requests.Request."""
        try:
            return decoded(await self.body())
        except BadJson as error:
            raise HTTPException(400, str(error)) from None


class JsonRoute(APIRoute):
    """A route of the framework whose bodies are read as here."""

    def get_route_handler(self) -> Any:
        """See fastapi.routing.APIRoute."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_Request(request))

        return handle_strictly
