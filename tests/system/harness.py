"""What the tests on real processes share: clusters in folders of their own, front ends whose messages are watched, waits.

Owns no judgement. Every wait has a deadline and looks often, though not all the time, so that no test sleeps for luck.
"""

import asyncio
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument
from quorate.api_specs.limits import STOP_S_MAX
from quorate.api_specs.messages import Accepted, Append, Appended, Batch, BatchReply, Status
from quorate.cli.cluster.document import DEFAULT_NAME, new_document, write_new
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import AsyncClient, AsyncDictionary, AsyncQueue, OutcomeUnknown, Unavailable
from quorate.client_sdk.api.history import History
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.client_sdk.transport.driver import Driver, new_site
from quorate.client_sdk.transport.http_transport import HttpTransport
from quorate.client_sdk.transport.ports import Forwarder, Transport
from quorate.measurement.faults.held_ports import HeldPort
from quorate.timestamps.timestamp import Timestamp
from tests.support.exchanging import Exchanging

_Result = TypeVar("_Result")
ROOT: Final = Path(__file__).parents[2]
WAIT_S: Final = 90.0
REST_S: Final = 0.01
REST_S_MAX: Final = 0.5
RESTS: Final = 5
"""Between two looks of a wait, in times of what a look takes: one that asks replicas is work for all of them."""
LOG_LINES_SHOWN: Final = 30
DELETES_AT_ONCE: Final = 150
SLACK_S: Final = 30.0
"""How much later a bound of the product may be met on a busy machine."""

PATIENT: Final = """\
[clock]
offset_max_s = 20.0
"""
QUICK: Final = """\
[clock]
offset_max_s = 1.0

[limits]
retry_window_s = 2.0
deadline_s_max = 1.9
wait_s_max = 1.0
consumed_lag_s = 1.0
"""
"""Windows as short as a busy machine allows: memory_s is 2 + 1.9 + 2 * 1 = 5.9 seconds."""


class Clusters:
    """The clusters and files of one test, below a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self.made: Final[list[LocalCluster]] = []

    @property
    def history(self) -> Path:
        """Where the clients of the test record."""
        return self.folder / "history.jsonl"

    def make(
        self, *, rules: Sequence[ChoiceRule] = (), settings: str = "", replicas: int = 3
    ) -> LocalCluster:
        """A formatted cluster that does not run yet; `settings` replace the document's `[clock]` and `[limits]`."""
        root = self.folder / f"cluster-{len(self.made)}"
        held = [HeldPort.chosen() for _ in range(replicas)]
        urls = {f"r{n}": f"http://127.0.0.1:{port.number}" for n, port in enumerate(held, 1)}
        text = new_document(urls, name=root.name, rules=rules)
        if settings:
            text = text.partition("\n[clock]\n")[0] + "\n" + settings
        write_new(root / DEFAULT_NAME, text)
        cluster = LocalCluster(root, held=held)
        cluster.format_missing()
        self.made.append(cluster)
        return cluster

    def start(self, *, rules: Sequence[ChoiceRule] = (), settings: str = "") -> LocalCluster:
        """A cluster of three replicas that are ready."""
        cluster = self.make(rules=rules, settings=settings)
        cluster.start()
        cluster.ready()
        return cluster

    def stop(self) -> None:
        """Stop everything that runs; one that a test has stopped with SIGSTOP goes on first."""
        for cluster in self.made:
            for pid in cluster.pids.values():
                os.kill(pid, signal.SIGCONT)
            cluster.stop()

    def shown(self) -> str:
        """For a failing test: where its files are, and what the replicas said last."""
        parts = [f"history: {self.history} ({'there' if self.history.exists() else 'none'})"]
        for cluster in self.made:
            for id in cluster.urls:
                log = cluster.log_file(id)
                lines = log.read_text(errors="replace").splitlines() if log.exists() else ["(no log)"]
                parts += [f"--- {log}", *lines[-LOG_LINES_SHOWN:]]
        return "\n".join(parts)


