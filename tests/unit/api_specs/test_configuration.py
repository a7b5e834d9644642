"""Which edits of a cluster file change its configuration, and how they are told."""

from collections.abc import Mapping

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from quorate.adts.types.catalogue import CONFIGURATION
from quorate.api_specs.cluster import (
    BadCluster,
    ChoiceRule,
    ClockSettings,
    ClusterDocument,
    Fallback,
    ReplicaInfo,
    checked,
)
from quorate.api_specs.configuration import (
    CHARS_MAX,
    configuration_of,
    difference,
    difference_of_documents,
    in_force,
    keeping_places,
    read_configuration,
    tolerated,
    with_members,
)
from quorate.api_specs.limits import Limits
from quorate.client_sdk.protocol.configurations import joint
from quorate.quorums.choices.system_choice import SystemQuorum
from quorate.quorums.systems.expressions import parse_system
from quorate.quorums.systems.tally import Quorum, VoteCount

EAGER = {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1), "Deq/Empty": (3, 0)}


def document(*rules: ChoiceRule, votes: Mapping[str, int] = {"r1": 1, "r2": 1, "r3": 1}) -> ClusterDocument:
    infos = tuple(ReplicaInfo(id, f"http://{id}:8000", each) for id, each in votes.items())
    return ClusterDocument("c", infos, rules)


def told(before: ClusterDocument, now: ClusterDocument) -> str:
    """The difference, as a replica tells it from what its store notes."""
    return difference(read_configuration(configuration_of(before).text()), configuration_of(now))


MOVED = replace(
    document(),
    replicas=tuple(ReplicaInfo(f"r{n}", f"https://elsewhere:{n}", store=f"new{n}") for n in (1, 2, 3)),
    clock=ClockSettings(replica_error_s=0.5, offset_max_s=9),
    limits=Limits(page_entries_max=1000, retry_window_s=9),
)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (document(), document()),
        (document(), MOVED),
        (document(ChoiceRule("queue/*", {"Enq/Ok": (0, 2)})), document(ChoiceRule("queue/*"))),
        (
            document(ChoiceRule("queue/*", EAGER)),
            document(ChoiceRule("queue/*", {"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)})),
        ),
        (
            document(ChoiceRule("register/*", reads="r1*r2 + r3")),
            document(ChoiceRule("register/*", reads="(r1 * r2)+r3")),
        ),
    ],
    ids=["the same", "no part of it", "what is filled in", "what follows", "blanks"],
)
def test_an_edit_that_changes_no_quorum(before: ClusterDocument, now: ClusterDocument) -> None:
    assert told(before, now) == told(now, before) == ""


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (
            document(),
            document(votes=dict.fromkeys(("r1", "r2", "r3", "r4", "r5"), 1)),
            "[[replicas]] has r4, r5, not a member then",
        ),
        (document(), document(votes={"r1": 1, "r2": 1}), "[[replicas]] lacks r3, a member then"),
        (document(), document(votes={"r1": 3, "r2": 1, "r3": 1}), "[[replicas]] r1: votes = 3, and 1 then"),
        (
            document(ChoiceRule("queue/*", EAGER)),
            document(ChoiceRule("queue/*", {"Enq/Ok": (0, 3), "Deq/Ok": (1, 3)})),
            "[[choices]] queue/*: Enq/Ok is (0, 3), and was (0, 1); [[choices]] queue/*: Deq/Ok is (1, 3), and was (3, 1)",
        ),
        (document(), document(ChoiceRule("queue/a")), "[[choices]] has queue/a, and no such rule then"),
        (document(ChoiceRule("queue/a")), document(), "[[choices]] lacks queue/a, a rule then"),
        (
            document(ChoiceRule("queue/a*"), ChoiceRule("queue/*a")),
            document(ChoiceRule("queue/*a"), ChoiceRule("queue/a*")),
            "[[choices]] are in another order",
        ),
        (
            document(ChoiceRule("register/*")),
            document(ChoiceRule("register/*", ordering="quorum")),
            "[[choices]] register/*: ordering = 'quorum', and 'clock' then",
        ),
        (
            document(ChoiceRule("queue/*")),
            document(ChoiceRule("queue/*", collect=False)),
            "[[choices]] queue/*: collect = false, and true then",
        ),
        (
            document(ChoiceRule("queue/*")),
            document(ChoiceRule("queue/*", outbox=True)),
            "[[choices]] queue/*: outbox = true, and false then",
        ),
        (
            document(ChoiceRule("queue/*", outbox=True)),
            document(ChoiceRule("queue/*")),
            "[[choices]] queue/*: outbox = false, and true then",
        ),
        (
            document(ChoiceRule("register/*", reads="r1*r2 + r3")),
            document(ChoiceRule("register/*", reads="r1*r3 + r2")),
            "Cas/Fail is (((r1*r3) + r2)",
        ),
    ],
)
def test_an_edit_that_changes_them_is_told(before: ClusterDocument, now: ClusterDocument, words: str) -> None:
    assert words in told(before, now)


