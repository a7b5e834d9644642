"""Objects of one's own types: a class whose methods are the operations, called on live replicas.

Owns what a class is called in a cluster, and the step from a method to an operation and back. Must not know how operations run.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from ...adts.log import Value
from ...adts.plain_class import BadClass, PlainClass, arguments_text, written
from ...adts.specification import Invocation, Response
from ...api_specs.cluster import ClusterDocument
from ...api_specs.values import check_value
from ..errors import BadInput
from ..protocol.core.values import Invoke
from .calls import Call, Told, checked_key, full_name, single

Result = TypeVar("Result")
CLASSES_CACHED: Final = 256


class OwnType:
    """A class, as a cluster knows it. Raises BadInput where it is no data type, or none of the cluster's."""

    def __init__(self, document: ClusterDocument, found: type, type_name: str | None) -> None:
        if not isinstance(found, type):
            raise BadInput(
                f'{found!r} is no class: name the class of the object, as client.object(Cart, "ann")'
            )
        try:
            self.type: Final = _read(found)
        except BadClass as error:
            raise BadInput(str(error)) from None
        self.name: Final = type_name or _named(document.own_types, found)
        code = document.own_types.get(self.name)
        if code is None:
            known = ", ".join(document.own_types) or "none"
            raise BadInput(f"the cluster has no type {self.name!r}: its document's [types] name {known}")
        self._limits: Final = document.limits
        if code.partition(":")[2] != found.__name__:
            raise BadInput(f"the cluster's type {self.name} is {code}, and not {found.__name__}")

    def call(
        self,
        name: str,
        invocation: Invocation,
        idempotency_key: str | None,
        result: Callable[[Response], Result],
    ) -> Call[Result]:
        """The call of an operation on the object of that name; `result` makes of the response what its caller gets."""
        full = full_name(self.name, name)
        args = Value(arguments_text(invocation))
        if (wrong := check_value(args, self._limits)) is not None:
            raise BadInput(f"{invocation.operation}: the arguments: {wrong}")
        operation = Invoke(full, self.type, invocation, checked_key(idempotency_key))
        return single(Told(invocation.operation, full, value=args), operation, result, _result)


@lru_cache(CLASSES_CACHED)
def _read(found: type) -> PlainClass:
    """To read a class takes longer than a call of it."""
    return PlainClass(found)


def _named(types: Mapping[str, str], found: type) -> str:
    """The one name that the cluster gives to a class of this name; else that of the class, in small letters."""
    names = [name for name, code in types.items() if code.partition(":")[2] == found.__name__]
    return names[0] if len(names) == 1 else found.__name__.lower()


def _result(response: Response) -> Sequence[Value]:
    return [Value(written(response))]


class AsyncObject:
    """An object of one's own type: each operation of the class is a method, with the same arguments, results and exceptions."""

    __slots__ = ("_deadline_s", "_key", "_name", "_of", "_perform")

    def __init__(
        self,
        perform: Callable[[Call[Any], float | None], Coroutine[Any, Any, Any]],
        of: OwnType,
        name: str,
        deadline_s: float | None,
        idempotency_key: str | None,
    ) -> None:
        full_name(of.name, name)
        self._perform: Final = perform
        self._of: Final = of
        self._name: Final = name
        self._deadline_s: Final = deadline_s
        self._key: Final = idempotency_key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name!r} of type {self._of.name!r}>"

    def __getattr__(self, operation: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        _check_operation(self._of.type, operation)

        async def call(*args: Any, **named: Any) -> Any:
            return await self._perform(self._call(operation, args, named), self._deadline_s)

        return call

    def _call(self, operation: str, args: Sequence[Any], named: Mapping[str, Any]) -> Call[Any]:
        try:
            invocation = self._of.type.call(operation, *args, **named)
        except BadClass as error:
            raise BadInput(str(error)) from None
        return self._of.call(self._name, invocation, self._key, self._of.type.answer)


class Object(AsyncObject):
    """The same for callers that block."""

    __slots__ = ()

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        _check_operation(self._of.type, operation)
        return lambda *args, **named: self._perform(self._call(operation, args, named), self._deadline_s)


def _check_operation(found: PlainClass, operation: str) -> None:
    if operation not in found.arguments:
        raise AttributeError(
            f"{found.name} has no operation {operation!r}: it has {', '.join(found.arguments)}; attributes are the replicas' state"
        )
