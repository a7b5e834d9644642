"""What a replica's own front end sends it is checked like what comes over HTTP; large values in a thread."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.adts.log import Entry, Summary, Value
from quorate.api_specs.checking import Checked, check_batch
from quorate.api_specs.cluster import ReplicaInfo
from quorate.api_specs.configuration import with_members
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Accept, Append, Batch, BatchReply, Collect, Request
from quorate.client_sdk.protocol.configurations import joint
from quorate.client_sdk.protocol.core.values import Unanswered
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.service import embedded
from quorate.replica.service.embedded import LARGE_BYTES, EmbeddedTransport, to_others
from quorate.replica.service.member import Member
from quorate.timestamps.ballot import Ballot
from quorate.timestamps.timestamp import make
from tests.unit.replica.conftest import one_replica

T = make(1, 0, "a")
LARGE = Value(f'"{"x" * LARGE_BYTES}"')


class _Member:
    id = "r1"
    document = SimpleNamespace(limits=Limits())

    async def answer(self, batch: Batch) -> BatchReply:
        del batch
        return BatchReply("r1", "i", T, 1, ())


@pytest.mark.parametrize(
    ("request_", "is_apart"),
    [
        (Append("register/r", (Entry(T, T, Value("1")),)), False),
        (Append("register/r", (Entry(T, T, LARGE),)), True),
        (Accept("register/r", Ballot(f"{T}/00000000"), Summary(value=LARGE)), True),
        (Collect("register/r"), False),
    ],
)
async def test_large_values_are_checked_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, request_: Request, is_apart: bool
) -> None:
    threads: list[threading.Thread] = []

    def noting(batch: Batch, limits: Limits) -> Checked:
        threads.append(threading.current_thread())
        return check_batch(batch, limits)

    monkeypatch.setattr(embedded, "check_batch", noting)
    member: Any = _Member()
    transport = EmbeddedTransport(member, member)
    assert isinstance(await transport.exchange("r1", Batch("c", (request_,)), 60.0), BatchReply)
    assert [each is not threading.current_thread() for each in threads] == [is_apart]


async def test_the_way_to_others_leads_to_those_that_become_members_later(tmp_path: Path) -> None:
    """Nobody listens there."""
    document = one_replica()
    member = Member(open_folder(tmp_path / "r1", document, "r1"))
    others = to_others(member, None)
    r2 = ReplicaInfo("r2", "http://127.0.0.1:1", store="2")
    both = joint(document, with_members(document, [*document.replicas, r2]))
    with pytest.raises(KeyError):
        await others.exchange("r2", Batch(both.hash, ()), 60.0)
    await member.configured.follow(both)
    answer = await others.exchange("r2", Batch(both.hash, ()), 60.0)
    assert isinstance(answer, Unanswered)
    assert "refused" in answer.detail
    await others.aclose()
    await asyncio.to_thread(member.close)
