"""JSON bodies, read so that they mean one thing: in UTF-8 without a byte order mark, each member of an object given once.

RFC 8259 asks senders for all three. Python's parser guesses other encodings and takes the last of two members with one name; a
proxy or a log in front, which takes the first, would have seen another request than the one that was served.
"""

import json
from typing import Any, Final

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from ...api_specs.json_members import NotOneMeaning, members

_decode: Final = json.JSONDecoder(object_pairs_hook=members).decode


def decoded(body: bytes) -> Any:
    """What a body means. Raises NotOneMeaning, another ValueError for what is no JSON, RecursionError."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise NotOneMeaning("the body is not UTF-8") from None
    if text.startswith("\ufeff"):
        raise NotOneMeaning("the body begins with a byte order mark")
    return _decode(text)


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
        except NotOneMeaning as error:
            raise HTTPException(400, str(error)) from None


class JsonRoute(APIRoute):
    """A route of the framework whose bodies are read as here."""

    def get_route_handler(self) -> Any:
        """See fastapi.routing.APIRoute."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_Request(request))

        return handle_strictly
