"""What a replica's own front end sends it is checked like what comes over HTTP; large values in a thread."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.adts.log import Entry, Summary, Value
from quorate.api_specs.checking import Checked, check_batch
from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Accept, Append, Batch, BatchReply, Collect, Request
from quorate.replica.service import embedded
from quorate.replica.service.embedded import LARGE_BYTES, EmbeddedTransport
from quorate.timestamps.ballot import Ballot
from quorate.timestamps.timestamp import make

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
