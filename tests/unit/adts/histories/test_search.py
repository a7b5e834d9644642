"""The search agrees with trying out every order, on small random histories, right ones and damaged ones."""

import random

import pytest

from quorate.adts import library
from quorate.adts.histories.calls import NEVER, Call
from quorate.adts.histories.orders import Model
from quorate.adts.histories.search import Inconclusive, search
from quorate.adts.own import Computed
from quorate.adts.plain_class import PlainClass, frozen
from quorate.adts.specification import Invocation, Response, SerialSpecification
from quorate.adts.types.catalogue import known_types
from tests.unit.adts.histories.every_order import in_some_order, is_right, random_calls
from tests.unit.adts.histories.test_weak import Pile

HISTORIES = 250
QUEUES = 1500


@pytest.mark.parametrize("model", Model)
@pytest.mark.parametrize("adt", known_types())
def test_search_agrees_with_trying_every_order(adt: str, model: Model) -> None:
    specifications = {"x": known_types()[adt]}
    verdicts = {True: 0, False: 0}
    for seed in range(HISTORIES):
        calls = random_calls(specifications, random.Random(seed), 5)
        expected = in_some_order(specifications, calls, model)
        found = search(specifications, calls, model)
        assert found.is_right == expected, f"seed {seed}"
        assert not expected or is_right(specifications, found.order, model), f"seed {seed}"
        verdicts[expected] += 1
    # Few short histories cannot be reordered to be right.
    assert model is Model.SERIALIZABLE or min(verdicts.values()) >= 2, verdicts


class Trail(Pile):
    """A pile on which items are put without a look."""

    blind = ("put",)


class Text:
    """A text that grows."""

    def __init__(self) -> None:
        self.text = ""

    def append(self, part: str) -> None:
        self.text += part

    def look(self) -> str:
        return self.text


@pytest.mark.parametrize("is_known_what_changes", [False, True])
@pytest.mark.parametrize("plain", [Trail, Text, library.Stack, library.Directory, library.Counter])
def test_of_types_of_ones_own_too(plain: type, *, is_known_what_changes: bool) -> None:
    """Also where a text that is put in shows what was tried first."""
    bare = PlainClass(plain)
    specification: SerialSpecification = Computed(bare) if is_known_what_changes else bare
    verdicts = {True: 0, False: 0}
    for seed in range(HISTORIES):
        calls = random_calls({"x": specification}, random.Random(seed), 6, distinct=seed % 2 == 0)
        expected = in_some_order({"x": specification}, calls, Model.LINEARIZABLE)
        found = search({"x": specification}, calls)
        assert found.is_right == expected, f"seed {seed}"
        assert not expected or is_right({"x": specification}, found.order, Model.LINEARIZABLE), f"seed {seed}"
        verdicts[expected] += 1
    assert min(verdicts.values()) >= 5, verdicts


@pytest.mark.parametrize("model", Model)
def test_several_objects_are_searched_together(model: Model) -> None:
    specifications = {"x": known_types()["register"], "y": known_types()["queue"]}
    verdicts = {True: 0, False: 0}
    for seed in range(HISTORIES):
        calls = random_calls(specifications, random.Random(seed), 5)
        expected = in_some_order(specifications, calls, model)
        assert search(specifications, calls, model).is_right == expected, f"seed {seed}"
        verdicts[expected] += 1
    assert min(verdicts.values()) >= 2, verdicts


def test_items_of_a_queue_force_no_order_that_is_wrong() -> None:
    specifications = {"q": known_types()["queue"]}
    verdicts = {True: 0, False: 0}
    for seed in range(QUEUES):
        calls = random_calls(specifications, random.Random(seed), 6, distinct=True)
        expected = in_some_order(specifications, calls, Model.LINEARIZABLE)
        assert search(specifications, calls).is_right == expected, f"seed {seed}"
        verdicts[expected] += 1
    assert min(verdicts.values()) > 50, verdicts


def enq(item: str, invoked: int, returned: int) -> Call:
    return Call("p", "q", Invocation("Enq", (item,)), invoked, returned, (Response("Ok"),))


def deq(item: str, invoked: int, returned: int) -> Call:
    return Call("p", "q", Invocation("Deq"), invoked, returned, (Response("Ok", (item,)),))


def test_a_long_backlog_is_checked_in_one_go() -> None:
    """Each order of enqueues that overlapped shows a thousand calls later whether it was right."""
    calls = [enq(f"v{number}", 10 * number, 10 * number + 75) for number in range(1000)]
    calls += [deq(f"v{number}", 20_000 + 10 * number, 20_000 + 10 * number + 75) for number in range(1000)]
    found = search({"q": known_types()["queue"]}, calls)
    assert found.is_right
    assert found.visits <= 2500


def put(item: str, invoked: int, returned: int = NEVER) -> Call:
    return Call(
        "p", "t", Invocation("put", (item,)), invoked, returned, (Response("Ok"),) if returned < NEVER else ()
    )


def look(items: list[str], invoked: int, returned: int) -> Call:
    return Call("p", "t", Invocation("all"), invoked, returned, (Response("Ok", (frozen(items),)),))


def test_what_is_shown_is_placed_in_that_order() -> None:
    """Of eight calls there are 40,320 orders."""
    items = [f"v{number}" for number in (3, 0, 7, 5, 1, 6, 2, 4)]
    for end in (NEVER, 90):
        calls = [put(item, int(item[1:]), end) for item in items]
        found = search({"t": PlainClass(Trail)}, [*calls, look(items, 100, 101)])
        assert found.is_right
        assert found.visits == 10


def test_an_early_mistake_is_mended_before_all_that_follows_it_is_tried() -> None:
    """Nobody knows that the first item was taken, until the last answer came."""
    items = [f"v{number}" for number in range(8)]
    taken = Call("p", "t", Invocation("take"), 3)
    calls = [put("first", 1, 2), taken, *(put(item, 10, 20) for item in items), look(items, 30, 31)]
    found = search({"t": PlainClass(Trail)}, calls)
    assert found.is_right
    assert found.visits <= 100


def test_a_search_is_given_up_beyond_its_bound() -> None:
    calls = [enq(f"v{number}", number, 100) for number in range(9)]
    calls.append(deq("nobody's", 200, 201))
    with pytest.raises(Inconclusive, match="no answer after 50 steps over 10 calls"):
        search({"q": known_types()["stack"]}, [_pushed(call) for call in calls], visits_max=50)


def _pushed(call: Call) -> Call:
    name = {"Enq": "Push", "Deq": "Pop"}[call.invocation.operation]
    return call._replace(invocation=Invocation(name, call.invocation.args))


def test_the_longest_order_says_where_it_got_stuck() -> None:
    write = Call("p", "r", Invocation("Write", ("a",)), 1, 2, (Response("Ok"),))
    read = Call("p", "r", Invocation("Read"), 3, 4, (Response("Ok", ("b",)),))
    found = search({"r": known_types()["register"]}, [read, write])
    assert (found.is_right, found.order, found.states, found.stuck) == (False, (write,), {"r": "a"}, (read,))
