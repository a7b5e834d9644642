"""What tests of the transport share: a consumer of Kombu that keeps what it is given, publishing, and looks at queues."""

from collections.abc import Callable
from typing import Any, Final

from kombu import Connection, Consumer, Producer, Queue

from quorate.client_sdk import Client
from tests.system.harness import until_now

WAIT_S: Final = 90.0
LEASE_S: Final = 6.0
"""Where leases are to be renewed: a consumer that a busy machine holds up for two thirds of it keeps them all the same."""
LONG_S: Final = 600.0
"""Where they are not."""

Connect = Callable[..., Connection]


class Reader:
    """A consumer that keeps what it is given."""

    def __init__(self, connection: Connection, *queues: Queue, most: int = 0, no_ack: bool = False) -> None:
        self.got: Final[list[Any]] = []
        self.channel: Final = connection.channel()
        self._connection: Final = connection
        consumer = Consumer(self.channel, list(queues), no_ack=no_ack, on_message=self.got.append)
        self.consumer: Final = consumer
        consumer.qos(prefetch_count=most)
        consumer.consume()

    def bodies(self) -> list[Any]:
        """What was sent in the messages that came."""
        return [message.payload for message in self.got]

    def drain(self) -> None:
        """Be given what is there now."""
        try:
            self._connection.drain_events(timeout=0.05)
        except TimeoutError:
            return

    def until(self, count: int) -> list[Any]:
        """Read on until so many messages came in all: these."""

        def has_come() -> bool:
            self.drain()
            return len(self.got) >= count

        until_now(has_come, f"{count} messages", deadline_s=WAIT_S)
        assert len(self.got) == count
        return self.got


def send(connection: Connection, queue: Queue, *bodies: Any, **properties: Any) -> None:
    producer = Producer(connection, exchange=queue.exchange, routing_key=queue.routing_key)
    for body in bodies:
        producer.publish(body, declare=[queue], **properties)


def held_by_anyone(client: Client, queue: Queue) -> int:
    return client.queue(queue.name).leases().held


def until_settled(client: Client, queue: Queue) -> None:
    """Wait until nothing is delivered, and check that nothing is left: one look, for what is given back may be taken again."""
    look = client.queue(queue.name)

    def is_settled() -> bool:
        counts = look.leases()
        return counts.held == counts.waiting == 0

    until_now(is_settled, "all is settled", deadline_s=WAIT_S)
    assert look.size() == 0
