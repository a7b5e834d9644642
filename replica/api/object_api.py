"""The ADT API: queues, registers and dictionaries for plain REST callers.

Owns paths, checks of input and the form of answers. Must not know how an operation runs (`operations`). Values pass through as the
canonical text that they are stored in: answers are put together from it, not parsed and printed again.
"""

from functools import partial
from typing import Final

import msgspec
from starlette.responses import Response

from ...adts.keys import key_name, prefix_name
from ...adts.types.catalogue import object_name
from ...client_sdk.protocol.core.values import (
    CompareAndSet,
    Dequeue,
    Enqueue,
    Items,
    Peek,
    PutIfAbsent,
    QueueInfo,
    QueueSize,
    Read,
    Spans,
    Write,
)
from ..http.large_bodies import read_apart, turn
from ..http.problems import Refusal
from ..http.routers import object_router
from . import object_models as models
from .answers import enqueued, held, held_at, json_response, labelled, listed, nothing
from .listings import Listing
from .operations import AfterKey, Asked, DeadlineS, Key, Keyed, KeyPrefix, KeysMax, Name, Operations, Served

queue_router: Final = object_router("queues")
"""The endpoints of queues, but for those about leases."""


@queue_router.post("/items", response_model=models.Enqueued)
async def enqueue(operations: Served, name: Name, body: models.EnqueueBody, asked: Keyed) -> Response:
    """Add one item, or several in order, at the end of a queue."""
    items = [body.item] if isinstance(body, models.OneItem) else body.items
    if len(items) > operations.limits.batch_items_max:
        raise Refusal(
            "malformed", f"items: 1 to {operations.limits.batch_items_max} of them go in one request"
        )
    values = await read_apart(partial(operations.values, items))
    if body.expires_s is not None and body.expires_s <= body.delay_s:
        raise Refusal("malformed", "expires_s: must be above delay_s, or nobody gets the items")
    spans = Spans(body.delay_s, body.expires_s or 0.0)
    operation = Enqueue(object_name("queue", name), values, asked.key, spans)
    await operations.be_asked(asked)
    await operations.run(operation, asked.deadline_s)
    return enqueued(len(values))


@queue_router.post("/dequeue", response_model=models.QueueItems)
async def dequeue(
    operations: Served, name: Name, asked: Keyed, body: models.DequeueBody | None = None
) -> Response:
    """Take items from the front of a queue. An empty queue is a normal answer."""
    body = body or models.DequeueBody()
    operation = Dequeue(object_name("queue", name), body.max, body.wait_s, asked.key)
    return listed((await operations.take(asked, operation)).result)


@queue_router.get("/peek", response_model=models.QueueItems)
async def peek_queue(operations: Served, name: Name, deadline_s: DeadlineS = None) -> Response:
    """Look at the item at the front of a queue; it stays."""
    done = await operations.run(Peek(object_name("queue", name)), deadline_s)
    return labelled(listed, done)


@queue_router.get("", response_model=models.QueueState)
async def get_queue(operations: Served, name: Name, deadline_s: DeadlineS = None) -> Response:
    """Count the waiting items."""
    done = await operations.run(QueueSize(object_name("queue", name)), deadline_s)
    return labelled(_counted, done)


def _counted(info: QueueInfo) -> Response:
    return json_response(msgspec.json.encode({"size": info.size, "horizon": info.horizon}).decode())


register_router: Final = object_router("registers")
"""The endpoints of registers."""


@register_router.get("", response_model=models.StoredValue)
async def read_register(operations: Served, name: Name, deadline_s: DeadlineS = None) -> Response:
    """Read a register; null when nobody has written it."""
    done = await operations.run(Read(object_name("register", name)), deadline_s)
    return labelled(held, done)


@register_router.put("", status_code=204)
async def write_register(
    operations: Served, name: Name, body: models.ValueBody, deadline_s: DeadlineS = None
) -> Response:
    """Write a register, whatever it holds."""
    value = await read_apart(partial(operations.value, body.value))
    await operations.run(Write(object_name("register", name), value), deadline_s)
    return nothing()


@register_router.post("/compare-and-set", response_model=models.Swapped)
async def compare_and_set_register(
    operations: Served, name: Name, body: models.CompareAndSetBody, asked: Keyed
) -> Response:
    """Write a register if it holds the value `old`."""
    return await _compare_and_set(operations, asked, object_name("register", name), body)