def test_what_is_told_has_a_bound() -> None:
    rules = [ChoiceRule(f"queue/{'x' * 150}{number}") for number in range(9)]
    sentence = told(document(), document(*rules))
    assert sentence.endswith("…; and 5 more")
    assert len(sentence) < CHARS_MAX + 20


def test_an_event_class_of_another_release_is_no_difference() -> None:
    now = configuration_of(document(ChoiceRule("queue/*")))
    classes = {name: each for name, each in now.rules[0].quorums["queue"].items() if name != "Peek/Ok"}
    before = replace(now, rules=(replace(now.rules[0], quorums={"queue": classes}), *now.rules[1:]))
    assert difference(before, now) == difference(now, before) == ""


@pytest.mark.parametrize(
    "rules",
    [
        ("dictionary/users/*", "queue/*"),
        ("queue/*", "queue/jobs"),
        ("queue/*", "queue/jobs", "dictionary/users/*"),
    ],
)
def test_a_rule_that_no_object_met_may_be_left_out(rules: tuple[str, ...]) -> None:
    """Releases of before took it without a word, and this one refuses it: a cluster that has voted under it is to be updated."""
    assert told(document(*map(ChoiceRule, rules)), document(ChoiceRule("queue/*"))) == ""
    assert told(document(*map(ChoiceRule, rules)), document()) == "[[choices]] lacks queue/*, a rule then"


def test_a_rule_that_objects_met_is_missed_however_long_it_takes_to_compare() -> None:
    rule = ChoiceRule("queue/*-" + "?" * 16, EAGER)
    assert told(document(rule), document()) == f"[[choices]] lacks {rule.objects}, a rule then"


def test_what_only_observes_may_read_others_for_nothing_rests_on_it() -> None:
    atomic = document(ChoiceRule("register/*", {"Write/Ok": (0, 3)}), ChoiceRule("queue/*"))
    eventual = document(
        ChoiceRule("register/*", {"Write/Ok": (0, 3)}, consistency="eventual"),
        ChoiceRule("queue/*", consistency="eventual"),
    )
    assert told(atomic, eventual) == told(eventual, atomic) == ""


def test_whether_empty_answers_are_exact_may_be_edited() -> None:
    """No store depends on it."""
    exact = document(ChoiceRule("queue/*", outbox=True, exact_empty=True))
    assert (
        configuration_of(exact).text()
        == configuration_of(document(ChoiceRule("queue/*", outbox=True))).text()
    )


def test_what_is_noted_without_outboxes_is_what_was_noted_before_there_were_any() -> None:
    assert "outbox" not in configuration_of(document(ChoiceRule("queue/*"))).text()
    assert '"outbox":true' in configuration_of(document(ChoiceRule("queue/*", outbox=True))).text()


def test_what_the_cluster_has_chosen_is_in_force_with_the_rest_of_the_file() -> None:
    """A member that the file does not name has the URL and the store that were chosen with it."""
    then = document(ChoiceRule("queue/*", {"Enq/Ok": (0, 1)}))
    four = (*then.replicas, ReplicaInfo("r4", "http://r4:1", 1, "4444"))
    chosen = replace(then, epoch=3, replicas=four, retired=("r0",), old=then)
    moved = tuple(replace(each, url=f"https://{each.id}:9", store="new") for each in then.replicas)
    file = replace(
        document(votes={"r1": 5, "r2": 1, "r3": 1}), replicas=moved, limits=Limits(batch_items_max=7)
    )
    file = replace(file, clock=ClockSettings(0.5), types={"cart": "shop:Cart"})
    found = in_force(file, chosen)
    assert found.own_votes == chosen.own_votes
    assert (found.choices, found.number, found.former_members) == (chosen.choices, 3, ("r0",))
    assert [(each.url, each.store) for each in found.replicas] == [
        ("https://r1:9", "new"),
        ("https://r2:9", "new"),
        ("https://r3:9", "new"),
        ("http://r4:1", "4444"),
    ]
    assert found.former == replace(file, choices=then.choices, replicas=found.replicas[:3])
    assert (found.clock, found.limits, found.types) == (file.clock, file.limits, file.types)
    assert in_force(then, then) == then


