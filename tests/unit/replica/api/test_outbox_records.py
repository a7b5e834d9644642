"""What a replica takes into its outboxes: records as enqueues leave them there, from whoever sends them."""

import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Value
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.messages import Append, Batch
from quorate.api_specs.outboxes import Record
from quorate.api_specs.tokens import ScopeName
from quorate.replica.access.token_list import from_text
from quorate.replica.api.protocol_api import PATH
from tests.unit.replica.access.test_authorization import LINES, TOKENS, guarded, stamp
from tests.unit.replica.conftest import small

DOCUMENT = replace(small(), choices=(ChoiceRule("queue/mail*", outbox=True),))
OUTBOX = f"queue/mail@{next(iter(DOCUMENT.votes))}"
GOOD = Record("k/0", Value('"x"'), 5, 1.0, 9.0).text()
STRAY = ['"x"', Record("k" * 3000, Value('"x"')).text(), Record("k/0", Value('"x"'), 0, 1e15).text()]
LATER = Record("k/0", Value('"x"'), time.time_ns() // 1000 + 347 * 86_400_000_000, 1.0).text()
"""It is relayed once its time is near enough, and the relay asks for it again and again until then."""


async def answered(
    folder: Path, name: str, *texts: str, token: ScopeName = "write", attempt: str = "first"
) -> tuple[int, str]:
    """The status and the detail that one append to a fresh replica is answered with."""
    stamps = [stamp("write", time.time_ns() // 1000 + place) for place in range(len(texts))]
    entries = tuple(Entry(t, t, Value(text)) for t, text in zip(stamps, texts, strict=True))
    body = msgspec.json.encode(Batch(DOCUMENT.hash, (Append(name, entries, attempt),)))  # type: ignore[arg-type]
    async with guarded(folder, DOCUMENT, from_text(LINES, TOKENS["replica"])) as client:
        answer = await client.post(PATH, content=body, headers={"Authorization": f"bearer {TOKENS[token]}"})
    return answer.status_code, answer.json().get("detail", "")


@pytest.mark.parametrize("text", [*STRAY, LATER], ids=["no record", "long key", "far delay", "of later"])
async def test_what_no_enqueue_leaves_there_is_refused(text: str, tmp_path: Path) -> None:
    """Its relay had no room for more than a few of these, and then relayed nothing."""
    status, detail = await answered(tmp_path, OUTBOX, GOOD, text)
    assert status == 400
    assert detail.startswith(
        f"requests[0]: entries[1]: {OUTBOX} keeps what its queue's enqueues leave there: "
    )


async def test_records_are_taken_and_other_queues_keep_what_they_like(tmp_path: Path) -> None:
    assert (await answered(tmp_path / "a", OUTBOX, GOOD, GOOD))[0] == 200
    assert (await answered(tmp_path / "b", "queue/mail", STRAY[0]))[0] == 200
    soon = Record("k/0", Value('"x"'), time.time_ns() // 1000 + 1_000_000, 1.0).text()
    assert (await answered(tmp_path / "d", OUTBOX, soon))[0] == 200, "clocks are apart"
    assert (await answered(tmp_path / "c", "queue/mail@r9", STRAY[0]))[0] == 200


async def test_what_is_stored_already_is_handed_on_by_replicas(tmp_path: Path) -> None:
    assert (await answered(tmp_path, OUTBOX, STRAY[0], token="replica", attempt="repair"))[0] == 200
