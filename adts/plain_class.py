"""A plain Python class as a data type: its attributes are the state, its methods the operations. Pure, but for the user's code.

Owns what such a class may be, and the way between its instances and values that can be compared and stored.

A state is the JSON text of an instance's attributes, keys in order, so that what an object means never depends on how it came
about. A method that returns ends `Ok`, with what it returned; one that raises an exception of the user's own ends with the name
of that exception, and has changed nothing. Every step starts from a text: what a method keeps elsewhere is lost at once, here
and not on some replica.
"""

import inspect
import json
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from .specification import EventClass, Invocation, Response

EXAMPLES: Final = "examples"
"""The attribute of a class with values for a search to try, by the name of the argument."""

_BY_HINT: Final[Mapping[Any, tuple[Any, ...]]] = {
    str: ("a", "b"),
    int: (1, 2),
    bool: (False, True),
    float: (0.5, 1.5),
    None: (None,),
    type(None): (None,),
}
"""Two values of a kind are enough where an operation only compares them."""
_SCALARS: Final = (str, int, float, bool, type(None))
_OK: Final = "Ok"


class BadClass(ValueError):
    """A class that is no data type, or does what none may do. The message says what, where, and the remedy."""


@dataclass(frozen=True, slots=True)
class Json:
    """A list or an object among arguments and results: its text, for those must be hashable."""

    text: str

    def __str__(self) -> str:
        return self.text


class PlainClass:
    """The serial specification that `found` stands for.

    Raises BadClass where it is none; so does `step`, where a method does what no operation may do.
    """

    def __init__(self, found: type) -> None:
        self.name: Final = found.__name__
        self._class: Final = found
        self._methods: Final = dict(_methods(found))
        if not self._methods:
            raise BadClass(f"{self.name} has no public method: each operation is one")
        examples = _examples(found)
        self.arguments: Final[Mapping[str, Mapping[str, tuple[Any, ...]]]] = {
            operation: dict(_arguments(operation, method, examples))
            for operation, method in self._methods.items()
        }
        _check_names(examples, self.arguments)
        self._silent: Final = {
            name for name, method in self._methods.items() if _hints(method).get("return", ...) is None
        }
        """Operations whose hints say that they return nothing."""
        self.results: Final[Mapping[EventClass, tuple[str, ...]]] = {
            f"{operation}/{_OK}": ("result",) for operation in self._methods if operation not in self._silent
        }
        self._initial: Final = self._first_state()

    def initial(self) -> Hashable:
        """See SerialSpecification."""
        return self._initial

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """See SerialSpecification."""
        operation, args = invocation
        place = f"{invocation} in the state {state}"
        instance: Any = object.__new__(self._class)
        vars(instance).update(json.loads(state))
        try:
            result = self._methods[operation](instance, *(thawed(frozen(each)) for each in args))
        except Exception as error:  # noqa: BLE001 - the border to the user's code: what it raises is an outcome, or told
            return state, Response(_outcome(place, error))
        if operation in self._silent:
            if result is not None:
                raise BadClass(f"{place}: returned {result!r}, and its hint says None: change one of them")
            return self._text(instance, place), Response(_OK)
        _check_json(result, f"{place}: its result")
        # First the text of the state: a result may be a part of it.
        return self._text(instance, place), Response(_OK, (frozen(result),))

    def _first_state(self) -> str:
        try:
            instance = self._class()
        except Exception as error:
            raise BadClass(
                f"{self.name}() raised {type(error).__name__}: {error}: a new object is made without arguments"
            ) from error
        return self._text(instance, f"{self.name}()")

    def _text(self, instance: Any, place: str) -> str:
        if not hasattr(instance, "__dict__"):
            raise BadClass(f"{self.name} has __slots__: the state is read from __dict__, so leave them out")
        for name, value in vars(instance).items():
            _check_json(value, f"{place}: the attribute {name}")
        return _dumped(vars(instance))


def is_plain(found: object) -> bool:
    """Whether it is a class whose methods are the operations, and not one that has `step`."""
    return isinstance(found, type) and not hasattr(found, "step")


def frozen(value: Any) -> Hashable:
    """A JSON value as arguments and results hold it."""
    return value if isinstance(value, (*_SCALARS, Json)) else Json(_dumped(value))


def thawed(value: Any) -> Any:
    """The JSON value that `frozen` was given, a copy of one's own."""
    return json.loads(value.text) if isinstance(value, Json) else value


