"""Traces of what a replica does, by OpenTelemetry: a span for each traced request, below it one for its transaction; and one for
each operation that comes over the HTTP API.

Owns these spans. Imported only where traces are asked for: nothing else of this room imports OpenTelemetry. Several requests
share a transaction, in each of whose traces it stands with the same times.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Final

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider as SdkProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...adts.keys import as_written
from ...api_specs.messages import Batch, BatchReply, Refused, Reply, Request
from ...client_sdk.tracing.spans import TRACER, Tracing, context_at
from ..store.group_commit import Note, Transaction

OBJECTS: Final = ("/v1/queues/", "/v1/registers/", "/v1/dictionaries/")
"""What begins an operation; all else that is asked over HTTP has no trace."""

Answer = Callable[[Batch, Note], Awaitable[BatchReply]]


class RequestTraces:
    """Follows what replica `id` does. `own` is a provider to be shut down at the end."""

    def __init__(self, provider: TracerProvider, id: str, own: SdkProvider | None = None) -> None:
        self._provider: Final = provider
        self._tracer: Final = provider.get_tracer(TRACER)
        self._id: Final = id
        self._own: Final = own

    def operations(self) -> Tracing:
        """Follows the operations of the replica's front end."""
        return Tracing(self._provider)

    async def handled(self, answer: Answer, batch: Batch) -> BatchReply:
        """What `answer` answers to the batch; requests with a place in a trace have spans below it."""
        begun = zip(batch.requests, batch.trace, strict=True)
        spans = [self._begin(request, place) if place else None for request, place in begun]
        noted: list[Transaction] = []
        try:
            reply = await answer(batch, noted.append)
        except BaseException as error:
            for span in spans:
                if span is not None:
                    span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
                    span.end()
            raise
        for span, each in zip_longest(spans, reply.replies):
            if span is not None and each is not None:
                self._end(span, each, noted)
            elif span is not None:
                span.set_attribute("quorate.cut_off", True)
                span.end()
        return reply

    def _begin(self, request: Request, place: str) -> Span:
        kind = type(request).__name__.lower()
        name: str = getattr(request, "object", "")
        attributes = {
            "quorate.replica": self._id,
            "quorate.request": kind,
            "quorate.object": as_written(name),
        }
        return self._tracer.start_span(f"handle {kind}", context_at(place), SpanKind.SERVER, attributes)

    def _end(self, span: Span, reply: Reply, noted: Sequence[Transaction]) -> None:
        if isinstance(reply, Refused):
            span.set_status(Status(StatusCode.ERROR, reply.detail))
        elif getattr(reply, "refused", False):
            span.set_attribute("quorate.ballot_refused", True)
        for transaction in noted:
            attributes: dict[str, str | int] = {"quorate.replica": self._id}
            attributes["quorate.requests"] = transaction.requests
            commit = self._tracer.start_span(
                "commit",
                set_span_in_context(span, Context()),
                attributes=attributes,
                start_time=transaction.begun_ns,
            )
            commit.add_event("sync", timestamp=transaction.committing_ns)
            commit.end(transaction.ended_ns)
        span.end()

    @contextmanager
    def below(self, place: str) -> Iterator[None]:
        """Operations that begin in it stand below that place, if it is one."""
        if not place:
            yield
            return
        attached = context.attach(context_at(place))
        try:
            yield
        finally:
            context.detach(attached)

    def http(self, app: ASGIApp) -> ASGIApp:
        """The application, with a span for each request that begins an operation, below the caller's (header traceparent)."""

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or not scope["path"].startswith(OBJECTS):
                await app(scope, receive, send)
                return
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            caller = TraceContextTextMapPropagator().extract(headers, Context())
            with self._tracer.start_as_current_span(scope["method"], caller, SpanKind.SERVER) as span:
                span.set_attribute("quorate.replica", self._id)
                await app(scope, receive, _noting(span, scope, send))

        return traced

    def close(self) -> None:
        """Send what was not sent yet. Blocks for a moment."""
        if self._own is not None:
            self._own.shutdown()


def _noting(span: Span, scope: Scope, send: Send) -> Send:
    """`send`, which also tells the span the answer's status, and the operation that was asked for."""

    async def noting(message: Message) -> None:
        if message["type"] == "http.response.start":
            span.update_name(f"{scope['method']} {getattr(scope.get('route'), 'path', '')}".strip())
            span.set_attribute("http.response.status_code", message["status"])
            if message["status"] >= 500:
                span.set_status(Status(StatusCode.ERROR))
        await send(message)

    return noting
