"""Who asks for what is not there leaves nothing behind: a replica forgets what it promised for it once the retry window has passed."""

from functools import partial

import pytest

from quorate.adts.library import Counter
from quorate.api_specs.cluster import ChoiceRule
from quorate.cli.cluster.local_cluster import LocalCluster
from quorate.client_sdk import connect
from tests.system.harness import QUICK, Clusters, answered, until_now
from tests.system.objects.test_tombstones import told

ABSENT = 50
KEPT = ChoiceRule("dictionary/history", collect=False)
OWN = '\n[types]\nvisits = "quorate.adts.library:Counter"\n'


def known(cluster: LocalCluster, *replicas: str) -> list[int | None]:
    """How many objects each of these knows."""
    found = told(cluster)
    return [found[id].objects for id in replicas]


@pytest.mark.slow
def test_what_was_asked_for_in_vain_is_forgotten_though_a_replica_is_down(clusters: Clusters) -> None:
    cluster = clusters.start(settings=QUICK)
    cluster.kill("r3")
    with connect(cluster.document, deadline_s=1.9) as client:
        users = client.dictionary("users")
        users.put("kept", 1)
        for number in range(ABSENT):
            assert not answered(partial(users.compare_and_set, f"absent-{number}", "old", "new"))
            assert answered(client.queue(f"empty-{number}").dequeue) is None
        until_now(lambda: known(cluster, "r1", "r2") == [1, 1], "they are forgotten", deadline_s=60)
        assert users.get("kept") == 1
        assert users.compare_and_set("absent-0", None, "new")
        assert users.get("absent-0") == "new"


@pytest.mark.slow
def test_what_was_asked_for_in_vain_under_a_key_is_forgotten_by_all(clusters: Clusters) -> None:
    """That nothing was done is decided then, and ends what an attempt before may have left; so it takes all replicas to forget it. The answer of a
    call is remembered, though it changed nothing. An object of one's own type that is as new again is forgotten, too. One that keeps its events
    (`collect = false`) stays."""
    cluster = clusters.start(settings=QUICK + OWN, rules=(KEPT,))
    with connect(cluster.document, deadline_s=1.9) as client:
        users = client.dictionary("users")
        users.put("kept", 1)
        client.object(Counter, "kept").add(1)
        cluster.kill("r3")
        for number in range(ABSENT):
            key = f"in-vain-{number}"
            swap = partial(users.compare_and_set, f"absent-{number}", "old", "new", idempotency_key=key)
            assert not answered(swap)
            assert answered(partial(client.queue(f"empty-{number}").dequeue, idempotency_key=key)) is None
            assert answered(client.object(Counter, f"new-{number}", idempotency_key=key).value) == 0
        assert not client.dictionary("history").compare_and_set("absent", 1, 2, idempotency_key="in-vain")
        assert known(cluster, "r1", "r2") == [3 + 3 * ABSENT, 3 + 3 * ABSENT]
        for number in range(ABSENT):
            again = client.object(Counter, f"again-{number}")
            again.add(2)
            again.add(-2)
            assert answered(again.value) == 0
        cluster.restart("r3")
        until_now(lambda: known(cluster, "r1", "r2", "r3") == [3, 3, 3], "they are forgotten", deadline_s=60)
        assert (users.get("kept"), client.object(Counter, "kept").value()) == (1, 1)
        assert users.compare_and_set("absent-0", None, "new", idempotency_key="again")
        assert users.get("absent-0") == "new"
