"""What callers feel while members and quorum choices of a running cluster change; beside etcd and RabbitMQ.

Five callers share a queue (enqueue, dequeue), and have a register each (write, read), one operation at a time, with a rest in
between. One JSON line per phase: how long it took, how many operations were under way meanwhile, how many failed, the median, the 99th
percentile and the longest of what they took, in milliseconds; and one per system with the longest of all its changes,
run by run. `quiet` is without a change; `start` is that of a replica's process, which is no member yet. A change is
made by each system's own command, whose start is part of its time.

With `--peers`, each run of ours is followed by one of etcd and one of RabbitMQ, with as many callers at the same pace:
a key for each and a queue made of transactions in etcd, which first move to another member where one does not answer; a quorum
queue in RabbitMQ, where the new member is a node that has joined. etcd's start of a member is part of the change. `replace` puts a new member in the place of
the replica that decides on the queue, or of the leader: etcd's first hands that over, and once more does not
(`replace, not handed over`).

With `--carry ENTRIES KEYS`, the entries wait in QUEUES queues, of which the callers' is one, and each key is an object of its own. Then a learner is added, catches up
(`catches up`: until it was level with each other one), and gets its vote.
"""

import asyncio
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from statistics import median
from subprocess import CalledProcessError, TimeoutExpired
from typing import Any, Final

from circumstances import Line, Setting, fresh
from paced import CALLERS, DEADLINE_S, Call, Callers
from peers import Peers

from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import NoAnswer, get
from quorate.client_sdk import AsyncClient, connect_async
from quorate.client_sdk.protocol.coordinators import Coordinators
from quorate.measurement.speed.histogram import rounded
from quorate.measurement.speed.in_flight import in_flight
from quorate.measurement.speed.works import BATCH_ITEMS, BATCHES_IN_FLIGHT, item

PEERS: Final = ("etcd", "rabbitmq")
CHANGE_S: Final = 900.0
LOOK_S: Final = 0.25
QUEUE: Final = "jobs"
QUEUES: Final = 10
PUTS_IN_FLIGHT: Final = 64
RUNS_MAX: Final = 3
NO_CHANGE: Final = ("quiet", "start")


def calls_of(client: AsyncClient, caller: int) -> Mapping[str, Call]:
    """What one caller does in turn."""
    queue, register = client.queue(QUEUE), client.register(f"leader-{caller}")
    return {
        "enqueue": lambda number: queue.enqueue(item(number)),
        "dequeue": lambda _: queue.dequeue(),
        "write": lambda number: register.write(item(number)),
        "read": lambda _: register.read(),
    }


class Changing:
    """One run on one cluster."""

    def __init__(self, cluster: LocalCluster, callers: Callers, rate: str) -> None:
        self._cluster: Final = cluster
        self._paced: Final = ("--rate", rate) if rate else ()
        self._callers: Final = callers
        self._members: Final = list(cluster.urls)
        self._made = len(self._members)
        self.lines: Final[list[Line]] = []

    async def phase(self, name: str, change: Coroutine[Any, Any, Any]) -> None:
        """What callers feel while it goes on."""
        self.tell({"system": "Quorate", "phase": name} | await self._callers.during(change))

    def tell(self, line: Line) -> None:
        """A line is kept."""
        self.lines.append(line)

    async def started(self) -> tuple[str, str]:
        """The id and the URL of a replica that runs, and is no member."""
        self._made += 1
        id = f"r{self._made}"
        await self.phase("start", asyncio.to_thread(self._cluster.join, id))
        return id, self._cluster.urls[id]

    async def command(self, *words: str) -> None:
        """A change by the command line, until it is over. It asks a replica: those that the cluster file names may all have left."""
        command = [*self._cluster.PROGRAM, *words, "--cluster", self._cluster.urls[self._members[0]]]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        _, said = await asyncio.wait_for(process.communicate(), CHANGE_S)
        if process.returncode:
            raise SystemExit(f"quorate {' '.join(words)} failed: {said.decode()[-500:]}")

    async def changes(self, seconds: float) -> None:
        """All of them, in turn."""
        await self.phase("quiet", asyncio.sleep(seconds))
        added, url = await self.started()
        await self.phase("add", self.command("member", "add", url))
        await self.phase("remove", self.command("member", "remove", added))
        await asyncio.to_thread(self._cluster.kill, added)
        deciding = Coordinators(self._cluster.document, None).ranked(f"queue/{QUEUE}")[0]
        added, url = await self.started()
        await self.phase("replace", self.command("member", "replace", deciding, url))
        self._members[self._members.index(deciding)] = added
        await asyncio.to_thread(self._cluster.kill, deciding)
        quorums = ["Read=1,0", f"Write=0,{len(self._members)}"]
        await self.phase("choice set", self.command("choice", "set", "register/*", *quorums))

    async def carries(self, seconds: float) -> None:
        """A learner comes, catches up, and becomes a voter."""
        await self.phase("quiet", asyncio.sleep(seconds))
        added, url = await self.started()
        await self.phase("add a learner", self.command("member", "add", url, "--votes", "0"))
        await self.phase("catches up", self._caught_up(url))
        await self.phase("make it a voter", self.command("member", "votes", added, "1", *self._paced))

    async def _caught_up(self, url: str) -> None:
        until_s = time.monotonic() + CHANGE_S
        while not await asyncio.to_thread(is_level, url):
            if time.monotonic() > until_s:
                raise SystemExit(f"the learner has not caught up within {CHANGE_S:.0f} s")
            await asyncio.sleep(LOOK_S)


