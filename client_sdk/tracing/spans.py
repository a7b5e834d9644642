"""Traces of operations by OpenTelemetry: one span for each operation, and below it one for each request to each replica.

Owns spans and how a place in a trace is written (W3C Trace Context). Imported only where traces are asked for: nothing else of
the SDK imports OpenTelemetry. A decision serves several operations, and enqueues go together: what is sent for several
stands below the first of them, and has links to the others.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider as SdkProvider
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
    set_span_in_context,
)

from ...adts.keys import as_written
from ...api_specs.messages import BatchReply, ForwardedReply, Refused, Reply
from ..protocol.core.counters import operation_name
from ..protocol.core.values import Answer, Done, Operation, Outcome, Send, SendForwarded, Unanswered

TRACER: Final = "quorate"
_CLOSED: Final = Unanswered("the client was closed")


def place_of(span: Span) -> str:
    """Where a span stands in its trace, as the traceparent of W3C Trace Context."""
    here = span.get_span_context()
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{here.trace_flags:02x}"


def context_at(place: str) -> Context:
    """The context of who sent a traceparent, which is in form."""
    _, trace_id, span_id, flags = place.split("-")
    there = SpanContext(
        int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16))
    )
    return set_span_in_context(NonRecordingSpan(there), Context())


class Tracing:
    """Follows the operations of one driver: `quorate.client_sdk.transport.ports.Traces` says what each method is for. `own` is a
    provider to be shut down at the end."""

    def __init__(self, provider: TracerProvider, own: SdkProvider | None = None) -> None:
        self._tracer: Final = provider.get_tracer(TRACER)
        self._own: Final = own
        self._carried: Final[dict[int, tuple[Span, ...]]] = {}
        """The spans of the operations that the machine runs, by its numbers."""
        self._requests: Final[dict[int, Span]] = {}
        """Of what is under way, by its token."""

    def begin(self, operation: Operation) -> Span:
        type_ = operation.object.partition("/")[0]
        attributes = {"quorate.type": type_, "quorate.object": as_written(operation.object)}
        return self._tracer.start_span(f"{operation_name(operation)} {type_}", attributes=attributes)

    def end(self, span: Span, outcome: Outcome | None) -> None:
        if isinstance(outcome, Done):
            span.set_attribute("quorate.outcome", outcome.event_class)
            if outcome.is_weak:
                span.set_attribute("quorate.consistency", "eventual")
        elif outcome is None:
            span.set_status(Status(StatusCode.ERROR, "its caller did not wait for the end"))
        else:
            span.set_attributes({"quorate.outcome": outcome.reason, "quorate.definite": outcome.definite})
            span.set_status(Status(StatusCode.ERROR, outcome.detail))
        span.end()

    def carry(self, number: int, spans: Sequence[Span]) -> None:
        self._carried[number] = tuple(spans)

    def drop(self, number: int) -> None:
        self._carried.pop(number, None)

    def sent(self, send: Send, numbers: Sequence[int]) -> str:
        kind = type(send.request).__name__.lower()
        return self._ask(send.token, kind, send.replica, numbers, {"quorate.request": kind})

    def forward_sent(self, send: SendForwarded, numbers: Sequence[int]) -> str:
        return self._ask(
            send.token, "forward", send.replica, numbers, {"quorate.commands": len(send.request.commands)}
        )

    def answered(self, tokens: Sequence[int], answer: Answer) -> None:
        for place, token in enumerate(tokens):
            self._answer(token, answer.replies[place] if isinstance(answer, BatchReply) else answer)

    def forward_answered(self, token: int, answer: ForwardedReply | Unanswered) -> None:
        self._answer(token, answer)

    def close(self) -> None:
        for token in list(self._requests):
            self._answer(token, _CLOSED)
        if self._own is not None:
            self._own.shutdown()

    def _ask(
        self, token: int, kind: str, replica: str, numbers: Sequence[int], attributes: Mapping[str, str | int]
    ) -> str:
        served = [span for number in numbers for span in self._carried.get(number, ())]
        if not served:
            return ""
        span = self._requests[token] = self._tracer.start_span(
            f"{kind} {replica}",
            set_span_in_context(served[0], Context()),
            SpanKind.CLIENT,
            {"quorate.replica": replica, **attributes},
            [Link(other.get_span_context()) for other in served[1:]],
        )
        return place_of(span)

    def _answer(self, token: int, answer: Reply | ForwardedReply | Unanswered) -> None:
        if (span := self._requests.pop(token, None)) is None:
            return
        if isinstance(answer, Unanswered | Refused):
            span.set_status(Status(StatusCode.ERROR, answer.detail))
        elif getattr(answer, "refused", False):
            span.set_attribute("quorate.ballot_refused", True)
        span.end()
