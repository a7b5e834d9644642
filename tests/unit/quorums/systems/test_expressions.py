"""Systems as text: what is printed can be read again, and a mistake is named with its place."""

import pytest
from hypothesis import given

from quorate.quorums.systems.expressions import parse_system
from quorate.quorums.systems.systems import (
    NOBODY,
    BadQuorums,
    Replica,
    System,
    Threshold,
    all_of,
    any_of,
    choose,
    grid,
    majority,
    votes,
)
from tests.unit.quorums.listing import SYSTEMS, UNTIMED, quorums_of


def is_writable(system: System) -> bool:
    """Weights are written in votes(…), for replicas only, and once for each."""
    if isinstance(system, Replica):
        return True
    if all(weight == 1 for weight, _ in system.parts):
        return all(is_writable(part) for _, part in system.parts)
    names = [part.name for _, part in system.parts if isinstance(part, Replica)]
    return len(set(names)) == len(system.parts)


def with_weights_on_replicas(system: System) -> System:
    if isinstance(system, Replica) or is_writable(system):
        return system
    parts = tuple((1, with_weights_on_replicas(part)) for _, part in system.parts)
    return Threshold(min(system.needed, len(parts)), parts)


@UNTIMED
@given(SYSTEMS)
def test_what_is_printed_is_read_as_the_same_quorums(system: System) -> None:
    printed = with_weights_on_replicas(system)
    assert quorums_of(parse_system(str(printed))) == quorums_of(printed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a*b + c*d", grid(["ab", "cd"])),
        ("a + b*c", any_of(["a", all_of("bc")])),
        ("(a + b)*c", all_of([any_of("ab"), "c"])),
        (" choose( 2 ; a , b , c ) ", choose(2, "abc")),
        ("majority(a, b, c)", majority("abc")),
        ("choose(2; a, b*c, majority(d, e, f))", choose(2, ["a", all_of("bc"), majority("def")])),
        ("votes(3; a:2, b:1, c:0)", votes({"a": 2, "b": 1, "c": 0}, 3)),
        ("grid(a, b; c, d)", grid(["ab", "cd"])),
        ("choose(0; )", NOBODY),
        ("r-1.x", Replica("r-1.x")),
    ],
)
def test_the_grammar(text: str, expected: System) -> None:
    assert parse_system(text) == expected


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "character 1 of '': the end stands where a replica or a parenthesis should"),
        ("a*", "character 3 of 'a.': the end stands where a replica"),
        ("a b", "character 3 of 'a b': 'b' stands where the end, . or . should"),
        ("a $ b", r"character 3 of 'a \$ b': '\$' means nothing here"),
        ("(a", "character 3 of .*'\\)'"),
        ("pick(a)", r"pick\(…\) is no kind of system: use choose, votes, majority or grid"),
        ("choose(x; a)", "character 8 of .* 'x' stands where a number should"),
        ("choose(3; a, b)", "3 votes are needed but there are 2"),
        ("votes(1; a:0)", r"votes\(1; …\) gives no votes at all; give at least one replica a vote"),
        ("votes(2; a:1, a:1)", r"votes\(2; …\) names a twice; give each replica its votes once"),
        ("votes(9; a:1)", "9 votes are needed but there are 1"),
        ("votes(1; a)", r"'\)' stands where ':' should"),
        ("grid(a,b;c)", "rows of the grid have different lengths"),
        ("(" * 40 + "a" + ")" * 40, "more than 30 levels"),
        ("a+" * 6000, "12000 characters; write at most 10000"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(BadQuorums, match=sentence):
        parse_system(text)