def is_level(url: str) -> bool:
    """Whether the replica there had all that each other one had, a while ago."""
    try:
        told: Any = get(url, "/v1/status", None)
    except NoAnswer:
        return False
    others = told["catch_up"].values()
    return bool(others) and all(each["age_s"] is not None for each in others)


async def fill(cluster: LocalCluster, entries: int, keys: int) -> Line:
    """Entries that wait, and keys: how many a second."""
    async with connect_async(cluster.document) as client:
        queues = [client.queue(name) for name in (QUEUE, *(f"waiting-{place}" for place in range(1, QUEUES)))]
        dictionary = client.dictionary("many")
        batch = min(BATCH_ITEMS, entries)

        async def enqueue(number: int) -> None:
            await queues[number % QUEUES].enqueue_many([item(number * batch + n) for n in range(batch)])

        enqueued = await in_flight(enqueue, BATCHES_IN_FLIGHT, CHANGE_S, entries // batch if batch else 0)
        put = await in_flight(lambda n: dictionary.put(f"key-{n}", item(n)), PUTS_IN_FLIGHT, CHANGE_S, keys)
    entries = len(enqueued.each_s) * batch
    rates = {"entries_per_s": rounded(entries / enqueued.seconds), "keys_per_s": rounded(keys / put.seconds)}
    return {"system": "Quorate", "phase": "fill", "entries": entries, "keys": keys} | rates


async def run_once(setting: Setting, quiet_s: float) -> list[Line]:
    """Ours, on a cluster of its own."""
    options = setting.options
    with fresh(setting.replicas) as cluster:
        filled = [await fill(cluster, *options.carry)] if options.carry else []
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(connect_async(cluster.document, deadline_s=DEADLINE_S))
                for _ in range(CALLERS)
            ]
            calls = [calls_of(client, caller) for caller, client in enumerate(clients)]
            callers = await stack.enter_async_context(Callers(calls, options.rest_ms / 1e3))
            await asyncio.sleep(quiet_s / 2)  # They get to know the replicas.
            run = Changing(cluster, callers, options.rate)
            for line in filled:
                run.tell(line)
            await (run.carries if options.carry else run.changes)(quiet_s)
            return run.lines


def beside(peers: Peers, rest_ms: float, quiet_s: float) -> list[Line]:
    """One run of each of them that ended well."""
    lines: list[Line] = []
    for system in PEERS:
        words = [system, "--rest-ms", str(rest_ms), "--seconds", str(quiet_s)]
        try:
            lines += peers.lines(*words, script="peer_changing.py")
        except (CalledProcessError, TimeoutExpired) as error:
            print(f"{system} failed, and its figures of this run are missing: {error}", file=sys.stderr)
    return lines


def summaries(runs: Sequence[Sequence[Line]]) -> Iterator[Line]:
    """By system, in the order of the lines: the longest of all changes of each run, and how many operations failed in them."""
    for system in dict.fromkeys(line["system"] for run in runs for line in run):
        of_runs = [
            [line for line in run if line["system"] == system and line["phase"] not in NO_CHANGE]
            for run in runs
        ]
        changes = [each for each in of_runs if each]  # A run in which it failed has none.
        longest = [max(line["longest_ms"] for line in each) for each in changes]
        failed = sum(line["failed"] for each in changes for line in each)
        yield {"summary": system, "longest_ms": longest, "median_ms": median(longest), "failed": failed}


def run(setting: Setting) -> Iterator[Line]:
    """What callers feel while members and quorum choices of a running cluster change, or with --carry what a cluster means that holds so much."""
    quiet_s = 0.2 if setting.is_trial else 5.0
    peers = None if setting.options.carry else setting.peers
    runs: list[list[Line]] = []
    for _ in range(min(setting.runs, RUNS_MAX)):
        lines = asyncio.run(run_once(setting, quiet_s))
        if peers is not None:
            lines += beside(peers, setting.options.rest_ms, quiet_s)
        runs.append(lines)
        yield from lines
    if not setting.options.carry:
        yield from summaries(runs)
