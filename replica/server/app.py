"""The HTTP application of a replica: both surfaces, health, and their OpenAPI documents.

Owns how the parts are put together and how errors of the framework become problem documents.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from typing import Any, Final

import msgspec
from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ...api_specs.problems import problem
from ...client_sdk.transport.driver import Driver
from ...client_sdk.transport.http_transport import quick_client
from ...client_sdk.transport.operator import Operator
from ...client_sdk.transport.tls import SYSTEM_TRUST, ClientTls
from ..access.authorization import DOCUMENT_PATH, PROTOCOL_DOCUMENT_PATH
from ..access.refused_callers import RefusedCallers
from ..access.token_list import Access, one_token
from ..api import object_models as models
from ..api import protocol_api
from ..api.admin_api import admin_router, configuration_router
from ..api.forwarded import Serving
from ..api.lease_api import dead_letter_router, lease_router
from ..api.object_api import dictionary_router, queue_router, register_router
from ..api.operations import Operations
from ..api.own_types_api import own_type_routers
from ..api.plain_requests import PlainRequests
from ..api.service_api import service_router
from ..http.gate import Gate
from ..http.host_header import AllowedHosts
from ..http.problems import ProblemResponse, Refusal
from ..http.routers import Part
from ..http.traffic import Traffic
from ..live import page as live_page
from ..live.api import live_router
from ..live.cluster_scan import ClusterScan
from ..openapi import pages as openapi_pages
from ..openapi.builder import api_document, protocol_document
from ..service.copying import Copies
from ..service.embedded import to_others
from ..service.member import Member
from ..service.own_types import load
from ..telemetry.metrics import Metrics
from ..telemetry.metrics_api import metrics_router
from ..telemetry.probes_api import probes_router
from ..upkeep.probing import Probes, Probing
from ..upkeep.upkeep import Upkeep
from .direct import Direct
from .shutdown import Shutdown

API_VERSION: Final = "1.0"
_ERRORS_SHOWN: Final = 5
_log = logging.getLogger(__name__)

_ROUTERS: Final = (
    queue_router,
    register_router,
    dictionary_router,
    lease_router,
    dead_letter_router,
    service_router,
    live_router,
    metrics_router,
    probes_router,
    admin_router,
    configuration_router,
)

Connect = Callable[[Member], Driver]
"""Makes the embedded front end of a member, on the event loop that it will live on."""
Beside = Callable[[], Coroutine[Any, Any, None]]


class ReplicaApp(FastAPI):
    """The application, with the paths of front ends, which do not pass the framework (`protocol_api`)."""

    batches: ASGIApp
    forwards: ASGIApp
    others: ASGIApp
    direct: Direct | None
    """The shorter way of batches that come in one piece; none where requests are traced."""
    traffic: Traffic
    """What the gate counts; the server in front counts connections in it."""
    shutdown: Shutdown

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.framework(scope, receive, send)
        elif scope["path"] == protocol_api.PATH:
            await self.batches(scope, receive, send)
        elif scope["path"] == protocol_api.FORWARD_PATH:
            await self.forwards(scope, receive, send)
        else:
            await self.others(scope, receive, send)

    async def framework(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What the framework does: lifespan events, and the requests that pass it."""
        await super().__call__(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """The framework's, from its handlers of known errors on: the gate, which stands in front, takes the others."""
        stack: Any = super().build_middleware_stack()
        while not isinstance(stack, ExceptionMiddleware):
            stack = stack.app
        return stack


def create_app(
    member: Member,
    connect: Connect,
    token: str | None = None,
    *,
    access: Access | None = None,
    hosts: AllowedHosts | None = None,
    tls: ClientTls = SYSTEM_TRUST,
    beside: Beside | None = None,
    probes: Probes | None = None,
) -> ReplicaApp:
    """The application that answers for `member`; its lifespan runs the front end and the upkeep, and closes both and
    the member.

    `access` says whom it lets in (left out: who sends `token`, or anyone without one), `hosts` which Host may be named,
    `tls` how it knows the other replicas, `beside` what runs as long as it serves, `probes` where it notes what it sees of them, if it does.
    """
    access = one_token(token) if access is None else access
    operations = Operations(member.document.limits, lambda: _lost(member))
    serving = Serving(member, lambda: operations.front_end)
    traffic = Traffic()
    metrics = Metrics(member, traffic, operations.counts, serving.outcomes)
    types = load(member.document.own_types)
    copies = Copies(member)

    app = ReplicaApp(
        title="Quorate",
        version=API_VERSION,
        lifespan=_lifespan(connect, tls, beside),
        openapi_url=None,
        redirect_slashes=False,
    )
    app.traffic = traffic
    parts: dict[Part, Any] = {
        "member": member,
        "operations": operations,
        "types": types,
        "metrics": metrics,
        "access": access,
        "copies": copies,
        "scan": None,
        "probes": probes,
    }
    for name, part in parts.items():
        setattr(app.state, name, part)
    app.router.routes += _routes(app, member, access, own_type_routers(operations, types))
    _put_behind_gate(app, serving, operations, access, hosts)
    app.shutdown = Shutdown(member, traffic, operations, copies)
    _handle_errors(app)
    return app


def _lifespan(
    connect: Connect, tls: ClientTls, beside: Beside | None
) -> Callable[[ReplicaApp], AbstractAsyncContextManager[None]]:
    """What runs from the start of an application to its end."""

    @asynccontextmanager
    async def lifespan(app: ReplicaApp) -> AsyncIterator[None]:
        member, own_token = app.state.member, app.state.access.own_token
        app.state.scan = scan = ClusterScan(member, own_token, tls)
        app.state.operations.front_end = front_end = connect(member)
        app.shutdown.upkeep = upkeep = Upkeep(
            member,
            front_end,
            lambda: to_others(member, own_token, tls),
            lambda: Operator(front_end, token=own_token, tls=tls, urls=member.endpoints),
            lambda: app.state.access.may_change,
            [Probing(member, probes, quick_client(None, tls))] if (probes := app.state.probes) else [],
        )
        upkeep.start()
        running = None if beside is None else asyncio.create_task(beside(), name="quorate-beside")
        try:
            yield
        finally:
            if running is not None:
                running.cancel()
            app.shutdown.begin()
            app.state.scan = None
            for end in (scan.aclose, app.shutdown.end, app.state.metrics.aclose):
                await end()
            await asyncio.to_thread(member.close)

    return lifespan


def _routes(
    app: FastAPI, member: Member, access: Access, own_types: Iterable[APIRouter]
) -> Iterator[BaseRoute]:
    """Announcements, the documents and the pages that show them, which the framework does not describe; then the API; then the live page."""
    announce = protocol_api.announcement_endpoint(member)
    yield Route(protocol_api.ANNOUNCEMENT_PATH, announce, methods=["POST"], include_in_schema=False)
    of_api = _document_endpoint(access, lambda is_known: api_document(app, with_own_types=is_known))
    yield Route(DOCUMENT_PATH, of_api, include_in_schema=False)
    of_protocol = _document_endpoint(access, lambda _: protocol_document(app))
    yield Route(PROTOCOL_DOCUMENT_PATH, of_protocol, include_in_schema=False)
    yield from openapi_pages.page_routes()
    for router in (*_ROUTERS, *own_types):
        yield from router.routes
    yield from live_page.page_routes()


def _put_behind_gate(
    app: ReplicaApp, serving: Serving, operations: Operations, access: Access, hosts: AllowedHosts | None
) -> None:
    member = serving.member

    def matched_by(name: str) -> str:
        return member.document.matched_by(name)  # By the configuration of now.

    access.matched_by = matched_by
    gate = partial(
        Gate,
        body_bytes_max=member.document.limits.body_bytes_max,
        access=access,
        traffic=app.traffic,
        hosts=hosts,
        refused_callers=RefusedCallers(),
        # A forwarded request is refused by who knows which ones it has met: only then is it certain that no copy was or will be served.
        is_over=lambda path: member.is_stopping and path != protocol_api.FORWARD_PATH,
    )
    batches = protocol_api.Batches(member, access, app.state.types)
    message_bytes_max = member.document.limits.message_bytes_max
    app.batches = gated = gate(protocol_api.batch_app(batches), body_bytes_max=message_bytes_max)
    app.forwards = gate(protocol_api.forward_app(serving, access))
    app.direct = Direct(gated, app.traffic, batches) if member.traces is None else None
    if member.traces is None:
        app.others = gate(PlainRequests(app.framework, operations=operations))
    else:  # What is traced has passed the gate; its span is named by the framework's route.
        app.others = gate(member.traces.http(app.framework))


def _lost(member: Member) -> Refusal | None:
    """Why no operation is run here."""
    return None if member.lost is None else Refusal(member.why_lost, member.lost)


def _handle_errors(app: FastAPI) -> None:
    """Known errors here; the gate takes what is left, and those of its own."""

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_body = any(each["loc"][0] == "body" for each in error.errors())
        if is_body and await request.body() and media_type != "application/json":
            came = f"it came {f'as {media_type}' if media_type else 'without a type'} (with curl: -H 'Content-Type: application/json')"
            detail = _printable(f"the body must be application/json; {came}")
            return ProblemResponse(problem("unsupported-media-type", detail))
        shown = [_wrong(each) for each in error.errors()[:_ERRORS_SHOWN]]
        return ProblemResponse(problem("malformed", _printable("; ".join(shown))))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404:
            detail = "this path does not exist (/docs lists those that do, and /ui shows the cluster)"
            return ProblemResponse(problem("no-such-path", detail))
        if error.status_code == 405:
            allowed = ", ".join(sorted(_methods(app, request)))
            detail = f"not with {request.method}: use {allowed}"
            return ProblemResponse(problem("method-not-allowed", detail), {"Allow": allowed})
        if error.status_code == 413:
            return ProblemResponse(problem("too-large", error.detail))
        # The framework's parser met what it does not name: no UTF-8, or arrays in arrays without end.
        detail = (
            f"{error.detail}: it must be JSON in UTF-8 without a byte order mark, with each member of an object given once, and "
            "not nested without end"
        )
        return ProblemResponse(problem("malformed", _printable(detail)))

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> Response:
        del request
        return ProblemResponse(error.problem, error.headers)


def _wrong(error: Mapping[str, Any]) -> str:
    """One thing that is wrong with a request: where, and what."""
    kind, *place = error["loc"]
    where = ".".join(str(each) for each in place if each not in (models.ONE, models.SEVERAL))
    return f"{where or kind}: {error['msg']}"


def _printable(text: str) -> str:
    return text.encode(errors="replace").decode()[:1000]


def _methods(app: FastAPI, request: Request) -> set[str]:
    """The methods of all routes at the path of `request`."""
    found: set[str] = set()
    for route in app.routes:
        methods = getattr(route, "methods", None)
        if methods and route.matches(request.scope)[0] is not Match.NONE:
            found |= methods
    return found


def _document_endpoint(
    access: Access, document: Callable[[bool], dict[str, Any]]
) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint of an OpenAPI document. It is large, and everybody may ask: so it is made and encoded once, for those with a token and for
    others."""

    @cache
    def encoded(is_known: bool) -> bytes:
        return msgspec.json.encode(document(is_known))

    async def answer_document(request: Request) -> Response:
        is_known = access.find(request.headers.get("authorization", "").encode()) is not None
        return Response(encoded(is_known), media_type="application/json", headers={"Vary": "Authorization"})

    return answer_document
