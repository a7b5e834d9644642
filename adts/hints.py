"""Type hints that say what JSON has: which they are, and which values fit them. Pure."""

from collections.abc import Collection, Mapping
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

_SCALARS: Final = (str, int, float, bool, NoneType)
FORMS_CACHED: Final = 256


def is_json(hint: Any) -> bool:
    """Whether it is a text, a number, a boolean, None, some literals, a list or a dictionary with texts for keys, or one of several."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return all(type(each) in _SCALARS for each in parts)
    if origin in (list, Union, UnionType) or (origin is dict and parts[0] is str):
        return all(map(is_json, parts))
    return hint is None or hint in _SCALARS


def fits(value: Any, hint: Any) -> bool:
    """Whether the value is what such a hint says, or a TypedDict; anything fits another one, as an item, too. A whole number is a float, too,
    and no number a boolean."""
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in parts) or not is_json(hint)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in parts)
    if origin is list:
        return type(value) is list and _all_fit(value, *parts)
    if origin is dict and parts[:1] in ((), (str,)):
        return type(value) is dict and _all_fit(value.values(), *parts[1:])
    if is_typeddict(origin):
        return type(value) is dict and _has_form(value, origin)
    wanted = NoneType if hint is None else hint
    return type(value) is wanted or (wanted is float and type(value) is int) or wanted not in _SCALARS


def _has_form(value: Mapping[str, Any], found: Any) -> bool:
    """Whether it has the names of a TypedDict, no other ones, and items that fit."""
    if not found.__required_keys__ <= value.keys() <= found.__annotations__.keys():
        return False
    hints = _items(found)
    return all(fits(each, hints.get(name, Any)) for name, each in value.items())


@lru_cache(FORMS_CACHED)
def _items(found: Any) -> Mapping[str, Any]:
    """The hints of a TypedDict's items; none where they cannot be read."""
    try:
        return get_type_hints(found)
    except Exception:  # noqa: BLE001 - the border to the user's code: what its names mean is not known here
        return {}


def _all_fit(values: Collection[Any], hint: Any = Any) -> bool:
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
