"""Shows that replicas as processes, and a client that the environment tells to, send their spans to a collector by OTLP; and that
neither waits for a collector that is not there.
"""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import BadInput, connect
from quorate.measurement.faults.held_ports import HeldPort
from tests.system.harness import Clusters

STOP_S: Final = 20.0


class Collector:
    """Takes spans on a free port: who sent them, their trace, their name."""

    def __init__(self) -> None:
        self.spans: Final[list[tuple[str, bytes, str]]] = []
        taken = self.spans

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = ExportTraceServiceRequest()
                sent.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                for group in sent.resource_spans:
                    named = {each.key: each.value.string_value for each in group.resource.attributes}
                    service = named["service.name"]
                    who = named["service.instance.id"] if service == "quorate-replica" else service
                    taken.extend(
                        (who, span.trace_id, span.name) for scope in group.scope_spans for span in scope.spans
                    )
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        self._server: Final = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url: Final = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread: Final = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.stop()


def started(clusters: Clusters, url: str) -> LocalCluster:
    """Three replicas that send traces there."""
    cluster = clusters.make()
    for replica in cluster.urls:
        cluster.serve_options[replica] = ["--traces", url]
    cluster.start()
    cluster.ready()
    return cluster


@pytest.mark.slow
def test_spans_of_all_processes_meet_at_the_collector(
    clusters: Clusters, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = started(clusters, collector.url)
    monkeypatch.setenv("QUORATE_TRACES", collector.url)
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue(1)
    cluster.stop()
    (trace_id,) = {trace_id for who, trace_id, name in collector.spans if name == "Enq queue"}
    below = {(who, name) for who, found, name in collector.spans if found == trace_id}
    assert ("quorate-client", "append r1") in below
    for replica in cluster.urls:
        assert {(replica, "handle append"), (replica, "commit")} <= below


@pytest.mark.slow
def test_nobody_waits_for_a_collector_that_is_not_there(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = HeldPort.chosen()
    url = f"http://127.0.0.1:{nobody.number}"
    cluster = started(clusters, url)
    monkeypatch.setenv("QUORATE_TRACES", url)
    with connect(cluster.document) as client:
        client.queue("jobs").enqueue(1)
        assert client.queue("jobs").dequeue() == 1
        begun_s = time.monotonic()
    cluster.stop()
    assert time.monotonic() - begun_s < STOP_S


def test_what_is_no_url_is_refused(monkeypatch: pytest.MonkeyPatch, clusters: Clusters) -> None:
    monkeypatch.setenv("QUORATE_TRACES", "collector:4318")
    with pytest.raises(BadInput, match="QUORATE_TRACES: 'collector:4318' must look like http://host:4318"):
        connect(clusters.make().document)
