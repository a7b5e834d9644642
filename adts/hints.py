"""Type hints that say what JSON has: which they are, and which values fit them. Pure."""

from collections.abc import Collection
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

_SCALARS: Final = (str, int, float, bool, NoneType)


def is_json(hint: Any) -> bool:
    """Whether it is a text, a number, a boolean, None, some literals, a list or a dictionary with texts for keys, or one of several."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(type(each) in _SCALARS for each in parts)
    if origin in (list, Union, UnionType) or (origin is dict and parts[0] is str):
        return all(map(is_json, parts))
    return hint is None or hint in _SCALARS


def fits(value: Any, hint: Any) -> bool:
    """Whether the value is what such a hint says; anything fits another one. A whole number is a float, too, and no number a boolean."""
    if not is_json(hint):
        return True
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in parts)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in parts)
    if origin is list:
        return type(value) is list and _all_fit(value, parts[0])
    if origin is dict:
        return type(value) is dict and _all_fit(value.values(), parts[1])
    wanted = NoneType if hint is None else hint
    return type(value) is wanted or (wanted is float and type(value) is int)


def _all_fit(values: Collection[Any], hint: Any) -> bool:
    """There may be half a million: those of one kind are looked at by kind."""
    if hint in _SCALARS:
        return set(map(type, values)) <= ({float, int} if hint is float else {hint})
    return all(fits(each, hint) for each in values)


def shown(hint: Any) -> str:
    """A hint as it is written."""
    return (
        hint.__name__
        if isinstance(hint, type) and get_origin(hint) is None
        else str(hint).replace("typing.", "")
    )
