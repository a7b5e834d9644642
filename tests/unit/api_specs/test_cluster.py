"""Cluster files: what fits together is taken, what does not is refused with the place and the remedy."""

import msgspec
import pytest

from quorate.api_specs.cluster import (
    BadCluster,
    ClusterDocument,
    ReplicaInfo,
    checked,
    from_json,
    is_replica_id,
    parse,
)
from quorate.api_specs.limits import REPLICAS_MAX, VOTES_MAX, Limits
from quorate.client_sdk.protocol.configurations import joint

REPLICAS = """
[[replicas]]
id = "r1"
url = "http://127.0.0.1:1"
[[replicas]]
id = "r2"
url = "http://127.0.0.1:2"
[[replicas]]
id = "r3"
url = "https://example.test"
votes = 2
store = "abc"
"""


def queue_rule(words: str) -> str:
    return GOOD + '[[choices]]\nobjects = "queue/*"\n' + words


GOOD = 'name = "c"\n' + REPLICAS


def test_the_shortest_document_has_defaults_for_the_rest() -> None:
    document = parse(GOOD)
    assert document.votes == {"r1": 1, "r2": 1, "r3": 2}
    assert document.urls["r3"] == "https://example.test"
    assert document.limits == Limits()
    assert document.rule_of("queue/any").collect
    assert document.choice_of("queue/any").sizes("Deq/Ok") == (2, 3)


def test_the_first_rule_that_matches_counts() -> None:
    document = parse(
        GOOD
        + """
[[choices]]
objects = "queue/fast-*"
classes = { "Enq/Ok" = [0, 1], "Deq/Ok" = [4, 1] }
collect = false
[[choices]]
objects = "queue/*"
classes = { "Enq/Ok" = [0, 4], "Deq/Ok" = [2, 3] }
[[choices]]
objects = "dictionary/users"
ordering = "quorum"
"""
    )
    assert document.choice_of("queue/fast-1").sizes("Deq/Ok") == (4, 1)
    assert not document.rule_of("queue/fast-1").collect
    assert document.choice_of("queue/slow").sizes("Enq/Ok") == (0, 4)
    assert document.choice_of("dictionary/users/ann").sizes("Put/Ok") == (2, 3)
    assert document.choice_of("dictionary/others/ann").sizes("Put/Ok") == (0, 3)


def test_the_hash_tells_documents_apart_and_survives_the_wire() -> None:
    document = parse(GOOD)
    assert from_json(msgspec.to_builtins(document)).hash == document.hash
    assert len(document.hash) == 64
    other = parse(GOOD.replace("votes = 2", "votes = 3"))
    assert other.hash != document.hash


