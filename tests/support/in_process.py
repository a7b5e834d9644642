"""Three shipped replicas in this process: real files, real sockets on 127.0.0.1, and a clock that tests may put forward.

Owns one event loop in a thread of its own, and all that runs there: replicas and front ends. Everything is the shipped
code, put together as `quorate.replica.server.server` does; only signals, the process and the reading of the clock differ.
"""

import asyncio
import secrets
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import uvicorn
from msgspec import UNSET, UnsetType

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.api_specs.limits import DEFAULTS, IDLE_S_MAX, Limits
from quorate.client_sdk.api.client import AsyncClient
from quorate.client_sdk.protocol.core.values import Operation, Outcome
from quorate.client_sdk.transport.driver import Driver, new_site
from quorate.client_sdk.transport.http_transport import HttpTransport
from quorate.gc.pruning import Pruning
from quorate.measurement.faults.held_ports import HeldPort
from quorate.measurement.faults.proxy import stop_listening
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.http.connections import Bounds
from quorate.replica.server.app import create_app
from quorate.replica.server.direct import bounded
from quorate.replica.server.shutdown import CUT_S
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.replica.service.tracing import RequestTraces
from quorate.replica.store.store import Store
from quorate.timestamps.clock import Now
from quorate.timestamps.timestamp import ZERO

DEADLINE_S: Final = 20.0
"""Of an operation: none needs a hundredth of it, but other work shares this machine."""
WAIT_S: Final = 60.0
OBJECTS_MAX: Final = 10_000
ENTRIES_MAX: Final = 10_000
"""For counting: tests stay far below."""
QUIET_TURNS: Final = 20
"""Of the event loop, in which nothing was accepted: to begin with a connection takes a few."""

_Result = TypeVar("_Result")
Trace = Callable[[str], RequestTraces]


class LeapingClock:
    """The clocks of this machine, put forward by as much as was told. All replicas and front ends share it."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def leap(self, seconds: float) -> None:
        """Let so much time pass at once."""
        self._ahead_s += seconds

    def now(self) -> Now:
        """See `quorate.client_sdk.transport.ports.Clock`."""
        return Now(time.monotonic() + self._ahead_s, time.time_ns() // 1000 + int(self._ahead_s * 1e6))


class WrongClock:
    """A clock whose wall clock shows another time; its monotonic one is all right."""

    def __init__(self, right: LeapingClock, wall_error_s: float) -> None:
        self._right: Final = right
        self._error_us: Final = int(wall_error_s * 1e6)

    def now(self) -> Now:
        """See `quorate.client_sdk.transport.ports.Clock`."""
        now = self._right.now()
        return Now(now.mono_s, now.wall_us + self._error_us)


class FrontEndHere:
    """A front end of the SDK on the cluster's loop: `client` for its methods, `driver` for bare operations."""

    def __init__(self, client: AsyncClient, driver: Driver) -> None:
        self.client: Final = client
        self.driver: Final = driver


class _Served:
    """One running replica."""

    def __init__(self, member: Member, server: uvicorn.Server) -> None:
        self.member: Final = member
        self.server: Final = server
        self.pruning: Final = Pruning(
            member.tombstones,
            lag_s=member.document.limits.payloads_s,
            window_s=member.document.memory_s,
            is_kept=member.configured.keeps_events,
        )


