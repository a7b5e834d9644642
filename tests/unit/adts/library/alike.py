"""Whether a bundled class is a data type of the catalogue, under other names."""

from collections.abc import Collection, Mapping
from itertools import product
from typing import Any, Final

from quorate.adts.plain_class import PlainClass, frozen, thawed
from quorate.adts.specification import Invocation, SerialSpecification

CALLS_MAX: Final = 4


def assert_alike(
    found: type,
    specified: SerialSpecification,
    names: Mapping[str, str],
    *,
    outcomes: Mapping[str, str] | None = None,
    results_of: Collection[str] | None = None,
) -> None:
    """Any few calls end alike, with the arguments of the catalogue. `outcomes` has other names for some ends; of operations that
    `results_of` names the results count (all, where it is left out)."""
    plain = PlainClass(found)
    calls = [
        (operation, args)
        for operation, name in names.items()
        for args in product(*specified.arguments[name].values())
    ]
    told = dict(outcomes or {})
    for number in range(1, CALLS_MAX + 1):
        for history in product(calls, repeat=number) if len(calls) ** number < 20_000 else ():
            state, wanted_state = plain.initial(), specified.initial()
            for operation, args in history:
                state, response = plain.step(state, Invocation(operation, tuple(map(frozen, args))))
                wanted_state, wanted = specified.step(wanted_state, Invocation(names[operation], args))
                assert told.get(response.condition, response.condition) == wanted.condition, history
                if wanted.results and (results_of is None or operation in results_of):
                    shown: list[Any] = [thawed(each) for each in response.results]
                    assert shown == list(wanted.results), history
