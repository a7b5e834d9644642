"""What the transport refuses, and how connections are made and fail, under Kombu's own classes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kombu import Connection, Exchange, Producer, Queue
from kombu.pidbox import Mailbox

from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import (
    BadCluster,
    BadInput,
    Client,
    OutcomeUnknown,
    RefusedByReplicas,
    Unavailable,
    connect,
)
from quorate.integrations import leaseholder
from quorate.integrations.kombu_transport import NO_REMOTE, Transport
from tests.support.certificates import Authority
from tests.system.guarded import GuardedCluster, new_token
from tests.system.harness import Clusters, until_now
from tests.unit.integrations.kombu_reader import LEASE_S, Connect, Reader, send


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda c, q: send(c, q, "x", priority=3), "one queue for each priority"),
        (lambda c, q: Queue(q.name, q.exchange, max_priority=9)(c.channel()).declare(), "max_priority"),
        (
            lambda c, q: Queue(q.name, q.exchange, message_ttl=9)(c.channel()).declare(),
            "message_ttl.*celery inspect",
        ),
        (
            lambda c, q: Queue(q.name, q.exchange, queue_arguments={"x-queue-mode": "lazy"})(
                c.channel()
            ).declare(),
            "x-queue-mode",
        ),
        (lambda c, q: Exchange("all", type="fanout")(c.channel()).declare(), "celery inspect"),
        (lambda c, q: c.channel().basic_ack("1", multiple=True), "each message by itself"),
    ],
)
def test_what_a_queue_cannot_do_is_refused(
    connected: Connect, queue: Queue, act: Callable[[Connection, Queue], object], said: str
) -> None:
    with pytest.raises(NotImplementedError, match=said):
        act(connected(), queue)


def test_remote_control_is_refused_with_its_own_sentence(connected: Connect) -> None:
    """Its queues have a time to live that no user asked for: not a word of it."""
    channel = connected().channel()
    mailbox = Mailbox("celery", type="direct", queue_ttl=300.0, reply_queue_ttl=300.0)
    events = Queue("celeryev.5f", Exchange("celeryev", type="topic"), message_ttl=5.0)
    for queue in (mailbox.get_reply_queue(), mailbox.get_queue("w1@here"), events):
        with pytest.raises(NotImplementedError) as refusal:
            queue(channel).declare()
        assert str(refusal.value) == NO_REMOTE


def test_without_kombu_the_extra_is_named() -> None:
    code = "import sys; sys.modules['kombu'] = None; import quorate.integrations.kombu_transport"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'quorate[celery]'" in done.stderr


def test_a_document_that_is_not_there_is_named() -> None:
    with pytest.raises(BadCluster, match=r"nowhere/cluster\.toml.*from where the program runs"):
        Connection("quorate://nowhere/cluster.toml").connect()


def test_where_nobody_listens_kombu_is_told_to_try_again() -> None:
    connection = Connection("quorate+http://127.0.0.1:9", transport_options={"deadline_s": 1.0})
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9"):
        connection.connect()
    assert Unavailable in Transport.recoverable_connection_errors


def test_a_call_that_no_quorum_serves_ends(clusters: Clusters, caplog: pytest.LogCaptureFixture) -> None:
    """Celery declares queues with a retry that has no end: a declaration that failed would keep a caller for ever."""
    cluster = clusters.start()
    options = {"deadline_s": 1.0, "lease_s": LEASE_S}
    with Connection(f"quorate://{cluster.document_path}", transport_options=options) as connection:
        bound = Queue("jobs", Exchange("jobs"), routing_key="jobs")(connection.channel())
        assert bound.queue_declare().message_count == 0
        reader = connection.Consumer([bound], callbacks=[lambda _, message: message.ack()])
        reader.consume()
        for id in ("r2", "r3"):
            cluster.kill(id)
        assert bound.queue_declare().message_count == 0, "it is not known, and nobody waits for it"
        with pytest.raises(Unavailable):
            bound.queue_declare(passive=True)
        until_now(lambda: "cannot take messages" in caplog.text, "the trouble is told")
        caplog.set_level("INFO")
        for id in ("r2", "r3"):
            cluster.launch(id)
        cluster.ready()
        until_now(lambda: "messages are taken again" in caplog.text, "its end is told")


LONG_LIMITS = """
[clock]
replica_error_s = 0.0

