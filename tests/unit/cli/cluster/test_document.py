"""New cluster files: what they say, and that nothing is overwritten."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from quorate.api_specs.cluster import (
    AFTER_S_MAX,
    AFTER_S_MIN,
    BadCluster,
    ChoiceRule,
    ClockSettings,
    ClusterDocument,
    Fallback,
    ReplicaInfo,
    checked,
    parse,
)
from quorate.api_specs.limits import Limits
from quorate.cli.cluster.document import (
    change_stores,
    document_text,
    new_document,
    read_document,
    write_new,
)
from quorate.cli.failure import Failure, Usage
from quorate.measurement.plan.plan import BadPlan, read_plan
from quorate.replica.data_folder.replacement import with_store
from tests.unit.replica.data_folder.test_replacement import room_for

URLS = {"r1": "http://127.0.0.1:8001", "r2": "http://127.0.0.1:8002", "r3": "http://127.0.0.1:8003"}
TOTAL = 6
"""Votes of the three replicas of a drawn document."""
CHOSEN: dict[str, list[dict[str, Any]]] = {
    "queue": [
        {"classes": {"Enq/Ok": (0, 1), "Deq/Ok": (TOTAL, 1)}},
        {"classes": {"Enq/Ok": (0, TOTAL), "Deq/Ok": (4, 4), "Deq/Empty": (4, 0), "Peek/Ok": (3, 0)}},
        {"reads": "r1*r2 + r2*r3 + r1*r3"},
        {"reads": "r1", "writes": "r1*r2"},
        {"initials": {"Deq": "r1*r2 + r3"}},
        {"finals": {"Deq/Ok": "r1", "Enq/Ok": "r1 + r2"}},
        {"initials": {"Deq": "r1*r2 + r3"}, "finals": {"Enq": "(r1 + r2)*r3"}},
    ],
    "register": [{"classes": {"Write/Ok": (0, TOTAL), "Read/Ok": (1, 0)}}, {"reads": "r1"}],
}
OTHERWISE = st.fixed_dictionaries(
    {},
    optional={
        "ordering": st.sampled_from(["clock", "quorum"]),
        "collect": st.booleans(),
        "consistency": st.sampled_from(["atomic", "eventual"]),
        "outbox": st.just(True),
        "exact_empty": st.just(True),
        "fallback": st.builds(
            Fallback,
            classes=st.sampled_from([{}, {"Enq/Ok": (0, 5), "Deq/Ok": (2, 5)}]),
            down=st.just(("r3",)),
            after_s=st.floats(AFTER_S_MIN, AFTER_S_MAX),
        )
        | st.builds(Fallback, live_below=st.just(3), reads=st.sampled_from(["", "r1*r2", "r1"]))
        | st.just(Fallback(down=("r1",), initials={"Deq": "r2"}, finals={"Enq": "r2"})),
    },
)
SECONDS = st.floats(1e-9, 1e30)


@st.composite
def rules(draw: st.DrawFn, objects: str, members: tuple[ReplicaInfo, ...]) -> ChoiceRule:
    """A rule that such a cluster takes: as it was drawn, or without what it refuses."""
    chosen: dict[str, Any] = draw(st.sampled_from([{}, *CHOSEN.get(objects.partition("/")[0], [])]))
    otherwise: dict[str, Any] = draw(OTHERWISE)
    rule = ChoiceRule(objects, **chosen, **otherwise)
    try:
        checked(ClusterDocument("c", members, (rule,), types={"cart": "shop:Cart"}))
    except BadCluster:
        return ChoiceRule(objects, **chosen)
    return rule


@st.composite
def documents(draw: st.DrawFn) -> ClusterDocument:
    """Documents with all that a cluster file may have, and texts that need quotes."""
    letters = st.sampled_from('a "\\\n\x7f\u202e') | st.characters(exclude_categories=["Cs"])
    text = st.text(letters, max_size=8)
    votes = draw(st.permutations(draw(st.sampled_from([(2, 2, 2), (1, 2, 3), (0, 3, 3)]))))
    members = tuple(
        ReplicaInfo(f"r{number}", f"http://h:{number}", each, draw(text))
        for number, each in enumerate(votes, 1)
    )
    own = st.just({"cart": "shop.types:Cart", "x-1": "s:D"})
    types = draw(st.one_of(st.just(UNSET), own))
    places = ["queue/a", "queue/b-[x-z]", "queue/*", "register/*", "dictionary/d", "*/?"]
    places += [] if types is UNSET else ["cart/*"]
    # A rule after one that matches all of its objects is refused.
    some = sorted(draw(st.sets(st.sampled_from(places), max_size=5)), key=places.index)
    document = ClusterDocument(
        draw(text),
        members,
        tuple(draw(rules(each, members)) for each in some),
        ClockSettings(draw(SECONDS), draw(st.none() | SECONDS), draw(SECONDS)),
        Limits(requests_max=draw(st.integers(1, 2000)), wait_s_max=draw(st.floats(0.001, 25))),
        types,
    )
    try:
        return checked(document)
    except BadCluster:  # A rule may keep fallbacks of others from being put in force.
        without = tuple(replace(each, fallback=UNSET) for each in document.choices)
        return checked(replace(document, choices=without))


@given(documents())
def test_a_document_is_read_as_it_was(document: ClusterDocument) -> None:
    found = parse(document_text(document))
    assert found == document
    assert found.hash == document.hash, "and its JSON form"


def test_the_place_among_configurations_is_not_written() -> None:
    """The cluster writes that itself: a file that has it is refused."""
    file = parse(new_document(URLS))
    text = document_text(file)
    changing = ClusterDocument(file.name, file.replicas, file.choices, file.clock, epoch=1, old=file)
    assert document_text(changing) == text
    retired = ClusterDocument(file.name, file.replicas, file.choices, file.clock, epoch=2, retired=("r9",))
    assert document_text(retired) == text


def test_new_document_names_replicas_with_stores_of_their_own() -> None:
    document = parse(new_document(URLS))
    assert document.urls == URLS
    assert len({replica.store for replica in document.replicas}) == 3
    assert all(replica.store for replica in document.replicas)


def test_new_document_writes_out_what_majorities_need() -> None:
    document = parse(new_document(URLS))
    for name in ("queue/q", "register/r", "dictionary/d/k"):
        assert document.rule_of(name).classes == document.choice_of(name).classes
    assert document.choice_of("queue/q").sizes("Deq/Ok") == (2, 2)
    assert document.choice_of("queue/q").sizes("Enq/Ok") == (0, 2)


@pytest.mark.parametrize("count", [1, 2, 5, 25])
def test_new_document_is_valid_for_any_number_of_replicas(count: int) -> None:
    urls = {f"r{number}": f"http://127.0.0.1:{8000 + number}" for number in range(count)}
    assert len(parse(new_document(urls)).replicas) == count


def test_alternative_in_the_comments_is_a_valid_choice() -> None:
    classes: dict[str, tuple[int, int]] = {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)}
    text = new_document(URLS, rules=[ChoiceRule("queue/orders-*", classes)])
    shown = '"Enq/Ok" = [0, 1], "Deq/Ok" = [3, 1], "Deq/Empty" = [3, 0]'
    assert shown in " ".join(line.removeprefix("#").strip() for line in text.splitlines())
    assert parse(text).choice_of("queue/orders-1").sizes("Deq/Ok") == (3, 1)


def test_rules_stand_above_the_majorities() -> None:
    text = new_document(URLS, rules=[ChoiceRule("queue/lecture", collect=False)])
    assert not parse(text).rule_of("queue/lecture").collect
    assert parse(text).rule_of("queue/other").collect


@pytest.mark.parametrize(
    "rule",
    [
        ChoiceRule("queue/a", outbox=True, exact_empty=True, initials={"Deq": "r1*r2"}),
        ChoiceRule("queue/a", outbox=True, consistency="eventual", initials={"Deq": "r1*r2 + r3"}),
        ChoiceRule("queue/a", initials={"Deq": "r1*r2 + r3"}, finals={"Enq/Ok": "(r1 + r2)*r3"}),
        ChoiceRule("queue/a", finals={"Deq/Ok": "r1", "Enq/Ok": "r1 + r2"}, ordering="quorum", collect=False),
        ChoiceRule(
            "queue/a",
            reads="r1*r2 + r1*r3 + r2*r3",
            fallback=Fallback(down=("r3",), after_s=2.5, reads="r1*r2"),
        ),
        ChoiceRule(
            "queue/a", finals={"Deq": "r1*r2"}, fallback=Fallback(live_below=3, initials={"Deq": "r1"})
        ),
        ChoiceRule("register/a", initials={"Read": "r1"}),
        ChoiceRule("register/a", reads="r1", writes="r1*r2", ordering="quorum"),
    ],
)
def test_a_rule_is_read_as_it_was_given(rule: ChoiceRule) -> None:
    assert parse(new_document(URLS, rules=[rule])).choices[0] == rule


def test_numbers_are_written_with_their_ordering() -> None:
    text = new_document(URLS, rules=[ChoiceRule("queue/a", ordering="quorum")])
    assert parse(text).rule_of("queue/a").ordering == "quorum"
    assert parse(text).choice_of("queue/a").sizes("Enq/Ok") == (2, 2)


def test_bad_url_is_named() -> None:
    with pytest.raises(BadCluster, match="must look like http://host:port"):
        new_document({"r1": "127.0.0.1:80"})


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text("mine")
    with pytest.raises(Usage, match="exists already"):
        write_new(path, "other")
    assert path.read_text() == "mine"


def test_missing_document_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(Usage, match="quorate init"):
        read_document(tmp_path / "cluster.toml")


def test_folder_is_no_document(tmp_path: Path) -> None:
    with pytest.raises(Usage, match=r"is a folder: name the cluster file itself, as .*/cluster\.toml"):
        read_document(tmp_path)


def test_a_rule_for_all_objects_of_a_type_stands_in_the_place_of_the_general_one() -> None:
    text = new_document(URLS, rules=[ChoiceRule("queue/*", collect=False), ChoiceRule("register/a")])
    assert [rule.objects for rule in parse(text).choices] == [
        "queue/*",
        "register/a",
        "register/*",
        "dictionary/*",
    ]


def test_a_document_that_cannot_be_written_stays_and_what_to_write_is_told(tmp_path: Path) -> None:
    """The new store is made by then, and useless unless the document names it."""
    path = tmp_path / "cluster.toml"
    text = new_document(URLS)
    path.write_text(text)
    (tmp_path / "cluster.toml.new").mkdir()  # in the way of the new text
    old = parse(text)
    new = with_store(old, "r2", "another")
    with pytest.raises(
        Failure, match=r'changed by hand, to .*store = "another" for r2.*: it cannot be written'
    ):
        change_stores(path, old, new)
    assert path.read_text() == text


def test_a_byte_order_mark_is_named(tmp_path: Path) -> None:
    """Nobody sees it in the line that "Invalid statement (at line 1, column 1)" points to."""
    path = tmp_path / "cluster.toml"
    path.write_text(new_document(URLS), encoding="utf-8-sig")
    with pytest.raises(
        BadCluster, match=r"cluster\.toml begins with a byte order mark .*: save it as UTF-8 without one"
    ):
        read_document(path)
    with pytest.raises(BadPlan, match=r"plan\.toml begins with a byte order mark"):
        read_plan("\ufeff", "plan.toml")


def test_half_a_file_is_not_left(tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    with pytest.raises(Failure, match=r"cluster\.toml cannot be written: File too large"), room_for(1000):
        write_new(path, new_document(URLS))
    assert not path.exists()
    write_new(path, new_document(URLS))
