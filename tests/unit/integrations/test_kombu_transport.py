"""The transport under Kombu's own classes, on three replicas that are processes: what a message goes through."""

import multiprocessing
import threading
import time
import uuid
from typing import Any

import pytest
from kombu import Connection, Exchange, Producer, Queue

from quorate.client_sdk import Client, Closed, OutcomeUnknown, Unavailable
from quorate.client_sdk import Queue as SdkQueue
from tests.system.harness import until_now
from tests.unit.integrations.kombu_reader import (
    LEASE_S,
    WAIT_S,
    Connect,
    Reader,
    held_by_anyone,
    send,
    until_settled,
)


def test_what_is_sent_is_received_in_order_and_gone_once_acknowledged(
    connected: Connect, client: Client, queue: Queue
) -> None:
    send(connected(), queue, "a", {"b": [1, None, "ü"]}, 3, headers={"who": "me"})
    reader = Reader(connected(), queue)
    reader.until(3)
    assert reader.bodies() == ["a", {"b": [1, None, "ü"]}, 3]
    first = reader.got[0]
    assert first.headers["who"] == "me"
    assert not first.delivery_info["redelivered"]
    assert first.delivery_info["routing_key"] == queue.name
    for message in reader.got:
        message.ack()
    until_settled(client, queue)


def test_what_is_not_acknowledged_stays_on_the_replicas(
    connected: Connect, client: Client, queue: Queue
) -> None:
    send(connected(), queue, "x")
    Reader(connected(), queue).until(1)
    assert held_by_anyone(client, queue) == 1


def test_a_requeued_message_comes_again_and_says_so(connected: Connect, client: Client, queue: Queue) -> None:
    send(connected(), queue, "x")
    reader = Reader(connected(), queue)
    reader.until(1)[0].requeue()
    again = reader.until(2)[1]
    assert again.payload == "x"
    assert again.delivery_info["redelivered"]
    assert again.headers["x-delivery-count"] == 2
    assert again.delivery_tag != reader.got[0].delivery_tag
    again.ack()
    until_settled(client, queue)


def test_a_rejected_message_is_a_dead_letter(connected: Connect, client: Client, queue: Queue) -> None:
    send(connected(), queue, "x")
    Reader(connected(), queue).until(1)[0].reject()
    until_settled(client, queue)
    (letter,) = client.queue(queue.name).dead_letters()
    assert letter.reason == "rejected"
    assert letter.value["properties"]["delivery_info"]["routing_key"] == queue.name


