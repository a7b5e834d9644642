"""A driver goes on to later configurations: machine, links and transport together, and on its own as soon as a replica is in one."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from opentelemetry.sdk.trace import TracerProvider

from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.messages import Batch, BatchReply, ForwardedReply, ForwardedRequest
from quorate.client_sdk.protocol.configurations import settled
from quorate.client_sdk.protocol.core.values import Done, SendForwarded, Unanswered
from quorate.client_sdk.tracing.spans import Tracing
from quorate.client_sdk.transport.driver import Driver
from quorate.client_sdk.transport.following import Following
from quorate.timestamps.timestamp import make
from tests.unit.client_sdk.scripted import (
    ScriptedMachine,
    ScriptedTransport,
    asking,
    changed,
    document_of,
    lazy,
    reply_to,
)
from tests.unit.client_sdk.transport.test_driver import Rig, settle
from tests.unit.client_sdk.transport.test_driver_forwarding import ScriptedForwarder

FIRST = document_of("r1", "r2", "r3")
BOTH = changed(FIRST, "r4")
AFTER = settled(BOTH)


def refusing(epoch: int) -> Unanswered:
    """The answer of one that is in that configuration."""
    return Unanswered("r1: other cluster file", refused=True, definite=True, epoch=epoch)


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    yield made
    await made.driver.aclose()


async def test_machine_links_and_transport_go_on_to_later_configurations_alone(rig: Rig) -> None:
    await rig.run("r1", "r2")
    for document, now in (
        (FIRST, FIRST),
        (BOTH, BOTH),
        (BOTH, BOTH),
        (FIRST, BOTH),
        (AFTER, AFTER),
        (BOTH, AFTER),
    ):
        rig.driver.reconfigure(document)
        assert rig.driver.document is now or rig.driver.document == now
        await rig.run("r1", "r2")
        assert rig.transport.hashes[-2:] == [now.hash, now.hash]
    assert rig.machine.documents == [BOTH, AFTER]
    assert rig.transport.followed == [BOTH, AFTER]


async def test_a_new_member_is_reached_and_an_old_one_still(rig: Rig) -> None:
    rig.driver.reconfigure(BOTH)
    await rig.run("r4", "r1")
    assert rig.transport.hashes == [BOTH.hash] * 2
    assert rig.batches_to("r4") == [1]


async def test_transport_and_links_go_on_before_the_machine_sends_anew() -> None:
    """What it sends under the new configuration would else be dropped, or reach nobody."""
    rig = Rig()
    reconfigure = rig.machine.reconfigure

    def send(*args: object) -> object:
        assert rig.transport.followed == [BOTH]
        effects = reconfigure(*args)  # type: ignore[arg-type]
        return type(effects)((lazy("r4"), lazy("r1")), (), None)

    rig.machine.reconfigure = send  # type: ignore[method-assign, assignment]
    rig.driver.reconfigure(BOTH)
    await rig.driver.aclose()
    assert sorted(rig.transport.batches) == [(name, lazy(name).requests) for name in ("r1", "r4")]
    assert rig.transport.hashes == [BOTH.hash] * 2
    assert rig.machine.started_over == 0


@pytest.mark.parametrize("is_traced", [True, False])
async def test_what_goes_to_a_new_member_is_traced_as_all_else(rig: Rig, is_traced: bool) -> None:
    traces: list[tuple[str, ...]] = []

    def noting(replica: str, batch: Batch) -> BatchReply:
        traces.append(batch.trace)
        return reply_to(replica, batch)

    rig.transport.behaviour = noting
    if is_traced:
        rig.driver.follow(Tracing(TracerProvider()))
    rig.driver.reconfigure(BOTH)
    await rig.run("r4")
    [places] = traces
    assert len(places) == (1 if is_traced else 0)


async def test_a_mistake_of_the_machine_at_a_change_is_an_unknown_outcome(rig: Rig) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    rig.transport.stuck["r1"] = asyncio.Event()
    running = asyncio.create_task(rig.driver.run(asking("r1"), 5))
    await settle()
    rig.machine.reconfigure = broken  # type: ignore[method-assign, assignment]
    rig.driver.reconfigure(BOTH)
    async with asyncio.timeout(30):
        outcome = await running
    assert not isinstance(outcome, Done)
    assert rig.machine.started_over == 1


async def test_a_closed_driver_goes_on_to_nothing() -> None:
    rig = Rig()
    await rig.driver.aclose()
    rig.driver.reconfigure(BOTH)
    assert rig.driver.document == FIRST
    assert rig.machine.documents == rig.transport.followed == []


class Fetching:
    """Tells everybody of that configuration, once it is set free."""

    def __init__(self, document: ClusterDocument) -> None:
        self.document = document
        self.asked: list[str] = []
        self.ended: list[str] = []
        self.free = asyncio.Event()

    async def fetch(self, replica: str, _: float) -> ClusterDocument:
        """See Following."""
        self.asked.append(replica)
        try:
            await self.free.wait()
        finally:
            self.ended.append(replica)
        return self.document


def followed_with(driver: Driver, document: ClusterDocument = BOTH) -> Fetching:
    """The driver fetches that one wherever it meets a later one."""
    fetching = Fetching(document)
    driver.following = Following(FIRST.name, fetching.fetch, driver.reconfigure)
    return fetching


async def test_a_replica_in_a_later_configuration_takes_the_driver_there(rig: Rig) -> None:
    fetching = followed_with(rig.driver)
    rig.transport.failing["r1"] = refusing(BOTH.number)
    await rig.run("r1", "r2")
    fetching.free.set()
    await settle()
    assert fetching.asked == ["r1"]
    assert rig.driver.document == BOTH
    await rig.run("r1")
    await settle()
    assert fetching.asked == ["r1"], "it is where the replica is"


async def test_nobody_need_follow(rig: Rig) -> None:
    rig.transport.failing["r1"] = refusing(BOTH.number)
    async with asyncio.timeout(30):
        await rig.run("r1", "r2")
    assert rig.driver.document == FIRST


def forwarding(forwarder: ScriptedForwarder) -> tuple[Driver, ScriptedMachine]:
    """A driver whose machine has one request forwarded to r2 with its next operation."""
    machine = ScriptedMachine()
    machine.forwards = [SendForwarded("r2", ForwardedRequest("hash", make(1, 0, "f1"), "queue/q"), 7, 5.0)]
    driver = Driver(
        FIRST, transport=ScriptedTransport(), forwarder=forwarder, site="test", seed=0, machine=machine
    )
    driver.reconfigure(BOTH)
    return driver, machine


@pytest.mark.parametrize(
    ("answer", "asked"),
    [
        (ForwardedReply("r2", "i"), []),
        (Unanswered("r2: down"), []),
        (refusing(FIRST.number), []),
        (refusing(BOTH.number), []),
        (refusing(AFTER.number), ["r2"]),
    ],
)
async def test_who_refuses_a_forwarded_request_in_a_later_configuration_is_heard_of(
    answer: ForwardedReply | Unanswered, asked: list[str]
) -> None:
    forwarder = ScriptedForwarder(answer)
    driver, machine = forwarding(forwarder)
    fetching = followed_with(driver, AFTER)
    fetching.free.set()
    await driver.run(asking("r1"), 5)
    forwarder.free.set()
    await settle()
    assert machine.served == [(7, answer)], "as every answer"
    assert fetching.asked == asked
    assert driver.document == (AFTER if asked else BOTH)
    await driver.aclose()


async def test_closing_ends_a_fetch_under_way() -> None:
    rig = Rig()
    fetching = followed_with(rig.driver)
    rig.transport.failing["r1"] = refusing(BOTH.number)
    before = asyncio.all_tasks()
    await rig.run("r1")
    await settle()
    assert (fetching.asked, fetching.ended) == (["r1"], [])
    async with asyncio.timeout(30):
        await rig.driver.aclose()
    assert fetching.ended == ["r1"]
    assert asyncio.all_tasks() == before
    assert rig.driver.document == FIRST


async def test_nothing_is_fetched_for_what_is_answered_while_it_is_closed() -> None:
    class Late(ScriptedForwarder):
        async def forward(
            self, replica: str, request: ForwardedRequest, timeout_s: float
        ) -> ForwardedReply | Unanswered:
            try:
                return await super().forward(replica, request, timeout_s)
            except asyncio.CancelledError:
                return self.answer

    driver, _ = forwarding(Late(refusing(AFTER.number)))
    fetching = followed_with(driver, AFTER)
    await driver.run(asking("r1"), 5)
    await settle()
    before = asyncio.all_tasks()
    await driver.aclose()
    await settle()
    assert fetching.asked == []
    assert asyncio.all_tasks() <= before
