"""Messages and outcomes in a trace: short, for a reader. Owns their form only."""

from typing import Any

from ...api_specs.messages import BatchReply
from ...client_sdk.protocol.core.values import Done, Outcome, Unanswered


def shown_answer(replica: str, answer: BatchReply | Unanswered) -> str:
    """What came of a batch."""
    if isinstance(answer, Unanswered):
        return f"<- {replica}: {answer.detail}"
    return f"<- {replica}: " + "; ".join(map(shown, answer.replies))


def shown_outcome(outcome: Outcome) -> str:
    """How an operation ended, and on whose answers that rests."""
    by = f"by {', '.join(sorted(outcome.answered)) or 'nobody'}"
    if isinstance(outcome, Done):
        result = sorted(outcome.result.items()) if isinstance(outcome.result, dict) else outcome.result
        return f"{outcome.event_class} {result!r} {by}"
    return f"{outcome.reason} ({'definite' if outcome.definite else 'indefinite'}) {by}: {outcome.detail}"


def shown(value: Any) -> str:
    """A message, short: without defaults and package names."""
    fields = []
    for name, default in zip(value.__struct_fields__, _defaults(type(value)), strict=True):
        got = getattr(value, name)
        if got != default:
            fields.append(f"{name}={shown(got) if hasattr(got, '__struct_fields__') else _short(got)}")
    return f"{type(value).__name__}({', '.join(fields)})"


def _defaults(kind: Any) -> list[Any]:
    given = list(kind.__struct_defaults__)
    return [...] * (len(kind.__struct_fields__) - len(given)) + given


def _short(value: Any) -> str:
    if isinstance(value, tuple | list):
        inner = (shown(each) if hasattr(each, "__struct_fields__") else _short(each) for each in value)
        return "(" + ", ".join(inner) + ")"
    # Of a timestamp the last digits tell it from others.
    if isinstance(value, str) and len(value) > 20 and value[14:15] == ".":
        return value[8:]
    return repr(value)
