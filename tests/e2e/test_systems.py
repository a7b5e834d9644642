"""Shows that objects kept by quorum systems can be used while their quorums are up, and not while these are down.

Whoever reads asks r1, or r2 and r3; whoever changes something stores it at r1 and at r2 or r3.
"""

import pytest

from quorate.api_specs.cluster import ChoiceRule
from quorate.client_sdk import QuorateError, connect
from tests.e2e.harness import Clusters

CHOICES = [
    ChoiceRule(f"{adt}/config", reads="r1 + r2*r3", writes="r1*(r2 + r3)")
    for adt in ("register", "queue", "dictionary")
]


def test_what_is_up_is_what_the_system_says(clusters: Clusters) -> None:
    cluster = clusters.start(rules=CHOICES)
    with connect(cluster.document, deadline_s=2) as client:
        register, queue, users = (
            client.register("config"),
            client.queue("config"),
            client.dictionary("config"),
        )
        register.write(1)
        queue.enqueue_many(["a", "b", "c"])
        assert users.put_if_absent("x", 1)
        cluster.kill("r3")
        assert register.compare_and_set(1, 2)
        assert queue.dequeue() == "a"
        users.put("y", 2)
        cluster.restart("r3")
        cluster.kill("r1")
        with connect(cluster.document, deadline_s=2) as other:
            assert other.register("config").read() == 2
            assert other.dictionary("config").items() == {"x": 1, "y": 2}
            for change in (
                lambda: other.register("config").write(3),
                lambda: other.queue("config").enqueue("d"),
                lambda: other.dictionary("config").put_if_absent("z", 3),
            ):
                with pytest.raises(QuorateError):
                    change()
        cluster.restart("r1")
        assert [queue.dequeue(), queue.dequeue()] == ["b", "c"]
