"""Which Host a loopback replica answers to, and that where and who are said once."""

import httpx
import pytest

from quorate.replica.http.host_header import AllowedHosts
from quorate.replica.http.problems import Refusal
from tests.unit.replica.conftest import Serving, one_replica

HOSTS = AllowedHosts(["r1.example", "::1"], is_loopback=True)


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8001",
        "127.0.0.1:1",
        "127.9.9.9",
        "[::1]",
        "[::1]:9",
        "R1.example:80",
        "localhost:",
    ],
)
def test_names_of_this_machine_are_its_own(host: str) -> None:
    HOSTS.check({b"host": host.encode()})


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:1@evil",
        "127.0.0.1:x",
        "127.0.0.1:1:2",
        "127.0.0.1/evil",
        "me@127.0.0.1",
        "[::1]evil",
        "[::1]:evil",
        "[::1",
        "::1",
        "[localhost]",
        "localhost evil",
        "localhost\n",
        "",
    ],
)
def test_a_host_is_its_own_in_full_or_not_at_all(host: str) -> None:
    with pytest.raises(Refusal) as refused:
        HOSTS.check({b"host": host.encode()})
    assert refused.value.problem.name == "wrong-host"


@pytest.mark.parametrize("path", ["/v1/health/live", "/v1/registers/a", "/ui"])
@pytest.mark.parametrize("name", ["Host", "Authorization", "Idempotency-Key"])
async def test_a_header_that_says_where_or_who_or_which_comes_once(
    serving: Serving, path: str, name: str
) -> None:
    async with serving(one_replica(), token="t") as client:
        once = [("Host", "r1"), ("Authorization", "Bearer t"), ("Idempotency-Key", "k")]
        answer = await client.get(path, headers=httpx.Headers([*once, ("X-Other", "1"), ("X-Other", "2")]))
        assert answer.status_code in (200, 404)
        again = next(each for each in once if each[0] == name)
        answer = await client.get(path, headers=httpx.Headers([*once, again]))
        assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed")
        assert name in answer.json()["detail"]
