"""A key of any text in a path: decoded once, served by its name, and shown as it was written."""

import httpx
import pytest

from quorate.adts.keys import key_name
from quorate.replica.http.entry_paths import kept_path
from quorate.replica.http.problems import Refusal
from tests.unit.replica.http.test_bad_input import problem_in

AT = "/v1/dictionaries/shop/entries"
KEYS = {
    "mugs%2Fred%20%26%20blue": "mugs/red & blue",
    "100%25": "100%",
    "%252F": "%2F",
    "a+b": "a+b",
    "(!*',)": "(!*',)",
    "=20": "=20",
    "%3D20x": "=20x",
    ".hidden": ".hidden",
    "%C3%A9%0A": "é\n",
    "entries": "entries",
    "%2F": "/",
}


@pytest.mark.parametrize("place", ["/v1/dictionaries/shop/entries", "/v%31/%64ictionaries/shop/%65ntries"])
@pytest.mark.parametrize("rest", ["", "/put-if-absent"])
@pytest.mark.parametrize(("escaped", "key"), KEYS.items())
def test_a_key_is_decoded_once_and_stands_as_its_name(place: str, rest: str, escaped: str, key: str) -> None:
    raw = f"{place}/{escaped}{rest}".encode()
    assert kept_path(f"{AT}/{key}{rest}", raw) == f"{AT}/{key_name(key)}{rest}"


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        ("/v1/dictionaries/shop/entries/a", "/v1/dictionaries%2Fshop/entries/a"),
        ("/v1/dictionaries/shop/entries/a", "/v1/dictionaries/shop/entries%2fa"),
        ("/v1/dictionaries/shop/entries/a/b", "/v1/dictionaries/shop%2Fentries/a/b"),
        ("/v1/dictionaries/shop/entries/a/b/c", "/v1/dictionaries/shop/entries/a/b%2Fc"),
        ("/v1/dictionaries/sh/op/entries/a", "/v1/dictionaries/sh%2Fop/entries/a"),
        ("/v1/queues/a/items", "/v1/queues/a%2Fitems"),
        ("/v1/registers/a/b/entries/c", "/v1/registers/a/b/entries/%2F"),
    ],
)
def test_an_escaped_slash_elsewhere_parts_no_path(path: str, raw: str) -> None:
    with pytest.raises(Refusal) as refused:
        kept_path(path, raw.encode())
    assert refused.value.problem.name == "no-such-path"


@pytest.mark.parametrize(
    "path", ["/v1/dictionaries/shop", "/v1/dictionaries/shop/entries/", "/v1/queues/=20/items", "/ui"]
)
def test_other_paths_stay_as_they_are(path: str) -> None:
    assert kept_path(path, path.encode()) == path


async def test_entries_live_under_any_key(client: httpx.AsyncClient) -> None:
    for number, (escaped, key) in enumerate(KEYS.items()):
        assert (await client.put(f"{AT}/{escaped}", json={"value": 0})).status_code == 204
        stored = await client.post(f"{AT}/{escaped}/put-if-absent", json={"value": 1})
        swapped = await client.post(f"{AT}/{escaped}/compare-and-set", json={"old": 0, "new": number})
        assert (stored.json(), swapped.json()) == ({"stored": False}, {"swapped": True}), key
        assert (await client.get(f"{AT}/{escaped}")).json() == {"value": number}
    listed = (await client.get("/v1/dictionaries/shop")).json()
    assert listed["items"] == {key: number for number, key in enumerate(KEYS.values())}
    found, after = [], ""
    for _ in KEYS:
        page = (await client.get("/v1/dictionaries/shop", params={"limit": 1, "after": after})).json()
        found += page["items"]
        if (after := page.get("next", "")) == "":
            break
    assert found == list(listed["items"])
    for prefix, keys in (
        ("mugs/red &", ["mugs/red & blue"]),
        ("=2", ["=20", "=20x"]),
        ("=", ["=20", "=20x"]),
    ):
        some = (await client.get("/v1/dictionaries/shop", params={"prefix": prefix})).json()
        assert (some["size"], sorted(some["items"])) == (len(keys), keys)
    for escaped, key in KEYS.items():
        assert (await client.delete(f"{AT}/{escaped}")).status_code == 204
        told = problem_in(await client.get(f"{AT}/{escaped}"))
        assert (told.name, told.detail) == ("not-found", f"the dictionary shop has no key {key}")
    assert (await client.get("/v1/dictionaries/shop")).json()["size"] == 0


@pytest.mark.parametrize(
    ("escaped", "words"),
    [
        ("%FF", "the key in the path is no UTF-8"),
        ("%ED%A0%80", "the key in the path is no UTF-8"),
        ("%C3%A9" * 34, "takes 204 of 200 characters"),
        ("k" * 201, "takes 201 of 200 characters"),
    ],
)
async def test_what_is_no_key_is_refused_in_words(
    client: httpx.AsyncClient, escaped: str, words: str
) -> None:
    for answer in (
        await client.get(f"{AT}/{escaped}"),
        await client.put(f"{AT}/{escaped}", json={"value": 1}),
    ):
        told = problem_in(answer)
        assert told.name == "bad-name"
        assert words in str(told.detail)
    assert (await client.get("/v1/status")).json()["objects"] == 0