def at(url: str, moved: int = 0) -> ClusterDocument:
    """Where r1 is, and in which configuration that was chosen."""
    info = ReplicaInfo("r1", url, moved=moved or UNSET)
    return replace(document(), replicas=(info, *document().replicas[1:]))


@pytest.mark.parametrize(
    ("file", "chosen", "expected"),
    [
        (at("http://a:1"), at("http://b:1"), ("http://a:1", 0)),
        (at("http://a:1"), at("http://b:1", 3), ("http://b:1", 3)),
        (at("http://a:1", 3), at("http://b:1", 3), ("http://a:1", 3)),
        (at("http://a:1", 3), at("http://b:1", 5), ("http://b:1", 5)),
        (at("http://a:1", 5), at("http://b:1", 3), ("http://a:1", 5)),
    ],
    ids=[
        "edited while nothing ran",
        "moved",
        "edited since it moved",
        "moved again",
        "an older configuration",
    ],
)
def test_the_latest_place_of_a_member_counts(
    file: ClusterDocument, chosen: ClusterDocument, expected: tuple[str, int]
) -> None:
    for told in (replace(chosen, epoch=6), replace(chosen, epoch=6, old=replace(chosen, epoch=5))):
        found = in_force(file, told)
        for each in (found, *([] if found.former is None else [found.former])):
            assert (each.urls["r1"], each.replicas[0].placed_in) == expected


@pytest.mark.parametrize(
    ("wanted", "now", "expected"),
    [
        (at("http://a:1"), at("http://a:1", 3), ("http://a:1", 3)),
        (at("http://a:1"), at("http://b:1", 3), ("http://b:1", 3)),
        (at("http://a:1"), at("http://b:1"), ("http://a:1", 0)),
        (at("http://a:1", 3), at("http://b:1", 3), ("http://a:1", 3)),
    ],
    ids=["the same place", "it has moved since", "it is to move", "it is to move again"],
)
def test_a_file_of_before_moves_no_member_back(
    wanted: ClusterDocument, now: ClusterDocument, expected: tuple[str, int]
) -> None:
    found = keeping_places(wanted, now).replicas[0]
    assert (found.url, found.placed_in) == expected


def test_a_store_that_the_file_does_not_name_is_the_one_that_was_chosen() -> None:
    file = document()
    named = tuple(replace(each, store=f"store-of-{each.id}") for each in file.replicas)
    chosen = replace(file, epoch=2, replicas=named)
    assert in_force(file, chosen).stores == {id: f"store-of-{id}" for id in ("r1", "r2", "r3")}
    replaced = replace(file, replicas=(replace(file.replicas[0], store="new"), *file.replicas[1:]))
    assert in_force(replaced, chosen).stores["r1"] == "new", (
        "the file has one that was made from others since"
    )


FIVE = document(votes=dict.fromkeys(("r1", "r2", "r3", "r4", "r5"), 1)).replicas


@pytest.mark.parametrize("objects", ["queue/*", "queue/jobs", "register/*"])
def test_a_rule_that_gives_majorities_gives_those_of_the_new_members(objects: str) -> None:
    """As those that were written down with their numbers when the cluster was made."""
    numbers = document().choice_of(objects).classes
    rule = ChoiceRule(objects, dict(numbers), collect=False)
    (found,) = with_members(document(rule), FIVE).choices
    assert found == ChoiceRule(objects, collect=False)
    grown = replace(document(rule), replicas=FIVE, choices=(found,))
    assert grown.choice_of(objects).classes == replace(document(), replicas=FIVE).choice_of(objects).classes
    shrunk = with_members(grown, FIVE[:1])
    assert (
        shrunk.choice_of(objects).classes == replace(document(), replicas=FIVE[:1]).choice_of(objects).classes
    )


def test_other_rules_stay_as_they_are_where_they_fit_the_new_members() -> None:
    rules = (
        ChoiceRule("queue/all", {"Enq/Ok": (0, 3), "Deq/Ok": (2, 3)}),
        ChoiceRule("queue/*", {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}),
        ChoiceRule("register/*", reads="r1*r2 + r2*r3 + r1*r3"),
    )
    changed = with_members(document(*rules), FIVE[:4])
    assert changed.choices == (rules[0], ChoiceRule("queue/*"), rules[2])
    assert list(changed.votes) == ["r1", "r2", "r3", "r4"]


@pytest.mark.parametrize(
    ("rule", "members"),
    [
        (ChoiceRule("queue/*", EAGER), FIVE),
        (ChoiceRule("queue/*", EAGER), FIVE[:2]),
        (ChoiceRule("queue/*", reads="r1*r2 + r2*r3 + r1*r3"), FIVE[1:]),
        (ChoiceRule("queue/*"), ()),
    ],
    ids=["no more overlap", "too few votes", "of who left", "nobody is left"],
)
def test_other_rules_that_do_not_fit_the_new_members_are_refused(
    rule: ChoiceRule, members: tuple[ReplicaInfo, ...]
) -> None:
    with pytest.raises(BadCluster):
        with_members(document(rule), members)


