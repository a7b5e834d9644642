"""The probe log over HTTP: pages, what is refused, and where there is none."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest
import pytest_asyncio

from quorate.api_specs.messages import PROBE_LOG_PATH, ProbeRow
from quorate.replica.access.token_list import from_text
from quorate.replica.data_folder.identity import open_folder
from quorate.replica.logs import probe_log
from quorate.replica.logs.probe_log import ProbeLog
from quorate.replica.server.app import create_app
from quorate.replica.service.embedded import embedded_front_end
from quorate.replica.service.member import Member
from quorate.replica.upkeep.probing import Probes
from tests.unit.replica.access.test_rights_per_object import LINES, TOKEN, WHOLE
from tests.unit.replica.conftest import Serving, one_replica

ROWS: Final = [ProbeRow("r1", 1793491200.0 + 10 * number, 1, None) for number in range(20)]


@pytest_asyncio.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """r1 asks for tokens, and has a log of these rows; its next look at the others is hours away."""
    (folder := tmp_path / "probes").mkdir()
    log = ProbeLog(folder, "r1", 30)
    for row in ROWS:
        log.write(row.time_s, [row], one_replica())
    access = from_text(LINES, WHOLE)
    member = Member(open_folder(tmp_path / "data", one_replica(), "r1"))
    app = create_app(
        member,
        lambda each: embedded_front_end(each, access.own_token),
        access=access,
        probes=Probes(log, 3600.0),
    )
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://r1",
            headers={"Authorization": f"Bearer {WHOLE}"},
        ) as opened,
    ):
        yield opened


async def test_pages_hold_all_rows_of_a_time(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_log, "PROBE_PAGE_BYTES_MAX", 200)
    noted = []
    asked = {"from_s": str(ROWS[2].time_s), "to_s": str(ROWS[18].time_s), "after": ""}
    found: list[ProbeRow] = []
    count = 0
    while count == 0 or asked["after"]:
        answer = await client.get(PROBE_LOG_PATH, params=asked)
        assert answer.status_code == 200
        told = answer.json()
        assert (told["observer"], told["every_s"]) == ("r1", 3600.0)
        found += msgspec.convert(told["rows"], list[ProbeRow])
        noted += told["configurations"]
        asked["after"] = told["next"]
        count += 1
    assert found == ROWS[2:18]
    own = (await client.get("/v1/cluster")).json()["document"]
    assert noted == [{"time_s": ROWS[0].time_s, "document": own}]
    assert count > 5


@pytest.mark.parametrize(
    "asked",
    [{"after": "../../etc/passwd"}, {"after": "20261101T000000Z"}, {"from_s": "nan"}, {"from_s": "-1"}],
)
async def test_what_is_no_place_and_no_time_is_refused(
    client: httpx.AsyncClient, asked: dict[str, str]
) -> None:
    answer = await client.get(PROBE_LOG_PATH, params=asked)
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed")


async def test_who_has_a_token_for_some_objects_or_none_is_not_told(client: httpx.AsyncClient) -> None:
    some = await client.get(PROBE_LOG_PATH, headers={"Authorization": f"Bearer {TOKEN}"})
    assert some.status_code == 403
    del client.headers["Authorization"]
    assert (await client.get(PROBE_LOG_PATH)).status_code == 401


async def test_a_log_that_cannot_be_read_is_told(client: httpx.AsyncClient, tmp_path: Path) -> None:
    (tmp_path / "probes").rename(tmp_path / "away")
    answer = await client.get(PROBE_LOG_PATH)
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/storage-failed")
    assert "the probe log cannot be read: No such file" in answer.json()["detail"]


async def test_a_replica_without_a_log_says_how_to_have_one(serving: Serving) -> None:
    async with serving(one_replica()) as plain:
        answer = await plain.get(PROBE_LOG_PATH)
    assert answer.status_code == 404
    assert answer.json()["detail"] == "this replica keeps no probe log: serve it with --probe-log FOLDER"
