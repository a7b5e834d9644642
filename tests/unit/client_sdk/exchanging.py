"""One exchange, with any server and any HTTP client: what the tests of the transport share."""

from collections.abc import Callable
from typing import Any

import msgspec

from quorate.api_specs.messages import Batch, BatchReply, Collect, Collected, Status
from quorate.client_sdk.transport.http_transport import HttpTransport
from quorate.timestamps.timestamp import ZERO
from tests.unit.client_sdk.loopback import PendingCommand, response

BATCH = Batch("hash", (Collect("register/x"),))
REPLY = BatchReply("r1", "i", ZERO, 0, (Collected(Status()),))
TOKEN = "a-very-secret-token"
PATIENT_S = 60.0
"""For what is answered at once, but on a busy machine."""
Make = Callable[..., HttpTransport]


async def right(_: PendingCommand) -> bytes:
    """The answer that all is well."""
    return response(200, msgspec.msgpack.encode(REPLY))


ForwardedRequest = Callable[..., Any]
