"""Mistakes in deciding calls on objects of types of one's own (docs/explanation/design.md, "Types of one's own")."""

from collections.abc import Generator
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from quorate.adts.plain_class import BadClass
from quorate.adts.specification import Kind, Response
from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.core.rounds import Event, Task
from quorate.client_sdk.protocol.core.values import Invoke
from quorate.client_sdk.protocol.decisions import transitions
from quorate.client_sdk.protocol.operations import observe, own_calls
from quorate.client_sdk.protocol.operations.context import Machine
from tests.sim.planted.plant import Planting, patched


def run_a_repeat_again() -> Planting:
    """A call under a key that took effect before takes effect again."""

    def invoke(builder: Any, command: transitions.InvokeCommand, *rest: Any) -> Any:
        return real(builder, replace(command, key=""), *rest)

    real = transitions._invoke
    return patched(transitions, _invoke=invoke)


def forget_answers_that_changed_nothing() -> Planting:
    """A call under a key that changed nothing is not remembered: its repeat may change something."""

    def invoke(builder: Any, command: transitions.InvokeCommand, value: Any, events: Any) -> Any:
        with suppress(BadClass):
            if command.type.run(value, command.invocation)[0] == value and not builder.keyed(command.key):
                command = replace(command, key="")
        return real(builder, command, value, events)

    real = transitions._invoke
    return patched(transitions, _invoke=invoke)


def run_each_from_the_decided_state() -> Planting:
    """Of the calls that one decision grants, each is run on the state before it, not on what the one before it left."""

    def invoke(builder: Any, command: transitions.InvokeCommand, value: Any, events: Any) -> Any:
        return real(builder, command, builder.before.value, events)

    real = transitions._invoke
    return patched(transitions, _invoke=invoke)


def answer_a_change_from_a_look() -> Planting:
    """A call that was seen to change nothing before is answered from a look, though this time it changes something."""

    def look(
        operation: Invoke, task: Task, machine: Machine
    ) -> Generator[float, Event, tuple[Response, frozenset[str]] | None]:
        needed = machine.choice_of(operation.object).initial_of_kind(Kind.DECIDE)
        cache = machine.cache_of(operation.object)
        answered = yield from observe.collect(operation.object, task, machine, needed)
        try:
            _, response = operation.type.run(cache.summary.value, operation.invocation)
        except BadClass:
            return None
        return response, answered

    return patched(own_calls, _look=look)


def answer_from_what_is_not_decided() -> Planting:
    """A call that changes nothing is answered from a state that some replica accepted, without having it decided."""
    return patched(LogCache, is_decided=property(lambda _: True))