dictionary_router: Final = object_router("dictionaries")
"""The endpoints of dictionaries: those of single keys, and of all of them."""


@dictionary_router.get("/entries/{key}", response_model=models.StoredValue)
async def get_entry(operations: Served, name: Name, key: Key, deadline_s: DeadlineS = None) -> Response:
    """The value of a key; 404 when it is absent."""
    operation = Read(object_name("dictionary", name, key))
    done = await operations.run(operation, deadline_s)
    return labelled(partial(held_at, name, key), done)


@dictionary_router.put("/entries/{key}", status_code=204)
async def put_entry(
    operations: Served, name: Name, key: Key, body: models.ValueBody, deadline_s: DeadlineS = None
) -> Response:
    """Set the value of a key."""
    value = await read_apart(partial(operations.value, body.value))
    await operations.run(Write(object_name("dictionary", name, key), value), deadline_s)
    return nothing()


@dictionary_router.delete("/entries/{key}", status_code=204)
async def delete_entry(operations: Served, name: Name, key: Key, deadline_s: DeadlineS = None) -> Response:
    """Delete a key; it may be absent already."""
    await operations.run(Write(object_name("dictionary", name, key), None), deadline_s)
    return nothing()


@dictionary_router.post("/entries/{key}/compare-and-set", response_model=models.Swapped)
async def compare_and_set_entry(
    operations: Served, name: Name, key: Key, body: models.CompareAndSetBody, asked: Keyed
) -> Response:
    """Set the value of a key if it has the value `old` (null: if it is absent)."""
    return await _compare_and_set(operations, asked, object_name("dictionary", name, key), body)


@dictionary_router.post("/entries/{key}/compare-and-delete", response_model=models.Deleted)
async def compare_and_delete_entry(
    operations: Served, name: Name, key: Key, body: models.CompareAndDeleteBody, asked: Keyed
) -> Response:
    """Remove a key if it has the value `old`: of several callers, one is told that it was removed."""
    old = await read_apart(partial(operations.value, body.old))
    operation = CompareAndSet(object_name("dictionary", name, key), old, None, asked.key)
    was_old: bool = (await operations.decide(asked, operation)).result
    return json_response(f'{{"deleted":{"true" if was_old else "false"}}}')


@dictionary_router.post("/entries/{key}/put-if-absent", response_model=models.Stored)
async def put_entry_if_absent(
    operations: Served, name: Name, key: Key, body: models.ValueBody, asked: Keyed
) -> Response:
    """Set the value of a key if it has none."""
    value = await read_apart(partial(operations.value, body.value))
    operation = PutIfAbsent(object_name("dictionary", name, key), value, asked.key)
    was_absent: bool = (await operations.decide(asked, operation)).result
    return json_response(f'{{"stored":{"true" if was_absent else "false"}}}')


@dictionary_router.get("", response_model=models.DictionaryItems)
async def get_dictionary(
    operations: Served,
    name: Name,
    prefix: KeyPrefix = "",
    after: AfterKey = "",
    limit: KeysMax = None,
    deadline_s: DeadlineS = None,
) -> Response:
    """All keys and values, or those of the keys that begin with `prefix`, in the order of the names under which they are kept, as they were at one
    moment. With `limit` a page of them, which may hold fewer, or none, where keys were deleted lately or values are large: go on with `after` until there
    is no `next`."""
    most = operations.limits.page_entries_max
    if limit is not None and limit > most:
        raise Refusal("malformed", f"limit: at most {most} (page_entries_max)")
    behind = key_name(after, "key `after`") if after else ""
    items = Items(object_name("dictionary", name), prefix_name(prefix), behind, limit or 0)
    most_s = operations.deadline(deadline_s)
    return Listing(operations.listings, turn(), lambda: operations.run(items, deadline_s), most_s, prefix)


async def _compare_and_set(
    operations: Operations, asked: Asked, full_name: str, body: models.CompareAndSetBody
) -> Response:
    old, new = await read_apart(lambda: (operations.value(body.old), operations.value(body.new)))
    operation = CompareAndSet(full_name, old, new, asked.key)
    was_old: bool = (await operations.decide(asked, operation)).result
    return json_response(f'{{"swapped":{"true" if was_old else "false"}}}')
