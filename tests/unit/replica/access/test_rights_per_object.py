"""Tokens for some objects alone: what they open of the HTTP API and of the replica protocol, and that nothing else is opened."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument
from quorate.api_specs.messages import (
    Append,
    Batch,
    Changes,
    Collect,
    Commit,
    ForwardedRequest,
    Proposal,
    Request,
    Reserve,
    Scan,
)
from quorate.api_specs.tokens import digest_of, make_token
from quorate.replica.access.authorization import foreign_requests, forwarding_problem, path_problem
from quorate.replica.access.credentials import Credential, parse_tokens
from quorate.replica.access.token_list import from_text
from quorate.timestamps.timestamp import Timestamp, make
from tests.support.documents import BOTH
from tests.unit.replica.access.test_authorization import OPERATIONS, guarded
from tests.unit.replica.conftest import one_replica

TOKEN, WHOLE = (make_token(tag * 6, tag * 43) for tag in "sw")
PATTERNS = "queue/shop.*,dictionary/carts,cart/*"
LINES = (
    f"tag=ssssss scopes=write sha256={digest_of(TOKEN.encode()).hex()} objects={PATTERNS};"
    f"tag=wwwwww scopes=replica sha256={digest_of(WHOLE.encode()).hex()}"
)
OWN = ("queue/shop.orders", "dictionary/carts/ann", "cart/ann")
FOREIGN = (
    "queue/other",
    "queue/xshop.orders",
    "dictionary/carts2/ann",
    "register/shop.orders",
    "register/quorate.configuration",
)
AT = make(1, 0, "ssssss0123")


def holder(patterns: str = PATTERNS) -> Credential:
    text = LINES.replace(PATTERNS, patterns).replace(";", "\n")
    found = parse_tokens(text, "tokens").find(f"Bearer {TOKEN}".encode())
    assert found is not None
    return found


def problem_at(path: str, caller: Credential, document: ClusterDocument | None = None) -> str | None:
    return path_problem(path, caller, (document or one_replica()).matched_by)


def about(name: str, t: Timestamp = AT) -> list[Request]:
    """One request of each kind about an object."""
    entry = Entry(t, t, Value("1"))
    return [
        Append(name, (entry,), "first"),
        Collect(name),
        Commit(name, complete=(t,)),
        Reserve(name, t, (Proposal("k", (Entry(t, t),)),)),
    ]


def is_foreign(request: Request, patterns: str = PATTERNS, document: ClusterDocument | None = None) -> bool:
    return bool(foreign_requests(Batch("h", (request,)), holder(patterns), document or one_replica()))


def test_each_message_about_another_object_is_foreign_and_of_its_own_none() -> None:
    for name in OWN:
        assert not any(map(is_foreign, about(name))), name
    for name in FOREIGN:
        assert all(map(is_foreign, about(name))), name
    requests = [*about(OWN[0]), *about(FOREIGN[0]), *about(OWN[1])]
    foreign = foreign_requests(Batch("h", tuple(requests)), holder(), one_replica())
    assert list(foreign) == [4, 5, 6, 7]
    assert foreign[4].detail == f"the token is for {', '.join(PATTERNS.split(','))}, and not for queue/other"


def test_listings_are_of_nothing_but_its_objects() -> None:
    for prefix in ("queue/shop.", "queue/shop.a", "dictionary/carts/", "dictionary/carts/a", "cart/"):
        assert not is_foreign(Scan(prefix)), prefix
    for prefix in ("", "queue/", "queue/shop", "dictionary/carts", "dictionary/other/", "ca"):
        assert is_foreign(Scan(prefix)), prefix
    assert is_foreign(Scan("queue/shop."), "queue/*.orders"), "it lists what does not end so, too"
    assert is_foreign(Scan("queue/shop."), "queue/[s]hop.*")
    assert is_foreign(Changes(0, 1))
    assert is_foreign(Changes(0, 1), patterns="*/*"), (
        "it names what changed of all, the cluster's own included"
    )


RULE = ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (1, 1)}, outbox=True)
WITH_OUTBOXES = replace(one_replica(), choices=(RULE,))


def test_a_queue_is_its_outboxes_as_well_where_it_has_them() -> None:
    assert not is_foreign(Collect("queue/mail@r1"), "queue/mail", WITH_OUTBOXES)
    assert is_foreign(Collect("queue/mail@r1"), "queue/mail"), "another queue, where there are none"
    assert is_foreign(Collect("queue/news@r1"), "queue/mail", WITH_OUTBOXES)


@pytest.mark.parametrize("patterns", ["queue/*1", "queue/news@*", "queue/*@r1"])
def test_a_pattern_of_an_outbox_opens_nothing_of_its_queue(patterns: str) -> None:
    """An outbox holds the queue's items: a token for names that end in 1 purged those of all queues at r1."""
    assert is_foreign(Collect("queue/news@r1"), patterns, WITH_OUTBOXES)
    assert is_foreign(Scan("queue/news@"), patterns, WITH_OUTBOXES)
    for path in ("/v1/queues/news@r1/peek", "/v1/queues/news@r1/delayed/purge", "/v1/queues/news/items"):
        assert problem_at(path, holder(patterns), WITH_OUTBOXES) is not None
    assert problem_at("/v1/queues/mail@r1/peek", holder("queue/mail"), WITH_OUTBOXES) is None
    assert problem_at("/v1/queues/mail@r1/peek", holder("queue/mail")) is not None


