"""Outboxes by name, what they keep, and which objects are some by a cluster file."""

from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.adts.log import Value
from quorate.api_specs.classes_held import classes_held
from quorate.api_specs.cluster import (
    BadCluster,
    ChoiceRule,
    ClusterDocument,
    ReplicaInfo,
    checked,
    from_json,
    parse,
)
from quorate.api_specs.outboxes import BadRecord, Outbox, Record, outbox_named, record_of

HEAD: Final = 'name = "c"\n' + "".join(
    f'[[replicas]]\nid = "r{n}"\nurl = "http://r{n}:1"\n' for n in (1, 2, 3)
)
MAIL: Final = HEAD + '[[choices]]\nobjects = "queue/mail*"\noutbox = true\n'


def document(text: str = MAIL) -> ClusterDocument:
    return parse(text)


@given(
    st.text('abc/.+=~!"\\', min_size=1, max_size=20),
    st.sampled_from(['"x"', "null", '{"a":[1,2.5]}', '"\\"]"', "1e+300"]),
    st.sampled_from([0, 1_764_000_000_000_000]),
    st.floats(0, 1e6),
)
def test_a_record_comes_back_as_it_went_in(key: str, value: str, since_us: int, delay_s: float) -> None:
    record = Record(key, Value(value), since_us, delay_s, 2 * delay_s)
    assert record_of(record.text()) == record
    assert msgspec.json.decode(record.text())[-1] == msgspec.json.decode(value)


@pytest.mark.parametrize(
    "text",
    [
        *("1", '"x"', "[]", '["k",0,0.0,0.0]', '["k",0,0.0,0.0,1,2]', "[1,0,0.0,0.0,1]"),
        *('["",0,0.0,0.0,1]', f'["{"k" * 221}",0,0.0,0.0,1]', '["a b",0,0.0,0.0,1]', '["k",-1,0.0,0.0,1]'),
        *('["k",0,-1.0,0.0,1]', '["k",0,1e300,0.0,1]', '["k",0,0.0,-1.0,1]', '["k",0,0.0,4e7,1]'),
    ],
)
def test_what_is_no_record_is_told(text: str) -> None:
    with pytest.raises(BadRecord):
        record_of(Value(text))


def test_an_outbox_is_named_after_its_queue_and_its_replica() -> None:
    assert outbox_named(Outbox("queue/mail", "r1").name) == Outbox("queue/mail", "r1")
    assert outbox_named("queue/a@b@r1") == Outbox("queue/a@b", "r1")
    assert [outbox_named(name) for name in ("queue/mail", "register/a@r1", "queue@r1")] == [None] * 3


def test_an_outbox_has_its_replica_for_a_quorum_and_its_queue_those_of_its_rule() -> None:
    found = document()
    choice = found.choice_of("queue/mail@r2")
    assert choice.votes == {"r2": 1}
    assert choice.final_of("Enq/Ok").is_met_by({"r2"})
    assert not choice.final_of("Enq/Ok").is_met_by({"r1", "r3"})
    assert choice.initial_of("Deq").is_met_by({"r1", "r2", "r3"}), "others may hold it, and count for nothing"
    assert found.choice_of("queue/mail").votes == {"r1": 1, "r2": 1, "r3": 1}
    assert found.rule_of("queue/mail@r2") == found.rule_of("queue/mail")


@pytest.mark.parametrize(
    "name", ["queue/mail", "queue/mail@r9", "queue/other@r1", "register/mail@r1", "dictionary/mail/a@r1"]
)
def test_no_other_object_is_one(name: str) -> None:
    assert document().outbox(name) is None


def test_an_outbox_has_no_outboxes_itself() -> None:
    """Its relay could not enqueue what lies there: ten thousand such kept a replica's relay from all others, for good."""
    names = [f"queue/mail{'@r1' * depth}" for depth in range(6)]
    assert [document().outbox(name) is not None for name in names] == [False, True] * 3


def test_without_outboxes_a_name_is_a_name() -> None:
    plain = document(HEAD + '[[choices]]\nobjects = "queue/mail*"\n')
    assert plain.outbox("queue/mail@r1") is None
    assert plain.choice_of("queue/mail@r1").votes == plain.votes


def test_a_document_that_does_not_name_them_is_what_it_was() -> None:
    """Else replicas of before would refuse it."""
    plain = document(HEAD + '[[choices]]\nobjects = "queue/mail*"\n')
    assert b"outbox" not in msgspec.json.encode(plain)
    told = msgspec.json.decode(msgspec.json.encode(document()))
    assert from_json(told) == document()


