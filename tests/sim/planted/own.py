"""Mistakes in deciding calls on objects of types of one's own (docs/explanation/design.md, "Types of one's own")."""

from typing import Any

from msgspec.structs import replace

from quorate.client_sdk.protocol.core.log_cache import LogCache
from quorate.client_sdk.protocol.decisions import transitions
from tests.sim.planted.plant import Planting, patched


def run_a_repeat_again() -> Planting:
    """A call under a key that took effect before takes effect again."""

    def invoke(builder: Any, command: transitions.InvokeCommand, *rest: Any) -> Any:
        return real(builder, replace(command, key=""), *rest)

    real = transitions._invoke
    return patched(transitions, _invoke=invoke)


def run_each_from_the_decided_state() -> Planting:
    """Of the calls that one decision grants, each is run on the state before it, not on what the one before it left."""

    def invoke(builder: Any, command: transitions.InvokeCommand, value: Any, events: Any) -> Any:
        return real(builder, command, builder.before.value, events)

    real = transitions._invoke
    return patched(transitions, _invoke=invoke)


def answer_from_what_is_not_decided() -> Planting:
    """A call that changes nothing is answered from a state that some replica accepted, without having it decided."""
    return patched(LogCache, is_decided=property(lambda _: True))
