"""The live page of a playground: what replicas serve, passed on from one that runs, and endpoints that kill and start replicas.

Owns the way from a button to a process. It belongs to the process that started the replicas: no replica has such endpoints. It
listens on this machine alone, answers no foreign page, and kills for nobody who does not know its key.
"""

import asyncio
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ...replica.access.authorization import ADMIN_PREFIX
from ...replica.http.host_header import AllowedHosts
from ...replica.http.problems import ProblemResponse, Refusal
from ...replica.live import page
from ..cluster.local_cluster import LocalCluster
from ..failure import Failure

KEY_HEADER: Final = "Quorate-Playground-Key"
"""A header of its own: a browser asks before it lets a page of another origin send one, and is not told yes."""
SCRIPT: Final = Path(__file__).parent / "ui" / "playground.js"
ANSWER_S_MAX: Final = 30.0
"""Above the deadline that a replica gives an operation."""
BODY_BYTES_MAX: Final = 2 * 1024 * 1024
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_PASSED_ON: Final = (b"accept", b"authorization", b"content-type", b"idempotency-key")
_PASSED_BACK: Final = ("content-type", "cache-control", "quorate-consistency", "retry-after")
_HEAD_END: Final = b"</head>"
_WITH_SCRIPT: Final = b'<script type="module" src="/playground/playground.js"></script>\n</head>'


def playground_app(cluster: LocalCluster, key: str) -> ASGIApp:
    """The application, for replicas that may be killed and started by those who know the key."""
    playground = _Playground(cluster, key)
    routes = [
        Route("/", playground.page),
        Route(page.PATH, playground.page),
        *page.page_routes(),
        Route("/playground/playground.js", playground.script),
        Route("/playground/replicas", playground.tell),
        Route("/playground/replicas/{id}/kill", playground.kill, methods=["POST"]),
        Route("/playground/replicas/{id}/start", playground.start, methods=["POST"]),
        Route("/v1/{path:path}", playground.pass_on, methods=["GET", "POST", "PUT", "DELETE"]),
    ]

    @asynccontextmanager
    async def connected(_: Starlette) -> AsyncIterator[None]:
        async with playground.client:
            yield

    return _OwnPagesAlone(
        Starlette(
            routes=routes, exception_handlers={Refusal: _refused, ClientDisconnect: _gone}, lifespan=connected
        )
    )


async def _refused(_: Request, error: Any) -> Response:
    return ProblemResponse(error.problem, error.headers)


async def _gone(_: Request, __: Any) -> Response:
    """Nobody reads it: the client left before its body was there."""
    return Response(status_code=400)


class _OwnPagesAlone:
    """Lets nothing through that a page of another origin may have sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app: Final = app
        self._hosts: Final = AllowedHosts([], is_loopback=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            try:
                self._hosts.check(headers)
                if scope["path"].startswith("/v1/"):
                    self._hosts.check_site(headers)
            except Refusal as refusal:
                await ProblemResponse(refusal.problem)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class _Playground:
    def __init__(self, cluster: LocalCluster, key: str) -> None:
        self._cluster: Final = cluster
        self._key: Final = key.encode()
        self._changing: Final = asyncio.Lock()
        self._asked_last = ""
        self.client: Final = httpx.AsyncClient(timeout=ANSWER_S_MAX, trust_env=False)
        """Asks replicas."""

    async def page(self, _: Request) -> Response:
        """The live page, with the script of the playground."""
        content = (page.FOLDER / page.INDEX).read_bytes().replace(_HEAD_END, _WITH_SCRIPT)
        return Response(content, headers=page.HEADERS, media_type=page.TYPES[".html"])

    async def script(self, _: Request) -> Response:
        """What the playground adds to the page."""
        return Response(SCRIPT.read_bytes(), headers=page.HEADERS, media_type=page.TYPES[".js"])

    async def tell(self, request: Request) -> Response:
        """Which replicas there are, and whether their processes run."""
        self._check_key(request)
        return self._told()

    async def kill(self, request: Request) -> Response:
        """End a replica with SIGKILL."""
        return await self._change(request, self._cluster.kill, is_running=True)

    async def start(self, request: Request) -> Response:
        """Start a replica that does not run; it votes a little later."""
        return await self._change(request, self._cluster.launch, is_running=False)

    async def pass_on(self, request: Request) -> Response:
        """What a replica answers: the one that answered last, while it runs, else the first that does. A request that may have reached one goes to no
        other."""
        too_large = Refusal("too-large", f"the playground takes bodies of up to {BODY_BYTES_MAX} bytes")
        body = await _whole(request.stream(), BODY_BYTES_MAX, too_large)
        # As bytes: they need not be ASCII, and the replica says what is wrong with them.
        headers = [(name, value) for name, value in request.headers.raw if name in _PASSED_ON]
        path = request.scope["raw_path"].decode("ascii")
        query = request.scope["query_string"].decode("ascii")
        for id, url in self._running():
            asked = self.client.build_request(
                request.method, f"{url}{path}?{query}", content=body, headers=headers
            )
            if not asked.url.path.startswith("/v1/") or asked.url.path.startswith(ADMIN_PREFIX):
                raise Refusal(
                    "no-such-path", "the playground passes on what the live page asks: ask a replica itself"
                )
            try:
                answer = await self._answer(asked)
                self._asked_last = id
                return answer
            except httpx.ConnectError:
                continue
            except httpx.HTTPError as error:
                raise Refusal("outcome-unknown", f"the replica at {url} gave no answer: {error}") from None
        raise Refusal("unavailable", "no replica runs: start one of them", definite=True)

    async def _answer(self, asked: httpx.Request) -> Response:
        answer = await self.client.send(asked, stream=True)
        too_large = Refusal("internal", f"the answer has more than {ANSWER_BYTES_MAX} bytes")
        try:
            content = await _whole(answer.aiter_bytes(), ANSWER_BYTES_MAX, too_large)
        finally:
            await answer.aclose()
        headers = {name: answer.headers[name] for name in _PASSED_BACK if name in answer.headers}
        return Response(content, answer.status_code, headers)

    async def _change(self, request: Request, change: Callable[[str], None], *, is_running: bool) -> Response:
        self._check_key(request)
        id = request.path_params["id"]
        if id not in self._cluster.urls:
            raise Refusal("not-found", f"the playground has no replica {id!r}")
        async with self._changing:
            if (id in self._cluster.pids) == is_running:
                try:
                    await asyncio.to_thread(change, id)
                except Failure as error:
                    raise Refusal("refused", str(error), definite=True) from None
        return self._told()

    def _check_key(self, request: Request) -> None:
        if not hmac.compare_digest(request.headers.get(KEY_HEADER, "").encode(), self._key):
            raise Refusal(
                "forbidden", "open the address that `quorate playground` printed: its key is needed here"
            )

    def _told(self) -> Response:
        pids = self._cluster.pids
        return JSONResponse({"replicas": [{"id": id, "is_running": id in pids} for id in self._cluster.urls]})

    def _running(self) -> list[tuple[str, str]]:
        pids = self._cluster.pids
        running = [(id, url) for id, url in self._cluster.urls.items() if id in pids]
        # One that was just started does not vote yet.
        return sorted(running, key=lambda each: each[0] != self._asked_last)


async def _whole(parts: AsyncIterator[bytes], bytes_max: int, too_large: Refusal) -> bytes:
    """All that comes in parts; raises `too_large` where that is more than so many bytes."""
    whole = bytearray()
    async for part in parts:
        whole += part
        if len(whole) > bytes_max:
            raise too_large
    return bytes(whole)
