"""Calls of one's own types: what a single copy could have answered is right, and copies of the code judge that remember nothing."""

from collections.abc import Callable

import pytest

from quorate.adts.plain_class import BadClass, PlainClass
from quorate.adts.specification import Invocation
from quorate.simulation.history import NEVER, Call
from quorate.simulation.judging.own import Law, NoOrder, check_own


class Tally:
    def __init__(self) -> None:
        self.count = 0

    def add(self, by: int) -> int:
        self.count += by
        return self.count


TALLY = Law(lambda: PlainClass(Tally))


def add(at: int, result: int | None, until: int = 0) -> Call:
    results = () if result is None else ("Ok", result)
    return Call("add", (1,), at, until or (NEVER if result is None else at + 1), results, who=f"f{at}")


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [add(1, 1), add(3, 2)],
        [add(1, 2, until=9), add(3, 1)],
        [add(1, None), add(3, 2)],
        [add(1, None), add(3, 1)],
    ],
)
def test_what_one_copy_could_answer_is_right(calls: list[Call]) -> None:
    assert check_own("own/x", TALLY, calls, is_exact=True) == 0


@pytest.mark.parametrize("calls", [[add(1, 2)], [add(1, 2), add(3, 1)], [add(1, 1), add(3, 1)]])
def test_what_no_copy_could_answer_is_wrong_and_kept(calls: list[Call]) -> None:
    with pytest.raises(NoOrder, match="own/x is not linearizable") as caught:
        check_own("own/x", TALLY, calls, is_exact=True)
    assert [(call.object, call.process) for call in caught.value.calls] == [
        ("Tally", call.who) for call in calls
    ]
    assert str(caught.value.calls[0]) == f"add(1) → Ok({calls[0].results[1]})"


def remembering() -> Callable[[], PlainClass]:
    """Copies of a class that keeps its first answer where all objects of its process share it."""

    def copied() -> PlainClass:
        kept: list[int] = []

        class Kept:
            def __init__(self) -> None:
                self.count = 0

            def add(self, by: int) -> int:
                self.count += by
                kept.append(self.count)
                return kept[0]

        return PlainClass(Kept)

    return copied


def test_each_step_is_taken_by_another_copy() -> None:
    law = Law(remembering())
    after = law.initial()
    for count in (1, 2, 3):
        ((after, response),) = law.outcomes(after, Invocation("add", (1,)))
        assert response.results == (count,)
    assert check_own("own/x", law, [add(1, 1), add(3, 2)], is_exact=True) == 0
    one = remembering()()
    with pytest.raises(NoOrder):
        check_own("own/x", Law(lambda: one), [add(1, 1), add(3, 2)], is_exact=True)


class Slip:
    """One whose code fails from two on."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, by: int) -> int:
        self.count += by
        return [0, 1][self.count]


def test_a_step_that_the_code_cannot_take_has_no_outcome() -> None:
    law = Law(lambda: PlainClass(Slip))
    assert check_own("own/x", law, [add(1, 1), add(3, None)], is_exact=True) == 0
    with pytest.raises(NoOrder):
        check_own("own/x", law, [add(1, 1), add(3, 2)], is_exact=True)
    with pytest.raises(BadClass, match="IndexError"):
        law.step('{"count":1}', Invocation("add", (1,)))


class Pile:
    blind = ("put",)

    def __init__(self) -> None:
        self.items: list[str] = []

    def put(self, item: str) -> None:
        self.items.append(item)

    def look(self) -> str:
        return "".join(self.items)


def put(item: str, at: int, until: int) -> Call:
    return Call("put", (item,), at, until, ("Ok",) if until < NEVER else (), who=item)


def look(items: str, at: int) -> Call:
    return Call("look", (), at, at + 1, ("Ok", items))


@pytest.mark.parametrize(
    ("calls", "is_right", "is_right_by_wrong_clocks"),
    [
        ([put("a", 1, 2), put("b", 3, 4), look("ab", 5)], True, True),
        ([put("a", 1, 2), put("b", 3, 4), look("ba", 5)], False, True),
        ([put("a", 1, 4), put("b", 2, 3), look("ba", 5)], True, True),
        ([put("a", 1, 2), look("a", 3), put("b", 5, 6), look("ba", 7)], False, False),
        ([put("a", 1, 2), put("b", 3, 4), look("b", 5)], False, False),
        ([put("a", 1, 2), put("b", 3, NEVER), look("ba", 5)], False, True),
        ([look("b", 1), put("b", 3, 4)], False, False),
        (
            [
                Call("look", (), 1, 20, ("Ok", "")),
                put("a", 5, 10),
                Call("look", (), 12, 40, ("Ok", "ba")),
                put("b", 25, 30),
            ],
            False,
            True,
        ),
    ],
)
def test_wrong_clocks_change_the_order_of_blind_calls_among_each_other_alone(
    calls: list[Call], is_right: bool, is_right_by_wrong_clocks: bool
) -> None:
    law = Law(lambda: PlainClass(Pile))
    for is_exact, expected in ((True, is_right), (False, is_right_by_wrong_clocks)):
        try:
            assert check_own("own/x", law, calls, is_exact=is_exact) == 0
            assert expected
        except NoOrder:
            assert not expected
