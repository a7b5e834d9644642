"""Reads leave nothing behind: real replicas, a token that may only read, and names that nobody has used."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from quorate.client_sdk import connect
from quorate.replica.data_folder.identity import DATABASE_FILE
from tests.system.cluster.test_guarded import token_in_force
from tests.system.guarded import GuardedCluster

NAMES = 60
PATHS = (
    "/v1/queues/q{}/peek",
    "/v1/queues/q{}",
    "/v1/registers/r{}",
    "/v1/dictionaries/d{}",
    "/v1/dictionaries/d{}/entries/k",
)
"""Every read of the three types; so many names of each are 300 reads."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedCluster]:
    """Three replicas with tokens."""
    with GuardedCluster(tmp_path_factory.mktemp("reads"), replicas=3) as cluster:
        yield cluster


def rows_of(cluster: GuardedCluster) -> dict[str, tuple[int, ...]]:
    """How many objects and log entries each replica's file holds."""
    found = {}
    for replica in cluster.document.urls:
        path = cluster.root / replica / DATABASE_FILE
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as store:
            queries = ("SELECT count(*) FROM objects", "SELECT count(*) FROM rows")
            found[replica] = tuple(store.execute(sql).fetchone()[0] for sql in queries)
    return found


def test_reads_of_names_that_nobody_used_make_no_object_at_any_replica(guarded: GuardedCluster) -> None:
    reader = token_in_force(guarded, "read", name="reader")
    with guarded.client(reader) as plain:
        for number in range(NAMES):
            for path in PATHS:
                assert plain.get(path.format(number)).status_code in (200, 404)
        assert rows_of(guarded) == dict.fromkeys(guarded.document.urls, (0, 0))
        with connect(guarded.path, token=reader) as client:
            for number in range(NAMES, NAMES + 10):
                queue, register = client.queue(f"q{number}"), client.register(f"r{number}")
                dictionary = client.dictionary(f"d{number}")
                assert (queue.peek(), queue.size(), register.read()) == (None, 0, None)
                assert (dictionary.get("k"), dictionary.items()) == (None, {})
        for url in guarded.document.urls.values():
            assert plain.get(f"{url}/v1/status").json()["objects"] == 0
    assert rows_of(guarded) == dict.fromkeys(guarded.document.urls, (0, 0))
