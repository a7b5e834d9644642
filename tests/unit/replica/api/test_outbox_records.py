"""What a replica takes into its outboxes: records as enqueues leave them there, from whoever sends them."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import pytest
from msgspec.structs import replace

from quorate.adts.log import Dead, Entry, Leased, Summary, Value
from quorate.api_specs.cluster import ChoiceRule
from quorate.api_specs.messages import Accept, Append, Batch, Commit, Request
from quorate.api_specs.outboxes import Record
from quorate.api_specs.tokens import ScopeName
from quorate.replica.access.token_list import from_text
from quorate.replica.api.protocol_api import PATH
from quorate.timestamps.ballot import make_ballot
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
    entries = tuple(map(entry, texts, range(len(texts))))
    return await told(folder, Append(name, entries, attempt), token)  # type: ignore[arg-type]


def entry(text: str, later_us: int = 0, rest_of_id: str = "") -> Entry:
    t = stamp("write", time.time_ns() // 1000 + later_us)
    return Entry(t + rest_of_id, t, Value(text))


async def told(folder: Path, request: Request, token: ScopeName = "write") -> tuple[int, str]:
    """The status and the detail that a fresh replica answers the request with."""
    body = msgspec.json.encode(Batch(DOCUMENT.hash, (request,)))
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


REQUESTS: Final[dict[str, Callable[[Entry], Request]]] = {
    "entries": lambda each: Append(OUTBOX, (each,), "first"),
    "adopted": lambda each: Accept(OUTBOX, make_ballot(each.t, 1), Summary(adopted=(each,))),
    "leases": lambda each: Commit(OUTBOX, make_ballot(each.t, 1), summary=Summary(leases=(Leased(each),))),
}
"""What brings an entry where the relay meets it, and in which of its lists."""
WITH_TIMES: Final = ["//0-1", "//99999999999999999-0", "/digest", "/digest/0-1"]


@pytest.mark.parametrize("where", REQUESTS)
async def test_an_entry_whose_id_has_times_is_refused_however_it_comes(where: str, tmp_path: Path) -> None:
    """An enqueue has them in the record. 1,280 of these kept all places of an outbox's leases and dead letters, and its relay was given nothing more."""
    for place, rest_of_id in enumerate(WITH_TIMES):
        request = REQUESTS[where](entry(GOOD, rest_of_id=rest_of_id))
        status, detail = await told(tmp_path / str(place), request)
        assert status == 400, rest_of_id
        assert detail.startswith(
            f"requests[0]: {where}[0]: {OUTBOX} keeps what its queue's enqueues leave there: "
        )
        assert "its id is none that an enqueue gives" in detail


@pytest.mark.parametrize("where", ["adopted", "leases"])
async def test_a_decision_brings_records_alone(where: str, tmp_path: Path) -> None:
    assert (await told(tmp_path / "a", REQUESTS[where](entry(STRAY[0]))))[0] == 400
    assert (await told(tmp_path / "b", REQUESTS[where](entry(GOOD))))[0] == 200


async def test_what_a_decision_keeps_already_is_handed_on(tmp_path: Path) -> None:
    """Replicas install what others hold; and what is no record is a dead letter, until somebody purges it."""
    stray = entry(STRAY[0], rest_of_id="//0-1")
    assert (await told(tmp_path / "a", REQUESTS["leases"](stray), "replica"))[0] == 200
    rejected = Accept(OUTBOX, make_ballot(stray.t, 1), Summary(dead=(Dead(stray, "rejected", 1),)))
    assert (await told(tmp_path / "b", rejected))[0] == 200


async def test_an_entry_that_was_stamped_anew_keeps_its_id(tmp_path: Path) -> None:
    earlier, later = entry(GOOD), entry(GOOD, 5)
    assert (await told(tmp_path, REQUESTS["entries"](Entry(earlier.id, later.t, later.value))))[0] == 200
