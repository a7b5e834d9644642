"""Which choice was in force when, by the rules of a cluster and by what its replicas noted."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest

from quorate.adts.types.catalogue import known_types
from quorate.api_specs.cluster import ClusterDocument, parse
from quorate.api_specs.messages import ConfigurationNote
from quorate.cli.reports.regimes import Told, choice_of, told

TYPED: Final = '[[choices]]\nobjects = "queue/*"\n[choices.classes]\n"Enq/Ok" = [0, 1]\n'
SYSTEMS: Final = '[[choices]]\nobjects = "queue/*"\nreads = "r1*r2"\n'
TWO: Final = '[[choices]]\nobjects = "queue/a"\n[[choices]]\nobjects = "queue/b"\n'
FALLBACK: Final = (
    TYPED.replace("[0, 1]", "[0, 3]")
    + '[choices.fallback]\nlive_below = 5\n[choices.fallback.classes]\n"Enq/Ok" = [0, 2]\n'
)
RULES: Final = {
    "one": (TYPED, ""),
    "none": ('[[choices]]\nobjects = "register/*"\nreads = "r1*r2"\n', ""),
    "two": (
        TWO,
        "Majorities are taken to be in force; the cluster has rules for queue/a, queue/b: name another choice with --present.",
    ),
    "systems": (
        SYSTEMS,
        "Majorities are taken to be in force; the cluster has rules for queue/*: name another choice with --present.",
    ),
}
EVEN: Final = {"r1": 1, "r2": 1, "r3": 1}
ALL: Final = (0, 1), (3, 2)
MAJORITIES: Final = (0, 2), (2, 2)


def made(text: str = "", epoch: int = 0, votes: Mapping[str, int] = EVEN) -> ClusterDocument:
    replicas = "".join(
        f'[[replicas]]\nid = "{id}"\nurl = "http://127.0.0.1:{id[1:]}"\nvotes = {count}\n'
        for id, count in votes.items()
    )
    document = parse(f'name = "shop"\n{text}{replicas}')
    return msgspec.structs.replace(document, epoch=epoch or msgspec.UNSET)


def note(time_s: float, document: ClusterDocument) -> ConfigurationNote:
    return ConfigurationNote(time_s, msgspec.to_builtins(document))


def shown(found: Told) -> list[tuple[int, Any, Any]]:
    """When which quorums of Enq/Ok and Deq/Ok came into force, and whose votes they are."""
    return [
        (each.from_us, (each.present["Enq/Ok"], each.present["Deq/Ok"]), each.votes)  # type: ignore[index]
        for each in found.changes
    ]


@pytest.mark.parametrize("rules", RULES)
def test_the_choice_in_force_is_that_of_the_clusters_rule(rules: str) -> None:
    text, sentence = RULES[rules]
    document = made(text)
    found, unsure = choice_of(document, "queue")
    assert choice_of(document, known_types()["queue"]) == (found, unsure)
    assert unsure == sentence
    if rules == "one":
        assert found is not None
        assert (found["Enq/Ok"], found["Deq/Ok"], found["Deq/Empty"]) == ((0, 1), (3, 2), (3, 0))
    else:
        assert found is None


def test_a_change_is_in_force_from_the_first_moment_at_which_any_replica_noted_it() -> None:
    first, second = made(), made(TYPED, 2)
    notes = [note(10, first), note(50, second), note(12, first), note(40, second), note(90, second)]
    found = told(second, notes, "queue", 10_000_000, {})
    assert shown(found) == [(0, MAJORITIES, EVEN), (40_000_000, ALL, EVEN)]
    assert found.present == found.changes[0].present
    assert found.sentences == []


def test_a_configuration_with_the_same_choice_and_votes_is_no_change() -> None:
    first, other, second = made(TYPED), made(TYPED + '[[choices]]\nobjects = "register/*"\n', 2), made("", 4)
    alike = told(other, [note(10, first), note(20, other)], "queue", 10_000_000, {})
    assert alike == Told(choice_of(other, "queue")[0], (), [])
    found = told(second, [note(10, first), note(20, other), note(30, second)], "queue", 10_000_000, {})
    assert shown(found) == [(0, ALL, EVEN), (30_000_000, MAJORITIES, EVEN)]


def test_without_notes_it_is_as_the_cluster_has_it_now() -> None:
    assert told(made(TYPED), [], "queue", 0, {}) == Told(choice_of(made(TYPED), "queue")[0], (), [])
    unsure = told(made(SYSTEMS), [], "queue", 0, {})
    assert (unsure.present, unsure.changes, len(unsure.sentences)) == (None, (), 1)


def test_what_was_over_before_the_time_is_none_of_it() -> None:
    notes = [note(10, made()), note(20, made(TYPED, 2)), note(30, made("", 4))]
    assert shown(told(made("", 4), notes, "queue", 25_000_000, {})) == [
        (0, ALL, EVEN),
        (30_000_000, MAJORITIES, EVEN),
    ]
    assert told(made("", 4), notes, "queue", 30_000_000, {}).changes == ()


def test_what_nobody_noted_is_said_to_be_taken_so() -> None:
    notes = [note(10, made()), note(20, made(TYPED, 2))]
    assert told(made(TYPED, 2), notes, "queue", 5_000_000, {}).sentences == [
        "What was in force before 10 s no replica has noted: it is taken to be what was in force then."
    ]


def test_votes_are_those_of_the_time_unless_they_are_given() -> None:
    heavy = {"r1": 2, "r2": 1, "r3": 1}
    notes = [note(10, made()), note(20, made("", 2, heavy))]
    now = made("", 2, heavy)
    assert shown(told(now, notes, "queue", 10_000_000, {})) == [
        (0, MAJORITIES, EVEN),
        (20_000_000, ((0, 3), (2, 3)), heavy),
    ]
    assert [each.votes for each in told(now, notes, "queue", 10_000_000, EVEN).changes] == [None, None]


def test_a_standing_rule_has_the_choice_that_was_in_force() -> None:
    five = {f"r{n}": 1 for n in range(1, 6)}
    first = made(FALLBACK, votes=five)
    states = tuple(rule.in_state(has_fallen_back=True) for rule in first.choices)
    fallen = msgspec.structs.replace(first, choices=states, epoch=2)
    notes = [note(10, first), note(20, fallen), note(30, msgspec.structs.replace(first, epoch=4))]
    assert shown(told(first, notes, "queue", 10_000_000, {})) == [
        (0, ((0, 3), (3, 3)), five),
        (20_000_000, ((0, 2), (4, 3)), five),
        (30_000_000, ((0, 3), (3, 3)), five),
    ]


def test_a_fallback_by_quorum_systems_is_no_number_of_votes() -> None:
    five = {f"r{n}": 1 for n in range(1, 6)}
    systems = '[choices.fallback]\ndown = ["r4", "r5"]\nreads = "r1*r2 + r1*r3 + r2*r3"\n'
    first = made(TYPED.replace("[0, 1]", "[0, 3]") + systems, votes=five)
    states = tuple(rule.in_state(has_fallen_back=True) for rule in first.choices)
    fallen = msgspec.structs.replace(first, choices=states, epoch=2)
    found = told(fallen, [note(10, first), note(20, fallen)], "queue", 10_000_000, {})
    assert found.changes == ()
    assert "no one choice of the queue, in votes, was in force" in found.sentences[-1]


@pytest.mark.parametrize(
    ("first", "why"),
    [
        (made(SYSTEMS), "in some of it no one choice of the queue, in votes, was in force"),
        (made(TWO), "in some of it no one choice of the queue, in votes, was in force"),
        (made("", 0, {"r1": 1, "r2": 1, "r3": 1, "r4": 1}), "r4 had votes in some of it, and has none now"),
    ],
)
def test_where_it_cannot_be_told_a_sentence_says_why(first: ClusterDocument, why: str) -> None:
    found = told(made(TYPED, 2), [note(10, first), note(20, made(TYPED, 2))], "queue", 10_000_000, {})
    assert (found.present, found.changes) == (choice_of(made(TYPED), "queue")[0], ())
    (sentence,) = found.sentences
    assert sentence.startswith(
        f"The configuration changed within this time, and each by itself is not told: {why}."
    )


def test_what_is_no_configuration_or_comes_too_late_is_passed_over() -> None:
    """A replica that was away goes on in the one that it knows, until it hears of others."""
    odd = ConfigurationNote(15, {"name": "shop", "replicas": [], "shards": 7})
    notes = [odd, note(20, made(TYPED, 2)), note(25, made())]
    assert told(made(TYPED, 2), notes, "queue", 20_000_000, {}).changes == ()


def test_a_type_that_the_cluster_does_not_keep_has_no_regimes() -> None:
    notes = [note(10, made()), note(20, made(TYPED, 2))]
    for adt in (None, "mine"):
        assert told(made(TYPED, 2), notes, adt, 10_000_000, {}) == Told(None, (), [])
