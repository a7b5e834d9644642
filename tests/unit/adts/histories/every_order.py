"""The slow, obvious answer: every order of every choice of unknown calls, played on the specifications. And random histories."""

import random
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from typing import Any

from quorate.adts.histories.calls import NEVER, Call
from quorate.adts.histories.orders import Model
from quorate.adts.legality import invocations_of
from quorate.adts.specification import SerialSpecification, outcomes_of


def in_some_order(
    specifications: Mapping[str, SerialSpecification], calls: Sequence[Call], model: Model
) -> bool:
    """Whether there is a right order."""
    known = [call for call in calls if call.is_known]
    unknown = [call for call in calls if not call.is_known]
    return any(
        is_right(specifications, order, model)
        for size in range(len(unknown) + 1)
        for chosen in combinations(unknown, size)
        for order in permutations([*known, *chosen])
    )


def is_right(specifications: Mapping[str, SerialSpecification], order: Sequence[Call], model: Model) -> bool:
    """Whether an order respects the model, and the specifications explain it."""
    return respects(order, model) and plays(specifications, order)


def respects(order: Sequence[Call], model: Model) -> bool:
    """Whether nothing comes before what it had to come after."""
    return not any(
        second.returned < first.invoked
        and (model is Model.LINEARIZABLE or (model is Model.SEQUENTIAL and first.process == second.process))
        for first, second in combinations(order, 2)
    )


def plays(specifications: Mapping[str, SerialSpecification], order: Sequence[Call]) -> bool:
    """Whether the objects, one after the other, may answer like that."""
    reached: set[tuple[tuple[str, Any], ...]] = {
        tuple((name, each.initial()) for name, each in specifications.items())
    }
    for call in order:
        reached = {
            tuple((name, after if name == call.object else other) for name, other in states)
            for states in reached
            for after, response in outcomes_of(
                specifications[call.object], dict(states)[call.object], call.invocation
            )
            if not call.is_known or response in call.answers
        }
    return bool(reached)


def random_calls(
    specifications: Mapping[str, SerialSpecification],
    rng: random.Random,
    calls_max: int = 6,
    *,
    distinct: bool = False,
) -> list[Call]:
    """Overlapping calls: played in some order on the specifications, then perhaps damaged. `distinct`: no text is put in twice."""
    states: dict[str, Any] = {name: each.initial() for name, each in specifications.items()}
    overlap = rng.choice([3, 12, 25])
    seen = {name: [state] for name, state in states.items()}
    calls = []
    for number in range(rng.randint(2, calls_max)):
        name = rng.choice(list(specifications))
        invocation = rng.choice(invocations_of(specifications[name]))
        if distinct and invocation.args and isinstance(invocation.args[-1], str):
            invocation = invocation._replace(args=(*invocation.args[:-1], f"v{number}"))
        outcomes = list(outcomes_of(specifications[name], states[name], invocation))
        is_lost = rng.random() < 0.2
        answers: tuple[Any, ...] = ()
        if outcomes and not (is_lost and rng.random() < 0.5):
            states[name], response = rng.choice(outcomes)
            seen[name].append(states[name])
            answers = (response,)
        begin, end = 10 * number - rng.randint(0, overlap), 10 * number + rng.randint(1, overlap)
        process = rng.choice("ab")
        if is_lost or not answers:
            calls.append(Call(process, name, invocation, begin))
        else:
            calls.append(Call(process, name, invocation, begin, end, answers))
    for place, call in enumerate(calls):
        if call.is_known and rng.random() < 0.2:
            state = rng.choice(seen[call.object])
            if outcomes := list(outcomes_of(specifications[call.object], state, call.invocation)):
                calls[place] = call._replace(answers=(rng.choice(outcomes)[1],))
    assert all(call.returned == NEVER or call.answers for call in calls)
    return calls
