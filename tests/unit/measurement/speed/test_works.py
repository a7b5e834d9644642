"""How the steps of a work follow each other; the works themselves run in tests/unit/cli/bench/test_command.py."""

import itertools
from functools import partial
from typing import Any

import pytest

from quorate.client_sdk.errors import Unavailable
from quorate.measurement.speed import works
from quorate.measurement.speed.works import Bounds, Ground, Step, Work, timed


async def test_what_failed_is_counted_and_nobody_takes_more_than_was_brought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = list[str]()

    async def bring(number: int) -> None:
        begun.append("bring")
        if len(begun) > 2 and number % 2:
            raise Unavailable("no quorum", definite=True)

    async def take(_: int) -> None:
        begun.append("take")

    steps = (Step("bring", bring, warm_up=1), Step("take", take, takes=True, warm_up=1))
    made: Any = works.WORKS
    monkeypatch.setitem(made, "made", Work(lambda _: steps))
    ground: Any = Ground
    begin = partial(begun.append, "begins")
    found = [each async for each in timed(ground, ["made"], [1, 2], Bounds(600.0, 10), begins=begin)]
    told = [(each.operation, each.in_flight, each.count, each.failed) for each in found]
    assert told == [
        ("bring", 1, 5, {"Unavailable": 5}),
        ("take", 1, 5, {}),
        ("bring", 2, 5, {"Unavailable": 5}),
        ("take", 2, 5, {}),
    ]
    assert [name for name, _ in itertools.groupby(begun)] == [
        "bring",
        "take",
        *["begins", "bring", "begins", "take"] * 2,
    ]


async def test_an_error_of_the_warm_up_ends_it_unless_there_is_a_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(_: int) -> None:
        raise Unavailable("no quorum", definite=True)

    async def succeed(_: int) -> None:
        pass

    made: Any = works.WORKS
    monkeypatch.setitem(made, "bad", Work(lambda _: [Step("fail", fail)]))
    monkeypatch.setitem(made, "good", Work(lambda _: [Step("succeed", succeed)]))
    ground: Any = Ground
    with pytest.raises(Unavailable):
        _ = [each async for each in timed(ground, ["bad"], [1], Bounds(600.0, 10))]
    found = [each async for each in timed(ground, ["good", "bad"], [1], Bounds(600.0, 10))]
    assert [(each.count, each.failed) for each in found] == [(10, {}), (0, {"Unavailable": 10})]
