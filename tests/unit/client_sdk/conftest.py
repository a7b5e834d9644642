"""A server, and transports to it with each HTTP client."""

from collections.abc import Iterator
from typing import Any

import pytest

from quorate.api_specs.messages import BatchReply
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport import http1
from quorate.client_sdk.transport import httpx_client as httpx_client_module
from quorate.client_sdk.transport.http_transport import HttpTransport, httpx_client, quick_client
from tests.unit.client_sdk.exchanging import BATCH, PATIENT_S, TOKEN, ForwardedRequest, Make, right
from tests.unit.client_sdk.loopback import PendingCommand, Server, serving


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """To be taken, a connection on this machine needs no time, but on a busy one."""
    for module in (http1, httpx_client_module):
        monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", PATIENT_S)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(right) as made:
        yield made


@pytest.fixture(params=[quick_client, httpx_client], ids=["quick", "httpx"])
def to(request: pytest.FixtureRequest) -> Make:
    """Makes a transport to r1 at a URL."""

    def make(url: str, body_bytes_max: int = 1000, **options: Any) -> HttpTransport:
        return HttpTransport({"r1": url}, body_bytes_max=body_bytes_max, client=request.param, **options)

    return make


@pytest.fixture
def ask(server: Server, to: Make) -> ForwardedRequest:
    """One exchange with a server that answers `answer`."""

    async def one(answer: bytes | None = None, timeout_s: float = PATIENT_S) -> BatchReply | Unanswered:
        if answer is not None:

            async def handle(_: PendingCommand) -> bytes:
                return answer

            server.handler = handle
        transport = to(server.url, token=TOKEN)
        try:
            return await transport.exchange("r1", BATCH, timeout_s)
        finally:
            await transport.aclose()

    return one
