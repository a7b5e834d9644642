"""Small HTTP servers on loopback, each with a thread of its own: a scripted one, and one with a whole replica behind it."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from quorate.api_specs.cluster import ClusterDocument, ReplicaInfo
from quorate.api_specs.messages import Batch
from quorate.measurement.faults.held_ports import HeldPort
from quorate.measurement.faults.proxy import stop_listening
from quorate.simulation.memory.replica import InMemoryReplica, OtherCluster

WAIT_S = 60.0
QUIET_TURNS = 20
"""Of the event loop, in which all connections end."""


class PendingCommand(Struct):
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


Handler = Callable[[PendingCommand], Awaitable[bytes]]


def response(
    status: int, body: bytes = b"", content_type: str = "application/msgpack", **headers: str
) -> bytes:
    """The bytes of an HTTP response."""
    lines = [f"HTTP/1.1 {status} x", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def problem(status: int, name: str, **rest: object) -> bytes:
    """A problem document."""
    document = {"type": f"/problems/{name}", "title": name, "detail": f"advice on {name}", **rest}
    return response(status, msgspec.json.encode(document), "application/problem+json")


async def silence(_: PendingCommand) -> bytes:
    """Never answers."""
    await asyncio.Event().wait()
    raise AssertionError


class Server:
    """Serves `handler` until `stop`; it can be started again on the same port."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.asked: list[PendingCommand] = []
        self.connections = 0
        self._held = HeldPort.chosen()
        self.port = self._held.number
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.cuts = False
        """Whether each connection is cut after one answer."""
        self.start()

    @property
    def messages(self) -> list[PendingCommand]:
        """What was asked, but for the cluster file, which a client asks for once."""
        return [each for each in self.asked if not each.line.startswith("GET /v1/cluster ")]

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen."""
        ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(ready,))
        self._thread.start()
        assert ready.wait(WAIT_S)

    def stop(self) -> None:
        """Stop listening and drop every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(WAIT_S)

    def close(self) -> None:
        """Stop, and let go of the port."""
        self.stop()
        self._held.release()

    def _run(self, ready: threading.Event) -> None:
        loop = self._loop
        server = loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", self.port))
        loop.call_soon(ready.set)
        loop.run_forever()
        loop.run_until_complete(self._end(server))
        loop.close()

    async def _end(self, server: asyncio.Server) -> None:
        await stop_listening(server)
        for _ in range(
            QUIET_TURNS
        ):  # To begin with a connection takes a few of them, and to end one as well.
            for writer in self._writers:
                writer.transport.abort()
            self._writers.clear()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A task that is cancelled before its first step would not close what it was to serve."""
        self._writers.append(writer)
        self._tasks.add(task := self._loop.create_task(self._serve(reader, writer)))
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *rest = head.decode().split("\r\n")
                headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in rest)}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.asked.append(PendingCommand(line, headers, body))
                writer.write(await self.handler(self.asked[-1]))
                await writer.drain()
                if self.cuts:
                    writer.close()
                    return
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            if not self.cuts:
                writer.transport.abort()


def replica_handler(replica: InMemoryReplica, document: ClusterDocument) -> Handler:
    """The replica protocol over a replica in memory, and the cluster file."""

    async def handle(asked: PendingCommand) -> bytes:
        if asked.line.startswith("GET /v1/cluster "):
            served = {"hash": document.hash, "document": document}
            return response(200, msgspec.json.encode(served), "application/json")
        batch = msgspec.msgpack.decode(asked.body, type=Batch)
        try:
            reply = replica.exchange(batch, time.time_ns() // 1000)
        except OtherCluster:
            return problem(409, "wrong-cluster", definite=True)
        return response(200, msgspec.msgpack.encode(reply))

    return handle


@contextmanager
def serving(handler: Handler) -> Iterator[Server]:
    """A server for the time of a `with`."""
    server = Server(handler)
    try:
        yield server
    finally:
        server.close()


class LoopbackCluster:
    """Replicas in memory, each behind a server."""

    def __init__(self, document: ClusterDocument, servers: dict[str, Server]) -> None:
        self.document = document
        self.servers = servers


@contextmanager
def cluster_of(document: ClusterDocument) -> Iterator[LoopbackCluster]:
    """Serve every replica of the document, at addresses of its own."""
    with ExitStack() as stack:
        servers = {info.id: stack.enter_context(serving(silence)) for info in document.replicas}
        infos = tuple(ReplicaInfo(info.id, servers[info.id].url, info.votes) for info in document.replicas)
        placed = replace(document, replicas=infos)
        for replica_id, server in servers.items():
            server.handler = replica_handler(InMemoryReplica(placed, replica_id), placed)
        yield LoopbackCluster(placed, servers)
