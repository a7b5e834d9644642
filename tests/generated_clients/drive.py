"""What an application does with the generated Python client: `python drive.py URL PHASE`, token in QUORATE_TOKEN.

It prints what it was answered as one line of JSON. mypy checks it against the generated package; each `type: ignore` is a
mistake that the generated types must refuse.
"""

import json
import os
import sys
from http import HTTPStatus
from typing import Any

from quorate_client import AuthenticatedClient
from quorate_client.api.dictionaries import (
    compare_and_delete_entry,
    compare_and_set_entry,
    delete_entry,
    get_dictionary,
    get_entry,
    put_entry,
    put_entry_if_absent,
)
from quorate_client.api.queues import (
    ack_leases,
    acquire,
    dequeue,
    enqueue,
    get_dead_letters,
    get_leases,
    get_queue,
    peek_queue,
    reject_leases,
    release_leases,
)
from quorate_client.api.registers import compare_and_set_register, read_register, write_register
from quorate_client.api.service import get_cluster, get_problem_type, get_readiness
from quorate_client.models import (
    AcquireBody,
    CompareAndDeleteBody,
    CompareAndSetBody,
    DequeueBody,
    OneItem,
    Problem,
    RejectBody,
    ReleaseBody,
    SeveralItems,
    TokensBody,
    ValueBody,
)
from quorate_client.types import Response

NAME = "python"
KEY = "ada/1 & co"
URL, PHASE = sys.argv[1:]
DEADLINE_S = 1 if PHASE == "alone" else 20


def authorised(token: str) -> AuthenticatedClient:
    """A client that sends `token`."""
    return AuthenticatedClient(base_url=URL, token=token)


CLIENT = authorised(os.environ["QUORATE_TOKEN"])


def told(answer: object) -> dict[str, Any]:
    """What a problem says to a program."""
    assert isinstance(answer, Problem), answer
    definite: bool = answer.definite
    return {"type": answer.type_, "status": answer.status, "definite": definite}


def queue() -> dict[str, Any]:
    """Items in order; a repeat with its key takes effect once."""
    body = SeveralItems(items=[{"job": 1}, "two"])
    added = [
        enqueue.sync(NAME, client=CLIENT, body=body, idempotency_key="python-1"),
        enqueue.sync(NAME, client=CLIENT, body=body, idempotency_key="python-1"),
        enqueue.sync(NAME, client=CLIENT, body=OneItem(item=None)),
    ]
    size = get_queue.sync(NAME, client=CLIENT)
    front = peek_queue.sync(NAME, client=CLIENT)
    taken = dequeue.sync(NAME, client=CLIENT, body=DequeueBody(max_=10))
    empty = dequeue.sync(NAME, client=CLIENT)
    assert not isinstance(size, Problem)
    assert size is not None
    return {
        "added": [each.enqueued for each in added if each and not isinstance(each, Problem)],
        "size": size.size,
        "front": front.items if front and not isinstance(front, Problem) else None,
        "taken": taken.items if taken and not isinstance(taken, Problem) else None,
        "empty": empty.items if empty and not isinstance(empty, Problem) else None,
    }


def leases() -> dict[str, Any]:
    """An item is delivered, given back, delivered again, and rejected; a lease that ended is lost."""
    name = f"{NAME}-leased"
    enqueue.sync(name, client=CLIENT, body=OneItem(item={"job": 1}))
    seen: list[Any] = []
    tokens: list[str] = []
    for _ in range(2):
        given = acquire.sync(name, client=CLIENT, body=AcquireBody(lease_s=60.0))
        assert given is not None
        assert not isinstance(given, Problem)
        (lease,) = given.leases
        seen.append(
            [lease.item.to_dict() if hasattr(lease.item, "to_dict") else lease.item, lease.deliveries]
        )
        tokens.append(lease.token)
        if len(tokens) == 1:
            release_leases.sync(name, client=CLIENT, body=ReleaseBody(tokens=tokens))
    lost = ack_leases.sync(name, client=CLIENT, body=TokensBody(tokens=tokens[:1]))
    reject_leases.sync(name, client=CLIENT, body=RejectBody(tokens=tokens[1:]))
    dead = get_dead_letters.sync(name, client=CLIENT)
    counted = get_leases.sync(name, client=CLIENT)
    assert not isinstance(counted, Problem)
    assert counted is not None
    return {
        "seen": seen,
        "lost": lost.lost == tokens[:1] if lost and not isinstance(lost, Problem) else None,
        "reasons": [each.reason for each in dead.letters] if dead and not isinstance(dead, Problem) else None,
        "counted": [counted.held, counted.waiting, counted.dead],
    }


