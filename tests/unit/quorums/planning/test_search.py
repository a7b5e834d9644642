"""The search: every offer is on the front of all candidates, targets are kept, and nothing better was left out."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from quorate.adts.types.file import File
from quorate.adts.types.queue import Queue
from quorate.quorums.choices.assignment import of_choice, of_pair
from quorate.quorums.choices.choices import constraints_of, minimal_choices
from quorate.quorums.planning.cost import Workload
from quorate.quorums.planning.latency import answer_time
from quorate.quorums.planning.offers import Offer, parse_target
from quorate.quorums.planning.search import (
    Setting,
    candidates_of,
    measure,
    pareto,
    plan,
    thinned,
    vote_vectors,
    with_cost,
)
from quorate.quorums.systems.failures import Group, Groups, Independent, Joint, Model
from quorate.quorums.systems.systems import BadQuorums, choose, votes

QUEUE = constraints_of(Queue(), ["Enq", "Deq"])
MIX = {"Enq/Ok": 2.0, "Deq/Ok": 1.0, "Deq/Empty": 1.0}


def setting(
    up: Mapping[str, float], model: Model[float] | None = None, times: Mapping[str, float] | None = None
) -> Setting:
    answers = {name: answer_time([(ms, 1)]) for name, ms in (times or {}).items()}
    return Setting(QUEUE, tuple(up), MIX, model or Independent(up), Workload(((1.0, MIX),), times=answers))


THREE = setting(dict.fromkeys("abc", 0.9))
SKEWED = setting({"a": 0.999, "b": 0.9, "c": 0.8}, times={"a": 10, "b": 20, "c": 1})


@pytest.mark.parametrize("given", [THREE, SKEWED])
def test_the_front_is_what_comparing_all_with_all_leaves(given: Setting) -> None:
    offers = []
    for candidate in candidates_of(given, votes_max=2):
        measured = measure(given, candidate)
        assert measured is not None
        full = with_cost(given, measured)
        assert full is not None
        offers.append(full)
    goals = [offer.goals() for offer in offers]
    best = {
        each
        for each in goals
        if not any(other != each and all(a <= b for a, b in zip(other, each, strict=True)) for other in goals)
    }
    front = plan(given, candidates_of(given, votes_max=2))
    assert {offer.goals() for offer in front} == best
    assert len(front) == len(best)
    assert len(best) < len(goals)


@pytest.mark.parametrize("within", [0.0, 0.05, 0.5])
def test_what_is_thinned_out_comes_near_to_one_that_is_kept_in_every_figure(within: float) -> None:
    front = plan(SKEWED, candidates_of(SKEWED, votes_max=2))
    kept = thinned(front, within)
    for place, offer in enumerate(front):
        better = front[:place] if offer in kept else kept
        near = [
            all(a <= b * (1 + within) + 1e-12 for a, b in zip(other.costs(), offer.costs(), strict=True))
            for other in better
            if other in kept
        ]
        assert any(near) is (offer not in kept)
    assert (len(kept) == len(front)) is (within == 0)


def test_every_vector_of_votes_is_tried_once_up_to_exchange() -> None:
    skewed = list(vote_vectors(SKEWED, 2))
    every = {
        (a, b, c)
        for a in range(3)
        for b in range(3)
        for c in range(3)
        if 1 in (a, b, c)  # else all even: a multiple, or nothing
    }
    assert {(v["a"], v["b"], v["c"]) for v in skewed} == every
    assert skewed[0] == {"a": 1, "b": 1, "c": 1}
    alike = {tuple(sorted(v.values())) for v in vote_vectors(THREE, 2)}
    assert alike == {tuple(sorted(each)) for each in every}
    assert len(list(vote_vectors(THREE, 2))) == len(alike) + 1  # equal votes come first, and again in turn


def test_candidates_with_the_same_quorums_are_tried_once() -> None:
    """Of votes 2, 2, 1 the majority has the quorums of three equal votes."""
    one = of_choice(QUEUE, minimal_choices(QUEUE, dict.fromkeys("abc", 1))[1], dict.fromkeys("abc", 1))
    labels = [
        each.label
        for each in candidates_of(THREE, votes_max=2)
        if each.needed("Deq/Ok") == one.needed("Deq/Ok")
    ]
    assert labels == ["equal votes; Enq/Ok (0, 2)  Deq/Ok (2, 2)  Deq/Empty (2, 0)"]
    assert not any("a:2 b:2 c:1; Enq/Ok (0, 3)" in each.label for each in candidates_of(THREE, votes_max=2))


def test_targets_are_kept_and_narrow_the_front() -> None:
    candidates = candidates_of(SKEWED, votes_max=2)
    texts = ["Enq >= 99.9%", "Deq p50 <= 25ms", "Deq availability >= 0.8", "load <= 1.5"]
    targets = [parse_target(text, SKEWED.operations) for text in texts]
    found = plan(SKEWED, candidates, targets)
    assert found
    for offer in found:
        assert offer.availability["Enq"] >= 0.999
        assert offer.availability["Deq"] >= 0.8
        assert offer.p50_ms["Deq"] <= 25
        assert offer.strategy is not None
        assert offer.strategy.load <= 1.5
    assert len(found) < len(plan(SKEWED, candidates))
    assert plan(SKEWED, candidates, [parse_target("Deq p99 <= 0.5", SKEWED.operations)]) == []


def test_limits_drop_candidates_whose_strategies_cannot_keep_them() -> None:
    targets = [parse_target(text, THREE.operations) for text in ("messages <= 3", "messages <= 5")]
    found = plan(THREE, candidates_of(THREE, votes_max=2), targets)
    assert found
    assert all(offer.strategy is not None and offer.strategy.messages <= 3 + 1e-6 for offer in found)
    assert len(found) < len(plan(THREE, candidates_of(THREE, votes_max=2)))


def test_racks_bring_a_majority_of_rack_majorities() -> None:
    names = [f"{rack}{each}" for rack in "abc" for each in range(3)]
    model = Groups(
        dict.fromkeys(names, 0.9),
        tuple(Group(rack, frozenset(n for n in names if n[0] == rack), 0.99) for rack in "abc"),
    )
    given = setting(dict.fromkeys(names, 0.9), model)
    labels = {each.label for each in candidates_of(given)}
    assert "read a majority of group majorities" in labels
    assert "write rows of a 3x3 grid" in labels


def test_the_dead_are_planned_without() -> None:
    given = replace(THREE, dead=frozenset("c"))
    found = plan(given, candidates_of(given))
    assert {offer.assignment.label.split("; ")[1] for offer in found} == {
        "Enq/Ok (0, 2)  Deq/Ok (2, 2)  Deq/Empty (2, 0)"
    }
    assert found[0].availability == pytest.approx({"Enq": 0.81, "Deq": 0.81})
    assert found[0].resilience == {"Enq": 0, "Deq": 0}


def test_a_trace_sees_each_replica_as_its_own_kind() -> None:
    given = setting(dict.fromkeys("abc", 0.0), Joint({frozenset("ab"): 3.0, frozenset("c"): 1.0}))
    assert len(list(vote_vectors(given, 2))) > len(list(vote_vectors(THREE, 2)))
    best = plan(given, candidates_of(given, votes_max=2))[0]
    assert best.overall == pytest.approx(0.75)


def test_too_many_candidates_are_refused_with_the_remedy() -> None:
    given = setting({f"r{each}": 0.5 + each / 100 for each in range(9)})
    with pytest.raises(BadQuorums, match="262144 distributions of 0 to 3 votes; give a smaller largest vote"):
        candidates_of(given, votes_max=3)


def test_without_loads_the_front_is_of_the_rest() -> None:
    given = replace(THREE, has_loads=False)
    found = plan(given, candidates_of(given))
    assert found
    assert all(offer.strategy is None for offer in found)


def test_of_equal_offers_the_first_is_kept() -> None:
    measured = [
        measure(THREE, of_pair(QUEUE, system))
        for system in (choose(2, "abc"), votes(dict.fromkeys("abc", 2), 3))
    ]
    offers: list[Offer] = [each for each in measured if each is not None]
    assert len(offers) == 2
    assert pareto(offers) == offers[:1]


def test_a_file_is_planned_like_quoracle_would() -> None:
    """Reads and writes with dual systems: the candidates of a file are read/write quorum systems."""
    file = constraints_of(File(), replication="timestamps")
    mix = {"Read/Ok": 3.0, "Write/Ok": 1.0}
    given = Setting(
        file, tuple("abcd"), mix, Independent(dict.fromkeys("abcd", 0.9)), Workload(((1.0, mix),))
    )
    found = plan(given, candidates_of(given, systems=[choose(2, "abc")]))
    assert {"read rows of a 2x2 grid", "read choose(2; a, b, c)"} & {each.assignment.label for each in found}
