"""A replicated dictionary with the methods of `dict`.

Owns the step from `collections.abc.MutableMapping` to the dictionary's operations. Every call goes to the replicas: nothing
is remembered here, so that two processes with the same name see the same mapping.
"""

from collections import abc
from collections.abc import ItemsView, Iterator, KeysView, MutableMapping, ValuesView
from contextlib import suppress
from typing import Any, Final, Self

from ...api_specs.values import from_value, to_value
from ..api.blocking import Client
from ..api.calls import lookup
from ..errors import BadInput
from .standard_parts import check_atomic, checked_client, refuse_copy

_NO_DEFAULT: Final = object()


class Mapping(MutableMapping[str, Any]):
    """The dictionary `name` of a cluster as a mapping: text keys, values of anything JSON (a tuple comes back as a list).

    A key is any text that `AsyncDictionary` takes: not an empty or a long one. No other one is ever there: who looks for it
    finds nothing, and who sets it is told by BadInput. Integers have 64 bits: larger ones are refused.

    Each of `m[key]`, `m[key] = value`, `key in m`, `len(m)`, `setdefault`, and a walk over all keys, values or items is
    linearizable; a walk and a comparison see one moment. `del`, `pop` and `popitem` take a value by compare-and-delete, so
    that one of several callers gets it; but a value of None, which the replicas cannot tell from an absent key in a comparison,
    may be taken by two. `update` and `clear` go key by key. What comes out of it is a copy: to change a list that is a
    value, put it back. A walk goes in the order of `items()`, and `popitem` takes the first of them; `|` makes a plain dict.

    Raises KeyError as a dict does, BadInput (a ValueError) for a key or value outside the rules, and the errors of
    `quorate.client_sdk.errors` when no quorum answers.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client: Final = checked_client(client, Client, "connect")
        self._dictionary: Final = client.dictionary(name)
        check_atomic(client.document, f"dictionary/{name}")

    @property
    def name(self) -> str:
        """The dictionary's name."""
        return self._dictionary.name

    def __repr__(self) -> str:
        return f"<Mapping {self.name!r} of {self._client!r}>"

    def __getitem__(self, key: str) -> Any:
        try:
            call = lookup(self.name, _text(key))
        except BadInput as error:
            raise KeyError(key) from error
        found = self._client.perform(call)
        if not found:
            raise KeyError(key)
        return found[0]

    def __setitem__(self, key: str, value: Any) -> None:
        self._dictionary.put(_text(key), value)

    def __delitem__(self, key: str) -> None:
        self._take(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.snapshot())

    def __len__(self) -> int:
        return self._dictionary.size()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Mapping):
            return self.snapshot() == other.snapshot()
        return self.snapshot() == other

    __reduce__ = refuse_copy
    __hash__ = None  # type: ignore[assignment]  # as of a dict: it compares by what it holds

    def keys(self) -> KeysView[str]:
        """The keys as they were at the moment of the call; unlike a dict's, the view does not follow later changes."""
        return self.snapshot().keys()

    def values(self) -> ValuesView[Any]:
        """The values as they were at the moment of the call."""
        return self.snapshot().values()

    def items(self) -> ItemsView[str, Any]:
        """Keys and values as they were at the moment of the call."""
        return self.snapshot().items()

    def pop(self, key: str, default: Any = _NO_DEFAULT) -> Any:
        """Take the value of the key; `default`, if there is one, where it is absent."""
        try:
            return self._take(key)
        except KeyError:
            if default is _NO_DEFAULT:
                raise
            return default

    def popitem(self) -> tuple[str, Any]:
        """Take the first key, in order, and its value; KeyError when there is none."""
        while found := self.snapshot():
            for key in found:
                with suppress(KeyError):  # Somebody else took this one meanwhile.
                    return key, self._take(key)
        raise KeyError("popitem(): the mapping is empty")

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of the key, which is set to `default` if absent: one decision, so that only one caller sets it.

        What it returns is a copy as the replicas have it, also of `default`: a list for a tuple.
        """
        while not self._dictionary.put_if_absent(_text(key), default):
            if found := self._client.perform(lookup(self.name, key)):
                return found[0]
        return from_value(to_value(default, self._client.document.limits))

    def clear(self) -> None:
        """Delete all keys that are there now."""
        for key in self.snapshot():
            self._dictionary.delete(key)

    def copy(self) -> dict[str, Any]:
        """The same as `snapshot`: a copy on the replicas would need a name."""
        return self.snapshot()

    def __or__(self, other: object) -> dict[str, Any]:
        """A plain dict of both; what `other` has wins."""
        return self.snapshot() | dict(other) if isinstance(other, abc.Mapping) else NotImplemented

    def __ror__(self, other: object) -> dict[str, Any]:
        """A plain dict of both; what is here wins."""
        return dict(other) | self.snapshot() if isinstance(other, abc.Mapping) else NotImplemented

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc]  # `|` makes a plain dict, `|=` does not
        """`update`."""
        self.update(other)
        return self

    def snapshot(self) -> dict[str, Any]:
        """All keys and values as they were at one moment, as a dict of one's own."""
        return self._dictionary.items()

    def _take(self, key: str) -> Any:
        """The value of the key, which is deleted: by a decision, so that nobody else gets it."""
        while True:
            value = self[key]
            if value is None:
                self._dictionary.delete(key)
                return None
            if self._dictionary.compare_and_delete(key, value):
                return value


def _text(key: object) -> str:
    if not isinstance(key, str):
        raise BadInput(
            f"the key {key!r} is of type {type(key).__name__}: keys are text here, so write {str(key)!r}"
        )
    return key
