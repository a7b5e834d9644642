"""What callers of other systems feel while members change, by a folder of scripts that start these systems (see `peer_run.py`).
`changing.py` calls it.

    python peer_changing.py FOLDER etcd|rabbitmq [--rest-ms 20] [--seconds 5]

One JSON line per phase. Needs the programs of `etcd-server` and `etcd-client`, or of `rabbitmq-server`, and the packages that the
folder's scripts import.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from paced import CALLERS, Call, Callers
from peer_run import etcd_cluster, load, look_into, rabbit_cluster, tell

ATTEMPT_S: Final = 1.0
"""A caller whose request is not answered by then goes to another member."""
AGAIN_S: Final = 0.05
COMMAND_AGAIN_S: Final = 0.25
COMMAND_S: Final = 60.0
PROGRAMS: Final = {
    "etcd": (("etcd", "etcdctl"), "apt-get install etcd-server etcd-client"),
    "rabbitmq": (("rabbitmqctl", "epmd"), "apt-get install rabbitmq-server"),
}

Phase = Callable[[str, Coroutine[Any, Any, Any]], Awaitable[None]]


def check_installed(system: str) -> None:
    """Exits where programs are missing, and says how to get them."""
    programs, advice = PROGRAMS[system]
    if missing := [each for each in programs if shutil.which(each) is None]:
        raise SystemExit(f"{', '.join(missing)} is not installed here: {advice}")


async def command(*words: str, env: Mapping[str, str]) -> str:
    """What a command prints. Raises RuntimeError where it fails."""
    process = await asyncio.create_subprocess_exec(
        *words,
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), COMMAND_S)
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} failed: {said.decode()[-500:]}")
    return said.decode()


async def until_done(*words: str, env: Mapping[str, str], is_done: str | None) -> str:
    """What the command prints when it is not refused any more, or is refused with the words that tell that it was done before, by a try whose answer
    was lost."""
    until_s = time.monotonic() + COMMAND_S
    while True:
        try:
            return await command(*words, env=env)
        except RuntimeError as error:
            if is_done is not None and is_done in str(error):
                return ""
            if time.monotonic() > until_s:
                raise
        await asyncio.sleep(COMMAND_AGAIN_S)


class Roaming:
    """One caller: it keeps to a place while that one answers, and goes to the next where it does not."""

    def __init__(self, places: int, first: int) -> None:
        self._places: Final = places
        self._at = first % places

    async def run(self, attempt: Callable[[int], Awaitable[Any]]) -> None:
        """Until it is done at some place; whoever waits for it has a deadline."""
        while True:
            try:
                async with asyncio.timeout(ATTEMPT_S):
                    await attempt(self._at)
                return
            except Exception:  # noqa: BLE001 - whatever a client raises: the next member may do it
                self._at = (self._at + 1) % self._places
                await asyncio.sleep(AGAIN_S)


# etcd


class Etcd:
    """Members that come and go, each changed by etcdctl."""

    def __init__(self, cluster: Any) -> None:
        self._cluster: Final = cluster
        self._common: Final = load("common")
        self._first: Final = list(cluster.cl.values())
        self._made = len(self._first)

    async def changes(self, phase: Phase) -> None:
        """All of them, in turn."""
        added = self._named()
        ids = [""]

        async def add() -> None:
            ids[0] = await self._add(added)

        async def start() -> None:
            await self._start(added)

        await phase("add as a learner", add())
        await phase("start", start())
        await phase("make it a voter", self._ctl("member", "promote", ids[0]))
        await phase("remove", self._remove(ids[0]))
        await phase("replace", self._replace(hands_over=True))
        await phase("replace, not handed over", self._replace(hands_over=False))

    async def _replace(self, *, hands_over: bool) -> None:
        """The leader, by a new member, which gets the leadership if it is handed over."""
        leader = await asyncio.to_thread(self._cluster.leader)
        leaving = await asyncio.to_thread(self._id_of, leader)
        name = self._named()
        new = await self._add(name)
        await self._start(name)
        await self._ctl("member", "promote", new)
        if hands_over:
            await self._ctl("move-leader", new, at=self._cluster.cl[leader])
        await self._remove(leaving)

    def _named(self) -> str:
        """A new name, with ports."""
        name = f"e{self._made}"
        self._made += 1
        client, peer = self._common.free_ports(2)
        self._cluster.cl[name] = f"http://{self._common.HOST}:{client}"
        self._cluster.peer[name] = f"http://{self._common.HOST}:{peer}"
        return name

    def _id_of(self, name: str) -> str:
        return format(int(self._cluster.status(name)["header"]["member_id"]), "x")

    async def _ctl(self, *words: str, at: str = "", is_done: str | None = None) -> str:
        places = [at] if at else [self._cluster.cl[each] for each in self._members()]
        # Members are changed only while all have been connected for five seconds, and learners promoted once they have caught up.
        command = ("etcdctl", "--endpoints", ",".join(places), *words)
        return await until_done(*command, env={"ETCDCTL_API": "3"}, is_done=is_done)

    async def _remove(self, id: str) -> None:
        """The one that leaves may be the one that is told so: then it answers nothing."""
        await self._ctl("member", "remove", id, is_done="member not found")

    def _members(self) -> list[str]:
        return [name for name, process in self._cluster.p.procs.items() if process.poll() is None]

    async def _add(self, name: str) -> str:
        said = await self._ctl("member", "add", name, "--learner", f"--peer-urls={self._cluster.peer[name]}")
        found = re.search(r"Member\s+([0-9a-f]+) added", said)
        assert found is not None, said
        self._cluster.peer = dict(
            each.split("=", 1) for each in re.findall(r'ETCD_INITIAL_CLUSTER="(.*)"', said)[0].split(",")
        )
        return found[1]

    async def _start(self, name: str) -> None:
        # Where this folder is, the script has it join the cluster that exists.
        (self._cluster.p.dir / name / "member").mkdir(parents=True)
        self._cluster.start(name)
        await asyncio.to_thread(self._common.wait_port, int(self._cluster.cl[name].rpartition(":")[2]))

    def calls_of(self, caller: int) -> Mapping[str, Call]:
        """What one caller does in turn."""
        script, item = load("etcd_peer"), self._common.item
        clients = [script.Grpc(url) for url in self._first]
        roaming, key = Roaming(len(clients), caller), b"leader-%d" % caller

        async def enqueue(number: int) -> None:
            place = script.qkey(b"jobs/")
            await roaming.run(lambda at: clients[at].create([(place, item("s", number))]))

        async def take(at: int) -> None:
            while rows := await clients[at].first(b"jobs/", 1):
                if await clients[at].take(rows):
                    return

        return {
            "enqueue": enqueue,
            "dequeue": lambda _: roaming.run(take),
            "write": lambda number: roaming.run(lambda at: clients[at].put(key, item("s", number))),
            "read": lambda _: roaming.run(lambda at: clients[at].get(key)),
        }


# RabbitMQ


class Rabbit:
    """Nodes that know each other, and members of one quorum queue on them."""

    def __init__(self, cluster: Any) -> None:
        self._cluster: Final = cluster
        self._script: Final = load("rabbitmq_peer")
        self._common: Final = load("common")
        self._first: Final = list(cluster.names)

    async def declare(self) -> None:
        """The queue."""
        connection, channel = await self._script.aio(self._cluster, self._first[0])
        await channel.declare_queue("jobs", durable=True, arguments=self._script.QARGS)
        await connection.close()

    async def changes(self, phase: Phase) -> None:
        """All of them, in turn."""
        name = f"r{len(self._cluster.names)}"
        self._cluster.names.append(name)
        self._cluster.port[name], self._cluster.dist[name] = self._common.free_ports(2)
        await phase("start", self._start(name))
        await phase("add", self._queues("grow", f"{name}@localhost", "all"))
        await phase("remove", self._queues("shrink", f"{name}@localhost"))
        await phase("replace", self._replace(name))

    async def _start(self, name: str) -> None:
        """A node, until it is one of the cluster."""
        await asyncio.to_thread(self._cluster.start, name)
        said = await asyncio.to_thread(self._cluster.ctl, name, "cluster_status", "--formatter", "json")
        assert f"{self._first[0]}@localhost" in said, f"{name} has not joined: {said[-400:]}"

    async def _replace(self, name: str) -> None:
        """The leader, by a member at this node."""
        leader = await self._leader()
        await self._queues("grow", f"{name}@localhost", "all")
        await self._queues("shrink", leader)

    async def _leader(self) -> str:
        said = await asyncio.to_thread(
            self._cluster.ctl, self._first[0], "list_queues", "name", "leader", "--formatter", "json"
        )
        (queue,) = json.loads(said[said.index("[") :])
        return str(queue["leader"])

    async def _queues(self, *words: str) -> None:
        program = Path(self._script.SBIN) / "../lib/rabbitmq_server-3.10.8/sbin/rabbitmq-queues"
        node = self._first[0]
        said = await command(str(program), "-n", f"{node}@localhost", *words, env=self._cluster.env(node))
        assert "jobs" in said, said
        assert "error" not in said, said

    def calls_of(self, caller: int) -> Mapping[str, Call]:
        """What one caller does in turn."""
        roaming, message = Roaming(len(self._first), caller), load("aio_pika").Message
        opened: dict[int, tuple[Any, Any, Any]] = {}

        async def at_place(at: int, work: Callable[[Any, Any], Awaitable[Any]]) -> None:
            if at not in opened:
                connection, channel = await self._script.aio(self._cluster, self._first[at])
                opened[at] = connection, channel, await channel.get_queue("jobs")
            connection, channel, queue = opened[at]
            try:
                await work(channel, queue)
            except BaseException:
                del opened[at]  # Nobody knows what else it would answer.
                with suppress(Exception):
                    await connection.close()
                raise

        async def publish(number: int, channel: Any) -> None:
            body = message(self._common.item("s", number), delivery_mode=2)
            await channel.default_exchange.publish(body, "jobs")

        async def take(queue: Any) -> None:
            if (found := await queue.get(fail=False)) is not None:
                await found.ack()

        return {
            "enqueue": lambda number: roaming.run(
                lambda at: at_place(at, lambda channel, _: publish(number, channel))
            ),
            "dequeue": lambda _: roaming.run(lambda at: at_place(at, lambda _, queue: take(queue))),
        }


async def run(system: str, peer: Etcd | Rabbit, rest_s: float, seconds: float) -> None:
    """All phases, and a line for each."""
    async with Callers([peer.calls_of(caller) for caller in range(CALLERS)], rest_s) as callers:

        async def phase(name: str, change: Coroutine[Any, Any, Any]) -> None:
            tell(system=system, phase=name, **await callers.during(change))

        await asyncio.sleep(seconds / 2)
        await phase("quiet", asyncio.sleep(seconds))
        await peer.changes(phase)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("system", choices=tuple(PROGRAMS))
    parser.add_argument("--rest-ms", type=float, default=20.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    check_installed(options.system)
    look_into(options.folder)
    rest_s = options.rest_ms / 1e3
    if options.system == "etcd":
        with etcd_cluster() as cluster:
            asyncio.run(run("etcd", Etcd(cluster), rest_s, options.seconds))
    else:
        with rabbit_cluster() as cluster:
            rabbit = Rabbit(cluster)

            async def whole() -> None:
                await rabbit.declare()
                await run("RabbitMQ", rabbit, rest_s, options.seconds)

            asyncio.run(whole())


if __name__ == "__main__":
    main()
