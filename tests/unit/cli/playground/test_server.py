"""What the playground's page does where a replica does not listen yet, or goes away in the middle of a request."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.playground import server
from quorate.cli.playground.server import playground_app
from quorate.measurement.faults.held_ports import HeldPort


class Running(LocalCluster):
    """Replicas of which each has a process, as far as one knows, and listens where a test says."""

    places: Mapping[str, str] = MappingProxyType({})

    @property
    def urls(self) -> dict[str, str]:
        return dict(self.places) or super().urls

    @property
    def pids(self) -> dict[str, int]:
        return dict.fromkeys(self.urls, 1)


@asynccontextmanager
async def listening(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Something that hears a request, answers it with that, and hangs up: its URL, and the first line of each request."""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(answer)
        writer.close()

    made = await asyncio.start_server(hear, "127.0.0.1", 0)
    async with made:
        yield f"http://127.0.0.1:{made.sockets[0].getsockname()[1]}", heard


@pytest.fixture
def down() -> Iterator[str]:
    """A URL whose port is held for the time of a test, and where nobody listens."""
    held = HeldPort.chosen()
    yield f"http://127.0.0.1:{held.number}"
    del held


@pytest.fixture
def cluster(tmp_path: Path) -> Running:
    return Running.create(tmp_path / "cluster", replicas=2)


async def asked(cluster: LocalCluster, path: str, content: bytes = b"") -> httpx.Response:
    transport = httpx.ASGITransport(playground_app(cluster, "key"))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.post(path, content=content)


async def test_who_does_not_listen_yet_is_passed_over(cluster: Running, down: str) -> None:
    async with listening(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}") as (url, heard):
        cluster.places = {"r1": down, "r2": url}
        answer = await asked(cluster, "/v1/queues/q/dequeue?x=%20")
    assert (answer.status_code, answer.text) == (200, "{}")
    assert heard == [b"POST /v1/queues/q/dequeue?x=%20 HTTP/1.1"]
    cluster.places = {"r1": down, "r2": down}
    answer = await asked(cluster, "/v1/queues/q/dequeue")
    assert (answer.status_code, answer.json()["definite"]) == (503, True)


async def test_a_request_that_may_have_reached_a_replica_goes_to_no_other(cluster: Running) -> None:
    async with listening(b"") as (first, _), listening(b"HTTP/1.1 204 No Content\r\n\r\n") as (second, heard):
        cluster.places = {"r1": first, "r2": second}
        answer = await asked(cluster, "/v1/queues/q/dequeue")
    assert (answer.json()["type"], answer.json()["definite"]) == ("/problems/outcome-unknown", False)
    assert heard == []


async def test_bodies_and_answers_have_a_bound(cluster: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_BYTES_MAX", 10)
    monkeypatch.setattr(server, "ANSWER_BYTES_MAX", 2)
    async with listening(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{ }") as (url, heard):
        cluster.places = {"r1": url}
        refused = await asked(cluster, "/v1/queues/q/items", b"x" * 11)
        assert (refused.status_code, refused.json()["type"], heard) == (413, "/problems/too-large", [])
        answer = await asked(cluster, "/v1/queues/q/items", b"x" * 10)
    assert (answer.status_code, len(heard)) == (500, 1)
    assert "more than 2 bytes" in answer.json()["detail"]


async def test_what_is_no_ascii_in_a_header_is_passed_on(cluster: Running) -> None:
    async with listening(b"HTTP/1.1 204 No Content\r\n\r\n") as (url, _):
        cluster.places = {"r1": url}
        transport = httpx.ASGITransport(playground_app(cluster, "key"))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = await client.get("/v1/queues/q", headers=[(b"Idempotency-Key", b"\xc3\xbc")])
    assert answer.status_code == 204


async def test_a_client_that_leaves_within_its_body_is_no_error(cluster: Running) -> None:
    """An error would come out of the application."""
    headers = [(b"host", b"127.0.0.1"), (b"content-length", b"9")]
    came: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    said: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return came.pop(0)

    async def send(message: MutableMapping[str, Any]) -> None:
        said.append(message)

    path = "/v1/queues/q/items"
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
    }
    async with listening(b"") as (url, heard):
        cluster.places = {"r1": url}
        await playground_app(cluster, "key")(scope, receive, send)
    assert (said[0]["status"], heard) == (400, [])
