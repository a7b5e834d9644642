"""`quorate report --follow`: goes on until a signal, and says each new report in one line.

`quorate.spark_reports.following` does the rest.
"""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from rich.console import Console
from rich.markup import escape

from ..failure import Failure, Usage
from ..output import answer
from ..quorums.input import percent


def follow_command(
    story: Console, inputs: Sequence[str], out: str, wanted: dict[str, Any], *, every_s: float, as_json: bool
) -> None:
    """Make the report anew as files come, one line for each, until a signal."""
    if len(inputs) != 1:
        raise Usage(
            "--follow looks for new files in one --input: name a folder of probes, or of a measured run"
        )
    with reports_there():
        from ...spark_reports.following import Card, follow  # noqa: PLC0415 - an extra
        from ...spark_reports.merging import observers_in  # noqa: PLC0415
        from ...spark_reports.model.places import is_uri  # noqa: PLC0415
        from ...spark_reports.report import Options  # noqa: PLC0415

    for option, where in (("--input", inputs[0]), ("--out", out)):
        if is_uri(where):
            raise Usage(f"{option} {where}: --follow reads and writes folders of this machine; give one")
    place = Path(inputs[0])
    if place.is_dir() and len(observers_in(place)) > 1:
        raise Usage(
            f"{place} holds the probes of several observers, which are merged for a report and not followed: leave --follow out, and let a "
            "timer run the report again and again"
        )

    def tell(card: Card) -> None:
        if as_json:
            answer(True, card_as_json(card))
        else:
            story.print(escape(line(card)), soft_wrap=True)

    story.print(f"Looking for whole files in {escape(str(place))}; Ctrl-C ends it.", soft_wrap=True)
    follow(place, Path(out), Options(**wanted), every_s=every_s, stopping=stopping(), told=tell)


@contextmanager
def stopping() -> Iterator[Event]:
    """An event that the first signal to end sets; a second one of its kind ends at once."""
    stop = Event()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def end(number: int, _frame: object) -> None:
        stop.set()
        signal.signal(number, signal.SIG_DFL)

    before = [(number, signal.signal(number, end)) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def line(card: Any) -> str:
    """What became of new files, in one line: the shares of the choices in force, and objectives."""
    from ...spark_reports.model.phrases import counted, moment  # noqa: PLC0415 - an extra

    files = counted(card.new_files, "new file")
    if card.report is None:
        return f"{files}, and the report stays as it was: {card.sentence}"
    figures = card.report.figures
    until = moment(round(figures.window.end_s * 1e6))
    shares: dict[str, list[str]] = {}
    for row in figures.summary:
        if row.present:
            shares.setdefault(row.choice, []).append(f"{row.operation} {percent(row.available)}")
    told = "; ".join(f"{choice}: {', '.join(own)}" for choice, own in shares.items())
    return f"{until}, {files}. {told}.{_objectives(figures)}"


def _objectives(figures: Any) -> str:
    """Which objectives the choices in force miss; nothing where none was asked for."""
    present = [row for row in figures.verdicts if row.present]
    missed = [f" {row.choice} misses {', '.join(row.missed)}." for row in present if not row.met]
    return "".join(missed) or (" Every objective is met." if present else "")


def card_as_json(card: Any) -> dict[str, Any]:
    """The same for programs."""
    told = {"new_files": card.new_files, "error": card.sentence or None}
    if card.report is None:
        return told
    figures = card.report.figures
    told |= {"end_s": figures.window.end_s, "figures": str(card.report.json.resolve())}
    present = [row for row in figures.summary if row.present]
    shares = [
        {"choice": row.choice, "operation": row.operation, "available": row.available} for row in present
    ]
    return told | {"present": shares, "objectives": objectives_in_force(figures)}


def objectives_in_force(figures: Any) -> list[dict[str, Any]]:
    """The objectives under the choices in force, as figures.json has them, but for their days."""
    keys = (
        "objective",
        "target",
        "choice",
        "unit",
        "availability",
        "budget",
        "spent",
        "left",
        "burn_rate",
        "met",
    )
    return [{key: getattr(row, key) for key in keys} for row in figures.objectives if row.present]


@contextmanager
def reports_there() -> Iterator[None]:
    """Says which package is missing where reports are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise Failure(f"the package {error.name} is missing; run: pip install 'quorate[reports]'") from None
