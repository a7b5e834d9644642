"""Asks over HTTP, with each HTTP client: what goes, what comes back, and what is definite."""

import socket

import msgspec
import pytest

from quorate.api_specs.messages import ForwardedReply, ForwardedRequest
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.timestamps.timestamp import ZERO
from tests.unit.client_sdk.exchanging import PATIENT_S, TOKEN, Make
from tests.unit.client_sdk.loopback import PendingCommand, Server, problem, response

ASK = ForwardedRequest("hash", ZERO, "queue/q")
SERVED = ForwardedReply("r1", "i")


async def asked_of(server: Server, to: Make, answer: bytes) -> ForwardedReply | Unanswered:
    """What comes of a forwarded request that the server answers with `answer`."""

    async def handle(_: PendingCommand) -> bytes:
        return answer

    server.handler = handle
    transport = to(server.url, token=TOKEN)
    try:
        return await transport.forward("r1", ASK, PATIENT_S)
    finally:
        await transport.aclose()


async def test_a_forwarded_request_goes_with_the_token_and_its_answer_comes_back(
    server: Server, to: Make
) -> None:
    assert await asked_of(server, to, response(200, msgspec.msgpack.encode(SERVED))) == SERVED
    [asked] = server.asked
    assert asked.line == "POST /replica/v1/forward HTTP/1.1"
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert msgspec.msgpack.decode(asked.body, type=ForwardedRequest) == ASK


@pytest.mark.parametrize(
    ("answer", "definite"),
    [
        (problem(400, "malformed", definite=True), True),
        (problem(503, "overloaded", definite=True), False),
        (problem(500, "internal"), False),
        (response(200, b"nonsense"), False),
    ],
    ids=["malformed", "overloaded", "internal", "nonsense"],
)
async def test_only_what_any_copy_of_a_forwarded_request_meets_is_definite(
    server: Server, to: Make, answer: bytes, definite: bool
) -> None:
    got = await asked_of(server, to, answer)
    assert isinstance(got, Unanswered)
    assert got.definite is definite


async def test_a_forwarded_request_that_never_left_is_definite(to: Make) -> None:
    with socket.socket() as bound:  # Nobody listens there, nor can anybody else.
        bound.bind(("127.0.0.1", 0))
        transport = to(f"http://127.0.0.1:{bound.getsockname()[1]}")
        got = await transport.forward("r1", ASK, PATIENT_S)
        await transport.aclose()
    assert isinstance(got, Unanswered)
    assert got.definite