def test_a_message_that_is_delivered_too_often_is_a_dead_letter(
    connected: Connect, client: Client, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    send(connected(), queue, "x", headers={"task": "shop.total", "id": "4711"})
    reader = Reader(connected(max_deliveries=2), queue)
    reader.until(1)[0].requeue()
    assert "last time" not in caplog.text
    reader.until(2)[1].requeue()
    assert "shop.total[4711] is delivered for the last time (max_deliveries is 2)" in caplog.text
    found = client.queue(queue.name).dead_letters
    until_now(lambda: bool(found()), "a dead letter", deadline_s=WAIT_S)
    assert [letter.reason for letter in found()] == ["deliveries"]
    assert len(reader.got) == 2


def test_an_item_that_is_no_message_harms_nobody(connected: Connect, client: Client, queue: Queue) -> None:
    made = client.queue(queue.name)
    send(connected(), queue, "x")
    (right,) = made.dequeue(max_items=1)
    properties = right["properties"]
    odd = [
        "odd",
        {"body": "x"},
        {"properties": []},
        right | {"headers": None},
        right | {"body": 5},
        right | {"properties": properties | {"delivery_info": 5}},
        right | {"properties": properties | {"body_encoding": "of nobody"}},
        right | {"body": "abcde"},
        right | {"headers": {"__type__": "datetime", "__value__": "no time"}},
    ]
    made.enqueue_many([*odd, right])
    reader = Reader(connected(), queue)
    reader.until(1)[0].ack()
    until_settled(client, queue)
    assert [letter.value for letter in made.dead_letters()] == odd


@pytest.mark.slow
def test_a_held_message_is_renewed_beyond_its_lease(connected: Connect, client: Client, queue: Queue) -> None:
    send(connected(), queue, "long")
    readers = [Reader(connected(lease_s=LEASE_S), queue) for _ in range(2)]

    def got() -> list[Any]:
        for reader in readers:
            reader.drain()
        return readers[0].got + readers[1].got

    until_now(lambda: bool(got()), "it comes", deadline_s=WAIT_S)
    (message,) = got()
    over_s = time.monotonic() + 1.5 * LEASE_S
    while time.monotonic() < over_s:
        assert got() == [message]
    message.ack()
    until_settled(client, queue)


def test_no_more_is_taken_ahead_than_asked_for(connected: Connect, client: Client, queue: Queue) -> None:
    send(connected(), queue, *range(7))
    reader = Reader(connected(), queue, most=3)
    reader.until(3)
    assert held_by_anyone(client, queue) == 3
    assert client.queue(queue.name).size() == 4
    reader.got[0].ack()
    reader.until(4)
    assert held_by_anyone(client, queue) == 3
    for message in reader.got[1:]:
        message.ack()
    reader.until(7)
    assert reader.bodies() == list(range(7))


def test_a_full_queue_does_not_hide_another(connected: Connect, queue: Queue) -> None:
    small = Queue(f"{queue.name}-small", Exchange(queue.name), routing_key=f"{queue.name}-small")
    connection = connected()
    send(connection, queue, *["big"] * 6)
    send(connection, small, "small")
    reader = Reader(connected(), queue, small, most=1)
    for count in range(1, 4):
        reader.until(count)[-1].ack()
    assert "small" in reader.bodies()


def test_closing_gives_back_at_once_what_was_not_acknowledged(
    connected: Connect, client: Client, queue: Queue
) -> None:
    send(connected(), queue, "acknowledged", "delivered", "waits")
    connection = connected()
    reader = Reader(connection, queue)
    reader.until(2)
    reader.got[0].ack()
    connection.release()
    assert held_by_anyone(client, queue) == 0
    rest = client.queue(queue.name).acquire(10)
    assert len(rest) == 2


def test_who_cancels_keeps_what_was_delivered_and_gives_back_the_rest(
    connected: Connect, client: Client, queue: Queue
) -> None:
    send(connected(), queue, *range(5))
    reader = Reader(connected(), queue)
    until_now(lambda: held_by_anyone(client, queue) == 5, "all is taken ahead", deadline_s=WAIT_S)
    reader.until(2)
    reader.consumer.cancel()
    until_now(lambda: held_by_anyone(client, queue) == 2, "the rest is given back", deadline_s=WAIT_S)
    for message in reader.got:
        message.ack()
    other = Reader(connected(), queue)
    other.until(3)
    assert other.bodies() == [2, 3, 4]
    assert all(message.delivery_info["redelivered"] for message in other.got)


def test_a_consumer_without_acknowledgements_takes_messages_for_good(
    connected: Connect, client: Client, queue: Queue
) -> None:
    send(connected(), queue, "x", "y")
    reader = Reader(connected(), queue, no_ack=True)
    reader.until(2)
    until_settled(client, queue)


def test_messages_can_be_got_one_by_one(connected: Connect, client: Client, queue: Queue) -> None:
    connection = connected()
    send(connection, queue, "x", "y", "z")
    bound = queue(connection.channel())
    first = bound.get()
    assert (first.payload, bound.get(no_ack=True).payload) == ("x", "y")
    first.requeue()
    until_now(lambda: held_by_anyone(client, queue) == 0, "x is given back", deadline_s=WAIT_S)
    assert bound.get().payload == "x"
    assert bound.get().payload == "z"
    assert bound.get() is None


def test_a_simple_queue_of_kombu_works(connected: Connect) -> None:
    with connected().SimpleQueue(f"simple-{uuid.uuid4().hex}") as simple:
        simple.put({"n": 1})
        simple.put({"n": 2})
        message = simple.get(timeout=WAIT_S)
        assert message.payload == {"n": 1}
        message.ack()
        assert simple.get(timeout=WAIT_S).payload == {"n": 2}
        with pytest.raises(simple.Empty):
            simple.get(block=False)


def test_purging_drops_what_waits_and_says_how_much(connected: Connect, client: Client, queue: Queue) -> None:
    connection = connected()
    send(connection, queue, *range(5))
    bound = queue(connection.channel())
    assert bound.queue_declare().message_count == 5
    held, back = bound.get(), bound.get()
    back.requeue()
    until_now(lambda: held_by_anyone(client, queue) == 1, "one is given back", deadline_s=WAIT_S)
    assert bound.queue_declare().message_count == 4
    assert bound.purge() == 4
    assert bound.purge() == 0
    held.ack()
    until_settled(client, queue)
    send(connection, queue, "x")
    bound.delete(if_empty=True)
    assert client.queue(queue.name).size() == 1
    bound.delete()
    assert client.queue(queue.name).size() == 0


def test_a_message_that_expired_is_a_dead_letter(connected: Connect, client: Client, queue: Queue) -> None:
    send(connected(), queue, "x", expiration=0.001)
    send(connected(), queue, "y", expiration=600)
    reader = Reader(connected(), queue)
    reader.until(1)
    assert reader.bodies() == ["y"]
    assert [letter.reason for letter in client.queue(queue.name).dead_letters()] == ["expired"]


def test_a_task_of_celery_that_expired_is_left_to_its_worker(
    connected: Connect, client: Client, queue: Queue
) -> None:
    """Celery names its expiry twice: to the broker, and to the worker, which tells who waits for the result."""
    when = "2020-01-01T00:00:00+00:00"
    send(connected(), queue, "x", expiration=0, headers={"task": "one", "expires": when})
    reader = Reader(connected(), queue)
    (message,) = reader.until(1)
    assert message.headers["expires"] == when
    message.ack()
    until_settled(client, queue)
    assert client.queue(queue.name).dead_letters() == []


def test_a_message_that_is_over_at_once_is_sent_all_the_same(
    connected: Connect, client: Client, queue: Queue
) -> None:
    send(connected(), queue, "x", expiration=0)
    Reader(connected(), queue)
    until_now(lambda: client.queue(queue.name).leases().dead == 1, "it is a dead letter", deadline_s=WAIT_S)


def test_messages_go_to_all_queues_that_are_bound_to_their_topic(connected: Connect, queue: Queue) -> None:
    topic = Exchange(f"topic-{queue.name}", type="topic")
    all_, some = (Queue(f"{queue.name}-{key[0]}", topic, routing_key=key) for key in ("#", "a.*"))
    connection = connected()
    for bound in (all_, some):
        bound(connection.channel()).declare()
    Producer(connection).publish("x", exchange=topic, routing_key="a.b")
    Producer(connection).publish("y", exchange=topic, routing_key="b.b")
    reader = Reader(connected(), all_, some)
    assert sorted(message.payload for message in reader.until(3)) == ["x", "x", "y"]


def test_a_queue_may_have_any_name(connected: Connect, client: Client) -> None:
    name = f"größer/als sonst {uuid.uuid4().hex}"
    odd = Queue(name, Exchange("odd"), routing_key=name)
    send(connected(), odd, "x")
    assert Reader(connected(), odd).until(1)[0].payload == "x"
    assert (
        client.queue(
            name.replace("ö", "=C3=B6").replace("ß", "=C3=9F").replace("/", "=2F").replace(" ", "=20")
        )
        .leases()
        .held
        == 1
    )


def leave(connection: Connection, reader: Reader) -> None:
    """What a forked child does with its parent's connection, as Celery does it after a fork."""
    reader.got[0].ack()
    reader.consumer.cancel()
    connection.collect()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_gives_nothing_back_and_waits_for_nothing(
    connected: Connect, client: Client, queue: Queue
) -> None:
    """The lock of the parent's threads is held when the child is made, and nobody there will let it go."""
    connection = connected()
    send(connection, queue, "x", "y")
    reader = Reader(connection, queue)
    reader.until(1)
    child = multiprocessing.get_context("fork").Process(target=leave, args=(connection, reader))
    is_locked, is_forked = threading.Event(), threading.Event()

    def hold_lock() -> None:
        with reader.channel.qos.leases._changed:
            is_locked.set()
            is_forked.wait(WAIT_S)

    holder = threading.Thread(target=hold_lock)
    holder.start()
    assert is_locked.wait(WAIT_S)
    child.start()
    is_forked.set()
    holder.join()
    child.join(WAIT_S)
    is_stuck = child.exitcode is None
    child.kill()
    assert not is_stuck
    assert child.exitcode == 0
    assert held_by_anyone(client, queue) == 2
    reader.until(2)
    for message in reader.got:
        message.ack()
    until_settled(client, queue)
    assert [message.delivery_info["redelivered"] for message in reader.got] == [False, False]


def test_a_channel_that_connects_again_knows_what_was_declared(
    connected: Connect, client: Client, queue: Queue
) -> None:
    """Kombu connects again after each call that is Unavailable; what is published then has nobody to declare its queue."""
    connection = connected()
    queue(connection.default_channel).declare()
    producer = Producer(connection.default_channel, exchange=queue.exchange, routing_key=queue.name)
    connection.collect()
    connection.ensure_connection()
    producer.revive(connection.default_channel)
    producer.publish("x", retry=True)
    assert client.queue(queue.name).size() == 1


def test_what_may_have_been_added_as_the_client_was_closed_is_not_published_again(
    connected: Connect, client: Client, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, enqueue = connected(), SdkQueue.enqueue

    def closed(handle: SdkQueue, *args: Any, **kwargs: Any) -> None:
        enqueue(handle, *args, **kwargs)
        raise Closed("the client was closed during the operation", definite=False)

    monkeypatch.setattr(SdkQueue, "enqueue", closed)
    producer = Producer(connection.default_channel)
    with pytest.raises(OutcomeUnknown):
        producer.publish(
            "x", exchange="", routing_key=queue.name, retry=True, retry_policy={"max_retries": 1}
        )
    assert client.queue(queue.name).size() == 1


def test_what_one_of_two_queues_has_is_not_published_again(
    connected: Connect, client: Client, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Queue(f"{queue.name}-other", queue.exchange, routing_key=queue.name)
    connection, enqueue, added = connected(), SdkQueue.enqueue, list[str]()

    def second_is_unavailable(handle: SdkQueue, *args: Any, **kwargs: Any) -> None:
        if added:
            raise Unavailable("no quorum", definite=True)
        added.append(handle.name)
        enqueue(handle, *args, **kwargs)

    for each in (queue, other):
        each(connection.default_channel).declare()
    monkeypatch.setattr(SdkQueue, "enqueue", second_is_unavailable)
    producer = Producer(connection.default_channel, exchange=queue.exchange, routing_key=queue.name)
    with pytest.raises(OutcomeUnknown, match="1 of several queues"):
        producer.publish("x", retry=True, retry_policy={"max_retries": 1})
    assert client.queue(queue.name).size() + client.queue(other.name).size() == 1


def test_two_channels_of_a_connection_acknowledge_what_each_was_given(
    connected: Connect, client: Client, queue: Queue
) -> None:
    """Tags are counted by channel: what one was given must not be handed to the other's consumer."""
    connection = connected()
    readers = [Reader(connection, queue, most=1), Reader(connection, queue, most=1)]
    send(connected(), queue, "a", "b")

    def have_come() -> bool:
        readers[0].drain()
        return all(reader.got for reader in readers)

    until_now(have_come, "one message for each", deadline_s=WAIT_S)
    for reader in readers:
        (message,) = reader.got
        assert message.channel is reader.channel
        message.ack()
    until_settled(client, queue)


def test_who_cancels_takes_nothing_from_another_channel(
    connected: Connect, client: Client, queue: Queue
) -> None:
    connection = connected()
    first, second = Reader(connection, queue), Reader(connection, queue)
    second.consumer.cancel()
    send(connected(), queue, "a")
    first.until(1)[0].ack()
    until_settled(client, queue)


@pytest.mark.parametrize("addresses", [1, 2])
def test_what_was_declared_is_known_to_whichever_replica_it_connects_by(
    client: Client, queue: Queue, monkeypatch: pytest.MonkeyPatch, addresses: int
) -> None:
    """A publish is certainly not done; Kombu goes on to the next address, and repeats it."""
    urls = [f"quorate+{url}" for url in sorted(client.document.urls.values())][:addresses]
    enqueue, tried = SdkQueue.enqueue, list[str]()

    def unavailable_once(handle: SdkQueue, *args: Any, **kwargs: Any) -> None:
        tried.append(handle.name)
        if len(tried) == 1:
            raise Unavailable("no quorum", definite=True)
        enqueue(handle, *args, **kwargs)

    with Connection(";".join(urls), transport_options={"deadline_s": 20.0}) as connection:
        queue(connection.default_channel).declare()
        producer = Producer(connection.default_channel, exchange=queue.exchange, routing_key=queue.name)
        monkeypatch.setattr(SdkQueue, "enqueue", unavailable_once)
        producer.publish("x", retry=True, retry_policy={"max_retries": 3})
    assert client.queue(queue.name).size() == 1


def test_a_queue_that_was_deleted_is_sent_nothing_more(
    connected: Connect, client: Client, queue: Queue
) -> None:
    first = connected()
    deleted = Queue(f"{queue.name}-deleted", queue.exchange, routing_key=queue.name)
    for each in (queue, deleted):
        each(first.default_channel).declare()
    deleted(first.default_channel).delete()
    first.release()
    second = connected()
    queue(second.default_channel).declare()
    Producer(second.default_channel, exchange=queue.exchange, routing_key=queue.name).publish("x")
    assert [client.queue(each.name).size() for each in (queue, deleted)] == [1, 0]