def _dumped(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _methods(found: type) -> Iterator[tuple[str, FunctionType]]:
    """The operations, as the file has them; those of base classes first."""
    names = dict.fromkeys(name for base in reversed(found.__mro__) for name in vars(base))
    for name in names:
        member = inspect.getattr_static(found, name)
        if name.startswith("__") or name == EXAMPLES:
            continue
        if isinstance(member, (list, dict, set)):
            raise BadClass(
                f"{found.__name__}.{name} belongs to the class, so that all objects would share it: set self.{name} in __init__"
            )
        if isinstance(member, FunctionType) and not name.startswith("_"):
            if (
                inspect.iscoroutinefunction(member)
                or inspect.isgeneratorfunction(member)
                or inspect.isasyncgenfunction(member)
            ):
                raise BadClass(
                    f"{found.__name__}.{name} is async or yields: an operation is a plain method, which returns at once"
                )
            yield name, member


def _examples(found: type) -> Mapping[str, tuple[Any, ...]]:
    given = getattr(found, EXAMPLES, {})
    if not isinstance(given, Mapping):
        raise BadClass(
            f"{found.__name__}.{EXAMPLES} is no dictionary: write the values to try by argument, as {{'count': (1, 3)}}"
        )
    examples = {}
    for name, values in given.items():
        if not isinstance(values, (tuple, list)) or not values:
            raise BadClass(f"{found.__name__}.{EXAMPLES}[{name!r}] is no list of values to try, as (1, 3)")
        for value in values:
            _check_json(value, f"{found.__name__}.{EXAMPLES}[{name!r}]")
        examples[name] = tuple(map(frozen, values))
    return examples


def _check_names(examples: Mapping[str, Any], arguments: Mapping[str, Mapping[str, Any]]) -> None:
    known = {name for names in arguments.values() for name in names}
    for name in examples:
        if name not in known:
            raise BadClass(
                f"{EXAMPLES} names {name!r}, which is no argument: these are {', '.join(sorted(known))}"
            )


def _arguments(
    operation: str, method: FunctionType, examples: Mapping[str, tuple[Any, ...]]
) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each argument's name, and the values to try."""
    parameters = list(inspect.signature(method).parameters.values())
    if not parameters:
        raise BadClass(f"{operation} has no argument self")
    hints = _hints(method)
    for parameter in parameters[1:]:
        name = parameter.name
        if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            raise BadClass(
                f"{operation}({parameter}): an operation's arguments have names, and are of a fixed number"
            )
        values = examples.get(name) or tuple(_by_hint(hints.get(name, inspect.Parameter.empty)))
        if not values:
            raise BadClass(
                f"{operation}({name}): nothing is known to try for it: give it a hint of str, int, float, bool or Literal, "
                f"or the class {EXAMPLES} = {{{name!r}: (…, …)}}"
            )
        if parameter.default is not inspect.Parameter.empty and name not in examples:
            _check_json(parameter.default, f"{operation}({parameter}): the default")
            values = tuple(dict.fromkeys((frozen(parameter.default), *values)))
        yield name, values


def _by_hint(hint: Any) -> Iterable[Any]:
    if get_origin(hint) is Literal:
        return get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return dict.fromkeys(value for each in get_args(hint) for value in _by_hint(each))
    return _BY_HINT.get(hint, ()) if isinstance(hint, Hashable) else ()


def _hints(method: FunctionType) -> Mapping[str, Any]:
    try:
        hints = get_type_hints(method)
    except Exception as error:
        raise BadClass(
            f"{method.__qualname__}: a hint cannot be read: {type(error).__name__}: {error}"
        ) from error
    return {name: None if hint is type(None) else hint for name, hint in hints.items()}


def _outcome(place: str, error: Exception) -> str:
    """The outcome that an exception stands for: its name. Those of Python itself are mistakes in the code."""
    found = type(error)
    if found.__module__.partition(".")[0] in sys.stdlib_module_names:
        raise BadClass(
            f"{place}: raised {found.__name__}: {error}: for an outcome, raise an exception that you define, as class NotThere(Exception)"
        ) from error
    if error.args or found.__name__ == _OK:
        raise BadClass(
            f"{place}: raised {error!r}: an outcome is the exception's name alone, and not {_OK}, so raise it without arguments"
        ) from error
    return found.__name__


def _check_json(value: Any, place: str) -> None:
    """What JSON does not give back as it was is told: an object would come back as another one."""
    match value:
        case bool() | int() | str() | None:
            is_same = type(value) in _SCALARS
        case float():
            is_same = type(value) is float and abs(value) < float("inf")
        case list():
            is_same = type(value) is list
            for number, each in enumerate(value):
                _check_json(each, f"{place}[{number}]")
        case dict():
            is_same = type(value) is dict
            for name, each in value.items():
                if type(name) is not str:
                    raise BadClass(
                        f"{place} has the key {name!r}: JSON has texts alone, so write str({name!r})"
                    )
                _check_json(each, f"{place}[{name!r}]")
        case _:
            is_same = False
    if not is_same:
        instead = ", so keep a list" if isinstance(value, (tuple, set, frozenset)) else ""
        raise BadClass(
            f"{place} is {value!r}, of type {type(value).__name__}: JSON does not give that back as it is{instead}"
        )
