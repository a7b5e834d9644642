"""The live page at `/ui`: files of our own, as they lie in the folder `ui`, and the headers that keep the page to itself.

Owns what is served and how browsers may keep it. Must not know what the page does.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..http.problems import Refusal

PATH: Final = "/ui"
FOLDER: Final = Path(__file__).parent / "ui"
INDEX: Final = "index.html"
TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_DIRECTIVES: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    # No text ever becomes markup: what would make it so fails in the browser.
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
POLICY: Final = "; ".join(_DIRECTIVES)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Kept, and asked for again: after an update no browser mixes files of two versions.
    "Cache-Control": "no-cache",
}


class _Asset(NamedTuple):
    content: bytes
    media_type: str
    tag: str


def page_routes() -> list[Route]:
    """The page and its files, which are read once."""
    assets = {
        path.name: _asset(path)
        for path in sorted(FOLDER.iterdir())
        if path.is_file() and path.suffix in TYPES
    }

    async def page(request: Request) -> Response:
        return _answer(request, assets.get(request.path_params.get("name", INDEX)))

    async def moved(_: Request) -> Response:
        return Response(status_code=308, headers={**HEADERS, "Location": PATH})

    endpoints = {PATH + "/": moved, PATH: page, PATH + "/{name}": page}
    return [Route(path, each, methods=["GET"], include_in_schema=False) for path, each in endpoints.items()]


def _asset(path: Path) -> _Asset:
    content = path.read_bytes()
    return _Asset(content, TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _answer(request: Request, asset: _Asset | None) -> Response:
    if asset is None:
        raise Refusal("no-such-path", f"the page has no such file; it is at {PATH}")
    headers = {**HEADERS, "ETag": asset.tag}
    known = (each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(","))
    if any(each in (asset.tag, "*") for each in known):
        return Response(status_code=304, headers=headers)
    return Response(asset.content, headers=headers, media_type=asset.media_type)
