"""The mechanics of driver and links: what shares a batch, who waits for whom, and what ends when."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import pytest
import pytest_asyncio
from msgspec.structs import replace

from quorate.api_specs.limits import SUMMARY_BYTES_MAX, Limits
from quorate.api_specs.messages import Batch, BatchReply, Commit
from quorate.client_sdk.errors import Closed
from quorate.client_sdk.protocol.core.rounds import SOON_S
from quorate.client_sdk.protocol.core.values import Done, Effects, Failed, Outcome, Unanswered
from quorate.client_sdk.transport import link
from quorate.client_sdk.transport.driver import Driver, SystemClock, new_site
from quorate.timestamps.timestamp import make, site
from tests.unit.client_sdk.scripted import (
    ManualClock,
    ScriptedMachine,
    ScriptedTransport,
    asking,
    document_of,
    lazy,
    reply_to,
)

DOWN = Unanswered("r3: refused connection", definite=True)


SMALL = Limits(body_bytes_max=1000, value_bytes_max=100, page_bytes_max=100)
"""Of whose messages a decided state is nearly all."""


class Rig:
    """A driver of three replicas with everything around it in hand."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.clock = ManualClock()
        self.machine = ScriptedMachine()
        self.transport = ScriptedTransport()
        self.driver = Driver(
            document_of("r1", "r2", "r3", limits=limits),
            transport=self.transport,
            site="test",
            seed=0,
            clock=self.clock,
            machine=self.machine,
        )

    async def run(self, *replicas: str) -> None:
        """One operation that asks these replicas, to its end."""
        assert isinstance(await self.driver.run(asking(*replicas), 5), Done)

    def batches_to(self, replica: str) -> list[int]:
        """How many requests each batch to a replica had."""
        return [len(requests) for name, requests in self.transport.batches if name == replica]


