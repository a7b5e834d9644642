"""The border to a file of the user's own."""

import asyncio

import pytest

from quorate.adts.plain_class import PlainClass
from quorate.adts.specification import Invocation
from quorate.cli.failure import Usage
from quorate.cli.quorums.data_types import users_code


class Own:
    def end(self) -> None:
        raise KeyboardInterrupt


def test_ctrl_c_while_a_method_runs_is_no_mistake_of_the_class() -> None:
    found = PlainClass(Own)
    with pytest.raises(KeyboardInterrupt), users_code("own.py fails"):
        found.step(found.initial(), Invocation("end"))
    with pytest.raises(KeyboardInterrupt), users_code("own.py fails"):
        raise KeyboardInterrupt


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, StopIteration, SystemExit])
def test_whatever_else_the_code_raises_is_told(error: type[BaseException]) -> None:
    with pytest.raises(Usage, match=rf"own.py fails: {error.__name__}: \\ud800"), users_code("own.py fails"):
        raise error("\ud800")
