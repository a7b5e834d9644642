"""The forms that type hints give to bodies and answers: types of the framework, which checks bodies, and describes both in the OpenAPI
document.

Owns one rule: a form says what `quorate.adts.hints` checks a value against, part by part. What takes anything there is anything here; so
bounds of `msgspec.Meta`, which are not looked at there, are none here. Its titles and descriptions are told.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from msgspec import Meta
from pydantic import Field, GetPydanticSchema

# In Python 3.11 the framework takes no other.
from typing_extensions import TypedDict

from ...adts.hints import is_json
from .object_models import Anything, Body

_UNIONS: Final = (Union, UnionType)
_new_typed_dict: Final[Any] = TypedDict


class Forms:
    """The forms of one type's hints. `prefix` stands before the names of its TypedDicts in the document."""

    def __init__(self, prefix: str) -> None:
        self._prefix: Final = prefix
        self._made: Final = dict[Any, Any]()

    def of(self, hint: Any) -> Any:
        """What a value of the hint may be."""
        origin, parts = get_origin(hint) or hint, get_args(hint)
        if origin is Annotated:
            return _described(self.of(parts[0]), parts[1:])
        if origin in (Required, NotRequired):
            return self.of(*parts)
        if origin in _UNIONS:
            forms = tuple(map(self.of, parts))
            return Anything if Anything in forms else reduce(or_, forms)
        if origin is list:
            return GenericAlias(list, (self._item(parts),))
        if origin is dict and parts[:1] in ((), (str,)):
            return GenericAlias(dict, (str, self._item(parts)))
        if is_typeddict(origin):
            # Made when the framework asks for it, for it may hold others of its own kind.
            made = GetPydanticSchema(lambda _, handler: handler.generate_schema(self._typed_dict(origin)))
            return Annotated[Any, made]
        return hint if is_json(hint) else Anything

    def _item(self, parts: Sequence[Any]) -> Any:
        return self.of(parts[-1]) if parts else Anything

    def _typed_dict(self, found: Any) -> Any:
        """One with the same items and no others; for the same the same, by which the framework knows it again."""
        if found not in self._made:
            hints = _items(found)
            items = {name: self.of(hints.get(name, Any)) for name in found.__annotations__}
            optional = {name: NotRequired[items[name]] for name in items.keys() - found.__required_keys__}
            made = _new_typed_dict(self._prefix + found.__name__, items | optional)
            made.__doc__, made.__module__ = found.__doc__, found.__module__
            made.__pydantic_config__ = Body.model_config
            self._made[found] = made
        return self._made[found]


def _items(found: Any) -> Mapping[str, Any]:
    """The hints of a TypedDict's items; none where they cannot be read."""
    try:
        return get_type_hints(found, include_extras=True)
    except Exception:  # noqa: BLE001 - the border to the user's code: what its names mean is not known here
        return {}


def _described(form: Any, said: Sequence[Any]) -> Any:
    """The form with what is said of it."""
    told = [{"title": each.title, "description": each.description} for each in said if isinstance(each, Meta)]
    words: dict[str, Any] = {name: word for each in told for name, word in each.items() if word is not None}
    return Annotated[form, Field(**words)] if words else form
