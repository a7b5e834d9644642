"""Fills the page of a report: one self-contained HTML file that loads nothing from anywhere.

Every value goes through the template's escaping; the charts escape theirs in `svg`.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.resources import files
from typing import Final

from jinja2 import Environment, StrictUndefined

from quorate.spark_reports import charts, wording
from quorate.spark_reports.aggregates import BINS
from quorate.spark_reports.figures import Figures

TEMPLATE: Final = "report.html.jinja"


def render(figures: Figures, versions: Mapping[str, str], *, parquet: bool) -> str:
    """Give the page as HTML text.

    Args:
        figures: what to show.
        versions: names and versions of what made the report.
        parquet: whether the tables were written beside the page.
    """
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        percent=wording.percent,
        duration=wording.duration,
        signed=wording.signed,
        counted=wording.counted,
        symbol=charts.symbol,
        bins=BINS,
    )
    template = environment.from_string(files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8"))
    operations = figures.operations
    answered = any(row.outcome == "ok" for row in figures.latencies)
    started = datetime.fromtimestamp(figures.window.start_s, tz=UTC)
    return template.render(
        figures=figures,
        versions=versions,
        parquet=parquet,
        answer=wording.answer(figures),
        started=started.strftime("%Y-%m-%d %H:%M:%S UTC"),
        lasted=wording.duration(figures.window.end_s - figures.window.start_s),
        attempts=sum(row.attempts for row in operations),
        unknown=sum(row.unknown for row in operations),
        blocked=bool(operations) and all(row.block_bootstrap is not None for row in operations),
        lucky=sum(row.surprises.ok_while_short + row.surprises.ok_near_change for row in operations),
        unlucky=sum(row.unavailable + row.unknown for row in operations),
        outside=sum(row.surprises.outside_trace for row in operations),
        rejected_rows=sum(row.rows for row in figures.rejected),
        availability_chart=charts.availability_chart(figures) if operations else None,
        live_votes_chart=charts.live_votes_chart(figures),
        timeline_chart=charts.timeline_chart(figures),
        latency_chart=charts.latency_chart(figures) if answered else None,
    )
