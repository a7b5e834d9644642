"""A transport for Kombu, and so for Celery: queues on the replicas, messages under leases. docs/how-to/celery.md shows how it is used.

Owns the step from Kombu's virtual transport to the SDK. Importing it makes the broker URLs `quorate+http://…`,
`quorate+https://…` and `quorate://PATH` known to Kombu. The queue that Kombu calls `shop` is the object `queue/shop`
(`result_keys` says what becomes of other characters), and its items are messages as Kombu makes them.

A message that was delivered and not acknowledged is held by a lease on the replicas, not in the memory of this client: it
comes back when the lease is over, unless it was renewed, which `Leaseholder` does for as long as the process lives.
Exchanges and bindings are those that each process declares: direct and topic ones. There is no fanout.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, Final

try:
    from kombu.exceptions import ChannelError
    from kombu.transport import TRANSPORT_ALIASES, virtual
    from kombu.utils.json import dumps, loads
    from kombu.utils.uuid import uuid
except ModuleNotFoundError as error:
    raise ImportError("Kombu is not installed: pip install 'quorate[celery]'") from error

from .. import __version__
from ..adts.keys import key_name
from ..client_sdk import (
    BadCluster,
    Client,
    Closed,
    OutcomeUnknown,
    Queue,
    QuorateError,
    RefusedByReplicas,
    Unavailable,
    connect,
)
from ..client_sdk.adapters.standard_parts import check_atomic
from .broker_address import SCHEME, Address, address_of, shown
from .custody import Ending, Held
from .leaseholder import AT_ONCE_MAX, Leaseholder
from .message_parts import Message, expires_s_of, is_message, name_of
from .result_keys import library_key

DRAIN_S: Final = 1.0
"""How long a wait without a deadline goes on before it looks again."""

NO_REMOTE: Final = (
    "Remote control (celery inspect, control, status), events and broadcasts do not work over Quorate."
)

_UNREADABLE: Final = (ValueError, TypeError, AttributeError, LookupError, ArithmeticError)
"""What Kombu's JSON and codecs raise for what they do not know."""

_logger: Final = logging.getLogger("quorate.kombu")

_declared: Final[dict[tuple[str, ...], virtual.BrokerState]] = {}
"""By cluster, what this process has declared: where Kombu connects again, it declares nothing again, and what is published would be dropped
without a word."""


class QoS(virtual.QoS):  # type: ignore[misc]  # Kombu has no types for it
    """Acknowledgements of one channel by delivery tag: they go to the replicas. It is made when the channel first consumes."""

    def __init__(self, channel: "Channel", prefetch_count: int = 0) -> None:
        transport = channel.connection
        self.leases: Final = Leaseholder(
            transport.address, transport.queue, lambda: transport.arrived.put(channel)
        )
        super().__init__(channel, prefetch_count)

    @property
    def prefetch_count(self) -> int:
        """How many messages may be delivered and not acknowledged; 0 for as many as `Leaseholder` holds by itself."""
        return self._prefetch_count

    @prefetch_count.setter
    def prefetch_count(self, count: int) -> None:
        self._prefetch_count = count or 0
        self.leases.set_most(self._prefetch_count)

    def append(self, message: virtual.Message, delivery_tag: str) -> None:
        """Kombu tells that a message was delivered: it is held already."""

    def ack(self, delivery_tag: str) -> None:
        """The message is done with."""
        self.leases.end(delivery_tag, Ending.ACK)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """The message goes back to its queue, or to the dead letters."""
        self.leases.end(delivery_tag, Ending.RELEASE if requeue else Ending.REJECT)

    def restore_unacked(self) -> list[object]:
        """Give back all that is not acknowledged; what could not be given back: nothing, for leases end by themselves."""
        self.leases.release_all()
        return []

    def restore_unacked_once(self, stderr: object = None) -> None:
        """The same as the last act of this channel, or of this process."""
        self._on_collect.cancel()
        self.leases.close()


