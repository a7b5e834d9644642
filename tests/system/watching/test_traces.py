"""Shows one operation across real replicas as one trace: rounds, what each replica did, its transaction; what several operations
share; what failed. Replicas and client run in this process and send their spans to one exporter in memory.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from quorate.api_specs.commands import DequeueCommand
from quorate.api_specs.messages import ForwardedReply, ForwardedRequest, Granted
from quorate.client_sdk import Unavailable, connect, connect_async
from quorate.client_sdk.protocol.core import preference
from quorate.client_sdk.protocol.core.answer_times import AnswerTimes
from quorate.client_sdk.tracing.spans import context_at, place_of
from quorate.client_sdk.transport.http_transport import HttpTransport
from quorate.measurement.faults.held_ports import HeldPort
from quorate.replica.service.tracing import RequestTraces
from quorate.timestamps.timestamp import make
from tests.support.in_process import InProcessCluster, in_process
from tests.unit.replica.server.test_server import SCRIPT, wait_until_ready
from tests.unit.replica.server.test_server import cluster as cluster_of_one

WAIT_S: Final = 60.0
NEVER_S: Final = 3600.0
BESIDE_NS: Final = 500_000_000
"""Between two clocks of this machine: it may be at other work when one was read and the other was not yet."""
REPLICAS: Final = ("r1", "r2", "r3")


class Traced:
    """A cluster, and what its spans tell. `provider` is for clients."""

    def __init__(self, root: Path) -> None:
        self.exporter: Final = InMemorySpanExporter()
        self.provider: Final = self.provider_of("client")
        self._running: Final = in_process(
            root, traces=lambda replica: RequestTraces(self.provider_of(replica), replica)
        )
        self.cluster: Final[InProcessCluster] = self._running.__enter__()

    def provider_of(self, service: str) -> TracerProvider:
        provider = TracerProvider(resource=Resource.create({"service.name": service}), shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        return provider

    def stop(self) -> None:
        self._running.__exit__(None, None, None)

    def until(self, holds: Callable[[list[ReadableSpan]], bool]) -> list[ReadableSpan]:
        """All spans that have ended, once that holds of them."""
        late_s = time.monotonic() + WAIT_S
        while not holds(found := list(self.exporter.get_finished_spans())):
            assert time.monotonic() < late_s, shown(found)
            time.sleep(0.005)
        return found

    def trace_of(self, name: str, *kinds: str, asked: Sequence[str] = REPLICAS) -> "Trace":
        """The trace of the operation of that name, once these replicas' spans of these kinds of requests have ended below it."""

        def is_whole(spans: list[ReadableSpan]) -> bool:
            roots = [span for span in spans if span.name == name]
            ids = {id_of(span) for span in spans}
            return (
                bool(roots)
                and all(
                    span.parent is None or span.parent.is_remote or span.parent.span_id in ids
                    for span in spans
                )
                and all(is_of_all(spans, kind, asked) for kind in kinds)
            )

        spans = self.until(is_whole)
        root = next(span for span in spans if span.name == name)
        return Trace(root, spans)


class Trace:
    """The spans of one trace, from `root` on."""

    def __init__(self, root: ReadableSpan, spans: list[ReadableSpan]) -> None:
        self.root: Final = root
        self.spans: Final = [span for span in spans if trace_id_of(span) == trace_id_of(root)]

    def below(self, parent: ReadableSpan) -> list[ReadableSpan]:
        return [
            span for span in self.spans if span.parent is not None and span.parent.span_id == id_of(parent)
        ]


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    number: int = span.context.span_id
    return number


def trace_id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    number: int = span.context.trace_id
    return number


def names(spans: list[ReadableSpan]) -> list[str]:
    return sorted(span.name for span in spans)


def is_of_all(spans: list[ReadableSpan], kind: str, asked: Sequence[str]) -> bool:
    """Whether there are spans of such requests, as many for each of these replicas."""
    counts = Counter(span.name for span in spans)
    first, *others = (counts[f"{kind} {replica}"] for replica in asked)
    return first > 0 and set(others) == {first}


