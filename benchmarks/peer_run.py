"""Drives other systems, by a folder of scripts that start them (not part of this repository). Runs in a Python that has
their client packages; `peers.py` calls it.

    python peer_run.py FOLDER etcd --works A,C,REST        etcd's part of the works: gRPC, and its JSON gateway for REST
    python peer_run.py FOLDER sweep [--widths 1 4 ...] [--seconds S]     operations in flight, RabbitMQ and etcd
    python peer_run.py FOLDER consumers [--consumers 16]   RabbitMQ; one request per line of standard input, see `Consumers`

One JSON line per figure. Quorum queues, each item on disk at a majority before it is confirmed, 100 bytes an item.
"""

import argparse
import asyncio
import base64
import importlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

# Without our package, but with the very lines that ours is measured with.
sys.path.append(str(Path(__file__).parents[1] / "measurement" / "speed"))
from histogram import percentiles, rounded
from in_flight import Taken, in_flight
from plain_http import PlainConnection

HOST: Final = "127.0.0.1"
FORM_S: Final = 60.0
READY_S: Final = 120.0
IDLE_S: Final = 1.0
"""A consumer that was sent nothing for so long has seen the end of the queue."""
REST_CONNECTIONS: Final = 64
REST_OPERATIONS: Final = 3000
KEYS: Final = 1000
MOST: Final = 100_000
"""Operations of one point of the sweep, and items that its queue holds at most."""


def tell(**line: Any) -> None:
    """One line."""
    print(json.dumps(line), flush=True)