async def settle() -> None:
    """Let everything that can run now run."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    yield made
    await made.driver.aclose()


def test_site_ids_are_new_and_fit_a_timestamp() -> None:
    sites = {new_site() for _ in range(1000)}
    assert len(sites) == 1000
    assert all(site(make(1, 0, each)) == each and 10 <= len(each) <= 16 for each in sites)


async def test_operations_of_one_turn_share_a_batch(rig: Rig) -> None:
    await asyncio.gather(*(rig.run("r1", "r2") for _ in range(50)))
    assert rig.batches_to("r1") == [50]
    assert rig.batches_to("r2") == [50]
    assert rig.batches_to("r3") == []


async def test_operations_of_one_turn_begin_each_in_its_callers_name(rig: Rig) -> None:
    await asyncio.gather(*(rig.driver.run(asking("r1"), 5, turn=caller) for caller in "abc"))
    await rig.run("r1")
    assert rig.machine.turns == ["a", "b", "c", None]


async def test_what_comes_while_batches_are_in_flight_goes_in_the_next_one(rig: Rig) -> None:
    rig.transport.stuck["r1"] = asyncio.Event()
    runs = [asyncio.create_task(rig.run("r1"))]
    for size in (2, 3, 4):
        await settle()
        runs += [asyncio.create_task(rig.run("r1")) for _ in range(size)]
    await settle()
    assert rig.batches_to("r1") == [1, 2]
    rig.transport.stuck["r1"].set()
    await asyncio.gather(*runs)
    assert rig.batches_to("r1") == [1, 2, 7]
    assert rig.transport.in_flight_max == link.IN_FLIGHT_MAX


async def test_a_batch_keeps_to_the_limits_of_requests_and_bytes() -> None:
    rig = Rig(Limits(requests_max=4))
    await asyncio.gather(*(rig.run("r1") for _ in range(10)))
    assert rig.batches_to("r1") == [4, 4, 2]
    await rig.driver.aclose()
    rig = Rig(SMALL)
    rig.machine.name_bytes = link.LONG_BATCH_BYTES // 4 - 100
    await asyncio.gather(*(rig.run("r1") for _ in range(10)))
    assert sum(rig.batches_to("r1")) == 10
    assert max(rig.batches_to("r1")) == 4
    await rig.driver.aclose()


async def test_a_stuck_replica_holds_up_nobody_else(rig: Rig) -> None:
    rig.transport.stuck["r3"] = asyncio.Event()
    waits = asyncio.create_task(rig.run("r3"))
    for _ in range(20):
        await rig.run("r1", "r2")
    assert not waits.done()
    rig.transport.stuck["r3"].set()
    await waits


async def test_an_exchange_without_an_end_is_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "EXCHANGE_TIMEOUT_S", 0.02)
    rig.transport.stuck["r1"] = asyncio.Event()
    await rig.run("r1")
    [(_, _, answer)] = rig.machine.answers
    assert isinstance(answer, Unanswered)
    assert not answer.definite


async def test_a_dead_replica_is_asked_once_and_then_answered_for(rig: Rig) -> None:
    rig.transport.failing["r3"] = DOWN
    for _ in range(10):
        await rig.run("r1", "r3")
    assert rig.batches_to("r3") == [1]
    assert rig.batches_to("r1") == [1] * 10
    unanswered = [answer for replica, _, answer in rig.machine.answers if replica == "r3"]
    assert len(unanswered) == 10
    assert all(isinstance(answer, Unanswered) and answer.definite for answer in unanswered)


async def test_a_replica_that_is_back_is_noticed(rig: Rig) -> None:
    rig.transport.failing["r3"] = DOWN
    await rig.run("r3")
    del rig.transport.failing["r3"]
    await rig.run("r3")
    assert rig.batches_to("r3") == [1], "it is not asked before the back-off is over"
    rig.clock.mono_s += link.BACKOFF_FIRST_S
    await rig.run("r3")
    await rig.run("r3")
    assert rig.batches_to("r3") == [1, 1, 1]
    assert isinstance(rig.machine.answers[-1][2], BatchReply)


async def test_back_off_grows_to_its_bound_and_probes_one_at_a_time(rig: Rig) -> None:
    rig.transport.failing["r3"] = DOWN
    probes_per_second = []
    for _ in range(20):
        before = len(rig.batches_to("r3"))
        for _ in range(100):
            await rig.run("r3")
            rig.clock.mono_s += 0.01
        probes_per_second.append(len(rig.batches_to("r3")) - before)
    assert probes_per_second[0] > 2
    assert all(1 <= probes <= 2 for probes in probes_per_second[4:])


async def test_only_one_probe_is_in_flight_and_the_others_do_not_wait_for_it(rig: Rig) -> None:
    rig.transport.failing["r3"] = DOWN
    await rig.run("r3")
    rig.clock.mono_s += link.BACKOFF_MAX_S
    rig.transport.stuck["r3"] = asyncio.Event()
    probe = asyncio.create_task(rig.run("r3"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await rig.run("r3")
    assert rig.batches_to("r3") == [1, 1]
    assert not probe.done()
    rig.transport.stuck["r3"].set()
    await probe


async def test_a_failure_answers_all_that_waits_for_the_replica(rig: Rig) -> None:
    rig.transport.failing["r1"] = DOWN
    rig.transport.stuck["r1"] = asyncio.Event()
    runs = []
    for _ in range(4):
        runs.append(asyncio.create_task(rig.run("r1")))
        await settle()
    rig.transport.stuck["r1"].set()
    await asyncio.gather(*runs)
    assert rig.batches_to("r1") == [1, 1]


async def test_a_refusal_is_an_answer_and_needs_no_back_off(rig: Rig) -> None:
    rig.transport.failing["r1"] = Unanswered("r1: other cluster file", refused=True, definite=True)
    await rig.run("r1")
    await rig.run("r1")
    assert rig.batches_to("r1") == [1, 1]


async def test_a_full_outbox_answers_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "OUTBOX_SENDS_MAX", 5)
    rig.transport.stuck["r1"] = asyncio.Event()
    runs = [asyncio.create_task(rig.run("r1")) for _ in range(link.IN_FLIGHT_MAX)]
    for _ in range(link.IN_FLIGHT_MAX):
        await settle()
    runs += [asyncio.create_task(rig.run("r1")) for _ in range(20)]
    await settle()
    assert sum(run.done() for run in runs) == 20 - 5
    rig.transport.stuck["r1"].set()
    await asyncio.gather(*runs)


async def _begun(rig: Rig, name_bytes: int, number: int) -> list[asyncio.Task[None]]:
    """Operations with requests of that size, which wait at r1."""
    rig.machine.name_bytes = name_bytes
    runs = [asyncio.create_task(rig.run("r1")) for _ in range(number)]
    await settle()
    return runs


async def _crowded(limits: Limits | None = None) -> tuple[Rig, list[asyncio.Task[None]]]:
    """As many batches are under way to r1 as may be, and none is answered."""
    rig = Rig(limits)
    rig.transport.stuck["r1"] = asyncio.Event()
    return rig, [run for _ in range(link.IN_FLIGHT_MAX) for run in await _begun(rig, 1, 1)]


LONG = link.SHORT_BYTES + 1
HEAVY = SUMMARY_BYTES_MAX // 8


async def test_long_requests_take_no_room_from_short_ones() -> None:
    """Two hundred dequeues of one token, on queues with 512 leases each, had another one's small requests refused. Decided states have
    room whatever a body has: with a small one, nothing of such a queue could be sent."""
    rig, runs = await _crowded(SMALL)
    many = await _begun(rig, HEAVY, 50)
    refused = [each for each in many if each.done()]
    assert len(refused) == 50 - 8 * link.OUTBOX_BODIES_MAX - link.IN_FLIGHT_MAX, (
        "what is long has its own bound"
    )
    short = await _begun(rig, 1, 100)
    assert not any(each.done() for each in short)
    rig.transport.stuck["r1"].set()
    await asyncio.gather(*runs, *many, *short)
    await rig.driver.aclose()


async def test_long_requests_go_in_batches_of_their_own_which_no_short_one_waits_for() -> None:
    """Who enqueued a megabyte at a time, on 30 connections, had small operations of others wait for one to three seconds."""
    rig, runs = await _crowded(Limits(requests_max=2))
    long = await _begun(rig, LONG, 3)
    short = await _begun(rig, 1, 7)
    rig.transport.stuck["r1"].set()
    await asyncio.gather(*runs, *long, *short)
    sizes = [
        "".join("sl"[len(repr(each)) > link.SHORT_BYTES] for each in requests)
        for _, requests in rig.transport.batches[link.IN_FLIGHT_MAX :]
    ]
    assert sizes == ["ll", "l", "ss", "ss", "ss", "s"]
    await rig.driver.aclose()


async def test_another_replica_behind_the_url_is_refused(rig: Rig) -> None:
    rig.transport.behaviour = lambda _, batch: reply_to("r2", batch)
    await rig.run("r1")
    [(_, _, answer)] = rig.machine.answers
    assert isinstance(answer, Unanswered)
    assert answer.refused
    assert "reaches replica r2" in answer.detail


async def test_a_reply_too_few_is_no_reply(rig: Rig) -> None:
    def short(replica: str, batch: Batch) -> BatchReply:
        return reply_to(replica, Batch(batch.cluster, batch.requests[1:]))

    rig.transport.behaviour = short
    await rig.run("r1")
    assert isinstance(rig.machine.answers[0][2], Unanswered)


async def test_lazy_messages_ride_along_with_token_zero(rig: Rig) -> None:
    rig.machine.lazies = [lazy("r1"), lazy("r1", 1)]
    await rig.run("r1")
    assert rig.batches_to("r1") == [3]
    assert rig.machine.answers[0][1] == (0, 0, 1)


async def test_lazy_messages_alone_leave_soon(rig: Rig) -> None:
    rig.machine.lazies = [lazy("r2")]
    await rig.run("r1")
    assert rig.batches_to("r2") == []
    async with asyncio.timeout(30):
        while not rig.batches_to("r2"):
            await asyncio.sleep(0.005)


async def test_lazy_messages_to_a_dead_replica_are_bounded(rig: Rig) -> None:
    rig.transport.failing["r2"] = DOWN
    await rig.run("r2")
    rig.machine.lazies = [lazy("r2", number) for number in range(link.LAZY_SENDS_MAX + 10)]
    await rig.run("r1")
    del rig.transport.failing["r2"]
    rig.clock.mono_s += link.BACKOFF_MAX_S
    await rig.run("r2")
    newest = [request for name, requests in rig.transport.batches[-1:] for request in requests]
    assert Commit(f"register/lazy{link.LAZY_SENDS_MAX}") in newest
    assert Commit("register/lazy9") not in newest


async def test_close_flushes_lazy_messages_and_fails_what_runs() -> None:
    rig = Rig()
    rig.transport.stuck["r1"] = asyncio.Event()
    rig.machine.lazies = [lazy("r2")]
    rig.machine.lasts = [lazy("r3")]
    run = asyncio.create_task(rig.run("r1"))
    await settle()
    closing = asyncio.create_task(rig.driver.aclose())
    with pytest.raises(Closed) as during:
        await run
    assert not during.value.definite
    async with asyncio.timeout(30):
        await closing
    assert rig.batches_to("r2") == [1]
    assert rig.batches_to("r3") == [1], "what the machine still had to say"
    assert rig.transport.is_closed
    with pytest.raises(Closed) as after:
        await rig.run("r1")
    assert after.value.definite
    await rig.driver.aclose()


async def test_a_cancelled_run_cancels_the_operation(rig: Rig) -> None:
    rig.transport.stuck["r1"] = asyncio.Event()
    run = asyncio.create_task(rig.run("r1"))
    await settle()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert rig.machine.cancelled == [1]


async def test_the_machine_is_woken_at_the_latest_time_it_named() -> None:
    machine, transport = ScriptedMachine(), ScriptedTransport()
    clock = SystemClock()
    driver = Driver(document_of("r1"), transport=transport, site="test", seed=0, clock=clock, machine=machine)
    transport.stuck["r1"] = asyncio.Event()
    machine.wake_at_s = clock.now().mono_s + 30
    first = asyncio.create_task(driver.run(asking("r1"), 5))
    await asyncio.sleep(0)
    wake_at_s = machine.wake_at_s = clock.now().mono_s + 0.02
    second = asyncio.create_task(driver.run(asking("r1"), 5))
    async with asyncio.timeout(30):
        while not machine.ticks:
            await asyncio.sleep(0.005)
    assert machine.ticks[0] >= wake_at_s - 0.001
    transport.stuck["r1"].set()
    await asyncio.gather(first, second)
    await driver.aclose()


async def test_a_machine_that_wants_to_be_woken_at_once_lets_others_have_their_turn_before() -> None:
    machine, transport = ScriptedMachine(), ScriptedTransport()
    clock = SystemClock()
    driver = Driver(document_of("r1"), transport=transport, site="test", seed=0, clock=clock, machine=machine)
    transport.stuck["r1"] = asyncio.Event()
    machine.wake_at_s = clock.now().mono_s + SOON_S
    running = asyncio.create_task(driver.run(asking("r1"), 5))
    async with asyncio.timeout(30):
        while not machine.begun:
            await asyncio.sleep(0)
    assert machine.ticks == []
    await asyncio.sleep(0)
    assert len(machine.ticks) == 1
    transport.stuck["r1"].set()
    await running
    await driver.aclose()


async def test_a_broken_invariant_is_an_unknown_outcome_for_every_caller(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    rig.machine.breaks = True
    async with asyncio.timeout(30):
        outcomes = await asyncio.gather(*(rig.driver.run(asking("r1"), 5) for _ in range(3)))
    assert [(each.reason, each.definite) for each in outcomes if isinstance(each, Failed)] == [
        ("unknown", False)
    ] * 3
    assert "an invariant broke" in caplog.text
    assert "Traceback" in caplog.text
    assert rig.machine.started_over == 1
    rig.machine.breaks = False
    await rig.run("r1")


OF_ALL_CLASSES = (ZeroDivisionError, asyncio.CancelledError, GeneratorExit, BaseException)


def raiser(error: type[BaseException]) -> Callable[..., NoReturn]:
    def act(*_: object, **__: object) -> NoReturn:
        raise error

    return act


async def is_told(rig: Rig, part: object, name: str, breaks: Callable[..., Any]) -> None:
    """That an operation hears of it where that part breaks so, and the next one has its answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part, name, breaks)
        async with asyncio.timeout(30):
            outcome = await rig.driver.run(asking("r1"), 5)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.definite) == ("unknown", False)
    await rig.run("r1")


