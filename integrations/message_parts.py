"""What the transport reads of a message as Kombu and Celery make it. Pure."""

from typing import Any

Message = dict[str, Any]
"""A message as Kombu makes it."""


def is_message(raw: Any) -> bool:
    """Whether it has the parts that Kombu and the transport reach into."""
    if not isinstance(raw, dict) or not isinstance(raw.get("body"), str | bytes):
        return False
    properties = raw.get("properties")
    if not isinstance(properties, dict) or not isinstance(raw.get("headers", {}), dict):
        return False
    return isinstance(properties.get("delivery_info", {}), dict)


def name_of(message: Message) -> str:
    """What a log calls a message: as Celery names tasks, as far as it says."""
    headers, properties = message["headers"], message["properties"]
    return f"{headers.get('task', 'a message')}[{headers.get('id') or properties.get('correlation_id', '')}]"


def expires_s_of(message: Message) -> float | None:
    """After how long it becomes a dead letter, in seconds; None for never.

    A task of Celery that expires says so in its headers too, and a worker drops it and tells who waits for the result. As dead
    letters, which nobody clears away by themselves, such tasks would fill the queue's room for leases until it stood still.
    """
    expiration = message["properties"].get("expiration")
    if expiration is None or message["headers"].get("expires") is not None:
        return None
    # What is over at once is written 0, which the queue has no word for.
    return (int(expiration) or 1) / 1000
