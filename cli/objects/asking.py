"""What all commands about objects share: which cluster, for how long, a client for one command, and its answer.

Owns the options that all of them have. Every command opens a client of its own, runs one operation and closes it.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Concatenate, NamedTuple

import typer

from ...api_specs.cluster import ClusterDocument
from ...client_sdk import Client, Dictionary, Queue, Register, connect
from ...client_sdk.protocol.core.values import Done, Operation, Outcome
from ...client_sdk.transport.tls import from_environment
from ..cluster.document import DEFAULT_NAME, read_document, url_of
from ..credentials import read_token
from ..failure import EXIT_FAILED
from ..options import ClusterOption, DeadlineOption
from ..output import AsJson, answer, reported
from ..values import compact


class Answer(NamedTuple):
    """What a command answers: with --json, and as text. `is_no`: "no" is an answer too, with the exit code that lets a shell
    branch on it. `is_look`: nothing was changed or taken."""

    data: Any
    text: str = ""
    is_no: bool = False
    is_look: bool = False


def shown(word: str, value: Any) -> Answer:
    """One value that was looked at."""
    return Answer({word: value}, compact(value), is_look=True)


class Weak:
    """Whether the answer to a command came as eventual consistency allows, and how that is told."""

    def __init__(self) -> None:
        self._is_so = False

    def note(self, operation: Operation, began_s: float, took_s: float, outcome: Outcome) -> None:
        """An observer of the command's client."""
        del operation, began_s, took_s
        self._is_so |= isinstance(outcome, Done) and outcome.is_weak

    def labelled(self, told: Any) -> Any:
        """What the command answers with --json; for people it is said beside the answer."""
        if not self._is_so:
            return told
        print("eventual consistency: it may be old", file=sys.stderr)
        return told | {"consistency": "eventual"}


@dataclass
class Asked:
    """The object that a command is about, on a client that is connected at first use. `ending` closes it."""

    name: str
    cluster: str
    deadline_s: float | None
    ending: ExitStack
    weak: Weak = field(default_factory=Weak)

    @cached_property
    def client(self) -> Client:
        """A client, until the command ends."""
        place: str | ClusterDocument = url_of(self.cluster) or read_document(Path(self.cluster))
        made = connect(place, token=read_token(), tls=from_environment(), deadline_s=self.deadline_s)
        made.on_finished(self.weak.note)
        return self.ending.enter_context(made)

    @property
    def queue(self) -> Queue:
        return self.client.queue(self.name)

    @property
    def register(self) -> Register:
        return self.client.register(self.name)

    @property
    def dictionary(self) -> Dictionary:
        return self.client.dictionary(self.name)


def asking(command: Callable[Concatenate[Asked, ...], Answer]) -> Callable[..., None]:
    """`command` with the options that all have behind its own. Its answer is told when its client is closed."""

    def run(
        context: typer.Context,
        cluster: ClusterOption = DEFAULT_NAME,
        deadline_s: DeadlineOption = None,
        as_json: AsJson = False,
        **words: Any,
    ) -> None:
        with ExitStack() as ending:
            asked = Asked(context.obj, cluster, deadline_s, ending)
            told = command(asked, **words)
        answer(as_json, asked.weak.labelled(told.data), told.text, is_look=told.is_look)
        if told.is_no:
            raise typer.Exit(EXIT_FAILED)

    parameters = _joined(run, command)
    functools.update_wrapper(run, command)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return reported(run)


def _joined(run: Callable[..., None], command: Callable[..., Answer]) -> list[inspect.Parameter]:
    """What typer is to read: the context, what `command` takes behind what is asked, and the options of `run`."""
    context, *options, _ = inspect.signature(run).parameters.values()
    _, *own = inspect.signature(command).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (context, *own, *options)]
