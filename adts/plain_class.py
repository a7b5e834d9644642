"""A plain Python class as a data type: its attributes are the state, its methods the operations. Pure, but for the user's code.

Owns what such a class may be, and the way between its instances and values that can be compared and stored.

A state is the JSON text of an instance's attributes, keys in order, so that what an object means never depends on how it came
about. A method that returns ends `Ok`, with what it returned; one that raises an exception of the user's own ends with the name
of that exception, and has changed nothing. Every step starts from a text: what a method keeps elsewhere is lost at once, here
and not on some replica.
"""

import inspect
import marshal
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import isfinite
from types import FunctionType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from .collector import collector_off
from .hints import fits
from .hints import shown as shown_hint
from .parsing import canonical, parsed
from .specification import EventClass, Invocation, Response
from .users_code import encodable, shown, told

EXAMPLES: Final = "examples"
"""The attribute of a class with values for a search to try, by the name of the argument."""
BLIND: Final = "blind"
"""The attribute of a class that names its blind operations: whatever the state, they return nothing and raise nothing, so that a call is
stored without a look at the state, and runs when somebody looks."""
OBSERVING: Final = "observing"
"""The attribute of a class that names operations which only look: on an object of eventual consistency they read any one replica."""
VERSION: Final = "version"
"""The attribute of a class that says which states it understands; 1 where there is none."""
UPGRADE: Final = "upgrade"
"""The static method of a class that turns a state of an earlier version into one of its own."""

_BY_HINT: Final[Mapping[Any, tuple[Any, ...]]] = {
    str: ("a", "b"),
    int: (1, 2),
    bool: (False, True),
    float: (0.5, 1.5),
    None: (None,),
    type(None): (None,),
}
"""Two values of a kind are enough where an operation only compares them."""
NAME_CHARS_MAX: Final = 64
SHOWN_CHARS_MAX: Final = 80
"""Of states and values, in errors: they may be large, and are not everybody's."""
NESTED_MAX: Final = 200
_WITHOUT_REFERENCES: Final = 2
"""The format of `marshal` that writes what stands twice twice, which is quicker."""
_SCALARS: Final = (str, int, float, bool, type(None))
OK: Final = "Ok"


class BadClass(ValueError):
    """A class that is no data type, or does what none may do. The message says what, where, and the remedy; it can be sent, whatever the
    code put into it."""

    def __init__(self, message: str) -> None:
        super().__init__(encodable(message))


@dataclass(frozen=True, slots=True)
class Json:
    """A list or an object among arguments and results: its text, for those must be hashable."""

    text: str

    def __str__(self) -> str:
        return self.text


class _Stored(msgspec.Struct):
    """How a state is kept."""

    state: msgspec.Raw
    version: int


