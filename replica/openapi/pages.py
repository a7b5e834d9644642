"""The interactive API pages at `/docs`: Swagger UI over the replica's own OpenAPI document, without any outside asset.

Owns which files are served, and that a browser takes nothing from anywhere else. `swagger_ui` holds files of the npm package
swagger-ui-dist as they came, with its licence.
"""

from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

PATH: Final = "/docs"
SWAGGER_UI_VERSION: Final = "5.35.0"
_HERE: Final = Path(__file__).parent
_ASSETS: Final = {
    "swagger-ui.css": (_HERE / "swagger_ui" / "swagger-ui.css", "text/css"),
    "swagger-ui-bundle.js": (_HERE / "swagger_ui" / "swagger-ui-bundle.js", "text/javascript"),
    "swagger-ui-bundle.js.LICENSE.txt": (
        _HERE / "swagger_ui" / "swagger-ui-bundle.js.LICENSE.txt",
        "text/plain",
    ),
    "start.js": (_HERE / "api_pages.js", "text/javascript"),
}
_DAY_S: Final = 24 * 60 * 60
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Swagger UI sets styles of elements, and draws its icons from data URLs.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
}


def page_routes() -> list[Route]:
    """The page, and each file that it loads; a file's path changes with the version of Swagger UI."""
    page = (_HERE / "api_pages.html").read_text().replace("{version}", SWAGGER_UI_VERSION)

    async def show(_: Request) -> Response:
        return Response(page, media_type="text/html", headers=_HEADERS)

    files = [_file_route(name, path, media_type) for name, (path, media_type) in _ASSETS.items()]
    return [Route(PATH, show, include_in_schema=False), *files]


def _file_route(name: str, path: Path, media_type: str) -> Route:
    headers = {**_HEADERS, "Cache-Control": f"max-age={_DAY_S}"}

    async def send(_: Request) -> Response:
        return FileResponse(path, media_type=media_type, headers=headers)

    return Route(f"{PATH}/{SWAGGER_UI_VERSION}/{name}", send, include_in_schema=False)
