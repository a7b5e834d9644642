"""What a listing of many keys costs: each page is weighed once, however many came before it."""

from pathlib import Path

import httpx
import pytest

from quorate.api_specs.limits import Limits
from quorate.api_specs.messages import Reply
from quorate.api_specs.weights import weight
from quorate.client_sdk.protocol.operations import observe
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.server.app import create_app
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from tests.unit.replica.conftest import one_replica

KEYS = 20
LOOKS_MAX = 4


async def test_each_page_of_a_listing_is_weighed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that had come was weighed again with each page: 60,000 keys were not listed within six seconds."""
    document = one_replica(Limits())
    member = Member(open_folder(tmp_path / "data", document, "r1"))
    app = create_app(member, lambda each: embedded_front_end(each, None))
    weighed: list[object] = []

    def noting(reply: Reply) -> int:
        weighed.append(reply)
        return weight(reply)

    monkeypatch.setattr(observe, "PAGE_OBJECTS", 2)
    monkeypatch.setattr(observe, "weight", noting)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://r1") as client,
    ):
        for number in range(KEYS):
            await client.put(f"/v1/dictionaries/d/entries/{number}", json={"value": number})
        listed = await client.get("/v1/dictionaries/d?deadline_s=25")
    assert listed.json()["size"] == KEYS
    assert KEYS <= len(weighed) <= LOOKS_MAX * KEYS
