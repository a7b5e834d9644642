"""Clusters for tests, each in a folder of its own; a failing test shows what its replicas said."""

import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from quorate.cli.cluster.local_cluster import LocalCluster
from tests.support import browser, forked
from tests.support.browser import Tab
from tests.system.harness import Clusters

forked.fork_replicas()

_HAS_FAILED = pytest.StashKey[bool]()


def _clusters(folder: Path, node: pytest.Item | pytest.Collector) -> Iterator[Clusters]:
    made = Clusters(folder)
    yield made
    made.stop()
    if not node.stash.get(_HAS_FAILED, False):
        shutil.rmtree(folder)


@pytest.fixture
def clusters(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """Clusters for the time of a test; the folder stays only if the test fails."""
    yield from _clusters(tmp_path, request.node)


@pytest.fixture(scope="module")
def shared_clusters(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Clusters]:
    """Clusters for all tests of a module."""
    yield from _clusters(tmp_path_factory.mktemp("shared"), request.node)


@pytest.fixture
def shared_cluster(shared_clusters: Clusters) -> LocalCluster:
    """Three replicas that are ready, for tests that use objects of their own and bring back what they kill."""
    if not shared_clusters.made:
        return shared_clusters.start()
    (cluster,) = shared_clusters.made
    cluster.start()
    cluster.ready()
    return cluster


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """One tab for all tests of a module: starting a browser takes a second."""
    with browser.tab(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the words of the replicas to the report of a failure."""
    report = yield
    if report.failed:
        for node in (item, item.parent):
            if node is not None:
                node.stash[_HAS_FAILED] = True
        for used in getattr(item, "funcargs", {}).values():
            if isinstance(used, Clusters):
                report.sections.append((f"files and replicas ({call.when})", used.shown()))
    return report
