"""Callers take turns, and none has more than is left for others."""

from quorate.client_sdk.protocol.core.turns import Shares, Turns


def order(turns: Turns[str]) -> list[str]:
    found: list[str] = []
    while (each := turns.pop()) is not None:
        found.append(each)
    return found


def test_the_next_is_of_the_caller_whose_last_one_is_longest_ago() -> None:
    turns: Turns[str] = Turns()
    for each in ("a1", "a2", "a3", "b1", "c1", "b2"):
        turns.add(each[0], each)
    assert order(turns) == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_what_is_put_back_is_the_next_before_all_others() -> None:
    turns: Turns[str] = Turns()
    for each in ("a1", "a2", "b1", "c1"):
        turns.add(each[0], each)
    taken = [turns.pop() for _ in range(3)]
    assert taken == ["a1", "b1", "c1"]
    for each in reversed(["b1", "c1"]):
        turns.put_back(each[0], each)
    assert order(turns) == ["b1", "c1", "a2"]


def test_who_may_not_go_keeps_its_place() -> None:
    turns: Turns[str] = Turns()
    for each in ("a1", "b1", "a2"):
        turns.add(each[0], each)
    assert turns.pop(lambda caller: caller != "a") == "b1"
    assert turns.pop(lambda caller: caller != "a") is None
    assert turns
    assert order(turns) == ["a1", "a2"]


def test_one_caller_may_have_half_and_the_next_half_of_the_rest() -> None:
    shares, had = Shares(80), dict[str, int]()
    for caller in ("first", "second", "third"):
        while shares.may_take(caller, 10):
            shares.take(caller, 10)
            had[caller] = had.get(caller, 0) + 10
    assert had == {"first": 40, "second": 20, "third": 10}
    assert shares.held == 70


def test_what_is_given_back_is_there_for_all() -> None:
    shares = Shares(4)
    shares.take("a", 2)
    assert not shares.may_take("a")
    assert not shares.may_take("b", 3)
    shares.give("a", 2)
    assert shares.held == 0
    assert shares.may_take("b", 4)
