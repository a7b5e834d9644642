"""What a terminal shows: results as text or one JSON line, and every known error as one sentence.

Owns the streams: answers go to standard output, everything else to standard error (with --json the error too is the one
JSON line of standard output). Must not decide what is an error: other rooms raise them.
"""

import functools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, Final, ParamSpec

import typer
from rich.console import Console

from ..adts.types.catalogue import BadName
from ..api_specs.cluster import BadCluster
from ..api_specs.problems import KINDS
from ..client_sdk.errors import PASS_A_TOKEN, BadInput, QuorateError, Unavailable
from ..measurement.plan.plan import BadPlan
from ..quorums.choices.choice import BadChoice
from ..quorums.planning.strategy import MissingSolver
from ..quorums.systems.systems import BadQuorums
from ..replica.logs.audit import Fact, audit_line
from .failure import EXIT_FAILED, EXIT_UNKNOWN, EXIT_USAGE, Failure
from .streams import lost_sentence
from .values import compact, lines_spelled_out, spelled_out

P = ParamSpec("P")

_BAD_INPUT = (BadCluster, BadName, BadChoice, BadQuorums, BadPlan)

_FOR_PROGRAMS: Final = (KINDS["unauthorized"].advice.removesuffix("."), PASS_A_TOKEN)
_FOR_COMMANDS: Final = "Set QUORATE_TOKEN to a token that this cluster accepts"
"""Who types commands sends no headers, and calls no SDK."""
_OPTIONS: Final = {
    "deadline_s": "--deadline",
    "delay_s": "--delay",
    "due_after_s": "--due-after",
    "lease_s": "--lease",
    "max_deliveries": "--max-deliveries",
    "max_items": "--max",
    "wait_s": "--wait",
}
"""Arguments of the SDK, as commands have them."""
_ARGUMENT: Final = re.compile(rf"\b({'|'.join(_OPTIONS)})\b")

AsJson = Annotated[bool, typer.Option("--json", help="Answer with one JSON line.")]


def console() -> Console:
    """Standard output; colours and width as the terminal has them."""
    return Console(highlight=False)


def console_for_people() -> Console:
    """Standard error, where no program looks for an answer."""
    return Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """A sentence for a person, on standard error, where no program looks for an answer. Where nobody can be told, the exit code still tells
    what is certain."""
    with suppress(OSError):
        print(lines_spelled_out(text), file=sys.stderr, flush=True)


def say_act(act: str, **facts: Fact) -> None:
    """The audit line of an act, where standard error is kept. A person at a terminal is told by the command's answer."""
    if not sys.stderr.isatty():
        say(audit_line(act, **facts))


class AnswerLost(Failure):
    """Nobody reads the result of a command any more; what was asked is done by then."""

    exit_code = EXIT_UNKNOWN


def answer(as_json: bool, data: Any, text: str = "", *, is_look: bool = False) -> None:
    """The result of a command: `data` as one JSON line, or `text`; nothing for an empty text. Where its reader has gone, raises AnswerLost,
    and says the answer on standard error: what was taken is shown nowhere else. A mere look ends without a word. Other trouble of
    writing, `cli.streams` sees to."""
    line = compact(data) if as_json else lines_spelled_out(text)
    try:
        if line:
            print(line, flush=True)
    except BrokenPipeError as error:
        if is_look:  # Who has seen enough of it may look again.
            raise typer.Exit(EXIT_FAILED) from None
        say(line)
        raise AnswerLost(lost_sentence(error.strerror or str(error))) from None


def tell_error(as_json: bool, sentence: str, kind: str, code: int) -> None:
    """An error as the one JSON line of standard output; as a sentence without --json, or where that line cannot be written."""
    if as_json and kind != AnswerLost.__name__:
        with suppress(AnswerLost):
            answer(True, {"error": sentence, "kind": kind, "definite": code != EXIT_UNKNOWN})
            return
    say(f"quorate: {spelled_out(sentence)}")


def reported(command: Callable[P, None]) -> Callable[P, None]:
    """`command` with known errors shown as a sentence (a JSON line with `as_json`) and as an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with errors_shown(bool(kwargs.get("as_json"))):
            command(*args, **kwargs)

    return run


@contextmanager
def errors_shown(as_json: bool) -> Iterator[None]:
    """Ends the command with the exit code of a known error, after showing it."""
    try:
        yield
    except (Failure, QuorateError, *_BAD_INPUT, MissingSolver, OSError) as error:
        code = exit_code(error)
        tell_error(as_json, _sentence(error), type(error).__name__, code)
        raise typer.Exit(code) from None


def exit_code(error: Exception) -> int:
    """The exit code that tells what is certain after `error`."""
    if isinstance(error, Failure):
        return error.exit_code
    if isinstance(error, (BadInput, *_BAD_INPUT, MissingSolver)):
        return EXIT_USAGE
    if isinstance(error, QuorateError):
        return EXIT_FAILED if error.definite else EXIT_UNKNOWN
    return EXIT_FAILED


def _sentence(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    if isinstance(error, BadInput):
        text = _ARGUMENT.sub(lambda found: _OPTIONS[found[1]], text)
    if isinstance(error, QuorateError) and not error.definite:
        text += " (outcome unknown: it may or may not have happened)"
    if isinstance(error, Unavailable):
        text += " (`quorate status` shows which replicas are up)"
    for advice in _FOR_PROGRAMS:
        text = text.replace(advice, _FOR_COMMANDS)
    return text
