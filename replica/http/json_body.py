"""JSON bodies, read so that they mean one thing: in UTF-8 without a byte order mark, each member of an object given once.

RFC 8259 asks senders for all three. A parser that takes the last of two members with one name would serve another request than
a proxy or a log in front, which takes the first, has seen.
"""

import re
from typing import Any, Final

import msgspec
from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from ...api_specs.values import parsed

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class BadBody(ValueError):
    """The body is refused for what the sentence says."""


def decoded(body: bytes) -> Any:
    """What a body means. Raises BadBody."""
    if body.startswith(b"\xef\xbb\xbf"):
        raise BadBody("the body begins with a byte order mark")
    try:
        found = parsed(body)
    except UnicodeDecodeError:
        raise BadBody("the body is not UTF-8") from None
    except RecursionError:
        raise BadBody("the body is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise BadBody(f"the body is not JSON: {str(error).removeprefix('JSON is malformed: ')}") from None
    _check_members(body, found)
    return found


def _check_members(body: bytes, found: Any) -> None:
    """Raises BadBody where a member is given more than once: then `found` has fewer members than the body has colons, which
    are counted first as they are, then outside strings. To hear of each object as it is parsed would take 20 times as long."""
    colons = body.count(b":")
    if colons in (0, len(found) if isinstance(found, dict) else 0):
        return
    members = _members(found)
    if members not in (colons, _STRING.sub(b"", body).count(b":")):
        raise BadBody("a member of an object is given more than once")


def _members(found: Any) -> int:
    """How many members all objects have together."""
    count, level = 0, [found]
    while level:
        parts: list[Any] = []
        for each in level:
            count += len(each) if isinstance(each, dict) else 0
            parts += each.values() if isinstance(each, dict) else each
        level = [each for each in parts if type(each) is dict or type(each) is list]
    return count


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
        except BadBody as error:
            raise HTTPException(400, str(error)) from None


class JsonRoute(APIRoute):
    """A route of the framework whose bodies are read as here."""

    def get_route_handler(self) -> Any:
        """See fastapi.routing.APIRoute."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(_Request(request))

        return handle_strictly
