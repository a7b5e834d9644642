"""Each test gets clusters in a folder of its own; a failing one shows what its replicas said."""

import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import Clusters

_SHOWN = pytest.StashKey[Clusters]()
_FAILED = pytest.StashKey[bool]()


@pytest.fixture
def clusters(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Clusters]:
    """Clusters for the time of a test; the folder stays only if the test fails."""
    made = Clusters(tmp_path)
    request.node.stash[_SHOWN] = made
    yield made
    made.stop()
    if not request.node.stash.get(_FAILED, False):
        shutil.rmtree(tmp_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the words of the replicas to the report of a failure."""
    report = yield
    if report.failed and _SHOWN in item.stash:
        item.stash[_FAILED] = True
        report.sections.append((f"files and replicas ({call.when})", item.stash[_SHOWN].shown()))
    return report
