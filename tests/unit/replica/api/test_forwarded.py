"""A replica's front end as other front ends ask it, over HTTP on real files."""

import asyncio
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Value
from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.commands import CompareAndSetCommand, DequeueCommand, PeekCommand
from quorate.api_specs.messages import Denied, ForwardedReply, ForwardedRequest, Granted
from quorate.api_specs.problems import MEDIA_TYPE, Problem
from quorate.client_sdk.protocol.core.values import Operation, Outcome
from quorate.client_sdk.transport.driver import Driver
from quorate.replica.api import forwarded
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.protocol import at_most_once
from quorate.replica.server.app import create_app
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import Timestamp, make
from tests.unit.replica.conftest import Serving

PATH = "/replica/v1/forward"
COMPARE = CompareAndSetCommand(None, Value("1"))
MSGPACK = "application/msgpack"


async def now_us(client: httpx.AsyncClient) -> int:
    return int((await client.get("/v1/status")).json()["now_us"])


class Asking:
    """Asks with new ids, as one front end does."""

    def __init__(self, client: httpx.AsyncClient, document: ClusterDocument, site: str = "f1") -> None:
        self._client = client
        self._document = document
        self._site = site
        self._number = 0
        self._incarnation = ""

    async def id(self) -> Timestamp:
        """A new one."""
        self._number += 1
        return make(await now_us(self._client), self._number, self._site)

    async def greet(self) -> None:
        """Learn which incarnation answers."""
        served = await self.send(ForwardedRequest(self._document.hash, await self.id(), "queue/q"))
        assert served.results == ()
        self._incarnation = served.incarnation

    async def ask(self, name: str, *commands: Any) -> ForwardedRequest:
        """A forwarded request that was not sent yet."""
        return ForwardedRequest(self._document.hash, await self.id(), name, self._incarnation, commands, 1.0)

    async def send(self, ask: ForwardedRequest) -> ForwardedReply:
        """What is answered."""
        headers = {"Content-Type": MSGPACK}
        response = await self._client.post(PATH, content=msgspec.msgpack.encode(ask), headers=headers)
        assert response.status_code == 200, response.text
        return msgspec.msgpack.decode(response.content, type=ForwardedReply)


@pytest.fixture
async def asking(client: httpx.AsyncClient, document: ClusterDocument) -> Asking:
    made = Asking(client, document)
    await made.greet()
    return made


def values(result: Granted | Denied) -> list[Any]:
    assert isinstance(result, Granted), result
    return [entry.value for entry in result.entries]


async def test_commands_are_decided_together_in_order(client: httpx.AsyncClient, asking: Asking) -> None:
    await client.post("/v1/queues/q/items", json={"items": [1, 2, 3]})
    served = await asking.send(
        await asking.ask("queue/q", DequeueCommand(1), DequeueCommand(5), DequeueCommand(1))
    )
    assert [values(result) for result in served.results] == [["1"], ["2", "3"], []]
    assert all(isinstance(each, Granted) and each.answered == ("r1",) for each in served.results)


async def test_a_copy_of_a_forwarded_request_takes_nothing_and_is_never_definite(
    client: httpx.AsyncClient, asking: Asking
) -> None:
    await client.post("/v1/queues/q/items", json={"items": [1, 2]})
    ask = await asking.ask("queue/q", DequeueCommand(1))
    first, second = await asyncio.gather(asking.send(ask), asking.send(ask))
    results = sorted([*first.results, *second.results], key=lambda each: isinstance(each, Denied))
    assert values(results[0]) == ["1"]
    assert isinstance(results[1], Denied)
    assert not results[1].definite
    assert (await client.get("/v1/queues/q")).json()["size"] == 1


