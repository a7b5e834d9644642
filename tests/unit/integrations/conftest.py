"""Clusters as the tests on real processes have them; huey's own suite with its slow tests, which it asks about at import.

For Kombu: connections and queues, on the cluster that a module's tests share.
"""

import os
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kombu import Connection, Exchange, Queue

import quorate.integrations.kombu_transport  # noqa: F401  # makes the broker URLs known
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import Client, connect
from tests.system.conftest import clusters, pytest_runtest_makereport, shared_cluster, shared_clusters
from tests.unit.integrations.kombu_reader import LONG_S, Connect

__all__ = ["clusters", "pytest_runtest_makereport", "shared_cluster", "shared_clusters"]

os.environ["HUEY_SLOW_TESTS"] = "1"


@pytest.fixture
def client(shared_cluster: LocalCluster) -> Iterator[Client]:
    """A look at the queues besides Kombu."""
    with connect(shared_cluster.document, deadline_s=20.0) as made:
        yield made


@pytest.fixture
def connected(shared_cluster: LocalCluster) -> Iterator[Connect]:
    """Connections as a user makes them, closed at the end."""
    made: list[Connection] = []

    def one(**options: Any) -> Connection:
        url = f"quorate://{shared_cluster.document_path}"
        options = {"deadline_s": 20.0, "lease_s": LONG_S} | options
        made.append(Connection(url, transport_options=options))
        return made[-1]

    yield one
    for connection in made:
        connection.release()


@pytest.fixture
def queue() -> Queue:
    """A queue that no other test has."""
    name = f"test-{uuid.uuid4().hex}"
    return Queue(name, Exchange(name), routing_key=name)