def look_into(folder: str) -> None:
    """Scripts of this folder can be loaded, also by processes that are spawned; behind those of our own."""
    sys.path.append(folder)
    os.environ["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), folder])


def load(name: str) -> Any:
    """A script of the folder, as a module."""
    return importlib.import_module(name)


@contextmanager
def rabbit_cluster() -> Iterator[Any]:
    """Three nodes of RabbitMQ that know each other."""
    cluster = load("rabbitmq_peer").Cluster()
    try:
        until_s = time.monotonic() + FORM_S
        while True:
            status = cluster.ctl("r0", "cluster_status", "--formatter", "json")
            if all(status.count(f"{name}@localhost") > 1 for name in cluster.names):
                break
            if time.monotonic() > until_s:
                raise RuntimeError(f"no cluster after {FORM_S:.0f} s: {status[-400:]}")
            time.sleep(0.5)
        yield cluster
    finally:
        cluster.cleanup()


@contextmanager
def etcd_cluster() -> Iterator[Any]:
    """Three members of etcd."""
    cluster = load("etcd_peer").Cluster()
    try:
        yield cluster
    finally:
        cluster.p.cleanup()


# The works


def etcd_works(works: set[str]) -> None:
    """Only what ours is held against: gRPC for A to C, and the JSON gateway under the load generator that ours has."""
    etcd, common = load("etcd_peer"), load("common")
    if own := works & {"A", "B", "C"}:
        common.ONLY = own  # What its `wants` asks.
        report = common.Report("etcd 3.4", "fsync per raft WAL write on every member (default)")
        with etcd_cluster() as cluster:
            asyncio.run(etcd.bench(cluster, report, "grpc-aio", 0))
        report.flush()
    if "REST" in works:
        with etcd_cluster() as cluster:
            leader = cluster.cl[cluster.leader()]
            for mode, urls in (
                ("json-plain, leader", [leader]),
                ("json-plain, all members", list(cluster.cl.values())),
            ):
                per_s = asyncio.run(json_enqueues(etcd, urls, mode))
                tell(peer="etcd 3.4", mode=mode, workload="REST", figure="enqueue", median=round(per_s, 1))


async def json_enqueues(etcd: Any, urls: list[str], name: str) -> float:
    """Enqueues a second over plain connections: a transaction that creates a key, as in the gRPC recipe."""
    places = [urlsplit(url) for url in urls]
    free = [
        await PlainConnection.open(str(place.hostname), int(place.port or 80))
        for place in (places[number % len(places)] for number in range(REST_CONNECTIONS))
    ]
    value = base64.b64encode(b"x" * 100).decode()
    prefix = name.encode()

    async def enqueue(_: int) -> None:
        connection = free.pop()
        key = base64.b64encode(etcd.qkey(prefix)).decode()
        compare = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
        body = {"compare": [compare], "success": [{"requestPut": {"key": key, "value": value}}]}
        status = await connection.post("/v3/kv/txn", json.dumps(body).encode())
        assert status == 200, f"an enqueue was answered with {status}"
        free.append(connection)

    await in_flight(enqueue, REST_CONNECTIONS, 10.0, REST_CONNECTIONS)
    found = await in_flight(enqueue, REST_CONNECTIONS, 10.0, REST_OPERATIONS)
    for connection in free:
        connection.close()
    return len(found.each_s) / found.seconds


# Operations in flight


def told(taken: Taken) -> dict[str, float]:
    """How many a second, and the percentiles of what each took."""
    line = {"count": len(taken.each_s), "per_s": rounded(len(taken.each_s) / taken.seconds)}
    return line | {f"{name}_ms": value for name, value in percentiles(taken.each_s).items()}


async def sweep_etcd(cluster: Any, widths: list[int], seconds: float) -> None:
    """Over gRPC, to the leader."""
    etcd, common = load("etcd_peer"), load("common")
    client = etcd.Grpc(cluster.cl[cluster.leader()])

    async def put(number: int) -> None:
        await client.put(b"k%d" % (number % KEYS), common.item("s", number))

    async def get(number: int) -> None:
        await client.get(b"k%d" % (number % KEYS))

    async def enqueue(number: int) -> None:
        assert await client.create([(etcd.qkey(b"q/"), common.item("s", number))])

    await in_flight(put, 16, 10.0, KEYS)
    for name, operation in (("put", put), ("get", get), ("enqueue", enqueue)):
        for width in widths:
            found = told(await in_flight(operation, width, seconds, MOST))
            tell(sweep=name, system="etcd", in_flight=width, **found)
    await client.close()


async def sweep_rabbit(cluster: Any, widths: list[int], seconds: float) -> None:
    """Enqueues with confirms. Dequeues: how many a second when pushed, and what each takes when asked for."""
    rabbit, common, aio_pika = load("rabbitmq_peer"), load("common"), load("aio_pika")
    connection, channel = await rabbit.aio(cluster, "r0")
    for width in widths:
        name = f"s{width}"
        queue = await channel.declare_queue(name, durable=True, arguments=rabbit.QARGS)

        async def enqueue(number: int, name: str = name) -> None:
            message = aio_pika.Message(common.item("s", number), delivery_mode=2)
            await channel.default_exchange.publish(message, name)

        async def dequeue(_: int, queue: Any = queue) -> None:
            await (await queue.get(fail=True)).ack()

        filled = told(await in_flight(enqueue, width, seconds, MOST))
        tell(sweep="enqueue", system="RabbitMQ", in_flight=width, **filled)
        asked = told(await in_flight(dequeue, width, seconds, int(filled["count"]) // 2))
        left = int(filled["count"] - asked["count"])
        begun_s = time.perf_counter()
        got = len(await rabbit.consume(channel, queue, left, width, 4 * seconds))
        pushed = float(f"{got / (time.perf_counter() - begun_s):.4g}")
        line = asked | {"per_s": max(pushed, asked["per_s"]), "pushed_per_s": pushed}
        tell(sweep="dequeue", system="RabbitMQ", in_flight=width, **line)
        await queue.delete(if_unused=False, if_empty=False)
    await connection.close()


# Consumers


class Consumers:
    """Processes that drain one queue. Asked by lines `{"name": …, "consumers": N, "prefetch": P, "batch": B, "items": M}`, it
    answers each with `{"taken": …, "seconds": …, "items_per_s": …}`. Items are acknowledged B at a time."""

    def __init__(self, cluster: Any) -> None:
        self._cluster: Final = cluster

    def serve(self) -> None:
        """Until standard input ends."""
        tell(ready=True)
        for line in sys.stdin:
            tell(**self.run(**json.loads(line)))

    def run(self, name: str, consumers: int, prefetch: int, batch: int, items: int) -> dict[str, Any]:
        """Fill a queue and have it drained."""
        rabbit, common = load("rabbitmq_peer"), load("common")
        connection, channel = rabbit.blocking(self._cluster)
        channel.queue_declare(name, durable=True, arguments=rabbit.QARGS)
        rabbit.Bulk(
            self._cluster, name, items=[common.item(name, number) for number in range(items)], secs=60
        ).run()
        context = multiprocessing.get_context("spawn")
        start, told = context.Barrier(consumers), context.Queue()
        ports = list(self._cluster.port.values())
        processes = [
            context.Process(target=consume, args=(ports[each % 3], name, prefetch, batch, start, told))
            for each in range(consumers)
        ]
        for process in processes:
            process.start()
        results = [told.get(timeout=READY_S * 2) for _ in processes]
        for process in processes:
            process.join()
        time.sleep(IDLE_S / 2)  # Acknowledgements have no answer.
        left = channel.queue_declare(name, passive=True).method.message_count
        assert left == 0, f"{left} items are left"
        channel.queue_delete(name)
        connection.close()
        seconds = max(each["ended_s"] for each in results) - min(each["begun_s"] for each in results)
        taken = sum(each["taken"] for each in results)
        return {"taken": taken, "seconds": round(seconds, 3), "items_per_s": round(taken / seconds, 1)}


class Consumer:
    """One consumer, pushed to, on pika's leanest connection."""

    def __init__(self, port: int, name: str, prefetch: int, batch: int, ready: Callable[[], Any]) -> None:
        pika = load("pika")
        self.taken, self.begun_s, self.ended_s = 0, 0.0, 0.0
        self._name, self._prefetch, self._batch, self._ready = name, prefetch, batch, ready
        self._connection: Final = pika.SelectConnection(
            pika.ConnectionParameters(HOST, port, heartbeat=0),
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._opened),
            on_close_callback=lambda connection, _: connection.ioloop.stop(),
        )

    def run(self) -> None:
        """Until the queue is empty."""
        self._connection.ioloop.start()

    def _opened(self, channel: Any) -> None:
        channel.basic_qos(prefetch_count=self._prefetch, callback=lambda _: self._begin(channel))

    def _begin(self, channel: Any) -> None:
        self._ready()
        self.begun_s = self.ended_s = time.monotonic()
        channel.basic_consume(self._name, self._message)
        self._connection.ioloop.call_later(IDLE_S, lambda: self._look(channel))

    def _message(self, channel: Any, method: Any, _: Any, __: bytes) -> None:
        self.taken += 1
        self.ended_s = time.monotonic()
        if self.taken % self._batch == 0:
            channel.basic_ack(method.delivery_tag, multiple=True)

    def _look(self, channel: Any) -> None:
        if time.monotonic() - self.ended_s < IDLE_S:
            self._connection.ioloop.call_later(IDLE_S / 4, lambda: self._look(channel))
            return
        if self.taken % self._batch:
            channel.basic_ack(0, multiple=True)  # All that is open.
        self._connection.close()


def consume(
    port: int, name: str, prefetch: int, batch: int, start: Barrier, told: "Queue[dict[str, float]]"
) -> None:
    """In a process of its own: take until the queue is empty, and tell how much it was, from when until when."""
    consumer = Consumer(port, name, prefetch, batch, lambda: start.wait(READY_S))
    consumer.run()
    told.put({"taken": consumer.taken, "begun_s": consumer.begun_s, "ended_s": consumer.ended_s})


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument("what", choices=("etcd", "sweep", "consumers"))
    parser.add_argument("--works", default="A,B,C,REST")
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 4, 16, 64, 256])
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    look_into(options.folder)
    if options.what == "etcd":
        etcd_works(set(options.works.split(",")))
    elif options.what == "sweep":
        with rabbit_cluster() as cluster:
            asyncio.run(sweep_rabbit(cluster, options.widths, options.seconds))
        with etcd_cluster() as cluster:
            asyncio.run(sweep_etcd(cluster, options.widths, options.seconds))
    else:
        with rabbit_cluster() as cluster:
            Consumers(cluster).serve()


if __name__ == "__main__":
    main()
