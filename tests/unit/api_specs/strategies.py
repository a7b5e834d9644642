"""Hypothesis strategies for message types, made from their annotations, so that a new field is covered at once."""

import types
from functools import cache
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from quorate.adts.log import Value
from quorate.timestamps.ballot import Ballot, make_ballot
from quorate.timestamps.timestamp import Timestamp, make
from tests.unit.timestamps.test_ballot import BALLOTS
from tests.unit.timestamps.test_timestamp import PARTS

_TIMESTAMPS = PARTS.map(lambda parts: make(*parts))
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Timestamp: _TIMESTAMPS,
    Ballot: BALLOTS.map(lambda parts: make_ballot(make(*parts[0]), parts[1])),
    Value: st.sampled_from(["null", "0", '"x"', '{"a":[1,2]}', '"é\\u0000"']),
    str: st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    int: st.integers(-(1 << 62), 1 << 62),
    bool: st.booleans(),
    type(None): st.none(),
    UnsetType: st.just(UNSET),
}


@cache
def values_of(annotation: Any) -> st.SearchStrategy[Any]:
    """All values of an annotated type, small ones."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, NewType):
        return values_of(annotation.__supertype__)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        hints = get_type_hints(annotation)
        fields = {name: values_of(hints[name]) for name in annotation.__struct_fields__}
        return st.builds(annotation, **fields)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(each) for each in args])
    if origin is tuple and args[-1] is ...:
        return st.lists(values_of(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, args))
    raise TypeError(f"no strategy for {annotation!r}")