class Channel(virtual.Channel):  # type: ignore[misc]  # as above
    """A channel: its queues are objects of the cluster, its messages are held by leases of its own."""

    QoS = QoS
    connection: "Transport"

    def __init__(self, connection: "Transport", **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._no_ack: Final[set[str]] = set()
        self._added = 0
        """To how many queues the message that is being published was added."""
        self._told: Final[dict[str, tuple[str, Callable[[Message], Any]]]] = {}
        """By consumer tag its queue, and what is told of a message. Kombu keeps these by queue alone, for all channels of a connection: a message would
        be handed to another channel's consumer, and its acknowledgement end the lease that this one has under the same tag."""

    def exchange_declare(self, exchange: str | None = None, type: str = "direct", **kwargs: Any) -> None:
        """Declare a direct or topic exchange, for this process."""
        if type not in (*self.connection.implements.exchange_type, None, ""):
            raise NotImplementedError(
                f"exchange {exchange!r} of type {type}: over Quorate there are direct and topic exchanges only. {NO_REMOTE}"
            )
        super().exchange_declare(exchange, type, **kwargs)

    def prepare_queue_arguments(self, arguments: Mapping[str, Any], **kwargs: Any) -> Mapping[str, Any]:
        """What is asked that a queue on the replicas cannot do: `queue_declare` refuses it, for it knows which queue it is.

        `expires` is for queues that nobody needs any more; they stay, empty.
        """
        asked = {name: value for name, value in kwargs.items() if value is not None and name != "expires"}
        return asked | {
            name: arguments[name] for name in arguments if name[:2] == "x-" and name != "x-expires"
        }

    def queue_declare(
        self,
        queue: str | None = None,
        passive: bool = False,
        arguments: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> virtual.base.queue_declare_ok_t:
        """Declare a queue, for this process, and count what waits; who only asks (`passive`) is told where that cannot be known.

        Else 0 is answered then: what is declared is about to be used, and Kombu would declare again and again, without an end
        and without a word to who called a task.
        """
        name = queue or f"amq.gen-{uuid()}"
        if arguments:
            raise NotImplementedError(_refusal(name, arguments))
        try:
            return super().queue_declare(name, passive, **kwargs)
        except Unavailable as error:
            if passive:
                raise
            _logger.info("queue %s: declared, though no quorum answers: %s", name, error)
            return virtual.base.queue_declare_ok_t(name, 0, 0)

    def queue_delete(
        self, queue: str, if_unused: bool = False, if_empty: bool = False, **kwargs: Any
    ) -> None:
        """Drop what waits in the queue, and its bindings in this process. The object stays, empty."""
        if if_empty and self._size(queue):
            return
        self._purge(queue)
        self.state.queue_bindings_delete(queue)
        for (
            exchange
        ) in self.state.exchanges.values():  # Kombu leaves it there, and this outlives the connection.
            exchange["table"][:] = [row for row in exchange["table"] if row[2] != queue]

    def basic_consume(
        self,
        queue: str,
        no_ack: bool,
        callback: Callable[[virtual.Message], Any],
        consumer_tag: str,
        **kwargs: Any,
    ) -> None:
        """Deliver this queue's messages to `callback`, ahead of what it asks for as the prefetch count says."""
        super().basic_consume(queue, no_ack, callback, consumer_tag, **kwargs)
        self._told[consumer_tag] = queue, self.connection._callbacks[queue]
        if no_ack:
            self._no_ack.add(queue)
        self.qos.leases.watch(queue)

    def basic_cancel(self, consumer_tag: str) -> None:
        """Deliver no more; messages that were taken ahead and not delivered go back."""
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        self._told.pop(consumer_tag, None)
        if queue is not None and queue not in self._active_queues:
            self._no_ack.discard(queue)
            self.qos.leases.unwatch(queue)

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> virtual.Message | None:
        """Take one message now, if there is one."""
        held = self.qos.leases.get(queue)
        raw = self._opened(held, no_ack) if held is not None else None
        return None if raw is None else self.Message(raw, channel=self)

    def basic_ack(self, delivery_tag: str, multiple: bool = False) -> None:
        """Acknowledge one message."""
        if multiple:
            raise NotImplementedError("multiple=True: acknowledge each message by itself")
        super().basic_ack(delivery_tag)

    def basic_publish(self, message: Message, exchange: str, routing_key: str, **kwargs: Any) -> Any:
        """Add a message to all queues that it is for. Where some have it when another one cannot, nobody may repeat all of it."""
        self._added = 0
        try:
            return super().basic_publish(message, exchange, routing_key, **kwargs)
        except QuorateError as error:
            if not self._added or not error.definite:
                raise
            raise OutcomeUnknown(
                f"{self._added} of several queues have the message, and then: {error}"
            ) from error

    def deliver_next(self) -> bool:
        """Hand the next message that arrived to its consumer; whether there was one."""
        held = self.qos.leases.next_ready()
        raw = self._opened(held, held.queue in self._no_ack) if held is not None else None
        if held is None or raw is None:
            return False
        told = next((tell for queue, tell in self._told.values() if queue == held.queue), None)
        if told is None:  # It was cancelled meanwhile.
            self.qos.leases.end(held.tag, Ending.RELEASE)
            return False
        told(raw)
        return True

    def _opened(self, held: Held, no_ack: bool) -> Message | None:
        """The message that is held, with its tag; None for an item that is none, which goes to the dead letters."""
        raw = self._read(held.lease.value)
        if raw is None:
            _logger.warning(
                "queue %s: an item that is no message of Kombu goes to the dead letters", held.queue
            )
            self.qos.leases.end(held.tag, Ending.REJECT)
            return None
        raw["properties"]["delivery_tag"] = held.tag
        raw["properties"].setdefault("delivery_info", {})["redelivered"] = held.lease.redelivered
        raw.setdefault("headers", {})["x-delivery-count"] = held.lease.deliveries
        if no_ack:
            self.qos.leases.end(held.tag, Ending.ACK)
        elif held.lease.redelivered and held.lease.deliveries == self.connection.address.max_deliveries:
            _logger.warning(
                "queue %s: %s is delivered for the last time (max_deliveries is %d): if it is not acknowledged it becomes a "
                "dead letter, and its caller is not told",
                held.queue,
                name_of(raw),
                held.lease.deliveries,
            )
        return raw

    def _read(self, value: Any) -> Message | None:
        """The message in an item; None for what Kombu could not read: it would come again and again, and each time end the
        worker that it comes to."""
        try:
            raw = loads(json.dumps(value))
            if not is_message(raw):
                return None
            self.decode_body(raw["body"], raw["properties"].get("body_encoding"))
        except _UNREADABLE:
            return None
        message: Message = raw
        return message

    def _put(self, queue: str, message: Message, **kwargs: Any) -> None:
        """Add a message, by one operation that is tried for `publish_s` seconds: it sends the same entry until a quorum stores
        it, so that it is added once. (Operations with an idempotency key would cost a decision each, and an object
        remembers `recent_decisions_max` of them only.)
        """
        properties = message["properties"]
        if properties.get("priority"):
            raise NotImplementedError(
                f"priority {properties['priority']}: a Quorate queue is first in, first out, so leave priorities out, or use "
                "one queue for each priority"
            )
        expires_s = expires_s_of(message)
        try:
            # Through Kombu's own JSON, which knows times and the like; so an item can be read in a trace.
            with _advice():
                self.connection.queue(queue).enqueue(
                    json.loads(dumps(message)), expires_s=expires_s, deadline_s=self.connection.publish_s
                )
            self._added += 1
        except (Unavailable, Closed) as error:
            if error.definite:
                raise
            # Kombu repeats what is Unavailable or Closed. This may have been added, so who called must say.
            raise OutcomeUnknown(str(error)) from error

    def _size(self, queue: str) -> int:
        """How many messages wait to be delivered, for the first time or again."""
        handle = self.connection.queue(queue)
        with _advice():
            return handle.size() + handle.leases().waiting

    def _purge(self, queue: str) -> int:
        """Drop as many messages as wait now; how many that were. What is delivered and not acknowledged stays."""
        handle, dropped = self.connection.queue(queue), 0
        left = self._size(queue)
        while left > dropped and (some := handle.acquire(min(left - dropped, AT_ONCE_MAX))):
            handle.ack(*some)
            dropped += len(some)
        return dropped


class Transport(virtual.Transport):  # type: ignore[misc]  # as above
    """A connection of Kombu: a front end of its own."""

    Channel = Channel
    can_parse_url = True
    driver_type = SCHEME
    driver_name = SCHEME
    implements = virtual.Transport.implements.extend(exchange_type=frozenset({"direct", "topic"}))

    connection_errors = (*virtual.Transport.connection_errors, Closed, OutcomeUnknown, Unavailable)
    recoverable_connection_errors = (*virtual.Transport.connection_errors, Closed, Unavailable)
    """What Kombu connects again for, and repeats what it did. Not OutcomeUnknown: a message might be added twice."""
    channel_errors = recoverable_channel_errors = (ChannelError,)

    address: Address
    _cluster: Client

    def __init__(self, client: Any, **kwargs: Any) -> None:
        super().__init__(client, **kwargs)
        self.arrived: Final[SimpleQueue[Channel]] = SimpleQueue()

    def driver_version(self) -> str:
        """The version of Quorate."""
        return __version__

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """The broker URL; there are no secrets in it."""
        return shown(self.client)

    def establish_connection(self) -> "Transport":
        """Connect. Raises BadInput, BadCluster and RefusedByReplicas, which are not tried again, and Unavailable, which is."""
        self.address = address_of(self.client)
        with _advice():
            self._cluster = connect(
                self.address.cluster,
                endpoints=self.address.endpoints,
                token=self.address.token,
                tls=self.address.tls,
                deadline_s=self.address.deadline_s,
            )
        # Not by its URL: where several are named, Kombu connects again by another one.
        document = self._cluster.document
        self.state = _declared.setdefault((document.name, *sorted(document.votes)), virtual.BrokerState())
        connection: Transport = super().establish_connection()
        return connection

    def close_connection(self, connection: "Transport") -> None:
        """Give back what is not acknowledged, and disconnect."""
        super().close_connection(connection)
        self._cluster.close()

    def drain_events(self, connection: "Transport", timeout: float | None = None) -> None:
        """Deliver one message, as soon as there is one; TimeoutError when there is none within `timeout` seconds."""
        late_s = None if timeout is None else time.monotonic() + timeout
        while True:
            left_s = DRAIN_S if late_s is None else max(0.0, min(DRAIN_S, late_s - time.monotonic()))
            try:
                channel = self.arrived.get(timeout=left_s)
            except Empty:
                if late_s is not None and time.monotonic() >= late_s:
                    raise TimeoutError from None
                continue
            if channel.deliver_next():
                return

    @property
    def publish_s(self) -> float:
        """How long it is tried to add a message: as the option says, as far as the cluster allows."""
        return min(self.address.publish_s, self._cluster.document.limits.deadline_s_max)

    def queue(self, name: str) -> Queue:
        """The object that keeps the queue of that name."""
        kept = key_name(library_key(name))
        check_atomic(self._cluster.document, f"queue/{kept}")
        return self._cluster.queue(kept)


@contextmanager
def _advice() -> Iterator[None]:
    """Say where Kombu and Celery have what is missing."""
    try:
        yield
    except BadCluster as error:
        advice = "quorate:// takes a path from where the program runs, quorate:/// one from the root of the machine"
        raise BadCluster(f"{error}; {advice}") from error
    except RefusedByReplicas as error:
        if "token" not in str(error):
            raise
        advice = (
            "in Kombu it is transport_options={'token': …}, in Celery broker_transport_options={'token': …}"
        )
        raise RefusedByReplicas(f"{error}; {advice}", definite=error.definite) from error


def _refusal(queue: str, asked: Iterable[str]) -> str:
    """Why a queue with these arguments is refused; those of remote control are nobody's choice."""
    if queue.endswith(".pidbox") or queue.startswith("celeryev."):
        return NO_REMOTE
    return (
        f"queue {queue}: arguments {', '.join(sorted(asked))}: a Quorate queue has no length limit, no priorities and no time to "
        f"live for all its messages; leave them out (a message of its own may have expiration=…). {NO_REMOTE}"
    )


for _scheme in (SCHEME, f"{SCHEME}+http", f"{SCHEME}+https"):
    TRANSPORT_ALIASES[_scheme] = f"{__name__}:{Transport.__name__}"