def register() -> dict[str, Any]:
    """Compare-and-set takes effect where the old value is right."""
    swapped: list[bool] = []
    for old, new in ((None, "ann"), (None, "bob"), ("ann", {"is": "bob"})):
        answer = compare_and_set_register.sync(NAME, client=CLIENT, body=CompareAndSetBody(old=old, new=new))
        assert answer is not None
        assert not isinstance(answer, Problem)
        swapped.append(answer.swapped)
    read = read_register.sync(NAME, client=CLIENT)
    assert read is not None
    assert not isinstance(read, Problem)
    return {"swapped": swapped, "value": read.value}


def dictionary() -> dict[str, Any]:
    """A key's life; what is absent is a problem."""
    put = put_entry.sync_detailed(NAME, KEY, client=CLIENT, body=ValueBody(value={"age": 36}))
    absent = put_entry_if_absent.sync(NAME, KEY, client=CLIENT, body=ValueBody(value=0))
    change = CompareAndSetBody(old={"age": 36}, new={"age": 37})
    swapped = compare_and_set_entry.sync(NAME, KEY, client=CLIENT, body=change)
    got = get_entry.sync(NAME, KEY, client=CLIENT)
    everything = get_dictionary.sync(NAME, client=CLIENT)
    kept = compare_and_delete_entry.sync(NAME, KEY, client=CLIENT, body=CompareAndDeleteBody(old={"age": 36}))
    gone = delete_entry.sync_detailed(NAME, KEY, client=CLIENT)
    missing = get_entry.sync_detailed(NAME, KEY, client=CLIENT)
    assert got is not None
    assert not isinstance(got, Problem)
    return {
        "put": put.status_code,
        "stored": absent.stored if absent and not isinstance(absent, Problem) else None,
        "swapped": swapped.swapped if swapped and not isinstance(swapped, Problem) else None,
        "value": got.value,
        "items": everything.items.to_dict() if everything and not isinstance(everything, Problem) else None,
        "kept": kept.deleted is False if kept and not isinstance(kept, Problem) else None,
        "deleted": gone.status_code,
        "missing": told(missing.parsed),
    }


def errors() -> dict[str, Any]:
    """Mistakes of the caller."""
    another = OneItem(item="another")
    reused = enqueue.sync(NAME, client=CLIENT, body=another, idempotency_key="python-1")
    stranger = get_cluster.sync(client=authorised("wrong"))
    named = read_register.sync(".hidden", client=CLIENT)
    return {"reused": told(reused), "stranger": told(stranger), "named": told(named)}


def service() -> dict[str, Any]:
    """What a replica says about itself, its cluster and its problems."""
    ready, cluster = get_readiness.sync(client=CLIENT), get_cluster.sync(client=CLIENT)
    explained = get_problem_type.sync("outcome-unknown", client=CLIENT)
    assert ready is not None
    assert not isinstance(ready, Problem)
    assert cluster is not None
    assert not isinstance(cluster, Problem)
    assert explained is not None
    assert not isinstance(explained, Problem)
    ids: list[str] = [each.id for each in cluster.document.replicas]
    return {"ready": ready.status, "replicas": ids, "definite": explained.definite}


def write() -> dict[str, Any]:
    """A write, or why its outcome is not known."""
    body = ValueBody(value="written")
    written: Response[Any | Problem] = write_register.sync_detailed(
        "python-fate", client=CLIENT, body=body, deadline_s=DEADLINE_S
    )
    return (
        {"status": written.status_code}
        if written.status_code == HTTPStatus.NO_CONTENT
        else told(written.parsed)
    )


def take() -> dict[str, Any]:
    """What a queue gives, or why it gives nothing."""
    taken = dequeue.sync(NAME, client=CLIENT, deadline_s=DEADLINE_S)
    return told(taken) if taken is None or isinstance(taken, Problem) else {"items": taken.items}


def refused() -> None:
    """What the types must refuse. It is never called: only the type checker looks at it."""
    enqueue.sync(NAME, client=CLIENT, body={"item": 1})  # type: ignore[arg-type]
    dequeue.sync(NAME, client=CLIENT, body=DequeueBody(max_="ten"))  # type: ignore[arg-type]
    read_register.sync(client=CLIENT)  # type: ignore[call-arg]
    answer = compare_and_set_register.sync(NAME, client=CLIENT, body=CompareAndSetBody(old=1, new=2))
    assert not isinstance(answer, Problem)
    assert answer is not None
    _text: str = answer.swapped  # type: ignore[assignment]


parts = [queue, leases, register, dictionary, errors, service] if PHASE == "all" else [write, take]
print(json.dumps({part.__name__: part() for part in parts}))
