"""A replica that lost its disk gets a new store from all the others: nothing that a final quorum stored is missing."""

import json
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from quorate.adts.log import Entry, Summary, Value
from quorate.api_specs.cluster import ChoiceRule, ClusterDocument, ReplicaInfo, parse
from quorate.api_specs.configuration import loses, with_members
from quorate.api_specs.messages import Accept, Append, Commit, Proposal, Request, Reserve
from quorate.client_sdk.protocol.configurations import joint, settled
from quorate.replica.data_folder.identity import FolderRefused, format_store, open_folder
from quorate.replica.data_folder.replacement import in_force_in, make_replacement, merged, with_store
from quorate.replica.protocol.acceptor import handle
from quorate.replica.protocol.log import ObjectState, Reservation
from quorate.replica.protocol.refusals import Bounds
from quorate.replica.protocol.witness import Witness
from quorate.replica.store.store import Store
from quorate.timestamps.ballot import make_ballot
from quorate.timestamps.timestamp import ZERO, Timestamp, make
from tests.support.voted import go_on

NOW_US = 1_000_000
NAME = "queue/jobs"


def document(enq_final: int = 2) -> ClusterDocument:
    replicas = "".join(
        f'[[replicas]]\nid = "{id}"\nurl = "http://127.0.0.1:{port}"\nstore = "{id * 4}"\n'
        for id, port in (("r1", 1), ("r2", 2), ("r3", 3))
    )
    deq = 4 - enq_final
    classes = f'"Enq/Ok" = [0, {enq_final}]\n"Deq/Ok" = [{deq}, {max(enq_final, 4 - deq)}]\n'
    return parse(f'name = "c"\n{replicas}[[choices]]\nobjects = "queue/*"\n[choices.classes]\n{classes}')


def t(number: int) -> Timestamp:
    return make(NOW_US, number, "s")


def entry(number: int) -> Entry:
    return Entry(t(number), t(number), Value(str(number)))


def tell(folder: Path, document: ClusterDocument, replica: str, *requests: Request) -> None:
    opened = open_folder(folder / replica, document, replica)
    assert opened.database is not None
    store = Store(opened.database)
    for request in requests:
        _, effects = handle(request, store, NOW_US, Bounds.of(document))
        store.apply(effects)
    store.commit()
    store.close()
    opened.close()


