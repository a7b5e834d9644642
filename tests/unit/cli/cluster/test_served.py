"""What is said of the operations that find their quorums, and of those that do not."""

from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo
from quorate.cli.cluster.served import served_by

REPLICAS = tuple(ReplicaInfo(f"r{n}", f"http://127.0.0.1:700{n}") for n in (1, 2, 3))


def test_each_rule_and_type_is_told_and_what_it_lacks() -> None:
    document = ClusterDocument(
        "test", REPLICAS, (ChoiceRule("queue/fast-*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),)
    )
    assert [each.told for each in served_by(document, ["r1"])] == [
        "queue/fast-*: Enq yes; Deq, Peek, Size no: 1 of 3 needed replicas answers",
        "queue/*: Enq, Deq, Peek, Size no: 1 of 2 needed replicas answers",
        "register/*: Write, Read, Cas no: 1 of 2 needed replicas answers",
        "dictionary/*: Put, Delete, Get, Items, Size, PutIfAbsent, Cas no: 1 of 2 needed replicas answers",
    ]
    assert not any(each.lacking for each in served_by(document, ["r1", "r2", "r3"]))


def test_one_outcome_that_lacks_more_than_others_is_told_by_itself() -> None:
    document = ClusterDocument("test", REPLICAS, (ChoiceRule("queue/mail", outbox=True, exact_empty=True),))
    told = [served_by(document, replicas)[0].told for replicas in (["r1"], ["r1", "r2"], ["r1", "r2", "r3"])]
    assert told == [
        "queue/mail: Enq yes; Deq, Peek, Size no: 1 of 2 needed replicas answers",
        "queue/mail: Enq, Deq, Peek, Size yes; Deq/Empty no: 2 of 3 needed replicas answer",
        "queue/mail: Enq, Deq, Peek, Size yes",
    ]


def test_where_votes_differ_votes_are_told() -> None:
    heavy = (ReplicaInfo("r1", REPLICAS[0].url, votes=2), *REPLICAS[1:])
    (queue, *_) = served_by(ClusterDocument("test", heavy), ["r2", "r3"])
    assert queue.lacking["Deq"] == "2 of 3 needed votes answer"
