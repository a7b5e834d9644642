"""How a driver carries forwarded requests: once each, so many at a time, and none for ever."""

import asyncio

import pytest

from quorate.api_specs.messages import ForwardedReply, ForwardedRequest
from quorate.client_sdk.protocol.core.values import SendForwarded, Unanswered
from quorate.client_sdk.transport.driver import FORWARDED_MAX, Driver
from quorate.timestamps.timestamp import make
from tests.unit.client_sdk.scripted import ScriptedMachine, ScriptedTransport, asking, document_of
from tests.unit.client_sdk.transport.test_driver import settle


class ScriptedForwarder:
    """Answers a forwarded request once it is set free."""

    def __init__(self, answer: ForwardedReply | Unanswered) -> None:
        self.answer = answer
        self.free = asyncio.Event()
        self.asked: list[tuple[str, ForwardedRequest]] = []

    async def forward(
        self, replica: str, request: ForwardedRequest, timeout_s: float
    ) -> ForwardedReply | Unanswered:
        """See Forwarder."""
        self.asked.append((replica, request))
        await self.free.wait()
        return self.answer


def driver_asking(
    forwarder: ScriptedForwarder, asks: int, timeout_s: float = 5.0
) -> tuple[Driver, ScriptedMachine]:
    """A driver whose machine wants so many forwarded requests sent with its next operation."""
    machine = ScriptedMachine()
    ask = ForwardedRequest("hash", make(1, 0, "f1"), "queue/q")
    machine.forwards = [SendForwarded("r1", ask, token, timeout_s) for token in range(asks)]
    transport = ScriptedTransport()
    driver = Driver(
        document_of("r1"), transport=transport, forwarder=forwarder, site="test", seed=0, machine=machine
    )
    return driver, machine


async def test_asks_are_carried_once_and_bounded_and_their_answers_come_back() -> None:
    forwarder = ScriptedForwarder(ForwardedReply("r1", "i"))
    driver, machine = driver_asking(forwarder, FORWARDED_MAX + 1)
    await driver.run(asking("r1"), 5)
    await settle()
    assert len(forwarder.asked) == FORWARDED_MAX
    [(token, refused)] = machine.served
    assert token == FORWARDED_MAX
    assert isinstance(refused, Unanswered)
    assert refused.definite, "it was not sent"
    forwarder.free.set()
    await settle()
    assert machine.served[1:] == [(token, forwarder.answer) for token in range(FORWARDED_MAX)]
    machine.forwards = [
        SendForwarded("r1", forwarder.asked[0][1], 1000 + n, 5.0) for n in range(FORWARDED_MAX)
    ]
    await driver.run(asking("r1"), 5)
    await settle()
    assert len(forwarder.asked) == 2 * FORWARDED_MAX, "there is room for as many again"
    await driver.aclose()


async def test_a_forwarded_request_without_an_answer_is_lost_when_its_time_is_over() -> None:
    forwarder = ScriptedForwarder(ForwardedReply("r1", "i"))
    driver, machine = driver_asking(forwarder, 1, timeout_s=0.01)
    await driver.run(asking("r1"), 5)
    async with asyncio.timeout(30):
        while not machine.served:
            await asyncio.sleep(0.001)
    [(_, lost)] = machine.served
    assert isinstance(lost, Unanswered)
    assert not lost.definite
    await driver.aclose()


async def test_closing_gives_asks_up() -> None:
    forwarder = ScriptedForwarder(ForwardedReply("r1", "i"))
    driver, machine = driver_asking(forwarder, 1)
    await driver.run(asking("r1"), 5)
    await settle()
    async with asyncio.timeout(30):
        await driver.aclose()
    assert not machine.served


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError, GeneratorExit])
async def test_a_forwarder_that_raises_is_a_forwarded_request_without_an_answer(
    error: type[BaseException],
) -> None:
    class Broken(ScriptedForwarder):
        async def forward(
            self, replica: str, request: ForwardedRequest, timeout_s: float
        ) -> ForwardedReply | Unanswered:
            raise error("a mistake of the forwarder's")

    driver, machine = driver_asking(Broken(ForwardedReply("r1", "i")), 1)
    await driver.run(asking("r1"), 5)
    await settle()
    [(_, lost)] = machine.served
    assert isinstance(lost, Unanswered)
    assert not lost.definite
    await driver.aclose()