def test_memory_covers_a_repeat_that_takes_long_and_clocks_that_are_behind_and_ahead() -> None:
    document = parse(
        GOOD + "[clock]\noffset_max_s = 3.0\n[limits]\nretry_window_s = 40.0\ndeadline_s_max = 22.0\n"
    )
    assert document.memory_s == 68.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = ", "cluster.toml is not TOML: Invalid value"),
        (REPLICAS, "this is missing: `name`"),
        ('name = "c"', "this is missing: `replicas`"),
        ('name = "c"\nreplicas = []', "give 1 to 25 replicas, not 0"),
        (GOOD + "surprise = 1", "there is no setting `surprise`"),
        (
            GOOD + '[limits]\nvalue_bytes_max = "1 MB"\n',
            "limits.value_bytes_max: expected a whole number, got a text",
        ),
        (GOOD.replace('"r2"', '"r1"'), "two replicas have the same id"),
        (GOOD.replace("127.0.0.1:2", "127.0.0.1:1"), "two replicas have the same url"),
        (GOOD.replace('"r2"', '"R2"'), "replica id 'R2': use 1 to 16 lower-case letters and digits"),
        (GOOD.replace('"r2"', '""'), "replica id ''"),
        (GOOD.replace('"r2"', '"' + "a" * 17 + '"'), "use 1 to 16"),
        (GOOD.replace("http://127.0.0.1:2", "127.0.0.1:2"), "must look like http://host:port"),
        (GOOD.replace("http://127.0.0.1:2", "ftp://h"), "must look like http://host:port"),
        (GOOD.replace("votes = 2", "votes = -1"), "votes must be 0 to 1000, not -1"),
        (GOOD.replace("votes = 2", "votes = 1001"), "votes must be 0 to 1000, not 1001"),
        (GOOD + "[limits]\nwait_s_max = 26.0", r"\[limits\]: wait_s_max must be at most deadline_s_max"),
        (GOOD + "[clock]\nreplica_error_s = -1.0", r"\[clock\]: replica_error_s is -1\.0: use 0 or more"),
        (GOOD + "[clock]\nfront_end_error_s = inf", r"\[clock\]: front_end_error_s is inf: use 0"),
        (GOOD + "[clock]\noffset_max_s = 0.0", r"\[clock\]: offset_max_s is 0\.0: use more than 0"),
        (GOOD + '[[choices]]\nobjects = "stack/*"', r"\[\[choices\]\] 1: 'stack/\*' must start with one of"),
        (
            GOOD + '[[choices]]\nobjects = "queue/*"\nclasses = { "Push/Ok" = [0, 1] }',
            r"\[\[choices\]\] 1 \(queue/\*\): a queue has no event class 'Push/Ok'",
        ),
        (
            GOOD + '[[choices]]\nobjects = "queue/*"\nclasses = { "Enq/Ok" = [0, 1], "Deq/Ok" = [3, 2] }',
            "Deq/Ok does not meet Enq/Ok",
        ),
        (
            GOOD + '[[choices]]\nobjects = "queue/*"\nreads = "r1"\nwrites = "r2"',
            r"1 \(queue/\*\): Deq depends on Deq/Ok and can miss it: \{r1\} and \{r2\} share no replica",
        ),
        (
            GOOD + '[[choices]]\nobjects = "queue/*"\nreads = "r1*"',
            "character 4 of 'r1.': the end stands where",
        ),
        (
            GOOD + '[[choices]]\nobjects = "queue/*"\nreads = "r9"',
            "reads: unknown replica 'r9'; known are r1",
        ),
        (GOOD + '[[choices]]\nobjects = "queue/*"\nwrites = "r1"', "writes without reads: give both"),
        (
            GOOD + '[[choices]]\nobjects = "queue/*"\nreads = "r1"\nclasses = { "Enq/Ok" = [0, 1] }',
            "give classes, or reads and writes, or initials and finals; not several",
        ),
        (
            queue_rule('finals = { Enq = "r1" }\nreads = "r1"'),
            "give classes, or reads and writes, or initials and",
        ),
        (queue_rule('initials = { Deq = "r1" }\nclasses = { "Enq/Ok" = [0, 1] }'), "not several of these"),
        (
            queue_rule('initials = { Pop = "r1" }'),
            "initials: a queue has no operation 'Pop': use Enq, Deq, Peek, Size",
        ),
        (
            queue_rule('initials = { "Deq/Ok" = "r1" }'),
            "initials are given by operation, for nobody knows the outcome before reading: write Deq, not Deq/Ok",
        ),
        (
            queue_rule('initials = { Enq = "r1" }'),
            "initials: Enq depends on nothing here and reads nobody; leave it out",
        ),
        (
            queue_rule('initials = { Deq = "r1*" }'),
            "initials, Deq: character 4 of 'r1.': the end stands where",
        ),
        (
            queue_rule('initials = { Deq = "r1 + r9" }'),
            "initials, Deq: unknown replica 'r9'; known are r1, r2, r3",
        ),
        (
            queue_rule('finals = { "Deq/Full" = "r1" }'),
            "finals: a queue has no event class 'Deq/Full': use Enq/Ok, Deq/Ok",
        ),
        (
            queue_rule('finals = { Deq = "r1", "Deq/Ok" = "r1" }'),
            "finals: Deq/Ok is given twice; give it once",
        ),
        (
            queue_rule('finals = { "Deq/Empty" = "r1" }'),
            "finals: Deq/Empty changes nothing and is stored nowhere; leave it",
        ),
        (
            queue_rule('finals = { Peek = "r1" }'),
            "finals: Peek/Ok changes nothing and is stored nowhere; leave it out",
        ),
        (
            queue_rule('finals = { Enq = "choose(0; r1) + r2" }'),
            "Enq/Ok changes the state and is stored nowhere: give it",
        ),
        (
            queue_rule('finals = { Enq = "choose(4; r1, r2, r3)" }'),
            "finals, Enq: 4 votes are needed but there are 3",
        ),
        (
            queue_rule('finals = { Enq = "votes(1; r1:0)" }'),
            r"finals, Enq: votes\(1; …\) gives no votes at all",
        ),
        (
            queue_rule('finals = { Enq = "' + "r1+" * 4000 + 'r1" }'),
            "finals, Enq: the system has 12002 characters; write at",
        ),
        (
            queue_rule('initials = { Deq = "r1*r2" }\nfinals = { Enq = "r3", "Deq" = "r1" }'),
            r"1 \(queue/\*\): Deq depends on Enq/Ok and can miss it: \{r1, r2\} and \{r3\} share no replica; make one",
        ),
        (
            queue_rule(
                'initials = { Enq = "r1" }\nfinals = { Enq = "r2", Deq = "r1*r2" }\nordering = "quorum"'
            ),
            r"Enq depends on Enq/Ok and can miss it: \{r1\} and \{r2\} share no replica",
        ),
        (
            GOOD + '[[choices]]\nobjects = "queue/*"\nordering = "luck"',
            "ordering: there is no 'luck': use clock or quorum",
        ),
        (
            GOOD + '[[choices]]\nobjects = "queue/*"\nconsistency = "eventuel"',
            "consistency: there is no 'eventuel': use atomic or eventual",
        ),
    ],
)
def test_a_document_that_cannot_be_used_is_refused_with_the_place(text: str, sentence: str) -> None:
    with pytest.raises(BadCluster, match=sentence):
        parse(text)