def preferred(name: str) -> list[str]:
    """The quorum that clients ask for the object, once they know how quick each replica is."""
    return preference.Preference(None, REPLICAS).order(name, 0.0)[:2]


def shown(spans: list[ReadableSpan]) -> str:
    return "\n".join(
        f"{span.name} {span.kind} {span.status.status_code} {span.status.description}" for span in spans
    )


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    """Nothing is sent again here, or to others, only because time has passed, which would show as further spans. Nor does it matter how quick a
    replica answers."""
    monkeypatch.setattr(AnswerTimes, "resend_s", lambda *_: NEVER_S)
    monkeypatch.setattr(AnswerTimes, "hedge_s", lambda *_: NEVER_S)
    monkeypatch.setattr(AnswerTimes, "least_s", lambda *_: 0.0)
    monkeypatch.setattr(preference, "AGAIN_S", NEVER_S)
    made = Traced(tmp_path)
    try:
        yield made
    finally:
        made.stop()


def check_replicas(trace: Trace) -> None:
    """Each request of the client has one span at its replica, and that one has one for its transaction, within its time."""
    for request in trace.below(trace.root):
        assert request.kind is SpanKind.CLIENT
        kind, replica = request.name.split()
        (handling,) = trace.below(request)
        assert (handling.name, handling.kind) == (f"handle {kind}", SpanKind.SERVER)
        assert handling.attributes is not None
        assert handling.attributes["quorate.replica"] == replica
        assert handling.resource.attributes["service.name"] == replica
        (commit,) = trace.below(handling)
        assert commit.name == "commit"
        assert handling.start_time is not None
        assert commit.start_time is not None
        assert commit.end_time is not None
        assert handling.end_time is not None
        # The transaction's times were read from another clock of this machine.
        assert (
            handling.start_time - BESIDE_NS
            <= commit.start_time
            <= commit.end_time
            <= handling.end_time + BESIDE_NS
        )


def test_an_enqueue_and_a_dequeue_are_one_trace_each_over_all_that_are_asked(traced: Traced) -> None:
    """First all replicas, and then a quorum."""
    quorum = preferred("queue/jobs")
    with connect(traced.cluster.document, tracer_provider=traced.provider) as client:
        client.queue("jobs").enqueue("a-secret-value")
        enqueue = traced.trace_of("Enq queue", "append", "collect")
        traced.exporter.clear()
        assert client.queue("jobs").dequeue() == "a-secret-value"
        dequeue = traced.trace_of("Deq queue", "accept", "collect", asked=quorum)
    appended = [f"append {replica}" for replica in REPLICAS]
    assert enqueue.root.parent is None
    # A new client first reads the replicas' clocks.
    assert names(enqueue.below(enqueue.root)) == sorted(
        appended + [f"collect {replica}" for replica in REPLICAS]
    )
    assert enqueue.root.attributes == {
        "quorate.type": "queue",
        "quorate.object": "queue/jobs",
        "quorate.outcome": "Enq/Ok",
    }
    check_replicas(enqueue)
    requests = Counter(names(dequeue.below(dequeue.root)))
    assert {request.split()[1] for request in requests} == set(quorum)
    assert [requests[f"accept {replica}"] for replica in quorum] == [1, 1]
    assert {request.split()[0] for request in requests} == {"accept", "collect"}
    check_replicas(dequeue)
    assert trace_id_of(enqueue.root) != trace_id_of(dequeue.root)
    assert "a-secret-value" not in "".join(str(span.to_json()) for span in enqueue.spans + dequeue.spans)


def test_a_key_is_named_as_it_was_written(traced: Traced) -> None:
    with connect(traced.cluster.document, tracer_provider=traced.provider) as client:
        client.dictionary("users").put("ann & bob/ü", 1)
    trace = traced.trace_of("Put dictionary", "append")
    told = [
        span.attributes["quorate.object"]
        for span in trace.spans
        if span.attributes and "quorate.object" in span.attributes
    ]
    assert len(told) > 1
    assert set(told) == {"dictionary/users/ann & bob/ü"}