class InProcessCluster:
    """Replicas r1, r2, r3 with data folders below `root`, which ask for `token` if it is given, and are followed by what `traces`
    gives for each. None runs at first."""

    def __init__(
        self,
        root: Path,
        limits: Limits = DEFAULTS,
        token: str | None = None,
        traces: Trace | None = None,
        types: dict[str, str] | UnsetType = UNSET,
        rules: tuple[ChoiceRule, ...] = (),
    ) -> None:
        self._token: Final = token
        self._traces: Final = traces
        self.clock: Final = LeapingClock()
        self._ports: Final = [HeldPort.chosen() for _ in range(3)]
        replicas = tuple(
            ReplicaInfo(f"r{n}", f"http://127.0.0.1:{port.number}") for n, port in enumerate(self._ports, 1)
        )
        self.document: Final = ClusterDocument("in-process", replicas, rules, limits=limits, types=types)
        self._root: Final = root
        self._up: Final[dict[str, _Served]] = {}
        self._front_ends: Final[list[FrontEndHere]] = []
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name="in-process-cluster")
        self._thread.start()

    @property
    def up(self) -> list[str]:
        """The replicas that run, by id."""
        return sorted(self._up)

    @property
    def down(self) -> set[str]:
        """The replicas that are stopped, by id."""
        return set(self.document.urls) - set(self._up)

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """The result of a coroutine on the cluster's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def start(self, *replicas: str) -> None:
        """Start replicas on their folders; they vote when this returns."""
        self.run(self._start(replicas))

    def stop(self, replica: str) -> None:
        """Stop a replica: what it was sent is answered, then it is gone."""
        self.run(self._stop(self._up.pop(replica)))

    def front_end(self, wall_error_s: float = 0.0) -> FrontEndHere:
        """A new front end, with a site of its own, on a machine whose wall clock is so far ahead."""
        self._front_ends.append(self.run(self._front_end(wall_error_s)))
        return self._front_ends[-1]

    def member(self, replica: str) -> Member:
        """A replica that runs."""
        return self._up[replica].member

    def outcome(self, front_end: FrontEndHere, operation: Operation) -> Outcome:
        """The outcome of a bare operation."""
        return self.run(front_end.driver.run(operation, DEADLINE_S))

    def prune(self, replica: str) -> int:
        """Let the janitor's rule delete all history that is due now; how many entries went."""
        served = self._up[replica]

        def one_round(store: Store) -> bool:
            return served.pruning.round(store, self.clock.now())

        before = self.run(served.member.run(_entries))
        while self.run(served.member.run(one_round)):
            pass
        return before - self.run(served.member.run(_entries))

    def close(self) -> None:
        """Stop everything; front ends first, again if need be."""
        for front_end in self._front_ends:
            self.run(front_end.client.aclose())
        for replica in self.up:
            self.stop(replica)
        self.run(self._sockets_closed())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_S)
        self._loop.close()
        for port in self._ports:
            port.release()

    async def _sockets_closed(self) -> None:
        """A connection that a replica accepted while it was being stopped ends when its other end does: a loop that is closed before
        would leave its socket to the garbage collector, and the warning to whichever test comes then. What was accepted just now is read
        some turns of the loop later."""
        late_s, quiet = time.monotonic() + WAIT_S, 0
        selector: Any = self._loop._selector  # type: ignore[attr-defined]
        while quiet < QUIET_TURNS and time.monotonic() < late_s:
            quiet = 0 if len(selector.get_map()) > 1 else quiet + 1  # The one that wakes the loop stays.
            await asyncio.sleep(0 if quiet else 0.001)

    async def _start(self, replicas: tuple[str, ...]) -> None:
        for replica in replicas:
            await self._serve(replica)
        late_s = time.monotonic() + WAIT_S
        while any(self._up[replica].member.why_not_ready() for replica in replicas):
            assert time.monotonic() < late_s, "a replica that was started does not vote"
            await asyncio.sleep(0.001)

    async def _serve(self, replica: str) -> None:
        folder = open_folder(self._root / replica, self.document, replica)
        traces = None if self._traces is None else self._traces(replica)
        member = Member(
            folder,
            wall_us=lambda: self.clock.now().wall_us,
            mono_s=lambda: self.clock.now().mono_s,
            traces=traces,
        )
        app = create_app(member, lambda each: embedded_front_end(each, self._token), self._token)
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=IDLE_S_MAX,
            timeout_graceful_shutdown=CUT_S,  # A connection that was being accepted then is told nothing, and may live on.
        )
        config.load()
        config.http_protocol_class = bounded(Bounds(), app.traffic, app.direct)
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        # Its main loop would only look for signals and write the date of the answers.
        await server.startup([_bound(int(self.document.urls[replica].rpartition(":")[2]))])
        self._up[replica] = _Served(member, server)

    async def _stop(self, served: _Served) -> None:
        for each in served.server.servers:
            await stop_listening(each)
        await served.server.shutdown()
        for connection in list(served.server.server_state.connections):  # As the end of a process does.
            connection.transport.abort()

    async def _front_end(self, wall_error_s: float) -> FrontEndHere:
        most = self.document.limits.message_bytes_max
        transport = HttpTransport(self.document.urls, token=self._token, body_bytes_max=most)
        driver = Driver(
            self.document,
            transport=transport,
            site=new_site(),
            seed=secrets.randbits(63),
            clock=WrongClock(self.clock, wall_error_s),
        )
        return FrontEndHere(AsyncClient(driver, deadline_s=DEADLINE_S, history=None), driver)


@contextmanager
def in_process(
    root: Path,
    limits: Limits = DEFAULTS,
    token: str | None = None,
    traces: Trace | None = None,
    types: dict[str, str] | UnsetType = UNSET,
    rules: tuple[ChoiceRule, ...] = (),
) -> Iterator[InProcessCluster]:
    """A cluster whose replicas all run, for the time of a `with`."""
    cluster = InProcessCluster(root, limits, token, traces, types, rules)
    try:
        cluster.start(*cluster.document.urls)
        yield cluster
    finally:
        cluster.close()


def _entries(store: Store) -> int:
    """How many entries all logs hold."""
    return sum(len(store.rows(state.name, ZERO, ENTRIES_MAX)) for _, state in store.states(0, OBJECTS_MAX))


def _bound(port: int) -> socket.socket:
    """A socket on `port` of 127.0.0.1."""
    # The protocol is named because asyncio turns Nagle's delay off only where it is.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(("127.0.0.1", port))
    return bound