class Watched(Exchanging):
    """A transport that notes what is sent to each replica, and all that the replica promised in its replies."""

    def __init__(self, inner: Transport) -> None:
        self._inner: Final = inner
        self.exchanges: Final[Counter[str]] = Counter()
        self.unanswered: Final[Counter[str]] = Counter()
        self.promised: Final[dict[tuple[str, str], list[Status]]] = {}
        self.stored: Final[dict[tuple[str, str], set[Timestamp]]] = {}

    async def exchange(self, replica: str, batch: Batch, timeout_s: float) -> BatchReply | Unanswered:
        """See Transport."""
        self.exchanges[replica] += 1
        try:
            answer = await self._inner.exchange(replica, batch, timeout_s)
        except BaseException:
            self.unanswered[replica] += 1
            raise
        if isinstance(answer, Unanswered):
            self.unanswered[replica] += 1
        else:
            self._note(replica, batch, answer)
        return answer

    async def aclose(self) -> None:
        """See Transport."""
        await self._inner.aclose()

    def _note(self, replica: str, batch: Batch, answer: BatchReply) -> None:
        for request, reply in zip(batch.requests, answer.replies, strict=True):
            status = getattr(reply, "status", None)
            if status is None:
                continue
            name = getattr(request, "object", "")
            told = [status]
            if isinstance(reply, Accepted) and reply.then is not None:
                told.append(reply.then.status)
            self.promised.setdefault((replica, name), []).extend(told)
            if isinstance(reply, Appended) and isinstance(request, Append):
                pairs = zip(request.entries, reply.stored, strict=True)
                stored = self.stored.setdefault((replica, name), set())
                stored.update(entry.t for entry, is_stored in pairs if is_stored)


def http(document: ClusterDocument) -> HttpTransport:
    """The transport of the SDK."""
    return HttpTransport(document.urls, body_bytes_max=document.limits.body_bytes_max)


@asynccontextmanager
async def front_end(
    document: ClusterDocument,
    transport: Transport,
    *,
    forwarder: Forwarder | None = None,
    history: History | None = None,
    deadline_s: float = 5.0,
) -> AsyncIterator[AsyncClient]:
    """The SDK's client over a transport of the test's; without an `asker` it hands nothing over."""
    driver = Driver(
        document, transport=transport, forwarder=forwarder, site=new_site(), seed=secrets.randbits(64)
    )
    async with AsyncClient(driver, deadline_s=deadline_s, history=history) as client:
        yield client


async def until(holds: Callable[[], bool], what: str, *, deadline_s: float = WAIT_S) -> None:
    """Wait until `holds()`; AssertionError that names `what` at the deadline."""
    for rest_s in _looks(holds, what, deadline_s):
        await asyncio.sleep(rest_s)


def until_now(holds: Callable[[], bool], what: str, *, deadline_s: float = WAIT_S) -> None:
    """As `until`, without an event loop."""
    for rest_s in _looks(holds, what, deadline_s):
        time.sleep(rest_s)


def _looks(holds: Callable[[], bool], what: str, deadline_s: float) -> Iterator[float]:
    """How long to rest after each look that does not find it."""
    late_s = time.monotonic() + deadline_s
    while True:
        began_s = time.monotonic()
        if holds():
            return
        now_s = time.monotonic()
        assert now_s < late_s, f"not within {deadline_s:g} s: {what}"
        yield min(max(REST_S, RESTS * (now_s - began_s)), REST_S_MAX)


def answered(call: Callable[[], _Result], *, deadline_s: float = WAIT_S) -> _Result:
    """The answer of a call that may be repeated, however often a busy machine takes longer than its short deadline lasts."""
    late_s = time.monotonic() + deadline_s
    while True:
        try:
            return call()
        except (OutcomeUnknown, Unavailable):
            assert time.monotonic() < late_s, f"not within {deadline_s:g} s"


async def delete_all(users: AsyncDictionary, keys: Sequence[str], *, deadline_s: float = WAIT_S) -> None:
    """Delete these keys, some at a time, and again those whose outcome is not known: a busy machine may hold this process up for
    longer than a short deadline lasts."""
    late_s = time.monotonic() + deadline_s
    left = list(keys)
    while left:
        assert time.monotonic() < late_s, f"not within {deadline_s:g} s: {len(left)} keys are deleted"
        some, left = left[:DELETES_AT_ONCE], left[DELETES_AT_ONCE:]
        ends = await asyncio.gather(*map(users.delete, some), return_exceptions=True)
        for key, end in zip(some, ends, strict=True):
            if isinstance(end, OutcomeUnknown | Unavailable):
                left.append(key)
            elif end is not None:
                raise end


async def drained(queue: AsyncQueue, *, max_items: int, deadline_s: float = WAIT_S) -> list[Any]:
    """All items of a queue, taken `max_items` at a time until it is empty."""
    found: list[Any] = []
    async with asyncio.timeout(deadline_s):
        while items := await queue.dequeue(max_items=max_items):
            found += items
    return found


def stop(cluster: LocalCluster, replica: str) -> int:
    """End a replica by SIGTERM: its exit code."""
    pid = cluster.pids[replica]
    os.kill(pid, signal.SIGTERM)
    ended: list[int] = []

    def has_ended() -> bool:
        ended.extend(code for id, code in cluster.died() if id == replica)
        return bool(ended)

    until_now(has_ended, f"{replica} has ended", deadline_s=STOP_S_MAX + SLACK_S)
    return ended[0]


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie; orphans may wait long for somebody to reap them."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return not stat.parent.parent.joinpath("self").exists()  # no /proc here: the signal reached it