_ANEW: Final = "`quorate repair --anew` lets it begin with the state of a new one"
_DECODE_STORED: Final = msgspec.json.Decoder(_Stored).decode


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
        self.blind: Final = _blind(found, self._methods, self._silent)
        """Operations whose calls are stored without a look at the state (`BLIND`)."""
        self.observing: Final = _named(found, OBSERVING, self._methods)
        """Operations that may miss changes where objects are of eventual consistency (`OBSERVING`)."""
        for name in self.blind & self.observing:
            raise BadClass(
                f"{self.name}: {BLIND} and {OBSERVING} both name {name}: it changes something or only looks, so name it in one"
            )
        self.results: Final[Mapping[EventClass, tuple[str, ...]]] = {
            f"{operation}/{OK}": ("result",) for operation in self._methods if operation not in self._silent
        }
        self._argument_hints: Final = {name: _hints(method) for name, method in self._methods.items()}
        self._stored_hints: Final = {
            name: tuple(self._argument_hints[name].get(argument, Any) for argument in self.arguments[name])
            for name in self.blind
        }
        """Of the arguments of blind operations, in order."""
        self._version: Final = _version(found)
        self._raised: Final = dict[str, type[BaseException]]()
        self._initial: Final = self._first_state()

    def initial(self) -> Hashable:
        """See SerialSpecification."""
        return self._initial

    def step(self, state: Any, invocation: Invocation) -> tuple[Any, Response]:
        """See SerialSpecification."""
        operation, args = invocation
        method = self._method_of(operation)
        try:
            instance = self._instance(state)
            result = method(instance, *map(thawed, args))
        except BaseException as error:  # noqa: BLE001 - the border to the user's code: an outcome, or told
            outcome = _outcome(_place(invocation, state), error)
            self._raised[outcome] = type(error)
            return state, Response(outcome)
        if operation in self._silent:
            if result is not None:
                returned = _short(shown(result))
                raise BadClass(
                    f"{_place(invocation, state)}: returned {returned}, and its hint says None: change one of them"
                )
            return self._text(instance, lambda: _place(invocation, state), state), Response(OK)
        if type(result) not in _SCALARS:
            result = Json(_json(result, lambda: f"{_place(invocation, state)}: its result"))
        elif not _is_scalar(result):
            _json(result, lambda: f"{_place(invocation, state)}: its result")
        return self._text(instance, lambda: _place(invocation, state), state), Response(OK, (result,))

    def _instance(self, state: str) -> Any:
        instance: Any = object.__new__(self._class)
        vars(instance).update(parsed(state.encode()))
        return instance

    def run(self, stored: str | None, invocation: Invocation) -> tuple[str | None, Response]:
        """As `step`, on a state as it is kept: None for that of a new object, so that one which is as new again can be forgotten. The very text
        where nothing changed."""
        with _border(lambda: str(invocation)), collector_off():
            before = self._initial if stored is None else self._state_in(stored)
            after, response = self.step(before, invocation)
        if after == before:
            return stored, response
        return (
            None if after == self._initial else f'{{"state":{after},"version":{self._version}}}'
        ), response

    def check(self, stored: str | None) -> None:
        """Raises BadClass where the class does not understand a state as it is kept."""
        if stored is not None:
            with _border(lambda: f"the state of a {self.name}"), collector_off():
                self._state_in(stored)

    def _state_in(self, stored: str) -> str:
        try:
            found = _DECODE_STORED(stored)
        except msgspec.MsgspecError as error:
            raise BadClass(f"what the object holds is no state of a {self.name}: {error} ({_ANEW})") from None
        if not bytes(found.state).startswith(b"{"):
            raise BadClass(
                f"what the object holds is no state of a {self.name}: the attributes are {_short(bytes(found.state).decode())} ({_ANEW})"
            )
        if found.version == self._version:
            return bytes(found.state).decode()
        if found.version > self._version:
            raise BadClass(
                f"the object holds a state of version {found.version}, and the {self.name} that runs here is of version {self._version}: give "
                "it the newer class, and restart"
            )
        if (upgrade := getattr(self._class, UPGRADE, None)) is None:
            raise BadClass(
                f"the object holds a state of version {found.version}, and {self.name} is of version {self._version}: give it a static "
                f"method {UPGRADE}(version, state) that returns the state of its own version"
            )
        place = f"{UPGRADE}({found.version}, {_short(bytes(found.state).decode())})"
        try:
            state = upgrade(found.version, parsed(bytes(found.state)))
        except BaseException as error:
            raise BadClass(f"{place}: raised {told(error)}") from error
        if not isinstance(state, dict):
            raise BadClass(
                f"{place}: returned {_short(shown(state))}: a state is a dictionary of the attributes"
            )
        return _json(state, lambda: f"{place}: what it returned")

    def method(self, operation: str) -> FunctionType:
        """The method that an operation is."""
        return self._methods[operation]

    def _method_of(self, operation: str) -> FunctionType:
        method = self._methods.get(operation)
        if method is None:
            raise BadClass(f"{self.name} has no operation {operation!r}: it has {', '.join(self._methods)}")
        return method

    def needs_arguments(self, operation: str) -> bool:
        """Whether it has an argument that cannot be left out."""
        parameters = list(inspect.signature(self._methods[operation]).parameters.values())[1:]
        return any(each.default is inspect.Parameter.empty for each in parameters)

    def call(self, operation: str, /, *args: Any, **named: Any) -> Invocation:
        """The invocation of a call; what it leaves out are defaults. Raises BadClass."""
        with _border(lambda: operation):
            return self._call(operation, args, named)

    def _call(self, operation: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> Invocation:
        method = self._method_of(operation)
        try:
            bound = inspect.signature(method).bind(None, *args, **named)
        except TypeError as error:
            wanted = ", ".join(self.arguments[operation])
            raise BadClass(f"{operation}({wanted}): {error}") from None
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        hints, frozen_ones = self._argument_hints[operation], list[Hashable]()
        for name, value in given.items():
            with collector_off():
                text = _json(value, partial("".join, (operation, ": the argument ", name)))
            frozen_ones.append(value if type(value) in _SCALARS else Json(text))
            if not fits(value, hints.get(name, Any)):
                unfit = f"is {_short(shown(value))}, and its hint says {shown_hint(hints[name])}"
                raise BadClass(f"{operation}: the argument {name} {unfit}")
        return Invocation(operation, tuple(frozen_ones))

    def check_stored(self, text: str) -> None:
        """Raises BadClass unless `text` is a call that a front end may store: of a blind operation, with arguments that `call` takes, and as
        `call_text` writes it. What another text brings to the state may be many times as long: `1e15` is written with all its digits."""
        operation, args = _call_parts(text)
        hints = self._stored_hints.get(operation)
        if hints is None:
            self._method_of(operation)
            raise BadClass(f"{operation} is no blind operation of {self.name}: its calls are not stored")
        # What was read from JSON can be written as JSON. Else `call` says what is wrong, or what it leaves out are defaults.
        if len(args) != len(hints) or not all(map(fits, args, hints)):
            self.call(operation, *args)
        if _dumped([operation, args]) != text:
            raise BadClass(
                f"{_short(text)} is not as calls are written: {_short(_dumped([operation, args]))}"
            )

    def answer(self, response: Response) -> Any:
        """What a call of the method gives: the result of one that ended Ok, else its exception is raised."""
        if response.condition == OK:
            return thawed(response.results[0]) if response.results else None
        found = self._raised[response.condition]
        with _border(lambda: f"{response.condition} cannot be made without arguments"):
            raised = found.__new__(found)  # Its __init__ may want what nobody has here.
        raise raised

    def _first_state(self) -> str:
        try:
            instance = self._class()
        except BaseException as error:
            raise BadClass(
                f"{self.name}() raised {told(error)}: a new object is made without arguments"
            ) from error
        if not hasattr(instance, "__dict__"):
            raise BadClass(f"{self.name} has __slots__: the state is read from __dict__, so leave them out")
        state = self._text(instance, lambda: f"{self.name}()")
        try:
            self._instance(state)
        except TypeError as error:
            raise BadClass(
                f"{self.name} derives from a class of Python's own: all state is in attributes, so keep it in one ({error})"
            ) from None
        return state

    def _text(self, instance: Any, place: Callable[[], str], known: str = "") -> str:
        attributes = vars(instance)
        try:
            return _json(attributes, place, known)
        except BadClass:
            for name, value in attributes.items():
                if (found := _unfit(value)) is not None:
                    raise BadClass(f"{place()}: the attribute {name}{_short(found[0])} {found[1]}") from None
            raise


@contextmanager
def _border(place: Callable[[], str]) -> Iterator[None]:
    """Tells what code of the user's raises that nobody else tells of."""
    try:
        yield
    except BadClass:
        raise
    except BaseException as error:
        raise BadClass(f"{_short(place())}: {_short(told(error))}") from error


def is_plain(found: object) -> bool:
    """Whether it is a class whose methods are the operations, and not one that has `step`."""
    return isinstance(found, type) and not hasattr(found, "step")


def frozen(value: Any) -> Hashable:
    """A JSON value as arguments and results hold it."""
    return value if isinstance(value, (*_SCALARS, Json)) else Json(_dumped(value))


def thawed(value: Any) -> Any:
    """The JSON value that `frozen` was given, a copy of one's own."""
    return parsed(value.text.encode()) if isinstance(value, Json) else value


def text_of(value: Hashable) -> str:
    """The JSON text of a value as arguments and results hold it."""
    return value.text if isinstance(value, Json) else _dumped(value)


def arguments_text(invocation: Invocation) -> str:
    """The arguments of a call as JSON text, in order."""
    return f"[{','.join(map(text_of, invocation.args))}]"


def call_text(invocation: Invocation) -> str:
    """A call as JSON text: the operation and its arguments, as `["add",[1]]`. So logs keep the calls of blind operations."""
    return f"[{_dumped(invocation.operation)},{arguments_text(invocation)}]"


def call_in(text: str) -> Invocation:
    """The call that such a text is. Raises BadClass."""
    operation, args = _call_parts(text)
    return Invocation(operation, tuple(map(frozen, args)))


def _call_parts(text: str) -> tuple[str, list[Any]]:
    """The operation and its arguments. Raises BadClass."""
    try:
        found = parsed(text.encode())
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadClass(f"{_short(text)} is no call: {error}") from None
    match found:
        case [str(operation), list(args)]:
            return operation, args
    raise BadClass(f'{_short(text)} is no call, as ["add",[1]]')


def written(response: Response) -> str:
    """A response as JSON text: how the call ended, and what it returned, as `["Ok",3]`."""
    return f"[{','.join(map(text_of, (response.condition, *response.results)))}]"


def read(text: str) -> Response:
    """The response that was written."""
    condition, *results = parsed(text.encode())
    return Response(condition, tuple(map(frozen, results)))


def _dumped(value: Any) -> str:
    return canonical(value).decode()


def _methods(found: type) -> Iterator[tuple[str, FunctionType]]:
    """The operations, as the file has them; those of base classes first."""
    names = dict.fromkeys(name for base in reversed(found.__mro__) for name in vars(base))
    for name in names:
        member = inspect.getattr_static(found, name)
        if name.startswith("__") or name in (EXAMPLES, UPGRADE):
            continue
        if name in (BLIND, OBSERVING) and not isinstance(member, FunctionType):
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
            if not name.isascii() or len(name) > NAME_CHARS_MAX:
                raise BadClass(
                    f"{found.__name__}.{name}: an operation's name has at most {NAME_CHARS_MAX} ASCII characters"
                )
            yield name, member


def _blind(found: type, methods: Mapping[str, Any], silent: AbstractSet[str]) -> frozenset[str]:
    """The operations that the class calls blind."""
    blind = _named(found, BLIND, methods)
    for name in blind - silent:
        raise BadClass(
            f"{found.__name__}.{BLIND} names {name}, whose hint does not say that it returns None: nobody would get what it returns"
        )
    return blind


def _named(found: type, attribute: str, methods: Mapping[str, Any]) -> frozenset[str]:
    """The operations that an attribute of the class names. Where a method has that name, it is an operation like others."""
    named = getattr(found, attribute, ())
    if isinstance(named, FunctionType):
        return frozenset()
    if not isinstance(named, tuple) or not all(isinstance(name, str) for name in named):
        raise BadClass(
            f"{found.__name__}.{attribute} is {_short(shown(named))}: name the {attribute} operations in a tuple, as ('add',)"
        )
    for name in named:
        if name not in methods:
            raise BadClass(
                f"{found.__name__}.{attribute} names {name!r}, which is no operation: these are {', '.join(methods)}"
            )
    return frozenset(named)


def _version(found: type) -> int:
    version = getattr(found, VERSION, 1)
    if type(version) is not int or not 1 <= version < 1 << 31:
        raise BadClass(f"{found.__name__}.{VERSION} is {version!r}: it is a whole number, 1 for the first")
    return version


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
            _json(value, partial("".join, (found.__name__, ".", EXAMPLES, "[", repr(name), "]")))
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
        if name.startswith("_"):
            raise BadClass(f"{operation}({name}): an argument's name does not begin with _")
        values = examples.get(name) or tuple(_by_hint(hints.get(name, inspect.Parameter.empty)))
        if not values:
            raise BadClass(
                f"{operation}({name}): nothing is known to try for it: give it a hint of str, int, float, bool or Literal, "
                f"or the class {EXAMPLES} = {{{name!r}: (…, …)}}"
            )
        if parameter.default is not inspect.Parameter.empty and name not in examples:
            _json(parameter.default, partial("".join, (operation, f"({parameter}): the default")))
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
    except BaseException as error:
        raise BadClass(f"{method.__qualname__}: a hint cannot be read: {told(error)}") from error
    return {name: None if hint is type(None) else hint for name, hint in hints.items()}


def _place(invocation: Invocation, state: str) -> str:
    return f"{_short(str(invocation))} in the state {_short(state)}"


def _outcome(place: str, error: BaseException) -> str:
    """The outcome that an exception stands for: its name. Those of Python itself are mistakes in the code."""
    found = type(error)
    if found.__module__.partition(".")[0] in sys.stdlib_module_names:
        remedy = "for an outcome, raise an exception that you define, as class NotThere(Exception)"
        if found is AttributeError:
            remedy = f"where the state is that of an older class, say how to read it ({VERSION}, {UPGRADE})"
        raise BadClass(f"{place}: raised {_short(told(error))}: {remedy}") from error
    if not issubclass(found, Exception) or issubclass(found, StopIteration):
        # At a client it would end more than the call: its event loop, or a generator.
        raise BadClass(
            f"{place}: raised {found.__name__}: an outcome derives from Exception, and not from StopIteration"
        ) from error
    if error.args or found.__name__ == OK:
        raise BadClass(
            f"{place}: raised {_short(shown(error))}: an outcome is the exception's name alone, and not {OK}, so raise it without arguments"
        ) from error
    return found.__name__


def _json(value: Any, place: Callable[[], str], known: str = "") -> str:
    """The text of a value that JSON gives back as it was; else that is told, and `place` is asked where: an object would come back as
    another one. What has the `known` text came back before."""
    try:
        marshal.dumps(value, _WITHOUT_REFERENCES)  # It takes no subclass: that would come back plain.
        text = _dumped(value)
        if text == known or parsed(text.encode()) == value:
            return text
    except Exception:  # noqa: BLE001, S110 - what cannot be sent is looked for below, as is what compares in a way of its own
        pass
    path, why = _unfit(value) or ("", "is no JSON value")
    raise BadClass(f"{place()}{_short(path)} {why}")


def _unfit(value: Any, depth: int = 0) -> tuple[str, str] | None:
    """Where in the value something is that JSON does not give back, and what."""
    if depth > NESTED_MAX:
        return "", f"is nested more than {NESTED_MAX} deep, or holds itself: keep it flat"
    if type(value) is list:
        for number, each in enumerate(value):
            if (found := _unfit(each, depth + 1)) is not None:
                return f"[{number}]{found[0]}", found[1]
        return None
    if type(value) is dict:
        for name, each in value.items():
            if type(name) is not str or not _is_text(name):
                key = shown(name)
                return "", f"has the key {key}: JSON has texts alone, so write str({key})"
            if (found := _unfit(each, depth + 1)) is not None:
                return f"[{_short(repr(name))}]{found[0]}", found[1]
        return None
    if _is_scalar(value):
        return None
    instead = ", so keep a list" if issubclass(type(value), (tuple, set, frozenset)) else ""
    kind = type(value).__name__
    return "", f"is {_short(shown(value))}, of type {kind}: JSON does not give that back as it is{instead}"


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:SHOWN_CHARS_MAX]}…"


def _is_scalar(value: Any) -> bool:
    """Whether it is a text, a number, a boolean or None that can be sent: a subclass is something else."""
    found = type(value)
    if found is str:
        return _is_text(value)
    if found is int:
        return bool(-(1 << 63) <= value < 1 << 64)
    return value is None or found is bool or (found is float and isfinite(value))


def _is_text(value: str) -> bool:
    """Whether it can be sent: half of a surrogate pair cannot."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