[limits]
deadline_s_max = 90.0
retry_window_s = 120.0
"""
"""So that replicas of a busy machine come back in time."""


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [True, False])
def test_a_message_sent_while_too_few_replicas_answer_is_added_once_when_they_are_back(
    clusters: Clusters, queue: Queue, is_killed: bool
) -> None:
    """Celery cannot repeat a retry, or the next call of a chain: it would report it failed, though it may be run."""
    cluster = clusters.start(settings=LONG_LIMITS)
    url = f"quorate://{cluster.document_path}"
    options = {"deadline_s": 1.0, "publish_s": 80.0}
    with (
        Connection(url, transport_options=options) as connection,
        Connection(url, transport_options=options | {"publish_s": 0.5}) as hasty,
        connect(cluster.document, deadline_s=20.0) as client,
        ThreadPoolExecutor(1) as others,
    ):
        producers = {each: Producer(each, exchange=queue.exchange) for each in (connection, hasty)}
        other = Queue(f"{queue.name}-hasty", queue.exchange, routing_key="hasty")
        for each, bound in ((connection, queue), (hasty, other)):
            bound(each.channel()).declare()
        for id in ("r2", "r3"):
            cluster.kill(id) if is_killed else os.kill(cluster.pids[id], signal.SIGSTOP)
        sent = others.submit(producers[connection].publish, "x", routing_key=queue.routing_key)
        with pytest.raises(OutcomeUnknown):
            producers[hasty].publish("y", routing_key="hasty")
        with pytest.raises(TimeoutError):
            sent.result(2 * options["deadline_s"])
        cluster.restart("r2") if is_killed else os.kill(cluster.pids["r2"], signal.SIGCONT)
        sent.result(options["publish_s"])
        (item,) = client.queue(queue.name).items()
        assert Reader(connection, queue).until(1)[0].payload == "x"
        assert item["properties"]["delivery_info"]["routing_key"] == queue.routing_key


def test_of_several_replicas_one_must_be_there(
    shared_cluster: LocalCluster, client: Client, queue: Queue
) -> None:
    url = f"quorate+http://127.0.0.1:9;quorate+{shared_cluster.urls['r1']}"
    with Connection(url, transport_options={"deadline_s": 20.0}) as connection:
        connection.ensure_connection(max_retries=3, interval_start=0)
        send(connection, queue, "x")
    assert client.queue(queue.name).size() == 1


@pytest.mark.slow
def test_a_guarded_cluster_is_told_token_and_authority(tmp_path: Path, queue: Queue) -> None:
    authority = Authority(tmp_path, "authority")
    cluster = GuardedCluster(tmp_path, authority=authority)
    token = new_token(cluster.tokens, "write", name="shop")
    with cluster:
        files = {"ca_certs": str(authority.own.certificate)}
        for wrong in ({}, {"token": f"qt_aaaaaa_{'0' * 43}"}):
            connection = Connection(f"quorate+{cluster.url}", transport_options=wrong, ssl=files)
            with pytest.raises(RefusedByReplicas, match="broker_transport_options") as refusal:
                connection.connect()
            assert "0" * 43 not in str(refusal.value)
        options = {"token": token, "deadline_s": 20.0}
        with Connection(f"quorate+{cluster.url}", transport_options=options, ssl=files) as connection:
            send(connection, queue, "x")
            assert Reader(connection, queue).until(1)[0].payload == "x"
        with pytest.raises(Unavailable, match="certificate"):
            Connection(f"quorate+{cluster.url}", transport_options=options).connect()


def test_a_wrong_token_is_told_at_the_first_use_of_a_document(tmp_path: Path, queue: Queue) -> None:
    with GuardedCluster(tmp_path) as cluster:
        connection = Connection(f"quorate://{cluster.path}")
        with connection, pytest.raises(RefusedByReplicas, match="broker_transport_options"):
            send(connection, queue, "x")


@pytest.mark.slow
def test_closing_without_a_quorum_ends_and_says_what_is_left(
    clusters: Clusters, queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(leaseholder, "CLOSE_S", 1.0)
    cluster = clusters.start()
    connection = Connection(
        f"quorate://{cluster.document_path}", transport_options={"lease_s": 600.0, "deadline_s": 20.0}
    )
    send(connection, queue, "x")
    reader = Reader(connection, queue)
    (message,) = reader.until(1)
    for replica in ("r1", "r2"):
        cluster.kill(replica)
    message.ack()
    connection.release()
    assert "closed before the replicas heard what became of 1 messages" in caplog.text
    until_now(lambda: not threads(), "its threads end")


@pytest.mark.slow
def test_a_queue_of_eventual_consistency_is_refused(clusters: Clusters) -> None:
    """Whether it is empty, and may be deleted, is decided by what is read."""
    cluster = clusters.start(rules=[ChoiceRule("queue/weak", consistency="eventual")])
    with (
        Connection(f"quorate://{cluster.document_path}", transport_options={"deadline_s": 20.0}) as one,
        pytest.raises(BadInput, match="queue/weak is of eventual consistency"),
    ):
        send(one, Queue("weak", Exchange("weak"), routing_key="weak"), "x")


def test_a_queue_without_a_quorum_costs_no_other_one_its_leases(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """r3 is killed while one consumer holds messages of a queue that needs all three, and of one that does not."""
    monkeypatch.setattr(leaseholder, "CLOSE_S", 1.0)
    strict, loose = (Queue(name, Exchange(name), routing_key=name) for name in ("strict", "loose"))
    all_three = ChoiceRule("queue/strict", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)})
    cluster = clusters.start(rules=[all_three])
    url = f"quorate://{cluster.document_path}"
    options = {"lease_s": LEASE_S, "deadline_s": 20.0}
    with (
        Connection(url, transport_options=options) as one,
        Connection(url, transport_options=options) as other,
        connect(cluster.document, deadline_s=20.0) as client,
    ):
        send(one, strict, "done", "held")
        send(one, loose, "done", "held")
        got = Reader(one, strict, loose).until(4)
        waiting = Reader(other, loose)
        cluster.kill("r3")
        for message in sorted(got, key=lambda each: str(each.delivery_info["routing_key"]), reverse=True):
            if message.payload == "done":
                message.ack()
        over_s = time.monotonic() + 1.5 * LEASE_S
        while time.monotonic() < over_s:
            waiting.drain()
        assert waiting.got == []
        assert client.queue("loose").leases().held == 1


def threads() -> list[str]:
    """The threads of the transport that run."""
    return [each.name for each in threading.enumerate() if each.name in ("quorate-fetch", "quorate-keep")]
