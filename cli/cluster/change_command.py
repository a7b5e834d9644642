"""`quorate change NEW`: other quorum choices and votes for a cluster that runs, and that goes on running.

Owns the words: what becomes more and less available, and how far the change has come. What is done, `quorate.client_sdk.protocol.reconfiguration` says.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from msgspec import Struct, to_builtins

from ...adts.specification import operation_of
from ...api_specs.cluster import ClusterDocument
from ...api_specs.configuration import tolerated
from ...client_sdk.api.connect import Recipe
from ...client_sdk.protocol.core.values import Carry, Done
from ...client_sdk.protocol.reconfiguration import Ask, Perform, Steps, Tell, Todo, take_back
from ...client_sdk.protocol.reconfiguration import change as steps_to
from ...client_sdk.transport.tls import from_environment
from ..credentials import read_token
from ..failure import Failure, PartlyDone, Usage
from ..options import ClusterOption
from ..output import AsJson, answer, reported, say
from .document import DEFAULT_NAME, read_document, url_of
from .status import cluster_document

DEADLINE_S: Final = 900.0
_GO_ON: Final = "repeat the command to go on, or take it back with `quorate change --abort`"


class Shift(Struct, frozen=True):
    """How many replicas may be down, whichever they are, while events of a class still come about: before and after."""

    objects: str
    event_class: str
    before: int
    after: int

    @property
    def told(self) -> str:
        """In words."""
        more = "more" if self.after > self.before else "less"
        return f"{self.objects}: {self.event_class} is {more} available: {self.after} of the replicas may be down, whichever they are ({self.before} before)"


@reported
def change(
    new: Annotated[
        Path | None, typer.Argument(metavar="NEW", help="The cluster file as it is to be.")
    ] = None,
    cluster: ClusterOption = DEFAULT_NAME,
    abort: Annotated[
        bool, typer.Option("--abort", help="Take the change under way back, instead of NEW.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, and do nothing.")
    ] = False,
    deadline_s: Annotated[
        float,
        typer.Option(
            "--deadline", metavar="SECONDS", min=1, help="Stop then; whoever repeats it goes on with it."
        ),
    ] = DEADLINE_S,
    as_json: AsJson = False,
) -> None:
    """Give a running cluster other quorum choices or votes. Callers notice nothing but a longer operation now and then.

    Its token needs the scopes admin and write. A change that was cut off goes on when anybody repeats it. Idempotency keys of before must be forgotten
    first, which takes a retry window at most. Then give NEW to replicas and callers in place of the old file, at leisure.
    """
    if (new is None) != abort:
        raise Usage("Name the cluster file as it is to be, as `quorate change new.toml`; or --abort alone.")
    now = cluster_document(cluster)
    wanted = None if new is None else read_document(new)
    if wanted is not None:
        _check(now, wanted)
    shifts = [] if wanted is None else list(_shifts(now, wanted))
    for shift in shifts:
        say(f"{shift.told}.")
    told: dict[str, Any] = {"shifts": to_builtins(shifts)}
    if dry_run:
        answer(as_json, told | {"epoch": now.number}, "Nothing was changed.")
        return
    document = _carried_out(cluster, wanted, deadline_s)
    text = f"Configuration {document.number} is in force."
    answer(as_json, told | {"epoch": document.number, "hash": document.hash}, text)


def _check(now: ClusterDocument, wanted: ClusterDocument) -> None:
    if wanted.name != now.name:
        raise Usage(
            f"The file is of cluster {wanted.name!r}, and this one is {now.name!r}: name its own file."
        )
    if {replica.id for replica in wanted.replicas} != now.votes.keys():
        raise Usage(
            f"The file has other members than the cluster ({', '.join(now.votes)}): in this release rules and votes change while it runs, and members do "
            "not. A lost disk is for `quorate replace`."
        )


def _shifts(now: ClusterDocument, wanted: ClusterDocument) -> Iterator[Shift]:
    """Of all objects that a rule of either names, and of those without one."""
    before = now if now.former is None else now.former
    patterns = dict.fromkeys(rule.objects for rule in (*wanted.choices, *before.choices))
    for adt in wanted.specifications:
        own = [each for each in patterns if each.partition("/")[0] == adt]
        for objects in [*own, *([] if f"{adt}/*" in own else [f"{adt}/*"])]:
            then, later = before.choice_of(objects), wanted.choice_of(objects)
            for event_class in later.classes:
                counts = [
                    min(
                        tolerated(each.initial_of(operation_of(event_class))),
                        tolerated(each.final_of(event_class)),
                    )
                    for each in (then, later)
                ]
                if counts[0] != counts[1]:
                    yield Shift(objects, event_class, *counts)


def _carried_out(cluster: str, wanted: ClusterDocument | None, deadline_s: float) -> ClusterDocument:
    recipe = Recipe(
        url_of(cluster) or read_document(Path(cluster)), {}, read_token(), None, from_environment()
    )
    steps = take_back if wanted is None else partial(_steps, wanted)
    progress = Progress()

    async def run() -> ClusterDocument:
        async with asyncio.timeout(deadline_s):
            return await recipe.operate(steps, progress.hear)

    try:
        return asyncio.run(run())
    except TimeoutError:
        if progress.has_begun:
            raise PartlyDone(
                f"After {deadline_s:g} s the change is under way: {progress.waits}; {_GO_ON}."
            ) from None
        raise Failure(
            f"After {deadline_s:g} s the change has not begun: {progress.waits}. Nothing was changed."
        ) from None
    except KeyboardInterrupt:
        raise PartlyDone(f"The change may be under way: {_GO_ON}.") from None


def _steps(wanted: ClusterDocument, at: ClusterDocument) -> Steps:
    return steps_to(at, wanted)


class Progress:
    """Says how far a change has come, as its steps are done."""

    def __init__(self) -> None:
        self.waits = "no quorum answers"
        """What it waits for."""
        self.has_begun = False
        self._epoch = 0
        self._carried = 0

    def hear(self, todo: Todo, told: Any) -> None:
        """A step was done, and this came of it."""
        match todo:
            case Tell(document=document):
                self.has_begun |= document.former is not None
                behind = [name for name in document.votes if told.get(name, -1) < document.number]
                self.waits = (
                    f"{', '.join(behind) or 'nobody'} did not go on to configuration {document.number}"
                )
                if document.former is not None and document.number > self._epoch:
                    self._epoch = document.number
                    say(f"Configuration {document.number}: each quorum is one of before and one of after.")
            case Ask(document=document) if document.former is not None:
                keys = max((each.keys for each in told.values()), default=0)
                objects = len({name for each in told.values() for name in each.objects})
                self.waits = f"{keys} idempotency keys of before are remembered"
                if not self._carried:
                    say(f"{objects} object{'s' * (objects != 1)} to carry over.")
                elif keys:
                    say(f"Waiting until {keys} idempotency keys of before are forgotten.")
            case Ask():
                self.waits = f"only {', '.join(told) or 'nobody'} answered"
            case Perform(operation=Carry(object=name)):
                self._carried += isinstance(told, Done)
                self.waits = f"{name} is not carried over"
