"""The ADT API's endpoints about leases; see `quorate.replica.api.object_api`."""

from collections.abc import Iterable
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ...adts.log import Dead, Entry, LeaseCounts, Leased, count_leases
from ...adts.types.catalogue import object_name
from ...api_specs.commands import SettleResult
from ...client_sdk.protocol.core.values import (
    Acquire,
    ClearDeadLetters,
    How,
    LeaseBook,
    PurgeDelayed,
    ReadLeases,
    Settle,
)
from ..http.gate import CALLER
from ..http.routers import object_router
from . import lease_models as models
from .answers import json_response
from .operations import Asked, DeadlineS, Name, Operations, Served

lease_router: Final = object_router("queues")
"""The endpoints that deliver items under leases, and end these."""


@lease_router.post("/acquire", response_model=models.LeasedItems)
async def acquire(
    operations: Served,
    request: Request,
    name: Name,
    body: models.AcquireBody | None = None,
    deadline_s: DeadlineS = None,
) -> Response:
    """Lease items: they come back unless they are acknowledged or rejected. None is a normal answer."""
    body = body or models.AcquireBody()
    full_name = object_name("queue", name)
    holder = request.scope[CALLER].tag
    operation = Acquire(
        full_name, body.max, body.lease_s, body.wait_s, body.max_deliveries or 0, holder=holder
    )
    records = (await operations.take(Asked(request, deadline_s), operation)).result
    return json_response('{"leases":[' + ",".join(map(_lease, records)) + "]}")


@lease_router.get("/leases", response_model=models.LeaseState)
async def get_leases(operations: Served, name: Name, deadline_s: DeadlineS = None) -> LeaseCounts:
    """Count what is delivered or waits to be, and dead letters."""
    book: LeaseBook = (await operations.run(ReadLeases(object_name("queue", name)), deadline_s)).result
    return count_leases(book.leases, book.dead)


@lease_router.post("/ack", response_model=models.SettledLeases)
async def ack_leases(
    operations: Served, name: Name, body: models.TokensBody, deadline_s: DeadlineS = None
) -> SettleResult:
    """Acknowledge items: they are done with. A repeat is answered as the first time."""
    return await _settle(operations, name, "ack", body.tokens, deadline_s)


@lease_router.post("/release", response_model=models.SettledLeases)
async def release_leases(
    operations: Served, name: Name, body: models.ReleaseBody, deadline_s: DeadlineS = None
) -> SettleResult:
    """Give items back, to be delivered again."""
    return await _settle(operations, name, "release", body.tokens, deadline_s, body.delay_s)


@lease_router.post("/reject", response_model=models.SettledLeases)
async def reject_leases(
    operations: Served, name: Name, body: models.RejectBody, deadline_s: DeadlineS = None
) -> SettleResult:
    """End leases whose items are not to be delivered again."""
    return await _settle(operations, name, "reject" if body.dead_letter else "drop", body.tokens, deadline_s)


@lease_router.post("/renew", response_model=models.RenewedLeases)
async def renew_leases(
    operations: Served, name: Name, body: models.RenewBody, deadline_s: DeadlineS = None
) -> models.RenewedLeases:
    """Let leases last longer."""
    settled = await _settle(operations, name, "renew", body.tokens, deadline_s, body.lease_s)
    return models.RenewedLeases(lost=list(settled.lost), deadline=settled.until_us / 1e6)


async def _settle(
    operations: Operations,
    name: str,
    how: How,
    tokens: list[str],
    deadline_s: float | None,
    span_s: float = 0.0,
) -> SettleResult:
    operation = Settle(object_name("queue", name), how, tuple(tokens), span_s)
    found: SettleResult = (await operations.run(operation, deadline_s)).result
    return found


@lease_router.post("/delayed/purge", response_model=models.Purged)
async def purge_delayed(
    operations: Served, name: Name, body: models.DelayedBody | None = None, deadline_s: DeadlineS = None
) -> models.Purged:
    """Delete items that wait until they are due, after an acquire has met them."""
    operation = PurgeDelayed(object_name("queue", name), body.due_after_s if body else 0.0)
    return models.Purged(purged=(await operations.run(operation, deadline_s)).result)


dead_letter_router: Final = object_router("queues")
"""The endpoints about items that are not delivered any more."""


async def _clear(
    operations: Operations,
    name: str,
    body: models.DeadLettersBody | None,
    deadline_s: float | None,
    *,
    is_requeued: bool,
) -> models.Cleared:
    ids = tuple((body.ids if body else None) or ())
    operation = ClearDeadLetters(object_name("queue", name), ids, is_requeued)
    return models.Cleared(cleared=(await operations.run(operation, deadline_s)).result)


@dead_letter_router.get("/dead-letters", response_model=models.DeadLetterItems)
async def get_dead_letters(operations: Served, name: Name, deadline_s: DeadlineS = None) -> Response:
    """List the items that are not delivered any more."""
    book: LeaseBook = (await operations.run(ReadLeases(object_name("queue", name)), deadline_s)).result
    return json_response('{"letters":[' + ",".join(map(_letter, book.dead)) + "]}")


@dead_letter_router.post("/dead-letters/requeue", response_model=models.Cleared)
async def requeue_dead_letters(
    operations: Served, name: Name, body: models.DeadLettersBody | None = None, deadline_s: DeadlineS = None
) -> models.Cleared:
    """Have dead letters delivered again by acquire, with a fresh count towards a maximum and without an expiry."""
    return await _clear(operations, name, body, deadline_s, is_requeued=True)


@dead_letter_router.post("/dead-letters/purge", response_model=models.Cleared)
async def purge_dead_letters(
    operations: Served, name: Name, body: models.DeadLettersBody | None = None, deadline_s: DeadlineS = None
) -> models.Cleared:
    """Delete dead letters."""
    return await _clear(operations, name, body, deadline_s, is_requeued=False)


def _lease(record: Leased) -> str:
    rest = {
        "token": record.token,
        "deliveries": record.deliveries,
        "redelivered": record.deliveries > 1,
        "deadline": record.until_us / 1e6,
    }
    return _item(record.entry, rest.items())


def _letter(dead: Dead) -> str:
    return _item(dead.entry, (("reason", dead.reason), ("deliveries", dead.deliveries)))


def _item(entry: Entry, rest: Iterable[tuple[str, object]]) -> str:
    """The item's value as it is stored, and what goes along."""
    encoded = msgspec.json.encode({"id": entry.id, **dict(rest)}).decode()
    return f'{{"item":{entry.value},{encoded[1:]}'
