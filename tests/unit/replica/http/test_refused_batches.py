"""Each request of a batch that the replica will not do has a reply that says so, also where it is all of them."""

import asyncio
import time
from pathlib import Path
from typing import Literal, get_args, get_type_hints

import msgspec
import pytest

from quorate.adts.log import Entry, Leased, Summary, Value
from quorate.api_specs.cluster import ClusterDocument
from quorate.api_specs.limits import DELIVERIES_MAX
from quorate.api_specs.messages import (
    Accept,
    Append,
    Appended,
    Batch,
    BatchReply,
    Collect,
    Proposal,
    Refused,
    Request,
    Reserve,
)
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.replica.api.protocol_api import PATH
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service.embedded import EmbeddedTransport, to_others
from quorate.replica.service.member import Member
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import Timestamp, make
from tests.unit.replica.conftest import Serving

HOUR_US = 3_600_000_000


def at(offset_us: int) -> Timestamp:
    return make(time.time_ns() // 1000 + offset_us, 0, "c")


def append(t: Timestamp, attempt: Literal["first", "again"] = "first") -> Append:
    return Append("queue/q", (Entry(t, t, Value("1")),), attempt)


OF_CAPACITY = {"log-full", "too-many-objects", "disk-full"}
"""Those are for `tests/system/failures/test_full_replicas.py`."""


async def test_a_timestamp_far_ahead_or_behind_is_refused_and_leaves_nothing(
    serving: Serving, document: ClusterDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: dict[str, Request] = {
        "clock-ahead": append(at(HOUR_US)),
        "clock-behind": append(at(-HOUR_US)),
        "too-old": append(at(-HOUR_US), "again"),
        "bad-request": Append("register/r", (Entry("1", at(0), None),)),
        "too-many-keys": Reserve("queue/q", at(0), (Proposal("k", (Entry(at(0), at(0)),)),)),
    }
    monkeypatch.setattr("quorate.replica.protocol.key_consensus.RESERVATIONS_MAX", 0)
    reasons = set(get_args(get_type_hints(Refused)["reason"])) - OF_CAPACITY - {"forbidden"}
    assert requests.keys() == reasons
    ballot = Collect("queue/q", make_ballot(at(HOUR_US), 0))
    async with serving(document) as client:
        for reason, request in [*requests.items(), ("clock-ahead", ballot)]:
            answer = await client.post(PATH, content=msgspec.json.encode(Batch(document.hash, (request,))))
            assert answer.status_code == 200, reason
            reply = msgspec.json.decode(answer.content, type=BatchReply)
            (refused,) = reply.replies
            assert isinstance(refused, Refused)
            assert refused.reason == reason
            assert abs(reply.now_us - time.time_ns() // 1000) < HOUR_US, (
                "whose clock is wrong can be learned of it"
            )
        status = (await client.get("/v1/status")).json()
        assert status["objects"] == 0


async def test_the_front_end_in_a_replica_is_checked_as_others_are(
    document: ClusterDocument, tmp_path: Path
) -> None:
    member = Member(open_folder(tmp_path / "data", document, "r1"))
    transport = EmbeddedTransport(member, to_others(member, None))
    try:
        batch = Batch(member.document.hash, (poisoned(),))
        answer = await transport.exchange(member.id, batch, 60)
    finally:
        await transport.aclose()
        await asyncio.to_thread(member.close)
    assert isinstance(answer, Unanswered)
    assert answer.refused
    assert answer.definite
    assert "deliveries: must be 0 to" in answer.detail


def poisoned() -> Accept:
    """What no machine may see: more deliveries than an item may have."""
    t = at(0)
    spent = Summary(t, leases=(Leased(Entry(t, t, Value("1")), deliveries=DELIVERIES_MAX + 1),))
    return Accept("queue/q", make_ballot(t, 1), spent)


@pytest.mark.parametrize("bad", [append(at(HOUR_US)), poisoned()], ids=["refused by the machine", "poisoned"])
async def test_one_bad_request_does_not_keep_the_others_out(
    bad: Request, serving: Serving, document: ClusterDocument
) -> None:
    # As repeats, which a busy machine may bring late.
    batch = Batch(document.hash, (append(at(0), "again"), bad, append(at(1), "again")))
    async with serving(document) as client:
        answer = await client.post(PATH, content=msgspec.json.encode(batch))
    assert answer.status_code == 200
    first, refused, second = msgspec.json.decode(answer.content, type=BatchReply).replies
    assert isinstance(refused, Refused)
    for appended in (first, second):
        assert isinstance(appended, Appended)
        assert appended.stored == (True,)


async def test_one_caller_of_a_replica_does_not_keep_out_another(
    document: ClusterDocument, tmp_path: Path
) -> None:
    """The front end in a replica sends in one batch what several callers ask for."""
    member = Member(open_folder(tmp_path / "data", document, "r1"))
    transport = EmbeddedTransport(member, to_others(member, None))
    try:
        batch = Batch(member.document.hash, (poisoned(), append(at(0))))
        answer = await transport.exchange(member.id, batch, 60)
    finally:
        await transport.aclose()
        await asyncio.to_thread(member.close)
    assert isinstance(answer, BatchReply)
    refused, appended = answer.replies
    assert isinstance(refused, Refused)
    assert "deliveries: must be 0 to" in refused.detail
    assert isinstance(appended, Appended)
    assert appended.stored == (True,)
