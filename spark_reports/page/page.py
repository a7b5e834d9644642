"""Fills the page of a report: one self-contained HTML file that loads nothing from anywhere and runs no script.

The answer stands open; the parts after it are folded, and open on paper, or where a link leads into one.

Every value goes through the template's escaping; the charts escape theirs in `svg`.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, FunctionLoader, StrictUndefined

from ..model.aggregates import microseconds
from ..model.figures import Figures
from ..model.period import ReportPeriod
from ..model.phrases import EARLIEST_S, LATEST_S, counted, duration, moment, shortened, unbroken
from ..text import advice, answer, method, objectives, regimes, verdict
from . import tables_choices, tables_objectives, tables_regimes, tables_run
from .charts import symbol
from .charts_availability import availability
from .charts_front import front, numbers
from .charts_latency import latency, live_votes
from .charts_timeline import timeline
from .short_names import renamed, short_names

TEMPLATE: Final = "report.html.jinja"
FOLD_ROWS: Final = 24
"""A table with more rows is shown folded, and stays folded on paper."""
NAME_CHARS_MAX: Final = 80


def render(figures: Figures, versions: Mapping[str, str], *, parquet: bool, place: str) -> str:
    """Give the page as HTML text.

    Args:
        figures: what to show.
        versions: names and versions of what made the report.
        parquet: whether the tables were written beside the page.
        place: where `figures.json` is, as whoever makes the report names it.
    """
    applied = {
        "commands": advice.commands(figures, place),
        "choice_commands": advice.choice_commands(figures, place),
        "hints": advice.hints(figures),
    }
    names = short_names(figures)
    figures = renamed(figures, names)
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=FunctionLoader(lambda name: files(__package__).joinpath(name).read_text(encoding="utf-8")),
    )
    environment.filters.update(unbroken=unbroken)
    environment.globals.update(symbol=symbol, FOLD_ROWS=FOLD_ROWS)
    return environment.get_template(TEMPLATE).render(
        **_answer(figures),
        **_objectives(figures),
        **_measured(figures),
        **_choices(figures),
        **_method(figures, versions),
        **applied,
        parquet=parquet,
        names=tables_run.named(
            "Names that this page shortens",
            {short: full for full, short in names.items()},
            ("On this page", "In full"),
        ),
    )


def _answer(figures: Figures) -> dict[str, Any]:
    rejected = sum(row.rows for row in figures.rejected)
    return {
        "measured_on": _measured_on(figures),
        "period": _period(figures),
        "verdicts": verdict.verdicts(figures),
        "answers": answer.answers(figures),
        "summary": tables_choices.summary(figures),
        "changed": regimes.sentences(figures),
        "reading": method.reading(figures),
        "findings": answer.findings(figures),
        "answer_tables": [tables_choices.answer(figures, adt) for adt in tables_choices.adts(figures)],
        "notes": answer.notes(figures),
        "rejected_rows": counted(rejected, "bad row") + (" was" if rejected == 1 else " were")
        if rejected
        else "",
    }


def _objectives(figures: Figures) -> dict[str, Any]:
    return {
        "objectives": objectives.verdicts(figures) + objectives.meeting(figures),
        "budgets": tables_objectives.budgets(figures),
        "burn_by_day": tables_objectives.burn_by_day(figures),
        "objective_tables": [
            tables_objectives.every_choice(figures, adt) for adt in tables_objectives.adts(figures)
        ],
    }


def _measured(figures: Figures) -> dict[str, Any]:
    return {
        "availability": availability(figures) if figures.operations else None,
        "claim": tables_choices.claim(figures),
        "comparisons": tables_choices.comparisons(figures),
        "why": method.why(figures),
        "gaps": tables_run.gaps(figures),
        "causes": tables_run.causes(figures),
        "surprises": tables_run.surprises(figures),
        "timeline": timeline(figures),
        "outages": tables_run.outages(figures),
        "live_votes": live_votes(figures),
        "pairs": tables_run.pairs(figures),
        "latency": latency(figures),
        "latencies": tables_run.latencies(figures),
    }


def _choices(figures: Figures) -> dict[str, Any]:
    adts = dict.fromkeys(row.adt for row in figures.candidates)
    return {
        "choices": [
            {
                "front": front(figures, adt, f"front-{index}"),
                "candidates": tables_choices.candidates(figures, adt, numbers(figures, adt)),
                "outages": tables_choices.counterfactual_outages(figures, adt),
            }
            for index, adt in enumerate(adts)
        ],
        "recommended": tables_choices.recommended(figures),
        "adaptive": tables_choices.adaptive(figures),
        "regimes": tables_regimes.regimes(figures),
        "as_it_was": tables_regimes.as_it_was(figures),
        "classes": tables_choices.event_classes(figures),
    }


def _method(figures: Figures, versions: Mapping[str, str]) -> dict[str, Any]:
    return {
        "how": method.how(figures),
        "words": method.words(figures),
        "prober": tables_run.prober(figures),
        "rows_read": tables_run.rows_read(figures),
        "rejected": tables_run.rejected(figures),
        "plan": figures.source.plan,
        "versions": tables_run.named("What made this report", versions, ("Name", "Version")),
        "made": tables_run.named("What made the run", figures.source.made, ("Name", "Value")),
    }


def _since(start_s: float) -> str:
    """Write when the window begins, if its times are dates at all: those of a trace may count from 0."""
    return f"from {moment(microseconds(start_s))} on, " if EARLIEST_S <= start_s < LATEST_S else ""


def _period(figures: Figures) -> str:
    """Write which time was asked for; nothing where all counts."""
    ends = (
        None if each is None else microseconds(each) for each in (figures.window.from_s, figures.window.to_s)
    )
    asked = ReportPeriod(*ends)
    return f"Only what lies in the time {asked} counts." if str(asked) else ""


def _measured_on(figures: Figures) -> str:
    window = figures.window
    attempts = sum(row.attempts for row in figures.operations)
    what = f"{counted(attempts, 'operation')} on " if attempts else ""
    scale = answer.time_scale(window)
    return (
        f"{shortened(figures.source.name, NAME_CHARS_MAX)}: {method.KINDS.get(figures.source.kind, figures.source.kind)}. "
        f"{what}{counted(len(figures.replicas), 'replica')}, {_since(window.start_s)}for "
        f"{duration(window.end_s - window.start_s)}.{' ' + scale if scale else ''}"
    )