def test_a_dead_replica_is_a_failed_span(traced: Traced) -> None:
    traced.cluster.stop("r3")
    patient = connect(traced.cluster.document, tracer_provider=traced.provider, deadline_s=25.0)
    with patient as client:
        client.register("leader").write("ann")
        trace = traced.trace_of("Write register", "append", "collect")
    assert trace.root.status.status_code is not StatusCode.ERROR
    requests = trace.below(trace.root)
    failed = {span.name for span in requests if span.status.status_code is StatusCode.ERROR}
    assert failed == {"append r3", "collect r3"}
    assert any("refused" in (span.status.description or "") for span in requests)
    assert [trace.below(span) for span in requests if span.name in failed] == [[], []]


def test_an_operation_without_a_quorum_is_a_failed_span(traced: Traced) -> None:
    traced.cluster.stop("r2")
    traced.cluster.stop("r3")
    with (
        connect(traced.cluster.document, tracer_provider=traced.provider, deadline_s=0.5) as client,
        pytest.raises(Unavailable),
    ):
        client.register("leader").read()
    spans = traced.until(lambda spans: any(span.name == "Read register" for span in spans))
    root = next(span for span in spans if span.name == "Read register")
    assert root.status.status_code is StatusCode.ERROR
    assert root.attributes is not None
    assert (root.attributes["quorate.outcome"], root.attributes["quorate.definite"]) == ("unavailable", True)


async def test_what_serves_several_operations_is_below_the_first_and_linked_to_the_others(
    traced: Traced,
) -> None:
    async with connect_async(traced.cluster.document, tracer_provider=traced.provider) as client:
        queue = client.queue("shared")
        await queue.enqueue(0)
        await asyncio.to_thread(traced.trace_of, "Enq queue", "append", "collect")
        traced.exporter.clear()
        await asyncio.gather(*(queue.enqueue(number) for number in range(1, 4)))
        await asyncio.to_thread(traced.until, lambda spans: len(handled(spans, "append")) == 2)
        spans = list(traced.exporter.get_finished_spans())
        enqueues = [span for span in spans if span.name == "Enq queue"]
        assert len(enqueues) == 3
        appends = [span for span in spans if span.name.startswith("append ")]
        assert names(appends) == sorted(f"append {replica}" for replica in preferred("queue/shared"))
        for append in appends:
            assert append.parent is not None
            linked = {link.context.span_id for link in append.links}
            assert linked | {append.parent.span_id} == {id_of(span) for span in enqueues}
            assert len(linked) == 2
        traced.exporter.clear()
        await asyncio.gather(*(queue.dequeue() for _ in range(4)))
        spans = await asyncio.to_thread(traced.until, lambda spans: len(handled(spans, "accept")) >= 2)
    dequeues = {id_of(span) for span in spans if span.name == "Deq queue"}
    shared = [span for span in spans if span.name.startswith("accept ") and span.links]
    assert shared
    for accept in shared:
        assert accept.parent is not None
        assert {link.context.span_id for link in accept.links} | {accept.parent.span_id} <= dequeues


def handled(spans: list[ReadableSpan], kind: str) -> list[ReadableSpan]:
    """The spans of replicas that handled such a request."""
    return [span for span in spans if span.name == f"handle {kind}"]


def test_a_request_over_http_goes_on_with_its_callers_trace(traced: Traced) -> None:
    caller = traced.provider.get_tracer("test").start_span("caller")
    url = traced.cluster.document.urls["r2"]
    answer = httpx.post(
        f"{url}/v1/queues/jobs/items",
        json={"item": 1},
        headers={"traceparent": place_of(caller)},
        timeout=WAIT_S,
        trust_env=False,
    )
    assert answer.status_code == 200
    caller.end()
    appends = {f"append {replica}" for replica in REPLICAS}

    def is_whole(spans: list[ReadableSpan]) -> bool:
        mine = [span for span in spans if span.context.trace_id == caller.get_span_context().trace_id]
        return appends <= set(names(mine)) and any(span.name.startswith("POST") for span in mine)

    spans = traced.until(is_whole)
    trace = Trace(next(span for span in spans if span.name == "caller"), spans)
    (request,) = trace.below(trace.root)
    assert (request.name, request.kind) == ("POST /v1/queues/{name}/items", SpanKind.SERVER)
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    (operation,) = trace.below(request)
    assert operation.name == "Enq queue"
    assert appends <= set(names(trace.below(operation)))
    assert {span.resource.attributes["service.name"] for span in trace.spans} == {"client", *REPLICAS}
    httpx.get(f"{url}/v1/status", timeout=WAIT_S, trust_env=False)
    assert "GET" not in {span.name.split()[0] for span in traced.exporter.get_finished_spans()}


