"""Types of one's own in a cluster file, and in what a store notes of it."""

import msgspec
import pytest

from quorate.api_specs.cluster import BadCluster, from_json, parse
from quorate.api_specs.configuration import configuration_of, difference
from quorate.quorums.choices.choice import BadChoice
from tests.unit.api_specs.test_cluster import GOOD

CART = '[types]\ncart = "shop.types:Cart"\n'


def told(before: str, now: str) -> str:
    return difference(configuration_of(parse(GOOD + before)), configuration_of(parse(GOOD + now)))


def rule(objects: str, votes: str) -> str:
    return f'[[choices]]\nobjects = "{objects}"\nclasses = {{ "Call/Ok" = {votes} }}\n'


def test_a_document_names_types_and_their_quorums() -> None:
    document = parse(GOOD + CART + rule("cart/vip-*", "[4, 1]"))
    assert document.own_types == {"cart": "shop.types:Cart"}
    assert list(document.specifications) == ["queue", "register", "dictionary", "cart"]
    assert document.choice_of("cart/vip-1").sizes("Call/Ok") == (4, 1)
    assert document.choice_of("cart/ann").sizes("Call/Ok") == (2, 3)
    assert from_json(msgspec.to_builtins(document)) == document


def test_a_document_without_types_is_what_it_was_before_there_were_any() -> None:
    document = parse(GOOD)
    assert document.own_types == {}
    assert "types" not in msgspec.to_builtins(document)
    assert document.hash == "d36038d4e9de868fa308617dc8b6343ec42cbc9c25cc06b3f8d2dbf12c99b011"
    assert document.hash != parse(GOOD + CART).hash


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[types]\n", "[types]: give 1 to 100 types, or leave the table out"),
        ('[types]\nqueue = "a:B"\n', "[types]: queue is a type of Quorate's own catalogue"),
        ('[types]\nstack = "a:B"\n', "[types]: stack is a type of Quorate's own catalogue"),
        ('[types]\nCart = "a:B"\n', "[types]: the name 'Cart' is not allowed: use 1 to 32 of a-z"),
        ('[types]\ncart = "a.B"\n', "[types] cart: 'a.B' names no class: write MODULE:CLASS"),
        ('[types]\ncart = "a/b.py:B"\n', "[types] cart: 'a/b.py:B' names no class"),
        ('[types]\ncart = "cart.py:B"\n', "[types] cart: 'cart.py:B' names no class: write MODULE:CLASS"),
        ("[types]\ncart = 1\n", "types[...]: expected a text in quotes"),
        (rule("cart/*", "[2, 3]"), "must start with one of queue, register, dictionary, as"),
        (CART + rule("cart/*", "[2, 2]"), "[[choices]] 1 (cart/*): "),
        (CART + rule("cart/*", "[2, 3]") + rule("cart/a*", "[2, 3]"), "matches all of its objects"),
    ],
)
def test_types_that_cannot_be_are_refused_with_the_remedy(text: str, words: str) -> None:
    with pytest.raises(BadCluster) as refused:
        parse(GOOD + text)
    assert words in str(refused.value)


def test_a_type_may_be_added_with_its_rules_and_neither_goes_again() -> None:
    with_rule = CART + rule("cart/*", "[4, 1]")
    assert told("", CART) == told("", with_rule) == told(CART, CART) == ""
    assert told(CART, "") == "[types] lacks cart, a type then"
    assert "[[choices]] has cart/*, and no such rule then" in told(CART, with_rule)
    assert "[[choices]] lacks cart/*, a rule then" in told(with_rule, CART)
    assert "Call/Ok is (4, 1), and was (2, 3)" in told(CART + rule("cart/*", "[2, 3]"), with_rule)
    assert "[[choices]] has */a, and no such rule then" in told("", CART + '[[choices]]\nobjects = "*/a"\n')


def test_where_the_code_is_may_change() -> None:
    assert told(CART, '[types]\ncart = "elsewhere:Cart"\n') == ""


def test_there_is_no_choice_for_a_type_that_the_cluster_has_not() -> None:
    with pytest.raises(BadChoice, match="has no data type 'basket': the document's \\[types\\] name"):
        parse(GOOD + CART).choice_of("basket/ann")