def read(
    folder: Path, document: ClusterDocument, replica: str
) -> tuple[ObjectState | None, list[tuple[str, bool]]]:
    opened = open_folder(folder / replica, document, replica)
    assert opened.database is not None
    store = Store(opened.database)
    state, rows = store.state(NAME), store.rows(NAME, ZERO, 100)
    store.close()
    opened.close()
    return state, [(str(row.entry.value), row.complete) for row in rows]


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three formatted folders: 1 and 2 were enqueued at different pairs, and a decision stands at r1 and r3."""
    for replica in ("r1", "r2", "r3"):
        format_store(tmp_path / replica, document(), replica)
    decision = make_ballot(t(9), 1)
    accept = Accept(NAME, decision, Summary(horizon=t(0)))
    tell(tmp_path, document(), "r1", Append(NAME, (entry(1),)), accept, Commit(NAME, complete=(t(1),)))
    tell(tmp_path, document(), "r2", Append(NAME, (entry(2),)))
    tell(tmp_path, document(), "r3", Append(NAME, (entry(1), entry(2))), accept)
    return tmp_path


def test_the_new_store_holds_what_any_final_quorum_stored(three: Path) -> None:
    new = with_store(document(), "r3", "another")
    others = {"r1": three / "r1", "r2": three / "r2"}
    assert make_replacement(document(), new, "r3", three / "new", others) == 1
    (three / "r3").rename(three / "gone")
    (three / "new").rename(three / "r3")
    state, rows = read(three, new, "r3")
    assert rows == [("1", True), ("2", False)]
    assert state is not None
    assert state.accepted == make_ballot(t(9), 1)
    assert state.summary == Summary(horizon=t(0))


def test_the_new_store_remembers_what_was_consumed(three: Path) -> None:
    """Until the retry window is over: a repeat of the enqueue, or of the dequeue, under its key finds it there."""
    taken = Summary(horizon=t(1))
    tell(three, document(), "r1", Commit(NAME, make_ballot(t(9), 2), t(1), taken))
    new = with_store(document(), "r3", "another")
    make_replacement(document(), new, "r3", three / "new", {"r1": three / "r1", "r2": three / "r2"})
    (three / "r3").rename(three / "gone")
    (three / "new").rename(three / "r3")
    state, rows = read(three, new, "r3")
    assert state is not None
    assert state.collected == t(1)
    assert rows == [("1", True), ("2", False)]


@contextmanager
def room_for(byte_count: int) -> Iterator[None]:
    """Within, this process writes no file beyond that size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (byte_count, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_without_room_is_told_and_holds_nothing_of_the_new_store(three: Path) -> None:
    large = [Entry(t(number), t(number), Value('"' + "x" * 100_000 + '"')) for number in range(10, 20)]
    tell(three, document(), "r2", Append(NAME, tuple(large)))
    new = with_store(document(), "r3", "another")
    others = {"r1": three / "r1", "r2": three / "r2"}
    (three / "new").mkdir()
    (three / "new" / "replica.sqlite3.bak").write_text("the damaged one, kept")
    told = pytest.raises(FolderRefused, match=r"no store could be made in .*new, and none is left there: ")
    with told, room_for(1 << 14):
        format_store(three / "new", new, "r3")
    assert {each.name for each in (three / "new").iterdir()} == {"lock", "replica.sqlite3.bak"}
    with told, room_for(1 << 19):  # enough for an empty store
        make_replacement(document(), new, "r3", three / "new", others)
    assert {each.name for each in (three / "new").iterdir()} == {"lock", "replica.sqlite3.bak"}
    assert make_replacement(document(), new, "r3", three / "new", others) == 1


def test_the_new_store_holds_what_was_agreed_under_keys(three: Path) -> None:
    first, other = (Entry(t(3), t(3)),), (Entry(t(4), t(4)),)
    tell(three, document(), "r1", Reserve(NAME, t(5), (Proposal("k", first),), accept=True))
    tell(three, document(), "r2", Reserve(NAME, t(6), (Proposal("k", other), Proposal("l", other))))
    new = with_store(document(), "r3", "another")
    make_replacement(document(), new, "r3", three / "new", {"r1": three / "r1", "r2": three / "r2"})
    opened = open_folder(three / "new", new, "r3")
    assert opened.database is not None
    store = Store(opened.database)
    assert store.reservation(NAME, "k") == Reservation(t(6), t(6), first)
    assert store.reservation(NAME, "l") == Reservation(t(6)), "nothing was agreed"
    store.close()
    opened.close()


def test_the_new_store_bears_witness_of_the_others_from_the_start(three: Path) -> None:
    """Else one of them could be rolled back before it next announced itself, and nobody but the third would know."""
    new = with_store(document(), "r3", "another")
    make_replacement(document(), new, "r3", three / "new", {"r1": three / "r1", "r2": three / "r2"})
    opened = open_folder(three / "new", new, "r3")
    assert opened.database is not None
    store = Store(opened.database)
    assert [store.others.witness(each) for each in ("r1", "r2", "r3")] == [
        Witness("r1r1r1r1", t(9), born_in(three / "r1")),
        Witness("r2r2r2r2", t(2), born_in(three / "r2")),
        None,
    ]
    assert (opened.is_new, opened.lost) == (False, None), "it votes without being asked for anything"
    store.close()
    opened.close()


def born_in(folder: Path) -> str:
    """The birth of the store in a folder."""
    found: str = json.loads((folder / "identity.json").read_text())["born"]
    assert found
    return found


def test_the_old_document_no_longer_opens_the_new_store_so_older_messages_are_refused(three: Path) -> None:
    new = with_store(document(), "r3", "another")
    make_replacement(document(), new, "r3", three / "new", {"r1": three / "r1", "r2": three / "r2"})
    assert new.hash != document().hash
    with pytest.raises(FolderRefused, match="votes from store"):
        open_folder(three / "new", document(), "r3")


def test_every_other_replica_is_needed(three: Path) -> None:
    new = with_store(document(), "r3", "another")
    with pytest.raises(FolderRefused, match="r2 is missing"):
        make_replacement(document(), new, "r3", three / "new", {"r1": three / "r1"})


def test_a_replica_that_still_runs_is_noticed(three: Path) -> None:
    running = open_folder(three / "r2", document(), "r2")
    try:
        with pytest.raises(FolderRefused, match="in use"):
            make_replacement(
                document(), document(), "r3", three / "new", {"r1": three / "r1", "r2": three / "r2"}
            )
    finally:
        running.abandon()


def test_stores_that_voted_under_other_choices_are_no_sources(three: Path) -> None:
    """The document was edited before: the new store would note what no other one voted under."""
    opened = open_folder(three / "r1", document(), "r1")
    assert opened.database is not None
    store = Store(opened.database)
    store.note_configuration(document())
    store.commit()
    store.close()
    opened.close()
    edited = document(enq_final=1)
    with pytest.raises(FolderRefused, match=r"Enq/Ok is \(0, 1\), and was \(0, 2\)"):
        make_replacement(
            edited,
            with_store(edited, "r3", "another"),
            "r3",
            three / "new",
            {"r1": three / "r1", "r2": three / "r2"},
        )
    assert not (three / "new").exists()


@pytest.mark.parametrize("how", ["made anew", "older copy"])
def test_a_store_that_has_forgotten_is_no_source(three: Path, how: str) -> None:
    """r1's disk was lost, or is an older copy, and then r2's is lost: what both had acknowledged must not be read as absent."""
    opened = open_folder(three / "r3", document(), "r3")
    assert opened.database is not None
    store = Store(opened.database)
    born = born_in(three / "r1")
    store.others.put_witness("r1", Witness("r1r1r1r1", t(9) if how == "made anew" else t(10), born))
    store.commit()
    store.close()
    opened.close()
    if how == "made anew":
        (three / "r1").rename(three / "lost")
        format_store(three / "r1", document(), "r1")
    others = {"r1": three / "r1", "r3": three / "r3"}
    with pytest.raises(FolderRefused, match=f"replica r3 (knows|saw) store r1r1r1r1 of replica r1.*{how}"):
        make_replacement(document(), with_store(document(), "r2", "another"), "r2", three / "new", others)
    assert not (three / "new").exists()


def test_what_only_the_lost_disk_may_have_held_is_named() -> None:
    assert loses(document(enq_final=2), ["r3"]) == []
    lost = ["Deq/Ok of queue/* (final quorum 1)", "Enq/Ok of queue/* (final quorum 1)"]
    assert loses(document(enq_final=1), ["r3"]) == lost


def test_what_its_outboxes_may_have_held_is_named() -> None:
    with_outboxes = replace(document(enq_final=2), choices=(ChoiceRule("queue/mail", outbox=True),))
    (told,) = loses(with_outboxes, ["r3"])
    assert told == "Enq/Ok of queue/mail (kept by one replica's outbox until it is relayed)"


def test_what_it_may_have_held_of_ones_own_types_is_named_too() -> None:
    own = replace(
        document(enq_final=2),
        types={"cart": "tests.support.own_types:Cart"},
        choices=(ChoiceRule("cart/*", {"Call/Ok": (3, 1)}),),
    )
    assert loses(own, ["r3"]) == ["Call/Ok of cart/* (final quorum 1)"]


def test_the_merge_takes_the_highest_of_each_promise() -> None:
    low, high = make_ballot(t(1), 1), make_ballot(t(2), 1)
    one = ObjectState(
        NAME, fence=t(5), promised=t(2), accepted=high, summary=Summary(horizon=t(4)), committed=low
    )
    two = ObjectState(
        NAME, fence=t(3), promised=t(7), accepted=low, committed=low, horizon=t(1), collected=t(1)
    )
    for states in ([one, two], [two, one]):
        union = merged(states)
        assert (union.fence, union.promised, union.collected) == (t(5), t(7), t(1))
        assert (union.accepted, union.summary.horizon) == (high, t(4))


def test_a_new_store_is_in_the_latest_configuration_that_another_one_notes(three: Path) -> None:
    """In an earlier one it would answer who has slept through the change, and r1 alone stores an enqueue there."""
    eager = document(enq_final=1)
    both = joint(eager, document())
    for replica, later in (("r1", both), ("r2", settled(both))):
        go_on(three / replica, document(), replica, later)
    others = {"r1": three / "r1", "r2": three / "r2"}
    new = with_store(document(), "r3", "another")
    make_replacement(document(), new, "r3", three / "new", others)
    opened = open_folder(three / "new", new, "r3")
    assert (opened.document.number, opened.document.choices) == (2, document().choices)
    assert opened.document.replicas == new.replicas, "it has the file's names of stores"
    assert (opened.is_new, opened.lost) == (False, None)
    opened.abandon()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (["r1", "r2", "r3", "r4"], "r4 is missing (configuration 2, with members r1, r2, r3, r4)"),
        (["r2", "r3"], "r1 is no member of configuration 2, with members r2, r3: leave it out"),
    ],
)
def test_members_are_those_that_the_stores_know_of_and_not_those_of_the_file(
    three: Path, members: list[str], words: str
) -> None:
    """What was acknowledged by new members alone is in no folder of the first ones; and one that has left holds what was forgotten since."""
    known = [*document().replicas, ReplicaInfo("r4", "http://r4:1")]
    wanted = with_members(document(), [each for each in known if each.id in members])
    go_on(three / "r2", document(), "r2", settled(joint(document(), wanted)))
    new = with_store(document(), "r3", "another")
    with pytest.raises(FolderRefused, match=re.escape(words)):
        make_replacement(document(), new, "r3", three / "new", {"r1": three / "r1", "r2": three / "r2"})
    assert not (three / "new").exists()


def test_what_is_lost_is_told_by_the_configuration_in_force(three: Path) -> None:
    later = replace(document(enq_final=1), epoch=2)
    go_on(three / "r2", document(), "r2", later)
    others = {"r1": three / "r1", "r2": three / "r2"}
    assert loses(in_force_in(document(), others), ["r3"]) == [
        "Deq/Ok of queue/* (final quorum 1)",
        "Enq/Ok of queue/* (final quorum 1)",
    ]
    assert loses(in_force_in(document(), {"r1": three / "r1"}), ["r3"]) == []


def test_in_the_middle_of_a_change_all_is_told_that_either_side_may_have_lost() -> None:
    """What one replica alone had acknowledged before may not be carried over yet; and another one may be further already."""
    eager, majorities = document(enq_final=1), document()
    lost = loses(eager, ["r3"])
    assert lost == ["Deq/Ok of queue/* (final quorum 1)", "Enq/Ok of queue/* (final quorum 1)"]
    for both in (joint(eager, majorities), joint(majorities, eager)):
        assert loses(both, ["r3"]) == lost