async def test_commands_wait_in_the_turn_of_the_front_end_that_sent_them(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, times = [], set[Now]()

    async def noted(
        self: Driver, operation: Operation, deadline_s: float, *, turn: Hashable, asked: Now
    ) -> Outcome:
        turns.append(turn)
        times.add(asked)
        return await run(self, operation, deadline_s, turn=turn, asked=asked)

    run = Driver.run
    monkeypatch.setattr(Driver, "run", noted)
    await asking.send(await asking.ask("queue/q", DequeueCommand(1), PeekCommand()))
    assert turns == ["f1", "f1"]
    assert len(times) == 1, "since it was checked, whatever held the process up"


async def test_swaps_and_fronts_are_served_too(client: httpx.AsyncClient, asking: Asking) -> None:
    one, two = Value("1"), Value("2")
    served = await asking.send(
        await asking.ask("register/r", CompareAndSetCommand(None, one), CompareAndSetCommand(two, two))
    )
    assert [isinstance(each, Granted) and each.swapped for each in served.results] == [True, False]
    await client.post("/v1/queues/q/items", json={"item": 7})
    served = await asking.send(await asking.ask("queue/q", PeekCommand()))
    assert values(served.results[0]) == ["7"]
    assert (await client.get("/v1/queues/q")).json()["size"] == 1


async def test_the_host_says_when_others_ask_as_well(
    client: httpx.AsyncClient, document: ClusterDocument, asking: Asking
) -> None:
    other = Asking(client, document, "f2")
    await other.greet()
    assert not (await asking.send(await asking.ask("queue/q", PeekCommand()))).is_shared
    assert (await other.send(await other.ask("queue/q", PeekCommand()))).is_shared
    assert (await asking.send(await asking.ask("queue/q", PeekCommand()))).is_shared
    assert not (await asking.send(await asking.ask("queue/r", PeekCommand()))).is_shared


async def test_a_forwarded_request_to_a_former_incarnation_is_not_served(
    serving: Serving, document: ClusterDocument
) -> None:
    async with serving(document) as client:
        asking = Asking(client, document)
        await asking.greet()
        ask = await asking.ask("queue/q", DequeueCommand(1))
        await client.post("/v1/queues/q/items", json={"item": 1})
    async with serving(document) as client:
        (result,) = (await Asking(client, document).send(ask)).results
        assert isinstance(result, Denied)
        assert "restarted" in result.detail
        assert not result.definite
        assert (await client.get("/v1/queues/q")).json()["size"] == 1


async def test_after_its_clock_was_ahead_of_many_front_ends_it_takes_another_incarnation_and_serves_new_ones(
    tmp_path: Path, document: ClusterDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_most_once, "IDS_MAX", 2)
    monkeypatch.setattr(at_most_once, "SENDERS_MAX", 1)
    ahead_us = 60_000_000
    member = Member(
        open_folder(tmp_path / "data", document, "r1"), wall_us=lambda: time.time_ns() // 1000 + ahead_us
    )
    app = create_app(member, lambda each: embedded_front_end(each, None), None)
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://r1") as client,
    ):
        for number in range(6):
            sender = Asking(client, document, f"f{number}")
            await sender.greet()
            (result,) = (await sender.send(await sender.ask("register/r", COMPARE))).results
            assert isinstance(result, Granted), result
        ahead_us = 0
        await client.get("/v1/registers/r")  # From now on its own front end knows better, too.
        new = Asking(client, document, "g1")
        await new.greet()
        refused = await new.send(await new.ask("register/r", COMPARE))
        (result,) = refused.results
        assert isinstance(result, Denied)
        assert not result.definite, "it names the incarnation of before"
        assert refused.incarnation == (await client.get("/v1/status")).json()["incarnation"], (
            "both tell of it"
        )
        await new.greet()
        (result,) = (await new.send(await new.ask("register/r", COMPARE))).results
        assert isinstance(result, Granted), result


async def test_one_who_stops_waiting_for_another_incarnation_leaves_the_replica_with_one(
    tmp_path: Path, document: ClusterDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has taken it, and who asked is told of nothing any more."""
    monkeypatch.setattr(at_most_once, "IDS_MAX", 2)
    monkeypatch.setattr(at_most_once, "SENDERS_MAX", 1)
    ahead_us = 60_000_000

    def wall_us() -> int:
        return time.time_ns() // 1000 + ahead_us

    member = Member(open_folder(tmp_path / "data", document, "r1"), wall_us=wall_us)
    served = forwarded.Serving(member, lambda: None)

    def ask(sender: str) -> ForwardedRequest:
        named = member.folder.incarnation
        return ForwardedRequest(
            document.hash, make(wall_us(), 0, sender), "register/r", named, (COMPARE,), 1.0
        )

    starting = (Denied("the replica is starting", definite=True),)
    for number in range(6):
        assert (await served.serve(ask(f"f{number}"))).results == starting
    ahead_us, before = 0, member.folder.incarnation
    waiting = asyncio.create_task(served.serve(ask("g0")))
    await asyncio.sleep(0)
    # The writer's thread takes it while the event loop stands still, and hears nothing yet.
    until_s = time.monotonic() + 60.0
    while member.folder.incarnation == before:
        assert time.monotonic() < until_s
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert waiting.cancelled()
    taken = member.folder.incarnation
    for sender in ("g1", "g2"):
        answer = await served.serve(ask(sender))
        assert (answer.incarnation, answer.results) == (taken, starting)
    member.close()


async def test_asks_need_the_token(serving: Serving, document: ClusterDocument) -> None:
    async with serving(document, token="secret") as client:
        response = await client.post(PATH, json={})
        assert response.status_code == 401


@pytest.mark.parametrize(
    "change",
    [
        {"cluster": "x"},
        {"id": "now"},
        {"object": "q"},
        {"deadline_s": 9.0},
        {"commands": (DequeueCommand(1, "k"),)},
    ],
    ids=str,
)
async def test_bad_asks_are_refused_for_certain(
    client: httpx.AsyncClient, asking: Asking, change: dict[str, Any]
) -> None:
    ask = replace(await asking.ask("queue/q", DequeueCommand(1)), **change)
    response = await client.post(PATH, content=msgspec.json.encode(ask))
    assert response.headers["content-type"] == MEDIA_TYPE
    problem = msgspec.json.decode(response.content, type=Problem)
    assert problem.status in (400, 409)
    assert problem.definite


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b"\xff"])
@pytest.mark.parametrize("media_type", ["application/json", MSGPACK, "text/plain"])
async def test_nonsense_is_refused(client: httpx.AsyncClient, media_type: str, body: bytes) -> None:
    response = await client.post(PATH, content=body, headers={"Content-Type": media_type})
    assert response.status_code == (415 if media_type == "text/plain" else 400)


async def test_it_is_asked_by_post_alone(client: httpx.AsyncClient) -> None:
    response = await client.get(PATH)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert response.headers["content-type"] == MEDIA_TYPE
