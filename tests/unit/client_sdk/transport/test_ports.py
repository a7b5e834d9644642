"""Who sends a request is told what came of it, once, and nobody else's."""

import asyncio

import pytest

from quorate.api_specs.messages import Batch, BatchReply
from quorate.client_sdk.protocol.core.values import Failed, Read, Unanswered
from quorate.client_sdk.transport.driver import Driver, new_site
from quorate.client_sdk.transport.http1 import QuickClient
from quorate.client_sdk.transport.http_answer import HttpAnswer
from quorate.client_sdk.transport.ports import Done, GiveUp, Transport, answer_to, post_task
from tests.unit.client_sdk.loopback import PendingCommand, response, serving
from tests.unit.client_sdk.scripted import document_of

WAIT_S = 60.0


async def answering(asked: PendingCommand) -> bytes:
    return response(200, asked.line.encode())


async def test_a_request_that_is_given_up_after_its_answer_does_not_end_that_of_who_has_its_connection_now() -> (
    None
):
    is_held = [True]

    async def holding(asked: PendingCommand) -> bytes:
        while asked.line == "GET /second HTTP/1.1" and is_held:
            await asyncio.sleep(0.001)
        return await answering(asked)

    with serving(holding) as server:
        client = QuickClient(None)
        await client.request("r1", server.url + "/first", timeout_s=WAIT_S, bytes_max=1000)
        told: list[HttpAnswer | Unanswered] = []

        def begin_second(_: HttpAnswer | Unanswered) -> None:
            client.send("r1", server.url + "/second", told.append, timeout_s=WAIT_S, bytes_max=1000)

        give_up = client.send("r1", server.url + "/told", begin_second, timeout_s=WAIT_S, bytes_max=1000)
        async with asyncio.timeout(WAIT_S):
            while server.asked[-1].line != "GET /second HTTP/1.1":
                await asyncio.sleep(0.001)
        assert server.connections == 1
        give_up()
        is_held.clear()
        async with asyncio.timeout(WAIT_S):
            while not told:
                await asyncio.sleep(0.001)
        assert isinstance(told[0], HttpAnswer)
        assert told[0].body == b"GET /second HTTP/1.1"
        await client.aclose()


async def test_a_request_that_is_given_up_tells_nobody_and_ends_its_connection() -> None:
    with serving(answering) as server:
        client = QuickClient(None)
        await client.request("r1", server.url + "/first", timeout_s=WAIT_S, bytes_max=1000)
        told: list[HttpAnswer | Unanswered] = []
        client.send("r1", server.url + "/no", told.append, timeout_s=WAIT_S, bytes_max=1000)()
        answer = await client.request("r1", server.url + "/next", timeout_s=WAIT_S, bytes_max=1000)
        assert isinstance(answer, HttpAnswer)
        assert answer.body == b"GET /next HTTP/1.1"
        assert (told, server.connections) == ([], 2)
        await client.aclose()


async def test_a_task_that_others_cancel_or_that_fails_tells_so(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> str:
        raise RuntimeError("of ours")

    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    told: list[str | Unanswered] = []
    post_task(fail(), told.append)
    give_up = post_task(wait(), told.append)
    post_task(wait(), told.append)
    await asyncio.sleep(0)
    give_up()
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    async with asyncio.timeout(WAIT_S):
        while len(told) < 2:
            await asyncio.sleep(0.001)
    assert [type(each) for each in told] == [Unanswered] * 2
    assert "a request could not be carried" in caplog.text


async def test_who_waits_gives_up_when_cancelled() -> None:
    given_up: list[bool] = []

    def post(_: Done[str]) -> GiveUp:
        return lambda: given_up.append(True)

    waiting = asyncio.create_task(answer_to(post))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert given_up == [True]


async def test_a_request_that_is_cancelled_as_its_answer_comes_leaves_no_connection() -> None:
    """In the very turn of the loop: it was told, and has not gone on yet."""
    left: list[asyncio.Transport] = []
    asking: list[asyncio.Task[HttpAnswer | Unanswered]] = []

    class Server(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            self.transport = transport
            left.append(transport)

        def data_received(self, data: bytes) -> None:
            del data
            self.transport.write(response(200, b"{}"))
            asking[-1].cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            del exc
            left.remove(self.transport)

    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = QuickClient(None)
    for _ in range(5):
        asking.append(asyncio.create_task(client.request("r1", url, timeout_s=WAIT_S, bytes_max=1000)))
        with pytest.raises(asyncio.CancelledError):
            await asking[-1]
    async with asyncio.timeout(WAIT_S):
        while left:
            await asyncio.sleep(0.001)
    await client.aclose()
    server.close()


async def test_a_transport_that_raises_keeps_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    class Raising(Transport):
        def post(
            self, replica: str, batch: Batch, timeout_s: float, done: Done[BatchReply | Unanswered]
        ) -> GiveUp:
            raise RuntimeError("of ours")

        async def aclose(self) -> None:
            """Nothing is open."""

    document = document_of("r1", "r2", "r3")
    driver = Driver(document, transport=Raising(), site=new_site(), seed=1)
    outcome = await driver.run(Read("register/r"), 0.3)
    assert isinstance(outcome, Failed)
    assert all(f"{each}" in outcome.detail for each in ("r1", "r2", "r3", "the transport failed"))
    async with asyncio.timeout(WAIT_S):
        while any(
            link._under_way for link in driver._links.values()
        ):  # One may have been sent at the deadline.
            await asyncio.sleep(0.001)
    assert "a batch could not be sent" in caplog.text
    await driver.aclose()
