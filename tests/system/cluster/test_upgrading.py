"""Shows that replicas are upgraded one after another while the cluster is used, and go back one after another: nothing acknowledged is lost, doubled or
out of order. Going back ends where members or quorum choices change: from then on the earlier release is refused, with a sentence, on both sides.

The earlier release is the last commit before that could be done, with stores that it made, and front ends of both releases work on meanwhile.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from quorate import __version__
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.cli.cluster.probe import is_live
from quorate.client_sdk import connect, connect_async
from quorate.client_sdk.api.history import History
from quorate.replica.data_folder.identity import DATABASE_FILE
from tests.system.cluster.test_changing import epochs, toml, with_votes
from tests.system.harness import Clusters, stop, until_now
from tests.system.histories import Told
from tests.system.load import MAJORITIES, last_look
from tests.system.mixed_releases import THIS, Release, format_anew, release_before, users
from tests.unit.cli.conftest import quorate

APART: Final = 10_000_000
"""Between the numbers of two processes, neither of which stores so many values."""


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return release_before(tmp_path_factory.mktemp("release"))


def status(cluster: LocalCluster, replica: str) -> dict[str, Any]:
    """What the replica says of itself."""
    told: dict[str, Any] = httpx.get(f"{cluster.urls[replica]}/v1/status", trust_env=False).json()
    return told


async def _look_at_all(cluster: LocalCluster, history: Path) -> None:
    async with connect_async(cluster.document, history=History(history)) as last:
        await last_look(last)


@pytest.mark.slow
def test_replicas_are_upgraded_one_by_one_under_load_and_go_back(
    clusters: Clusters, before: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = clusters.make()
    format_anew(cluster, before)
    before.chosen(monkeypatch)
    cluster.start()
    cluster.ready()

    def each_runs(release: Release, told: Any, everybody: Callable[[str], None]) -> None:
        release.chosen(monkeypatch)
        for replica in cluster.urls:
            assert stop(cluster, replica) == 0
            everybody(f"without {replica}")
            cluster.restart(replica)
            assert status(cluster, replica).get("protocol") == told
            everybody(f"with another release at {replica}")

    with ExitStack() as stack:
        working = [
            stack.enter_context(users(release, cluster, clusters.history, place * APART + 1))
            for place, release in enumerate((before, THIS))
        ]

        def everybody(when: str) -> None:
            for each in working:
                each.ask(when)
            for each in working:
                each.hear(when)

        everybody("before the upgrade")
        each_runs(THIS, {"oldest": 1, "newest": 2}, everybody)
        each_runs(before, None, everybody)
    asyncio.run(_look_at_all(cluster, clusters.history))
    told = Told(clusters.history)
    print({name: dict(ends) for name, ends in told.ends.items()})
    assert told.check(search=MAJORITIES) == 0, "a search was given up"


@pytest.mark.slow
def test_members_and_choices_change_once_all_are_upgraded_and_then_nobody_goes_back(
    clusters: Clusters, before: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = clusters.make()
    format_anew(cluster, before)
    before.chosen(monkeypatch)
    cluster.launch("r3")
    THIS.chosen(monkeypatch)
    cluster.start()
    cluster.ready()
    known = ("--cluster", str(cluster.document_path))
    with connect(cluster.document) as client:
        client.register("leader").write("before the change")

    shown = quorate("status", *known)
    assert shown.returncode == 0, shown.stderr
    assert (
        f"r1, r2: release {__version__}, which speaks versions 1-2 of the replica protocol." in shown.stdout
    )
    assert "r3: release of before, which speaks version 1 of the replica protocol." in shown.stdout
    assert before.quorate("status", *known).returncode == 0

    wanted = toml(with_votes(cluster.document, r1=3, r2=2, r3=2), tmp_path / "votes.toml")
    refused = quorate("change", str(wanted), *known)
    assert refused.returncode == 1
    assert "r3: the release there speaks version 1 of the replica protocol" in refused.stderr
    assert "update it first" in refused.stderr
    assert set(epochs(cluster).values()) == {0}, "nothing was chosen"

    assert stop(cluster, "r3") == 0
    assert quorate("change", str(wanted), *known).returncode == 0
    store = cluster.data_folder("r1") / DATABASE_FILE

    told = before.quorate("register", "leader", "read", *known)
    assert told.returncode != 0
    assert "the sender speaks version 1 of the replica protocol, and replica" in told.stderr
    assert "update the sender to a release that speaks version 2" in told.stderr
    assert stop(cluster, "r1") == 0
    held = store.read_bytes()
    started = before.quorate("serve", "--id", "r1", "--data", str(store.parent), *known)
    assert started.returncode == 1
    assert (
        "written by a newer release (schema 8, this one knows 7): install that release again"
        in started.stderr
    )
    assert store.read_bytes() == held

    # One that slept through the change goes back alone, and counts for nobody until it is upgraded.
    before.chosen(monkeypatch)
    cluster.launch("r3")
    until_now(lambda: is_live(cluster.urls["r3"]), "r3 runs")
    THIS.chosen(monkeypatch)
    cluster.restart("r1")
    with connect(cluster.document) as client:
        assert client.register("leader").read() == "before the change"
    shown = quorate("status", *known)
    assert shown.returncode == 1
    assert "r3: it is in configuration 0, and the cluster in 2: update its release" in shown.stdout
    assert stop(cluster, "r3") == 0
    cluster.restart("r3")
    until_now(lambda: set(epochs(cluster).values()) == {2}, "r3 goes on")