@pytest.mark.parametrize("error", OF_ALL_CLASSES)
@pytest.mark.parametrize("call", ["start_all", "deliver"])
async def test_whatever_breaks_at_the_start_or_later_is_told_likewise(
    rig: Rig, caplog: pytest.LogCaptureFixture, call: str, error: type[BaseException]
) -> None:
    await is_told(rig, rig.machine, call, raiser(error))
    assert error.__name__ in caplog.text


@pytest.mark.parametrize("name", ["put", "flush"])
async def test_whatever_breaks_while_messages_are_sent_is_told_likewise(rig: Rig, name: str) -> None:
    await is_told(rig, link.Link, name, raiser(ZeroDivisionError))


async def test_what_cannot_be_sent_once_an_answer_has_come_is_told_likewise(rig: Rig) -> None:
    await is_told(rig, rig.machine, "deliver", lambda *_: Effects((lazy("nobody"),), (), None))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_does_so_once_everybody_has_an_answer(error: type[BaseException]) -> None:
    """Operations that were to begin in the same turn were forgotten."""

    class Interrupted(ScriptedMachine):
        def start_all(self, *args: Any) -> tuple[list[int], Effects]:
            self.start_all = super().start_all  # type: ignore[method-assign]
            raise error

    async def begin() -> list[asyncio.Task[Outcome]]:
        driver = Driver(
            document_of("r1"), transport=ScriptedTransport(), site="test", seed=0, machine=Interrupted()
        )
        return [asyncio.create_task(driver.run(asking("r1"), deadline_s)) for deadline_s in (5, 6)]

    loop = asyncio.new_event_loop()
    runs = loop.run_until_complete(begin())
    with pytest.raises(error):
        loop.run_until_complete(asyncio.sleep(30))
    outcomes = loop.run_until_complete(asyncio.wait_for(asyncio.gather(*runs), 30))
    loop.close()
    assert [type(outcome) for outcome in outcomes] == [Failed, Done]


