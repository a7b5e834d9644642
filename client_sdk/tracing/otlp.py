"""Where spans go when a URL is given: by OTLP over HTTP to a collector. Imported only where traces are asked for."""

from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

TIMEOUT_S: Final = 2.0
"""Of one sending; a collector that is down holds up the end of the process no longer."""
PATH: Final = "/v1/traces"


def provider_to(url: str, service: str, instance: str = "") -> TracerProvider:
    """Sends spans to the collector at `url`, in batches, from a thread of its own; a URL without a path gets the usual one."""
    endpoint = url if urlsplit(url).path.strip("/") else url.rstrip("/") + PATH
    named = {"service.name": service} | ({"service.instance.id": instance} if instance else {})
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint, timeout=TIMEOUT_S)))
    return provider