def test_what_another_front_end_decides_stands_below_the_ask(traced: Traced) -> None:
    cluster = traced.cluster
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue(1)
    asking = traced.provider.get_tracer("test").start_span("asking")

    async def ask() -> ForwardedReply:
        most = cluster.document.limits.body_bytes_max
        transport = HttpTransport(cluster.document.urls, body_bytes_max=most)
        asked = ForwardedRequest(
            cluster.document.hash, make(cluster.clock.now().wall_us, 0, "asker"), "queue/jobs"
        )
        try:
            greeted = await transport.forward("r1", asked, WAIT_S)
            assert isinstance(greeted, ForwardedReply)
            wanted = ForwardedRequest(
                cluster.document.hash,
                make(cluster.clock.now().wall_us, 1, "asker"),
                "queue/jobs",
                greeted.incarnation,
                (DequeueCommand(1),),
                1.0,
                place_of(asking),
            )
            served = await transport.forward("r1", wanted, WAIT_S)
            assert isinstance(served, ForwardedReply)
            return served
        finally:
            await transport.aclose()

    (result,) = cluster.run(ask()).results
    assert isinstance(result, Granted)
    asking.end()
    spans = traced.until(
        lambda spans: any(span.name == "Serve queue" for span in spans) and bool(handled(spans, "accept"))
    )
    trace = Trace(next(span for span in spans if span.name == "asking"), spans)
    assert names(trace.below(trace.root)) == ["Serve queue"]


def test_a_place_in_a_trace_survives_the_way() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    span = provider.get_tracer("test").start_span("here")
    below = provider.get_tracer("test").start_span("there", context_at(place_of(span)))
    assert isinstance(below, ReadableSpan)
    assert below.parent is not None
    assert below.parent.is_remote
    assert place_of(span).split("-")[1:3] == [f"{below.parent.trace_id:032x}", f"{below.parent.span_id:016x}"]


IMPORTED: Final = (
    "\nprint(*sorted(name for name in sys.modules if name.startswith(('opentelemetry', 'quorate.'))))"
)
OURS: Final = {
    "quorate.client_sdk.tracing.otlp",
    "quorate.client_sdk.tracing.spans",
    "quorate.replica.service.tracing",
}
CLIENT: Final = """
import sys
from quorate.client_sdk import connect
with connect(sys.argv[1]) as client:
    client.queue("jobs").enqueue(1)
    assert client.queue("jobs").dequeue() == 1
"""


@pytest.mark.slow
def test_nothing_of_opentelemetry_is_imported_when_nobody_asked(tmp_path: Path) -> None:
    held = HeldPort.chosen()
    document = cluster_of_one(held.number)
    url, text = document.urls["r1"], msgspec.json.encode(document).decode()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("QUORATE_")}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT + IMPORTED, str(tmp_path), text],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as replica:
        wait_until_ready(url)
        client = subprocess.run(
            [sys.executable, "-c", CLIENT + IMPORTED, url],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
            timeout=WAIT_S,
        )
        replica.send_signal(signal.SIGTERM)
        told, _ = replica.communicate(timeout=WAIT_S)
    at_client, at_replica = set(client.stdout.split()), set(told.split())
    assert not [name for name in at_client if name.startswith("opentelemetry")]
    assert "quorate.client_sdk.transport.driver" in at_client & at_replica
    assert not OURS & (at_client | at_replica)
    # The web framework imports the interface of OpenTelemetry; neither spans nor their sending come with it.
    assert not [
        name for name in at_replica if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter"))
    ]