def test_where_only_members_without_votes_come_and_leave_rules_stay_as_they_are_written() -> None:
    """So that no quorum changes."""
    rule = ChoiceRule("queue/*", dict(document().choice_of("queue/q").classes))
    learning = with_members(document(rule), (*document().replicas, replace(FIVE[3], votes=0)))
    assert learning.choices == (rule,)
    assert with_members(learning, document().replicas) == document(rule)
    assert with_members(learning, FIVE[:4]).choices == (ChoiceRule("queue/*"),)


def test_where_votes_stay_rules_stay_as_they_are_written() -> None:
    rule = ChoiceRule("queue/*", dict(document().choice_of("queue/q").classes))
    named = [replace(each, store="s") for each in document().replicas]
    found = with_members(document(rule), named)
    assert (found.choices, found.stores["r1"]) == ((rule,), "s")
    heavier = [replace(named[0], votes=3), *named[1:]]
    assert with_members(document(rule), heavier).choices == (ChoiceRule("queue/*"),)


def test_the_members_of_a_cluster_that_changes_are_those_that_it_changes_to() -> None:
    both = joint(document(), replace(document(), replicas=FIVE[:4]))
    found = with_members(both, FIVE[1:4])
    assert (found.former, list(found.votes)) == (None, ["r2", "r3", "r4"])


@pytest.mark.parametrize(
    ("quorum", "expected"),
    [
        (VoteCount({"a": 1, "b": 1, "c": 1}, 2), 1),
        (VoteCount({"a": 3, "b": 1, "c": 1}, 3), 0),
        (VoteCount({"a": 1, "b": 1, "c": 1}, 3), 0),
        (VoteCount({"a": 1, "b": 1, "c": 1}, 0), 3),
        (VoteCount({"a": 0, "b": 1}, 1), 0),
        (SystemQuorum(parse_system("a*b + b*c + a*c")), 1),
        (SystemQuorum(parse_system("a + b + c")), 2),
        (SystemQuorum(parse_system("a*b*c")), 0),
    ],
)
def test_so_many_may_be_down_whichever_they_are(quorum: Quorum, expected: int) -> None:
    assert tolerated(quorum, 3) == expected


def test_the_clusters_own_register_asks_majorities_whatever_rules_say() -> None:
    """A read that may miss changes would miss the configuration."""
    rule = ChoiceRule("register/*", consistency="eventual")
    weak = checked(document(rule))
    assert weak.choice_of("register/x").consistency == "eventual"
    assert weak.choice_of(CONFIGURATION).consistency == "atomic"
    both = joint(weak, weak)
    assert both.choice_of(CONFIGURATION).consistency == "atomic"


def falling_back(**parts: object) -> ClusterDocument:
    """A file whose rule for queues has a fallback."""
    given = {"live_below": 3, "after_s": 10.0} | parts
    return document(ChoiceRule("queue/*", fallback=Fallback(**given)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (falling_back(), ""),
        (falling_back(classes={"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}), ""),
        (falling_back(after_s=60.5), "[[choices]] queue/*: fallback: after_s = 60.5, and 10 then"),
        (
            falling_back(live_below=0, down=("r2", "r3")),
            "[[choices]] queue/*: fallback: down = [r2, r3], and [] then; [[choices]] queue/*: fallback: live_below = 0, and 3 then",
        ),
        (
            falling_back(classes={"Enq/Ok": (0, 1), "Deq/Ok": (3, 1)}),
            "[[choices]] queue/*: fallback: Enq/Ok is (0, 1), and was (0, 2)",
        ),
        (document(ChoiceRule("queue/*")), "[[choices]] queue/* lacks the fallback that it had then"),
    ],
)
def test_a_fallback_that_differs_is_named_though_a_store_may_vote_all_the_same(
    now: ClusterDocument, expected: str
) -> None:
    before = falling_back()
    assert told(before, now) == ""
    found = difference_of_documents(before, now)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)
    back = difference_of_documents(now, before)
    assert bool(back) == bool(expected)
    if now.choices[0].standing is None:
        assert back == "[[choices]] queue/* has a fallback, and none then"


def test_other_differences_of_documents_are_as_ever() -> None:
    eager = document(ChoiceRule("queue/*", EAGER))
    assert difference_of_documents(document(ChoiceRule("queue/*")), eager) == told(
        document(ChoiceRule("queue/*")), eager
    )
