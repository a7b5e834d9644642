"""What a listing of many keys costs: each page is weighed once, however many came before it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

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
from tests.unit.replica.conftest import one_replica, serve_from

KEYS = 20
LOOKS_MAX = 4
LISTING_BYTES, VALUE_BYTES = 64 * 1024, 4096


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A replica that lists little at once."""
    async with serve_from(tmp_path)(one_replica(Limits(listing_bytes_max=LISTING_BYTES))) as made:
        yield made


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


async def test_a_dictionary_is_listed_in_pages(client: httpx.AsyncClient) -> None:
    for key in ("a", "b.1", "b.2", "b.3", "c"):
        await client.put(f"/v1/dictionaries/d/entries/{key}", json={"value": key})
    found: dict[str, str] = {}
    asked: dict[str, str | int] = {"prefix": "b.", "limit": 2}
    while True:
        page = (await client.get("/v1/dictionaries/d", params=asked)).json()
        assert page["size"] == len(page["items"]) <= 2
        found |= page["items"]
        if "next" not in page:
            break
        assert page["next"] > str(asked.get("after", ""))
        asked["after"] = page["next"]
    assert found == {key: key for key in ("b.1", "b.2", "b.3")}
    assert (await client.get("/v1/dictionaries/d", params={"after": "b.3"})).json() == {
        "size": 1,
        "items": {"c": "c"},
    }
    for wrong in ({"prefix": "b" * 201}, {"after": "/" * 67}):
        refused = await client.get("/v1/dictionaries/d", params=wrong)
        assert (refused.status_code, refused.json()["type"]) == (400, "/problems/bad-name")
    for limit, named in ((100_000, "page_entries_max"), (0, "limit")):
        refused = await client.get("/v1/dictionaries/d", params={"limit": limit})
        assert (refused.status_code, refused.json()["type"]) == (400, "/problems/malformed")
        assert named in refused.json()["detail"]


async def test_what_is_too_large_for_one_listing_is_listed_in_pages(small: httpx.AsyncClient) -> None:
    value = "x" * (VALUE_BYTES - 2)
    for number in range(LISTING_BYTES // VALUE_BYTES + 1):
        await small.put(f"/v1/dictionaries/d/entries/{number:02}", json={"value": value})
    whole = await small.get("/v1/dictionaries/d")
    assert (whole.status_code, whole.json()["type"]) == (429, "/problems/listing-too-large")
    assert "in pages" in whole.json()["advice"]
    keys: list[str] = []
    page: dict[str, Any] = {"next": ""}
    while "next" in page:
        asked: dict[str, str | int] = {"limit": 4, "after": page["next"]}
        page = (await small.get("/v1/dictionaries/d", params=asked)).json()
        assert page.get("next", "~") > str(asked["after"])
        keys += page["items"]
    assert keys == [f"{number:02}" for number in range(LISTING_BYTES // VALUE_BYTES + 1)]
