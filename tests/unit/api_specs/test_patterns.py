"""When one pattern of object names covers another, against all short names, and the rules that are refused for it."""

import time
from fnmatch import fnmatchcase
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.adts.types.catalogue import SPECIFICATIONS
from quorate.api_specs.cluster import BadCluster, ChoiceRule, ClusterDocument, ReplicaInfo, checked
from quorate.api_specs.patterns import covers, is_met

PATTERNS = st.lists(st.sampled_from(["*", "?", "a", "b", ".", "[ab]", "[!a]"]), min_size=1, max_size=4).map(
    "".join
)
NAMES = [
    name
    for length in range(1, 6)
    for each in product("ab.z", repeat=length)
    if (name := "".join(each))[0] != "."
]


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("queue/*", "queue/*"),
        ("queue/jobs", "queue/jobs"),
        ("*", "queue/*"),
        ("*", "register/leader"),
        ("queue/*", "queue/jobs"),
        ("queue/*", "queue/jobs-*"),
        ("queue/jobs-*", "queue/jobs-a-*"),
        ("queue/*-jobs", "queue/a*-jobs"),
        ("queue/?*", "queue/*"),
        ("queue/a*?", "queue/a?*"),
        ("*/jobs", "dictionary/jobs"),
        ("[qr]*", "register/*"),
        ("*/[a-z]*", "queue/jobs*"),
        ("*/**", "*"),
    ],
)
def test_a_pattern_that_covers(wide: str, narrow: str) -> None:
    assert covers(wide, narrow, SPECIFICATIONS)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("queue/jobs", "queue/*"),
        ("queue/*", "*"),
        ("queue/*", "register/*"),
        ("queue/jobs-*", "queue/jobs*"),
        ("queue/??*", "queue/*"),
        ("queue/*a", "queue/a*"),
        ("queue/[a-z]*", "queue/*"),
        ("queue/jobs", "queue/job?"),
        ("*", "dictionary/users/ann"),
        ("*", "queue/"),
    ],
)
def test_a_pattern_that_does_not(wide: str, narrow: str) -> None:
    assert not covers(wide, narrow, SPECIFICATIONS)


@settings(max_examples=300, deadline=None)
@given(wide=PATTERNS, narrow=PATTERNS)
def test_it_says_what_all_short_names_say(wide: str, narrow: str) -> None:
    matched = [name for name in NAMES if fnmatchcase(name, narrow)]
    missed = [name for name in matched if not fnmatchcase(name, wide)]
    assert covers(f"queue/{wide}", f"queue/{narrow}", SPECIFICATIONS) == bool(matched and not missed)


def document(*patterns: str) -> ClusterDocument:
    infos = tuple(ReplicaInfo(f"r{number}", f"http://127.0.0.1:{number}") for number in (1, 2, 3))
    return ClusterDocument("c", infos, tuple(map(ChoiceRule, patterns)))


def test_a_rule_that_an_earlier_one_shadows_is_refused_with_both_numbers() -> None:
    checked(document("queue/jobs", "queue/*", "register/*", "*"))
    with pytest.raises(
        BadCluster, match=r"\[\[choices\]\] 3 \(queue/jobs\): rule 2 \(queue/\*\) matches all of"
    ) as caught:
        checked(document("register/*", "queue/*", "queue/jobs"))
    assert "put rule 3 before rule 2, or remove one" in str(caught.value)


def test_a_rule_for_a_dictionarys_keys_is_refused_with_the_one_that_holds_for_them() -> None:
    checked(document("dictionary/u[/s]ers"))
    with pytest.raises(
        BadCluster,
        match=r"\[\[choices\]\] 1: 'dictionary/users/\*' matches no object: write dictionary/users, which",
    ):
        checked(document("dictionary/users/*"))


@pytest.mark.parametrize(
    "pattern", ["queue/*a" + "?" * 40, "queue/*-????????????????", "[qr]*/a", "*", "queue/[!.]*"]
)
def test_what_an_object_can_match_is_met_however_long_it_takes_to_compare(pattern: str) -> None:
    assert is_met(pattern, SPECIFICATIONS)


@pytest.mark.parametrize(
    "pattern", ["dictionary/users/*", "queue/", "queue/.*", "queue/a b", "queue/*/?", "stack/*"]
)
def test_what_no_object_can_match_is_not_met(pattern: str) -> None:
    assert not is_met(pattern, SPECIFICATIONS)


@settings(max_examples=300, deadline=None)
@given(pattern=PATTERNS)
def test_what_some_short_name_matches_is_met(pattern: str) -> None:
    if any(fnmatchcase(name, pattern) for name in NAMES):
        assert is_met(f"queue/{pattern}", SPECIFICATIONS)


def test_many_rules_are_looked_through_in_time() -> None:
    patterns = [f"queue/tenant-{number:04}-*" for number in range(999)]
    began_s = time.process_time()
    checked(document(*patterns, "queue/*"))
    assert time.process_time() - began_s < 10