def test_a_document_from_the_wire_is_checked_too() -> None:
    with pytest.raises(BadCluster, match="cluster file: this is missing:"):
        from_json({"name": "c"})


def test_the_number_of_replicas_is_bounded() -> None:
    def document(number: int) -> ClusterDocument:
        replicas = (ReplicaInfo(f"r{each}", f"http://r{each}", VOTES_MAX) for each in range(number))
        return ClusterDocument("c", tuple(replicas))

    assert checked(document(REPLICAS_MAX)).votes
    with pytest.raises(BadCluster, match="give 1 to 25 replicas, not 26"):
        checked(document(REPLICAS_MAX + 1))


def test_a_pattern_over_several_types_must_fit_them_all() -> None:
    text = GOOD + '[[choices]]\nobjects = "*"\nclasses = { "Enq/Ok" = [0, 3] }'
    with pytest.raises(BadCluster, match="has no event class 'Enq/Ok'"):
        parse(text)
    assert parse(GOOD + '[[choices]]\nobjects = "*"\ncollect = false').rule_of("register/r").collect is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r1", True),
        ("a", True),
        ("a" * 16, True),
        ("a" * 17, False),
        ("", False),
        ("R1", False),
        ("r-1", False),
        ("r1\n", False),
        ("é1", False),
        ("1", False),
    ],
)
def test_a_replica_may_have_such_an_id(text: str, expected: bool) -> None:
    """The same in a cluster file, and of one that is to become a member."""
    assert is_replica_id(text) is expected
    document = ClusterDocument("c", (ReplicaInfo(text, "http://127.0.0.1:1"),))
    if expected:
        assert list(checked(document).votes) == [text]
    else:
        with pytest.raises(BadCluster, match="use 1 to 16 lower-case letters and digits"):
            checked(document)


def test_the_stores_that_a_file_names_are_those_of_both_sides_while_it_changes() -> None:
    old = ClusterDocument("c", (ReplicaInfo("r1", "http://r1", 1, "one"), ReplicaInfo("r2", "http://r2")))
    new = ClusterDocument("c", (ReplicaInfo("r2", "http://r2"), ReplicaInfo("r3", "http://r3", 1, "three")))
    assert new.stores == {"r2": "", "r3": "three"}
    assert joint(old, new).stores == {"r1": "one", "r2": "", "r3": "three"}