def test_quorums_that_miss_each_other_are_those_of_the_relay() -> None:
    """The calculus of an eventual queue offers them, so that one may try."""
    with pytest.raises(
        BadCluster, match=r"Deq/Ok does not meet Enq/Ok.*the quorums of the relay and of dequeues"
    ):
        document(MAIL + 'classes = { "Enq/Ok" = [0, 1], "Deq/Ok" = [2, 2] }\n')


def test_outbox_is_given_or_left_out() -> None:
    """Else two documents that mean the same would refuse each other."""
    with pytest.raises(BadCluster, match=r"\(queue/mail\*\): outbox = false: leave it out"):
        document(MAIL.replace("true", "false"))


def test_the_rule_of_an_outbox_is_that_of_its_queue() -> None:
    found = document(MAIL.replace("mail*", "mail"))
    assert found.rule_of("queue/mail@r1").objects == "queue/mail"
    assert found.rule_of("queue/mail@r9").objects == "*"
    assert found.judged_as("queue/mail") == "eventual-queue"
    assert found.judged_as("queue/other") == "queue"


def test_one_that_is_empty_only_if_its_outboxes_are_is_a_semiqueue() -> None:
    found = document(MAIL + "exact_empty = true\n")
    assert found.judged_as("queue/mail") == "semiqueue"
    assert found.judged_as("queue/other") == "queue"
    assert b"exact_empty" not in msgspec.json.encode(document())
    assert from_json(msgspec.json.decode(msgspec.json.encode(found))) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (MAIL + "exact_empty = false\n", r"\(queue/mail\*\): exact_empty = false: leave it out"),
        (
            HEAD + '[[choices]]\nobjects = "queue/*"\nexact_empty = true\n',
            r"1 \(queue/\*\): exact_empty = true is for queues with outbox = true; an empty answer of any other is exact: leave it out",
        ),
    ],
)
def test_exactness_is_given_with_outboxes_or_left_out(text: str, words: str) -> None:
    with pytest.raises(BadCluster, match=words):
        document(text)


def test_all_replicas_are_needed_to_know_that_outboxes_are_empty() -> None:
    exact, plain = document(MAIL + "exact_empty = true\n"), document()
    for voting in (("r1", "r2"), ("r1", "r2", "r3")):
        held = {each.event_class: each for each in classes_held(exact, voting) if each.rule == 1}
        assert held["Enq/Ok"].is_held
        assert held["Deq/Ok"].is_held
        assert held["Deq/Empty"].is_held == (len(voting) == 3)
        assert all(each.is_held for each in classes_held(plain, voting))
    lacking = next(each for each in classes_held(exact, ("r1", "r2")) if not each.is_held)
    assert (lacking.event_class, lacking.lacks) == ("Deq/Empty", "2 of 3 needed replicas answer")
    without_quorum = [
        each.event_class for each in classes_held(exact, ("r1",)) if each.rule == 1 and each.is_held
    ]
    assert without_quorum == ["Enq/Ok"]


@pytest.mark.parametrize("objects", ["*", "register/*", "dictionary/d"])
def test_outboxes_are_for_queues(objects: str) -> None:
    with pytest.raises(
        BadCluster, match=r"1 \(.*\): outbox = true is for queues: write it into a rule for queue/…"
    ):
        document(HEAD + f'[[choices]]\nobjects = "{objects}"\noutbox = true\n')


def test_an_enqueue_needs_any_one_replica_and_a_dequeue_what_it_needed_before() -> None:
    held = {
        each.event_class: each.is_held
        for each in classes_held(document(), {"r3"})
        if each.objects == "queue/mail*"
    }
    assert held["Enq/Ok"]
    assert not held["Deq/Ok"]
    assert not next(each for each in classes_held(document(), ()) if each.event_class == "Enq/Ok").is_held


def test_the_outbox_of_a_replica_without_votes_counts() -> None:
    replicas = tuple(ReplicaInfo(f"r{n}", f"http://r{n}:1", votes=int(n < 4)) for n in (1, 2, 3, 4))
    found = checked(ClusterDocument("c", replicas, (ChoiceRule("queue/*", outbox=True, exact_empty=True),)))
    held = {
        each.event_class: each.is_held for each in classes_held(found, ("r1", "r2", "r3")) if each.rule == 1
    }
    assert (held["Deq/Ok"], held["Deq/Empty"]) == (True, False)