def test_what_is_forwarded_is_about_its_objects() -> None:
    known = parse_tokens(LINES.replace(";", "\n"), "tokens")

    def problem(name: str) -> str | None:
        return forwarding_problem(ForwardedRequest("h", AT, name), holder(), known, one_replica())

    assert [problem(name) for name in OWN] == [None] * len(OWN)
    assert all(map(problem, FOREIGN))


def test_every_path_is_of_an_object_or_of_the_cluster_or_refused() -> None:
    """Whoever adds one finds it refused to these tokens, until it is known whose objects it shows."""
    opened = {path for path, _ in OPERATIONS if problem_at(path, holder("*/*")) is None}
    of_objects = {path for path in opened if path.startswith(("/v1/queues/", "/v1/registers/", "/v1/dict"))}
    assert opened - of_objects == {"/v1/cluster", "/v1/status", "/replica/v1/batch", "/replica/v1/forward"}
    named = {path for path in BOTH["paths"] if "{name}" in path and path.startswith("/v1/")}
    assert of_objects == named


@pytest.mark.parametrize(
    ("path", "is_own"),
    [
        ("/v1/queues/shop.orders/items", True),
        ("/v1/queues/other/items", False),
        ("/v1/registers/shop.orders", False),
        ("/v1/dictionaries/carts/entries/ann", True),
        ("/v1/dictionaries/carts", True),
        ("/v1/dictionaries/other/entries/carts", False),
        ("/v1/objects/cart/ann/add", True),
        ("/v1/objects/queue/other/items", False),
        ("/v1/overview", False),
        ("/v1/trace", False),
        ("/metrics", False),
    ],
)
def test_a_path_leads_to_its_own_objects_alone(path: str, is_own: bool) -> None:
    assert (problem_at(path, holder()) is None) == is_own


def test_token_for_the_http_api_opens_no_path_of_the_replica_protocol() -> None:
    known = parse_tokens(LINES.split(";", maxsplit=1)[0].replace(f"objects={PATTERNS}", "via=http"), "tokens")
    caller = known.find(f"Bearer {TOKEN}".encode())
    assert caller is not None
    refused = {path for path, _ in OPERATIONS if problem_at(path, caller) is not None}
    assert refused == {path for path in BOTH["paths"] if path.startswith("/replica/")}
    assert len(refused) >= 3


async def test_replica_serves_its_objects_and_refuses_others(
    tmp_path: Path, document: ClusterDocument
) -> None:
    def batch(*requests: Request) -> bytes:
        return msgspec.json.encode(Batch(document.hash, requests))

    async with guarded(tmp_path, document, from_text(LINES, WHOLE)) as client:

        async def ask(method: str, path: str, body: Any = None) -> Any:
            content = body if isinstance(body, bytes) else msgspec.json.encode(body)
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            return await client.request(method, path, content=content, headers=headers)

        assert (await ask("POST", "/v1/queues/shop.a/items", {"item": 1})).status_code == 200
        refused = await ask("POST", "/v1/queues/other/items", {"item": 1})
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/forbidden")
        assert refused.json()["definite"] is True
        assert (await ask("GET", "/v1/status")).status_code == 200
        mixed = await ask("POST", "/replica/v1/batch", batch(Collect("queue/shop.a"), Collect("queue/other")))
        kinds = [(each["type"], each.get("reason")) for each in mixed.json()["replies"]]
        assert kinds == [("collected", None), ("refused", "forbidden")], "one keeps out no other"
        foreign = await ask("POST", "/replica/v1/batch", batch(Collect("queue/other")))
        assert (foreign.status_code, foreign.json()["type"]) == (403, "/problems/forbidden")
