"""The steps of a plain class that two processes compare."""

from itertools import count

import pytest

from quorate.adts.plain_class import PlainClass
from quorate.adts.walk import Difference, Step, difference, walk


class Lamp:
    def __init__(self) -> None:
        self.state = "off"

    def turn(self, state: str) -> str:
        before, self.state = self.state, state
        return before

    def look(self) -> str:
        return self.state


def test_every_operation_is_done_in_every_state() -> None:
    for is_other in (False, True):
        steps = list(walk(PlainClass(Lamp), is_other=is_other))
        assert steps[0] == Step("", "Lamp()", "", '{"state":"off"}')
        assert {(step.before, step.call) for step in steps[1:]} == {
            (f'{{"state":"{state}"}}', call)
            for state in ("off", "a", "b")
            for call in ("turn(a)", "turn(b)", "look()")
        }
        assert len(steps) == 10
    assert len(list(walk(PlainClass(Lamp), steps_max=5))) == 5


def test_walks_in_other_orders_agree_unless_something_else_decides() -> None:
    found = PlainClass(Lamp)
    assert difference(list(walk(found)), list(walk(found, is_other=True))) is None


def hidden() -> type:
    """A class that counts its calls elsewhere."""
    calls = count()

    class Hidden:
        def op(self) -> int:
            return next(calls)

    return Hidden


class Ages:
    ages = count()

    def __init__(self) -> None:
        self.age = next(self.ages)

    def op(self) -> None:
        """Nothing."""


def test_what_is_kept_outside_of_the_state_is_found() -> None:
    here, there = (list(walk(PlainClass(hidden()), is_other=is_other)) for is_other in (False, True))
    assert str(difference(here, there)) == "op(): gave Ok(0) in one process, Ok(1) in another"


def test_an_object_that_begins_otherwise_is_told() -> None:
    found = difference(list(walk(PlainClass(Ages))), list(walk(PlainClass(Ages))))
    assert str(found) == 'Ages(): led to {"age":0} in one process, to {"age":1} in another'


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (Step("B", "c()", "Ok(2)", "B"), "c(), after b(): gave Ok(1) in one process, Ok(2) in another"),
        (Step("B", "c()", "Ok(1)", "A"), "c(), after b(): led to B in one process, to A in another"),
    ],
)
def test_the_first_step_that_differs_is_told_with_those_that_lead_to_it(there: Step, words: str) -> None:
    begun = [Step("", "X()", "", "A"), Step("A", "b()", "Ok()", "B")]
    here = Step("B", "c()", "Ok(1)", "B")
    found = difference([*begun, here], [*begun, there])
    assert found == Difference(("b()",), here, there)
    assert str(found) == words
    assert difference([*begun, here], [*begun, there._replace(call="d()")]) is None
