"""The ADT API's endpoints about leases, run by the replica's embedded front end; see `quorate.replica.api.object_api`."""

from collections.abc import Iterable
from typing import Literal

import msgspec
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ...adts.log import Dead, Entry, Leased, count_leases
from ...adts.types.catalogue import object_name
from ...api_specs.commands import SettleResult
from ...client_sdk.protocol.core.values import Acquire, ClearDeadLetters, LeaseBook, ReadLeases, Settle
from ..http.gate import CALLER
from . import lease_models as models
from .answers import json_response
from .object_api import DeadlineS, Name, Operations


def add_lease_endpoints(router: APIRouter, operations: Operations) -> None:
    """Add all of them."""
    _add_acquire(router, operations)
    _add_endings(router, operations)
    _add_dead_letters(router, operations)


def _add_acquire(router: APIRouter, operations: Operations) -> None:
    @router.post(
        "/v1/queues/{name}/acquire",
        response_model=models.LeasedItems,
        operation_id="acquire",
        tags=["queues"],
    )
    async def acquire(
        request: Request, name: Name, body: models.AcquireBody | None = None, deadline_s: DeadlineS = None
    ) -> Response:
        """Be delivered items under leases: they come back unless they are accepted or rejected. None is a normal answer."""
        body = body or models.AcquireBody()
        full_name = object_name("queue", name)
        holder = request.scope[CALLER].tag
        operation = Acquire(
            full_name, body.max, body.lease_s, body.wait_s, body.max_deliveries or 0, holder=holder
        )
        records = await operations.take(request, operation, deadline_s)
        return json_response('{"leases":[' + ",".join(map(_lease, records)) + "]}")

    @router.get(
        "/v1/queues/{name}/leases",
        response_model=models.LeaseState,
        operation_id="getLeases",
        tags=["queues"],
    )
    async def lease_state(name: Name, deadline_s: DeadlineS = None) -> models.LeaseState:
        """Count what is delivered or waits to be, and dead letters."""
        book: LeaseBook = await operations.run(ReadLeases(object_name("queue", name)), deadline_s)
        counts = count_leases(book.leases, book.dead)
        return models.LeaseState(held=counts.held, waiting=counts.waiting, dead=counts.dead)


def _add_endings(router: APIRouter, operations: Operations) -> None:
    async def settle(operation: Settle, deadline_s: float | None) -> models.SettledLeases:
        settled: SettleResult = await operations.run(operation, deadline_s)
        return models.SettledLeases(lost=list(settled.lost))

    @router.post(
        "/v1/queues/{name}/accept",
        response_model=models.SettledLeases,
        operation_id="acceptLeases",
        tags=["queues"],
    )
    async def accept(
        name: Name, body: models.TokensBody, deadline_s: DeadlineS = None
    ) -> models.SettledLeases:
        """End leases whose items are done with. A repeat is answered as the first time."""
        operation = Settle(object_name("queue", name), "accept", tuple(body.tokens))
        return await settle(operation, deadline_s)

    @router.post(
        "/v1/queues/{name}/release",
        response_model=models.SettledLeases,
        operation_id="releaseLeases",
        tags=["queues"],
    )
    async def release(
        name: Name, body: models.ReleaseBody, deadline_s: DeadlineS = None
    ) -> models.SettledLeases:
        """Give items back, to be delivered again."""
        operation = Settle(object_name("queue", name), "release", tuple(body.tokens), body.delay_s)
        return await settle(operation, deadline_s)

    @router.post(
        "/v1/queues/{name}/reject",
        response_model=models.SettledLeases,
        operation_id="rejectLeases",
        tags=["queues"],
    )
    async def reject(
        name: Name, body: models.RejectBody, deadline_s: DeadlineS = None
    ) -> models.SettledLeases:
        """End leases whose items are not to be delivered again."""
        how: Literal["reject", "drop"] = "reject" if body.dead_letter else "drop"
        return await settle(Settle(object_name("queue", name), how, tuple(body.tokens)), deadline_s)

    @router.post(
        "/v1/queues/{name}/renew",
        response_model=models.RenewedLeases,
        operation_id="renewLeases",
        tags=["queues"],
    )
    async def renew(name: Name, body: models.RenewBody, deadline_s: DeadlineS = None) -> models.RenewedLeases:
        """Let leases last longer."""
        operation = Settle(object_name("queue", name), "renew", tuple(body.tokens), body.lease_s)
        settled: SettleResult = await operations.run(operation, deadline_s)
        return models.RenewedLeases(lost=list(settled.lost), deadline=settled.until_us / 1e6)


def _add_dead_letters(router: APIRouter, operations: Operations) -> None:
    path = "/v1/queues/{name}/dead-letters"

    async def clear(
        name: str, body: models.LettersBody | None, deadline_s: float | None, *, is_requeued: bool
    ) -> models.Cleared:
        ids = tuple((body.ids if body else None) or ())
        operation = ClearDeadLetters(object_name("queue", name), ids, is_requeued)
        return models.Cleared(cleared=await operations.run(operation, deadline_s))

    @router.get(path, response_model=models.DeadLetterItems, operation_id="getDeadLetters", tags=["queues"])
    async def dead_letters(name: Name, deadline_s: DeadlineS = None) -> Response:
        """List the items that are not delivered any more."""
        book: LeaseBook = await operations.run(ReadLeases(object_name("queue", name)), deadline_s)
        return json_response('{"letters":[' + ",".join(map(_letter, book.dead)) + "]}")

    @router.post(
        path + "/requeue", response_model=models.Cleared, operation_id="requeueDeadLetters", tags=["queues"]
    )
    async def requeue(
        name: Name, body: models.LettersBody | None = None, deadline_s: DeadlineS = None
    ) -> models.Cleared:
        """Have dead letters delivered again by acquire, with a fresh count towards a maximum and without an expiry."""
        return await clear(name, body, deadline_s, is_requeued=True)

    @router.post(
        path + "/discard", response_model=models.Cleared, operation_id="discardDeadLetters", tags=["queues"]
    )
    async def discard(
        name: Name, body: models.LettersBody | None = None, deadline_s: DeadlineS = None
    ) -> models.Cleared:
        """Forget dead letters."""
        return await clear(name, body, deadline_s, is_requeued=False)


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