async def test_a_replica_that_stands_below_what_was_seen_of_it_is_not_believed(rig: Rig) -> None:
    """Its store was rolled back. The words of a former life of a sound one may still arrive late: they count as lost, so
    that the replica is asked again, and is not left out of the round as one that refuses is."""

    def stands(incarnation: str, began_us: int, wall_us: int) -> None:
        began, clock = (make(each, 0, "site") for each in (began_us, wall_us))
        rig.transport.behaviour = lambda replica, batch: replace(
            reply_to(replica, batch), incarnation=incarnation, began=began, clock=clock
        )

    async def believed() -> bool:
        await rig.run("r1")
        return isinstance(rig.machine.answers[-1][2], BatchReply)

    for incarnation, began_us, wall_us, is_believed in (
        ("first", 1, 5, True),
        ("first", 1, 3, True),  # overtaken by the reply before
        ("second", 5, 5, True),
        ("third", 4, 9, False),  # the first message that it took has made it rise
        ("third", 4, 9, False),
        ("second", 5, 6, True),
        ("fourth", 6, 6, True),
    ):
        stands(incarnation, began_us, wall_us)
        assert await believed() == is_believed, (incarnation, wall_us)
    refused = [each for _, _, each in rig.machine.answers if isinstance(each, Unanswered)]
    assert all(each.refused and not each.definite for each in refused)
    stands("second", 5, 9)
    assert not await believed()
    late = rig.machine.answers[-1][2]
    assert isinstance(late, Unanswered)
    assert (late.refused, late.definite) == (False, False)
    assert "before its restart" in late.detail
